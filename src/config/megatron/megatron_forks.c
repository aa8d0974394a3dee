/* SPDX-License-Identifier: BSD-3-Clause */
/* What flags and variables of forks and earlier versions of Megatron-LM come to,
 * where no single option has them. */
#include "base/parse.h"
#include "base/size.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

#include <stdio.h>
#include <string.h>

enum {
    LAYERS_MAX = 4096, /* of all stages */
    WIDTH_MAX = 1 << 20,
    FACTOR_MAX = 1000
};

/** Yuan 2.0's "2,3,3,2", layers of each stage, as core_v0.19.0's layout:
 *  "Ett|ttt|ttt|ttL". */
static me_status settle_blocks(me_config *config, const me_flag_uses *uses,
                               me_diag *diag)
{
    const me_flag_use *use =
        me_flag_use_find(uses, "--pipeline-model-parallel-blocks");
    if (use == NULL) {
        return ME_OK;
    }
    me_str layout = {0};
    uint64_t layers = 0;
    bool is_right = true;
    me_str_append(&layout, "E");
    for (const char *at = use->values[0]; is_right && *at != '\0';) {
        char number[24];
        uint64_t n = 0;
        const size_t length = strcspn(at, ",");
        (void)snprintf(number, sizeof number, "%.*s", (int)length, at);
        is_right = me_parse_u64(number, &n) == ME_OK && n > 0 &&
                   n <= LAYERS_MAX - layers;
        layers += n;
        for (uint64_t i = 0; is_right && i < n; i++) {
            me_str_append(&layout, "t");
        }
        at += length + (at[length] == ',');
        me_str_append(&layout, *at == '\0' ? "L" : "|");
    }
    me_status status = me_str_status(&layout);
    if (status != ME_OK) {
        status = me_fail(diag, status, "no memory for a pipeline's stages");
    } else if (!is_right || layers == 0) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--pipeline-model-parallel-blocks %.80s: must be "
                         "layers of each stage, with commas between them",
                         use->values[0]);
        status = me_fail_flag(diag, status, use->name);
    } else {
        status = me_config_set(config, "parallel.pipeline_layout",
                               me_str_text(&layout), diag);
    }
    me_str_fini(&layout);
    return status;
}

/** Megatron-DeepSpeed's --checkpoint-activations: each layer by itself. */
static me_status settle_checkpoints(me_config *config, const me_flag_uses *uses,
                                    me_diag *diag)
{
    static const char *const options[][2] = {
        {"recompute.method", "uniform"},
        {"recompute.num_layers", "1"},
    };
    me_status status = ME_OK;
    if (me_flag_use_find(uses, "--checkpoint-activations") == NULL) {
        return ME_OK;
    }
    for (size_t i = 0; status == ME_OK && i < 2; i++) {
        if (!me_config_is_set(config, options[i][0])) {
            status = me_config_set(config, options[i][0], options[i][1], diag);
        }
    }
    return status;
}

/** Megatron-DeepSpeed's stages of layers and embeddings that count as many: as
 *  core_v0.19.0 counts them in. */
static me_status settle_partition(me_config *config, const me_flag_uses *uses,
                                  me_diag *diag)
{
    static const char *const options[] = {
        "parallel.account_for_embedding_in_pipeline_split",
        "parallel.account_for_loss_in_pipeline_split",
    };
    const me_flag_use *use = me_flag_use_find(uses, "--pp-partition-method");
    me_status status = ME_OK;
    if (use == NULL ||
        strcmp(use->values[0], "type:transformer|embedding") != 0) {
        return ME_OK;
    }
    for (size_t i = 0; status == ME_OK && i < 2; i++) {
        status = me_config_set(config, options[i], "true", diag);
    }
    return status;
}

/** Before core_v0.11.0 Transformer Engine's variables alone chose an attention, and
 *  scripts of forks still set them; core_v0.19.0 stops where they differ from
 *  `--attention-backend`. */
static me_status settle_attention(me_config *config, const me_flag_uses *uses,
                                  me_diag *diag)
{
    static const struct {
        const char *flash;
        const char *fused;
        const char *backend;
    } choices[] = {
        {"1", "0", "flash"},  {"0", "1", "fused"},  {"0", "0", "unfused"},
        {NULL, "0", "flash"}, {"0", NULL, "fused"},
    };

    const char *flash = me_config_variable(config, "NVTE_FLASH_ATTN");
    const char *fused = me_config_variable(config, "NVTE_FUSED_ATTN");
    if (config->own->fork_sign == NULL ||
        me_flag_use_find(uses, "--attention-backend") != NULL) {
        return ME_OK;
    }
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const char *a = choices[i].flash;
        const char *b = choices[i].fused;
        const bool is_it = (a == NULL) == (flash == NULL) &&
                           (b == NULL) == (fused == NULL) &&
                           (a == NULL || strcmp(a, flash) == 0) &&
                           (b == NULL || strcmp(b, fused) == 0);
        if (is_it) {
            const me_status status = me_config_set(
                config, "impl.attention_backend", choices[i].backend, diag);
            return status != ME_OK
                       ? status
                       : me_config_assume(
                             config, diag,
                             "attention is %s, as NVTE_FLASH_ATTN and "
                             "NVTE_FUSED_ATTN say: core_v0.19.0 would want "
                             "--attention-backend %s",
                             choices[i].backend, choices[i].backend);
        }
    }
    return ME_OK;
}

/** FlagScale's width where `--ffn-hidden-size` does not say it: two thirds of four
 *  times the hidden size, more by a factor, up to a multiple. */
static me_status settle_width(me_config *config, const me_flag_uses *uses,
                              me_diag *diag)
{
    const me_flag_use *multiple = me_flag_use_find(uses, "--multiple-of");
    const me_flag_use *factor =
        me_flag_use_find(uses, "--hidden-dim-multiplier");
    uint64_t to = 0;
    double by = 1.0;
    char text[24];
    if (multiple == NULL || config->model.activation != ME_ACTIVATION_SWIGLU ||
        me_config_is_set(config, "model.ffn_hidden_size")) {
        return ME_OK;
    }
    if (me_parse_u64(multiple->values[0], &to) != ME_OK || to == 0 ||
        to > WIDTH_MAX) {
        return me_fail_flag(diag,
                            me_fail(diag, ME_ERR_CONFIG,
                                    "--multiple-of %.40s: must be a whole "
                                    "number from 1 to %d",
                                    multiple->values[0], WIDTH_MAX),
                            multiple->name);
    }
    if (factor != NULL && (me_parse_double(factor->values[0], &by) != ME_OK ||
                           !(by > 0) || by > FACTOR_MAX)) {
        return me_fail_flag(diag,
                            me_fail(diag, ME_ERR_CONFIG,
                                    "--hidden-dim-multiplier %.40s: must be a "
                                    "number above 0, up to %d",
                                    factor->values[0], FACTOR_MAX),
                            factor->name);
    }
    const double gated = (double)(config->model.hidden_size * 8) / 3;
    const uint64_t width = (uint64_t)((double)(uint64_t)gated * by);
    (void)snprintf(text, sizeof text, "%llu",
                   (unsigned long long)me_round_up(width, to));
    return me_config_set(config, "model.ffn_hidden_size", text, diag);
}

/** Zero bubble's fork takes layers that the stages do not divide, and leaves some
 *  of the last out: all of them are estimated. */
static me_status settle_padding(me_config *config, const me_flag_uses *uses,
                                me_diag *diag)
{
    const uint64_t stages = (uint64_t)config->parallel.pipeline;
    const uint64_t layers = (uint64_t)config->model.num_layers;
    char text[24];
    if (me_flag_use_find(uses, "--allow-padding-num-layers") == NULL ||
        stages == 0 || layers % stages == 0) {
        return ME_OK;
    }
    (void)snprintf(text, sizeof text, "%llu",
                   (unsigned long long)me_round_up(layers, stages));
    const me_status status =
        me_config_set(config, "model.num_layers", text, diag);
    return status != ME_OK
               ? status
               : me_config_assume(config, diag,
                                  "%s layers are estimated, as many for each "
                                  "stage, of which --allow-padding-num-layers "
                                  "leaves out all but %llu",
                                  text, (unsigned long long)layers);
}

/** Before experts' outputs were weighted within their activation a fused one took
 *  biases as well, which core_v0.19.0 refuses. */
static me_status settle_biases(me_config *config, const me_flag_uses *uses,
                               me_diag *diag)
{
    static const char *const fusions[] = {"train.bias_swiglu_fusion",
                                          "train.bias_gelu_fusion"};
    const me_effect effect = ME_LOWER(SOME);
    const bool is_gated = config->model.activation == ME_ACTIVATION_SWIGLU;
    const char *fusion = fusions[is_gated ? 0 : 1];
    const char *refused =
        is_gated ? "--no-bias-swiglu-fusion" : "--no-bias-gelu-fusion";
    if (config->own->fork_sign == NULL || config->moe.num_experts == 0 ||
        !config->model.add_bias_linear || config->moe.grouped_gemm ||
        me_flag_use_find(uses, refused) != NULL) {
        return ME_OK;
    }
    const me_status status = me_config_set(config, fusion, "false", diag);
    return status != ME_OK
               ? status
               : me_config_add_not_modelled(
                     config, "experts' biases in a fused activation",
                     "core_v0.19.0 has none; one that is not fused is estimated",
                     effect, diag);
}

/** Habana's fork pads experts to one of several capacities, of which it says none:
 *  what those come to is not modelled. */
static me_status settle_bins(me_config *config, const me_flag_uses *uses,
                             me_diag *diag)
{
    return me_flag_use_find(uses, "--moe-capacity-bins-num") == NULL ||
                   config->moe.capacity_factor > 0
               ? ME_OK
               : me_config_set(config, "moe.pad_to_capacity", "false", diag);
}

me_status me_megatron_settle_forks(me_config *config, const me_flag_uses *uses,
                                   me_diag *diag)
{
    me_status status = settle_blocks(config, uses, diag);
    if (status == ME_OK) {
        status = settle_checkpoints(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_padding(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_bins(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_biases(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_width(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_partition(config, uses, diag);
    }
    return status == ME_OK ? settle_attention(config, uses, diag) : status;
}
