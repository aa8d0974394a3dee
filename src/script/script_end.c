/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/script_end.h"

#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "script/guise.h"

#include <stdio.h>
#include <string.h>

/** Does a command start others, which nobody saw? */
static bool starts_others(me_guise_kind kind)
{
    return kind == ME_GUISE_UNKNOWN || kind == ME_GUISE_ELSEWHERE ||
           kind == ME_GUISE_PARALLEL || kind == ME_GUISE_AROUND ||
           kind == ME_GUISE_REMOTE;
}

/** A command that nobody knows, or that starts others where nobody sees them, with
 *  what trains among its words: the launcher of a site's own. @return its name's
 *  length, in @p nothing; 0: it is none */
static int length_of_launcher(const char *nothing, me_guise_kind *kind_out)
{
    char name[64];
    const int length = (int)strcspn(nothing, " ");
    (void)snprintf(name, sizeof name, "%.*s", length, nothing);
    *kind_out = me_guise_find(name);
    const bool trains =
        strstr(nothing, " torchrun") != NULL || strstr(nothing, ".py ") != NULL;
    // an environment has a Python as well: `conda create python=3.10`
    const bool has_python =
        *kind_out != ME_GUISE_AROUND && strstr(nothing, " python") != NULL;
    return starts_others(*kind_out) && (trains || has_python) ? length : 0;
}

/** The first of them, in words to put behind the reason. */
static void name_launcher(const me_script *script, char *text, size_t size)
{
    text[0] = '\0';
    for (uint32_t i = 0; text[0] == '\0' && i < script->n_nothings; i++) {
        const char *nothing = script->nothings[i];
        me_guise_kind kind = ME_GUISE_UNKNOWN;
        const int length = length_of_launcher(nothing, &kind);
        if (length > 0) {
            const bool is_known =
                kind != ME_GUISE_UNKNOWN && kind != ME_GUISE_ELSEWHERE;
            (void)snprintf(text, size,
                           "; '%.*s' is %s: give the command behind it",
                           length < 60 ? length : 60, nothing,
                           is_known ? "not followed with these options"
                                    : "no launcher that memest knows");
        }
    }
}

/** A file of Python's whose output the script reads: nobody runs it. */
static bool is_program(const char *nothing)
{
    const char *file = nothing + strcspn(nothing, " ");
    const size_t n = strcspn(file + (*file == ' '), " ");
    return strncmp(nothing, "python", 6) == 0 && n > 3 &&
           strncmp(file + 1 + n - 3, ".py", 3) == 0;
}

const char *me_script_mute(const me_script *script)
{
    static const char *const begins[] = {"python -c", "python3 -c", "python -",
                                         "python3 -", "jq ",        "yq "};
    for (uint32_t i = 0; i < script->n_nothings; i++) {
        const char *nothing = script->nothings[i];
        if (is_program(nothing)) {
            return nothing;
        }
        for (size_t j = 0; j < sizeof begins / sizeof *begins; j++) {
            const size_t n = strlen(begins[j]);
            const bool is_input = begins[j][n - 1] == '-';
            if (strncmp(nothing, begins[j], n) == 0 &&
                (!is_input || nothing[n] == '\0' || nothing[n] == ' ')) {
                return nothing;
            }
        }
    }
    return NULL;
}

/** What printed nothing, in words to put behind the reason. */
static void name_mute(const me_script *script, char *text, size_t size)
{
    const char *mute = me_script_mute(script);
    if (mute != NULL) {
        (void)snprintf(text, size, "; '%.120s' gave no value here", mute);
    }
}

/** `<what to put here>` where a shell stopped: it takes it for files. */
static void name_placeholder(const me_script *script, char *text, size_t size)
{
    const char *begin = strchr(script->last_line, '<');
    const char *end = begin == NULL ? NULL : strchr(begin, '>');
    if (end != NULL && strcspn(begin, " ") > 1) {
        (void)snprintf(text, size,
                       "; '%.*s' is a placeholder: put there what it says",
                       (int)(end - begin < 80 ? end - begin + 1 : 80), begin);
    }
}

/** Of a script that ended well the last command that nobody knows, or make: it may
 *  start the job. */
static void name_last(const me_script *script, char *text, size_t size)
{
    for (uint32_t i = script->exit_code == 0 ? script->n_nothings : 0;
         text[0] == '\0' && i-- > 0;) {
        const char *nothing = script->nothings[i];
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(nothing, " "),
                       nothing);
        if (starts_others(me_guise_find(name)) || strcmp(name, "make") == 0) {
            (void)snprintf(
                text, size,
                "; '%.80s' had no effect: if it starts the job, give "
                "the command that it runs",
                nothing);
        }
    }
}

/** How to go on where the script ends for a file that is somewhere else, such as
 *  an environment that it activates. */
static const char *advise(const me_script *script)
{
    return me_ends_with(script->last_line, ": No such file or directory")
               ? "; what it can do without may have '|| true' behind it"
               : "";
}

me_status me_script_end_check(const me_script_order *order,
                              const me_script *script, const char *fence,
                              me_diag *diag)
{
    char launcher[160];
    for (uint32_t i = 0; i < script->n_nothings; i++) {
        const bool is_cut = strncmp(script->nothings[i], ME_GUISE_CUT,
                                    sizeof ME_GUISE_CUT - 1) == 0;
        me_log(is_cut ? ME_LOG_WARN : ME_LOG_INFO, "%s: had no effect: %s",
               order->name, script->nothings[i]);
    }
    if (script->n_launches > 0) {
        return ME_OK;
    }
    name_launcher(script, launcher, sizeof launcher);
    if (launcher[0] == '\0') {
        name_mute(script, launcher, sizeof launcher);
    }
    if (launcher[0] == '\0') {
        name_placeholder(script, launcher, sizeof launcher);
    }
    if (launcher[0] == '\0') {
        name_last(script, launcher, sizeof launcher);
    }
    return me_fail(
        diag, ME_ERR_CONFIG,
        "%s ended with exit code %d and launched nothing%s%s%s%s%s%s",
        order->name, script->exit_code, launcher,
        script->last_line[0] == '\0' ? "" : "; it said: ", script->last_line,
        advise(script),
        fence[0] == '\0' ? "" : "; no layer takes what it writes: ", fence);
}

bool me_script_waits_for_itself(const me_script *script)
{
    bool is_submitted = false;
    for (uint32_t i = 0; i < script->n_nothings; i++) {
        is_submitted |= strncmp(script->nothings[i], "sbatch ", 7) == 0 ||
                        strncmp(script->nothings[i], "bsub ", 5) == 0;
    }
    return is_submitted && script->n_launches == 0;
}
