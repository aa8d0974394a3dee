/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/slurm_options.h"

#include "base/nearest.h"
#include "base/parse.h"
#include "config/wrappers.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    SBATCH = ME_SLURM_SBATCH,
    SRUN = ME_SLURM_SRUN,
    BOTH = SBATCH | SRUN
};

typedef enum argument {
    NONE,
    NEEDED,
    OPTIONAL /**< behind `=`, or in the letter's own word */
} argument;

/** Options that are alike: `name` or `name/letter`, blanks between them. */
typedef struct group {
    unsigned programs;
    argument value;
    const char *names;
} group;

/** clang-format off */
static const group groups[] = {
    {BOTH, NEEDED,
     "account/A acctg-freq autocomplete bb bbf begin/b chdir/D cluster "
     "cluster-constraint clusters/M comment constraint/C container "
     "container-id context core-spec/S cores-per-socket cpu-freq cpus-per-gpu "
     "cpus-per-task/c deadline delay-boot dependency/d distribution/m error/e "
     "exclude/x export extra extra-node-info/B gpu-bind gpu-freq gpus/G "
     "gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input/i "
     "job-name/J licenses/L mail-type mail-user mcs-label mem mem-bind "
     "mem-per-cpu mem-per-gpu mem-update mincpus network nodefile/F nodelist/w "
     "nodes/N ntasks/n ntasks-per-core ntasks-per-gpu ntasks-per-node "
     "ntasks-per-socket ntasks-per-tres open-mode output/o partition/p prefer "
     "priority profile qos/q reservation resources runtime segment signal "
     "sockets-per-node switches tasks-per-node thread-spec threads-per-core "
     "time/t time-min tmp tres-bind tres-per-task wckey"},
    {BOTH, NONE,
     "consolidate-segments contiguous help/h hold/H overcommit/O "
     "oversubscribe/s parsable quiet/Q reboot spread-job spread-segments "
     "stepmgr test-only usage use-min-nodes verbose/v version/V"},
    {BOTH, OPTIONAL,
     "exclusive nice no-kill/k oom-kill-step propagate "
     "resv-ports x11"},
    {SBATCH, NEEDED,
     "array/a batch export-file gid kill-on-invalid-dep uid "
     "wait-all-nodes wrap"},
    {SBATCH, NONE, "external ignore-pbs no-requeue wait/W"},
    {SBATCH, OPTIONAL, "get-user-env requeue"},
    {SRUN, NEEDED,
     "accel-bind bcast-exclude cpu-bind cpu_bind epilog het-group "
     "ignore-signals jobid mpi msg-timeout pack-group prolog relative/r "
     "slurmd-debug task-epilog task-prolog threads/T treewidth wait/W"},
    {SRUN, NONE,
     "async debugger-test disable-status/X exact interactive label/l "
     "multi-prog no-allocate/Z preserve-env/E quit-on-interrupt unbuffered/u "
     "wait-for-children whole"},
    {SRUN, OPTIONAL,
     "bcast compress external-launcher immediate/I "
     "kill-on-bad-exit/K overlap pty send-libs"},
    // pyxis
    {BOTH, NEEDED,
     "container-env container-image container-mounts "
     "container-name container-save container-workdir"},
    {BOTH, NONE,
     "container-entrypoint container-entrypoint-log "
     "container-mount-home container-readonly "
     "container-remap-root container-writable "
     "no-container-entrypoint no-container-mount-home "
     "no-container-remap-root"},
};

/* clang-format on */

/** Those whose value decides what runs. */
static const char *const counting[] = {"nodes",
                                       "ntasks",
                                       "ntasks-per-node",
                                       "tasks-per-node",
                                       "ntasks-per-gpu",
                                       "gpus",
                                       "gpus-per-node",
                                       "gpus-per-task",
                                       "gres",
                                       "ntasks-per-socket"};

/** One name of a group. */
typedef struct entry {
    const char *name;
    size_t length;
    char letter; /**< '\0': it has none */
} entry;

/** The name at @p at, which moves behind it. @return false: there is none */
static bool next_entry(const char **at, entry *entry_out)
{
    size_t length = 0;
    const char *name = me_name_next(at, &length);
    if (name == NULL) {
        return false;
    }
    const char *slash = memchr(name, '/', length);
    *entry_out = (entry){.name = name, .length = length, .letter = '\0'};
    if (slash != NULL) {
        entry_out->length = (size_t)(slash - name);
        entry_out->letter = slash[1];
    }
    return true;
}

/** What a search for an option has found. */
typedef struct found {
    entry entry;
    argument value;
    int count; /**< that begin so; 1 of a whole name */
} found;

static void offer(found *f, const entry *e, argument value, const char *name,
                  size_t length)
{
    const bool is_whole = e->length == length;
    if (e->length < length || strncmp(e->name, name, length) != 0 ||
        (f->count == 1 && f->entry.length == length)) {
        return; // it begins otherwise, or one was whole
    }
    f->count = is_whole ? 1 : f->count + 1;
    f->entry = *e;
    f->value = value;
}

/** The option of a long name, which may be short of its end. */
static found find_name(me_slurm_program program, const char *name,
                       size_t length)
{
    found f = {.count = 0};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const char *at = groups[i].names;
        entry e = {.length = 0};
        while ((groups[i].programs & program) != 0 && next_entry(&at, &e)) {
            offer(&f, &e, groups[i].value, name, length);
        }
    }
    return f;
}

static found find_letter(me_slurm_program program, char letter)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const char *at = groups[i].names;
        entry e = {.length = 0};
        while ((groups[i].programs & program) != 0 && next_entry(&at, &e)) {
            if (e.letter == letter) {
                return (found){
                    .entry = e, .value = groups[i].value, .count = 1};
            }
        }
    }
    return (found){.count = 0};
}

static void keep_name(me_slurm_words *words, const entry *e)
{
    (void)snprintf(words->name, sizeof words->name, "%.*s", (int)e->length,
                   e->name);
    words->value = NULL;
}

/** Is a value a number of tasks or nodes? */
static bool is_number(const char *name)
{
    static const char names[] = "nodes ntasks ntasks-per-node tasks-per-node "
                                "ntasks-per-gpu ntasks-per-socket";
    return me_names_have(names, name, strlen(name));
}

/** The value of an option that needs one, in the next word; "": a shell put an
 *  empty variable there. */
static me_slurm_read take_next(me_slurm_words *words)
{
    if (words->at + 1 < words->argc && is_number(words->name) &&
        me_wrapper_is_no_number(words->argv[words->at + 1])) {
        words->value = "";
        words->at++;
        words->letter = 0;
        return ME_SLURM_OPTION;
    }
    if (words->at + 1 >= words->argc) {
        return ME_SLURM_NO_VALUE;
    }
    words->value = words->argv[words->at + 1];
    words->at += 2;
    words->letter = 0;
    return ME_SLURM_OPTION;
}

static me_slurm_read read_long(me_slurm_words *words, const char *name)
{
    const size_t length = strcspn(name, "=");
    const bool has_value = name[length] == '=';
    const found f = find_name(words->program, name, length);
    if (f.count > 1) {
        return ME_SLURM_AMBIGUOUS;
    }
    if (f.count == 0 || (f.value == NONE && has_value)) {
        if (has_value) {
            words->at++;
        }
        return has_value ? ME_SLURM_FOREIGN : ME_SLURM_UNKNOWN;
    }
    keep_name(words, &f.entry);
    if (f.value == NEEDED && !has_value) {
        return take_next(words);
    }
    words->value = has_value ? name + length + 1 : NULL;
    words->at++;
    return ME_SLURM_OPTION;
}

/** One letter of a word, `-K1`, `-vv`, `-uN2`. */
static me_slurm_read read_letter(me_slurm_words *words, const char *letters)
{
    const char *rest = letters + words->letter + 1;
    const found f = find_letter(words->program, letters[words->letter]);
    if (f.count == 0) {
        return ME_SLURM_UNKNOWN;
    }
    keep_name(words, &f.entry);
    if (f.value == NONE && rest[0] != '\0') {
        words->letter++;
        return ME_SLURM_OPTION;
    }
    if (f.value == NEEDED && rest[0] == '\0') {
        return take_next(words);
    }
    // Slurm's own readers of numbers pass over no `=`, people's scripts do.
    words->value =
        f.value == NONE || rest[0] == '\0' ? NULL : rest + (rest[0] == '=');
    words->at++;
    words->letter = 0;
    return ME_SLURM_OPTION;
}

me_slurm_read me_slurm_words_next(me_slurm_words *words)
{
    if (words->at >= words->argc) {
        return ME_SLURM_END;
    }
    const char *word = words->argv[words->at];
    if (word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0) {
        return ME_SLURM_END;
    }
    return word[1] == '-' ? read_long(words, word + 2)
                          : read_letter(words, word + 1);
}

/** Of those that count; NULL: none is near. */
static const char *nearest_of(const char *word)
{
    char name[ME_SLURM_OPTION_NAME];
    const char *best = NULL;
    word += strspn(word, "-");
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    me_nearest nearest = me_nearest_begin(name);
    for (size_t i = 0; i < sizeof counting / sizeof *counting; i++) {
        if (me_nearest_offer(&nearest, counting[i])) {
            best = counting[i];
        }
    }
    return best;
}

bool me_slurm_words_explain(const me_slurm_words *words, me_slurm_read read,
                            const char *word, char why_out[ME_SLURM_WHY])
{
    const char *program = words->program == ME_SLURM_SRUN ? "srun" : "sbatch";
    const char *nearest = word[1] == '-' ? nearest_of(word) : NULL;
    switch (read) {
    case ME_SLURM_AMBIGUOUS:
        (void)snprintf(why_out, ME_SLURM_WHY, "short for several options of %s",
                       program);
        return true;
    case ME_SLURM_NO_VALUE:
        (void)snprintf(why_out, ME_SLURM_WHY, "has no value");
        return true;
    case ME_SLURM_FOREIGN:
    case ME_SLURM_UNKNOWN:
        (void)snprintf(why_out, ME_SLURM_WHY,
                       "is no option of %s: did you mean --%s?", program,
                       nearest == NULL ? "" : nearest);
        return nearest != NULL;
    case ME_SLURM_END:
    case ME_SLURM_OPTION: break;
    }
    return false;
}
