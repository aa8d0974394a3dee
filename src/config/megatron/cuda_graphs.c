/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"
#include "config/flags.h"
#include "config/megatron/megatron_rules.h"

#include <stdio.h>
#include <string.h>

/* What validate_args(), TransformerConfig (transformer_config.py,
 * __post_init__()) and the captures themselves ask of a job whose layers or
 * iterations become CUDA graphs. */

/** Where no part of a layer that is captured is modelled, no graph is estimated
 *  (derive_graphs()): what the job says all the same. */
static me_cuda_graph said_impl(const me_config *config)
{
    const me_train_config *t = &config->train;
    return t->cuda_graph_attention || t->cuda_graph_mlp ? t->cuda_graph_impl
                                                        : ME_CUDA_GRAPH_TE;
}

static bool is_impl(const me_config *config, me_cuda_graph impl)
{
    return said_impl(config) == impl;
}

/** The next name of `--cuda-graph-modules`, to which @p at moves: commas are as
 *  good as blanks between (normalize_cuda_graph_modules()). @return its length;
 *  0: there is none */
static size_t next_module(const char **at)
{
    static const char between[] = " ,";
    *at += strspn(*at, between);
    return strcspn(*at, between);
}

static me_status check_modules(const me_config *config, me_diag *diag)
{
    static const char known[] =
        "attn|mlp|moe|moe_router|moe_preprocess|mamba|full|full_iteration|"
        "full_iteration_inference";
    const char *at = config->train.cuda_graph_modules;
    for (size_t n = next_module(&at); n > 0; at += n, n = next_module(&at)) {
        char word[sizeof config->train.cuda_graph_modules];
        (void)snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (!me_words_have(known, sizeof known - 1, word)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "train.cuda_graph_modules: no part of a layer is "
                           "called %s: attn, mlp, moe, moe_router, "
                           "moe_preprocess, mamba and full are",
                           word);
        }
    }
    return ME_OK;
}

bool me_config_captures(const me_config *config, const char *module)
{
    const char *at = config->train.cuda_graph_modules;
    for (size_t n = next_module(&at); n > 0; at += n, n = next_module(&at)) {
        if (n == strlen(module) && strncmp(at, module, n) == 0) {
            return true;
        }
    }
    return false;
}

/** Are all layers experts'? */
static bool has_experts_alone(const me_moe_options *moe)
{
    return moe->num_experts > 1 && (strcmp(moe->layer_freq, "1") == 0 ||
                                    (strchr(moe->layer_freq, '[') != NULL &&
                                     strchr(moe->layer_freq, '0') == NULL));
}

/** TransformerConfig's rules of parts of layers with experts. */
static me_status check_experts(const me_config *config, me_diag *diag)
{
    const me_moe_options *m = &config->moe;
    const bool is_local = is_impl(config, ME_CUDA_GRAPH_LOCAL);
    const bool is_on = is_local || is_impl(config, ME_CUDA_GRAPH_TE);
    const bool moe = is_on && me_config_captures(config, "moe");
    const bool router = is_on && me_config_captures(config, "moe_router");
    const bool before = is_on && me_config_captures(config, "moe_preprocess");
    const bool has_capacity = m->has_capacity && m->num_experts > 1;
    const me_contradiction refused[] = {
        {moe && router, "must not name both moe and moe_router"},
        {before && !router && !is_local, "moe_preprocess needs moe_router"},
        {(moe || router || before) && m->num_experts <= 1,
         "moe, moe_router and moe_preprocess need experts (--num-experts)"},
        {is_on && me_config_captures(config, "mlp") && has_experts_alone(m),
         "mlp is of dense layers, and all layers have experts"},
        {moe && !(has_capacity && m->pad_to_capacity),
         "moe needs moe.pad_to_capacity = true "
         "(--moe-pad-expert-input-to-capacity)"},
        {is_local && (router || before) &&
             !(has_capacity && m->pad_to_capacity) &&
             m->token_dispatcher == ME_DISPATCHER_ALL_TO_ALL,
         "moe_router and moe_preprocess with train.cuda_graph_impl = local: "
         "Megatron-LM itself stops, since the copy of token counts is awaited "
         "that was captured (cudaErrorCapturedEvent); transformer_engine has "
         "them"},
        {before && has_capacity && !m->pad_to_capacity &&
             m->token_dispatcher == ME_DISPATCHER_ALL_TO_ALL,
         "moe_preprocess with moe.capacity_factor needs moe.pad_to_capacity = "
         "true (--moe-pad-expert-input-to-capacity)"},
        {is_impl(config, ME_CUDA_GRAPH_TE) &&
             (me_config_captures(config, "full_iteration") ||
              me_config_captures(config, "full_iteration_inference")),
         "full_iteration and full_iteration_inference do not go with "
         "train.cuda_graph_impl = transformer_engine"},
        {is_impl(config, ME_CUDA_GRAPH_TE) && m->overlap_expert_comm &&
             (moe || me_config_captures(config, "mlp")),
         "moe and mlp do not go with moe.overlap_expert_comm = true "
         "(--overlap-moe-expert-parallel-comm)"},
        {is_local && me_config_captures(config, "full_iteration") &&
             config->train.check_for_nan_in_loss_and_grad,
         "full_iteration needs train.check_for_nan_in_loss_and_grad = false "
         "(--no-check-for-nan-in-loss-and-grad)"},
    };
    return ME_REFUSE_FIRST(refused, ME_ERR_CONFIG,
                           "train.cuda_graph_modules:", diag);
}

/** "full recompute is only supported with full iteration CUDA graph." */
static me_status check_full_recompute(const me_config *config, me_diag *diag)
{
    const bool is_of_layers = is_impl(config, ME_CUDA_GRAPH_LOCAL) ||
                              is_impl(config, ME_CUDA_GRAPH_TE);
    return is_of_layers && config->recompute.granularity == ME_RECOMPUTE_FULL
               ? me_fail(diag, ME_ERR_CONFIG,
                         "recompute.granularity = full needs "
                         "train.cuda_graph_impl = full_iteration or none, not "
                         "%s",
                         me_choice_word(me_cuda_graph_choices,
                                        (int)said_impl(config)))
               : ME_OK;
}

/** "--no-check-for-nan-in-loss-and-grad should be set with
 *  --cuda-graph-impl=full_iteration for training." */
static me_status check_nan(const me_config *config, me_diag *diag)
{
    return is_impl(config, ME_CUDA_GRAPH_FULL) &&
                   config->train.check_for_nan_in_loss_and_grad
               ? me_fail(diag, ME_ERR_CONFIG,
                         "train.cuda_graph_impl = full_iteration needs "
                         "train.check_for_nan_in_loss_and_grad = false "
                         "(--no-check-for-nan-in-loss-and-grad)")
               : ME_OK;
}

/** deallocate_output_tensor(): "counter-productive to free a view of another
 *  tensor", which is what a layer that is written down returns. */
static me_status check_pipeline(const me_config *config, me_diag *diag)
{
    return is_impl(config, ME_CUDA_GRAPH_LOCAL) && config->parallel.pipeline > 1
               ? me_fail(
                     diag, ME_ERR_CONFIG,
                     "train.cuda_graph_impl = local with parallel.pipeline "
                     "= %d: Megatron-LM itself stops, since a stage frees "
                     "what it has sent, and a captured layer returns a view",
                     (int)config->parallel.pipeline)
               : ME_OK;
}

/** _CudaGraphRunner.replay_graph_capture(): "CUDA graph argument mismatch", since
 *  an evaluation replays the graphs of training. */
static me_status check_evaluation(const me_config *config, me_diag *diag)
{
    const uint64_t samples = me_config_eval_micro_batch(config);
    return is_impl(config, ME_CUDA_GRAPH_LOCAL) && config->train.evaluates &&
                   samples != config->train.micro_batch_size
               ? me_fail(diag, ME_ERR_CONFIG,
                         "train.eval_micro_batch_size = %llu must be "
                         "train.micro_batch_size = %llu with "
                         "train.cuda_graph_impl = local, whose graphs an "
                         "evaluation replays",
                         (unsigned long long)samples,
                         (unsigned long long)config->train.micro_batch_size)
               : ME_OK;
}

/** CheckpointFunction.backward(): "Checkpointing is not compatible with .grad()",
 *  by which a layer is warmed up; and TransformerConfig: what is captured draws
 *  no random numbers anew. */
static me_status check_recompute(const me_config *config, me_diag *diag)
{
    const me_recompute_config *r = &config->recompute;
    const me_train_config *t = &config->train;
    const me_model_config *m = &config->model;
    const bool is_on = r->granularity == ME_RECOMPUTE_SELECTIVE &&
                       said_impl(config) != ME_CUDA_GRAPH_NONE;
    const bool is_full =
        t->cuda_graph_modules[0] == '\0' || me_config_captures(config, "full");
    const bool experts = is_full || me_config_captures(config, "moe");
    const me_contradiction refused[] = {
        {is_on && is_impl(config, ME_CUDA_GRAPH_LOCAL) &&
             (r->core_attn || r->mlp || r->moe),
         "= local does not go with --recompute-modules core_attn, mlp or moe: "
         "a layer is warmed up by torch.autograd.grad(), which re-entrant "
         "checkpoints refuse"},
        {is_on && is_impl(config, ME_CUDA_GRAPH_TE) && r->moe &&
             me_config_captures(config, "moe_router"),
         "= transformer_engine of moe_router does not go with "
         "--recompute-modules moe"},
        {is_on && r->core_attn && m->attention_dropout > 0 &&
             (is_full || me_config_captures(config, "attn")),
         "of attention that is recomputed (--recompute-modules core_attn) needs "
         "model.attention_dropout = 0"},
        {is_on && m->hidden_dropout > 0 &&
             ((r->mlp && (is_full || me_config_captures(config, "mlp"))) ||
              (r->moe && experts)),
         "of what is recomputed (--recompute-modules mlp or moe) needs "
         "model.hidden_dropout = 0"},
        {is_on && config->moe.has_input_jitter && r->moe && experts,
         "of experts that are recomputed (--recompute-modules moe) does not go "
         "with moe.input_jitter_eps"},
    };
    return ME_REFUSE_FIRST(refused, ME_ERR_CONFIG, "train.cuda_graph_impl",
                           diag);
}

/** "CUDA graphs not supported with CPU offloading." */
static me_status check_offloaded_layers(const me_config *config, me_diag *diag)
{
    const me_cuda_graph impl = said_impl(config);
    const bool is_of_layers =
        impl == ME_CUDA_GRAPH_LOCAL || impl == ME_CUDA_GRAPH_TE;
    return is_of_layers && config->offload.num_layers > 0
               ? me_fail(diag, ME_ERR_CONFIG,
                         "train.cuda_graph_impl = %s does not go with "
                         "offload.num_layers = %d",
                         me_choice_word(me_cuda_graph_choices, (int)impl),
                         (int)config->offload.num_layers)
               : ME_OK;
}

/** TransformerConfig's rules of graphs with fine-grained offloading, and then what
 *  memest has not. */
static me_status check_offloaded_modules(const me_config *config, me_diag *diag)
{
    const me_train_config *t = &config->train;
    const me_offload_config *o = &config->offload;
    const bool is_on =
        said_impl(config) != ME_CUDA_GRAPH_NONE && o->fine_grained;
    const bool is_local = is_on && is_impl(config, ME_CUDA_GRAPH_LOCAL);
    const bool is_of_attention =
        o->attn_norm || o->qkv_linear || o->core_attn || o->attn_proj;
    const me_contradiction refused[] = {
        {is_local && (is_of_attention || o->mlp_norm),
         "with train.cuda_graph_impl = local goes with offload.expert_fc1 and "
         "offload.moe_act alone"},
        {is_local && (t->cuda_graph_modules[0] == '\0' ||
                      me_config_captures(config, "full")),
         "does not go with train.cuda_graph_impl = local of whole layers (name "
         "their parts with --cuda-graph-modules)"},
        {is_on && me_config_captures(config, "moe"),
         "does not go with train.cuda_graph_modules = moe: experts that drop "
         "tokens are not offloaded"},
        {is_on && t->cuda_graph_warmup_steps == 0,
         "needs train.cuda_graph_warmup_steps over 0"},
    };
    const bool is_apart = is_impl(config, ME_CUDA_GRAPH_TE) &&
                          t->cuda_graph_attention && !t->cuda_graph_mlp;
    const me_contradiction missing[] = {
        {is_on && !is_apart,
         "with CUDA graphs is modelled where Transformer Engine captures "
         "attention alone (--cuda-graph-impl transformer_engine "
         "--cuda-graph-modules attn)"},
    };
    const me_status status = ME_REFUSE_FIRST(
        refused, ME_ERR_CONFIG, "offload.fine_grained = true", diag);
    return status != ME_OK
               ? status
               : ME_REFUSE_FIRST(missing, ME_ERR_UNSUPPORTED,
                                 "offload.fine_grained = true", diag);
}

/** "Setting NCCL_GRAPH_REGISTER=0 to avoid illegal memory access when using CUDA
 *  Graph with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True." */
static me_status check_segments(const me_config *config, me_diag *diag)
{
    const char *alloc = me_config_variable(config, "PYTORCH_CUDA_ALLOC_CONF");
    const char *registers = me_config_variable(config, "NCCL_GRAPH_REGISTER");
    const bool is_wrong = is_impl(config, ME_CUDA_GRAPH_TE) && alloc != NULL &&
                          strstr(alloc, "expandable_segments:True") != NULL &&
                          (registers == NULL || strcmp(registers, "0") != 0);
    return is_wrong ? me_fail(diag, ME_ERR_CONFIG,
                              "train.cuda_graph_impl = transformer_engine with "
                              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:"
                              "True needs NCCL_GRAPH_REGISTER=0")
                    : ME_OK;
}

static me_status check_modelled(const me_config *config, me_diag *diag)
{
    const me_cuda_graph impl = config->train.cuda_graph_impl;
    const bool is_on = impl == ME_CUDA_GRAPH_LOCAL || impl == ME_CUDA_GRAPH_TE;
    const char *other =
        config->parallel.torch_fsdp2     ? "FSDP2 (--use-torch-fsdp2)"
        : config->parallel.megatron_fsdp ? "Megatron-FSDP (--use-megatron-fsdp)"
        : config->moe.overlap_expert_comm
            ? "two micro-batches in turns "
              "(--overlap-moe-expert-parallel-comm)"
        : !config->pipeline.is_own
            ? "an order of pipeline.schedule that is not Megatron-LM's own"
            : NULL;
    return is_on && other != NULL
               ? me_fail(diag, ME_ERR_UNSUPPORTED,
                         "train.cuda_graph_impl = %s with %s is not modelled",
                         me_choice_word(me_cuda_graph_choices, (int)impl),
                         other)
               : ME_OK;
}

me_rule *const me_graph_rules[] = {
    check_modules,   check_experts,          check_full_recompute,
    check_nan,       check_pipeline,         check_evaluation,
    check_recompute, check_offloaded_layers, check_offloaded_modules,
    check_segments,  check_modelled,         NULL,
};
