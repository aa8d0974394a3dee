/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/paste.h"

#include "config/config_private.h"
#include "config/flags.h"

#include <string.h>

/** "KEY=VALUE" in its two parts. */
typedef struct assignment {
    const char *key;
    size_t key_length;
    const char *value;
} assignment;

static assignment split(const char *set)
{
    const size_t length = strcspn(set, "=");
    return (assignment){.key = set,
                        .key_length = length,
                        .value = set + length + (set[length] == '=' ? 1 : 0)};
}

static bool is_key(const assignment *a, const char *key)
{
    return strlen(key) == a->key_length &&
           strncmp(a->key, key, a->key_length) == 0;
}

static bool is_of_group(const assignment *a, const char *group)
{
    return strncmp(a->key, group, strlen(group)) == 0;
}

static void append_space(me_str *text)
{
    me_str_append(text, text->length == 0 ? "" : " ");
}

/** The first spelling of a rule's flag. */
static void append_name(const me_flag_rule *rule, me_str *text)
{
    me_str_append_n(text, rule->flags, strcspn(rule->flags, ": "));
}

/** The rule that says an option, with a value of its own or @p value; NULL:
 *  none. */
static const me_flag_rule *find_rule(const assignment *a, bool is_constant)
{
    for (const me_flag_rule *r = me_flags_modelled; r->flags != NULL; r++) {
        if (r->option != NULL && is_key(a, r->option) &&
            (r->constant != NULL) == is_constant &&
            (!is_constant || strcmp(r->constant, a->value) == 0)) {
            return r;
        }
    }
    return NULL;
}

static void append_without(const char *flag, size_t length, me_str *text)
{
    append_space(text);
    me_str_append(text, "(without ");
    me_str_append_n(text, flag, length);
    me_str_append(text, ")");
}

/** A value that only the lack of flags gives. */
static void append_lack(const me_config *config, const assignment *a,
                        me_str *text)
{
    for (const me_flag_rule *r = me_flags_modelled; r->flags != NULL; r++) {
        char name[96] = "";
        const size_t length = strcspn(r->flags, ": ");
        if (r->option == NULL || !is_key(a, r->option) ||
            length >= sizeof name) {
            continue;
        }
        memcpy(name, r->flags, length);
        if (me_flag_list_has(&config->modelled, name)) {
            append_without(name, length, text);
        }
    }
}

/** What no value of a flag says: no chunks, no layout, no FP8. */
static bool is_lack(const assignment *a)
{
    return *a->value == '\0' || strcmp(a->value, "none") == 0 ||
           (is_key(a, "parallel.virtual_pipeline") &&
            strcmp(a->value, "1") == 0);
}

static void append_flag(const me_config *config, const assignment *a,
                        me_str *text)
{
    const me_flag_rule *constant = find_rule(a, true);
    const me_flag_rule *valued = find_rule(a, false);
    if (is_lack(a) || (constant == NULL && valued == NULL)) {
        append_lack(config, a, text);
        return;
    }
    append_space(text);
    append_name(constant != NULL ? constant : valued, text);
    if (constant == NULL) {
        // A layout has what shells read.
        const bool is_bare = strpbrk(a->value, "|()*") == NULL;
        me_str_printf(text, is_bare ? " %s" : " '%s'", a->value);
    }
    if (is_key(a, "parallel.megatron_fsdp") && strcmp(a->value, "true") == 0) {
        me_str_append(text, " --ckpt-format fsdp_dtensor"); // which it asks for
    }
}

/** Flags of the job's that do not go with what is to be. */
static void append_without_all(const me_config *config,
                               const char *const *flags, size_t n, me_str *text)
{
    for (size_t i = 0; i < n; i++) {
        if (me_flag_list_has(&config->modelled, flags[i])) {
            append_without(flags[i], strlen(flags[i]), text);
        }
    }
}

/** validate_args() and TransformerConfig ask selective recomputation to have
 *  neither method nor number, and full to have no other flag that turns it on. */
static void append_not_recomputed(const me_config *config, me_str *text)
{
    static const char *const of_any[] = {"--recompute-granularity",
                                         "--recompute-activations"};
    static const char *const of_full[] = {"--recompute-method",
                                          "--recompute-num-layers"};
    switch (config->recompute.granularity) {
    case ME_RECOMPUTE_NONE: append_without_all(config, of_any, 2, text); return;
    case ME_RECOMPUTE_FULL:
        append_without_all(config, of_any + 1, 1, text);
        return;
    case ME_RECOMPUTE_SELECTIVE:
        append_without_all(config, of_full, 2, text);
        return;
    }
}

/** All of it in one, since one flag has the modules. */
static void append_recompute(const me_config *config, me_str *text)
{
    const me_recompute_config *r = &config->recompute;

    const struct {
        bool is_on;
        const char *module;
    } modules[] = {
        {r->core_attn, "core_attn"},
        {r->layernorm, "layernorm"},
        {r->mla_up_proj, "mla_up_proj"},
        {r->mlp, "mlp"},
        {r->moe, "moe"},
        {r->moe_act, "moe_act"},
        {r->shared_experts, "shared_experts"},
    };

    if (r->granularity == ME_RECOMPUTE_NONE) {
        append_not_recomputed(config, text);
        return;
    }
    append_space(text);
    if (r->granularity == ME_RECOMPUTE_FULL) {
        me_str_printf(
            text,
            "--recompute-granularity full --recompute-method %s "
            "--recompute-num-layers %d",
            me_choice_word(me_recompute_method_choices, (int)r->method),
            (int)r->num_layers);
        append_not_recomputed(config, text);
        return;
    }
    me_str_append(text,
                  "--recompute-granularity selective --recompute-modules");
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (modules[i].is_on) {
            me_str_printf(text, " %s", modules[i].module);
        }
    }
    append_not_recomputed(config, text);
}

/** Likewise. */
static void append_offload(const me_config *config, me_str *text)
{
    const me_offload_config *o = &config->offload;

    const struct {
        bool is_on;
        const char *module;
    } modules[] = {
        {o->attn_norm, "attn_norm"}, {o->qkv_linear, "qkv_linear"},
        {o->core_attn, "core_attn"}, {o->attn_proj, "attn_proj"},
        {o->mlp_norm, "mlp_norm"},   {o->expert_fc1, "expert_fc1"},
        {o->moe_act, "moe_act"},
    };

    append_space(text);
    me_str_append(text,
                  "--fine-grained-activation-offloading --offload-modules");
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (modules[i].is_on) {
            me_str_printf(text, " %s", modules[i].module);
        }
    }
}

/** By the name that the job has, since PyTorch looks at the older one only where
 *  the newer one is not set; in place of what it has. */
static void append_alloc_conf(const me_config *config, const char *value,
                              me_str *text)
{
    static const char *const names[] = {"PYTORCH_ALLOC_CONF",
                                        "PYTORCH_CUDA_ALLOC_CONF"};
    const bool has_new = me_config_variable(config, names[0]) != NULL;
    const char *name = names[has_new ? 0 : 1];
    append_space(text);
    me_str_printf(text, "%s=%s", name, value);
    if (me_config_variable(config, name) != NULL) {
        append_without(name, strlen(name), text);
    }
}

/** What goes before the command. */
static void append_variables(const me_config *config, const assignment *a,
                             me_str *text)
{
    static const char offload[] = "NVTE_CPU_OFFLOAD_V1";
    if (is_key(a, "offload.fine_grained") &&
        me_config_variable(config, offload) == NULL) {
        append_space(text);
        me_str_printf(text, "%s=1", offload); // Megatron-LM asks for it
    }
    if (is_key(a, "device.alloc_conf")) {
        append_alloc_conf(config, a->value, text);
    }
}

static void append_set(const assignment *a, me_str *text)
{
    const bool is_bare = strpbrk(a->value, "|()* ") == NULL;
    append_space(text);
    me_str_printf(text, is_bare ? "--set %s" : "--set '%s'", a->key);
}

/** What the launcher or memest's own flag says of ranks, where others follow from
 *  the degrees. */
static void append_ranks(const me_config *config, const assignment *a,
                         bool has_flags, me_str *text)
{
    if (me_config_model_parallel(config) ==
        (uint64_t)config->parallel.world_size) {
        return;
    }
    append_space(text);
    me_str_printf(text, has_flags ? "(on %s ranks)" : "--world-size %s",
                  a->value);
}

/** A key of torchtitan's as its flag; one that is true has no value. */
static void append_key(const assignment *a, me_str *text)
{
    append_space(text);
    me_str_append(text, "--");
    me_str_append_n(text, a->key, a->key_length);
    if (strcmp(a->value, "true") != 0) {
        me_str_printf(text, " %s", a->value);
    }
}

static void append_all(const me_config *config, const char *const *sets,
                       int32_t n_sets, me_paste_form form, bool says_ranks,
                       me_str *text)
{
    const bool has_flags = form != ME_PASTE_SET;
    bool has_recompute = false;
    bool has_offload = false;
    me_str words = {0};
    for (int32_t i = 0; has_flags && i < n_sets; i++) {
        const assignment a = split(sets[i]);
        append_variables(config, &a, &words);
    }
    for (int32_t i = 0; i < n_sets; i++) {
        const assignment a = split(sets[i]);
        const bool is_distributed =
            is_key(&a, "recompute.distribute_saved_activations");
        if (is_key(&a, "parallel.world_size")) {
            if (says_ranks) {
                append_ranks(config, &a, has_flags, &words);
            }
        } else if (has_flags && is_of_group(&a, "device.")) {
            continue; // a variable
        } else if (!has_flags) {
            append_set(&a, &words);
        } else if (form == ME_PASTE_TORCHTITAN) {
            append_key(&a, &words);
        } else if (is_of_group(&a, "recompute.") && !is_distributed) {
            if (!has_recompute) {
                append_recompute(config, &words);
            }
            has_recompute = true;
        } else if (is_of_group(&a, "offload.") &&
                   !is_key(&a, "offload.num_layers")) {
            if (!has_offload) {
                append_offload(config, &words);
            }
            has_offload = true;
        } else {
            append_flag(config, &a, &words);
        }
    }
    me_str_append(text, me_str_text(&words));
    me_str_fini_piece(&words, text);
}

void me_paste_append(const me_config *config, const char *const *sets,
                     int32_t n_sets, me_str *text)
{
    append_all(config, sets, n_sets, config->own->paste, true, text);
}

void me_paste_append_flags(const me_config *config, const char *const *sets,
                           int32_t n_sets, me_str *text)
{
    append_all(config, sets, n_sets, ME_PASTE_MEGATRON, false, text);
}
