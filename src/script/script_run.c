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
#include "script/script_end.h"

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
    char **variables = me_arena_alloc(arena, count + 9, sizeof *variables);
    size_t n = 0;
    for (size_t i = 0; variables != NULL && i < count; i++) {
        if (!is_hidden(environ[i])) {
            variables[n++] = environ[i];
        }
    }
    me_str texts[8] = {{0}};
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
    if (order->tells_by_environment) {
        me_str_append(&texts[n_texts++], ME_GUISE_BY_ENVIRONMENT "=1");
    }
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
            return status == ME_OK
                       ? me_script_end_check(order, script, l.fence, diag)
                       : status;
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
    return status == ME_OK ? me_script_end_check(order, script, l.fence, diag)
                           : status;
}

/** @return NULL: no memory */
static me_script *create(void)
{
    me_script *script = me_alloc(1, sizeof *script, "a script");
    if (script != NULL) {
        script->arena = me_arena_create(ARENA_BYTES, "a script");
    }
    if (script != NULL && script->arena == NULL) {
        me_script_destroy(script);
        return NULL;
    }
    return script;
}

/** Run it, and where that launched nothing but for a job that submits itself,
 *  again so that variables tell such jobs apart. */
static me_status run_anew(const me_script_order *order, me_diag *diag,
                          me_script **script_out)
{
    me_script *script = create();
    if (script == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a script");
    }
    const me_status status = run(order, script, diag);
    if (status == ME_ERR_CONFIG && !order->tells_by_environment &&
        me_script_waits_for_itself(script)) {
        me_script_order again = *order;
        again.tells_by_environment = true;
        me_script_destroy(script);
        return run_anew(&again, diag, script_out);
    }
    if (status != ME_OK) {
        me_script_destroy(script);
        return status;
    }
    *script_out = script;
    return ME_OK;
}

me_status me_script_run(const me_script_order *order, me_diag *diag,
                        me_script **script_out)
{
    sigset_t stops;
    sigset_t before;
    me_ending_signals(&stops);
    (void)sigprocmask(SIG_BLOCK, &stops, &before);
    int was_reaper = 0;
    (void)prctl(PR_GET_CHILD_SUBREAPER, &was_reaper, 0, 0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const me_status status = run_anew(order, diag, script_out);
    (void)prctl(PR_SET_CHILD_SUBREAPER, was_reaper, 0, 0, 0);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

void me_script_destroy(me_script *script)
{
    if (script != NULL) {
        me_arena_destroy(script->arena);
        me_free(script);
    }
}
