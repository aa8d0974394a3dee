/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_command.h"

#include "base/parse.h"
#include "base/python_number.h"
#include "config/argument_files.h"
#include "config/config_private.h"
#include "config/launch_contexts.h"
#include "config/launch_export.h"
#include "config/launch_ranks.h"
#include "config/launch_script.h"
#include "config/launch_trainers.h"
#include "config/slurm_options.h"
#include "config/wrappers.h"

#include <stdio.h>
#include <string.h>

/** A walk over the words of a command. */
typedef struct walk {
    me_config *config;
    int argc;
    const char *const *argv;
    int at;
    me_launch_ranks ranks;
    bool is_python; /* the next word is a script */
    const me_launch_script *script;
    me_diag *diag;
} walk;

static const char *word_at(const walk *w, int ahead)
{
    return w->at + ahead < w->argc ? w->argv[w->at + ahead] : NULL;
}

static me_rank_counts *counts_of(walk *w, me_wrapper_kind kind)
{
    switch (kind) {
    case ME_WRAPPER_SRUN: return &w->ranks.srun;
    case ME_WRAPPER_MPIRUN:
    case ME_WRAPPER_JSRUN:
    case ME_WRAPPER_FLUX:
    case ME_WRAPPER_APRUN:
    case ME_WRAPPER_BLAUNCH: return &w->ranks.mpirun;
    case ME_WRAPPER_TORCHRUN:
    case ME_WRAPPER_DEEPSPEED:
    case ME_WRAPPER_ACCELERATE: return &w->ranks.torchrun;
    case ME_WRAPPER_PLAIN:
    case ME_WRAPPER_PYTHON:
    case ME_WRAPPER_SHELL:
    case ME_WRAPPER_FOREIGN: break;
    }
    return &w->ranks.environment;
}

static me_status read_count(walk *w, const char *name, const char *value,
                            uint64_t *count_out)
{
    return me_launch_ranks_take(&w->ranks, w->config, name, value, w->diag,
                                count_out);
}

static bool is_assignment(const char *word)
{
    size_t n = strcspn(word, "=");
    if (n == 0 || word[n] != '=' || (word[0] >= '0' && word[0] <= '9')) {
        return false;
    }
    return strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                        "0123456789") == n;
}

static me_status keep_variable(walk *w, const char *name, const char *value)
{
    if (value != NULL && me_launch_ranks_variable(&w->ranks, name, value)) {
        return ME_OK;
    }
    me_status status = me_config_keep_variable(w->config, name, value, w->diag);
    if (status == ME_OK && value != NULL && strcmp(name, "WORLD_SIZE") == 0) {
        w->ranks.environment.is_used = true;
        w->ranks.alone.is_empty = value[0] == '\0';
        status = value[0] == '\0'
                     ? ME_OK
                     : read_count(w, name, value, &w->ranks.environment.ranks);
    }
    return status;
}

/** NAME=VALUE of the given length; a name alone passes on what memest cannot
 * see. */
static me_status keep_assignment(walk *w, const char *word, size_t length)
{
    char *name = me_arena_strdup(w->config->own->text, word);
    if (name == NULL) {
        return me_fail(w->diag, ME_ERR_NOMEM, "no memory for the environment");
    }
    name[length] = '\0';
    char *equals = strchr(name, '=');
    if (equals == NULL) {
        return keep_variable(w, name, NULL);
    }
    *equals = '\0';
    return keep_variable(w, name, equals + 1);
}

/** @param between  one character between them */
static me_status keep_assignments(walk *w, const char *words,
                                  const char *between)
{
    me_status status = ME_OK;
    while (status == ME_OK && *words != '\0') {
        const size_t length = strcspn(words, between);
        if (length > 0 && memchr(words, '=', length) != NULL) {
            status = keep_assignment(w, words, length);
        }
        words += length;
        words += *words == between[0];
    }
    return status;
}

static me_status use_option(walk *w, const me_wrapper *wrapper,
                            const me_wrapper_option *option, const char *name,
                            const char *const *values)
{
    me_rank_counts *said = counts_of(w, wrapper->kind);
    const char *value = option->n_values > 0 ? values[0] : "";
    if (me_launch_ranks_option(&w->ranks, wrapper, option, name, value)) {
        return ME_OK;
    }
    switch (option->use) {
    case ME_WRAPPER_NOTHING:
    case ME_WRAPPER_MODULE: return ME_OK;
    case ME_WRAPPER_RANKS: return read_count(w, name, values[0], &said->ranks);
    case ME_WRAPPER_NODES: return read_count(w, name, values[0], &said->nodes);
    case ME_WRAPPER_PER_NODE:
        return read_count(w, name, values[0], &said->per_node);
    case ME_WRAPPER_ONE_PER_NODE: said->per_node = 1; return ME_OK;
    case ME_WRAPPER_PER_GPU:
        return read_count(w, name, values[0], &w->ranks.per_gpu);
    case ME_WRAPPER_SETS:
        return read_count(w, name, values[0], &w->ranks.steps.sets);
    case ME_WRAPPER_PER_SET:
        return read_count(w, name, values[0], &w->ranks.steps.per_set);
    case ME_WRAPPER_SETS_OF_HOST:
        return read_count(w, name, values[0], &w->ranks.steps.sets_of_host);
    case ME_WRAPPER_ASSIGNMENT:
        if (values[0][0] == '-' || values[0][0] == '^') {
            return ME_OK; // Flux's rules of what is left out, or of a file
        }
        return keep_assignment(w, values[0], strlen(values[0]));
    case ME_WRAPPER_ASSIGNMENTS: return keep_assignments(w, values[0], ",");
    case ME_WRAPPER_PARAMETER:
        return strcmp(values[0], ME_WRAPPER_ENV_LIST) == 0
                   ? keep_assignments(w, values[1], ";")
                   : ME_OK;
    case ME_WRAPPER_PAIR: return keep_variable(w, values[0], values[1]);
    case ME_WRAPPER_ENDS:
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "%.60s: nothing is started then, and no job follows",
                       name);
    case ME_WRAPPER_HOSTS:
    case ME_WRAPPER_HOST_FILE:
    case ME_WRAPPER_MAP:
    case ME_WRAPPER_NODE_LIST:
    case ME_WRAPPER_INCLUDE:
    case ME_WRAPPER_EXCLUDE:
    case ME_WRAPPER_CONFIG_FILE:
    case ME_WRAPPER_SEVERAL:
    case ME_WRAPPER_DEEPSPEED_TOO:
    case ME_WRAPPER_CPU:
    case ME_WRAPPER_STARTER:
    case ME_WRAPPER_UNREAD:
    case ME_WRAPPER_GPUS:
    case ME_WRAPPER_HOST_MEMORY:
    case ME_WRAPPER_PARTITION: // me_launch_ranks_option()
    case ME_WRAPPER_COMMAND: break;
    }
    return me_fail(w->diag, ME_ERR_CONFIG,
                   "%.60s holds a command in quotes, which is not read: give "
                   "its words themselves",
                   name);
}

static me_status fail_option(walk *w, const char *program)
{
    return me_fail(w->diag, ME_ERR_CONFIG,
                   "memest does not know %.60s of %.60s, and cannot tell "
                   "whether a value follows: leave it out, or write it as "
                   "--option=value",
                   word_at(w, 0), program);
}

/** An option of srun's; @p word is how it is written. Without another number
 *  --het-group runs on the first part of a job, which is what is read. */
static me_status use_srun(walk *w, const me_wrapper *wrapper,
                          const me_slurm_words *words, const char *word)
{
    char name[ME_SLURM_OPTION_NAME + 2];
    const me_wrapper_option *option =
        me_wrapper_option_find(wrapper, words->name, strlen(words->name));
    (void)snprintf(name, sizeof name, "--%s", words->name);
    if (option == NULL || ((strcmp(words->name, "het-group") == 0 ||
                            strcmp(words->name, "pack-group") == 0) &&
                           strcmp(words->value, "0") == 0)) {
        return ME_OK;
    }
    return use_option(w, wrapper, option,
                      option->use == ME_WRAPPER_UNREAD ? word : name,
                      &words->value);
}

/** One word of srun's options, with its value. */
static me_status step_srun(walk *w, const me_wrapper *wrapper)
{
    me_slurm_words words = {.program = ME_SLURM_SRUN,
                            .argc = w->argc - w->at,
                            .argv = w->argv + w->at};
    me_status status = ME_OK;
    do {
        char why[ME_SLURM_WHY];
        const me_slurm_read read = me_slurm_words_next(&words);
        if (read == ME_SLURM_OPTION) {
            status = use_srun(w, wrapper, &words, word_at(w, 0));
        } else if (me_slurm_words_explain(&words, read, word_at(w, 0), why)) {
            status = me_fail(w->diag, ME_ERR_CONFIG, "srun %.60s: %s",
                             word_at(w, 0), why);
        } else if (read == ME_SLURM_UNKNOWN || read == ME_SLURM_END) {
            status = fail_option(w, "srun"); // `-` alone is the end to getopt
        }
    } while (status == ME_OK && words.letter > 0);
    w->at += words.at;
    return status;
}

/** One option with its values. A single letter may have its value attached. */
static me_status step_option(walk *w, const me_wrapper *wrapper,
                             const char *program, bool *is_module_out)
{
    const char *word = word_at(w, 0);
    const char *attached = NULL;
    const me_wrapper_option *option =
        me_wrapper_option_of(wrapper, word, &attached);
    if (option == NULL && me_wrapper_is_ambiguous(wrapper, word)) {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "%.60s is short for several options of %.60s", word,
                       program);
    }
    if (option == NULL && word[1] == '-' && attached != NULL) {
        if (wrapper->kind == ME_WRAPPER_TORCHRUN) { // whose options are known
            return me_fail(w->diag, ME_ERR_CONFIG,
                           "%.60s is no option of %.60s: leave it out", word,
                           program);
        }
        w->at++;
        return ME_OK; // whatever it is, it is one word
    }
    if (option == NULL || (attached != NULL && option->n_values > 1)) {
        return fail_option(w, program);
    }
    if (attached == NULL &&
        me_wrapper_lacks_number(wrapper, option, word_at(w, 1))) {
        attached = "";
    }
    const int n_words = attached != NULL ? 1 : 1 + option->n_values;
    if (n_words > w->argc - w->at ||
        (n_words > 1 && me_launch_takes_no_value(wrapper, word_at(w, 1)))) {
        return me_fail_flag(w->diag,
                            me_fail(w->diag, ME_ERR_SYNTAX,
                                    "%.60s of %.60s has no value", word,
                                    program),
                            word);
    }
    *is_module_out = option->use == ME_WRAPPER_MODULE;
    const char *const *values =
        attached != NULL ? &attached : w->argv + w->at + 1;
    const me_status status = use_option(w, wrapper, option, word, values);
    w->at += n_words;
    return status;
}

void me_config_take_unknown(me_config *config)
{
    config->own->takes_unknown = true;
}

bool me_launch_names_job(int argc, const char *const *argv)
{
    bool is_named = false;
    for (int i = 0; !is_named && i < argc; i++) {
        is_named = me_launch_script_is_known(argc - i, argv + i);
    }
    return is_named;
}

/** `run` of `flux run`; which launcher stands in mpirun's place. */
static me_status step_subcommand(walk *w, const me_wrapper *wrapper,
                                 const char *program)
{
    const int skipped =
        me_wrapper_subcommand(wrapper, w->argc - w->at, w->argv + w->at);
    if (skipped < 0) {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "'%.60s %.60s' is not read: give `%.60s run` and what "
                       "it starts",
                       program, word_at(w, 0) == NULL ? "" : word_at(w, 0),
                       program);
    }
    w->at += skipped;
    if (counts_of(w, wrapper->kind) == &w->ranks.mpirun &&
        wrapper->kind != ME_WRAPPER_MPIRUN) {
        w->ranks.steps.kind = wrapper->kind;
    }
    return ME_OK;
}

static me_status step_wrapper(walk *w, const me_wrapper *wrapper,
                              const char *program)
{
    if (wrapper->kind == ME_WRAPPER_SHELL ||
        wrapper->kind == ME_WRAPPER_FOREIGN) {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "'%.60s' is not read: give the command that it starts, "
                       "from torchrun, srun, mpirun or python on",
                       program);
    }
    const me_status taken = step_subcommand(w, wrapper, program);
    if (taken != ME_OK) {
        return taken;
    }
    counts_of(w, wrapper->kind)->is_used = true;
    w->ranks.deepspeed.is_used |= wrapper->kind == ME_WRAPPER_DEEPSPEED;
    w->ranks.accelerate.is_used |= wrapper->kind == ME_WRAPPER_ACCELERATE;
    bool is_module = false;
    bool is_program = false; // --no-python: of any language
    while (!is_module && word_at(w, 0) != NULL && word_at(w, 0)[0] == '-') {
        is_program |= strcmp(word_at(w, 0), "--no-python") == 0 ||
                      strcmp(word_at(w, 0), "--no_python") == 0;
        if (strcmp(word_at(w, 0), "--") == 0) { // as getopt and argparse do
            w->at++;
            break;
        }
        const me_status status =
            wrapper->kind == ME_WRAPPER_SRUN
                ? step_srun(w, wrapper)
                : step_option(w, wrapper, program, &is_module);
        if (status != ME_OK) {
            return status;
        }
    }
    // After -m comes a launcher of PyTorch, or the script as a module.
    w->is_python = !is_program && (wrapper->kind == ME_WRAPPER_PYTHON ||
                                   wrapper->kind == ME_WRAPPER_TORCHRUN ||
                                   wrapper->kind == ME_WRAPPER_DEEPSPEED ||
                                   wrapper->kind == ME_WRAPPER_ACCELERATE);
    return ME_OK;
}

/** It is taken for torchrun by other means: the numbers that have torchrun's
 *  names count, all else is its own. */
static me_status step_launcher(walk *w, int n_words)
{
    const me_wrapper *torchrun = me_wrapper_find("torchrun");
    const char *name = word_at(w, 0);
    const int end = w->at + n_words;
    me_status status = ME_OK;
    w->ranks.torchrun.is_used = true;
    for (w->at++; status == ME_OK && w->at < end;) {
        const char *word = word_at(w, 0);
        const size_t length = strcspn(word, "=");
        const me_wrapper_option *option =
            word[0] == '-' ? me_wrapper_option_find(torchrun, word, length)
                           : NULL;
        bool is_module = false;
        if (option == NULL || option->use == ME_WRAPPER_NOTHING) {
            w->at++;
        } else {
            status = step_option(w, torchrun, name, &is_module);
        }
    }
    w->at = end + 1;
    w->is_python = false;
    return status != ME_OK
               ? status
               : me_config_assume(w->config, w->diag,
                                  "%.80s starts as many ranks as torchrun "
                                  "would of its --nnodes and --nproc-per-node",
                                  name);
}

/** A script in front of one that trains, or of what starts one: it sets variables
 *  and starts what stands behind it, as scripts do that bind a rank to its cores or
 *  lie in images. */
static bool is_entrance(const walk *w)
{
    const char *next = word_at(w, 1);
    return !w->is_python && me_ends_with(word_at(w, 0), ".sh") &&
           next != NULL &&
           (me_wrapper_find(next) != NULL ||
            me_launch_script_is_known(w->argc - w->at - 1,
                                      w->argv + w->at + 1));
}

static me_status step_entrance(walk *w)
{
    const char *name = word_at(w, 0);
    w->at++;
    return me_config_assume(w->config, w->diag,
                            "%.80s, which is not run, starts what stands "
                            "behind it and sets no variable that matters",
                            name);
}

/** A word that is neither a launcher nor the script. */
static me_status step_word(walk *w, const char *word)
{
    const me_wrapper *wrapper = me_wrapper_find(word);
    if (wrapper != NULL) {
        w->at++;
        return step_wrapper(w, wrapper, word);
    }
    if (is_assignment(word) && !w->is_python) {
        w->at++;
        return me_launch_export_loses(w->argc, w->argv, w->at - 1)
                   ? ME_OK
                   : keep_assignment(w, word, strlen(word));
    }
    const char *instead = me_trainer_instead(word);
    if (instead != NULL) {
        return me_fail(w->diag, ME_ERR_UNSUPPORTED, "'%.80s' is not read: %s",
                       word, instead);
    }
    return w->ranks.unread != NULL
               ? me_launch_unread_fail(w->ranks.unread, w->diag)
           : w->is_python ? me_launch_script_fail(word, w->diag)
                          : me_launch_program_fail(word, w->diag);
}

/** Steps over everything before the script; `at` is then behind it. */
static me_status step_to_flags(walk *w)
{
    while (word_at(w, 0) != NULL) {
        const char *word = word_at(w, 0);
        const me_launch_script *found = NULL;
        const int launcher =
            w->is_python
                ? me_launch_site_words(w->argc - w->at, w->argv + w->at)
                : 0;
        if (launcher > 0 || is_entrance(w)) {
            const me_status stepped =
                launcher > 0 ? step_launcher(w, launcher) : step_entrance(w);
            if (stepped != ME_OK) {
                return stepped;
            }
            continue;
        }
        me_status status = me_launch_script_choose(
            w->config, w->argc - w->at, w->argv + w->at, w->diag, &found);
        if (status != ME_OK) {
            return status;
        }
        if (found != NULL || (w->at == 0 && word[0] == '-')) {
            w->script = found != NULL ? found : me_launch_script_default();
            w->at += word[0] != '-';
            return ME_OK;
        }
        status = step_word(w, word);
        if (status != ME_OK) {
            return status;
        }
    }
    return me_fail(w->diag, ME_ERR_SYNTAX,
                   "launch command without a script: pretrain_gpt.py or "
                   "train.py and its flags are missing");
}

me_status me_config_read_launch(me_config *config, int argc,
                                const char *const *argv, me_diag *diag)
{
    me_argument_words all = {argc, argv};
    me_status status = me_launch_contexts_join(config->own->text, &all, diag);
    walk w = {
        .config = config, .argc = all.argc, .argv = all.argv, .diag = diag};
    if (status == ME_OK) {
        status = step_to_flags(&w);
    }
    if (status == ME_OK) {
        status = me_launch_ranks_settle(&w.ranks, config, diag);
    }
    if (status == ME_OK && w.script != NULL) {
        me_argument_words words = {w.argc - w.at, w.argv + w.at};
        status = me_argument_files_expand(config, &words, diag);
        if (status == ME_OK) {
            config->own->paste = w.script->paste;
            status = w.script->read(config, words.argc, words.argv, diag);
        }
    }
    return status;
}
