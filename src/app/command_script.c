/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/command_script.h"

#include "app/exported.h"
#include "base/input.h"
#include "base/log.h"
#include "base/parse.h"
#include "config/hub_cache.h"
#include "config/launch_command.h"
#include "config/launch_ranks.h"
#include "config/wrappers.h"
#include "run/environment_names.h"
#include "run/job_card.h"
#include "script/batch.h"
#include "script/carry.h"
#include "script/guise.h"
#include "script/interpreter.h"
#include "script/script_run.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ARENA_BYTES = 64 << 20
};

/** A command line that is growing; its words are borrowed. */
typedef struct line {
    const char **argv;
    int argc;
} line;

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

/** Does the command start a shell, or what memest has to step through by
 *  acting, before any script of Python's? */
static bool needs_acting(int argc, const char *const *argv)
{
    for (int i = 0; i < argc && !me_ends_with(argv[i], ".py"); i++) {
        const me_wrapper *wrapper = me_wrapper_find(argv[i]);
        if (wrapper != NULL && (wrapper->kind == ME_WRAPPER_SHELL ||
                                wrapper->kind == ME_WRAPPER_FOREIGN)) {
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
               ? me_fail(diag, ME_ERR_CONFIG,
                         "%s: is not a regular file: a script that launches a "
                         "job goes here",
                         path)
               : ME_OK;
}

/** `memest check FILE -- ARGUMENTS`: as the shell that it names runs it, or as
 *  sbatch does. */
static me_status order_file(const me_cli *cli, me_arena *arena, line *to,
                            me_diag *diag)
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
static void order_words(const me_cli *cli, me_arena *arena, line *to)
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

/** Does the launch command have to be run to be known? */
static bool is_acted(const me_cli *cli)
{
    int at = 0;
    while (at < cli->launch_argc && is_assignment(cli->launch_argv[at])) {
        at++;
    }
    return at < cli->launch_argc &&
           (is_script(cli->launch_argv[at]) ||
            needs_acting(cli->launch_argc - at, cli->launch_argv + at));
}

/** One that says which ranks and cards a job of Slurm's has? */
static bool is_of_slurm(const char *name)
{
    me_launch_ranks ranks = {.gpus = {.count = 0}};
    return me_launch_ranks_variable(&ranks, name, "");
}

/** Variables of a launch that can matter to memory or to the ranks, which
 *  ms-swift takes from two. */
static bool is_kept(const char *variable, me_arena *arena)
{
    static const char *const ranks[] = {"WORLD_SIZE", "NPROC_PER_NODE",
                                        "NNODES"};
    static const char file[] = ME_CARRY_FILE;
    const size_t length = strcspn(variable, "=");
    if (strncmp(variable, file, sizeof file - 1) == 0) {
        return false;
    }
    char *name = me_arena_strdup(arena, variable);
    if (name == NULL || variable[length] == '\0' ||
        variable[length + 1] == '\0') {
        return false;
    }
    name[length] = '\0';
    const me_variable_rule *rule = me_variable_rule_find(name);
    if (me_hub_is_variable(name)) { // what memest has itself need not be told
        const char *own = getenv(name);
        return own == NULL || strcmp(own, name + length + 1) != 0;
    }
    return me_is_one_of(name, length, ranks, sizeof ranks / sizeof *ranks) ||
           is_of_slurm(name) ||
           (rule != NULL && rule->kind != ME_VARIABLE_NO_EFFECT);
}

static me_status make_words(const me_script_launch *launch, me_launch_words *to,
                            me_diag *diag)
{
    const size_t most = (size_t)launch->argc + (size_t)launch->n_variables;
    const char **argv = me_arena_alloc(to->arena, most + 1, sizeof *argv);
    to->argc = 0;
    for (int i = 0; argv != NULL && i < launch->n_variables; i++) {
        if (is_kept(launch->variables[i], to->arena)) {
            argv[to->argc++] = me_arena_strdup(to->arena, launch->variables[i]);
        }
    }
    to->n_variables = to->argc;
    for (int i = 0; argv != NULL && i < launch->argc; i++) {
        argv[to->argc++] = me_arena_strdup(to->arena, launch->argv[i]);
    }
    for (int i = 0; argv != NULL && i < to->argc; i++) {
        argv = argv[i] == NULL ? NULL : argv;
    }
    to->argv = argv;
    return argv != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no memory for a launch command");
}

/** Files that the script wrote and the launch names are read as it wrote them. */
static me_status take_file(const char *file, me_arena *arena, me_diag *diag)
{
    const size_t length = strcspn(file, "\n");
    char *path = me_arena_alloc(arena, length + 1, 1);
    me_str bytes = {0};
    if (path != NULL) {
        memcpy(path, file, length);
        path[length] = '\0';
    }
    me_carry_decode(file + length + (file[length] == '\n'), &bytes);
    const me_status status =
        path == NULL || me_str_status(&bytes) != ME_OK
            ? me_fail(diag, ME_ERR_NOMEM, "no memory for a script's files")
            : me_input_stand_in(path, me_str_text(&bytes), bytes.length, diag);
    me_str_fini(&bytes);
    return status;
}

static me_status take_files(const me_script_launch *launch, me_arena *arena,
                            me_diag *diag)
{
    static const char mark[] = ME_CARRY_FILE;
    static const char folder[] = ME_CARRY_FOLDER;
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < launch->n_variables; i++) {
        const char *variable = launch->variables[i];
        if (strncmp(variable, mark, sizeof mark - 1) == 0) {
            status = take_file(variable + sizeof mark - 1, arena, diag);
        } else if (strncmp(variable, folder, sizeof folder - 1) == 0) {
            status = me_input_enter(variable + sizeof folder - 1, diag);
        }
    }
    return status;
}

/** Two launches of one job: those of its nodes, or after a restart, differ in
 *  where they meet. */
static bool is_same_job(const me_script_launch *a, const me_script_launch *b)
{
    static const char *const own[] = {
        "--node_rank", "--node-rank", "--machine_rank", "--rdzv_id",
        "--rdzv-id", "--rdzv_endpoint", "--rdzv-endpoint", "--master_port",
        "--master-port", "--master_addr", "--master-addr",
        // srun's: where a step of the job runs, and what it prints
        "-w", "--nodelist", "-r", "--relative", "-o", "--output", "-e",
        "--error", "-J", "--job-name"};

    enum {
        N_OWN = sizeof own / sizeof *own
    };

    bool is_same = a->argc == b->argc;
    for (int i = 0; is_same && i < a->argc; i++) {
        const char *word = a->argv[i];
        const char *before = i == 0 ? "" : a->argv[i - 1];
        const bool is_letter = word[0] == '-' && word[1] != '-';
        const size_t n = is_letter && strlen(word) > 2 ? 2 : strcspn(word, "=");
        is_same = strcmp(word, b->argv[i]) == 0 ||
                  me_is_one_of(before, strlen(before), own, N_OWN) ||
                  (me_is_one_of(word, n, own, N_OWN) &&
                   strncmp(word, b->argv[i], n) == 0);
    }
    return is_same;
}

/** The jobs among the launches: those of scripts that are modelled, or all
 *  where none is. */
static uint32_t find_jobs(const me_script *script,
                          const me_script_launch **jobs)
{
    uint32_t count = 0;
    for (int needs_known = 1; count == 0 && needs_known >= 0; needs_known--) {
        for (uint32_t i = 0; i < script->n_launches; i++) {
            const me_script_launch *launch = &script->launches[i];
            bool is_new = needs_known == 0 ||
                          me_launch_names_job(launch->argc, launch->argv);
            for (uint32_t j = 0; is_new && j < count; j++) {
                is_new = !is_same_job(launch, jobs[j]);
            }
            if (is_new) {
                jobs[count++] = launch;
            }
        }
    }
    return count;
}

static void tell_words(const char *name, uint32_t number,
                       const me_script_launch *launch)
{
    me_str text = {0};
    for (int i = 0; i < launch->argc; i++) {
        me_str_append(&text, i == 0 ? "" : " ");
        me_str_append_clean(&text, launch->argv[i], strlen(launch->argv[i]));
    }
    me_log(ME_LOG_INFO, "%s: launch %" PRIu32 ": %s", name, number,
           me_str_text(&text));
    me_str_fini(&text);
}

static void tell(const char *name, const me_script *script,
                 const me_script_launch *const *jobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tell_words(name, i + 1, jobs[i]);
    }
    if (!script->is_replaced) {
        me_log(ME_LOG_INFO,
               "%s: programs that it calls by their paths did not run, since "
               "processes cannot be traced here",
               name);
    }
}

/** Where jobs differ first, for who has to pick one. */
static me_status refuse_many(const char *name,
                             const me_script_launch *const *jobs,
                             uint32_t count, me_diag *diag)
{
    int at = 0;
    while (at < jobs[0]->argc && at < jobs[1]->argc &&
           strcmp(jobs[0]->argv[at], jobs[1]->argv[at]) == 0) {
        at++;
    }
    const char *first = at < jobs[0]->argc ? jobs[0]->argv[at] : "nothing";
    const char *second = at < jobs[1]->argc ? jobs[1]->argv[at] : "nothing";
    const char *flag = at > 0 && jobs[0]->argv[at - 1][0] == '-'
                           ? jobs[0]->argv[at - 1]
                           : "what follows";
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s launches %" PRIu32 " jobs: give --launch 1 to %" PRIu32
                   "; the first two differ in %.60s: '%.60s', '%.60s'",
                   name, count, count, flag, first, second);
}

static me_status pick(const me_cli *cli, const char *name,
                      const me_script *script, me_launch_words *to,
                      me_diag *diag)
{
    const me_script_launch *jobs[ME_SCRIPT_LAUNCHES_MAX];
    const uint32_t count = find_jobs(script, jobs);
    tell(name, script, jobs, count);
    if (cli->launch == 0 && count > 1) {
        return refuse_many(name, jobs, count, diag);
    }
    const uint32_t number = cli->launch == 0 ? 1 : (uint32_t)cli->launch;
    if (number > count) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--launch %" PRIu32 ": %s launches %" PRIu32 " job%s",
                       number, name, count, me_plural(count));
    }
    to->number = number;
    to->n_jobs = count;
    const me_status status = take_files(jobs[number - 1], to->arena, diag);
    return status == ME_OK ? make_words(jobs[number - 1], to, diag) : status;
}

/** What nvidia-smi says in the script; "" where the card has no file. */
static void describe_card(const me_cli *cli, me_str *text)
{
    me_device_card card = {.total_bytes = 0};
    me_rates rates;
    const char *name = cli->device == NULL ? "h200-141gb" : cli->device;
    if (me_card_choose(name, NULL, &card, &rates) == ME_OK) {
        me_str_printf(text, "%s|%" PRIu64, card.name, card.total_bytes >> 20U);
    }
}

static me_status act(const me_cli *cli, me_launch_words *to, me_diag *diag)
{
    me_str card = {0};
    line words = {.argv =
                      me_arena_alloc(to->arena, (size_t)cli->launch_argc + 8,
                                     sizeof *words.argv)};
    if (words.argv == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a script's words");
    }
    me_status status = ME_OK;
    if (cli->script != NULL) {
        status = order_file(cli, to->arena, &words, diag);
    } else {
        status = check_files(cli, diag);
        order_words(cli, to->arena, &words);
    }
    const char *name = cli->script != NULL ? cli->script : "the launch command";
    me_script *script = NULL;
    if (status == ME_OK) {
        describe_card(cli, &card);
        status = me_script_run(&(me_script_order){.name = name,
                                                  .argc = words.argc,
                                                  .argv = words.argv,
                                                  .card = me_str_text(&card),
                                                  .is_trusted = cli->trust},
                               diag, &script);
    }
    if (status == ME_OK) {
        status = pick(cli, name, script, to, diag);
    }
    me_script_destroy(script);
    me_str_fini(&card);
    return status;
}

/** A launch command is started in the shell that memest runs in: what that
 *  exports reaches the job, and inside of a job of Slurm's its variables say
 *  what the command leaves open. */
static me_status add_exported(const me_cli *cli, me_launch_words *to,
                              me_diag *diag)
{
    me_script_launch launch = {.argc = cli->launch_argc,
                               .argv = cli->launch_argv};
    const me_status status = me_exported_find(
        to->arena, diag, &launch.variables, &launch.n_variables);
    return status == ME_OK ? make_words(&launch, to, diag) : status;
}

me_status me_launch_words_find(const me_cli *cli, me_diag *diag,
                               me_launch_words *words_out)
{
    *words_out =
        (me_launch_words){.argc = cli->launch_argc, .argv = cli->launch_argv};
    const bool acts = cli->script != NULL || is_acted(cli);
    if (!acts && cli->launch > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--launch %d: a launch command is one job",
                       (int)cli->launch);
    }
    if (!acts && cli->launch_argc == 0) {
        return ME_OK;
    }
    me_exported_restore_job();
    words_out->arena = me_arena_create(ARENA_BYTES, "a launch command");
    if (words_out->arena == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a launch command");
    }
    return acts ? act(cli, words_out, diag)
                : add_exported(cli, words_out, diag);
}

void me_launch_words_fini(me_launch_words *words)
{
    me_input_stand_ins_end();
    me_arena_destroy(words->arena);
    *words = (me_launch_words){.argc = 0};
}
