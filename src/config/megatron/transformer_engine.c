/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"

#include <string.h>

/* Whose modules a job's layers are; which attention Transformer Engine takes
 * (get_attention_backend()), and what a job with it must keep to. */

enum {
    MOST_FUSED_HEAD_SIZE = 256
};

/** Ten times a card's compute capability. */
enum {
    AMPERE = 80,
    HOPPER = 90,
    BLACKWELL = 100,
    CONSUMER_BLACKWELL = 120
};

static bool uses_te(const me_config *config)
{
    return config->impl.transformer == ME_TRANSFORMER_ENGINE;
}

/** Head sizes of a core attention. */
typedef struct heads {
    uint64_t query;
    uint64_t value;
} heads;

static heads heads_of(const me_config *config)
{
    const me_model_config *m = &config->model;
    return (heads){.query = m->query_head_size,
                   .value = m->multi_latent_attention ? m->v_head_dim
                                                      : m->kv_channels};
}

/** Does cuDNN's kernel take the job on some card: half precision, heads of a
 *  multiple of 8 columns, at most 256, and no dropout within a window? */
static bool can_be_fused(const me_config *config)
{
    const heads h = heads_of(config);
    return config->train.params_dtype != ME_DTYPE_FLOAT32 && h.query % 8 == 0 &&
           h.value % 8 == 0 && h.query <= MOST_FUSED_HEAD_SIZE &&
           h.value <= MOST_FUSED_HEAD_SIZE &&
           !(config->model.window_attention &&
             config->model.attention_dropout > 0.0);
}

static bool is_deterministic(const me_config *config)
{
    const char *allows =
        me_config_variable(config, "NVTE_ALLOW_NONDETERMINISTIC_ALGO");
    return config->train.deterministic_mode ||
           (allows != NULL && strcmp(allows, "0") == 0);
}

/** nvte_get_fused_attn_backend() and get_attention_backend() of 2.17.1 with cuDNN
 *  9.19, which PyTorch 2.11 has, for training. */
static bool can_be_fused_on(const me_config *config, uint64_t capability)
{
    const heads h = heads_of(config);
    const bool is_small = h.query <= 128 && h.value <= 128;
    const bool is_latent = h.query == 192 && h.value == 128;
    if (capability < AMPERE) {
        return false;
    }
    if (capability < HOPPER) {
        return is_small && !is_deterministic(config);
    }
    if (capability < BLACKWELL) {
        return is_latent || h.query == h.value || h.query < 128 ||
               h.value < 128;
    }
    return (is_small || is_latent) &&
           (!is_deterministic(config) ||
            (capability < CONSUMER_BLACKWELL &&
             config->model.attention_dropout <= 0.0));
}

/** Does get_attention_backend() leave cuDNN's kernel alone all the same: it has
 *  no deterministic gradient of a softmax with an offset. */
static bool is_refused(const me_config *config)
{
    return is_deterministic(config) &&
           config->model.softmax_type != ME_SOFTMAX_VANILLA;
}

/** Megatron-LM asks for one back end alone, and it is none for the job. */
static me_status fail_backend(const me_config *config, me_diag *diag)
{
    return me_fail(
        diag, ME_ERR_CONFIG,
        "impl.attention_backend = %s (--attention-backend) does not "
        "go with the job's type, heads, window, dropout or "
        "determinism on this card: Transformer Engine stops, since no "
        "attention is left",
        me_choice_word(me_attention_backend_choices,
                       (int)config->impl.attention_backend));
}

/** Is a kernel left on this card that keeps no scores: cuDNN's, or flash-attn's
 *  where it is asked for, which takes heads and determinism as they are? */
static bool has_kernel_on(const me_config *config, uint64_t capability)
{
    return config->impl.attention_backend == ME_ATTENTION_BACKEND_FLASH
               ? capability >= AMPERE
               : can_be_fused_on(config, capability);
}

me_status me_config_settle_attention(me_config *config, uint64_t capability,
                                     me_diag *diag)
{
    if (!uses_te(config) ||
        config->impl.core_attention != ME_CORE_ATTENTION_TE_FUSED ||
        has_kernel_on(config, capability)) {
        return ME_OK;
    }
    if (config->impl.attention_backend == ME_ATTENTION_BACKEND_FUSED ||
        config->impl.attention_backend == ME_ATTENTION_BACKEND_FLASH) {
        return fail_backend(config, diag);
    }
    if (config->parallel.context > 1 ||
        me_config_is_set(config, "impl.core_attention")) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "%s needs cuDNN's attention, which Transformer Engine "
            "does not take for these heads, or determinism, on a card "
            "of compute capability %.1f",
            config->parallel.context > 1 ? "parallel.context over 1"
                                         : "impl.core_attention = te_fused",
            (double)capability / 10);
    }
    config->impl.core_attention = ME_CORE_ATTENTION_TE_UNFUSED;
    return ME_OK;
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

static me_core_attention_kind choose_attention(const me_config *config)
{
    if (!uses_te(config)) {
        return ME_CORE_ATTENTION_UNFUSED;
    }
    return can_be_fused(config) && !is_refused(config) &&
                   config->impl.attention_backend !=
                       ME_ATTENTION_BACKEND_UNFUSED
               ? ME_CORE_ATTENTION_TE_FUSED
               : ME_CORE_ATTENTION_TE_UNFUSED;
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

/** Megatron-LM takes Transformer Engine's optimizers wherever it can import it
 *  (core/optimizer/__init__.py). */
void me_config_derive_implementation(me_config *config)
{
    config->impl.transformer = choose_transformer(config);
    if (!me_config_is_set(config, "impl.importable") && needs_te(config)) {
        config->impl.importable = ME_IMPORTABLE_TE;
    }
    if (!me_config_is_set(config, "impl.core_attention")) {
        config->impl.core_attention = choose_attention(config);
    }
    if (!me_config_is_set(config, "impl.optimizer") &&
        config->impl.importable == ME_IMPORTABLE_TE) {
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

/** What a job has that cannot be without Transformer Engine. */
static me_status check_importable(const me_config *config, me_diag *diag)
{
    const struct {
        bool is_there;
        const char *what;
    } parts[] = {
        {uses_te(config), "impl.transformer = transformer_engine"},
        {config->impl.optimizer == ME_OPTIMIZER_FUSED,
         "impl.optimizer = fused"},
        {config->optimizer.precision_aware, "optimizer.precision_aware = true"},
        {has_fused_rope(config),
         "train.apply_rope_fusion = true (--no-rope-fusion: false)"},
        {config->train.gradient_accumulation_fusion,
         "train.gradient_accumulation_fusion = true "
         "(--no-gradient-accumulation-fusion: false), which is modelled with "
         "Transformer Engine's dummies alone"},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].is_there &&
            config->impl.importable == ME_IMPORTABLE_NONE) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "impl.importable = none does not go with %s",
                           parts[i].what);
        }
    }
    return ME_OK;
}

/** Modules and core attention are of one implementation. */
static me_status check_core_attention(const me_config *config, me_diag *diag)
{
    const me_core_attention_kind kind = config->impl.core_attention;
    const bool is_te = kind == ME_CORE_ATTENTION_TE_FUSED ||
                       kind == ME_CORE_ATTENTION_TE_UNFUSED;
    if (is_te && !uses_te(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = te_fused or te_unfused needs "
                       "impl.transformer = transformer_engine");
    }
    if (!is_te && uses_te(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = unfused or sdpa_flash needs "
                       "impl.transformer = local; Transformer Engine's are "
                       "te_fused and te_unfused");
    }
    if (kind == ME_CORE_ATTENTION_TE_FUSED && !can_be_fused(config)) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "impl.core_attention = te_fused needs "
            "train.params_dtype = bfloat16 or float16, heads of "
            "a multiple of 8 columns up to 256 and no dropout within "
            "a window: use te_unfused");
    }
    if (uses_te(config) && kind == ME_CORE_ATTENTION_TE_UNFUSED &&
        !me_config_is_set(config, "impl.core_attention") &&
        (config->impl.attention_backend == ME_ATTENTION_BACKEND_FUSED ||
         (config->impl.attention_backend == ME_ATTENTION_BACKEND_FLASH &&
          config->train.params_dtype == ME_DTYPE_FLOAT32))) {
        return fail_backend(config, diag);
    }
    if (kind == ME_CORE_ATTENTION_TE_FUSED && is_refused(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s does not go with "
                       "impl.core_attention = te_fused where "
                       "model.softmax_type is not vanilla: use te_unfused",
                       config->train.deterministic_mode
                           ? "train.deterministic_mode = true"
                           : "NVTE_ALLOW_NONDETERMINISTIC_ALGO=0");
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
                           "variable, and choose with the flag",
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

me_rule *const me_te_rules[] = {
    check_version,        check_importable, check_op_fuser, check_determinism,
    check_core_attention, check_variables,  NULL,
};
