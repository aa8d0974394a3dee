/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/script_run.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "script/act_private.h"
#include "script/carry.h"
#include "script/filter.h"
#include "script/guise.h"
#include "script/keep.h"
#include "script/landlock.h"
#include "script/listen.h"
#include "script/place.h"
#include "script/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    ARENA_BYTES = 320 << 20
};

/** Three pipes, each what is read and what is written. */
typedef struct pipes {
    int records[2];
    int output[2];
    int said[2];
} pipes;

static bool is_without(const char *fence)
{
    const char *without = getenv("MEMEST_SCRIPT_WITHOUT");
    return without != NULL && strstr(without, fence) != NULL;
}

static me_status read_seconds(me_diag *diag, int *seconds_out)
{
    uint64_t value = ME_SCRIPT_SECONDS;
    const char *text = getenv("MEMEST_SCRIPT_SECONDS");
    if (text != NULL && text[0] != '\0' &&
        (me_parse_u64(text, &value) != ME_OK || value == 0 || value >= 86400)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "MEMEST_SCRIPT_SECONDS=%.40s: must be a whole number of "
                       "seconds from 1 to 86399",
                       text);
    }
    *seconds_out = (int)value;
    return ME_OK;
}

static bool make_pipe(int fds[2])
{
    if (pipe(fds) != 0) {
        return false;
    }
    return fcntl(fds[0], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(fds[1], F_SETFD, FD_CLOEXEC) == 0;
}

static void close_pipe(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
        fds[i] = -1;
    }
}

/** A variable that the script is not to see as memest does. */
static bool is_hidden(const char *variable)
{
    static const char *const names[] = {
        "PATH=", "TMPDIR=", "BASH_ENV=", "ENV=", "MEMEST_", "LD_PRELOAD="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/** The environment of memest, with the place's own. NULL: no memory */
static char **make_environment(const me_script_order *order,
                               const me_place *place, me_arena *arena)
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **variables = me_arena_alloc(arena, count + 8, sizeof *variables);
    size_t n = 0;
    for (size_t i = 0; variables != NULL && i < count; i++) {
        if (!is_hidden(environ[i])) {
            variables[n++] = environ[i];
        }
    }
    me_str texts[7] = {{0}};
    size_t n_texts = 5;
    me_str_printf(&texts[0], "PATH=%s", place->bin);
    me_str_printf(&texts[1], "TMPDIR=%s", place->tmp);
    // A command that bash does not find does nothing, as those of the list.
    me_str_printf(&texts[2],
                  "BASH_FUNC_command_not_found_handle%%%%=() { %s \"$@\"; }",
                  place->other);
    me_str_printf(&texts[3], ME_GUISE_CARD "=%s",
                  order->card == NULL ? "" : order->card);
    me_carry_begin(&texts[4]);
    // A login sets both, and scripts end without them under `set -u`.
    const char *user = getenv("USER");
    const char *login = getenv("LOGNAME");
    if (user == NULL) {
        me_str_printf(&texts[n_texts++], "USER=%s",
                      login == NULL ? "user" : login);
    }
    if (login == NULL) {
        me_str_printf(&texts[n_texts++], "LOGNAME=%s",
                      user == NULL ? "user" : user);
    }
    bool is_fine = variables != NULL;
    for (size_t i = 0; i < n_texts; i++) {
        char *copy = is_fine && me_str_status(&texts[i]) == ME_OK
                         ? me_arena_strdup(arena, me_str_text(&texts[i]))
                         : NULL;
        is_fine = copy != NULL;
        if (is_fine) {
            variables[n++] = copy;
        }
        me_str_fini(&texts[i]);
    }
    return is_fine ? variables : NULL;
}

/** The shell's words, with the path of its program in front. */
static char **make_words(const me_script_order *order, const char *shell,
                         me_arena *arena)
{
    char **words =
        me_arena_alloc(arena, (size_t)order->argc + 1, sizeof *words);
    for (int i = 0; words != NULL && i < order->argc; i++) {
        words[i] = me_arena_strdup(arena, i == 0 ? shell : order->argv[i]);
        words = words[i] == NULL ? NULL : words;
    }
    return words;
}

/** Fences that this machine can put up, as far as it can be asked. */
static me_fences find_fences(bool has_layer)
{
    return (me_fences){
        .layer = has_layer && !is_without("layer"),
        .landlock = !is_without("landlock") && me_landlock_version() > 0,
        .filter = !is_without("filter") && me_filter_works(),
    };
}

/** What of the fences this machine lacks: `no Landlock, no seccomp filter`. */
static void name_lacks(const me_fences *fences, const char *layer, char *text,
                       size_t size)
{
    const bool holds_files = fences->layer || fences->landlock;
    (void)snprintf(
        text, size, "%s%s%s%s%s%s", fences->landlock ? "" : ", no Landlock",
        fences->filter ? "" : ", no seccomp filter",
        holds_files ? "" : ", no layer for what is written",
        holds_files || layer[0] == '\0' ? "" : " (", holds_files ? "" : layer,
        holds_files || layer[0] == '\0' ? "" : ")");
}

/** What is not held back is named, or trusted. @p layer: why there is none, ""
 *  if nothing says it */
static me_status check_fences(const me_script_order *order,
                              const me_fences *fences, const char *layer,
                              me_diag *diag)
{
    char lacks[sizeof((me_listening *)0)->fence + 128];
    const bool holds_files = fences->layer || fences->landlock;
    if (order->is_trusted ||
        (holds_files && fences->landlock && fences->filter)) {
        return ME_OK;
    }
    name_lacks(fences, layer, lacks, sizeof lacks);
    return me_fail(
        diag, ME_ERR_CONFIG,
        "%s is not run: this machine cannot keep it from%s%s%s since it has "
        "%s; --trust runs it all the same",
        order->name, holds_files ? "" : " writing files,",
        fences->landlock ? "" : " running programs,",
        fences->filter ? "" : " using the network,", lacks + strlen(", "));
}

static void be_keeper(const me_keep *keep, pipes *p)
{
    (void)close(p->records[0]);
    (void)close(p->output[0]);
    (void)close(p->said[0]);
    me_keeper_run(keep);
}

/** One attempt; the place is made for it. */
static me_status run_keeper(const me_script_order *order, me_keep *keep,
                            me_listening *l, me_diag *diag)
{
    pipes p = {{-1, -1}, {-1, -1}, {-1, -1}};
    me_status status = ME_OK;
    if (!me_limit_raise((int)RLIMIT_NOFILE, ME_RECORD_FD + 1)) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "%s: fewer than the %d file descriptors that its run "
                       "needs: raise their limit (ulimit -n)",
                       order->name, ME_RECORD_FD + 1);
    }
    if (!make_pipe(p.records) || !make_pipe(p.output) || !make_pipe(p.said)) {
        status = me_fail(diag, ME_ERR_IO, "%s: no pipe: %s", order->name,
                         strerror(errno));
    }
    keep->record = p.records[1];
    keep->output = p.output[1];
    keep->said = p.said[1];
    l->keeper = status == ME_OK ? fork() : -1;
    if (l->keeper == 0) {
        be_keeper(keep, &p);
    }
    if (status == ME_OK && l->keeper < 0) {
        status = me_fail(diag, ME_ERR_IO, "%s: no process: %s", order->name,
                         strerror(errno));
    }
    if (status != ME_OK) {
        close_pipe(p.records);
        close_pipe(p.output);
        close_pipe(p.said);
        return status;
    }
    (void)close(p.records[1]);
    (void)close(p.output[1]);
    (void)close(p.said[1]);
    l->records = p.records[0];
    l->output = p.output[0];
    l->said = p.said[0];
    return me_listen(l, diag);
}

/** In a place of its own, with these fences. */
static me_status run_once(const me_script_order *order, me_fences fences,
                          me_listening *l, me_diag *diag)
{
    me_place place = {.folder = NULL};
    me_status status = me_place_make(fences.layer, &place, diag);
    const char *shell =
        status == ME_OK ? me_place_program(&place, order->argv[0]) : NULL;
    if (status == ME_OK && shell == NULL) {
        status = me_fail(diag, ME_ERR_CONFIG, "%s: there is no %.60s here",
                         order->name, order->argv[0]);
    }
    if (status == ME_OK) {
        me_arena *arena = l->script->arena;
        me_keep keep = {.place = &place,
                        .fences = fences,
                        .traces = !is_without("trace"),
                        .argv = make_words(order, shell, arena),
                        .environment = make_environment(order, &place, arena)};
        status = keep.argv == NULL || keep.environment == NULL
                     ? me_fail(diag, ME_ERR_NOMEM, "no memory for a script")
                     : run_keeper(order, &keep, l, diag);
    }
    me_place_remove(&place);
    return status;
}

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

const char *me_script_mute(const me_script *script)
{
    static const char *const begins[] = {"python -c", "python3 -c", "python -",
                                         "python3 -", "jq ",        "yq "};
    for (uint32_t i = 0; i < script->n_nothings; i++) {
        const char *nothing = script->nothings[i];
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

/** How to go on where the script ends for a file that is somewhere else, such as
 *  an environment that it activates. */
static const char *advise(const me_script *script)
{
    return me_ends_with(script->last_line, ": No such file or directory")
               ? "; what it can do without may have '|| true' behind it"
               : "";
}

static me_status check_end(const me_script_order *order, const me_listening *l,
                           me_diag *diag)
{
    char launcher[160];
    const me_script *script = l->script;
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
    return me_fail(
        diag, ME_ERR_CONFIG,
        "%s ended with exit code %d and launched nothing%s%s%s%s%s%s",
        order->name, script->exit_code, launcher,
        script->last_line[0] == '\0' ? "" : "; it said: ", script->last_line,
        advise(script),
        l->fence[0] == '\0' ? "" : "; no layer takes what it writes: ",
        l->fence);
}

static me_status run(const me_script_order *order, me_script *script,
                     me_diag *diag)
{
    me_listening l = {.script = script, .name = order->name};
    me_fences fences = find_fences(true);
    me_status status = read_seconds(diag, &l.seconds);
    if (status != ME_OK) {
        return status;
    }
    if (fences.layer) {
        status = check_fences(order, &fences, "", diag);
        if (status == ME_OK) {
            status = run_once(order, fences, &l, diag);
        }
        if (status != ME_OK || !l.is_fence_missing) {
            return status == ME_OK ? check_end(order, &l, diag) : status;
        }
    }
    if (!fences.layer) {
        (void)snprintf(l.fence, sizeof l.fence, "switched off");
    }
    me_log(ME_LOG_INFO, "%s: no layer takes what it writes: %s", order->name,
           l.fence);
    l.is_fence_missing = false;
    fences = find_fences(false);
    status = check_fences(order, &fences, l.fence, diag);
    if (status == ME_OK) {
        status = run_once(order, fences, &l, diag);
    }
    if (status == ME_OK && l.is_fence_missing) {
        status = me_fail(diag, ME_ERR_CONFIG, "%s: %s", order->name, l.fence);
    }
    return status == ME_OK ? check_end(order, &l, diag) : status;
}

me_status me_script_run(const me_script_order *order, me_diag *diag,
                        me_script **script_out)
{
    me_script *script = me_alloc(1, sizeof *script, "a script");
    if (script != NULL) {
        script->arena = me_arena_create(ARENA_BYTES, "a script");
    }
    if (script == NULL || script->arena == NULL) {
        me_script_destroy(script);
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a script");
    }
    sigset_t stops;
    sigset_t before;
    me_ending_signals(&stops);
    (void)sigprocmask(SIG_BLOCK, &stops, &before);
    int was_reaper = 0;
    (void)prctl(PR_GET_CHILD_SUBREAPER, &was_reaper, 0, 0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const me_status status = run(order, script, diag);
    (void)prctl(PR_SET_CHILD_SUBREAPER, was_reaper, 0, 0, 0);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (status != ME_OK) {
        me_script_destroy(script);
        return status;
    }
    *script_out = script;
    return ME_OK;
}

void me_script_destroy(me_script *script)
{
    if (script != NULL) {
        me_arena_destroy(script->arena);
        me_free(script);
    }
}
