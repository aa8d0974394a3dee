/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"
#include "config/megatron/megatron_rules.h"
#include "model/cp_comm.h"
#include "model/mup.h"

#include <string.h>

/* Option values that a job may have and that are not modelled. Where a launch
 * command has named the flag already, the flag speaks. */

/** Without Transformer Engine there is nothing that these are fused by. */
static bool is_local(const me_config *config)
{
    return config->impl.transformer == ME_TRANSFORMER_LOCAL;
}

/** Sizes were read from one version. */
static bool has_other_version(const me_config *config)
{
    return config->impl.importable == ME_IMPORTABLE_TE &&
           !me_config_has_measured_te(config);
}

/** Transformer Engine's alone take one (softmax.py's SoftmaxOne is left out). */
static bool has_softmax_offset(const me_config *config)
{
    return config->model.softmax_type != ME_SOFTMAX_VANILLA && is_local(config);
}

/** The local layers would make a mask of their own; as --window-size. */
static bool has_other_window(const me_config *config)
{
    return config->model.window_attention && is_local(config);
}

/** Which learning rate comes first is in their numbers. */
static bool has_mup_and_decoupled(const me_config *config)
{
    return me_model_is_mup_scaled(&config->model) &&
           config->optimizer.decoupled_lr &&
           !me_is_muon(config->optimizer.kind);
}

static bool has_fp32_residual(const me_config *config)
{
    return config->model.fp32_residual_connection;
}

static bool loads_otherwise(const me_config *config)
{
    return config->train.loads != config->train.load_checkpoint;
}

/** PyTorch pads heads for the kernel; flash takes multiples of 8 only. */
static bool has_padded_heads(const me_config *config)
{
    return config->impl.core_attention == ME_CORE_ATTENTION_SDPA_FLASH &&
           config->model.query_head_size % 8 != 0;
}

/** PyTorch's flash kernel wants one head size for all three. */
static bool has_narrow_values(const me_config *config)
{
    return config->impl.core_attention == ME_CORE_ATTENTION_SDPA_FLASH &&
           config->model.multi_latent_attention &&
           config->model.v_head_dim != config->model.query_head_size;
}

/** PyTorch's flash attention sums its gradients in another way then. */
static bool has_other_determinism(const me_config *config)
{
    return config->train.deterministic_mode &&
           config->impl.core_attention == ME_CORE_ATTENTION_SDPA_FLASH;
}

static bool has_fp8_experts(const me_config *config)
{
    return config->fp8.format != ME_FP8_NONE && config->moe.num_experts > 0;
}

/** What reaches the products of experts in FP8 was measured behind all-to-all,
 * without biases, and with a capacity where rows are padded to it, for experts one
 * by one; the rest is as the sources have it. */
static bool has_other_fp8_experts(const me_config *config)
{
    const me_moe_options *m = &config->moe;
    const bool is_padded = m->pad_to_capacity && !m->grouped_gemm;
    return has_fp8_experts(config) &&
           (config->model.add_bias_linear ||
            m->token_dispatcher != ME_DISPATCHER_ALL_TO_ALL ||
            (m->capacity_factor >= 0 && !is_padded));
}

/** Two micro-batches in turns were measured behind all-to-all. */
static bool has_other_turns(const me_config *config)
{
    return config->moe.overlap_expert_comm &&
           (config->moe.token_dispatcher != ME_DISPATCHER_ALL_TO_ALL ||
            config->parallel.megatron_fsdp);
}

/** Grouped experts run by te.ops as well. */
static bool has_fused_experts(const me_config *config)
{
    return config->train.te_op_fuser && !is_local(config) &&
           config->moe.num_experts > 0;
}

/** gelu's tanh form, operation by operation, keeps more than its input. */
static bool has_open_geglu(const me_config *config)
{
    const me_activation activation = config->model.activation;
    return !config->train.torch_compile &&
           (activation == ME_ACTIVATION_GEGLU ||
            (activation == ME_ACTIVATION_QUICK_GEGLU &&
             config->train.bias_activation_fusion));
}

/** Without Transformer Engine a norm of each parameter; shards under FSDP. */
static bool has_other_params_norm(const me_config *config)
{
    return config->train.log_params_norm &&
           (config->impl.importable == ME_IMPORTABLE_NONE ||
            config->parallel.torch_fsdp2 || config->parallel.megatron_fsdp);
}

/** FusedLayerNorm, which local layers take from Apex; it has no RMSNorm. */
static bool has_norms_of_apex(const me_config *config)
{
    return config->impl.importable == ME_IMPORTABLE_APEX &&
           config->model.normalization == ME_NORMALIZATION_LAYER_NORM;
}

/** Modules get their memory later then, one after the other. */
static bool has_meta_device(const me_config *config)
{
    return config->parallel.init_model_with_meta_device &&
           !config->parallel.megatron_fsdp;
}

static bool has_local_cross_entropy(const me_config *config)
{
    return config->train.cross_entropy_loss_fusion &&
           config->train.cross_entropy_fusion_impl == ME_CROSS_ENTROPY_TE &&
           is_local(config);
}

static bool has_full_graph(const me_config *config)
{
    return config->train.cuda_graph_impl == ME_CUDA_GRAPH_FULL;
}

static bool has_graphs_of_layers(const me_config *config)
{
    return config->train.cuda_graph_impl == ME_CUDA_GRAPH_LOCAL ||
           config->train.cuda_graph_impl == ME_CUDA_GRAPH_TE;
}

/** "full_iteration" is another implementation. */
static bool has_graphs_of_parts(const me_config *config)
{
    const char *modules = config->train.cuda_graph_modules;
    return strstr(modules, "mamba") != NULL || strstr(modules, "full_") != NULL;
}

/** Whole layers whose experts drop nothing copy their counts to the host, which
 *  ends a capture. Up to preprocess() other dispatchers, and shared experts beside
 *  them, hand out other tensors. Megatron-LM itself captures a part of such layers
 *  in pieces, or nothing. */
static bool has_graphs_of_experts(const me_config *config)
{
    const me_moe_options *m = &config->moe;
    const me_train_config *t = &config->train;
    const bool pads = m->has_capacity && m->pad_to_capacity;
    const bool is_local_part = t->cuda_graph_impl == ME_CUDA_GRAPH_LOCAL &&
                               t->cuda_graph_modules[0] != '\0' &&
                               !me_config_captures(config, "moe") &&
                               !me_config_captures(config, "full");
    const bool router = me_config_captures(config, "moe_router");
    const bool sorts = me_config_captures(config, "moe_preprocess");
    const bool is_whole =
        has_graphs_of_layers(config) && t->cuda_graph_experts && !pads;
    return m->num_experts > 0 &&
           (is_local_part || is_whole || (router && !t->cuda_graph_router) ||
            (sorts && !t->cuda_graph_preprocess));
}

/** What a weight's gradient is put into while a layer is warmed up. */
static bool has_graphs_in_fp8(const me_config *config)
{
    return has_graphs_of_layers(config) && config->fp8.format != ME_FP8_NONE;
}

/** cuSOLVER's workspaces were measured from 32 rows on; routers may have fewer. */
static bool has_small_soap(const me_config *config)
{
    const uint64_t least = 32;
    return config->optimizer.kind == ME_OPTIMIZER_SOAP &&
           config->moe.num_experts > 0 && config->moe.num_experts < least;
}

static const struct {
    const char *option;
    const char *flag; /* NULL: the value is what no flag gives */
    bool (*holds)(const me_config *config);
    const char *note;
    me_effect effect;
} notes[] = {
    {"model.use_mup", "--use-mup", has_mup_and_decoupled,
     "learning rates of widths beside a decoupled one; the order of parameters "
     "is that without widths'",
     ME_EITHER(SMALL)},
    {"train.load_checkpoint", "--load", loads_otherwise,
     "loading a checkpoint of another format, in parts, of FP8 with delayed "
     "scaling, or with its parameters but tensorwise, under FSDP, or with this "
     "optimizer; the job is estimated from nothing",
     ME_HIGHER(SOME)},
    {"model.fp32_residual_connection", "--fp32-residual-connection",
     has_fp32_residual, "the float32 residual stream", ME_HIGHER(ANY)},
    {"parallel.init_model_with_meta_device", "--init-model-with-meta-device",
     has_meta_device, "initialisation away from the GPU, less in set-up",
     ME_LOWER(SMALL)},
    {"impl.importable", NULL, has_norms_of_apex,
     "Apex's norms; PyTorch's are estimated", ME_EITHER(SMALL)},
    {"model.window_attention", "--window-size", has_other_window,
     "attention within a window; full attention is estimated", ME_EITHER(SOME)},
    {"train.cuda_graph_impl", "--cuda-graph-impl", has_full_graph,
     "a CUDA graph of whole iterations; none is estimated", ME_EITHER(ANY)},
    {"train.cuda_graph_modules", "--cuda-graph-modules", has_graphs_of_parts,
     "CUDA graphs of other parts of layers; without those parts is estimated",
     ME_EITHER(ANY)},
    {"train.cuda_graph_impl", "--cuda-graph-impl", has_graphs_of_experts,
     "CUDA graphs of layers with experts that pad nothing to a capacity, or "
     "whose dispatcher is another than all-to-all; as if they were captured "
     "as others are",
     ME_EITHER(ANY)},
    {"train.cuda_graph_impl", "--cuda-graph-impl", has_graphs_in_fp8,
     "a weight's size of scratch while layers in FP8 are captured",
     ME_HIGHER(SOME)},
    {"impl.te_version", NULL, has_other_version,
     "sizes are those of Transformer Engine 2.17.1, but for cuBLAS's workspace "
     "before 2.8",
     ME_EITHER(SOME)},
    {"model.softmax_type", "--softmax-type", has_softmax_offset,
     "softmax with an offset; without is estimated", ME_HIGHER(MUCH)},
    {"model.kv_channels", "--kv-channels", has_padded_heads,
     "flash attention pads heads to a multiple of 8; unpadded is estimated",
     ME_HIGHER(SOME)},
    {"model.v_head_dim", NULL, has_narrow_values,
     "flash attention whose values are not as wide as its queries; one kernel "
     "that takes them is estimated",
     ME_EITHER(SOME)},
    {"moe.router_load_balancing", "--moe-router-load-balancing-type",
     me_config_has_quantile_balancing, "quantile balancing; none is estimated",
     ME_HIGHER(SOME)},
    {"train.fp8", NULL, has_other_fp8_experts,
     "experts in FP8 that have biases, drop rows, are padded to a capacity "
     "together, or are reached otherwise than by all-to-all: approximated",
     ME_EITHER(SOME)},
    {"moe.overlap_expert_comm", NULL, has_other_turns,
     "two micro-batches in turns with the flex dispatcher or Megatron-FSDP "
     "(one after the other): approximated",
     ME_EITHER(SOME)},
    {"train.te_op_fuser", "--use-transformer-engine-op-fuser",
     has_fused_experts, "experts as one function of Transformer Engine",
     ME_EITHER(SOME)},
    {"train.torch_compile", NULL, has_open_geglu,
     "geglu of single operations; compiled is estimated", ME_HIGHER(SOME)},
    {"train.deterministic_mode", "--deterministic-mode", has_other_determinism,
     "deterministic kernels of PyTorch's flash attention; others are estimated",
     ME_EITHER(SOME)},
    {"train.cross_entropy_fusion_impl", "--cross-entropy-fusion-impl",
     has_local_cross_entropy,
     "Transformer Engine's cross entropy beside local layers; the native fused "
     "one is estimated",
     ME_LOWER(MUCH)},
    {"optimizer.kind", NULL, has_small_soap,
     "cuSOLVER's workspaces for matrices of fewer than 32 rows; as those of "
     "more is estimated",
     ME_EITHER(SMALL)},
    {"train.log_params_norm", "--log-params-norm", has_other_params_norm,
     "the norm of parameters is that of Transformer Engine's kernel over whole "
     "or main parameters",
     ME_HIGHER(SMALL)},
};

me_status me_config_note(me_config *config, me_diag *diag)
{
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (!notes[i].holds(config) ||
            (notes[i].flag != NULL &&
             me_flag_list_has(&config->not_modelled, notes[i].flag))) {
            continue;
        }
        const me_status status = me_config_add_not_modelled(
            config, notes[i].option, notes[i].note, notes[i].effect, diag);
        if (status != ME_OK) {
            return status;
        }
    }
    return me_vocabulary_note(config, diag);
}
