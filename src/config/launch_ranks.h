/**
 * @file
 * How many ranks a launch command starts, on how many nodes, on which cards:
 * what its launchers and Slurm's variables say, and who of them is right.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_RANKS_H
#define MEMEST_CONFIG_LAUNCH_RANKS_H

#include "config/config.h"
#include "config/launch_accelerate.h"
#include "config/launch_alone.h"
#include "config/launch_deepspeed.h"
#include "config/launch_mpirun.h"
#include "config/launch_steps.h"
#include "config/rank_counts.h"
#include "config/slurm.h"
#include "config/wrappers.h"

#include <stdbool.h>
#include <stdint.h>

/** All that is said in a launch command; all zero: nothing. */
typedef struct me_launch_ranks {
    me_rank_counts srun;
    me_rank_counts mpirun;
    me_rank_counts torchrun;
    me_rank_counts environment;    /**< WORLD_SIZE=8 python … */
    me_rank_counts slurm;          /**< SLURM_NNODES, SLURM_NTASKS, … */
    uint64_t slurm_nprocs;         /**< SLURM_NPROCS, its older name: where that
                                        is not set; 0: not set either */
    uint64_t step_tasks;           /**< SLURM_STEP_NUM_TASKS; 0: no step */
    me_launch_alone alone;         /**< of a script that no launcher starts */
    me_launch_hosts hosts;         /**< of mpirun */
    me_launch_steps steps;         /**< its numbers are mpirun's */
    me_deepspeed_said deepspeed;   /**< its numbers are torchrun's */
    me_accelerate_said accelerate; /**< its numbers are torchrun's */
    const char *pet_nodes;         /**< PET_NNODES, borrowed; NULL: not set */
    const char *pet_per_node;      /**< PET_NPROC_PER_NODE, as well */
    uint64_t visible;              /**< that CUDA_VISIBLE_DEVICES lists */
    const char *node_list;         /**< of srun's -w, borrowed; NULL: none */
    const char *unread;     /**< an option of srun's that says tasks and is
                                    not read, borrowed; NULL: none */
    uint64_t assumed_nodes; /**< of a batch script that says only GPUs */
    me_slurm_gpus gpus;     /**< of a node */
    uint64_t all_gpus;      /**< `--gpus`; 0: not said */
    uint64_t task_gpus;     /**< `--gpus-per-task`; 0: not said */
    uint64_t per_gpu;       /**< `--ntasks-per-gpu`; 0: not said */
    char asked_type[ME_SLURM_TYPE]; /**< that an option names; "": none */
    char other_type[ME_SLURM_TYPE]; /**< that another option names beside it */
    char mixed_type[ME_SLURM_TYPE]; /**< that the same option names as well */
    me_slurm_memory memory;     /**< of srun's options, else of Slurm's … */
    me_slurm_memory job_memory; /**< … variables */
    uint64_t cpus;              /**< of a node; 0: not said */
    const char *partition;      /**< borrowed; NULL: not said */
    bool is_open;               /**< an option's number is none, which no other
                                     number makes good */
    me_status status;           /**< ME_ERR_NOMEM: of what is told by now */
} me_launch_ranks;

/** Take a variable if it is one that says ranks: of Slurm's, of another batch
 *  system's, of a launcher's. @p value is borrowed. @return false: it is
 *  another */
bool me_launch_ranks_variable(me_launch_ranks *ranks, const char *name,
                              const char *value);

/** Is it one that says ranks or cards: of those above, WORLD_SIZE, or one that
 *  ms-swift takes them from? */
bool me_launch_says_ranks(const char *name);

/**
 * Take an option of a launcher that says ranks in another way than by a number.
 *
 * @param name   as it was written
 * @param value  borrowed; anything where the option has none
 * @return false: it is another
 */
bool me_launch_ranks_option(me_launch_ranks *ranks, const me_wrapper *wrapper,
                            const me_wrapper_option *option, const char *name,
                            const char *value);

/** Take the value of `--gres`, `--gpus-per-node`, `--gpus-per-task`,
 *  `--tres-per-task` or `--gpus`; a later one wins. Of `--constraint` where none
 *  of them names a card. */
void me_launch_ranks_gpus(me_launch_ranks *ranks, const char *option,
                          const char *value);

/** The number that `MIN:MAX` of torchrun's nodes is if both are one; any other
 *  text itself. */
const char *me_launch_range_end(const char *value);

/**
 * A number of ranks, nodes or GPUs as Python reads it, or `gpu`, which is that of
 * a node where it is said. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG for what is none, a range among them;
 *         ME_ERR_NOMEM
 */
me_status me_launch_ranks_count(const me_launch_ranks *ranks, const char *name,
                                const char *value, me_diag *diag,
                                uint64_t *count_out) ME_MUST_CHECK;

/**
 * The same of the launch command itself, whose world is left open by what is no
 * such number. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_launch_ranks_take(me_launch_ranks *ranks, me_config *config,
                               const char *name, const char *value,
                               me_diag *diag,
                               uint64_t *count_out) ME_MUST_CHECK;

/** Take the value of `-p`: the card of that partition's nodes, where nothing
 *  better says it. @p name is borrowed. */
void me_launch_ranks_partition(me_launch_ranks *ranks, const char *name);

/**
 * Set parallel.world_size, device.gpus_per_node and device.name, as far as they
 * are said. The innermost launcher knows best. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG where it is said so that nobody can count them, or
 *         two ways; as me_config_set() and me_site_partition_find()
 */
me_status me_launch_ranks_settle(me_launch_ranks *ranks, me_config *config,
                                 me_diag *diag) ME_MUST_CHECK;

/** Refuse an option of srun's that says tasks and is not read. Local.
 *  @return ME_ERR_CONFIG */
me_status me_launch_unread_fail(const char *option,
                                me_diag *diag) ME_MUST_CHECK;

/** Is a word behind an option of a launcher of Python's another option to it, and
 *  no value? So argparse has it (_parse_optional()), where others take any word. */
bool me_launch_takes_no_value(const me_wrapper *wrapper, const char *word);

#endif /* MEMEST_CONFIG_LAUNCH_RANKS_H */
