/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "config/megatron/megatron_rules.h"

#include <inttypes.h>
#include <string.h>

/** The options of one kind that have no default. */
/** Which a command that gives the model must say (_check_arg_is_not_none()), and a
 *  file need not. */
static bool lacks_positions(const me_config *config)
{
    return me_megatron_validates(config) &&
           me_flag_list_has(&config->modelled, "--seq-length") &&
           !me_config_is_set(config, "model.max_position_embeddings") &&
           !me_flag_list_has(&config->not_modelled, "--use-checkpoint-args");
}

static me_status check_required(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;

    const struct {
        const char *option;
        const char *flag;
        uint64_t value;
    } required[] = {
        {"model.num_layers", "--num-layers", (uint64_t)m->num_layers},
        {"model.hidden_size", "--hidden-size", m->hidden_size},
        {"model.num_attention_heads", "--num-attention-heads",
         m->num_attention_heads},
        {"model.seq_length", "--seq-length", m->seq_length},
        {"model.max_position_embeddings", "--max-position-embeddings",
         lacks_positions(config) ? 0 : m->max_position_embeddings},
        {"model.vocab_size", "--tokenizer-type and the tokenizer's files",
         m->vocab_size},
        {"train.micro_batch_size", "--micro-batch-size",
         config->train.micro_batch_size},
    };

    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (required[i].value == 0) {
            return me_fail_missing(
                diag, me_fail(diag, ME_ERR_CONFIG,
                              "%s is not given (in a launch command %s), nor "
                              "by --set",
                              required[i].option, required[i].flag));
        }
    }
    return ME_OK;
}

me_status me_divides(const char *b_name, uint64_t b, const char *a_name,
                     uint64_t a, me_diag *diag)
{
    if (b != 0 && a % b == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG, "%s = %llu does not divide %s = %llu",
                   b_name, (unsigned long long)b, a_name,
                   (unsigned long long)a);
}

static me_status check_heads(const me_config *config, me_diag *diag)
{
    return me_divides("parallel.tensor", (uint64_t)config->parallel.tensor,
                      "model.num_attention_heads",
                      config->model.num_attention_heads, diag);
}

static me_status check_groups_of_heads(const me_config *config, me_diag *diag)
{
    return me_divides("model.num_query_groups", config->model.num_query_groups,
                      "model.num_attention_heads",
                      config->model.num_attention_heads, diag);
}

static me_status check_groups(const me_config *config, me_diag *diag)
{
    const uint64_t groups = config->model.num_query_groups;
    const uint64_t tensor = (uint64_t)config->parallel.tensor;
    if (groups % tensor == 0 || tensor % groups == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.tensor = %llu and model.num_query_groups = %llu: "
                   "one must divide the other",
                   (unsigned long long)tensor, (unsigned long long)groups);
}

static me_status check_kv_channels(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (me_config_is_set(config, "model.kv_channels")) {
        return ME_OK;
    }
    return me_divides("model.num_attention_heads", m->num_attention_heads,
                      "model.hidden_size", m->hidden_size, diag);
}

/** RotaryEmbedding's tables hold pairs: an odd share of a head rounds up. */
static me_status check_rotary(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    const bool is_latent = m->multi_latent_attention;
    const uint64_t columns =
        is_latent ? m->qk_pos_emb_head_dim : m->kv_channels;
    const uint64_t size = config->model.rotary_size;
    if ((!me_model_is_rotary(m) && !is_latent) ||
        (size > 0 && size <= columns)) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.rotary_percent = %g of model.%s = %llu "
                   "makes tables of %llu columns: at least 2, and at most a "
                   "head, can turn",
                   m->rotary_percent,
                   is_latent ? "qk_pos_emb_head_dim" : "kv_channels",
                   (unsigned long long)columns, (unsigned long long)size);
}

static me_status check_ffn(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (m->ffn_hidden_size == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.hidden_size = %llu is too small for the default "
                       "of model.ffn_hidden_size: give it",
                       (unsigned long long)m->hidden_size);
    }
    return me_divides("parallel.tensor", (uint64_t)config->parallel.tensor,
                      "model.ffn_hidden_size", m->ffn_hidden_size, diag);
}

static me_status check_vocab(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (m->padded_vocab_size < m->vocab_size ||
        m->padded_vocab_size == ME_SIZE_INVALID) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.padded_vocab_size = %llu is smaller than "
                       "model.vocab_size = %llu",
                       (unsigned long long)m->padded_vocab_size,
                       (unsigned long long)m->vocab_size);
    }
    return me_divides("parallel.tensor", (uint64_t)config->parallel.tensor,
                      "model.padded_vocab_size", m->padded_vocab_size, diag);
}

static me_status check_positions(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    if (m->max_position_embeddings >= m->seq_length) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.max_position_embeddings = %llu is smaller than "
                   "model.seq_length = %llu",
                   (unsigned long long)m->max_position_embeddings,
                   (unsigned long long)m->seq_length);
}

static me_status check_world(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const uint64_t product = me_config_model_parallel(config);
    if (product != 0 && (uint64_t)p->world_size % product == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.world_size = %d is no multiple of "
                   "parallel.tensor x parallel.pipeline x parallel.context = "
                   "%d x %d x %d = %llu",
                   (int)p->world_size, (int)p->tensor, (int)p->pipeline,
                   (int)p->context, (unsigned long long)product);
}

static me_status check_batch(const me_config *config, me_diag *diag)
{
    const me_train_config *t = &config->train;
    const uint64_t samples =
        me_size_mul(t->micro_batch_size, (uint64_t)config->parallel.data);
    if (t->global_batch_size % samples == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "train.global_batch_size = %llu is no multiple of "
                   "train.micro_batch_size x data parallel size = %llu x %d",
                   (unsigned long long)t->global_batch_size,
                   (unsigned long long)t->micro_batch_size,
                   (int)config->parallel.data);
}

/** Each micro-batch is run, so their number is bounded by what is sane. */
static me_status check_microbatches(const me_config *config, me_diag *diag)
{
    const int32_t most = 1 << 17;
    if (config->train.num_microbatches <= most) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "train.global_batch_size = %llu makes %d micro-batches of "
                   "train.micro_batch_size = %llu on each rank: at most %d are "
                   "run",
                   (unsigned long long)config->train.global_batch_size,
                   (int)config->train.num_microbatches,
                   (unsigned long long)config->train.micro_batch_size,
                   (int)most);
}

static me_status check_sequence(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const uint64_t context = (uint64_t)p->context;
    const uint64_t seq_length = config->model.seq_length;
    if (context > 1 && seq_length % (2 * context) != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.seq_length = %llu is no multiple of 2 x "
                       "parallel.context = 2 x %llu",
                       (unsigned long long)seq_length,
                       (unsigned long long)context);
    }
    if (!p->sequence) {
        return ME_OK;
    }
    return me_divides("parallel.tensor", (uint64_t)p->tensor,
                      context > 1 ? "model.seq_length / parallel.context"
                                  : "model.seq_length",
                      seq_length / context, diag);
}

static me_status check_dtype(const me_config *config, me_diag *diag)
{
    const bool is_fp32 = config->train.params_dtype == ME_DTYPE_FLOAT32;
    if (is_fp32 && config->model.fp32_residual_connection) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "model.fp32_residual_connection = true needs "
                       "train.params_dtype = bfloat16 or float16, not float32");
    }
    if (config->impl.transformer == ME_TRANSFORMER_ENGINE &&
        config->model.fp32_residual_connection) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "model.fp32_residual_connection = true "
            "(--fp32-residual-connection) does not go with "
            "impl.transformer = transformer_engine, whose modules "
            "end at an input of another type than their parameters'");
    }
    if (config->model.fp32_residual_connection &&
        config->model.normalization == ME_NORMALIZATION_RMS_NORM) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "model.fp32_residual_connection = true "
            "(--fp32-residual-connection) does not go with "
            "model.normalization = RMSNorm and impl.transformer = local: "
            "PyTorch's norm gives float32, at which Megatron-LM's first linear "
            "layer ends");
    }
    if (config->impl.core_attention != ME_CORE_ATTENTION_SDPA_FLASH) {
        return ME_OK;
    }
    if (is_fp32) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = sdpa_flash needs "
                       "train.params_dtype = bfloat16 or float16, not float32");
    }
    if (config->model.query_head_size > 256) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "impl.core_attention = sdpa_flash takes %s up to 256, not %llu",
            config->model.multi_latent_attention
                ? "model.qk_head_dim + model.qk_pos_emb_head_dim"
                : "model.kv_channels",
            (unsigned long long)config->model.query_head_size);
    }
    return ME_OK;
}

/** Has no layer an MLP that is not experts? */
static bool has_experts_alone(const me_config *config)
{
    return config->moe.num_experts > 0 &&
           strcmp(config->moe.layer_freq, "1") == 0;
}

/** Only grouped experts have quick_geglu as one function: no other MLP may be. */
static bool has_fused_quick_geglu(const me_config *config)
{
    const me_moe_options *m = &config->moe;
    return m->grouped_gemm && has_experts_alone(config) &&
           config->impl.transformer == ME_TRANSFORMER_ENGINE &&
           m->shared_expert_intermediate_size == 0;
}

/** Megatron-LM itself stops at these, or never ends. */
static me_status check_fusion(const me_config *config, me_diag *diag)
{
    const me_activation activation = config->model.activation;
    if (config->train.bias_gelu_fusion &&
        (activation == ME_ACTIVATION_SQUARED_RELU ||
         (activation == ME_ACTIVATION_QUICK_GEGLU &&
          !has_fused_quick_geglu(config)) ||
         activation == ME_ACTIVATION_GEGLU)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "train.bias_gelu_fusion = true does not go with "
                       "model.activation = %s: set it to false "
                       "(--no-bias-gelu-fusion)",
                       me_choice_word(me_activation_choices, (int)activation));
    }
    if (config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
        config->recompute.mlp && config->model.add_bias_linear &&
        !has_experts_alone(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "recompute.mlp = true does not go with "
                       "model.add_bias_linear = true, with which Megatron-LM's "
                       "backward never ends: set it to false "
                       "(--disable-bias-linear)");
    }
    return ME_OK;
}

/** CheckpointFunction keeps numel // tensor numbers of its input on each rank
 * (split_tensor_into_1d_equal_chunks()), and gathers them for the backward, where
 * `.view(ctx.input_0_shape)` fails if they are fewer than before. */
static me_status check_distributed(const me_config *config, me_diag *diag)
{
    const me_recompute_config *r = &config->recompute;
    if (r->granularity != ME_RECOMPUTE_FULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "recompute.distribute_saved_activations = true needs "
                       "recompute.granularity = full");
    }
    if (config->parallel.tensor == 1 || config->parallel.sequence) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "recompute.distribute_saved_activations = true needs "
                       "parallel.tensor over 1 and parallel.sequence = false");
    }
    const uint64_t tensor = (uint64_t)config->parallel.tensor;
    const uint64_t tokens = me_size_mul(config->model.rank_seq_length,
                                        config->train.micro_batch_size);
    const uint64_t numbers = me_size_mul(tokens, config->model.hidden_size);
    // Recomputed by blocks of no layer, nothing is saved.
    if (r->num_layers > 0 && numbers % tensor != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "recompute.distribute_saved_activations = true "
                       "(--distribute-saved-activations): parallel.tensor = "
                       "%" PRIu64 " does not divide the %" PRIu64
                       " numbers of a layer's input (sequence x "
                       "train.micro_batch_size x model.hidden_size), which "
                       "Megatron-LM's backward then cannot put together",
                       tensor, numbers);
    }
    return ME_OK;
}

static me_status check_recompute(const me_config *config, me_diag *diag)
{
    const me_recompute_config *r = &config->recompute;
    const bool is_full = r->granularity == ME_RECOMPUTE_FULL;
    if (is_full && !me_config_is_set(config, "recompute.num_layers")) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "recompute.granularity = full needs "
                       "recompute.num_layers");
    }
    // Megatron-LM's loop over groups of no layer never ends.
    if (is_full && r->num_layers == 0 && r->method == ME_RECOMPUTE_UNIFORM) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "recompute.num_layers = 0 must be at least 1 with "
                       "recompute.method = uniform");
    }
    return r->distribute_saved_activations ? check_distributed(config, diag)
                                           : ME_OK;
}

/** Products of more than two sizes: the largest tensors of a job, in bytes of
 * float64, must stay below 2^58. That is far from 64 bits, from the addresses
 * of the allocator, and from what takes long to reduce in pieces. */
static me_status check_sizes(const me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    const uint64_t limit = UINT64_C(1) << 58;
    const uint64_t tokens = me_size_mul(
        me_size_mul(m->seq_length, config->train.micro_batch_size), 8);
    const uint64_t head = me_max_u64(
        me_max_u64(m->kv_channels, config->model.query_head_size),
        m->multi_latent_attention ? me_size_add(m->qk_head_dim, m->v_head_dim)
                                  : 0);
    const uint64_t heads = me_size_mul(m->num_attention_heads, head);
    const uint64_t width =
        me_max_u64(me_max_u64(m->ffn_hidden_size * 2, m->hidden_size),
                   me_max_u64(me_size_mul(heads, 3), m->padded_vocab_size));
    const uint64_t layer = me_size_mul(me_size_mul(width, m->hidden_size), 96);

    const struct {
        const char *what;
        uint64_t bytes;
    } sizes[] = {
        {"model.seq_length x train.micro_batch_size x the widest layer",
         me_size_mul(tokens, width)},
        {"model.seq_length squared x model.num_attention_heads x "
         "train.micro_batch_size",
         me_size_mul(me_size_mul(tokens, m->seq_length),
                     m->num_attention_heads)},
        {"model.num_layers x the parameters of a layer",
         me_size_mul(layer, (uint64_t)m->num_layers)},
    };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i].bytes >= limit) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s is over 256 PiB: is a value wrong?",
                           sizes[i].what);
        }
    }
    return ME_OK;
}

me_rule *const me_size_rules[] = {
    check_required,  check_heads,       check_groups_of_heads,
    check_groups,    check_kv_channels, check_rotary,
    check_ffn,       check_vocab,       check_positions,
    check_world,     check_batch,       check_microbatches,
    check_sequence,  check_dtype,       check_fusion,
    check_recompute, check_sizes,       NULL,
};
