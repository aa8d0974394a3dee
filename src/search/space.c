/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/space.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/parse.h"
#include "config/framework.h"
#include "config/options.h"
#include "search/rules.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char world_option[] = "parallel.world_size";
static const char chunks_option[] = "parallel.virtual_pipeline";

void me_space_words_add(me_space_words *words, const char *format, ...)
{
    if (words->count == ME_SPACE_WORDS_MAX) {
        words->is_full = true;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(words->items[words->count++], ME_SPACE_WORD_BYTES, format,
                    arguments);
    va_end(arguments);
}

bool me_space_axis_assign(const me_space_axis *axis, const me_config *job,
                          const char *word, me_str *text)
{
    me_str_append(text, text->length > 0 ? "," : "");
    if (axis->kind != NULL && axis->kind->assign != NULL) {
        return axis->kind->assign(job, word, text);
    }
    me_str_printf(text, "%s=%s", axis->name, word);
    return true;
}

bool me_space_varies(const me_config *job, const char *option)
{
    const me_space_axis_kind *kinds = me_search_rules_of(job->framework)->axes;
    for (int i = 0; kinds[i].name != NULL; i++) {
        if (!kinds[i].is_asked && strcmp(kinds[i].name, option) == 0) {
            return true;
        }
    }
    return false;
}

const char *me_space_several_at(uint32_t index)
{
    static const me_framework frameworks[] = {
#define FRAMEWORK(constant, word, title) constant,
        ME_FRAMEWORK_LIST(FRAMEWORK)
#undef FRAMEWORK
    };

    for (size_t f = 0; f < sizeof frameworks / sizeof *frameworks; f++) {
        const me_space_axis_kind *kinds =
            me_search_rules_of(frameworks[f])->axes;
        for (int i = 0; kinds[i].name != NULL; i++) {
            if (me_option_find(kinds[i].name) == NULL && index-- == 0) {
                return kinds[i].name;
            }
        }
    }
    return NULL;
}

static me_space_axis *find_axis(me_space *space, const char *name)
{
    for (uint32_t i = 0; i < space->n_axes; i++) {
        if (strcmp(space->axes[i].name, name) == 0) {
            return &space->axes[i];
        }
    }
    return NULL;
}

static me_space_axis *add_axis(me_space *space, const char *name, me_diag *diag)
{
    if (space->n_axes == ME_SPACE_AXES_MAX) {
        (void)me_fail(diag, ME_ERR_CONFIG, "--space: more than %d keys",
                      ME_SPACE_AXES_MAX);
        return NULL;
    }
    me_space_axis *axis = &space->axes[space->n_axes++];
    *axis = (me_space_axis){.kind = NULL};
    (void)snprintf(axis->name, sizeof axis->name, "%s", name);
    (void)snprintf(axis->flag, sizeof axis->flag,
                   "--space %.*s=", ME_SPACE_WORD_BYTES - 1, name);
    return axis;
}

/** The kinds' order is the one in which axes are decided. */
static me_status add_kinds(me_space *space, const me_config *job, me_diag *diag)
{
    const me_space_axis_kind *kinds = me_search_rules_of(job->framework)->axes;
    for (int i = 0; kinds[i].name != NULL; i++) {
        me_space_axis *axis = add_axis(space, kinds[i].name, diag);
        if (axis == NULL) {
            return ME_ERR_CONFIG;
        }
        axis->kind = &kinds[i];
    }
    return ME_OK;
}

/** All words of an option that has a few. */
static bool fill_from_option(const me_option *option, me_space_words *words)
{
    if (option != NULL && option->type == ME_OPTION_BOOL) {
        me_space_words_add(words, "false");
        me_space_words_add(words, "true");
    }
    for (int i = 0; option != NULL && option->words != NULL &&
                    option->words[i].word != NULL;
         i++) {
        me_space_words_add(words, "%s", option->words[i].word);
    }
    return words->count > 0;
}

/** What all candidates have in common is no part of a space. */
static bool is_common(const char *key)
{
    return strncmp(key, "model.", strlen("model.")) == 0 ||
           strcmp(key, "train.global_batch_size") == 0 ||
           strcmp(key, "framework") == 0 || strcmp(key, "name") == 0;
}

static me_status refuse_key(const char *key, me_diag *diag)
{
    if (is_common(key)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--space %s: candidates have one model and one global "
                       "batch, else their steps are no match: set it with "
                       "--set",
                       key);
    }
    const me_option *near = me_option_nearest(key);
    me_str several = {0};
    const char *name = NULL;
    for (uint32_t i = 0; (name = me_space_several_at(i)) != NULL; i++) {
        me_str_printf(&several, "%s%s", i == 0 ? "" : ", ", name);
    }
    const me_status status = me_fail(
        diag, ME_ERR_CONFIG,
        "--space %s: no such option, name of several (%s), or file%s%s", key,
        me_str_text(&several), near == NULL ? "" : "; did you mean ",
        near == NULL ? "" : near->name);
    me_str_fini(&several);
    return status;
}

/** Words behind commas, blanks around them. */
static me_status add_words(me_space_axis *axis, const char *list, me_diag *diag)
{
    const char *whole = list;
    bool has_more = *list != '\0';
    while (has_more) {
        size_t n = strcspn(list, ",");
        has_more = list[n] == ',';
        const char *next = list + n + has_more;
        while (n > 0 && isspace((unsigned char)*list) != 0) {
            list++;
            n--;
        }
        while (n > 0 && isspace((unsigned char)list[n - 1]) != 0) {
            n--;
        }
        if (n == 0 || n >= ME_SPACE_WORD_BYTES) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s%.80s: must be words of up to %d bytes with "
                           "commas between them, and none at the end",
                           axis->flag, whole, ME_SPACE_WORD_BYTES - 1);
        }
        for (uint32_t i = 0; i < axis->words->count; i++) {
            if (strlen(axis->words->items[i]) == n &&
                strncmp(axis->words->items[i], list, n) == 0) {
                return me_fail(diag, ME_ERR_CONFIG,
                               "%s%.80s: %.*s is there twice", axis->flag,
                               whole, (int)n, list);
            }
        }
        me_space_words_add(axis->words, "%.*s", (int)n, list);
        list = next;
    }
    return axis->words->count > 0 && !axis->words->is_full
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "%s%.80s: must be 1 to %d words with commas between "
                         "them",
                         axis->flag, whole, ME_SPACE_WORDS_MAX);
}

/** @param flag  that has the list; NULL: --space
 *  @param list  NULL: as the kind or the option has them */
static me_status set_axis(me_space *space, const char *flag, const char *key,
                          const char *list, me_diag *diag)
{
    me_space_axis *axis = find_axis(space, key);
    const me_option *option = me_option_find(key);
    if (axis == NULL && (option == NULL || is_common(key))) {
        return refuse_key(key, diag);
    }
    axis = axis == NULL ? add_axis(space, key, diag) : axis;
    if (axis == NULL) {
        return ME_ERR_CONFIG;
    }
    if (flag != NULL) {
        (void)snprintf(axis->flag, sizeof axis->flag, "%s", flag);
    }
    if (axis->words != NULL || axis->is_wanted) {
        return me_fail(diag, ME_ERR_CONFIG, "--space %s is there twice", key);
    }
    if (list == NULL && axis->kind != NULL && axis->kind->fill != NULL) {
        axis->is_wanted = true;
        return ME_OK;
    }
    axis->words = me_alloc(1, sizeof *axis->words, "space.words");
    if (axis->words == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a space");
    }
    if (list != NULL) {
        return add_words(axis, list, diag);
    }
    return fill_from_option(option, axis->words)
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "--space %s: give its words, %s=A,B", key, key);
}

/** A line of a file, or what a flag has: "KEY", "KEY=WORDS". */
static me_status read_entry(me_space *space, const char *text, size_t length,
                            me_diag *diag)
{
    char key[ME_SPACE_WORD_BYTES];
    me_str entry = {0};
    me_str_append_n(&entry, text, length);
    const size_t n = strcspn(me_str_text(&entry), "=");
    size_t end = n;
    while (end > 0 && isspace((unsigned char)text[end - 1]) != 0) {
        end--;
    }
    (void)snprintf(key, sizeof key, "%.*s", (int)end, text);
    me_status status = me_str_status(&entry);
    if (status == ME_OK) {
        status =
            set_axis(space, NULL, key,
                     n == length ? NULL : me_str_text(&entry) + n + 1, diag);
    }
    me_str_fini(&entry);
    return status;
}

/** Lines "KEY = WORDS"; what follows a `#` is no part of one. */
static me_status read_file(me_space *space, const char *path, me_diag *diag)
{
    me_str text = {0};
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, diag, &text);
    const char *at = me_str_text(&text);
    bool has_key = false;
    for (int line = 1; status == ME_OK && *at != '\0'; line++) {
        const size_t whole = strcspn(at, "\n");
        size_t length = strcspn(at, "#\n");
        const char *begin = at;
        while (length > 0 && isspace((unsigned char)*begin) != 0) {
            begin++;
            length--;
        }
        while (length > 0 && isspace((unsigned char)begin[length - 1]) != 0) {
            length--;
        }
        me_diag own = {.status = ME_OK};
        if (length > 0) {
            has_key = true;
            status = read_entry(space, begin, length, &own);
        }
        if (status != ME_OK) {
            (void)me_fail_at(diag, status, path, line, "%s", own.text);
        }
        at += whole + (at[whole] == '\n');
    }
    me_str_fini(&text);
    return status != ME_OK || has_key
               ? status
               : me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                            "has no key: a space is lines such as "
                            "parallel.tensor = 1,2,4");
}

/** Without a `=`, a key that is known, or a file. */
static me_status read_space(me_space *space, const char *text, me_diag *diag)
{
    const bool is_key = strchr(text, '=') != NULL ||
                        find_axis(space, text) != NULL ||
                        me_option_find(text) != NULL || is_common(text);
    if (is_key) {
        return read_entry(space, text, strlen(text), diag);
    }
    me_diag own = {.status = ME_OK};
    const me_status status = read_file(space, text, &own);
    if (status == ME_ERR_IO && access(text, F_OK) != 0) {
        return refuse_key(text, diag);
    }
    if (status != ME_OK) {
        *diag = own;
        diag->status = ME_ERR_CONFIG;
        return ME_ERR_CONFIG;
    }
    return ME_OK;
}

/** Each word by itself: whether it goes with others is seen later. */
static me_status check_words(const me_space_axis *axis, const me_config *job,
                             me_diag *diag)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < axis->words->count; i++) {
        const char *word = axis->words->items[i];
        me_str text = {0};
        me_diag own = {.status = ME_OK};
        if (!me_space_axis_assign(axis, job, word, &text)) {
            status = me_fail(diag, ME_ERR_CONFIG, "%s%s: must be %s",
                             axis->flag, word, axis->kind->words);
        } else if (axis->kind == NULL || axis->kind->assign == NULL) {
            me_config *copy = me_config_clone(job);
            status = copy == NULL ? ME_ERR_NOMEM
                                  : me_config_set(copy, axis->name, word, &own);
            me_config_destroy(copy);
            if (status != ME_OK) {
                const char *reason = strstr(own.text, ": ");
                (void)me_fail(diag, status, "%s%s%s", axis->flag, word,
                              reason == NULL ? ": is no value" : reason);
            }
        }
        me_str_fini(&text);
    }
    return status;
}

/** Axes without words that nobody asked for go. */
static void drop_axes(me_space *space)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < space->n_axes; i++) {
        const me_space_axis *axis = &space->axes[i];
        if (axis->words != NULL || axis->is_wanted || !axis->kind->is_asked) {
            space->axes[n++] = *axis;
        }
    }
    space->n_axes = n;
}

/** Every schedule says how many chunks it runs. */
static me_status drop_chunks(me_space *space, me_diag *diag)
{
    me_space_axis *axis = find_axis(space, chunks_option);
    if (axis == NULL) {
        return ME_OK;
    }
    if (axis->words != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--space %s: every --schedule says its chunks, "
                       "NAME:CHUNKS; give one of the two",
                       chunks_option);
    }
    const size_t after =
        (size_t)(space->axes + space->n_axes - (axis + 1)) * sizeof *axis;
    memmove(axis, axis + 1, after);
    space->n_axes--;
    return ME_OK;
}

/** Ranks, samples of a step: what must be known. */
static me_status check_job(const me_space *space, const me_config *job,
                           me_diag *diag)
{
    if (space->n_axes == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "memest search of such a job needs --space KEY=A,B,C");
    }
    if (space->axes[0].words == NULL && space->job.world == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--gpus is missing: the job does not say how many ranks "
                       "it has");
    }
    if (me_framework_traits_of(job)->has_tokens &&
        job->train.global_batch_size == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "train.global_batch_size is not given: without it steps "
                       "of different layouts are no match");
    }
    return ME_OK;
}

static me_status read_request(me_space *space, const me_config *job,
                              const me_space_request *request, me_diag *diag)
{
    me_status status = add_kinds(space, job, diag);
    if (status == ME_OK && request->gpus != NULL) {
        status = set_axis(space, "--gpus ", world_option, request->gpus, diag);
    }
    for (size_t i = 0; status == ME_OK && i < request->n_spaces; i++) {
        status = read_space(space, request->spaces[i], diag);
    }
    if (status != ME_OK) {
        return status;
    }
    drop_axes(space);
    if (request->has_schedules) {
        status = drop_chunks(space, diag);
    }
    for (uint32_t i = 0; status == ME_OK && i < space->n_axes; i++) {
        if (space->axes[i].words != NULL) {
            status = check_words(&space->axes[i], job, diag);
        }
    }
    return status == ME_OK ? check_job(space, job, diag) : status;
}

me_status me_space_create(const me_config *job, const me_space_request *request,
                          me_diag *diag, me_space **space_out)
{
    me_space *space = me_alloc(1, sizeof *space, "space");
    if (space == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a space");
    }
    const me_parallel_config *p = &job->parallel;
    space->job = (me_degrees){
        .world = p->world_size,
        .tensor = p->tensor,
        .context = p->context,
        .pipeline = p->pipeline,
        .expert = p->expert,
        .expert_tensor = p->expert_tensor > 0 ? p->expert_tensor : p->tensor,
    };
    const me_status status = read_request(space, job, request, diag);
    if (status != ME_OK) {
        me_space_destroy(space);
        return status;
    }
    *space_out = space;
    return ME_OK;
}

void me_space_destroy(me_space *space)
{
    for (uint32_t i = 0; space != NULL && i < space->n_axes; i++) {
        me_free(space->axes[i].words);
    }
    me_free(space);
}
