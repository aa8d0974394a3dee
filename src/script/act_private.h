/**
 * @file
 * Parts of memest's acting as a command of a script (script/act.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_ACT_PRIVATE_H
#define MEMEST_SCRIPT_ACT_PRIVATE_H

#include "config/wrappers.h"
#include "script/inherit.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ME_GUISE_NOT_FOUND = 127 /**< a shell's exit code of no such command */
};

/** Words of launchers that were stepped through, a unit separator behind each:
 *  a variable of the script's processes. */
#define ME_GUISE_BEFORE "MEMEST_BEFORE"

/** What nvidia-smi says of a card: `NAME|MiB`. */
#define ME_GUISE_CARD "MEMEST_CARD"

/** Set: what a job that submits itself hands on makes it another one. */
#define ME_GUISE_BY_ENVIRONMENT "MEMEST_BY_ENVIRONMENT"

/** How many cards torch finds, for Python that computes a value. */
#define ME_GUISE_COUNT_OF_CARDS "MEMEST_CARDS"

/** Start a command in this process's place, in its guise if it has one.
 *  @return its exit code where it cannot start */
int me_guise_start(char **argv);

/** The script's own command of a name, whatever PATH is now. @return as
 *  me_guise_start() */
int me_guise_start_own(const char *name, char **argv);

/** Tell that what a command needs is not there or wrong, which ends the script.
 *  @return 1, its exit code */
int me_guise_fail(const char *what, const char *why);

/** A container, a profiler: the first word that starts something is started, with
 *  the environment that its options leave (script/inherit.h). */
int me_guise_around(int argc, char **argv);

/** The words of a launcher whose parts `:` parts as those of one, with all ranks
 *  (config/launch_contexts.h); others as they are.
 *  @param argc_out  their number
 *  @return NULL: it cannot be done, which was told */
char **me_guise_join(int argc, char **argv, int *argc_out);

/** sudo and its like: the command behind options and assignments is started, with
 *  the environment that they leave; of su its shell. */
int me_guise_as(int argc, char **argv);

/** Start a command with the environment that @p inherit leaves.
 *  @return as me_guise_start() */
int me_guise_start_with(me_inherit *inherit, char **argv);

/** Tell that a command had no effect. @return 0, its exit code */
int me_guise_nothing(int argc, char **argv);

/** `NAME=VALUE` of @p length bytes goes into the environment. */
void me_guise_set(const char *assignment, unsigned length);

/** Set what a launcher tells the first of its tasks: which it is, and of how many
 *  as far as that can be told.
 *  @param argc  its words up to what it starts
 *  @param argv  its name first */
void me_guise_set_first(const me_wrapper *wrapper, int argc, char **argv);

/** Where a hash of nothing begins (FNV-1a). */
#define ME_AGAIN_SEED UINT64_C(0xcbf29ce484222325)

/** Hash words up to a NULL behind what @p seed is the hash of. */
uint64_t me_again_words(uint64_t seed, char **words);

/** Hash what a file holds: a copy of it is the same. */
uint64_t me_again_file(const char *path);

/**
 * Enter a job, which what is started from now on stands in. A job that submits
 * itself, however deep, is not acted out again: it trains what it trains already.
 * With other words it is another job, up to eight of a file within each other; with
 * other variables too where ME_GUISE_BY_ENVIRONMENT is set, since a script that
 * counts its rounds has others each time.
 *
 * @param file   the hash of what runs
 * @param words  the hash of what it is given
 * @return true: it stands in such a job already, and is not to be started
 */
bool me_again(uint64_t file, uint64_t words);

/** Keep what is left of the input in a new file. @param path  set to the file's
 *  @return false: it cannot be read, or kept */
bool me_guise_keep_input(char path[PATH_MAX]);

/** Is there anything on the input, for the shell that ssh without a command, salloc
 *  and their like start? It is read to its end, and is the input again. */
bool me_guise_has_input(void);

/** The words of that shell; static. */
char **me_guise_input_shell(void);

/** sbatch and salloc: run the batch script, or the command, with the variables
 *  that Slurm sets. */
int me_guise_sbatch(int argc, char **argv);

/** A command of the script's own, whatever PATH is now. @return false: its path is
 *  too long */
bool me_guise_path_of(const char *name, char *path, size_t size);

/** ssh, pdsh and their like: what they start on other machines is started here. */
int me_guise_remote(int argc, char **argv);

/** Is a command one that starts others in a container? */
bool me_guise_is_container(const char *word);

/** From now on a folder of bash's `cd` need not be here. */
void me_guise_enter_elsewhere(void);

/** Does a command of Python's train: has it a script, or a module that is none of
 *  Python's own tools? */
bool me_python_trains(int argc, const char *const *argv);

/** Python that does not: a program among its words or on its input is run by this
 *  machine's Python, under the script's fences, for what it prints; where that is
 *  not here, or lacks what it needs, nothing happens.
 *  @param tool  the file that is run in the place of such a program, a command of
 *               this machine's that is written in Python; NULL: none
 *  @return its exit code */
int me_guise_python(int argc, char **argv, const char *tool);

/** GNU parallel: its commands, one after the other. */
int me_guise_parallel(int argc, char **argv);

/** Tell torch's stand-in how many cards nvidia-smi shows. */
void me_guise_tell_cards(void);

/** nvidia-smi, scontrol, hostname. */
int me_guise_cards(int argc, char **argv);
int me_guise_hosts(int argc, char **argv);
int me_guise_hostname(int argc, char **argv);

#endif /* MEMEST_SCRIPT_ACT_PRIVATE_H */
