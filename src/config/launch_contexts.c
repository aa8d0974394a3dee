/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_contexts.h"

#include "base/parse.h"
#include "config/wrappers.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** Words from one `:` to the next. */
typedef struct context {
    int options; /**< of mpirun, where they begin */
    int program; /**< and what it starts */
    int end;
    uint64_t ranks; /**< 0: no number says it */
} context;

/** The walk over them. */
typedef struct joining {
    const me_argument_words *words;
    const me_wrapper *wrapper;
    const char **variables; /**< options of later contexts that set some, with
                                 their values */
    int n_variables;
    me_diag *diag;
} joining;

/** From @p at on; argc: there is none. */
static int find_colon(const me_argument_words *words, int at)
{
    while (at < words->argc && strcmp(words->argv[at], ":") != 0) {
        at++;
    }
    return at;
}

/** The launcher whose contexts end at @p colon; NULL: none is there. */
static const me_wrapper *find_launcher(const me_argument_words *words,
                                       int colon, int *at_out)
{
    for (int i = 0; i < colon; i++) {
        const me_wrapper *wrapper = me_wrapper_find(words->argv[i]);
        if (wrapper != NULL && (wrapper->kind == ME_WRAPPER_MPIRUN ||
                                wrapper->kind == ME_WRAPPER_SRUN ||
                                wrapper->kind == ME_WRAPPER_JSRUN ||
                                wrapper->kind == ME_WRAPPER_APRUN)) {
            *at_out = i;
            return wrapper;
        }
    }
    return NULL;
}

static bool sets_variables(const me_wrapper_option *option)
{
    return option != NULL && (option->use == ME_WRAPPER_ASSIGNMENT ||
                              option->use == ME_WRAPPER_ASSIGNMENTS ||
                              option->use == ME_WRAPPER_PARAMETER ||
                              option->use == ME_WRAPPER_PAIR);
}

/** One option; @p at moves behind its values. */
static me_status step_option(joining *j, context *c, int *at)
{
    const char *const *word = j->words->argv + *at;
    const char *attached = NULL;
    const me_wrapper_option *option =
        me_wrapper_option_of(j->wrapper, word[0], &attached);
    const bool is_one_word = attached != NULL || option == NULL;
    const int n_words = is_one_word ? 1 : 1 + option->n_values;
    if ((option == NULL && attached == NULL) || *at + n_words > c->end) {
        return me_fail(
            j->diag, ME_ERR_CONFIG,
            "memest does not know %.60s of mpirun beside ':', or its "
            "value is missing: leave it out, or write it as "
            "--option=value",
            word[0]);
    }
    if (option != NULL && option->use == ME_WRAPPER_RANKS &&
        me_parse_u64(attached != NULL ? attached : word[1], &c->ranks) !=
            ME_OK) {
        c->ranks = 0;
    }
    for (int i = 0; sets_variables(option) && i < n_words; i++) {
        j->variables[j->n_variables++] = word[i];
    }
    *at += n_words;
    return ME_OK;
}

/** The context that begins at @p at. */
static me_status read_context(joining *j, int at, context *c)
{
    me_status status = ME_OK;
    *c = (context){.options = at, .end = find_colon(j->words, at)};
    while (status == ME_OK && at < c->end && j->words->argv[at][0] == '-' &&
           strcmp(j->words->argv[at], "--") != 0) {
        status = step_option(j, c, &at);
    }
    c->program = at;
    if (status == ME_OK && (c->ranks == 0 || c->ranks > INT32_MAX)) {
        status = me_fail(j->diag, ME_ERR_CONFIG,
                         "mpirun ... : ...: memest cannot tell how many ranks "
                         "each part starts: give each part mpirun's -n");
    }
    return status;
}

/** Do two contexts start the same words? */
static bool are_equal(const me_argument_words *words, const context *a,
                      const context *b)
{
    const int n = a->end - a->program;
    bool equal = n == b->end - b->program;
    for (int i = 0; equal && i < n; i++) {
        equal = strcmp(words->argv[a->program + i],
                       words->argv[b->program + i]) == 0;
    }
    return equal;
}

/** The first context's words, behind its options those that set variables in
 *  others, and @p ranks. */
static me_status write_joined(const joining *j, me_arena *arena,
                              const context *first, uint64_t ranks,
                              me_argument_words *words_out)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)ranks);
    const char *text = me_arena_strdup(arena, number);
    const char **argv = me_arena_alloc(
        arena, (size_t)first->end + (size_t)j->n_variables + 2, sizeof *argv);
    if (text == NULL || argv == NULL) {
        return me_fail(j->diag, ME_ERR_NOMEM,
                       "no memory for the launch command");
    }
    int n = 0;
    for (int i = 0; i < first->program; i++) {
        argv[n++] = j->words->argv[i];
    }
    for (int i = 0; i < j->n_variables; i++) {
        argv[n++] = j->variables[i];
    }
    argv[n++] = "-n";
    argv[n++] = text;
    for (int i = first->program; i < first->end; i++) {
        argv[n++] = j->words->argv[i];
    }
    *words_out = (me_argument_words){n, argv};
    return ME_OK;
}

/** @param at  of mpirun's first option */
static me_status join(joining *j, me_arena *arena, int at,
                      me_argument_words *words_out)
{
    context first;
    me_status status = read_context(j, at, &first);
    uint64_t ranks = first.ranks;
    j->n_variables = 0; // the first one's stay where they are
    for (int end = first.end; status == ME_OK && end < j->words->argc;) {
        context next;
        status = read_context(j, end + 1, &next);
        if (status == ME_OK && !are_equal(j->words, &first, &next)) {
            status = me_fail(j->diag, ME_ERR_UNSUPPORTED,
                             "mpirun ... : ... starts different words in its "
                             "parts, which is not read: all ranks of a job "
                             "have the same program and flags");
        }
        ranks += next.ranks;
        end = next.end;
    }
    return status != ME_OK ? status
                           : write_joined(j, arena, &first, ranks, words_out);
}

me_status me_launch_contexts_join(me_arena *arena, me_argument_words *words,
                                  me_diag *diag)
{
    const me_argument_words given = *words;
    const int colon = find_colon(&given, 0);
    int at = 0;
    const me_wrapper *wrapper = find_launcher(&given, colon, &at);
    if (colon == given.argc || wrapper == NULL) {
        return ME_OK;
    }
    if (wrapper->kind != ME_WRAPPER_MPIRUN) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "%.60s ... : ... starts several programs, which is not "
                       "read: give one of them, with the ranks of all",
                       given.argv[at]);
    }
    joining j = {.words = &given, .wrapper = wrapper, .diag = diag};
    j.variables =
        me_arena_alloc(arena, (size_t)given.argc, sizeof *j.variables);
    return j.variables == NULL
               ? me_fail(diag, ME_ERR_NOMEM, "no memory for the launch command")
               : join(&j, arena, at + 1, words);
}
