/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of a launch command's environment: each is modelled, does not
 * change memory, or is reported as not modelled. Only those that the job's
 * libraries read are looked at. */
#include "base/parse.h"
#include "base/python_number.h"
#include "config/flags.h"
#include "run/environment_names.h"
#include "run/job_card.h"

#include <stdio.h>
#include <string.h>

/** `:SIZE:COUNT` in KiB, several times, as PyTorch reads it. */
static bool parse_workspace(const char *text, uint64_t *bytes_out)
{
    uint64_t total = 0;
    while (*text == ':') {
        char size[24];
        char count[24];
        int length = 0;
        uint64_t kib = 0;
        uint64_t n = 0;
        const size_t size_length = strcspn(text + 1, ":");
        const char *second = text + 1 + size_length;
        const size_t count_length =
            *second == ':' ? strcspn(second + 1, ":") : 0;
        if (size_length >= sizeof size || count_length >= sizeof count) {
            return false;
        }
        (void)snprintf(size, sizeof size, "%.*s", (int)size_length, text + 1);
        length = snprintf(count, sizeof count, "%.*s", (int)count_length,
                          second + 1);
        if (length <= 0 || me_parse_u64(size, &kib) != ME_OK ||
            me_parse_u64(count, &n) != ME_OK || kib > 1 << 24 || n > 1 << 10) {
            return false;
        }
        total += kib * n * 1024;
        text = second + 1 + count_length;
    }
    *bytes_out = total;
    return *text == '\0' && total > 0;
}

static me_status refuse(const me_flag_note *variable, const char *right,
                        me_diag *diag)
{
    return me_fail(diag, ME_ERR_CONFIG, "%s=%.80s: must be %s", variable->flag,
                   variable->note, right);
}

static me_status leave_out(me_config *config, const me_flag_note *variable,
                           const me_variable_rule *rule, me_diag *diag)
{
    return me_config_add_not_modelled(config, variable->flag, rule->note,
                                      rule->effect, diag);
}

static me_status apply_nccl(me_config *config, const me_flag_note *variable,
                            const me_variable_rule *rule, me_diag *diag,
                            me_job_card *card)
{
    const me_status status =
        me_nccl_setup_set(&card->nccl, variable->flag, variable->note);
    if (status == ME_ERR_CONFIG) {
        return refuse(variable, "a whole number in the range that NCCL has",
                      diag);
    }
    return status == ME_OK ? ME_OK : leave_out(config, variable, rule, diag);
}

/** SMs that a norm of Transformer Engine's leaves to others. */
static me_status apply_margin(const me_flag_note *variable, uint32_t *margin,
                              me_diag *diag, const me_job_card *card)
{
    uint64_t n = 0;
    if (me_parse_u64(variable->note, &n) != ME_OK ||
        n >= card->card.multiprocessors) {
        return refuse(variable, "a whole number below the card's SMs", diag);
    }
    *margin = (uint32_t)n;
    return ME_OK;
}

/** `bool(int(os.getenv(…)))`: is it @p value? */
static me_status apply_switch(const me_flag_note *variable, bool value,
                              bool *is_so_out, me_diag *diag)
{
    me_str number = {0};
    const bool is_one = me_python_int(variable->note, &number);
    const me_status status = me_str_status(&number);
    *is_so_out = (strcmp(me_str_text(&number), "0") != 0) == value;
    me_str_fini(&number);
    if (status != ME_OK) {
        return me_fail(diag, status, "no memory for the environment");
    }
    return is_one ? ME_OK : refuse(variable, "a whole number, such as 0", diag);
}

static me_status apply_te(const me_flag_note *variable, me_diag *diag,
                          me_job_card *card)
{
    me_te_settings *te = &card->te;

    const struct {
        const char *name;
        uint32_t *margin;
    } margins[] = {
        {"NVTE_FWD_LAYERNORM_SM_MARGIN", &te->forward_norm_margin},
        {"NVTE_BWD_LAYERNORM_SM_MARGIN", &te->backward_norm_margin},
        {"NVTE_INF_LAYERNORM_SM_MARGIN", &te->inference_norm_margin},
    };

    const struct {
        const char *name;
        bool value;
        bool *is_so;
    } switches[] = {
        {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", false, &te->is_deterministic},
        {"NVTE_MASKED_SOFTMAX_FUSION", false, &te->has_torch_softmax},
        {"NVTE_TORCH_COMPILE", false, &te->is_op_by_op},
        {"NVTE_BATCH_MHA_P2P_COMM", true, &te->batches_exchanges},
        {"NVTE_NORM_FWD_USE_CUDNN", true, &te->has_cudnn_norm_forward},
        {"NVTE_NORM_BWD_USE_CUDNN", true, &te->has_cudnn_norm_backward},
    };

    for (size_t i = 0; i < sizeof margins / sizeof margins[0]; i++) {
        if (strcmp(variable->flag, margins[i].name) == 0) {
            return apply_margin(variable, margins[i].margin, diag, card);
        }
    }
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        if (strcmp(variable->flag, switches[i].name) == 0) {
            return apply_switch(variable, switches[i].value, switches[i].is_so,
                                diag);
        }
    }
    return ME_OK;
}

/** What the launch command's reader has not done already. */
static me_status apply_modelled(const me_flag_note *variable, me_diag *diag,
                                me_job_card *card)
{
    if (strcmp(variable->flag, "CUBLAS_WORKSPACE_CONFIG") == 0 &&
        !parse_workspace(variable->note, &card->card.cublas_workspace_bytes)) {
        return refuse(variable, "sizes in KiB and counts, such as :4096:8",
                      diag);
    }
    return apply_te(variable, diag, card);
}

/** By hand it is nothing more than what the mode sets by itself. */
static bool is_of_deterministic_mode(const me_config *config,
                                     const me_variable_rule *rule,
                                     const char *value)
{
    return config->train.deterministic_mode && rule->deterministic != NULL &&
           value != NULL && strcmp(rule->deterministic, value) == 0 &&
           rule->kind == ME_VARIABLE_NOT_MODELLED;
}

static me_status apply(me_config *config, const me_flag_note *variable,
                       me_diag *diag, me_job_card *card)
{
    const char *value = variable->note;
    const me_variable_rule *rule = me_variable_rule_find(variable->flag);
    if (rule == NULL || rule->kind == ME_VARIABLE_NO_EFFECT ||
        rule->kind == ME_VARIABLE_ASKED ||
        is_of_deterministic_mode(config, rule, value) ||
        (rule->is_said != NULL && value != NULL &&
         rule->is_said(config, variable->flag, value)) ||
        (rule->neutral != NULL && value != NULL &&
         me_words_have(rule->neutral, strlen(rule->neutral), value))) {
        return ME_OK;
    }
    if (value == NULL) {
        return me_config_add_not_modelled(
            config, variable->flag, "the launch command does not say its value",
            rule->kind == ME_VARIABLE_MODELLED ? (me_effect)ME_EITHER(SOME)
                                               : rule->effect,
            diag);
    }
    if (value[0] == '\0' && rule->kind != ME_VARIABLE_NOT_MODELLED) {
        return ME_OK; // NCCL and PyTorch take their defaults
    }
    switch (rule->kind) {
    case ME_VARIABLE_NO_EFFECT:
    case ME_VARIABLE_ASKED: break;
    case ME_VARIABLE_NOT_MODELLED:
        return leave_out(config, variable, rule, diag);
    case ME_VARIABLE_MODELLED: return apply_modelled(variable, diag, card);
    case ME_VARIABLE_NCCL:
        return apply_nccl(config, variable, rule, diag, card);
    }
    return ME_OK;
}

/** What the mode sets where nobody does. */
static me_status apply_deterministic_mode(me_config *config, me_diag *diag,
                                          me_job_card *card)
{
    size_t n = 0;
    const me_variable_rule *rules = me_variable_rules(&n);
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < n; i++) {
        const me_variable_rule *rule = &rules[i];
        if (rule->deterministic != NULL &&
            me_config_variable(config, rule->names) == NULL) {
            status = apply(config,
                           &(me_flag_note){.flag = rule->names,
                                           .note = rule->deterministic},
                           diag, card);
        }
    }
    return status;
}

me_status me_job_alloc_conf(const me_config *config, me_diag *diag,
                            me_alloc_conf *conf_out)
{
    static const char *const names[] = {"PYTORCH_ALLOC_CONF",
                                        "PYTORCH_CUDA_ALLOC_CONF"};
    const char *conf = config->device.alloc_conf;
    const me_status status = me_alloc_conf_parse(conf, diag, conf_out);
    for (size_t i = 0; status != ME_OK && i < sizeof names / sizeof *names;
         i++) {
        const char *value = me_config_variable(config, names[i]);
        if (value != NULL && strcmp(value, conf) == 0) {
            return me_fail_of(diag, status, "%s=%.100s", names[i], conf);
        }
    }
    return status == ME_OK
               ? ME_OK
               : me_fail_of(diag, status, "device.alloc_conf = %.100s", conf);
}

me_status me_environment_apply(me_config *config, me_diag *diag,
                               me_job_card *card)
{
    const me_flag_list *list = &config->environment;
    me_status status = ME_OK;
    for (int32_t i = 0; status == ME_OK && i < list->count; i++) {
        const me_flag_note *variable = &list->flags[i];
        // The last assignment of a name holds.
        const char *value = me_config_variable(config, variable->flag);
        if (value == variable->note) {
            status = apply(config, variable, diag, card);
        }
    }
    return status == ME_OK && config->train.deterministic_mode
               ? apply_deterministic_mode(config, diag, card)
               : status;
}
