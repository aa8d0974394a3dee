/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

#include <stdlib.h>
#include <string.h>

/* Whose modules a job's layers are, and what a job with Transformer Engine must
 * keep to. Which attention it takes: te_attention_rules.c. */

static bool uses_te(const me_config *config)
{
    return config->impl.transformer == ME_TRANSFORMER_ENGINE;
}

/** What nothing names is Megatron-LM's default, Transformer Engine's; a core
 *  attention that is given names whose it is. */
static me_transformer_impl choose_transformer(const me_config *config)
{
    const me_core_attention_kind kind = config->impl.core_attention;
    if (me_config_is_set(config, "impl.transformer") ||
        !me_config_is_set(config, "impl.core_attention")) {
        return config->impl.transformer;
    }
    return kind == ME_CORE_ATTENTION_UNFUSED ||
                   kind == ME_CORE_ATTENTION_SDPA_FLASH
               ? ME_TRANSFORMER_LOCAL
               : ME_TRANSFORMER_ENGINE;
}

/** Transformer Engine's rotary kernel; latent attention has Megatron-LM's own. */
static bool has_fused_rope(const me_config *config)
{
    return config->train.apply_rope_fusion &&
           !config->model.multi_latent_attention;
}

/** Which parts of a job, local layers or not, only Transformer Engine has. */
static bool needs_te(const me_config *config)
{
    return uses_te(config) || config->optimizer.precision_aware ||
           has_fused_rope(config) ||
           config->train.gradient_accumulation_fusion ||
           (me_config_is_set(config, "impl.optimizer") &&
            config->impl.optimizer == ME_OPTIMIZER_FUSED);
}

/** Megatron-LM takes Transformer Engine's optimizers wherever it can import it, and
 *  Apex's, of which those are copies, where it can import that alone
 *  (core/optimizer/__init__.py). */
void me_config_derive_implementation(me_config *config)
{
    config->impl.transformer = choose_transformer(config);
    if (!me_config_is_set(config, "impl.importable") && needs_te(config)) {
        config->impl.importable = ME_IMPORTABLE_TE;
    }
    me_config_derive_attention(config);
    if (!me_config_is_set(config, "impl.optimizer") &&
        config->impl.importable != ME_IMPORTABLE_NONE) {
        config->impl.optimizer = ME_OPTIMIZER_FUSED;
    }
}

me_status me_config_assume_te_cross_entropy(me_config *config, me_diag *diag)
{
    return config->train.cross_entropy_loss_fusion &&
                   config->train.cross_entropy_fusion_impl ==
                       ME_CROSS_ENTROPY_TE
               ? me_config_assume(
                     config, diag,
                     "Transformer Engine's cross entropy is allowed: "
                     "pretrain_gpt.py of core_v0.19.0 stops at it, earlier "
                     "versions and Megatron-Bridge do not")
               : ME_OK;
}

me_status me_config_assume_te_times(me_config *config, me_diag *diag)
{
    return uses_te(config)
               ? me_config_assume(
                     config, diag,
                     "predicted time: Transformer Engine's modules have the host "
                     "times of Megatron-LM's own, which were not measured of "
                     "them")
               : ME_OK;
}

/** Versions of which sizes were measured. */
static const char *const measured_versions[] = {"2.17.1"};

bool me_config_has_measured_te(const me_config *config)
{
    for (size_t i = 0;
         i < sizeof measured_versions / sizeof measured_versions[0]; i++) {
        if (strcmp(config->impl.te_version, measured_versions[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** Does @p text begin as versions do: two numbers or more, dots between? */
static bool is_version(const char *text)
{
    static const char digits[] = "0123456789";
    const size_t major = strspn(text, digits);
    return major > 0 && text[major] == '.' &&
           strspn(text + major + 1, digits) > 0;
}

static me_status check_version(const me_config *config, me_diag *diag)
{
    return is_version(config->impl.te_version)
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "impl.te_version = %s is no version of Transformer "
                         "Engine: sizes are known of %s; another one, such as "
                         "2.9.0, is told apart in the report",
                         config->impl.te_version, measured_versions[0]);
}

/** What a job has that cannot be without Transformer Engine, or Apex for it. */
static me_status check_importable(const me_config *config, me_diag *diag)
{
    const struct {
        bool is_there;
        bool is_of_apex;
        const char *what;
    } parts[] = {
        {uses_te(config), false, "impl.transformer = transformer_engine"},
        {config->impl.optimizer == ME_OPTIMIZER_FUSED, true,
         "impl.optimizer = fused"},
        {config->optimizer.precision_aware, false,
         "optimizer.precision_aware = true"},
        {has_fused_rope(config), false,
         "train.apply_rope_fusion = true (--no-rope-fusion: false)"},
        {config->train.gradient_accumulation_fusion, false,
         "train.gradient_accumulation_fusion = true "
         "(--no-gradient-accumulation-fusion: false), which is modelled with "
         "Transformer Engine's dummies alone"},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].is_there &&
            (config->impl.importable == ME_IMPORTABLE_NONE ||
             (config->impl.importable == ME_IMPORTABLE_APEX &&
              !parts[i].is_of_apex))) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "impl.importable = %s does not go with %s",
                           me_choice_word(me_importable_choices,
                                          (int)config->impl.importable),
                           parts[i].what);
        }
    }
    return ME_OK;
}

/** `--attention-backend` says what these are, and Megatron-LM stops where the
 *  environment says otherwise (LanguageModule._set_attention_backend()). */
static me_status check_variables(const me_config *config, me_diag *diag)
{
    static const struct {
        const char *name;
        const char *expected[ME_ATTENTION_BACKEND_LOCAL + 1];
    } variables[] = {
        {"NVTE_FLASH_ATTN", {"1", "1", "0", "0", "0"}},
        {"NVTE_FUSED_ATTN", {"1", "0", "1", "0", "0"}},
        {"NVTE_UNFUSED_ATTN", {"1", "0", "0", "1", "0"}},
    };

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *given = me_config_variable(config, variables[i].name);
        const char *expected =
            variables[i].expected[config->impl.attention_backend];
        if (uses_te(config) && given != NULL && strcmp(given, expected) != 0) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s=%s: Megatron-LM stops (since core_v0.11.0), "
                           "because impl.attention_backend "
                           "(--attention-backend) makes it %s: unset the "
                           "variable, and choose with the flag (--unknown "
                           "warn goes on, as earlier versions did)",
                           variables[i].name, given, expected);
        }
    }
    if (uses_te(config) &&
        config->impl.attention_backend == ME_ATTENTION_BACKEND_LOCAL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.attention_backend = local needs impl.transformer "
                       "= local (--transformer-impl local): Transformer "
                       "Engine has no such attention");
    }
    return ME_OK;
}

/** TEDotProductAttention: Transformer Engine is told by a variable alone. */
static me_status check_layer_scaling(const me_config *config, me_diag *diag)
{
    const char *given =
        me_config_variable(config, "NVTE_APPLY_QK_LAYER_SCALING");
    const bool is_asked = config->model.query_key_layer_scaling;
    if (!uses_te(config) || given == NULL ||
        is_asked == (strtol(given, NULL, 10) != 0)) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "NVTE_APPLY_QK_LAYER_SCALING=%.20s: Megatron-LM stops where "
                   "this is not model.query_key_layer_scaling "
                   "(--apply-query-key-layer-scaling): give both or neither",
                   given);
}

/** apply_determinism_to_args() (megatron/training/determinism.py). */
static me_status check_determinism(const me_config *config, me_diag *diag)
{
    return config->train.deterministic_mode &&
                   config->train.cross_entropy_loss_fusion
               ? me_fail(diag, ME_ERR_CONFIG,
                         "train.cross_entropy_loss_fusion = true does not go "
                         "with train.deterministic_mode = true: set it to "
                         "false (no --cross-entropy-loss-fusion)")
               : ME_OK;
}

/** TEFusedMLP._make_activation_op(). */
static me_status check_op_fuser(const me_config *config, me_diag *diag)
{
    const me_activation activation = config->model.activation;
    return uses_te(config) && config->train.te_op_fuser &&
                   activation != ME_ACTIVATION_GELU &&
                   activation != ME_ACTIVATION_SWIGLU
               ? me_fail(diag, ME_ERR_CONFIG,
                         "train.te_op_fuser = true "
                         "(--use-transformer-engine-op-fuser): Transformer "
                         "Engine's operations have no such "
                         "model.activation: give gelu or swiglu")
               : ME_OK;
}

/** TEFusedMLPWithGroupedLinear, which is TEFusedMLP under tensor parallelism, and
 *  without the op fuser is not taken. */
static me_status check_grouped_mlp(const me_config *config, me_diag *diag)
{
    const char *option = "train.grouped_dense_mlp = true "
                         "(--use-grouped-gemm-for-dense-mlp)";
    if (!uses_te(config) || !config->train.grouped_dense_mlp ||
        !config->train.te_op_fuser || config->moe.num_experts > 0) {
        return ME_OK;
    }
    if (config->model.add_bias_linear ||
        config->model.activation != ME_ACTIVATION_SWIGLU) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s with train.te_op_fuser = true needs "
                       "model.activation = swiglu and model.add_bias_linear = "
                       "false",
                       option);
    }
    return config->parallel.tensor == 1
               ? me_fail(diag, ME_ERR_UNSUPPORTED,
                         "%s with train.te_op_fuser = true and parallel.tensor "
                         "= 1 computes in MXFP8: Transformer Engine stops on a "
                         "card below compute capability 10.0, and on others it "
                         "is not modelled",
                         option)
               : ME_OK;
}

/** TransformerConfig, TEActivationOp and TEFusedMLP._make_activation_op(), which
 *  looks for a function. Local layers have none, and call the gate's function with
 *  both halves. */
static me_status check_activation(const me_config *config, me_diag *diag)
{
    const me_activation activation = config->model.activation;

    const struct {
        bool is_wrong;
        const char *with;
    } wrong[] = {
        {!uses_te(config) && me_is_gated_activation(activation),
         "impl.transformer = local and a gated model.activation"},
        {config->train.bias_activation_fusion,
         "a fused activation (train.bias_swiglu_fusion or bias_gelu_fusion = "
         "true)"},
        {activation == ME_ACTIVATION_SQUARED_RELU ||
             activation == ME_ACTIVATION_QUICK_GEGLU,
         "such a model.activation: give gelu, swiglu or geglu"},
        {config->train.te_op_fuser, "train.te_op_fuser = true"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (config->train.use_te_activation_func && wrong[i].is_wrong) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "train.use_te_activation_func = true "
                           "(--use-te-activation-func) does not go with %s",
                           wrong[i].with);
        }
    }
    return ME_OK;
}

me_rule *const me_te_rules[] = {
    check_version,     check_importable,    check_op_fuser,
    check_grouped_mlp, check_activation,    check_determinism,
    check_variables,   check_layer_scaling, NULL,
};
