/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/job_file.h"

#include "base/data_files.h"
#include "base/parse.h"
#include "script/interpreter.h"

#include <limits.h>
#include <unistd.h>

static bool is_named_as_job(const char *word)
{
    static const char *const ends[] = {".cfg", ".toml", ".json", ".yaml",
                                       ".yml"};
    bool is_named = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        is_named = is_named || me_ends_with(word, ends[i]);
    }
    return is_named;
}

/** Is there no such file, but a model of that name? */
static bool is_known_model(const char *word)
{
    me_str path = {0};
    const bool is_known =
        access(word, F_OK) != 0 &&
        me_data_find(&me_data_models, word, NULL, &path) == ME_OK &&
        access(me_str_text(&path), R_OK) == 0;
    me_str_fini(&path);
    return is_known;
}

me_status me_job_file_take(me_cli *cli, me_diag *diag)
{
    const char *word = cli->script;
    char interpreter[PATH_MAX];
    if (word == NULL) {
        return ME_OK;
    }
    if (is_known_model(word)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: no such file: a model that is known by name goes "
                       "behind --model",
                       word);
    }
    if (!is_named_as_job(word) || me_interpreter_of_script(word, interpreter)) {
        return ME_OK;
    }
    if (access(word, X_OK) == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: is executable, though it is named as a job's file "
                       "and has no #!: a job's file goes behind --model, a "
                       "shell's script behind -- bash",
                       word);
    }
    if (cli->model != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: a job's file goes behind --model, which is %s "
                       "already",
                       word, cli->model);
    }
    cli->model = word;
    cli->script = NULL;
    return ME_OK;
}
