/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/command_job.h"

#include "app/command_script.h"
#include "app/exported.h"
#include "app/script_line.h"
#include "base/input.h"
#include "config/file.h"
#include "config/launch_command.h"
#include "config/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** A flag of ours that stands for an option, over what was read before. */
static me_status set_from_flag(me_config *config, const char *flag,
                               const char *option, const char *value,
                               me_diag *diag)
{
    if (value == NULL) {
        return ME_OK;
    }
    const me_status status = me_config_set(config, option, value, diag);
    return status == ME_OK ? ME_OK : me_fail_of(diag, status, "%s", flag);
}

static me_status read_flags(const me_cli *cli, me_config *config, me_diag *diag)
{
    char world[16] = "";
    (void)snprintf(world, sizeof world, "%d", cli->world_size);
    me_status status =
        set_from_flag(config, "--world-size", "parallel.world_size",
                      cli->world_size > 0 ? world : NULL, diag);
    if (status == ME_OK) {
        status = set_from_flag(config, "--memory-limit", "device.memory_limit",
                               cli->memory_limit, diag);
    }
    if (status == ME_OK) {
        status = set_from_flag(config, "--alloc-conf", "device.alloc_conf",
                               cli->alloc_conf, diag);
    }
    if (status == ME_OK) {
        status =
            set_from_flag(config, "--device", "device.name", cli->device, diag);
    }
    if (status == ME_OK) {
        status = set_from_flag(config, "--machine", "machine.file",
                               cli->machine, diag);
    }
    return status;
}

/** A word may lack what a command of the script would have printed elsewhere. */
static me_status name_mute(const me_launch_words *words, me_status status,
                           me_diag *diag)
{
    return status == ME_ERR_NOMEM || words->mute == NULL
               ? status
               : me_fail_behind(diag, status,
                                "the script's '%.120s' gave no value here",
                                words->mute);
}

/** The script's line that gives a flag. */
static void append_line(const me_launch_words *words, const char *flag,
                        me_str *line)
{
    if (words->script_text != NULL && words->script != NULL) {
        const char *slash = strrchr(words->script, '/');
        me_script_line_append(slash == NULL ? words->script : slash + 1,
                              words->script_text, flag, line);
    }
}

/** A tokenizer that is still to be put in, `"<path to tokenizer>"`. */
static me_status say_placeholders(const me_launch_words *words,
                                  me_config *config, me_diag *diag)
{
    me_status status = ME_OK;
    for (int i = 1; status == ME_OK && i < words->argc; i++) {
        const char *equals = strstr(words->argv[i], "=<");
        const char *value = equals == NULL ? words->argv[i] : equals + 1;
        const char *flag = words->argv[equals == NULL ? i - 1 : i];
        const int length = (int)strcspn(flag, "=");
        me_str line = {0};
        if (value[0] != '<' || strchr(value, '>') == NULL ||
            strncmp(flag, "--tokenizer", 11) != 0) {
            continue;
        }
        append_line(words, flag, &line);
        status = me_config_assume(
            config, diag, "'%.80s' of %.*s is still to be put in%s%.240s%s",
            value, length < 60 ? length : 60, flag, line.length > 0 ? " (" : "",
            me_str_text(&line), line.length > 0 ? ")" : "");
        me_str_fini(&line);
    }
    return status;
}

/** What a flag lacks is named with the script's line that gives it. */
static me_status name_line(const me_launch_words *words, me_status status,
                           me_diag *diag)
{
    me_str line = {0};
    if (status != ME_ERR_NOMEM && strncmp(diag->flag, "--", 2) == 0) {
        append_line(words, diag->flag, &line);
    }
    if (line.length > 0 && me_str_status(&line) == ME_OK) {
        status = me_fail_behind(diag, status, "%.240s", me_str_text(&line));
    }
    me_str_fini(&line);
    return status;
}

/** Words of a script that was saved on Windows end as its lines do, which nobody
 *  sees. @return the one that does; NULL: none */
static const char *find_return(const me_launch_words *words)
{
    const char *word = NULL;
    for (int i = 0; word == NULL && i < words->argc; i++) {
        const size_t length = strlen(words->argv[i]);
        if (length > 1 && words->argv[i][length - 1] == '\r') {
            word = words->argv[i];
        }
    }
    return word;
}

static me_status name_return(const me_launch_words *words, me_status status,
                             me_diag *diag)
{
    const char *word = find_return(words);
    char text[ME_DIAG_TEXT] = "";
    if (status == ME_ERR_NOMEM || word == NULL) {
        return status;
    }
    (void)snprintf(text, sizeof text, "%s", diag->text);
    const size_t length = strlen(word) - 1;
    return me_fail(diag, status,
                   "'%.*s' ends with a carriage return: the script has the "
                   "line ends of Windows, which dos2unix mends (%.300s)",
                   length < 80 ? (int)length : 80, word, text);
}

/** A script that was given no arguments, of whose words one is empty, most likely
 *  waits for them. */
static me_status name_arguments(const me_cli *cli, const me_launch_words *words,
                                me_status status, me_diag *diag)
{
    bool has_empty = false;
    for (int i = 0; i < words->argc; i++) {
        has_empty = has_empty || words->argv[i][0] == '\0';
    }
    if (status == ME_ERR_NOMEM || cli->script == NULL || cli->launch_argc > 0 ||
        !has_empty) {
        return name_mute(words, status, diag);
    }
    return me_fail_behind(
        diag, status,
        "a word of %.200s is empty: the script's arguments go after --",
        cli->script);
}

/** Is a file one of those that the launch names? */
static bool is_named(const me_launch_words *words, const char *file)
{
    bool is_one = false;
    for (int i = words->n_variables; !is_one && i < words->argc; i++) {
        const char *word = words->argv[i];
        const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
        const char *value = equals == NULL ? word : equals + 1;
        value += value[0] == '@';
        is_one = strcmp(value, file) == 0;
    }
    return is_one;
}

/** What the launch's own folder does not have, and another has. */
static me_status say_strays(const me_launch_words *words, me_config *config,
                            me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && me_input_stray(i) != NULL; i++) {
        const char *file = me_input_stray(i);
        if (is_named(words, file)) {
            status = me_config_assume(
                config, diag,
                "%.100s is not in the folder where the script launches its "
                "job: the one where memest was started is read",
                file);
        }
    }
    return status;
}

/** Of an array one task is acted out: the others may be other jobs. */
static me_status say_array(me_config *config, me_diag *diag)
{
    const char *count = me_config_variable(config, "SLURM_ARRAY_TASK_COUNT");
    const char *task = me_config_variable(config, "SLURM_ARRAY_TASK_ID");
    return count == NULL || task == NULL || strcmp(count, "1") == 0
               ? ME_OK
               : me_config_assume(config, diag,
                                  "task %.20s of the array's %.20s, of which "
                                  "each may be another job (sbatch --array=N)",
                                  task, count);
}

static me_status read_launch(const me_cli *cli, me_config *config,
                             me_diag *diag)
{
    me_launch_words words;
    me_status status = me_launch_words_find(cli, diag, &words);
    if (status == ME_OK) {
        status = me_config_read_launch(config, words.argc, words.argv, diag);
        status = status == ME_OK ? status : name_return(&words, status, diag);
        if (status != ME_OK) {
            status = name_line(&words, status, diag);
            status = name_arguments(cli, &words, status, diag);
        }
    }
    if (status == ME_OK) {
        status = me_exported_say(words.argv, words.n_variables, config, diag);
    }
    if (status == ME_OK && words.n_jobs > 1) {
        status = me_config_assume(config, diag,
                                  "launch %" PRIu32 " of the %" PRIu32
                                  " jobs that the script launches (--launch)",
                                  words.number, words.n_jobs);
    }
    if (status == ME_OK) {
        status = say_array(config, diag);
    }
    if (status == ME_OK && words.mute != NULL) {
        status = me_config_assume(config, diag,
                                  "no value of the script's '%.120s', which is "
                                  "not to be had here",
                                  words.mute);
    }
    if (status == ME_OK) {
        status = say_strays(&words, config, diag);
    }
    if (status == ME_OK) {
        status = say_placeholders(&words, config, diag);
    }
    me_launch_words_fini(&words);
    return status;
}

me_status me_job_read_unfinished(const me_cli *cli, me_config *config,
                                 me_diag *diag)
{
    if (cli->model == NULL && cli->launch_argc == 0 && cli->script == NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "no job: give --model FILE, a script, or a launch "
                       "command after --; memest --help says more");
    }
    if (cli->unknown != NULL && strcmp(cli->unknown, "warn") == 0) {
        me_config_take_unknown(config);
    } else if (cli->unknown != NULL && strcmp(cli->unknown, "error") != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--unknown %.40s: must be error or warn", cli->unknown);
    }
    me_status status = ME_OK;
    if (cli->model != NULL) {
        status = me_config_read_file(config, cli->model, diag);
    }
    if (status == ME_OK && (cli->launch_argc > 0 || cli->script != NULL)) {
        status = read_launch(cli, config, diag);
    }
    if (status == ME_OK) {
        status = read_flags(cli, config, diag);
    }
    for (int32_t i = 0; status == ME_OK && i < cli->n_sets; i++) {
        status = me_config_set_assignment(config, cli->sets[i], diag);
    }
    return status;
}

me_status me_job_read(const me_cli *cli, int32_t num_processes,
                      me_config *config, me_diag *diag)
{
    const me_status status = me_job_read_unfinished(cli, config, diag);
    return status == ME_OK ? me_job_finish(cli, num_processes, config, diag)
                           : status;
}

/** What a job's file does not say is named with it. */
static me_status name_file(const me_cli *cli, me_status status, me_diag *diag)
{
    return status != ME_ERR_CONFIG || cli->model == NULL || !diag->is_missing
               ? status
               : me_fail_of(diag, status, "%.200s", cli->model);
}

me_status me_job_finish(const me_cli *cli, int32_t num_processes,
                        me_config *config, me_diag *diag)
{
    me_status status = me_config_finish(config, num_processes, diag);
    status = name_file(cli, status, diag);
    const int32_t n = me_config_iterations(config, config->train.iterations) +
                      (config->train.evaluates ? 1 : 0);
    if (status == ME_OK && cli->iteration >= n) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--iteration %d: iterations 0 to %d are run",
                         cli->iteration, n - 1);
    }
    return status;
}
