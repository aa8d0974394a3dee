/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/variant.h"

#include "base/alloc.h"
#include "base/clean.h"
#include "base/parse.h"
#include "config/options.h"
#include "config/schedule_choice.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_CHUNKS = 2 /* of schedules that need more than one */
};

static me_status copy_name(const char *what, const char *text, size_t length,
                           me_diag *diag, char name[ME_VARIANT_NAME])
{
    if (length >= ME_VARIANT_NAME) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: a name of %zu characters; at most %d fit", what,
                       length, ME_VARIANT_NAME - 1);
    }
    memcpy(name, text, length);
    name[length] = '\0';
    me_text_clean(name); // it goes into every format
    return ME_OK;
}

/** Assignments that are their own name. Where they are longer than a name they
 *  are cut, and end with a digest (FNV-1a) of all of them, so that two of them
 *  stay two. */
static void name_after(const char *text, char name[ME_VARIANT_NAME])
{
    const size_t most = ME_VARIANT_NAME - sizeof "...12345678";
    size_t length = strlen(text);
    if (length < ME_VARIANT_NAME) {
        memcpy(name, text, length + 1);
    } else {
        uint32_t digest = UINT32_C(2166136261);
        for (size_t i = 0; i < length; i++) {
            digest = (digest ^ (unsigned char)text[i]) * UINT32_C(16777619);
        }
        for (length = most; ((unsigned char)text[length] & 0xC0) == 0x80;) {
            length--; // not within a character
        }
        (void)snprintf(name, ME_VARIANT_NAME, "%.*s...%08" PRIx32, (int)length,
                       text, digest);
    }
    me_text_clean(name);
}

static me_status parse_chunks(const char *text, const char *chunks,
                              me_diag *diag, int32_t *chunks_out)
{
    uint64_t number = 0;
    if (me_parse_u64(chunks, &number) != ME_OK || number == 0 ||
        number > INT32_MAX) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--schedule %s: \"%s\" is no number of chunks; "
                       "NAME or NAME:CHUNKS is right, such as interleaved:2",
                       text, chunks);
    }
    *chunks_out = (int32_t)number;
    return ME_OK;
}

me_status me_schedule_choice_parse(const char *text, me_diag *diag,
                                   me_schedule_choice *choice_out)
{
    const char *colon = strchr(text, ':');
    const size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    char name[ME_VARIANT_NAME];
    *choice_out = (me_schedule_choice){.schedule = NULL};
    me_status status = copy_name("--schedule", text, length, diag, name);
    if (status == ME_OK) {
        status =
            me_schedule_named("--schedule", name, diag, &choice_out->schedule);
    }
    if (status == ME_OK && colon != NULL) {
        status = parse_chunks(text, colon + 1, diag, &choice_out->chunks);
    }
    if (status == ME_OK) {
        (void)snprintf(choice_out->name, sizeof choice_out->name, "%s%s",
                       choice_out->schedule->name, colon == NULL ? "" : colon);
    }
    return status;
}

static bool is_key(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_' || c == '.';
}

/** Does an assignment begin here? */
static bool begins_assignment(const char *text)
{
    const char *end = text;
    while (is_key(*end)) {
        end++;
    }
    return end > text && *end == '=';
}

/** Where the assignment ends: at the comma before the next one, or the end. */
static const char *end_of_assignment(const char *text)
{
    while (*text != '\0' && !(*text == ',' && begins_assignment(text + 1))) {
        text++;
    }
    return text;
}

/** A text of the variant's own. */
static char *copy_text(const char *text, size_t length, me_diag *diag)
{
    char *copy = me_alloc(length + 1, 1, "variant.text");
    if (copy == NULL) {
        (void)me_fail(diag, ME_ERR_NOMEM, "no host memory for a variant");
        return NULL;
    }
    memcpy(copy, text, length);
    return copy;
}

static me_status add_set(const char *text, size_t length, me_diag *diag,
                         me_variant *variant)
{
    if (variant->n_sets == ME_VARIANT_MAX_SETS) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--variant: more than %d assignments in one",
                       ME_VARIANT_MAX_SETS);
    }
    const size_t key = strcspn(text, "=") + 1;
    for (int32_t i = 0; i < variant->n_sets; i++) {
        if (strncmp(variant->sets[i], text, key) == 0) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "--variant: %.*s is there twice", (int)key - 1,
                           text);
        }
    }
    char *set = copy_text(text, length, diag);
    if (set == NULL) {
        return ME_ERR_NOMEM;
    }
    variant->sets[variant->n_sets++] = set;
    return ME_OK;
}

me_status me_variant_parse(const char *given, me_diag *diag,
                           me_variant *variant_out)
{
    me_variant *v = variant_out;
    *v = (me_variant){.text = copy_text(given, strlen(given), diag)};
    const char *text = v->text;
    if (text == NULL) {
        return ME_ERR_NOMEM;
    }
    const char *colon = strchr(text, ':');
    const char *equals = strchr(text, '=');
    const bool has_name = colon != NULL && equals != NULL && colon < equals;
    const char *at = has_name ? colon + 1 : text;
    v->assignments = at;
    if (!begins_assignment(at) || colon == text) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--variant %s: [NAME:]KEY=VALUE[,KEY=VALUE...] is "
                       "right, such as big:train.micro_batch_size=2",
                       text);
    }
    me_status status = ME_OK;
    if (has_name) {
        status =
            copy_name("--variant", text, (size_t)(colon - text), diag, v->name);
    } else {
        name_after(text, v->name);
    }
    while (status == ME_OK && *at != '\0') {
        const char *end = end_of_assignment(at);
        status = add_set(at, (size_t)(end - at), diag, v);
        at = *end == ',' ? end + 1 : end;
    }
    me_text_clean(v->text); // which is shown; what is set was copied
    return status;
}

void me_variant_fini(me_variant *variant)
{
    for (int32_t i = 0; i < variant->n_sets; i++) {
        me_free(variant->sets[i]);
    }
    variant->n_sets = 0;
    me_free(variant->text);
    variant->text = NULL;
}

me_status me_variant_apply(const me_variant *variant, me_config *config,
                           me_diag *diag)
{
    me_status status = ME_OK;
    for (int32_t i = 0; status == ME_OK && i < variant->n_sets; i++) {
        status = me_config_set_assignment(config, variant->sets[i], diag);
    }
    return status;
}

/** Can it run with one chunk a rank, if there are enough micro-batches? */
static bool takes_one_chunk(const me_schedule *schedule,
                            const me_config *config)
{
    const me_pipeline one = {.ranks = config->parallel.pipeline,
                             .microbatches = 4 * config->parallel.pipeline,
                             .chunks = 1};
    return me_schedule_check(schedule, &one, NULL) == ME_OK;
}

/** The chunks of a rank: as given, as the schedule needs, as the job has. */
static me_status choose_chunks(const me_schedule_choice *choice,
                               const me_config *config, me_diag *diag,
                               int32_t *chunks_out)
{
    me_schedule_shape shape = {.chunks = 0};
    const me_status status = me_config_schedule_shape(config, diag, &shape);
    if (status != ME_OK) {
        return status;
    }
    const int32_t of_job = config->parallel.virtual_pipeline;
    *chunks_out = choice->chunks > 0                          ? choice->chunks
                  : shape.chunks > 0                          ? shape.chunks
                  : takes_one_chunk(choice->schedule, config) ? 1
                  : of_job > 1                                ? of_job
                                                              : DEFAULT_CHUNKS;
    return ME_OK;
}

me_status me_schedule_choice_apply(const me_schedule_choice *choice,
                                   me_config *config, me_diag *diag)
{
    if (choice->schedule == NULL) {
        return ME_OK;
    }
    int32_t chunks = 0;
    char text[16] = "";
    me_status status = me_config_set(config, "pipeline.schedule",
                                     choice->schedule->name, diag);
    if (status == ME_OK && config->pipeline.file[0] != '\0') {
        status = me_config_set(config, "pipeline.schedule_file", "", diag);
    }
    if (status == ME_OK) {
        status = choose_chunks(choice, config, diag, &chunks);
    }
    (void)snprintf(text, sizeof text, "%d", (int)chunks);
    return status == ME_OK
               ? me_config_set(config, "parallel.virtual_pipeline", text, diag)
               : status;
}

void me_schedule_choice_name(const me_config *config,
                             char name[ME_VARIANT_NAME])
{
    const me_parallel_config *p = &config->parallel;
    if (config->pipeline.file[0] != '\0') {
        (void)snprintf(name, ME_VARIANT_NAME, "%.*s", ME_VARIANT_NAME - 1,
                       config->pipeline.file);
    } else if (!me_config_has_own_schedule(config)) {
        (void)snprintf(name, ME_VARIANT_NAME, "%s", config->pipeline.name);
    } else if (p->virtual_pipeline > 1) {
        (void)snprintf(name, ME_VARIANT_NAME, "interleaved:%d",
                       (int)p->virtual_pipeline);
    } else {
        (void)snprintf(name, ME_VARIANT_NAME, "%s",
                       p->pipeline == 1 ? "none" : "1f1b");
    }
}
