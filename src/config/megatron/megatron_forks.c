/* SPDX-License-Identifier: BSD-3-Clause */
/* What flags and variables of forks and earlier versions of Megatron-LM come to,
 * where no single option has them. */
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

#include <stdio.h>
#include <string.h>

enum {
    LAYERS_MAX = 4096 /* of all stages */
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

me_status me_megatron_settle_forks(me_config *config, const me_flag_uses *uses,
                                   me_diag *diag)
{
    me_status status = settle_blocks(config, uses, diag);
    if (status == ME_OK) {
        status = settle_checkpoints(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_partition(config, uses, diag);
    }
    return status == ME_OK ? settle_attention(config, uses, diag) : status;
}
