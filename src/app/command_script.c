/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/command_script.h"

#include "app/exported.h"
#include "app/launch_variables.h"
#include "app/script_jobs.h"
#include "app/script_words.h"
#include "base/input.h"
#include "base/parse.h"
#include "config/wrappers.h"
#include "run/job_card.h"
#include "script/carry.h"
#include "script/script_end.h"
#include "script/script_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARENA_BYTES = 64 << 20
};

static me_status make_words(const me_script_launch *launch, me_launch_words *to,
                            me_diag *diag)
{
    const size_t most = (size_t)launch->argc + (size_t)launch->n_variables;
    const char **argv = me_arena_alloc(to->arena, most + 1, sizeof *argv);
    to->argc = 0;
    for (int i = 0; argv != NULL && i < launch->n_variables; i++) {
        if (me_launch_variable_counts(launch->variables[i])) {
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

/** Links that it made lead to what was there before. */
static me_status take_link(const char *link, me_arena *arena, me_diag *diag)
{
    const size_t length = strcspn(link, "\n");
    char *path = me_arena_strdup(arena, link);
    if (path == NULL || link[length] == '\0') {
        return path == NULL
                   ? me_fail(diag, ME_ERR_NOMEM, "no memory for a link")
                   : ME_OK;
    }
    path[length] = '\0';
    return me_input_link(path, path + length + 1, diag);
}

static me_status enter(const char *folder, me_arena *arena, me_diag *diag)
{
    (void)arena;
    return me_input_enter(folder, diag);
}

/** What memest's own variables of a launch say of its files. */
static const struct {
    const char *mark;
    me_status (*take)(const char *value, me_arena *arena, me_diag *diag);
} file_marks[] = {
    {ME_CARRY_FOLDER, enter}, // comes first in a record, too
    {ME_CARRY_FILE, take_file},
    {ME_CARRY_LINK, take_link},
};

static me_status take_files(const me_script_launch *launch, me_arena *arena,
                            me_diag *diag)
{
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < launch->n_variables; i++) {
        const char *variable = launch->variables[i];
        for (size_t j = 0; j < sizeof file_marks / sizeof *file_marks; j++) {
            const size_t n = strlen(file_marks[j].mark);
            if (status == ME_OK &&
                strncmp(variable, file_marks[j].mark, n) == 0) {
                status = file_marks[j].take(variable + n, arena, diag);
            }
        }
    }
    return status;
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

/** The script itself: the first of a shell's words that is a file of text. */
static void take_script(const me_script_words *words, me_launch_words *to)
{
    for (int i = 1; i < words->argc && to->script == NULL; i++) {
        me_str text = {0};
        me_diag unread;
        if (me_input_is_file(words->argv[i]) &&
            me_input_read(words->argv[i], ME_INPUT_MAX_BYTES, &unread, &text) ==
                ME_OK) {
            to->script = me_arena_strdup(to->arena, words->argv[i]);
            to->script_text = me_arena_strdup(to->arena, me_str_text(&text));
        }
        me_str_fini(&text);
    }
}

static me_status act(const me_cli *cli, me_launch_words *to, me_diag *diag)
{
    me_str card = {0};
    me_script_words words = {.argc = 0};
    me_script_job job = {.number = 0};
    const char *name = cli->script != NULL ? cli->script : "the launch command";
    me_script *script = NULL;
    me_status status = me_script_words_of(cli, to->arena, diag, &words);
    if (status == ME_OK) {
        describe_card(cli, &card);
        take_script(&words, to);
        status = me_script_run(&(me_script_order){.name = name,
                                                  .argc = words.argc,
                                                  .argv = words.argv,
                                                  .card = me_str_text(&card),
                                                  .is_trusted = cli->trust},
                               diag, &script);
    }
    if (status == ME_OK) {
        status =
            me_script_job_pick(script, name, (uint32_t)cli->launch, diag, &job);
    }
    if (status == ME_OK) {
        to->number = job.number;
        to->n_jobs = job.n_jobs;
        const char *mute = me_script_mute(script);
        to->mute = mute == NULL ? NULL : me_arena_strdup(to->arena, mute);
        status = take_files(job.launch, to->arena, diag);
    }
    if (status == ME_OK) {
        status = make_words(job.launch, to, diag);
    }
    me_script_destroy(script);
    me_str_fini(&card);
    return status;
}

/** Is srun among the words in front of a script of Python's? */
static bool starts_srun(const me_cli *cli)
{
    for (int i = 0; i < cli->launch_argc; i++) {
        const me_wrapper *wrapper = me_wrapper_find(cli->launch_argv[i]);
        if (me_ends_with(cli->launch_argv[i], ".py")) {
            return false;
        }
        if (wrapper != NULL && wrapper->kind == ME_WRAPPER_SRUN) {
            return true;
        }
    }
    return false;
}

/** A launch command is started in the shell that memest runs in: what that
 *  exports reaches the job, and inside of a job of Slurm's its variables say
 *  what the command leaves open. */
static me_status add_exported(const me_cli *cli, me_launch_words *to,
                              me_diag *diag)
{
    me_script_launch launch = {.argc = cli->launch_argc,
                               .argv = cli->launch_argv};
    const me_status status =
        me_exported_find(to->arena, starts_srun(cli), diag, &launch.variables,
                         &launch.n_variables);
    return status == ME_OK ? make_words(&launch, to, diag) : status;
}

me_status me_launch_words_find(const me_cli *cli, me_diag *diag,
                               me_launch_words *words_out)
{
    *words_out =
        (me_launch_words){.argc = cli->launch_argc, .argv = cli->launch_argv};
    const bool acts = me_script_is_acted(cli);
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
