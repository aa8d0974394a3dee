/**
 * @file
 * The names under which memest stands in a script's way: what each command of
 * a script is here. A table that anybody can read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_GUISE_H
#define MEMEST_SCRIPT_GUISE_H

#include <stdbool.h>
#include <stddef.h>

/** What becomes of a command. */
typedef enum me_guise_kind {
    ME_GUISE_UNKNOWN,  /**< no name of the table: as ME_GUISE_NOTHING */
    ME_GUISE_LAUNCH,   /**< its words may be the job: they are told */
    ME_GUISE_COUNT,    /**< srun, mpirun: kept before what they start, once */
    ME_GUISE_AROUND,   /**< containers, profilers: what they start is started */
    ME_GUISE_AS,       /**< sudo: the command behind its options is started */
    ME_GUISE_REMOTE,   /**< ssh: what it starts elsewhere is started here */
    ME_GUISE_PARALLEL, /**< GNU parallel: its commands, one after the other */
    ME_GUISE_SBATCH,   /**< sbatch's script or salloc's command runs as in its
                            job */
    ME_GUISE_NOTHING,  /**< does nothing and succeeds */
    ME_GUISE_ELSEWHERE, /**< the same, of what starts a command of its words
                             where nobody here sees it */
    ME_GUISE_QUIET,     /**< the same, and nobody needs to know */
    ME_GUISE_CARDS,     /**< nvidia-smi: answers for the job's card */
    ME_GUISE_HOSTS,     /**< scontrol: answers for the job's nodes */
    ME_GUISE_HOSTNAME,  /**< hostname: no address, since nothing can be asked */
    ME_GUISE_SHELL,     /**< runs, of this machine */
    ME_GUISE_WORK,      /**< only computes: runs, of this machine */
    ME_GUISE_WRITE      /**< runs where what it writes vanishes, else nothing */
} me_guise_kind;

/** Some commands that are alike. */
typedef struct me_guise {
    const char *names; /**< blanks between them */
    me_guise_kind kind;
    bool is_started; /**< containers and profilers may start them */
} me_guise;

/** The rows of the table; static. */
const me_guise *me_guise_rows(size_t *count_out);

/** What a command is, by its name or a path that ends in it. `python3.11` is
 *  `python3`. Local. */
me_guise_kind me_guise_find(const char *word);

/** Can a word in the midst of a command be what that starts? What environments are
 *  called too (`conda activate megatron`) is with a command of its own behind it
 *  alone; a file of no name here, if it ends as a shell's script does.
 *  @p next NULL: it is the last word. Local. */
bool me_guise_is_started(const char *word, const char *next);

/** The last part of a path. */
const char *me_guise_base(const char *word);

/** Of GNU parallel's commands those that are too many, as what had no effect. */
#define ME_GUISE_CUT "parallel (its commands behind the first"

#endif /* MEMEST_SCRIPT_GUISE_H */
