/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/random_assignments.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct draw {
    me_random *random;
    random_job *job;
    int32_t tp, pp, dp, chunks;
} draw;

static ME_PRINTF(2, 3) void set(draw *d, const char *format, ...)
{
    assert_true(d->job->n_sets < RANDOM_JOB_SETS);
    char *text = d->job->sets[d->job->n_sets++];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof d->job->sets[0], format, arguments);
    va_end(arguments);
}

static int32_t in(draw *d, int32_t low, int32_t high)
{
    return me_random_in(d->random, low, high);
}

/* Once in @p n times. */
static bool rarely(draw *d, int32_t n)
{
    return in(d, 1, n) == 1;
}

static const char *word(draw *d, const char *const *words, int32_t n)
{
    return words[in(d, 0, n - 1)];
}

static void flip(draw *d, const char *option)
{
    set(d, "%s=%s", option, rarely(d, 2) ? "true" : "false");
}

static void draw_grid(draw *d)
{
    d->tp = 1 << in(d, 0, 2);
    d->pp = in(d, 1, 4);
    d->dp = in(d, 1, 4);
    if (d->tp * d->pp * d->dp > RANDOM_JOB_MAX_RANKS) {
        d->dp = 1;
    }
    d->chunks = d->pp > 1 && rarely(d, 3) ? in(d, 2, 3) : 1;
    d->job->world = d->tp * d->pp * d->dp;
    set(d, "parallel.world_size=%d", d->job->world);
    set(d, "parallel.tensor=%d", d->tp);
    set(d, "parallel.pipeline=%d", d->pp);
    set(d, "parallel.virtual_pipeline=%d", d->chunks);
    flip(d, "parallel.tp_pp_dp_mapping");
    flip(d, "parallel.sequence");
}

static void draw_layers(draw *d)
{
    const int32_t share = in(d, 1, 2);
    int32_t layers = d->pp * d->chunks * share;
    if (d->pp > 1 && d->chunks == 1 && rarely(d, 3)) {
        const int32_t first = in(d, 1, 3);
        layers = first + (d->pp - 1) * share;
        set(d, "parallel.decoder_first_pipeline_num_layers=%d", first);
    } else if (layers > 2 && rarely(d, 3)) {
        layers -= 2;
        set(d, "parallel.account_for_embedding_in_pipeline_split=true");
        set(d, "parallel.account_for_loss_in_pipeline_split=true");
    }
    set(d, "model.num_layers=%d", layers);
}

static void draw_model(draw *d)
{
    static const char *const activations[] = {"gelu", "swiglu", "squared_relu"};
    static const char *const positions[] = {"learned_absolute", "rope", "none"};
    static const char *const norms[] = {"LayerNorm", "RMSNorm"};
    const int32_t heads = 4 * d->tp;
    const int32_t channels = 16 * in(d, 1, 4);
    set(d, "model.num_attention_heads=%d", heads);
    set(d, "model.num_query_groups=%d", d->tp << in(d, 0, 2));
    set(d, "model.hidden_size=%d", heads * channels);
    set(d, "model.seq_length=%d", d->tp * in(d, 1, 40));
    set(d, "model.vocab_size=%d", in(d, 1, 2000));
    set(d, "model.activation=%s", word(d, activations, 3));
    set(d, "model.position_embedding_type=%s", word(d, positions, 3));
    set(d, "model.normalization=%s", word(d, norms, 2));
    set(d, "model.attention_dropout=%s", rarely(d, 2) ? "0" : "0.1");
    set(d, "model.hidden_dropout=%s", rarely(d, 2) ? "0" : "0.1");
    flip(d, "model.add_bias_linear");
    flip(d, "model.add_qkv_bias");
    flip(d, "model.qk_layernorm");
    flip(d, "model.untie_embeddings_and_output_weights");
    flip(d, "model.attention_softmax_in_fp32");
}

static void draw_training(draw *d)
{
    static const char *const dtypes[] = {"bfloat16", "float16", "float32"};
    const int32_t size = in(d, 1, 2);
    const int32_t count = d->chunks > 1 ? d->pp * in(d, 1, 3) : in(d, 1, 6);
    set(d, "train.micro_batch_size=%d", size);
    set(d, "train.global_batch_size=%d", size * d->dp * count);
    set(d, "train.params_dtype=%s", word(d, dtypes, 3));
    set(d, "impl.core_attention=%s", rarely(d, 2) ? "unfused" : "sdpa_flash");
    set(d, "train.apply_rope_fusion=false");
    flip(d, "train.grad_reduce_in_bf16");
    flip(d, "train.bias_gelu_fusion");
    flip(d, "train.bias_swiglu_fusion");
    flip(d, "train.bias_dropout_fusion");
    flip(d, "train.cross_entropy_loss_fusion");
    flip(d, "train.create_attention_mask_in_dataloader");
}

static void draw_optimizer(draw *d)
{
    set(d, "optimizer.kind=%s", rarely(d, 4) ? "sgd" : "adam");
    flip(d, "optimizer.distributed");
    flip(d, "optimizer.overlap_grad_reduce");
    set(d, "optimizer.overlap_param_gather=%s",
        rarely(d, 4) ? "true" : "false");
    set(d, "optimizer.clip_grad=%s", rarely(d, 3) ? "0" : "1");
    if (rarely(d, 2)) {
        set(d, "optimizer.ddp_bucket_size=%d", in(d, 1, 200000));
    }
}

static void draw_recompute(draw *d)
{
    static const char *const kinds[] = {"none", "selective", "full"};
    set(d, "recompute.granularity=%s", word(d, kinds, 3));
    set(d, "recompute.method=%s", rarely(d, 2) ? "uniform" : "block");
    set(d, "recompute.num_layers=%d", in(d, 1, 3));
    set(d, "recompute.distribute_saved_activations=%s",
        rarely(d, 5) ? "true" : "false");
}

/** FSDP2 in place of DDP, or two instances of the distributed optimizer. */
static void draw_sharding(draw *d)
{
    if (d->pp == 1 && rarely(d, 2)) {
        set(d, "parallel.torch_fsdp2=true");
        flip(d, "parallel.torch_fsdp2_reshard_after_forward");
        set(d, "model.untie_embeddings_and_output_weights=true");
        set(d, "train.gradient_accumulation_fusion=false");
        set(d, "optimizer.distributed=false");
        set(d, "optimizer.overlap_param_gather=false");
    } else if (d->dp % 2 == 0) {
        set(d, "optimizer.num_distributed_optimizer_instances=%d", in(d, 1, 2));
    }
}

void me_random_job_draw(me_random *random, random_job *job_out)
{
    *job_out = (random_job){0};
    draw d = {.random = random, .job = job_out};
    draw_grid(&d);
    draw_layers(&d);
    draw_model(&d);
    draw_training(&d);
    draw_optimizer(&d);
    draw_recompute(&d);
    if (rarely(&d, 4)) {
        set(&d, "device.memory_limit=%dMiB", in(&d, 1, 64) * 20);
    }
    draw_sharding(&d);
    if (d.chunks > 1) {
        flip(&d, "parallel.overlap_p2p_comm_warmup_flush");
    }
}
