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
#include "config/slurm.h"

#include <stdbool.h>
#include <stdint.h>

/** What somebody says of the number of processes; 0: nothing. */
typedef struct me_rank_counts {
    uint64_t ranks;
    uint64_t nodes;
    uint64_t per_node;
    bool is_used;
} me_rank_counts;

enum {
    ME_HOST_LISTS = 8
};

/** Where mpirun starts processes; all texts are borrowed. */
typedef struct me_launch_hosts {
    const char *lists[ME_HOST_LISTS]; /**< each --host */
    uint32_t n_lists;                 /**< may be more than there is room for */
    const char *resource; /**< of `--map-by ppr:N:resource`, if it is not a
                               node; NULL: none */
} me_launch_hosts;

/** All that is said in a launch command; all zero: nothing. */
typedef struct me_launch_ranks {
    me_rank_counts srun;
    me_rank_counts mpirun;
    me_rank_counts torchrun;
    me_rank_counts environment;     /**< WORLD_SIZE=8 python … */
    me_rank_counts slurm;           /**< SLURM_NNODES, SLURM_NTASKS, … */
    me_launch_hosts hosts;          /**< of mpirun */
    me_slurm_gpus gpus;             /**< of a node */
    uint64_t all_gpus;              /**< `--gpus`; 0: not said */
    uint64_t per_gpu;               /**< `--ntasks-per-gpu`; 0: not said */
    char asked_type[ME_SLURM_TYPE]; /**< that an option names; "": none */
    char other_type[ME_SLURM_TYPE]; /**< that another option names beside it */
    bool wants_every_gpu;  /**< a launcher takes a node's where it is told
                                     no number */
    const char *partition; /**< borrowed; NULL: not said */
} me_launch_ranks;

/** Take a variable if it is one that Slurm sets in a job. @return false: it is
 *  another */
bool me_launch_ranks_variable(me_launch_ranks *ranks, const char *name,
                              const char *value);

/** Take the value of mpirun's `--host`, which is borrowed. */
void me_launch_ranks_hosts(me_launch_ranks *ranks, const char *value);

/** Take the value of mpirun's `--map-by`, which is borrowed: of `ppr` it says how
 *  many processes a node, or something else, gets. */
void me_launch_ranks_map(me_launch_ranks *ranks, const char *value);

/** Take the value of `--gres`, `--gpus-per-node`, `--gpus-per-task` or
 *  `--gpus`; a later one wins. Of `--constraint` where none of them names a
 *  card. */
void me_launch_ranks_gpus(me_launch_ranks *ranks, const char *option,
                          const char *value);

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

#endif /* MEMEST_CONFIG_LAUNCH_RANKS_H */
