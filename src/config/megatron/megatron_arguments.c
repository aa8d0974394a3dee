/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_arguments.h"

#include "base/alloc.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/flag_reals.h"
#include "config/megatron/megatron_yaml.h"

#include <stdio.h>
#include <string.h>

enum {
    HINTS_MAX = 8 /* a search each; nobody reads more */
};

/** What one use of a flag comes to. */
typedef struct verdict {
    me_flag_list *list;
    char note[160];   /* "" is none */
    me_effect effect; /* of what is not modelled */
} verdict;

/** With --ddp-bucket-size 0 every parameter closes its bucket, as with 1; the
 * option's 0 is the size that Megatron-LM chooses. */
static const char *bucket_size_of(const char *value)
{
    uint64_t numel = 1;
    return me_parse_u64(value, &numel) == ME_OK && numel == 0 ? "1" : value;
}

/** dist_muon is muon with the distributed optimizer, which me_megatron_settle()
 *  turns on. */
static const char *optimizer_of(const char *value)
{
    return strcmp(value, "dist_muon") == 0 ? "muon" : value;
}

/** Fewer than none are none: nothing is evaluated unless there are more than 0
 *  (build_train_valid_test_data_loaders()). */
static const char *eval_iters_of(const char *value)
{
    return value[0] == '-' ? "0" : value;
}

/** Values of flags that mean another one of their option. */
static const struct {
    const char *flag;
    const char *(*value)(const char *value);
} meanings[] = {
    {"--ddp-bucket-size", bucket_size_of},
    {"--optimizer", optimizer_of},
    {"--eval-iters", eval_iters_of},
};

static const char *value_of(const me_flag_use *use)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (strcmp(meanings[i].flag, use->name) == 0) {
            return meanings[i].value(use->values[0]);
        }
    }
    const me_option *option = me_option_find(use->flag.rule->option);
    return option == NULL
               ? use->values[0]
               : me_flag_real(use->name, use->values[0], option->max);
}

/** Can the option take the value? Values that the flag's own check let pass
 * and an enumeration of ours does not know are not modelled. */
static bool is_settable(const me_flag_use *use)
{
    const me_option *option = me_option_find(use->flag.rule->option);
    if (option == NULL || option->type != ME_OPTION_ENUM ||
        use->flag.rule->constant != NULL) {
        return true;
    }
    for (const me_choice *word = option->words; word->word != NULL; word++) {
        if (strcmp(word->word, value_of(use)) == 0) {
            return true;
        }
    }
    return false;
}

static void set_note(verdict *v, const char *text)
{
    (void)snprintf(v->note, sizeof v->note, "%s", text == NULL ? "" : text);
}

static void judge_needless(const me_flag_rule *rule, me_config *config,
                           verdict *v)
{
    me_str needs = {0};
    v->list = &config->no_effect;
    me_flag_append_needs(rule, &needs);
    set_note(v, me_str_text(&needs));
    me_str_fini(&needs);
}

static void judge_unknown(const me_flag_use *use, me_config *config, verdict *v)
{
    size_t length = 0;
    const char *nearest = config->not_modelled.count < HINTS_MAX
                              ? me_flag_nearest(use->name, &length)
                              : NULL;
    v->list = &config->not_modelled;
    if (nearest == NULL) {
        (void)snprintf(v->note, sizeof v->note,
                       "unknown flag of Megatron-LM core_v0.19.0");
    } else {
        (void)snprintf(v->note, sizeof v->note,
                       "unknown flag of Megatron-LM core_v0.19.0; did you "
                       "mean %.*s?",
                       (int)length, nearest);
    }
}

static bool is_one_value(const me_flag_use *use)
{
    for (int i = 1; i < use->n_values; i++) {
        if (strcmp(use->values[i], use->values[0]) != 0) {
            return false;
        }
    }
    return true;
}

static void judge_modelled(const me_flag_use *use, me_config *config,
                           verdict *v)
{
    const me_flag_rule *rule = use->flag.rule;
    if (rule->option != NULL && !is_settable(use)) {
        me_str value = {0};
        me_option_format(me_option_find(rule->option), config, &value);
        v->list = &config->not_modelled;
        (void)snprintf(v->note, sizeof v->note, "%.40s; %.40s is estimated",
                       use->values[0], me_str_text(&value));
        me_str_fini(&value);
    } else if (rule->option != NULL && !is_one_value(use) &&
               !me_megatron_takes_list(use)) {
        v->list = &config->not_modelled;
        (void)snprintf(v->note, sizeof v->note,
                       "several values; %.40s is estimated", use->values[0]);
    } else if (rule->note != NULL && rule->neutral != NULL &&
               !me_flag_use_is_neutral(use)) {
        v->list = &config->not_modelled;
        set_note(v, rule->note);
    } else {
        v->list = &config->modelled;
        v->note[0] = '\0';
    }
}

/** A fork's value of a flag of any kind. */
static void judge_spelling(const me_flag_use *use, me_config *config,
                           verdict *v)
{
    v->list = &config->not_modelled;
    v->effect = use->spelling->effect;
    (void)snprintf(v->note, sizeof v->note, "%s; %s is estimated",
                   use->spelling->note, use->spelling->meant);
}

static void judge(const me_flag_uses *uses, const me_flag_use *use,
                  me_config *config, verdict *v)
{
    const me_flag_rule *rule = use->flag.rule;
    if (rule == NULL) {
        judge_unknown(use, config, v);
        return;
    }
    if (!me_flag_needs_hold(uses, rule->needs)) {
        judge_needless(rule, config, v);
        return;
    }
    if (use->spelling != NULL && use->spelling->note != NULL) {
        judge_spelling(use, config, v);
        return;
    }
    switch (use->flag.kind) {
    case ME_FLAG_MODELLED: judge_modelled(use, config, v); return;
    case ME_FLAG_NOT_MODELLED:
    case ME_FLAG_REMOVED:
        if (me_flag_use_is_neutral(use) ||
            me_megatron_shards_no_more(use, uses)) {
            v->list = &config->no_effect;
            set_note(v, "at this value");
            return;
        }
        v->list = &config->not_modelled;
        set_note(v, rule->note);
        return;
    case ME_FLAG_REFUSED: judge_modelled(use, config, v); return;
    case ME_FLAG_NO_EFFECT: break;
    }
    v->list = &config->no_effect;
    set_note(v, rule->note);
}

static me_status set_option(me_config *config, const me_flag_uses *uses,
                            const me_flag_use *use, me_diag *diag)
{
    const me_flag_rule *rule = use->flag.rule;
    if (!me_flag_needs_hold(uses, rule->needs) || !is_settable(use)) {
        return ME_OK;
    }
    const me_origin origin = {
        .name = use->name,
        .value = rule->constant == NULL ? use->word : NULL,
    };
    return me_option_set(
        me_option_find(rule->option), config,
        rule->constant != NULL ? rule->constant : value_of(use), &origin, diag);
}

/** Options are set in the order of the tables, not of the command, because
 * some flags win over others wherever they stand. */
static me_status set_options_of(me_config *config, const me_flag_uses *uses,
                                const me_flag_rule *rules, me_diag *diag)
{
    for (const me_flag_rule *rule = rules; rule->flags != NULL; rule++) {
        if (rule->option == NULL) {
            continue;
        }
        for (int i = 0; i < uses->count; i++) {
            const me_flag_use *use = &uses->uses[i];
            if (use->flag.rule != rule || use->is_repeated) {
                continue;
            }
            const me_status status = set_option(config, uses, use, diag);
            if (status != ME_OK) {
                return status;
            }
        }
    }
    return ME_OK;
}

static me_status set_options(me_config *config, const me_flag_uses *uses,
                             me_diag *diag)
{
    size_t n = 0;
    const me_flag_table *tables = me_flag_tables(&n);
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < n; i++) {
        status = set_options_of(config, uses, tables[i].rules, diag);
    }
    return status;
}

static me_status list_flags(me_config *config, const me_flag_uses *uses,
                            me_diag *diag)
{
    for (int i = 0; i < uses->count; i++) {
        const me_flag_use *use = &uses->uses[i];
        if (use->is_repeated) {
            continue;
        }
        verdict v = {.effect =
                         use->flag.rule == NULL
                             ? (me_effect){ME_REACH_UNKNOWN, ME_REACH_UNKNOWN}
                             : use->flag.rule->effect};
        judge(uses, use, config, &v);
        const char *note = v.note[0] == '\0' ? NULL : v.note;
        const me_status status =
            v.list == &config->not_modelled
                ? me_config_add_not_modelled(config, use->name, note, v.effect,
                                             diag)
                : me_flag_list_add(config, v.list, use->name, note, diag);
        if (status != ME_OK) {
            return status;
        }
    }
    return ME_OK;
}

/** What recomputation asks of its flags. */
static me_status check_recompute(const me_config *config,
                                 const me_flag_uses *uses, me_diag *diag)
{
    const char *const of_full[] = {"--recompute-method",
                                   "--recompute-num-layers"};
    const bool is_selective = // which --moe-layer-recompute makes it afterwards
        config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
        (me_flag_use_find(uses, "--moe-layer-recompute") == NULL ||
         me_flag_needs_hold(uses,
                            "--recompute-granularity --recompute-activations"));
    for (size_t i = 0; i < 2; i++) {
        const bool is_given = me_flag_use_find(uses, of_full[i]) != NULL;
        if (is_given && is_selective) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s does not go with selective recomputation: "
                           "leave it out or give --recompute-granularity full",
                           of_full[i]);
        }
    }
    if (config->recompute.granularity == ME_RECOMPUTE_FULL &&
        !me_config_is_set(config, "recompute.method")) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--recompute-granularity full needs "
                       "--recompute-method uniform or block");
    }
    return ME_OK;
}

static bool has_value(const me_flag_use *use, const char *value)
{
    for (int i = 0; i < use->n_values; i++) {
        if (strcmp(use->values[i], value) == 0) {
            return true;
        }
    }
    return false;
}

/** Only with a checkpoint in DTensors can FSDP2 go, and the other way round; an
 * optimizer of the first chunk's own goes with none that is distributed. Who
 * trains with Megatron-LM's core has defaults of its own for what no key says. */
static me_status check_checkpoint(const me_config *config,
                                  const me_flag_uses *uses, me_diag *diag)
{
    const me_flag_use *format = me_flag_use_find(uses, "--ckpt-format");
    const bool has_fsdp2 = config->parallel.torch_fsdp2;
    if (format == NULL && config->own->has_leaves) {
        return ME_OK;
    }
    if (config->optimizer.overlap_param_gather_with_optimizer_step &&
        (format == NULL || !has_value(format, "torch"))) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--overlap-param-gather-with-optimizer-step needs "
                       "--ckpt-format torch: Megatron-LM stops at it with a "
                       "distributed checkpoint");
    }
    if (config->parallel.megatron_fsdp &&
        (format == NULL || !has_value(format, "fsdp_dtensor"))) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--use-megatron-fsdp needs --ckpt-format fsdp_dtensor: "
                       "Megatron-LM stops at any other");
    }
    if (format == NULL) {
        return ME_OK;
    }
    const bool is_dcp = has_value(format, "torch_dcp");
    if (me_is_emerging_optimizer(config->optimizer.kind) &&
        !has_value(format, "torch") && !has_value(format, "torch_dist")) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--ckpt-format %s does not go with an emerging "
                       "optimizer: give torch or torch_dist",
                       format->values[0]);
    }
    if (has_value(format, "fsdp_dtensor") && !config->parallel.megatron_fsdp) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--ckpt-format fsdp_dtensor needs --use-megatron-fsdp");
    }
    if (has_fsdp2 && !is_dcp && !has_value(format, "torch_dist")) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--ckpt-format %s does not go with --use-torch-fsdp2: "
                       "give torch_dist or torch_dcp",
                       format->values[0]);
    }
    if (is_dcp && (!has_fsdp2 || config->parallel.tensor > 1)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--ckpt-format torch_dcp needs --use-torch-fsdp2 and a "
                       "tensor size of 1");
    }
    return ME_OK;
}

/** A flag whose values are names of modules, and the option of each. */
static me_status settle_list(me_config *config, const me_flag_uses *uses,
                             const char *flag, const char *const modules[][2],
                             me_diag *diag)
{
    const me_flag_use *use = me_flag_use_find(uses, flag);
    me_status status = ME_OK;
    if (use == NULL || !me_flag_needs_hold(uses, use->flag.rule->needs)) {
        return status;
    }
    for (size_t i = 0; modules[i][0] != NULL && status == ME_OK; i++) {
        const bool is_given = has_value(use, modules[i][0]);
        status = me_config_set(config, modules[i][1],
                               is_given ? "true" : "false", diag);
    }
    return status;
}

/** --moe-layer-recompute is "moe" behind what --recompute-modules says, or behind
 *  its default (TransformerConfig). */
static me_status settle_moe_layers(me_config *config, const me_flag_uses *uses,
                                   me_diag *diag)
{
    return me_flag_use_find(uses, "--moe-layer-recompute") == NULL
               ? ME_OK
               : me_config_set(config, "recompute.moe", "true", diag);
}

static me_status settle_modules(me_config *config, const me_flag_uses *uses,
                                me_diag *diag)
{
    static const char *const recomputed[][2] = {
        {"core_attn", "recompute.core_attn"},
        {"layernorm", "recompute.layernorm"},
        {"mla_up_proj", "recompute.mla_up_proj"},
        {"moe", "recompute.moe"},
        {"moe_act", "recompute.moe_act"},
        {"shared_experts", "recompute.shared_experts"},
        {"mlp", "recompute.mlp"},
        {NULL, NULL},
    };
    static const char *const offloaded[][2] = {
        {"attn_norm", "offload.attn_norm"},
        {"qkv_linear", "offload.qkv_linear"},
        {"core_attn", "offload.core_attn"},
        {"attn_proj", "offload.attn_proj"},
        {"mlp_norm", "offload.mlp_norm"},
        {"expert_fc1", "offload.expert_fc1"},
        {"moe_act", "offload.moe_act"},
        {NULL, NULL},
    };
    me_status status =
        settle_list(config, uses, "--recompute-modules", recomputed, diag);
    if (status == ME_OK) {
        status = settle_moe_layers(config, uses, diag);
    }
    return status != ME_OK ? status
                           : settle_list(config, uses, "--offload-modules",
                                         offloaded, diag);
}

static me_status apply(me_config *config, const me_flag_uses *uses,
                       me_diag *diag)
{
    me_status status = me_megatron_refuse_flags(config, uses, diag);
    if (status == ME_OK) {
        status = me_megatron_look_at_flags(config, uses, diag);
    }
    if (status == ME_OK) {
        status = set_options(config, uses, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_settle(config, uses, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_check_flags(config, uses, diag);
    }
    if (status == ME_OK) {
        status = check_recompute(config, uses, diag);
    }
    if (status == ME_OK) {
        status = check_checkpoint(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_modules(config, uses, diag);
    }
    if (status == ME_OK) {
        status = list_flags(config, uses, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_note_needless(config, uses, diag);
    }
    if (status == ME_OK) {
        status = me_vocabulary_settle(config, uses, diag);
    }
    return status;
}

/** Of the flags beside `--yaml-cfg` Megatron-LM looks at none
 *  (training/yaml_arguments.py, load_yaml()). */
static me_status read_file_of(me_config *config, const char *path, int n_flags,
                              me_diag *diag)
{
    me_status status = me_megatron_load_yaml(config, path, diag);
    return status != ME_OK || n_flags == 1
               ? status
               : me_config_assume(config, diag,
                                  "%.200s decides, and none of the flags "
                                  "beside --yaml-cfg",
                                  path);
}

me_status me_megatron_read(me_config *config, int argc, const char *const *argv,
                           me_diag *diag)
{
    me_flag_uses uses;
    me_status status = me_flag_uses_read(config, argc, argv, diag, &uses);
    const me_flag_use *file =
        status == ME_OK ? me_flag_use_find(&uses, "--yaml-cfg") : NULL;
    config->own->has_launch = true;
    if (file != NULL) {
        config->own->paste = ME_PASTE_SET; // which looks at no flags
        status = read_file_of(config, file->values[0], uses.count, diag);
    } else if (status == ME_OK) {
        status = apply(config, &uses, diag);
    }
    me_free(uses.uses);
    return status;
}
