/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/assert.h"
#include "nn/megatron/fine_offload.h"
#include "ops/reduce.h"
#include "parallel/moe_layers.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/combined_1f1b.h"
#include "train/megatron/forward_backward.h"
#include "train/megatron/megatron.h"
#include "train/megatron/repeat.h"
#include "train/megatron/te_capture.h"
#include "train/megatron/trainer.h"

/** Points of an iteration; static names for all that can be run: twice the
 *  most of train.iterations. */
enum {
    MAX_ITERATIONS = 32
};

#define ITERATION_NAMES(n)                                                     \
    {                                                                          \
        "iter" #n "_begin", "iter" #n "_end"                                   \
    }

static const char *const iteration_names[MAX_ITERATIONS][2] = {
    ITERATION_NAMES(0),  ITERATION_NAMES(1),  ITERATION_NAMES(2),
    ITERATION_NAMES(3),  ITERATION_NAMES(4),  ITERATION_NAMES(5),
    ITERATION_NAMES(6),  ITERATION_NAMES(7),  ITERATION_NAMES(8),
    ITERATION_NAMES(9),  ITERATION_NAMES(10), ITERATION_NAMES(11),
    ITERATION_NAMES(12), ITERATION_NAMES(13), ITERATION_NAMES(14),
    ITERATION_NAMES(15), ITERATION_NAMES(16), ITERATION_NAMES(17),
    ITERATION_NAMES(18), ITERATION_NAMES(19), ITERATION_NAMES(20),
    ITERATION_NAMES(21), ITERATION_NAMES(22), ITERATION_NAMES(23),
    ITERATION_NAMES(24), ITERATION_NAMES(25), ITERATION_NAMES(26),
    ITERATION_NAMES(27), ITERATION_NAMES(28), ITERATION_NAMES(29),
    ITERATION_NAMES(30), ITERATION_NAMES(31),
};

/** Chunks, then what is around them. */
void me_build_model(me_trainer *t)
{
    for (int32_t i = 0; i < t->spec->n_chunks && me_engine_is_ok(t->e); i++) {
        me_gpt_create(&t->nn, &t->spec->chunks[i], &t->chunks[i]);
    }
    if (me_engine_is_ok(t->e)) {
        t->wrapper->wrap(t);
    }
}

/** setup_model_and_optimizer() and what is around it. */
static void set_up(me_trainer *t)
{
    me_phase_set(t->e, ME_PHASE_SETUP);
    if (t->config->moe.num_experts > 0) {
        t->aux_loss_scale = me_keep_scalar(t->e, "aux_loss_scale", 4);
    }
    me_bootstrap_user_buffers(t);
    me_point(t->e, "initialized");
    me_start_up(t);
    me_build_model(t);
    me_point(t->e, "model_built");
    if (me_engine_is_ok(t->e)) {
        me_optimizer_create(t);
    }
    if (me_engine_is_ok(t->e)) {
        me_load_checkpoint(t);
    }
    me_point(t->e, "optimizer_built");
    me_before_training(t);
}

static void forward_backward(me_trainer *t)
{
    if (t->spec->order != NULL) {
        me_forward_backward_order(t);
    } else if (t->spec->pipeline.ranks == 1 && me_is_combined(t)) {
        me_forward_backward_combined(t);
    } else if (t->spec->pipeline.ranks == 1) {
        me_forward_backward_no_pipelining(t);
    } else if (t->spec->n_chunks == 1) {
        me_forward_backward_1f1b(t);
    } else {
        me_forward_backward_interleaved(t);
    }
}

/** torch.cuda.empty_cache(), from @p level of emptying on. */
static void empty_cache(me_trainer *t, int32_t level)
{
    if (t->config->train.empty_unused_memory_level >= level) {
        me_empty_cache(t->e);
        me_launch_host_waits(t->e);
    }
}

/** clip_qk() (core/optimizer/qk_clip.py). */
static void clip_qk(me_trainer *t)
{
    for (int32_t i = 0; i < t->spec->n_chunks; i++) {
        me_gpt_clip_qk(&t->chunks[i]);
    }
}

/** train_step() and training_log(). */
static void train_step(me_trainer *t)
{
    me_engine *e = t->e;
    me_iteration(e, t->iteration);
    me_phase_set(e, ME_PHASE_OTHER);
    me_point(e, iteration_names[t->iteration][0]);
    t->forwards = 0;
    me_repeats_begin_iteration(t);
    t->n_reports = 0;
    me_zero_grad_buffer(t);
    me_optimizer_zero_grad(t);
    me_start_timers(t, 1);
    forward_backward(t);
    me_temporary(e, "rerun_state_machine", 4);
    empty_cache(t, 1);
    me_start_timers(t, 1);
    const bool has_stepped = me_optimizer_step(t);
    clip_qk(t);
    empty_cache(t, 2);
    me_reduce_losses(t);
    me_point(e, iteration_names[t->iteration][1]);
    me_phase_set(e, ME_PHASE_OTHER);
    me_log_params_norm(t);
    me_log_iteration(t, !has_stepped);
    me_launch_host(e, ME_HOST_STEP);
    me_launch_host_waits(e); // the barriers of training_log()'s timers
}

void me_trainer_fini(me_trainer *t)
{
    me_engine *e = t->e;
    for (int32_t i = 0; t->chunks != NULL && i < t->spec->n_chunks; i++) {
        me_gpt_fini(e, &t->chunks[i]);
    }
    t->wrapper->fini(t);
    me_optimizer_destroy(t);
    me_weight_gradients_fini(e, &t->weights);
    me_te_state_fini(e, &t->te);
    me_fine_offload_fini(e, t->nn.fine_offload);
    me_cuda_graphs_fini(e, &t->graphs);
    me_parameter_list_fini(e, &t->parameters);
    me_repeats_fini(t);
}

static bool captures_layers(const me_config *config)
{
    return config->train.cuda_graph_impl == ME_CUDA_GRAPH_LOCAL ||
           config->train.cuda_graph_impl == ME_CUDA_GRAPH_TE;
}

typedef me_status layers_reader(const char *text, int32_t n_layers,
                                me_diag *diag, bool *is_of_kind_out);

/** For each of the model's layers whether it is of a kind. */
static const bool *find_layers(me_engine *e, const me_config *config,
                               layers_reader *read, const char *text)
{
    const int32_t n = config->model.num_layers;
    bool *is_of_kind = me_engine_alloc(e, (size_t)n, sizeof *is_of_kind);
    const me_status status =
        is_of_kind == NULL ? ME_OK : read(text, n, NULL, is_of_kind);
    ME_ASSERT(status == ME_OK); // the job's rules have read them
    return status == ME_OK ? is_of_kind : NULL;
}

void me_trainer_init(me_trainer *t, me_engine *e, const me_megatron_spec *spec,
                     const me_communicators *comm)
{
    const me_model_config *c = &spec->config->model;
    *t = (me_trainer){.e = e,
                      .config = spec->config,
                      .spec = spec,
                      .comm = comm,
                      .wrapper = me_model_wrapper_of(spec->config)};
    t->nn = (me_nn){
        .e = e,
        .config = spec->config,
        .comm = comm,
        .parameters = &t->parameters,
        .weights = spec->order == NULL ? NULL : &t->weights,
        .rope_cache = &t->rope_cache,
        .te = &t->te,
        .graphs = captures_layers(spec->config) ? &t->graphs : NULL,
        .moe = &t->moe,
        .is_moe_layer = spec->is_moe_layer,
        .is_window_layer =
            c->window_attention
                ? find_layers(e, spec->config, me_window_layers_read,
                              c->window_attn_skip_freq)
                : NULL,
        .is_no_rope_layer =
            c->no_rope_freq[0] != '\0'
                ? find_layers(e, spec->config, me_no_rope_layers_read,
                              c->no_rope_freq)
                : NULL,
        .routing = spec->routing,
        .main_grads = &t->main_grads,
        .fine_offload = me_fine_offload_create(
            e, spec->config, spec->pipeline.rank, spec->n_chunks),
    };
    const size_t chunks = (size_t)spec->n_chunks;
    t->chunks = me_engine_alloc(e, chunks, sizeof *t->chunks);
    t->ddp = me_engine_alloc(e, chunks, sizeof *t->ddp);
    t->reports = me_engine_alloc(e, (size_t)spec->pipeline.microbatches,
                                 sizeof(me_tensor *));
    me_ops_install(e);
    me_compile_cache_set(e, spec->config->train.compile_cache_is_warm &&
                                !spec->times_kernels);
    me_deterministic_set(e, spec->config->train.deterministic_mode);
    me_repeats_init(t);
}

me_status me_megatron_run(me_engine *e, const me_megatron_spec *spec,
                          const me_communicators *comm)
{
    me_trainer t;
    me_trainer_init(&t, e, spec, comm);
    if (me_engine_is_ok(e)) {
        set_up(&t);
    }
    const int32_t n = me_config_iterations(spec->config, spec->iterations);
    for (int32_t i = 0; i < n && i < MAX_ITERATIONS && me_engine_is_ok(e);
         i++) {
        if (i == me_config_capture_iteration(spec->config)) {
            me_te_capture(&t);
        }
        t.iteration = i;
        train_step(&t);
    }
    if (me_engine_is_ok(e) && n > 0) {
        me_save_checkpoint(&t);
    }
    if (me_engine_is_ok(e) && n > 0) {
        me_evaluate(&t);
    }
    // What the program still holds at its end is no event of the job.
    const me_status status = me_engine_status(e, NULL);
    me_engine_mute(e);
    me_trainer_fini(&t);
    return status;
}
