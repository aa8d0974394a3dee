/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "config/megatron/megatron_rules.h"
#include "config/megatron/te_attention_kernels.h"
#include "parallel/moe_layers.h"

#include <string.h>

/* Which attention Transformer Engine takes for a job's layers on a card, of the
 * kernels that take them: get_attention_backend(). */

static bool uses_te(const me_config *config)
{
    return config->impl.transformer == ME_TRANSFORMER_ENGINE;
}

static bool allows(const me_config *config, me_attention_backend backend)
{
    return config->impl.attention_backend == ME_ATTENTION_BACKEND_AUTO ||
           config->impl.attention_backend == backend;
}

/** @return false: no attention is left */
static bool choose(const me_config *config, uint64_t capability,
                   bool is_windowed, me_core_attention_kind *kind_out)
{
    const bool is_fused = allows(config, ME_ATTENTION_BACKEND_FUSED) &&
                          me_te_takes_fused(config, is_windowed) &&
                          me_te_takes_fused_on(config, capability) &&
                          !me_te_refuses_fused(config);
    const bool allows_flash = allows(config, ME_ATTENTION_BACKEND_FLASH);
    const bool is_flash_3 =
        allows_flash && me_te_takes_flash_3(config, capability);
    const bool is_flash_4 =
        allows_flash && me_te_takes_flash_4(config, capability);
    const bool is_flash =
        is_flash_3 || is_flash_4 ||
        (allows_flash && me_te_takes_flash_2(config, capability));
    *kind_out = is_fused && (!is_flash || capability >= ME_CAPABILITY_HOPPER)
                    ? ME_CORE_ATTENTION_TE_FUSED
                : is_flash_3 ? ME_CORE_ATTENTION_TE_FLASH_3
                : is_flash_4 ? ME_CORE_ATTENTION_TE_FLASH_4
                : is_flash   ? ME_CORE_ATTENTION_TE_FLASH
                             : ME_CORE_ATTENTION_TE_UNFUSED;
    return is_fused || is_flash || allows(config, ME_ATTENTION_BACKEND_UNFUSED);
}

/** Layers with a window, and layers without one. */
typedef struct layers {
    bool has_window;
    bool has_none;
} layers;

static me_status read_layers(const me_config *config, me_diag *diag,
                             layers *layers_out)
{
    const int32_t n = config->model.num_layers;
    *layers_out = (layers){.has_none = true};
    if (!config->model.window_attention || n < 1) {
        return ME_OK;
    }
    bool *is_windowed = me_alloc((size_t)n, sizeof *is_windowed, "windows");
    if (is_windowed == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for windows");
    }
    const me_status status = me_window_layers_read(
        config->model.window_attn_skip_freq, n, diag, is_windowed);
    layers_out->has_none = false;
    for (int32_t i = 0; status == ME_OK && i < n; i++) {
        layers_out->has_window = layers_out->has_window || is_windowed[i];
        layers_out->has_none = layers_out->has_none || !is_windowed[i];
    }
    me_free(is_windowed);
    return status;
}

/** Megatron-LM asks for one back end alone, and it is none for the job. */
static me_status fail_backend(const me_config *config, uint64_t capability,
                              me_diag *diag)
{
    const bool is_fused =
        config->impl.attention_backend == ME_ATTENTION_BACKEND_FUSED;
    const char *lacks = is_fused ? me_te_lacks_fused(config, capability) : NULL;
    return me_fail(
        diag, ME_ERR_CONFIG,
        "impl.attention_backend = %s (--attention-backend) does not "
        "go with %s: Transformer Engine stops, since no attention is left",
        me_choice_word(me_attention_backend_choices,
                       (int)config->impl.attention_backend),
        lacks != NULL ? lacks
                      : "the job's type, heads, largest scores, softmax or "
                        "determinism on this card");
}

/** The back ends of both kinds of layers, of which a job without layers of the
 *  one has that of the other. */
static me_status choose_both(me_config *config, uint64_t capability,
                             me_diag *diag)
{
    layers l;
    const me_status status = read_layers(config, diag, &l);
    if (status != ME_OK) {
        return status;
    }
    me_core_attention_kind kinds[2] = {ME_CORE_ATTENTION_TE_UNFUSED,
                                       ME_CORE_ATTENTION_TE_UNFUSED};
    const bool is_left[2] = {choose(config, capability, false, &kinds[0]),
                             choose(config, capability, true, &kinds[1])};
    config->impl.core_attention = l.has_none ? kinds[0] : kinds[1];
    config->impl.window_attention =
        l.has_window ? kinds[1] : config->impl.core_attention;
    return (!l.has_none || is_left[0]) && (!l.has_window || is_left[1])
               ? ME_OK
               : fail_backend(config, capability, diag);
}

/** Layers within a window of a job that was given cuDNN's kernel: where it does not
 *  take them, and there are others that it takes, Transformer Engine's next. */
static me_status settle_windows(me_config *config, uint64_t capability,
                                me_diag *diag)
{
    layers l;
    const me_status status = read_layers(config, diag, &l);
    config->impl.window_attention = config->impl.core_attention;
    if (status == ME_OK && l.has_none && l.has_window &&
        config->impl.core_attention == ME_CORE_ATTENTION_TE_FUSED &&
        !me_te_takes_fused(config,
                           true)) { // what fails is said by check_backend()
        (void)choose(config, capability, true, &config->impl.window_attention);
    }
    return status;
}

void me_config_derive_attention(me_config *config)
{
    me_diag diag = {.status = ME_OK};
    const bool is_given = me_config_is_set(config, "impl.core_attention");
    const me_core_attention_kind kind = config->impl.core_attention;
    const bool needs_flash =
        is_given ? kind == ME_CORE_ATTENTION_TE_FLASH
                 : config->impl.attention_backend == ME_ATTENTION_BACKEND_FLASH;
    const bool needs_flash_3 = is_given && kind == ME_CORE_ATTENTION_TE_FLASH_3;
    const bool needs_flash_4 = is_given && kind == ME_CORE_ATTENTION_TE_FLASH_4;
    if (!me_config_is_set(config, "impl.flash_attn") && uses_te(config) &&
        (needs_flash || needs_flash_3 || needs_flash_4)) {
        config->impl.flash_attn = needs_flash_3   ? ME_FLASH_ATTN_3
                                  : needs_flash_4 ? ME_FLASH_ATTN_4
                                                  : ME_FLASH_ATTN_2;
    }
    if (is_given) {
        (void)settle_windows(config, ME_CAPABILITY_HOPPER, &diag);
    } else if (!uses_te(config)) {
        config->impl.core_attention = ME_CORE_ATTENTION_UNFUSED;
        config->impl.window_attention = ME_CORE_ATTENTION_UNFUSED;
    } else { // what fails is said by check_backend()
        (void)choose_both(config, ME_CAPABILITY_HOPPER, &diag);
    }
}

/** Would either kind of layers take flash-attn, if it were there? */
static bool would_be_flash(const me_config *config, uint64_t capability)
{
    me_config other = *config;
    other.impl.flash_attn = ME_FLASH_ATTN_2;
    me_diag diag = {.status = ME_OK};
    return choose_both(&other, capability, &diag) == ME_OK &&
           (other.impl.core_attention == ME_CORE_ATTENTION_TE_FLASH ||
            other.impl.window_attention == ME_CORE_ATTENTION_TE_FLASH);
}

/** Nothing in a job says whether flash-attn is there. */
static me_status assume_flash_attn(me_config *config, uint64_t capability,
                                   me_diag *diag)
{
    if (me_config_is_set(config, "impl.flash_attn") ||
        me_config_is_set(config, "impl.core_attention") ||
        !would_be_flash(config, capability)) {
        return ME_OK;
    }
    return me_config_assume_of(
        config, "impl.flash_attn impl.core_attention", diag,
        config->impl.flash_attn == ME_FLASH_ATTN_NONE
            ? "flash-attn is not installed, which Transformer Engine would "
              "take here: --set impl.flash_attn=2 if it is"
        : config->impl.attention_backend == ME_ATTENTION_BACKEND_FLASH
            ? "flash-attn is installed, in version 2 alone: --set "
              "impl.flash_attn=2+3 or 3 if it is not"
            : "flash-attn is installed, in version 2 alone, which Transformer "
              "Engine prefers on this card: --set impl.flash_attn=none if it "
              "is not");
}

static me_status settle(me_config *config, uint64_t capability, me_diag *diag)
{
    const me_core_attention_kind kind = config->impl.core_attention;
    if (capability >= ME_CAPABILITY_AMPERE &&
        capability < ME_CAPABILITY_HOPPER &&
        !me_config_is_set(config, "impl.flash_attn")) {
        config->impl.flash_attn =
            ME_FLASH_ATTN_2; // as NVIDIA's containers have
    }
    const bool is_given = me_config_is_set(config, "impl.core_attention");
    if (is_given && (kind != ME_CORE_ATTENTION_TE_FUSED ||
                     me_te_takes_fused_on(config, capability))) {
        return settle_windows(config, capability, diag);
    }
    const me_status status =
        is_given ? ME_OK : choose_both(config, capability, diag);
    if (status != ME_OK) {
        return status;
    }
    if (is_given ||
        (config->parallel.context > 1 &&
         config->impl.core_attention == ME_CORE_ATTENTION_TE_UNFUSED)) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "%s needs cuDNN's attention%s, which does not go with %s, of "
            "compute capability %.1f",
            config->parallel.context > 1 ? "parallel.context over 1"
                                         : "impl.core_attention = te_fused",
            is_given ? "" : " or flash-attn",
            me_te_lacks_fused(config, capability), (double)capability / 10);
    }
    return assume_flash_attn(config, capability, diag);
}

/** What Transformer Engine takes flash-attn 3 for, and its mha_fwd() or mha_bwd()
 *  refuses; and a card that it was not asked about. */
static me_status check_flash_3(me_config *config, uint64_t capability,
                               me_diag *diag)
{
    const me_te_heads h = me_te_heads_of(config);
    if (config->impl.core_attention != ME_CORE_ATTENTION_TE_FLASH_3 &&
        config->impl.window_attention != ME_CORE_ATTENTION_TE_FLASH_3) {
        return ME_OK;
    }
    if (capability != ME_CAPABILITY_HOPPER) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = te_flash_3 needs a card of "
                       "compute capability 9.0, not %.1f: use te_flash",
                       (double)capability / 10);
    }
    return h.query % 8 != 0 || h.value % 8 != 0 ||
                   me_te_widest_head(h) > ME_TE_MOST_HEAD_SIZE
               ? me_fail(diag, ME_ERR_CONFIG,
                         "heads of %llu and %llu columns: Transformer Engine "
                         "takes flash-attn 3 for them, which stops, since it "
                         "needs multiples of 8 up to 256: without it "
                         "impl.flash_attn = 2",
                         (unsigned long long)h.query,
                         (unsigned long long)h.value)
               : me_config_assume(
                     config, diag,
                     "flash-attn 3 as the source of 3.0.0 has it, built with "
                     "all of its kernels; no job was measured with it, and "
                     "they are timed as those of version 2");
}

/** What Transformer Engine takes flash-attn 4 for, and its backward refuses. */
static me_status check_flash_4(me_config *config, uint64_t capability,
                               me_diag *diag)
{
    if (config->impl.core_attention != ME_CORE_ATTENTION_TE_FLASH_4 &&
        config->impl.window_attention != ME_CORE_ATTENTION_TE_FLASH_4) {
        return ME_OK;
    }
    return me_te_flash_4_stops(config, capability)
               ? me_fail(diag, ME_ERR_CONFIG,
                         "Transformer Engine takes flash-attn 4, which stops "
                         "in the first backward on a card of compute "
                         "capability %.1f%s: without it impl.flash_attn = 2",
                         (double)capability / 10,
                         capability < ME_CAPABILITY_HOPPER
                             ? ""
                             : " where sums must have an order")
               : me_config_assume(
                     config, diag,
                     "flash-attn 4 as the source of 4.0.0b11 has it; no job "
                     "was measured with it, and its kernels are timed as those "
                     "of version 2");
}

/** FusedAttnFunc.backward() calls varlen_bwd() of flash_attn_2_cuda with the 19
 *  arguments that it had before flash-attn 2.3, and with sequences and batch apart,
 *  which it never took; without flash-attn it calls None. */
static me_status check_flash_backward(const me_config *config,
                                      uint64_t capability, me_diag *diag)
{
    const char *given =
        me_config_variable(config, "NVTE_FUSED_ATTN_USE_FAv2_BWD");
    const bool is_fused =
        config->impl.core_attention == ME_CORE_ATTENTION_TE_FUSED ||
        config->impl.window_attention == ME_CORE_ATTENTION_TE_FUSED;
    return given != NULL && strcmp(given, "1") == 0 && is_fused &&
                   capability == ME_CAPABILITY_HOPPER &&
                   config->parallel.context == 1
               ? me_fail(diag, ME_ERR_CONFIG,
                         "NVTE_FUSED_ATTN_USE_FAv2_BWD=1: Transformer Engine "
                         "stops in the first backward of cuDNN's attention on "
                         "a card of compute capability 9.0, since it calls "
                         "flash-attn's as it was before 2.3: unset it")
               : ME_OK;
}

me_status me_config_settle_attention(me_config *config, uint64_t capability,
                                     me_diag *diag)
{
    if (!uses_te(config)) {
        return ME_OK;
    }
    me_status status = settle(config, capability, diag);
    status = status == ME_OK ? check_flash_3(config, capability, diag) : status;
    status = status == ME_OK ? check_flash_4(config, capability, diag) : status;
    return status == ME_OK ? check_flash_backward(config, capability, diag)
                           : status;
}

static bool is_te(me_core_attention_kind kind)
{
    return kind == ME_CORE_ATTENTION_TE_FUSED ||
           kind == ME_CORE_ATTENTION_TE_UNFUSED ||
           kind == ME_CORE_ATTENTION_TE_FLASH ||
           kind == ME_CORE_ATTENTION_TE_FLASH_3 ||
           kind == ME_CORE_ATTENTION_TE_FLASH_4;
}

/** Modules and core attention are of one implementation. */
static me_status check_core_attention(const me_config *config, me_diag *diag)
{
    const me_core_attention_kind kind = config->impl.core_attention;
    if (is_te(kind) && !uses_te(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = te_fused, te_unfused, te_flash, "
                       "te_flash_3 or te_flash_4 needs impl.transformer = "
                       "transformer_engine");
    }
    if (!is_te(kind) && uses_te(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = unfused or sdpa_flash needs "
                       "impl.transformer = local; Transformer Engine's are "
                       "te_fused, te_unfused, te_flash, te_flash_3 and "
                       "te_flash_4");
    }
    return ME_OK;
}

/** What was given, and no kernel does. */
static me_status check_given(const me_config *config, me_diag *diag)
{
    const me_core_attention_kind kind = config->impl.core_attention;
    layers l;
    const me_status status = read_layers(config, diag, &l);
    if (status != ME_OK || !me_config_is_set(config, "impl.core_attention")) {
        return status;
    }
    if (kind == ME_CORE_ATTENTION_TE_FUSED &&
        !me_te_takes_fused(config, !l.has_none)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = te_fused needs "
                       "train.params_dtype = bfloat16 or float16, heads of "
                       "a multiple of 8 columns up to 256, no dropout within "
                       "a window and no largest scores: use te_unfused");
    }
    if (kind == ME_CORE_ATTENTION_TE_FUSED && me_te_refuses_fused(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s does not go with "
                       "impl.core_attention = te_fused where "
                       "model.softmax_type is not vanilla: use te_unfused",
                       config->train.deterministic_mode
                           ? "train.deterministic_mode = true"
                           : "NVTE_ALLOW_NONDETERMINISTIC_ALGO=0");
    }
    if (kind == ME_CORE_ATTENTION_TE_FLASH_3 &&
        !me_te_takes_flash_3(config, ME_CAPABILITY_HOPPER)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = te_flash_3 needs impl.flash_attn "
                       "= 3 or 2+3, half precision, no dropout, heads up to "
                       "256 columns as wide in values as in queries, below "
                       "256 if deterministic, no largest scores and "
                       "model.softmax_type = vanilla");
    }
    if (kind == ME_CORE_ATTENTION_TE_FLASH_4 &&
        !me_te_takes_flash_4(config, ME_CAPABILITY_HOPPER) &&
        !me_te_takes_flash_4(config, ME_CAPABILITY_BLACKWELL)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = te_flash_4 needs impl.flash_attn "
                       "= 4, 2+4 or 2+3+4, half precision, no dropout, no "
                       "context parallelism, heads that flash-attn 4 takes, no "
                       "largest scores and model.softmax_type = vanilla");
    }
    if (kind == ME_CORE_ATTENTION_TE_FLASH &&
        !me_te_takes_flash_2(config, ME_CAPABILITY_HOPPER)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "impl.core_attention = te_flash needs impl.flash_attn = "
                       "2, train.params_dtype = bfloat16 or float16, heads of "
                       "a multiple of 8 columns up to 256, no largest scores "
                       "and model.softmax_type = vanilla");
    }
    return ME_OK;
}

static me_status check_backend(const me_config *config, me_diag *diag)
{
    layers l;
    me_core_attention_kind kind = ME_CORE_ATTENTION_TE_UNFUSED;
    const me_status status = read_layers(config, diag, &l);
    const bool is_given = me_config_is_set(config, "impl.core_attention");
    const bool is_mixed =
        config->impl.window_attention != config->impl.core_attention;
    if (status != ME_OK || !uses_te(config)) {
        return status;
    }
    if ((!is_given && l.has_none &&
         !choose(config, ME_CAPABILITY_HOPPER, false, &kind)) ||
        ((!is_given || is_mixed) && l.has_window &&
         !choose(config, ME_CAPABILITY_HOPPER, true, &kind))) {
        return fail_backend(config, ME_CAPABILITY_HOPPER, diag);
    }
    return config->parallel.context > 1 && is_mixed
               ? me_fail(diag, ME_ERR_CONFIG,
                         "model.attention_dropout does not go with windows of "
                         "some layers under parallel.context over 1, where "
                         "Transformer Engine has no other attention for them")
               : ME_OK;
}

/** clip_qk() asks TEDotProductAttention for its largest scores, of the module below
 *  Float16Module. */
static me_status check_largest_scores(const me_config *config, me_diag *diag)
{
    const char *option = config->model.qk_clip
                             ? "model.qk_clip = true (--qk-clip)"
                             : "model.log_max_attention_logit = true "
                               "(--log-max-attention-logit)";
    return me_te_returns_max_logit(config) &&
                   (!uses_te(config) ||
                    config->train.params_dtype == ME_DTYPE_FLOAT32)
               ? me_fail(diag, ME_ERR_CONFIG,
                         "%s: Megatron-LM stops after the first step, since "
                         "it needs impl.transformer = transformer_engine and "
                         "train.params_dtype = bfloat16 or float16",
                         option)
               : ME_OK;
}

me_rule *const me_attention_rules[] = {
    check_core_attention, check_given, check_backend,
    check_largest_scores, NULL,
};
