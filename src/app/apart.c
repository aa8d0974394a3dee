/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apart.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "script/interpreter.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** A file that is written. */
typedef struct output {
    const char *flag;
    const char *path; /**< NULL: it is not asked for */
    bool is_read;     /**< by the command itself, which goes on with it */
    bool is_log;      /**< of messages, which are appended */
} output;

/** The name behind the last slash. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/** What is known of the folder of a path; false: nothing. */
static bool find_folder(const char *path, struct stat *about_out)
{
    const size_t length = (size_t)(name_of(path) - path);
    me_str folder = {0};
    me_str_append_n(&folder, path, length);
    me_str_append(&folder, length == 0 ? "." : "");
    const bool is_known = me_str_status(&folder) == ME_OK &&
                          stat(me_str_text(&folder), about_out) == 0;
    me_str_fini(&folder);
    return is_known;
}

static bool is_same_place(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/** Are two paths one file, or one as soon as it is there? A terminal or
 *  /dev/null may be written twice. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a;
    struct stat of_b;
    const bool has_a = stat(a, &of_a) == 0;
    const bool has_b = stat(b, &of_b) == 0;
    if (has_a || has_b) {
        return has_a && has_b && S_ISREG(of_a.st_mode) &&
               is_same_place(&of_a, &of_b);
    }
    return strcmp(name_of(a), name_of(b)) == 0 && find_folder(a, &of_a) &&
           find_folder(b, &of_b) && is_same_place(&of_a, &of_b);
}

static me_status check_pair(const output *a, const output *b, me_diag *diag)
{
    if (a->path == NULL || b->path == NULL) {
        return ME_OK;
    }
    char *of_a = me_output_target(a->path);
    char *of_b = me_output_target(b->path);
    const me_status status =
        of_a == NULL || of_b == NULL
            ? me_fail(diag, ME_ERR_NOMEM, "no memory for a file's name")
        : is_same_file(of_a, of_b)
            ? me_fail(diag, ME_ERR_CONFIG,
                      "%s %s and %s %s are one file: give another", a->flag,
                      a->path, b->flag, b->path)
            : ME_OK;
    me_free(of_a);
    me_free(of_b);
    return status;
}

/** Is what is appended to stdout's file written over, or what stands there then
 *  read as what it is not? A log of messages that both append to loses nothing. */
static bool spoils_stdout(const output *o)
{
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    return !o->is_log || flags < 0 || (flags & O_APPEND) == 0;
}

static me_status check_stdout(const me_cli *cli, const output *outputs,
                              size_t n, me_diag *diag)
{
    struct stat of_stdout;
    struct stat of_output;
    if (cli->output != NULL || fstat(STDOUT_FILENO, &of_stdout) != 0 ||
        !S_ISREG(of_stdout.st_mode)) {
        return ME_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (outputs[i].path != NULL && stat(outputs[i].path, &of_output) == 0 &&
            is_same_place(&of_stdout, &of_output) &&
            spoils_stdout(&outputs[i])) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s %s is the file that stdout goes to: give "
                           "another",
                           outputs[i].flag, outputs[i].path);
        }
    }
    return ME_OK;
}

static me_status check_outputs(const output *outputs, size_t n, me_diag *diag)
{
    const char *flags[ME_INPUT_APART_MAX];
    const char *paths[ME_INPUT_APART_MAX];
    size_t n_paths = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            const me_status status = check_pair(&outputs[j], &outputs[i], diag);
            if (status != ME_OK) {
                return status;
            }
        }
        if (outputs[i].path != NULL && !outputs[i].is_read) {
            flags[n_paths] = outputs[i].flag;
            paths[n_paths++] = outputs[i].path;
        }
    }
    me_input_keep_apart(flags, paths, n_paths);
    return ME_OK;
}

enum {
    SOURCED_DEPTH = 8 /**< a script that another one reads, and so on */
};

/** Skip blanks and what a shell's command may stand behind, such as the quote of
 *  `eval "source a.sh"`. */
static const char *skip_to_command(const char *at)
{
    static const char *const words[] = {"then ", "else ", "do ", "{ "};
    const char *before = NULL;
    while (at != before) {
        before = at;
        at += strspn(at, " \t;&|(\"'");
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            const size_t n = strlen(words[i]);
            at += strncmp(at, words[i], n) == 0 ? n : 0;
        }
    }
    return at;
}

/** The file behind `source` or `.`, without quotes, if a command is one. */
static bool find_sourced(const char *command, me_str *name_out)
{
    static const char *const words[] = {"source", "."};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);
        if (strncmp(command, words[i], n) != 0 ||
            (command[n] != ' ' && command[n] != '\t')) {
            continue;
        }
        const char *word = command + n + strspn(command + n, " \t");
        for (; *word != '\0' && strchr(" \t\n;&|)", *word) == NULL; word++) {
            me_str_append_n(name_out, word,
                            *word == '"' || *word == '\'' ? 0 : 1);
        }
        return name_out->length > 0;
    }
    return false;
}

static me_status check_script(const char *path, int depth, me_diag *diag);

/** As the shell finds it, beside the script, and where a variable says the
 *  folder, beside the script too. Reading refuses what is an output. */
// NOLINTNEXTLINE(misc-no-recursion): at most SOURCED_DEPTH
static me_status check_sourced(const char *script, const char *name, int depth,
                               me_diag *diag)
{
    me_str beside = {0};
    me_str_append_n(&beside, script, (size_t)(name_of(script) - script));
    me_str_append(&beside, strchr(name, '$') != NULL || name[0] == '/'
                               ? name_of(name)
                               : name);
    me_status status = check_script(name, depth, diag);
    if (status == ME_OK) {
        status = me_str_status(&beside) == ME_OK
                     ? check_script(me_str_text(&beside), depth, diag)
                     : me_fail(diag, ME_ERR_NOMEM, "no memory for a path");
    }
    me_str_fini(&beside);
    return status;
}

/** A script, and those that it reads: files behind `source` and `.`. What cannot
 *  be read is the shell's to tell. */
// NOLINTNEXTLINE(misc-no-recursion): at most SOURCED_DEPTH
static me_status check_script(const char *path, int depth, me_diag *diag)
{
    me_diag refused = {.status = ME_OK};
    me_str text = {0};
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, &refused, &text);
    if (status == ME_ERR_CONFIG || status == ME_ERR_NOMEM) {
        *diag = refused;
    } else if (status == ME_OK && depth < SOURCED_DEPTH) {
        const char *at = me_str_text(&text);
        while (status == ME_OK && *at != '\0') {
            me_str name = {0};
            at = skip_to_command(at);
            if (find_sourced(at, &name)) {
                status =
                    check_sourced(path, me_str_text(&name), depth + 1, diag);
            }
            if (me_str_status(&name) != ME_OK) {
                status = me_fail(diag, ME_ERR_NOMEM, "no memory for a path");
            }
            me_str_fini(&name);
            at += strcspn(at, "\n;&|(\"'");
            at += *at == '\n';
        }
    } else {
        status = ME_OK;
    }
    me_str_fini(&text);
    return status;
}

/** A script is read by its shell, other files by what it starts: no output takes
 *  the place of one that the command line names. */
static me_status check_word(const char *word, const output *outputs, size_t n,
                            me_diag *diag)
{
    struct stat about;
    if (word == NULL || stat(word, &about) != 0 || !S_ISREG(about.st_mode)) {
        return ME_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (outputs[i].path != NULL && is_same_file(word, outputs[i].path)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s %s is a file that the job is read from: give "
                           "another",
                           outputs[i].flag, outputs[i].path);
        }
    }
    return ME_OK;
}

/** A value behind `=` as well: of a flag, of an option's --set. */
static me_status check_value(const char *word, const output *outputs, size_t n,
                             me_diag *diag)
{
    const char *equals = word == NULL ? NULL : strchr(word, '=');
    const me_status status = check_word(word, outputs, n, diag);
    return status != ME_OK || equals == NULL
               ? status
               : check_word(equals + 1, outputs, n, diag);
}

/** What is named and may not be read by this job: an option's file, the files
 *  that variables name. */
static me_status check_named(const me_cli *cli, const output *outputs, size_t n,
                             me_diag *diag)
{
    static const char *const variables[] = {"MEMEST_SITE", "HWLOC_XMLFILE"};
    me_status status = ME_OK;
    for (int32_t i = 0; status == ME_OK && i < cli->n_sets; i++) {
        status = check_value(cli->sets[i], outputs, n, diag);
    }
    for (size_t i = 0;
         status == ME_OK && i < sizeof variables / sizeof variables[0]; i++) {
        status = check_word(getenv(variables[i]), outputs, n, diag);
    }
    return status;
}

static bool is_script(const char *word)
{
    char interpreter[PATH_MAX];
    return me_ends_with(word, ".sh") ||
           me_interpreter_of_script(word, interpreter);
}

static me_status check_words(const me_cli *cli, const output *outputs, size_t n,
                             me_diag *diag)
{
    me_status status = check_word(cli->script, outputs, n, diag);
    if (status == ME_OK && cli->script != NULL) {
        status = check_script(cli->script, 0, diag);
    }
    for (int i = 0; status == ME_OK && i < cli->launch_argc; i++) {
        status = check_value(cli->launch_argv[i], outputs, n, diag);
        if (status == ME_OK && is_script(cli->launch_argv[i])) {
            status = check_script(cli->launch_argv[i], 0, diag);
        }
    }
    return status;
}

me_status me_outputs_keep_apart(const me_cli *cli, me_diag *diag)
{
    const bool has_output =
        cli->output != NULL && strcmp(cli->output, "-") != 0;
    const output outputs[] = {
        {"--output", has_output ? cli->output : NULL, false, false},
        {"--events", cli->events, false, false},
        {"--log-file", cli->log_file, false, true},
        {"--jsonl", cli->jsonl, true, false},
    };
    const size_t n = sizeof outputs / sizeof outputs[0];
    me_status status = check_outputs(outputs, n, diag);
    if (status == ME_OK) {
        status = check_words(cli, outputs, n, diag);
    }
    if (status == ME_OK) {
        status = check_named(cli, outputs, n, diag);
    }
    return status == ME_OK ? check_stdout(cli, &outputs[1], n - 1, diag)
                           : status;
}
