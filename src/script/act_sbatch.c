/* SPDX-License-Identifier: BSD-3-Clause */
/* sbatch and salloc: the batch script, or the command, runs at once, as on the
 * first node of its job. */
#include "script/act_private.h"
#include "script/batch.h"
#include "script/guise.h"
#include "script/inherit.h"
#include "script/interpreter.h"
#include "script/record.h"
#include "script/srun_step.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    WORDS_MAX = 1 << 14
};

static int send(const char *line)
{
    me_words words = {.count = 0};
    me_words_add(&words, ME_RECORD_FAILURE);
    me_words_add(&words, line);
    (void)me_record_send(&words);
    me_words_fini(&words);
    return 1;
}

static int fail(const char *program, const char *why)
{
    char line[512];
    (void)snprintf(line, sizeof line, "%s %s", program, why);
    return send(line);
}

int me_guise_fail(const char *what, const char *why)
{
    char line[512];
    (void)snprintf(line, sizeof line, "%.256s: %s", what, why);
    return send(line);
}

static int fail_of(const char *what, const char *why)
{
    char line[448];
    (void)snprintf(line, sizeof line, "%s: %s", what, why);
    return fail("sbatch", line);
}

/** Of the environment where it is called a job has what --export says, and so
 *  have its steps. */
static void export(const char *list)
{
    me_inherit inherit = {.is_clean = false};
    if (list[0] == '\0') {
        return;
    }
    me_inherit_list(&inherit, list);
    me_inherit_apply(&inherit);
    if (strcasecmp(list, "all") != 0) {
        (void)setenv("SLURM_EXPORT_ENV", list, 0);
    }
}

/** What sbatch says; what the job prints goes elsewhere. */
static void answer(const me_batch *batch)
{
    const char *text = batch->is_parsable ? "1\n" : "Submitted batch job 1\n";
    const ssize_t n = write(STDOUT_FILENO, text, strlen(text));
    (void)n; // who asked may have gone
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
}

/** What is submitted. */
typedef struct submission {
    int argc;     /**< of sbatch */
    char **argv;  /**< of sbatch, borrowed */
    char **words; /**< of a shell */
    char *
        *file; /**< of them, the script, which sbatch reads where it is called;
                   *   NULL: a command in one word, the last */
} submission;

/** Does a job submit itself? Its environment is left alone: a script makes its own
 *  again. */
static bool is_again(const me_batch *batch, const submission *s)
{
    char exported[sizeof batch->exported];
    char *also[] = {exported, NULL};
    memcpy(exported, batch->exported, sizeof exported);
    const uint64_t words = me_again_words(ME_AGAIN_SEED, also);
    return s->file == NULL
               ? me_again(me_again_words(ME_AGAIN_SEED, s->words), words)
               : me_again(me_again_file(*s->file),
                          me_again_words(words, s->file + 1));
}

static int start(me_batch *batch, const submission *s)
{
    char **file = s->file;
    static char whole[PATH_MAX + PATH_MAX];
    char folder[PATH_MAX];
    me_batch_job job;
    if (batch->wrong[0] != '\0' || !me_batch_settle(batch, &job)) {
        return fail("sbatch", batch->wrong);
    }
    if (is_again(batch, s)) {
        answer(batch);
        return me_guise_nothing(s->argc, s->argv);
    }
    if (batch->name[0] == '\0') {
        const char *name = file == NULL ? "wrap" : me_guise_base(*file);
        (void)snprintf(batch->name, sizeof batch->name, "%s", name);
    }
    if (getcwd(folder, sizeof folder) != NULL) {
        (void)setenv("SLURM_SUBMIT_DIR", folder, 1);
        if (batch->folder[0] != '\0' && file != NULL && (*file)[0] != '/') {
            (void)snprintf(whole, sizeof whole, "%s/%s", folder, *file);
            *file = whole;
        }
    }
    if (batch->folder[0] != '\0' && chdir(batch->folder) != 0) {
        return fail_of(batch->folder, "no such folder");
    }
    answer(batch);
    export(batch->exported);
    me_step_forget();
    me_batch_set_variables(batch, &job);
    return me_guise_start_own(s->words[0], s->words);
}

/** Does salloc grant an allocation and end? */
static bool has_no_shell(char **argv)
{
    bool is_found = false;
    for (; !is_found && *argv != NULL; argv++) {
        is_found = strcmp(*argv, "--no-shell") == 0;
    }
    return is_found;
}

/** salloc(1): the command sees the allocation; without one a shell, which reads the
 *  input and else would wait for somebody. */
static int allocate(int argc, char **argv)
{
    static me_batch batch;
    me_batch_job job;
    const int at = 1 + me_batch_read_words(&batch, argc - 1,
                                           (const char *const *)(argv + 1));
    if (at >= argc && (has_no_shell(argv) || !me_guise_has_input())) {
        return me_guise_nothing(argc, argv);
    }
    if (batch.wrong[0] != '\0' || !me_batch_settle(&batch, &job)) {
        return fail("salloc", batch.wrong);
    }
    me_step_forget();
    me_batch_set_variables(&batch, &job);
    return me_guise_start(at < argc ? argv + at : me_guise_input_shell());
}

int me_guise_sbatch(int argc, char **argv)
{
    if (strcmp(me_guise_base(argv[0]), "salloc") == 0) {
        return allocate(argc, argv);
    }
    static char given[PATH_MAX];
    static me_batch of_words;
    static me_batch batch;
    static char *words[WORDS_MAX];
    const char *const *given_words = (const char *const *)(argv + 1);
    const int at = 1 + me_batch_read_words(&of_words, argc - 1, given_words);
    if (argc >= WORDS_MAX - 4) {
        return me_guise_nothing(argc, argv);
    }
    if (of_words.wrapped[0] != '\0') {
        me_batch_read_environment(&batch);
        (void)me_batch_read_words(&batch, argc - 1, given_words);
        static char name[] = "sh";
        static char option[] = "-c";
        words[0] = name;
        words[1] = option;
        words[2] = of_words.wrapped;
        return start(&batch, &(submission){argc, argv, words, NULL});
    }
    static char shell[PATH_MAX] = "bash";
    char *file = at < argc ? argv[at] : given;
    if (at >= argc && !me_guise_keep_input(given)) {
        return fail_of("-", "no script on its input");
    }
    if (access(file, R_OK) != 0) {
        return fail_of(file, "no such file");
    }
    if (me_interpreter_of_script(file, shell) &&
        me_guise_find(shell) != ME_GUISE_SHELL) {
        return fail_of(file, "no script of a shell's");
    }
    const char *refusal = me_batch_file_refusal(file);
    if (refusal != NULL) {
        return fail_of(file, refusal);
    }
    me_batch_read_file(&batch, file);
    me_batch_read_environment(&batch);
    (void)me_batch_read_words(&batch, argc - 1, given_words); // they win
    words[0] = shell;
    words[1] = file;
    for (int i = at + 1; i < argc; i++) {
        words[i - at + 1] = argv[i];
    }
    return start(&batch, &(submission){argc, argv, words, &words[1]});
}
