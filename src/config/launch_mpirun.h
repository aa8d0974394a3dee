/**
 * @file
 * How many ranks mpirun starts where no `-n` says it: on the slots of its hosts, or
 * as many as are said of each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_MPIRUN_H
#define MEMEST_CONFIG_LAUNCH_MPIRUN_H

#include "base/arena.h"
#include "config/rank_counts.h"

enum {
    ME_HOST_LISTS = 8
};

/** Where mpirun starts processes; all texts are borrowed. */
typedef struct me_launch_hosts {
    const char *lists[ME_HOST_LISTS]; /**< each --host */
    uint32_t n_lists;                 /**< may be more than there is room for */
    const char *file;                 /**< of --hostfile; NULL: none */
    const char
        *batch_file;      /**< PBS_NODEFILE: each line is a slot; NULL: none */
    bool is_hydra;        /**< the file is MPICH's, where a host is a slot */
    const char *resource; /**< of `--map-by ppr:N:resource`, if it is not a
                                 node; NULL: none */
    const char *placing;  /**< an option that is not read and decides it, such
                                 as --rankfile; NULL: none */
} me_launch_hosts;

/** Take the value of `--host`, which is borrowed. */
void me_launch_hosts_add(me_launch_hosts *hosts, const char *list);

/** Take the value of `--hostfile`, `--machinefile` or `-f`, which is borrowed. */
void me_launch_hosts_file(me_launch_hosts *hosts, const char *option,
                          const char *path);

/** Take the value of `--map-by`, which is borrowed: of `ppr` it says how many
 *  processes a node, or something else, gets. */
void me_launch_hosts_map(me_launch_hosts *hosts, me_rank_counts *counts,
                         const char *value);

/** Slots of hosts; 0: nobody can tell. */
typedef struct me_host_slots {
    uint64_t first; /**< of the host that is filled first */
    uint64_t all;
} me_host_slots;

/** Does an option or a batch system's file name the hosts? */
bool me_launch_hosts_are_named(const me_launch_hosts *hosts);

/** Slots of the hosts that are named. @param arena  of what is read */
me_host_slots me_mpirun_slots(const me_launch_hosts *hosts, me_arena *arena);

/**
 * Settle what mpirun starts. A host file that is not here, or hosts in it
 * without slots, leave the world open where the ranks depend on them.
 *
 * @param counts      its numbers; set
 * @param nodes_here  of the allocation that it runs in; 0: none is known
 * @return ME_OK; ME_ERR_CONFIG where nobody can tell of --host or --map-by, and
 *         with the line of what is no host; ME_ERR_NOMEM
 */
me_status me_mpirun_settle(const me_launch_hosts *hosts, uint64_t nodes_here,
                           me_rank_counts *counts, me_config *config,
                           me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_LAUNCH_MPIRUN_H */
