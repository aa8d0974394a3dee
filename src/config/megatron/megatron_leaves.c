/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_leaves.h"

#include "base/parse.h"
#include "config/config_private.h"
#include "config/flags.h"
#include "config/megatron/leaf_flags.h"
#include "config/megatron/leaf_references.h"
#include "config/megatron/megatron_arguments.h"

#include <stdio.h>
#include <string.h>

enum {
    WORDS_MAX = 20000,
    NAMES_SHOWN = 6 /**< of keys that nobody knows */
};

/** Sections of NeMo's whose keys are not those of training: logs, checkpoints and
 *  data that nothing is trained with. */
static const char *const apart[] = {"exp_manager", "checkpoint_callback_params",
                                    "validation_ds", "test_ds", NULL};

/** One reading of a job's leaves. */
typedef struct reading {
    me_config *config;
    const char *where;
    const me_trainer *trainer;
    me_arena *arena;
    me_diag *diag;
    const me_yaml *yaml;
    const char **words; /**< the flags that the leaves stand for */
    int n_words;
    const me_yaml_leaf **leaves; /**< of each word */
    me_str unknown;
    int n_unknown;
    bool has_unknown_value; /**< of a key that is known */
    uint64_t nodes;
    uint64_t per_node;
} reading;

static me_status fail(const reading *r, const me_yaml_leaf *leaf,
                      const char *what)
{
    return me_fail_at(r->diag, ME_ERR_CONFIG, leaf->where, leaf->line,
                      "%.80s: %s", leaf->path, what);
}

static me_status add(reading *r, const me_yaml_leaf *leaf, const char *word)
{
    if (r->n_words == WORDS_MAX) {
        return fail(r, leaf, "more values than a job has");
    }
    r->words[r->n_words] = me_arena_strdup(r->arena, word);
    r->leaves[r->n_words] = leaf;
    return r->words[r->n_words++] != NULL
               ? ME_OK
               : me_fail(r->diag, ME_ERR_NOMEM, "no memory for a job's words");
}

/** `--flag value`, and `--flag=-1e-5`: what begins as a flag does is taken for
 *  none in the same word alone. */
static me_status add_value(reading *r, const me_yaml_leaf *leaf,
                           const char *name, const char *value)
{
    if (value[0] != '-') {
        const me_status status = add(r, leaf, name);
        return status == ME_OK ? add(r, leaf, value) : status;
    }
    me_str word = {0};
    me_str_printf(&word, "%s=%s", name, value);
    const me_status status =
        me_str_status(&word) == ME_OK
            ? add(r, leaf, me_str_text(&word))
            : me_fail(r->diag, ME_ERR_NOMEM, "no memory for a job's words");
    me_str_fini(&word);
    return status;
}

static bool is_quiet_of_trainer(const reading *r, const me_yaml_leaf *leaf)
{
    return r->trainer->quiet != NULL &&
           me_leaf_has_part(leaf->path, r->trainer->quiet);
}

static bool is_quiet(const reading *r, const me_yaml_leaf *leaf)
{
    return me_leaf_has_part(leaf->path, me_yaml_quiet) ||
           is_quiet_of_trainer(r, leaf);
}

/** Is it a flag that means the same to this trainer? What the trainer has for its
 *  own is not a fork's flag that has the same name. */
static bool find_flag(const reading *r, const me_yaml_leaf *leaf,
                      const char *name, me_flag *flag)
{
    return me_leaf_flag_find(name, flag) &&
           !(flag->is_of_fork && is_quiet_of_trainer(r, leaf));
}

/** `AttnBackend.auto` and `torch.bfloat16` are what stands behind the dot, where
 *  a flag takes words. */
static const char *last_part(const char *value)
{
    const char *dot = strrchr(value, '.');
    return dot == NULL || (dot[1] >= '0' && dot[1] <= '9') || dot[1] == '\0' ||
                   strchr(value, '/') != NULL
               ? value
               : dot + 1;
}

/** The row of @p fields for the leaf; @p value NULL: whatever it is. */
static const me_yaml_field *find_among(const me_yaml_field *fields,
                                       const me_yaml_leaf *leaf,
                                       const char *value)
{
    for (const me_yaml_field *f = fields; f != NULL && f->key != NULL; f++) {
        if (me_leaf_is_named(leaf, f->key) &&
            (value == NULL || f->value == NULL ||
             me_words_have(f->value, strlen(f->value), value))) {
            return f;
        }
    }
    return NULL;
}

/** The trainer's own row before that of all. */
static const me_yaml_field *
find_field(const reading *r, const me_yaml_leaf *leaf, const char *value)
{
    const me_yaml_field *own = find_among(r->trainer->fields, leaf, value);
    return own != NULL ? own : find_among(me_yaml_fields, leaf, value);
}

/** Does the leaf stand for a flag that takes any text, such as a path? */
static bool is_text(const reading *r, const me_yaml_leaf *leaf)
{
    const me_yaml_field *field = find_field(r, leaf, NULL);
    me_flag flag = {.values = NULL};
    return me_leaf_is_text(leaf) ||
           (field != NULL && me_leaf_flag_find(field->flags, &flag) &&
            flag.values != NULL && flag.values[0] == 's');
}

static me_status resolve(const reading *r, const me_yaml_leaf *leaf,
                         const char **value_out)
{
    return me_leaf_resolve(r->yaml, leaf, is_text(r, leaf), r->arena, value_out,
                           r->diag);
}

/** A list as one value, as the flags take it. */
static me_status join(const reading *r, const me_yaml_leaf *leaf,
                      const char **value_out)
{
    const bool is_window = strcmp(leaf->key, "window_size") == 0;
    me_str text = {0};
    me_str_append(&text, is_window ? "" : "[");
    for (int i = 0; i < leaf->n_values; i++) {
        me_str_printf(&text, "%s%s", i == 0 ? "" : ",", leaf->values[i]);
    }
    me_str_append(&text, is_window ? "" : "]");
    *value_out = me_str_status(&text) == ME_OK
                     ? me_arena_strdup(r->arena, me_str_text(&text))
                     : NULL;
    me_str_fini(&text);
    return *value_out != NULL
               ? ME_OK
               : me_fail(r->diag, ME_ERR_NOMEM, "no memory for a list");
}

/** The flag with its values, as many as it takes. */
static me_status add_valued(reading *r, const me_yaml_leaf *leaf,
                            const char *name, const me_flag *flag)
{
    const bool is_many = flag->values[0] == '+' || flag->values[0] == '*' ||
                         flag->values[0] == '3';
    const bool is_word = strcspn(flag->values + is_many, " ") > 1;
    const char *const *words = NULL;
    const int n = is_many ? me_leaf_words(leaf, r->arena, &words) : 0;
    if (n > 0) {
        me_status status = add(r, leaf, name);
        for (int i = 0; status == ME_OK && i < n; i++) {
            status = add(r, leaf, words[i]);
        }
        return status;
    }
    const char *value = NULL;
    const me_status status =
        leaf->is_list ? join(r, leaf, &value) : resolve(r, leaf, &value);
    return status == ME_OK
               ? add_value(r, leaf, name, is_word ? last_part(value) : value)
               : status;
}

/** As me_yaml_bool(), and numbers, which Python takes for one as well. */
static bool find_switch(const me_yaml_leaf *leaf, bool *value_out)
{
    const char *value = leaf->n_values == 1 ? leaf->values[0] : "";
    if (me_yaml_bool(leaf, value_out)) {
        return true;
    }
    *value_out = strcmp(value, "1") == 0;
    return *value_out || strcmp(value, "0") == 0;
}

/** Tell of a leaf that nobody knows, or whose value nobody knows. */
static void tell_unknown(reading *r, const me_yaml_leaf *leaf,
                         const char *value)
{
    r->has_unknown_value |= value != NULL;
    if (r->n_unknown++ < NAMES_SHOWN) {
        me_str_append(&r->unknown, r->n_unknown == 1 ? "" : ", ");
        me_str_append_clean(&r->unknown, leaf->key, strlen(leaf->key));
        if (value != NULL) {
            me_str_append(&r->unknown, " = ");
            me_str_append_clean(&r->unknown, value, strlen(value));
        }
    }
}

static void keep_unknown(reading *r, const me_yaml_leaf *leaf)
{
    char name[ME_LEAF_FLAG_BYTES];
    me_flag flag;
    bool value = false;
    me_leaf_flag_name(leaf, name);
    if (is_quiet(r, leaf) || find_flag(r, leaf, name, &flag) ||
        (me_yaml_bool(leaf, &value) && !value)) {
        return;
    }
    tell_unknown(r, leaf, NULL);
}

/** Does the job depend on the key's value? */
static bool matters(const reading *r, const me_yaml_leaf *leaf)
{
    char name[ME_LEAF_FLAG_BYTES];
    me_flag flag;
    me_leaf_flag_name(leaf, name);
    const me_yaml_field *field = find_field(r, leaf, NULL);
    return field != NULL ? !(field->value == NULL && field->flags[0] == '\0')
                         : find_flag(r, leaf, name, &flag) &&
                               flag.kind != ME_FLAG_NO_EFFECT;
}

/** A key that is a flag's name, or the opposite of one. */
static me_status take_flag(reading *r, const me_yaml_leaf *leaf)
{
    char name[ME_LEAF_FLAG_BYTES];
    char negation[ME_LEAF_FLAG_BYTES];
    me_flag flag = {.values = NULL};
    bool is_true = false;
    me_leaf_flag_name(leaf, name);
    const bool is_switch = find_switch(leaf, &is_true);
    const bool is_flag = find_flag(r, leaf, name, &flag);
    const bool has_no = me_leaf_flag_negation(name, negation);
    if (is_flag && flag.values != NULL && flag.values[0] != '\0' &&
        flag.values[0] != ' ') {
        return me_yaml_bool(leaf, &is_true) && !is_true
                   ? ME_OK
                   : add_valued(r, leaf, name, &flag);
    }
    if (!is_flag && !has_no) {
        keep_unknown(r, leaf);
        return ME_OK;
    }
    if (!is_switch) {
        return fail(r, leaf, "must be true or false");
    }
    if (is_true) {
        return is_flag ? add(r, leaf, name) : ME_OK;
    }
    return has_no ? add(r, leaf, negation) : ME_OK;
}

/** The flags that a field stands for. */
static me_status add_flags(reading *r, const me_yaml_leaf *leaf,
                           const char *flags)
{
    me_status status = ME_OK;
    size_t n = 0;
    for (const char *at = me_name_next(&flags, &n);
         status == ME_OK && at != NULL; at = me_name_next(&flags, &n)) {
        char name[ME_LEAF_FLAG_BYTES];
        me_flag flag = {.values = NULL};
        (void)snprintf(name, sizeof name, "%.*s", (int)n, at);
        const bool is_known = me_leaf_flag_find(name, &flag);
        const bool is_valued = is_known && flag.values != NULL &&
                               flag.values[0] != '\0' && flag.values[0] != ' ';
        status =
            is_valued ? add_valued(r, leaf, name, &flag) : add(r, leaf, name);
    }
    return status;
}

/** A field, and what of it is not modelled. */
static me_status take_field(reading *r, const me_yaml_leaf *leaf,
                            const me_yaml_field *field)
{
    const bool has_path =
        strchr(field->key, '.') != NULL && strchr(field->key, '|') == NULL;
    const char *name = has_path ? field->key : leaf->key;
    const me_status status =
        field->note == NULL
            ? ME_OK
            : me_config_add_not_modelled(r->config, name, field->note,
                                         field->effect, r->diag);
    return status == ME_OK ? add_flags(r, leaf, field->flags) : status;
}

/** A key of what stands around the model: one that has a flag's name is none. */
static me_status take_apart(reading *r, const me_yaml_leaf *leaf)
{
    bool is_true = false;
    return me_leaf_is_named(leaf, "ema.enable") &&
                   me_yaml_bool(leaf, &is_true) && is_true
               ? me_config_add_not_modelled(r->config, "ema.enable",
                                            "an average of the weights",
                                            (me_effect)ME_HIGHER(ANY), r->diag)
               : ME_OK;
}

/** A list of nothing is not null, for which TransformerConfig takes core_attn: no
 *  module is recomputed. No flag can say so. */
static bool is_no_module(const me_yaml_leaf *leaf)
{
    return leaf->is_list && leaf->n_values == 0 &&
           strcmp(leaf->key, "recompute_modules") == 0;
}

static me_status take(reading *r, const me_yaml_leaf *leaf)
{
    bool is_true = false;
    const char *value = "";
    if (is_no_module(leaf)) {
        return me_config_set(r->config, "recompute.core_attn", "false",
                             r->diag);
    }
    if (me_yaml_is_null(leaf) || leaf->n_values == 0 ||
        me_leaf_ends(leaf->path, "_target_")) {
        return ME_OK;
    }
    if (me_leaf_is_variable(leaf)) {
        return me_leaf_take_variable(r->config, leaf, r->diag);
    }
    if (me_leaf_has_part(leaf->path, apart)) {
        return take_apart(r, leaf);
    }
    if (!leaf->is_list &&
        (matters(r, leaf) || strstr(leaf->values[0], "${") == NULL)) {
        const me_status status = resolve(r, leaf, &value);
        if (status != ME_OK) {
            return status;
        }
    } else if (!leaf->is_list) {
        if (find_field(r, leaf, NULL) == NULL) {
            keep_unknown(r, leaf); // a field that does not matter is known
        }
        return ME_OK;
    }
    if (me_yaml_bool(leaf, &is_true)) {
        value = is_true ? "true" : "false";
    }
    const me_yaml_field *field = find_field(r, leaf, last_part(value));
    if (field == NULL && find_field(r, leaf, NULL) != NULL &&
        !me_leaf_is_flag(leaf)) {
        tell_unknown(r, leaf, value); // a value that no row has
        return ME_OK;
    }
    return field == NULL ? take_flag(r, leaf) : take_field(r, leaf, field);
}

/** Of a flag that the reader of flags refuses: the line of its key. */
static void place(const reading *r, me_diag *diag)
{
    const char *where = r->where;
    if (diag->where[0] != '\0') {
        return;
    }
    for (int i = 0; i < r->n_words; i++) {
        const size_t n = strcspn(r->words[i], "=");
        if (strncmp(r->words[i], "--", 2) == 0 &&
            strncmp(diag->text, r->words[i], n) == 0 &&
            strchr(" :=", diag->text[n]) != NULL) {
            diag->line = r->leaves[i]->line;
            where = r->leaves[i]->where;
        }
    }
    (void)snprintf(diag->where, sizeof diag->where, "%s", where);
}

/** Keys that nobody knows, of which the file may expect anything. */
static me_status note_unknown(reading *r)
{
    const me_effect some = ME_EITHER(SOME);
    const me_effect any = ME_EITHER(ANY);
    const me_effect effect = r->has_unknown_value ? any : some;
    char note[256];
    if (r->n_unknown == 0) {
        return ME_OK;
    }
    (void)snprintf(note, sizeof note, "%.200s: no flags of Megatron-LM's",
                   r->where);
    if (r->n_unknown > NAMES_SHOWN) {
        me_str_printf(&r->unknown, " and %d more", r->n_unknown - NAMES_SHOWN);
    }
    return me_config_add_not_modelled(r->config, me_str_text(&r->unknown), note,
                                      effect, r->diag);
}

/** Is there a leaf of that key? */
static bool has_key(const reading *r, const char *key)
{
    for (size_t i = 0; key != NULL && i < r->yaml->count; i++) {
        if (me_leaf_is_named(&r->yaml->leaves[i], key)) {
            return true;
        }
    }
    return false;
}

/** A leaf in place of one that is not there. */
static me_status add_default(reading *r, const me_leaf_default *row)
{
    if (has_key(r, row->key) || has_key(r, row->unless) ||
        (row->only != NULL && !has_key(r, row->only))) {
        return ME_OK;
    }
    me_yaml_leaf *leaf = me_arena_alloc(r->arena, 1, sizeof *leaf);
    const char **value = me_arena_alloc(r->arena, 1, sizeof *value);
    if (leaf == NULL || value == NULL) {
        return me_fail(r->diag, ME_ERR_NOMEM, "no memory for a job's words");
    }
    *value = row->value;
    *leaf = (me_yaml_leaf){
        .path = row->key,
        .key = row->key,
        .values = value,
        .n_values = 1,
        .is_plain = true,
        .where = r->where,
    };
    return take(r, leaf);
}

static me_status read_leaves(reading *r)
{
    me_status status = ME_OK;
    const me_leaf_default *row = r->trainer->defaults;
    for (size_t i = 0; status == ME_OK && i < r->yaml->count; i++) {
        status = take(r, &r->yaml->leaves[i]);
    }
    for (; status == ME_OK && row != NULL && row->key != NULL; row++) {
        status = add_default(r, row);
    }
    if (status == ME_OK && r->n_words == 0) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, 0,
                          "has no key that is a flag of Megatron-LM's, such as "
                          "num_layers");
    }
    if (status == ME_OK) {
        r->config->own->has_leaves = true;
        status = me_megatron_read(r->config, r->n_words, r->words, r->diag);
        if (status != ME_OK) {
            place(r, r->diag);
        }
    }
    return status == ME_OK ? note_unknown(r) : status;
}

me_status me_megatron_read_leaves(me_config *config, const char *where,
                                  const me_yaml *yaml,
                                  const me_trainer *trainer, me_arena *arena,
                                  me_diag *diag)
{
    reading r = {
        .config = config,
        .where = where,
        .trainer = trainer,
        .arena = arena,
        .diag = diag,
        .yaml = yaml,
        .words = me_arena_alloc(arena, WORDS_MAX, sizeof *r.words),
        .leaves = me_arena_alloc(arena, WORDS_MAX, sizeof *r.leaves),
    };
    const me_status status =
        r.words == NULL || r.leaves == NULL
            ? me_fail(diag, ME_ERR_NOMEM, "no memory for a job's words")
            : read_leaves(&r);
    me_str_fini(&r.unknown);
    return status;
}
