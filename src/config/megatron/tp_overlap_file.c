/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of `--tp-comm-overlap-cfg`, as initialize_ub() of Transformer Engine
 * 2.17.1 (pytorch/module/base.py) looks at it. */
#include "base/input.h"
#include "base/parse.h"
#include "base/yaml_text.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

#include <string.h>

enum {
    ARENA_BYTES = 4 << 20
};

static const char FLAG[] = "--tp-comm-overlap-cfg";

/** A product that has a user buffer. */
typedef struct overlap_entry {
    const char *name;
    const char *methods; /**< with bars between them: what can run */
    const char *option;  /**< that the method is kept in; NULL: it has one */
    bool is_scattered;   /**< its result is, by any method */
} overlap_entry;

static const overlap_entry entries[] = {
    {"qkv_fprop", "ring_exchange", NULL, false},
    {"qkv_dgrad", "bulk|pipeline|ring_exchange", "parallel.tp_comm_qkv_dgrad",
     false},
    {"qkv_wgrad", "bulk", NULL, true},
    {"proj_fprop", "pipeline|ring_exchange", "parallel.tp_comm_proj_fprop",
     true},
    {"proj_dgrad", "ring_exchange", NULL, false},
    {"proj_wgrad", "external", NULL, false},
    {"fc1_fprop", "ring_exchange", NULL, false},
    {"fc1_dgrad", "bulk|pipeline|ring_exchange", "parallel.tp_comm_fc1_dgrad",
     false},
    {"fc1_wgrad", "bulk", NULL, true},
    {"fc2_fprop", "pipeline|ring_exchange", "parallel.tp_comm_fc2_fprop", true},
    {"fc2_dgrad", "ring_exchange", NULL, false},
    {"fc2_wgrad", "external", NULL, false},
};

/** One reading of a file. */
typedef struct overlap_file {
    me_config *config;
    const char *path;
    me_diag *diag;
    me_yaml yaml;
} overlap_file;

static me_status fail(const overlap_file *f, const me_yaml_leaf *leaf,
                      const char *what, const char *words)
{
    return me_fail_at(f->diag, ME_ERR_CONFIG, f->path, leaf->line,
                      "%.80s = %.40s: %s%s", leaf->path,
                      leaf->n_values == 0 ? "" : leaf->values[0], what, words);
}

/** The entry that a leaf is of; NULL: nobody looks at it. */
static const overlap_entry *entry_of(const me_yaml_leaf *leaf)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const size_t n = strlen(entries[i].name);
        if (strncmp(leaf->path, entries[i].name, n) == 0 &&
            leaf->path[n] == '.' &&
            strcmp(leaf->path + n + 1, leaf->key) == 0) {
            return &entries[i];
        }
    }
    return NULL;
}

static bool is_true(const me_yaml_leaf *leaf)
{
    bool value = false;
    return me_yaml_bool(leaf, &value)
               ? value
               : leaf->n_values == 1 && strcmp(leaf->values[0], "0") != 0;
}

/** What add_ub() takes beside an entry's name. */
static const char keys[] =
    "method is_reduce_scatter num_sm cga_size set_sm_margin num_splits aggregate "
    "atomic_gemm use_ce fp8_buf comm_priority gemm_priority "
    "pipeline_rs_overlap_first_gemm";

/** Does the file give @p entry another method than bulk? */
static bool is_not_bulk(const overlap_file *f, const char *entry)
{
    for (size_t i = 0; i < f->yaml.count; i++) {
        const me_yaml_leaf *leaf = &f->yaml.leaves[i];
        const overlap_entry *e = entry_of(leaf);
        if (e != NULL && strcmp(e->name, entry) == 0 &&
            strcmp(leaf->key, "method") == 0 && leaf->n_values == 1) {
            return strcmp(leaf->values[0], "bulk") != 0;
        }
    }
    return false;
}

/** Does the entry's result go to the ranks that have its rows? */
static bool scatters(const overlap_file *f, const overlap_entry *e)
{
    return strstr(e->name, "_dgrad") != NULL ? is_not_bulk(f, e->name)
                                             : e->is_scattered;
}

static me_status take_method(const overlap_file *f, const me_yaml_leaf *leaf,
                             const overlap_entry *e)
{
    const char *method = leaf->n_values == 1 ? leaf->values[0] : "";
    if (!me_words_have(e->methods, strlen(e->methods), method)) {
        return fail(f, leaf, "must be ", e->methods);
    }
    return e->option == NULL
               ? ME_OK
               : me_config_set(f->config, e->option, method, f->diag);
}

/** What makes buffers smaller that memest counts in whole. */
static me_status note(const overlap_file *f, const char *what, me_effect effect)
{
    return me_config_add_not_modelled(f->config, FLAG, what, effect, f->diag);
}

static const me_effect more = ME_HIGHER(SOME);
static const me_effect less = ME_LOWER(SMALL);

/** Products with counters, and FP8 in the buffer: of a job in FP8 alone. */
static me_status take_switch(const overlap_file *f, const me_yaml_leaf *leaf,
                             const overlap_entry *e)
{
    const bool is_fp8 = f->config->fp8.format != ME_FP8_NONE;
    if (strcmp(leaf->key, "atomic_gemm") == 0 && is_true(leaf)) {
        return is_fp8 ? note(f,
                             "products with counters of their own; without "
                             "them is estimated",
                             more)
                      : fail(f, leaf,
                             "Transformer Engine has such products in FP8 "
                             "alone",
                             "");
    }
    if (strcmp(leaf->key, "fp8_buf") == 0 && is_true(leaf) && is_fp8 &&
        scatters(f, e)) {
        return note(f,
                    "what is scattered goes in FP8; in bfloat16 is "
                    "estimated",
                    less);
    }
    return ME_OK;
}

static me_status take_leaf(const overlap_file *f, const me_yaml_leaf *leaf)
{
    const overlap_entry *e = entry_of(leaf);
    if (e == NULL) {
        return ME_OK;
    }
    if (!me_names_have(keys, leaf->key, strlen(leaf->key))) {
        return fail(f, leaf, "Transformer Engine takes no such key; it has ",
                    keys);
    }
    if ((strcmp(e->name, "qkv_wgrad") == 0 && is_not_bulk(f, "qkv_dgrad")) ||
        (strcmp(e->name, "fc1_wgrad") == 0 && is_not_bulk(f, "fc1_dgrad"))) {
        return fail(f, leaf,
                    "Transformer Engine takes no such entry where the method "
                    "of the same layer's dgrad is not bulk",
                    "");
    }
    if (strcmp(leaf->key, "method") == 0) {
        return take_method(f, leaf, e);
    }
    if (strcmp(leaf->key, "is_reduce_scatter") == 0 &&
        is_true(leaf) != scatters(f, e)) {
        return fail(f, leaf, "must be ", scatters(f, e) ? "1" : "0");
    }
    return take_switch(f, leaf, e);
}

static me_status read_text(overlap_file *f, const me_str *bytes)
{
    me_arena *arena = me_arena_create(ARENA_BYTES, "user buffers in YAML");
    if (arena == NULL) {
        return me_fail(f->diag, ME_ERR_NOMEM, "no memory for %.200s", f->path);
    }
    me_status status = me_yaml_parse(f->path, me_str_text(bytes), bytes->length,
                                     arena, f->diag, &f->yaml);
    for (size_t i = 0; status == ME_OK && i < f->yaml.count; i++) {
        status = take_leaf(f, &f->yaml.leaves[i]);
    }
    me_arena_destroy(arena);
    return status;
}

me_status me_megatron_settle_overlap(me_config *config,
                                     const me_flag_uses *uses, me_diag *diag)
{
    const me_flag_use *use = me_flag_use_find(uses, FLAG);
    if (use == NULL || !config->tp_overlap.is_on) {
        return ME_OK;
    }
    overlap_file f = {.config = config, .path = use->values[0], .diag = diag};
    me_str bytes = {0};
    me_status status = me_input_read(f.path, ME_INPUT_MAX_BYTES, diag, &bytes);
    if (status == ME_OK) {
        status = read_text(&f, &bytes);
    }
    me_str_fini(&bytes);
    return status;
}
