/* SPDX-License-Identifier: BSD-3-Clause */
/* A key of torchtitan's that is set after the job was read. The job is made again
 * from all of its keys, since the model is written from them; what was set of
 * memest's own options since stays. */
#include "base/alloc.h"
#include "config/config_private.h"
#include "config/torchtitan/torchtitan.h"
#include "config/torchtitan/torchtitan_model.h"

#include <stdio.h>
#include <string.h>

/** An option of memest's that was set since; the arena's. */
typedef struct later {
    char *name;
    char *value;
    struct later *next;
} later;

/** What the keys said, and the job as it was before they were applied. Texts are
 *  the job's arena's. */
struct me_titan_said {
    me_config *before; /**< owned */
    int versions;
    const char *told;
    me_titan_value values[ME_TITAN_FIELDS];
    me_torchtitan_job job;
    int32_t n_assumed; /**< assumptions when they had been applied */
    later *first;
    later **last;
};

static me_status no_memory(me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM, "no memory for torchtitan's keys");
}

static bool copy_text(me_arena *arena, const char *from, const char **to)
{
    *to = from == NULL ? NULL : me_arena_strdup(arena, from);
    return from == NULL || *to != NULL;
}

static bool copy_values(me_arena *arena, const me_titan_value *from,
                        me_titan_value *to)
{
    bool is_good = true;
    for (int i = 0; i < ME_TITAN_FIELDS; i++) {
        to[i].line = from[i].line;
        is_good = copy_text(arena, from[i].text, &to[i].text) && is_good;
        is_good = copy_text(arena, from[i].name, &to[i].name) && is_good;
    }
    return is_good;
}

static bool add_later(me_config *config, const char *name, const char *value)
{
    me_arena *arena = config->own->text;
    later *l = me_arena_alloc(arena, 1, sizeof *l);
    if (l == NULL) {
        return false;
    }
    l->name = me_arena_strdup(arena, name);
    l->value = me_arena_strdup(arena, value);
    l->next = NULL;
    struct me_titan_said *said = config->own->titan;
    *(said->first == NULL ? &said->first : said->last) = l;
    said->last = &l->next;
    return l->name != NULL && l->value != NULL;
}

/** @param before  is taken over, on failure as well */
static struct me_titan_said *create(me_config *config, me_config *before,
                                    int versions, const char *told,
                                    const me_titan_value *values)
{
    struct me_titan_said *said = me_alloc(1, sizeof *said, "config.torchtitan");
    if (said == NULL || before == NULL) {
        me_free(said);
        me_config_destroy(before);
        return NULL;
    }
    said->before = before;
    said->versions = versions;
    if (!copy_text(config->own->text, told, &said->told) ||
        !copy_values(config->own->text, values, said->values)) {
        me_titan_said_destroy(said);
        return NULL;
    }
    return said;
}

void me_titan_said_destroy(struct me_titan_said *said)
{
    if (said != NULL) {
        me_config_destroy(said->before);
        me_free(said);
    }
}

bool me_titan_said_copy(me_config *to, const struct me_titan_said *from)
{
    if (from == NULL) {
        return true;
    }
    to->own->titan = create(to, me_config_clone(from->before), from->versions,
                            from->told, from->values);
    if (to->own->titan == NULL) {
        return false;
    }
    to->own->titan->job = from->job;
    to->own->titan->n_assumed = from->n_assumed;
    bool is_good = true;
    for (const later *l = from->first; l != NULL && is_good; l = l->next) {
        is_good = add_later(to, l->name, l->value);
    }
    return is_good;
}

me_status me_titan_said_note(me_config *config, const char *name,
                             const char *value, me_diag *diag)
{
    return config->own->titan == NULL || add_later(config, name, value)
               ? ME_OK
               : no_memory(diag);
}

me_status me_titan_keep_and_apply(me_titan_job *job)
{
    me_config *config = job->config;
    struct me_titan_said *said = create(config, me_config_clone(config),
                                        job->versions, job->told, job->values);
    if (said == NULL) {
        return no_memory(job->diag);
    }
    const me_status status = me_titan_apply(job, &said->job);
    if (status != ME_OK) {
        me_titan_said_destroy(said);
        return status;
    }
    me_titan_said_destroy(config->own->titan); // of a file before
    said->n_assumed = config->assumptions.count;
    config->own->titan = said;
    return ME_OK;
}

/** "table.key" in its parts. @return false: it is not one */
static bool split_name(const char *name, char table[80], const char **key_out)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL || (size_t)(dot - name) >= 80) {
        return false;
    }
    memcpy(table, name, (size_t)(dot - name));
    table[dot - name] = '\0';
    *key_out = dot + 1;
    return true;
}

bool me_torchtitan_has_key(const me_config *config, const char *name)
{
    char table[80];
    const char *key = NULL;
    return config->own->titan != NULL && split_name(name, table, &key) &&
           me_titan_rule_find(table, key) != NULL;
}

const me_torchtitan_job *me_torchtitan_of(const me_config *config)
{
    return config->own->titan == NULL ? NULL : &config->own->titan->job;
}

/** What was set of memest's options since the keys were read, and what was
 *  assumed. */
static me_status set_later(const me_config *config, me_config *again,
                           me_diag *diag)
{
    const struct me_titan_said *said = config->own->titan;
    me_status status = ME_OK;
    for (const later *l = said->first; l != NULL && status == ME_OK;
         l = l->next) {
        status = me_config_set(again, l->name, l->value, diag);
    }
    for (int32_t i = said->n_assumed;
         i < config->assumptions.count && status == ME_OK; i++) {
        const me_flag_note *note = &config->assumptions.flags[i];
        status = me_flag_list_add(again, &again->assumptions, note->flag,
                                  note->note, diag);
    }
    return status;
}

me_status me_torchtitan_set(me_config *config, const char *name,
                            const char *value, me_diag *diag)
{
    const struct me_titan_said *said = config->own->titan;
    me_config *again = me_config_clone(said->before);
    if (again == NULL) {
        return no_memory(diag);
    }
    char table[80];
    const char *key = NULL;
    me_titan_job job = {.config = again,
                        .versions = said->versions,
                        .told = said->told,
                        .diag = diag};
    memcpy(job.values, said->values, sizeof job.values);
    me_status status =
        split_name(name, table, &key)
            ? me_titan_take_text(&job, table, key, name, value)
            : me_fail(diag, ME_ERR_INTERNAL, "no key: %.80s", name);
    if (status == ME_OK) {
        status = me_titan_keep_and_apply(&job);
    }
    if (status == ME_OK) {
        status = set_later(config, again, diag);
    }
    if (status == ME_OK) {
        const me_config other = *config;
        *config = *again;
        *again = other;
    }
    me_config_destroy(again);
    return status;
}
