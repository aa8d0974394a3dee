/**
 * @file
 * The programs that start other programs, and their options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_WRAPPERS_H
#define MEMEST_CONFIG_WRAPPERS_H

#include <stdbool.h>
#include <stddef.h>

/** The parameter of Open MPI's whose value is NAME=VALUE with semicolons between
 *  them, for the environment. */
#define ME_WRAPPER_ENV_LIST "mca_base_env_list"

/** What an option of a wrapper means here. */
typedef enum me_wrapper_use {
    ME_WRAPPER_NOTHING,
    ME_WRAPPER_RANKS,         /**< processes in all */
    ME_WRAPPER_NODES,         /**< nodes */
    ME_WRAPPER_PER_NODE,      /**< processes of a node */
    ME_WRAPPER_ONE_PER_NODE,  /**< … one, without a value */
    ME_WRAPPER_PER_GPU,       /**< processes of a GPU */
    ME_WRAPPER_SETS,          /**< jsrun's resource sets */
    ME_WRAPPER_PER_SET,       /**< processes of a set */
    ME_WRAPPER_SETS_OF_HOST,  /**< sets of a node */
    ME_WRAPPER_HOSTS,         /**< Open MPI's, with their slots */
    ME_WRAPPER_HOST_FILE,     /**< a file of hosts and slots */
    ME_WRAPPER_NODE_LIST,     /**< Slurm's, `node[1-4]` */
    ME_WRAPPER_INCLUDE,       /**< of DeepSpeed's hosts */
    ME_WRAPPER_EXCLUDE,       /**< of DeepSpeed's hosts */
    ME_WRAPPER_CONFIG_FILE,   /**< accelerate's */
    ME_WRAPPER_SEVERAL,       /**< accelerate starts more than one process */
    ME_WRAPPER_DEEPSPEED_TOO, /**< … and DeepSpeed trains */
    ME_WRAPPER_CPU,           /**< accelerate starts no GPU's process */
    ME_WRAPPER_STARTER,       /**< of DeepSpeed's machines */
    ME_WRAPPER_UNREAD,        /**< says ranks, and is not read */
    ME_WRAPPER_ENDS,          /**< nothing is started then */
    ME_WRAPPER_MAP,        /**< Open MPI's `ppr:N:node`, or what says nothing */
    ME_WRAPPER_GPUS,       /**< Slurm's, with their type */
    ME_WRAPPER_ASSIGNMENT, /**< NAME=VALUE for the environment */
    ME_WRAPPER_ASSIGNMENTS, /**< the same, with commas between them */
    ME_WRAPPER_HOST_MEMORY, /**< of a node, or of each GPU or CPU of it */
    ME_WRAPPER_PARTITION,   /**< whose nodes have a card: config/site.h */
    ME_WRAPPER_PAIR,        /**< NAME VALUE for the environment */
    ME_WRAPPER_PARAMETER,   /**< NAME VALUE of Open MPI's own parameters */
    ME_WRAPPER_MODULE,      /**< ends the options: a Python module follows */
    ME_WRAPPER_COMMAND      /**< a program as one text: not read */
} me_wrapper_use;

/** Options that are alike: names with blanks between them. */
typedef struct me_wrapper_option {
    const char *names;
    int n_values;
    me_wrapper_use use;
} me_wrapper_option;

typedef enum me_wrapper_kind {
    ME_WRAPPER_PLAIN,      /**< starts the next word as it is */
    ME_WRAPPER_SRUN,       /**< Slurm */
    ME_WRAPPER_MPIRUN,     /**< Open MPI, MPICH */
    ME_WRAPPER_JSRUN,      /**< IBM's, under LSF */
    ME_WRAPPER_FLUX,       /**< `flux run` and `flux submit` */
    ME_WRAPPER_APRUN,      /**< Cray's ALPS */
    ME_WRAPPER_BLAUNCH,    /**< LSF's */
    ME_WRAPPER_TORCHRUN,   /**< torch.distributed.run */
    ME_WRAPPER_DEEPSPEED,  /**< as torchrun, by host files */
    ME_WRAPPER_ACCELERATE, /**< as torchrun, by a file of its own */
    ME_WRAPPER_PYTHON,
    ME_WRAPPER_SHELL,  /**< not read */
    ME_WRAPPER_FOREIGN /**< a launcher that is not read */
} me_wrapper_kind;

/** One wrapper; the list of options ends with NULL names. */
typedef struct me_wrapper {
    const char *names;
    me_wrapper_kind kind;
    const me_wrapper_option *options;
} me_wrapper;

/**
 * The wrapper that a word of a command names, a program with or without its
 * path or a Python module, or NULL.
 */
const me_wrapper *me_wrapper_find(const char *word);

/**
 * An option by its name, in which `_` counts as `-`.
 *
 * @param length  of the name
 */
const me_wrapper_option *me_wrapper_option_find(const me_wrapper *wrapper,
                                                const char *name,
                                                size_t length);

/**
 * The option that a word is, whole or, where its program takes that, short of its
 * end, and the value that the word holds: `--name=value`, or behind a single
 * letter.
 *
 * @param attached_out  in @p word; NULL: none, its values are the next words
 * @return NULL: it is none
 */
const me_wrapper_option *me_wrapper_option_of(const me_wrapper *wrapper,
                                              const char *word,
                                              const char **attached_out);

/** Is a word short for several options of one whose program takes such names? */
bool me_wrapper_is_ambiguous(const me_wrapper *wrapper, const char *word);

/** Can a word behind an option be no number: is it another option, a launcher or a
 *  script? */
bool me_wrapper_is_no_number(const char *word);

/**
 * Has an option that counts ranks or nodes no value, since a shell put an empty
 * variable there? The launcher would end with an error; argparse says so itself of
 * the options of Python's launchers, which are left out here.
 *
 * @param next  the word behind it; NULL: none
 */
bool me_wrapper_lacks_number(const me_wrapper *wrapper,
                             const me_wrapper_option *option, const char *next);

/** Words between a launcher's name and its options: `run` of `flux run`. @p argv
 *  begins behind the name. @return how many; -1: it starts nothing that is read */
int me_wrapper_subcommand(const me_wrapper *wrapper, int argc,
                          const char *const *argv);

#endif /* MEMEST_CONFIG_WRAPPERS_H */
