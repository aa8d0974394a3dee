/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "config/megatron/megatron_rules.h"
#include "config/schedule_choice.h"
#include "parallel/layout.h"

#include <limits.h>
#include <string.h>

/** Gradients of a mean loss are below one, so that a scale which float16 holds
 *  itself keeps them there. */
static const double largest_half = 65504.0;

/* The formulas are those of Megatron-LM core_v0.19.0's validate_args() and
 * configuration classes. Here nothing is refused: validate.c says what does
 * not divide, so a division must only not be by zero. */

static uint64_t divide(uint64_t a, uint64_t b)
{
    return b == 0 ? 0 : a / b;
}

static uint64_t query_head_size(const me_model_config *m)
{
    return m->multi_latent_attention
               ? me_size_add(m->qk_head_dim, m->qk_pos_emb_head_dim)
               : m->kv_channels;
}

static uint64_t rotary_size(const me_model_config *m)
{
    if (m->multi_latent_attention && m->rope_type == ME_ROPE_TYPE_YARN) {
        return me_round_up(m->qk_pos_emb_head_dim, 2); // it turns all of them
    }
    if (!m->multi_latent_attention &&
        m->position_embedding == ME_POSITION_YARN) {
        return me_round_up(m->kv_channels, 2);
    }
    const uint64_t columns =
        m->multi_latent_attention ? m->qk_pos_emb_head_dim : m->kv_channels;
    return me_round_up((uint64_t)((double)columns * m->rotary_percent), 2);
}

static int32_t to_int32(uint64_t value)
{
    return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static void derive_model(me_config *config)
{
    me_model_config *m = &config->model;
    if (m->ffn_hidden_size == 0) {
        m->ffn_hidden_size = m->activation == ME_ACTIVATION_SWIGLU
                                 ? m->hidden_size * 8 / 192 * 64
                                 : m->hidden_size * 4;
    }
    if (config->moe.ffn_hidden_size == 0) {
        config->moe.ffn_hidden_size = m->ffn_hidden_size;
    }
    if (m->kv_channels == 0) {
        m->kv_channels = divide(m->hidden_size, m->num_attention_heads);
    }
    if (m->num_query_groups == 0) {
        m->num_query_groups = m->num_attention_heads;
    }
    m->rank_seq_length =
        divide(m->seq_length, (uint64_t)config->parallel.context);
    if (m->max_position_embeddings == 0) {
        m->max_position_embeddings = m->seq_length;
    }
    if (m->vocab_size == 0) {
        m->vocab_size = m->padded_vocab_size != 0
                            ? m->padded_vocab_size
                            : config->own->vocabulary.tokens;
    }
    if (m->padded_vocab_size == 0) {
        m->padded_vocab_size =
            me_round_up(m->vocab_size, m->make_vocab_size_divisible_by *
                                           (uint64_t)config->parallel.tensor);
    }
    m->add_qkv_bias = m->add_qkv_bias || m->add_bias_linear;
    m->query_head_size = query_head_size(m);
    m->rotary_size = rotary_size(m);
}

/** A layout alone must be readable to go on; one that does not fit is left to
 * validate_pipeline.c, and so is a number of chunks given beside it. */
static me_status derive_chunks(me_config *config, me_diag *diag)
{
    me_parallel_config *p = &config->parallel;
    if (p->pipeline_layout[0] != '\0') {
        me_layout layout;
        const me_status status =
            me_layout_init(p->pipeline_layout, diag, &layout);
        if (status == ME_OK &&
            !me_config_is_set(config, "parallel.virtual_pipeline") &&
            layout.n_stages >= p->pipeline) {
            p->virtual_pipeline = layout.n_stages / p->pipeline;
        }
        me_layout_fini(&layout);
        return status;
    }
    if (p->num_layers_per_virtual_pipeline_stage != 0 &&
        !me_config_is_set(config, "parallel.virtual_pipeline")) {
        const int32_t n_places = config->model.num_layers +
                                 p->account_for_embedding_in_pipeline_split +
                                 p->account_for_loss_in_pipeline_split;
        p->virtual_pipeline =
            n_places / p->pipeline / p->num_layers_per_virtual_pipeline_stage;
    }
    return ME_OK;
}

static me_status assume_schedule(me_config *config, me_diag *diag)
{
    return me_config_assume(
        config, diag,
        "Megatron-LM core_v0.19.0 has no schedule %s: it is run with the "
        "lifetimes of Megatron-LM's own, each tensor sent as soon as it is "
        "made, weight gradients kept as its zero-bubble forks keep them, and "
        "a forward that overlaps a backward run before it",
        config->pipeline.file[0] != '\0' ? config->pipeline.file
                                         : config->pipeline.name);
}

/** A limit of micro-batches that no search for an order reads. */
static me_status assume_no_limit(me_config *config, me_diag *diag)
{
    const char *name = config->pipeline.name;
    const bool is_searched =
        strcmp(name, "zb_auto") == 0 || strcmp(name, "v_auto") == 0;
    return config->pipeline.memory_limit == 0 || is_searched
               ? ME_OK
               : me_config_assume(config, diag,
                                  "pipeline.memory_limit = %d is without "
                                  "effect: it is for the schedules zb_auto "
                                  "and v_auto",
                                  (int)config->pipeline.memory_limit);
}

/** A file that says what Megatron-LM does anyway is run by the function that
 *  does it, which keeps a tensor here and there for longer than it must. */
static me_status derive_schedule(me_config *config, me_diag *diag)
{
    bool is_own = false;
    me_status status = me_config_file_is_own_schedule(config, diag, &is_own);
    if (status == ME_OK && is_own) {
        status = me_config_assume_of(
            config, "pipeline.schedule_file pipeline.schedule", diag,
            "%s is the order of Megatron-LM's own "
            "schedule, and run by its own function",
            config->pipeline.file);
        config->pipeline.file[0] = '\0';
        config->pipeline.name[0] = '\0';
    }
    const bool has_own = me_config_has_own_schedule(config);
    config->pipeline.is_own = has_own;
    if (config->parallel.virtual_pipeline == 1 || !has_own) {
        config->parallel.overlap_p2p_comm = false;
    }
    if (status == ME_OK && !has_own) {
        status = assume_schedule(config, diag);
    }
    if (status == ME_OK) {
        status = assume_no_limit(config, diag);
    }
    return status == ME_OK ? me_config_note_work_on_parameters(config, diag)
                           : status;
}

static me_status derive_parallel(me_config *config, int32_t num_processes,
                                 me_diag *diag)
{
    me_parallel_config *p = &config->parallel;
    me_status status = me_config_derive_world(config, num_processes, diag);
    if (status == ME_OK) {
        status = derive_chunks(config, diag);
    }
    if (p->expert_tensor == 0) {
        p->expert_tensor = p->tensor;
    }
    if (p->microbatch_group_size == 0) {
        p->microbatch_group_size = p->pipeline;
    }
    me_schedule_shape shape = {.chunks = 0};
    if (status == ME_OK) {
        status = me_config_schedule_shape(config, diag, &shape);
    }
    if (shape.chunks > 0 &&
        !me_config_is_set(config, "parallel.virtual_pipeline")) {
        p->virtual_pipeline = shape.chunks;
    }
    if (status == ME_OK && shape.copies > 1) {
        status = me_config_assume(
            config, diag,
            "each rank trains both of its stages whole, with main parameters "
            "and optimizer state of each; gradients of the two copies of a "
            "stage are all-reduced over the two ranks that have them");
    }
    if (p->sequence && p->tensor == 1) {
        p->sequence = false;
        if (status == ME_OK) {
            status = me_config_assume_of(
                config, "parallel.sequence parallel.tensor", diag,
                "sequence parallelism is off, because "
                "the tensor size is 1");
        }
    }
    return status;
}

/** FSDP2 has no main gradients, Megatron-FSDP's have an option of their own. */
static me_dtype derived_grad_dtype(const me_config *config)
{
    const me_train_config *t = &config->train;
    const me_parallel_config *p = &config->parallel;
    const bool has_main_grads = !p->torch_fsdp2 && !p->megatron_fsdp;
    if (p->megatron_fsdp && p->fsdp_main_grads_dtype >= 0) {
        return (me_dtype)p->fsdp_main_grads_dtype;
    }
    return has_main_grads && t->accumulate_allreduce_grads_in_fp32
               ? ME_DTYPE_FLOAT32
               : t->params_dtype;
}

/** What validate_args() asserts of evaluation, before the calculator of
 *  micro-batches makes a batch smaller. */
static me_status check_evaluation(const me_config *config, me_diag *diag)
{
    const me_train_config *t = &config->train;
    const uint64_t data = (uint64_t)config->parallel.data;
    const bool has_own = t->eval_global_batch_size != 0;
    const uint64_t micro = me_config_eval_micro_batch(config);
    const uint64_t global = has_own ? t->eval_global_batch_size
                            : t->global_batch_size != 0
                                ? t->global_batch_size
                                : me_size_mul(t->micro_batch_size, data);
    const uint64_t samples = me_size_mul(micro, data);
    const bool is_asked = has_own || t->eval_micro_batch_size != 0 ||
                          t->decrease_batch_size_if_needed;
    return !is_asked || samples == 0 || global % samples == 0
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "%s = %llu of evaluation%s is no multiple of %s x "
                         "data parallel size = %llu x %d",
                         has_own ? "train.eval_global_batch_size"
                                 : "train.global_batch_size",
                         (unsigned long long)global,
                         has_own ? ""
                                 : ", where train.eval_global_batch_size says "
                                   "no other,",
                         t->eval_micro_batch_size != 0
                             ? "train.eval_micro_batch_size"
                             : "train.micro_batch_size",
                         (unsigned long long)micro, (int)config->parallel.data);
}

static void derive_train(me_config *config)
{
    me_train_config *t = &config->train;
    const uint64_t samples =
        me_size_mul(t->micro_batch_size, (uint64_t)config->parallel.data);
    if (t->global_batch_size == 0) {
        t->global_batch_size = samples;
    }
    if (t->decrease_batch_size_if_needed && samples != 0 &&
        t->global_batch_size > samples) {
        t->global_batch_size -= t->global_batch_size % samples;
    }
    t->num_microbatches = to_int32(divide(t->global_batch_size, samples));
    t->evaluates = samples != 0 && (t->eval_iters > 0 || t->full_validation) &&
                   me_config_eval_microbatches(config) > 0;
    const bool is_bf16 = t->params_dtype == ME_DTYPE_BFLOAT16;
    if (is_bf16) {
        t->accumulate_allreduce_grads_in_fp32 =
            !t->grad_reduce_in_bf16 &&
            (t->accumulate_allreduce_grads_in_fp32 ||
             config->optimizer.main_grads_dtype == ME_DTYPE_FLOAT32);
    }
    t->grad_dtype = derived_grad_dtype(config);
    const bool is_fp16 = t->params_dtype == ME_DTYPE_FLOAT16;
    t->has_loss_scale = is_fp16 || t->loss_scale > 0.0;
    t->has_dynamic_loss_scale = is_fp16 && t->loss_scale == 0.0;
    t->first_steps_overflow =
        t->has_dynamic_loss_scale && t->initial_loss_scale > largest_half;
    if (t->has_dynamic_loss_scale) { // an overflow is expected
        t->check_for_nan_in_loss_and_grad = false;
    }
    if (!config->model.add_bias_linear) {
        t->bias_gelu_fusion = false;
    }
    t->bias_activation_fusion = config->model.activation == ME_ACTIVATION_SWIGLU
                                    ? t->bias_swiglu_fusion
                                    : t->bias_gelu_fusion;
    if (config->model.position_embedding != ME_POSITION_ROPE) {
        t->apply_rope_fusion = false;
    }
}

/** What Megatron-LM has no flag for, and Megatron-Bridge's layers have. */
static me_status assume_layers(me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;

    const struct {
        bool is_there;
        const char *what;
    } parts[] = {
        {m->norm_placement != ME_NORMS_PRE, "norms after sub-layers"},
        {m->qk_layernorm_across_heads, "norms over all heads"},
        {m->activation == ME_ACTIVATION_GEGLU, "gated gelus"},
    };

    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < sizeof parts / sizeof *parts;
         i++) {
        status = !parts[i].is_there
                     ? ME_OK
                     : me_config_assume(config, diag,
                                        "%s are as Megatron-Bridge's layers "
                                        "have them; no measured job stands "
                                        "behind that",
                                        parts[i].what);
    }
    return status;
}

/** HybridDeviceOptimizer is built twice, and the first one is garbage. */
static me_status assume_collection(me_config *config, me_diag *diag)
{
    const me_optimizer_config *o = &config->optimizer;
    if (!o->cpu_offload || o->offload_fraction >= 1.0) {
        return ME_OK;
    }
    return me_config_assume(
        config, diag,
        "what the optimizer's first build left behind, 4 bytes for each element "
        "of whole parameters that stay on the device, lies until Python's "
        "collector finds it as the first function is compiled or, without one, "
        "by the first step");
}

/** Megatron-LM itself captures whole layers, whatever part is named. */
static void derive_graphs(me_config *config)
{
    me_train_config *t = &config->train;
    const bool names_parts = t->cuda_graph_modules[0] != '\0' &&
                             strcmp(t->cuda_graph_modules, "full") != 0;
    const bool is_part = t->cuda_graph_impl == ME_CUDA_GRAPH_TE && names_parts;
    t->cuda_graph_attention = !is_part || me_config_captures(config, "attn");
    t->cuda_graph_mlp = !is_part || me_config_captures(config, "mlp");
    t->cuda_graph_experts = !is_part || me_config_captures(config, "moe");
    // Of other dispatchers and of shared experts that overlap: a note.
    t->cuda_graph_router = is_part &&
                           me_config_captures(config, "moe_router") &&
                           !config->moe.shared_expert_overlap;
    t->cuda_graph_preprocess =
        t->cuda_graph_router && me_config_captures(config, "moe_preprocess") &&
        config->moe.token_dispatcher == ME_DISPATCHER_ALL_TO_ALL;
    t->cuda_graph_late_counts =
        t->cuda_graph_preprocess ||
        (t->cuda_graph_impl != ME_CUDA_GRAPH_NONE && !names_parts);
    if (!t->cuda_graph_attention && !t->cuda_graph_mlp &&
        !t->cuda_graph_experts && !t->cuda_graph_router) {
        t->cuda_graph_impl = ME_CUDA_GRAPH_NONE; // of other parts: a note
    }
}

/** TransformerLayer._set_offload_modules(): norms at which a captured part begins
 *  or ends are not offloaded. */
static void derive_offload(me_config *config)
{
    const bool attention = me_config_captures(config, "attn");
    const bool mlp = me_config_captures(config, "mlp");
    const bool router = me_config_captures(config, "moe_router");
    const bool has_experts = config->moe.num_experts > 0;
    config->offload.keeps_attn_norm = attention;
    config->offload.keeps_mlp_norm =
        attention != mlp || (has_experts && (attention || router));
}

/** Is a checkpoint of FP8 loaded in a way that is not modelled? Delayed scaling's
 *  histories come along (module/base.py, set_extra_state()); parameters in FP8 are
 *  read a tensor at a time but with tensorwise scaling (validate_args() turns
 *  stream_ckpt_dequant off). */
static bool loads_fp8_otherwise(const me_fp8_config *f)
{
    return f->format != ME_FP8_NONE &&
           (f->recipe == ME_FP8_DELAYED ||
            (f->param && f->recipe != ME_FP8_TENSORWISE));
}

/** Moments in FP8 beside FP8 in the model are dequantised with its parameters. */
static bool loads_states_otherwise(const me_config *config)
{
    const me_optimizer_config *o = &config->optimizer;
    return o->precision_aware && config->fp8.format != ME_FP8_NONE &&
           (o->exp_avg_dtype == ME_DTYPE_UINT8 ||
            o->exp_avg_sq_dtype == ME_DTYPE_UINT8);
}

/** What of a checkpoint is loaded, as far as that is modelled: weights, and with
 *  them the states of FusedAdam. */
static void derive_loading(me_config *config)
{
    const me_optimizer_config *o = &config->optimizer;
    const bool has_others =
        config->parallel.torch_fsdp2 || config->parallel.megatron_fsdp ||
        loads_fp8_otherwise(&config->fp8) || loads_states_otherwise(config) ||
        o->kind != ME_OPTIMIZER_ADAM ||
        config->impl.optimizer != ME_OPTIMIZER_FUSED || o->cpu_offload;
    config->train.loads =
        has_others || config->train.load_checkpoint == ME_CHECKPOINT_OTHER
            ? ME_CHECKPOINT_NOTHING
            : config->train.load_checkpoint;
}

me_status me_config_derive(me_config *config, int32_t num_processes,
                           me_diag *diag)
{
    me_status status = derive_parallel(config, num_processes, diag);
    derive_model(config);
    derive_offload(config);
    derive_graphs(config);
    me_config_derive_router(&config->moe);
    me_config_derive_routing(&config->moe);
    if (status == ME_OK) {
        status = check_evaluation(config, diag);
    }
    derive_train(config);
    me_config_derive_implementation(config);
    derive_loading(config);
    if (status == ME_OK) {
        status = derive_schedule(config, diag);
    }
    if (status == ME_OK) {
        status = me_config_assume_defaults(config, diag);
    }
    if (status == ME_OK) {
        status = me_config_assume_routing(config, diag);
    }
    if (status == ME_OK) {
        status = assume_layers(config, diag);
    }
    if (status == ME_OK) {
        status = assume_collection(config, diag);
    }
    if (status == ME_OK) {
        status = me_config_assume_te_cross_entropy(config, diag);
    }
    if (status == ME_OK) {
        status = me_config_assume_te_times(config, diag);
    }
    if (status == ME_OK) {
        status = me_config_assume_offload(config, diag);
    }
    if (status == ME_OK) {
        status = me_config_assume_tp_overlap(config, diag);
    }
    if (status == ME_OK && config->train.first_steps_overflow) {
        status = me_config_assume(
            config, diag,
            "the dynamic loss scale of float16 begins so high that the first "
            "iterations overflow and skip the optimizer: its state is not in "
            "the peaks of iterations 0 to %d; it comes in iteration %d, which "
            "stands for the first step that is taken, and the verdict counts "
            "it",
            (int)config->train.iterations - 1, (int)config->train.iterations);
    }
    return status;
}
