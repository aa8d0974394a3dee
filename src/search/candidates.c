/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/candidates.h"

#include "base/alloc.h"
#include "config/options.h"
#include "config/paste.h"
#include "search/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES_MAX = 1 << 20
};

const char *me_search_end_name(me_search_end end)
{
    static const char *const names[] = {
#define ME_SEARCH_NAME(constant, name, what) [constant] = (name),
        ME_SEARCH_END_LIST(ME_SEARCH_NAME)
#undef ME_SEARCH_NAME
    };
    return names[end];
}

const char *me_search_end_text(me_search_end end)
{
    static const char *const texts[] = {
#define ME_SEARCH_TEXT(constant, name, what) [constant] = (what),
        ME_SEARCH_END_LIST(ME_SEARCH_TEXT)
#undef ME_SEARCH_TEXT
    };
    return texts[end];
}

/** An axis that is being decided. */
typedef struct level {
    me_space_words words; /**< of the axis, after those before it */
    uint32_t next;        /**< that is tried next */
} level;

/** What is chosen so far. */
typedef struct draft {
    const me_space *space;
    const me_config *job;
    me_degrees degrees;
    level *levels; /**< one for each axis */
} draft;

static void enter(draft *d, uint32_t depth)
{
    const me_space_axis *axis = &d->space->axes[depth];
    level *at = &d->levels[depth];
    at->next = 0;
    at->words.count = 0;
    at->words.is_full = false;
    if (axis->words != NULL) {
        at->words = *axis->words;
    } else {
        axis->kind->fill(d->job, &d->degrees, &at->words);
    }
}

/** Take a level's next word, or none of an axis without any. @return false: they
 *  are all done */
static bool advance(draft *d, uint32_t depth)
{
    const me_space_axis *axis = &d->space->axes[depth];
    level *at = &d->levels[depth];
    const uint32_t least = at->words.count == 0 ? 1 : at->words.count;
    if (at->next >= least) {
        return false;
    }
    at->next++;
    if (axis->kind != NULL && axis->kind->degree != SIZE_MAX &&
        at->words.count > 0) {
        const long value = strtol(at->words.items[at->next - 1], NULL, 10);
        const int32_t degree =
            value < 1 || value > INT32_MAX ? 1 : (int32_t)value;
        memcpy((char *)&d->degrees + axis->kind->degree, &degree,
               sizeof degree);
    }
    return true;
}

static const char *title_of(const me_space_axis *axis)
{
    const char *dot = strrchr(axis->name, '.');
    return axis->kind != NULL ? axis->kind->title
           : dot == NULL      ? axis->name
                              : dot + 1;
}

static me_status add(const draft *d, const me_schedule_choice *choice,
                     me_diag *diag, me_candidates *candidates)
{
    me_candidates *c = candidates;
    me_str assignments = {0};
    me_str layout = {0};
    for (uint32_t i = 0; i < d->space->n_axes; i++) {
        const level *at = &d->levels[i];
        if (at->words.count > 0) {
            const char *word = at->words.items[at->next - 1];
            (void)me_space_axis_assign(&d->space->axes[i], d->job, word,
                                       &assignments);
            me_str_printf(&layout, "%s%s=%s", layout.length == 0 ? "" : " ",
                          title_of(&d->space->axes[i]), word);
        }
    }
    me_candidate *items = me_grow(c->items, c->count, &c->capacity,
                                  sizeof *c->items, "candidates");
    if (items == NULL || me_str_status(&assignments) != ME_OK ||
        me_str_status(&layout) != ME_OK) {
        c->items = items == NULL ? c->items : items;
        me_str_fini(&assignments);
        me_str_fini(&layout);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for candidates");
    }
    c->items = items;
    items[c->count++] = (me_candidate){
        .assignments = assignments.text,
        .layout = layout.text,
        .choice = choice,
        .world = d->degrees.world,
    };
    return ME_OK;
}

static me_status add_all(const draft *d, me_diag *diag,
                         me_candidates *candidates)
{
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < candidates->n_choices; i++) {
        status = add(d, &candidates->choices[i], diag, candidates);
    }
    return status == ME_OK && candidates->count > CANDIDATES_MAX
               ? me_fail(diag, ME_ERR_CONFIG,
                         "more than %d candidates: narrow them with --space",
                         CANDIDATES_MAX)
               : status;
}

me_status me_candidates_fill(const me_space *space, const me_config *job,
                             me_diag *diag, me_candidates *candidates)
{
    draft d = {.space = space, .job = job, .degrees = space->job};
    d.levels = me_alloc(space->n_axes, sizeof *d.levels, "candidates.levels");
    if (d.levels == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for candidates");
    }
    me_status status = ME_OK;
    uint32_t depth = 0;
    enter(&d, 0);
    for (bool is_done = false; status == ME_OK && !is_done;) {
        if (!advance(&d, depth)) {
            is_done = depth == 0;
            depth -= is_done ? 0 : 1;
        } else if (depth + 1 == space->n_axes) {
            status = add_all(&d, diag, candidates);
        } else {
            enter(&d, ++depth);
        }
    }
    me_free(d.levels);
    return status;
}

void me_candidates_fini(me_candidates *candidates)
{
    for (uint32_t i = 0; i < candidates->count; i++) {
        me_free(candidates->items[i].assignments);
        me_free(candidates->items[i].layout);
        me_free(candidates->items[i].reason);
    }
    me_free(candidates->items);
    candidates->items = NULL;
    candidates->count = 0;
}

static me_status parse_variant(const me_candidate *candidate, me_diag *diag,
                               me_variant *variant_out)
{
    me_str text = {0};
    me_str_printf(&text, "candidate:%s", candidate->assignments);
    *variant_out = (me_variant){.n_sets = 0};
    const me_status status =
        me_str_status(&text) == ME_OK
            ? me_variant_parse(me_str_text(&text), diag, variant_out)
            : me_fail(diag, me_str_status(&text),
                      "no host memory for a candidate");
    me_str_fini(&text);
    return status;
}

/** The job with what the candidate sets, not finished.
 *  @param config_out  owned by the caller, also on failure */
static me_status vary(const me_candidate *candidate, const me_config *job,
                      me_diag *diag, me_config **config_out)
{
    me_variant variant;
    *config_out = me_config_clone(job);
    if (*config_out == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the job");
    }
    me_status status = parse_variant(candidate, diag, &variant);
    if (status == ME_OK) {
        status = me_variant_apply(&variant, *config_out, diag);
    }
    me_variant_fini(&variant);
    return status;
}

me_status me_candidate_finish(const me_candidate *candidate,
                              const me_config *job, me_diag *diag,
                              me_config **config_out)
{
    me_config *config = NULL;
    me_status status = vary(candidate, job, diag, &config);
    if (status == ME_OK) {
        status = me_schedule_choice_apply(candidate->choice, config, diag);
    }
    if (status == ME_OK) {
        status = me_config_finish(config, 1, diag);
    }
    if (status != ME_OK) {
        me_config_destroy(config);
        return status;
    }
    *config_out = config;
    return ME_OK;
}

me_status me_candidate_flags(const me_candidate *candidate,
                             const me_config *config, me_diag *diag,
                             me_str *text)
{
    const char *sets[ME_VARIANT_MAX_SETS + 1];
    char chunks[64] = "";
    me_variant variant;
    me_status status = parse_variant(candidate, diag, &variant);
    int32_t n = 0;
    for (; status == ME_OK && n < variant.n_sets; n++) {
        sets[n] = variant.sets[n];
    }
    if (candidate->choice->schedule != NULL) {
        (void)snprintf(chunks, sizeof chunks, "parallel.virtual_pipeline=%d",
                       (int)config->parallel.virtual_pipeline);
        sets[n++] = chunks;
    }
    if (status == ME_OK && me_search_rules_of(config->framework)->has_flags) {
        me_paste_append_flags(config, sets, n, text);
        status = me_str_status(text);
    }
    me_variant_fini(&variant);
    return status;
}

/** Is the option of an assignment among @p options? */
static bool is_of(const char *set, const char *const *options)
{
    const size_t n = strcspn(set, "=");
    for (int i = 0; options[i] != NULL; i++) {
        if (strcspn(options[i], "=") == n && strncmp(options[i], set, n) == 0) {
            return true;
        }
    }
    return false;
}

/** Append what a candidate sets but for @p options, names or assignments; an
 *  empty text if that is nothing. */
static me_status append_sets(const me_variant *variant,
                             const char *const *options, me_diag *diag,
                             me_str *key)
{
    me_str_append(key, "");
    for (int32_t i = 0; i < variant->n_sets; i++) {
        if (!is_of(variant->sets[i], options)) {
            me_str_printf(key, "%s ", variant->sets[i]);
        }
    }
    return me_str_status(key) == ME_OK
               ? ME_OK
               : me_fail(diag, me_str_status(key),
                         "no host memory for a candidate");
}

me_status me_candidate_probe_key(const me_candidate *candidate,
                                 const me_config *job, me_probe_kind kind,
                                 me_diag *diag, bool *has_out, me_str *key)
{
    const me_probe_rules *rules =
        &me_search_rules_of(job->framework)->probes[kind];
    me_variant variant;
    me_status status = parse_variant(candidate, diag, &variant);
    const bool has_probe = status == ME_OK && rules->has != NULL &&
                           rules->has(job, candidate->choice, &variant);
    if (has_probe) {
        status = append_sets(&variant, rules->sets, diag, key);
    }
    me_variant_fini(&variant);
    if (status == ME_OK) {
        *has_out = has_probe;
    }
    return status;
}

me_status me_candidate_like_key(const me_candidate *candidate,
                                const me_config *job, me_diag *diag,
                                me_str *key)
{
    const me_schedule_choice *choice = candidate->choice;
    me_variant variant;
    me_status status = parse_variant(candidate, diag, &variant);
    me_str_printf(key, "%s ", choice->schedule == NULL ? "" : choice->name);
    if (status == ME_OK) {
        status = append_sets(&variant,
                             me_search_rules_of(job->framework)->like_options,
                             diag, key);
    }
    me_variant_fini(&variant);
    return status;
}

me_status me_candidate_probe(const me_candidate *candidate,
                             const me_config *job, me_probe_kind kind,
                             int32_t n_layers, me_diag *diag,
                             me_config **config_out)
{
    const me_probe_rules *rules =
        &me_search_rules_of(job->framework)->probes[kind];
    me_config *config = NULL;
    me_status status = vary(candidate, job, diag, &config);
    for (int i = 0; status == ME_OK && rules->sets[i] != NULL; i++) {
        status = me_config_set_assignment(config, rules->sets[i], diag);
    }
    if (status == ME_OK) {
        status = rules->set(config, n_layers, diag);
    }
    if (status != ME_OK) {
        me_config_destroy(config);
        return status;
    }
    *config_out = config;
    return ME_OK;
}

bool me_candidate_is_reason(me_status status)
{
    return status == ME_ERR_CONFIG || status == ME_ERR_UNSUPPORTED ||
           status == ME_ERR_MISMATCH || status == ME_ERR_OVERFLOW;
}
