/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/script_words.h"

#include "base/parse.h"
#include "config/wrappers.h"
#include "script/batch.h"
#include "script/guise.h"
#include "script/interpreter.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_assignment(const char *word)
{
    const size_t n = strcspn(word, "=");
    return n > 0 && word[n] == '=' && word[0] != '-' &&
           memchr(word, '/', n) == NULL;
}

static bool is_shell(const char *word)
{
    return me_guise_find(word) == ME_GUISE_SHELL;
}

/** The shell that a file's first line names, or bash. NULL: another program
 *  reads it. */
static const char *shell_of(const char *file, me_arena *arena)
{
    char path[PATH_MAX];
    if (!me_interpreter_of_script(file, path)) {
        return "bash";
    }
    return is_shell(path) ? me_arena_strdup(arena, me_guise_base(path)) : NULL;
}

/** Is the first word that is no assignment a file with `#!`, or called as
 *  scripts are? */
static bool is_script(const char *word)
{
    char path[PATH_MAX];
    return access(word, R_OK) == 0 &&
           (me_ends_with(word, ".sh") || me_interpreter_of_script(word, path));
}

/** Is a word behind a launcher a script that it starts? A name without a folder
 *  may be anything's value. */
static bool is_started_script(const char *word)
{
    return (strchr(word, '/') != NULL || me_ends_with(word, ".sh")) &&
           is_script(word);
}

/** Does the command start a shell, a script or what memest has to step through by
 *  acting, before any script of Python's? */
static bool needs_acting(int argc, const char *const *argv)
{
    for (int i = 0; i < argc && !me_ends_with(argv[i], ".py"); i++) {
        const me_wrapper *wrapper = me_wrapper_find(argv[i]);
        if (wrapper == NULL ? is_started_script(argv[i])
                            : wrapper->kind == ME_WRAPPER_SHELL ||
                                  wrapper->kind == ME_WRAPPER_FOREIGN) {
            return true;
        }
    }
    return false;
}

/** A shell would wait for ever for the text of a named pipe, and read none of a
 *  folder's. */
static me_status check_file(const char *path, me_diag *diag)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode)
               ? me_fail(
                     diag, ME_ERR_CONFIG,
                     "%s: is %s: a script that launches a job goes here", path,
                     S_ISDIR(about.st_mode) ? "a folder" : "not a regular file")
               : ME_OK;
}

/** `memest check FILE -- ARGUMENTS`: as the shell that it names runs it, or as
 *  sbatch does. */
static me_status order_file(const me_cli *cli, me_arena *arena,
                            me_script_words *to, me_diag *diag)
{
    const char *shell = shell_of(cli->script, arena);
    if (access(cli->script, R_OK) != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: no such file: a script that launches a job goes "
                       "here, a launch command after --",
                       cli->script);
    }
    const me_status status = check_file(cli->script, diag);
    if (status != ME_OK) {
        return status;
    }
    if (shell == NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s is no script of a shell's: give its launch command "
                       "after --",
                       cli->script);
    }
    if (me_batch_is_file(cli->script)) {
        static const char *const sbatch[] = {"bash", "-c", "sbatch \"$@\"",
                                             "memest"};
        memcpy(to->argv, sbatch, sizeof sbatch);
        to->argc = 4;
    } else {
        to->argv[to->argc++] = shell;
    }
    to->argv[to->argc++] = cli->script;
    for (int i = 0; i < cli->launch_argc; i++) {
        to->argv[to->argc++] = cli->launch_argv[i];
    }
    return ME_OK;
}

/** Files that the command's words have a shell read. */
static me_status check_files(const me_cli *cli, me_diag *diag)
{
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < cli->launch_argc; i++) {
        int at = i + 1;
        while (is_shell(cli->launch_argv[i]) && at < cli->launch_argc &&
               cli->launch_argv[at][0] == '-' &&
               strcmp(cli->launch_argv[at], "-c") != 0) {
            at++;
        }
        if (is_shell(cli->launch_argv[i]) && at < cli->launch_argc) {
            status = check_file(cli->launch_argv[at], diag);
        } else if (me_ends_with(cli->launch_argv[i], ".sh")) {
            status = check_file(cli->launch_argv[i], diag);
        }
    }
    return status;
}

/** A launch command that is to be acted out; `env` sets its variables. */
static void order_words(const me_cli *cli, me_arena *arena, me_script_words *to)
{
    static const char *const acted[] = {"bash", "-c", "env \"$@\"", "memest"};
    int at = 0;
    while (at < cli->launch_argc && is_assignment(cli->launch_argv[at])) {
        at++;
    }
    const char *first = cli->launch_argv[at];
    if (at > 0 || !is_shell(first)) {
        memcpy(to->argv, acted, sizeof acted);
        to->argc = 4;
    }
    for (int i = 0; i < at; i++) {
        to->argv[to->argc++] = cli->launch_argv[i];
    }
    if (!is_shell(first) && is_script(first)) {
        const char *shell = shell_of(first, arena);
        to->argv[to->argc++] = shell == NULL ? "bash" : shell;
    }
    for (int i = at; i < cli->launch_argc; i++) {
        to->argv[to->argc++] = cli->launch_argv[i];
    }
}

bool me_script_is_acted(const me_cli *cli)
{
    if (cli->script != NULL) {
        return true;
    }
    int at = 0;
    while (at < cli->launch_argc && is_assignment(cli->launch_argv[at])) {
        at++;
    }
    return at < cli->launch_argc &&
           (is_script(cli->launch_argv[at]) ||
            needs_acting(cli->launch_argc - at, cli->launch_argv + at));
}

me_status me_script_words_of(const me_cli *cli, me_arena *arena, me_diag *diag,
                             me_script_words *words_out)
{
    me_script_words words = {
        .argv = me_arena_alloc(arena, (size_t)cli->launch_argc + 8,
                               sizeof *words.argv)};
    if (words.argv == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a script's words");
    }
    me_status status = ME_OK;
    if (cli->script != NULL) {
        status = order_file(cli, arena, &words, diag);
    } else {
        status = check_files(cli, diag);
        order_words(cli, arena, &words);
    }
    if (status == ME_OK) {
        *words_out = words;
    }
    return status;
}
