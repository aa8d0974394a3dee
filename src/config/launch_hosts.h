/**
 * @file
 * Hosts that launchers start processes on, with their slots: of files (DeepSpeed's,
 * Open MPI's, Hydra's, a batch system's) and of lists in words. They say how many
 * ranks there are where no number does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_HOSTS_H
#define MEMEST_CONFIG_LAUNCH_HOSTS_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_HOSTS_MOST = 1 << 14,     /**< that a pool has room for */
    ME_HOST_SLOTS_MOST = 1 << 24 /**< of all hosts */
};

/** A host; its name is no text that ends, but a piece of what was read. */
typedef struct me_host {
    const char *name;
    size_t length;
    uint64_t slots;    /**< one for each mention where no number is given */
    bool has_number;   /**< of slots */
    uint32_t mentions; /**< at least 1 */
} me_host;

/** Hosts in the order in which they are named first. */
typedef struct me_host_pool {
    me_arena *arena; /**< borrowed; holds the hosts and what was read */
    me_host *hosts;
    uint32_t count;
    uint32_t capacity;
} me_host_pool;

/**
 * The host of a name, which is added where it is not there yet. Local.
 *
 * @param length  of the name, which has to live as long as the pool
 * @return NULL: no memory, or too many hosts
 */
me_host *me_host_pool_take(me_host_pool *pool, const char *name, size_t length);

/** NULL: there is none. */
me_host *me_host_pool_find(const me_host_pool *pool, const char *name,
                           size_t length);

/** All slots, at most ME_HOST_SLOTS_MOST + 1, which is too many. */
uint64_t me_host_pool_slots(const me_host_pool *pool);

/** Slots of every host of LSF's LSB_MCPU_HOSTS, `host 8 host 8`; 0: they differ,
 *  or a number is none. */
uint64_t me_lsf_slots_each(const char *value);

/** Slots of every host; 0: they differ. */
uint64_t me_host_pool_slots_each(const me_host_pool *pool);

/**
 * Add the hosts of a file: `NAME slots=N`, `NAME:N` or `NAME`, one a line, `#`
 * begins a comment. A host that comes again adds to its slots. Local.
 *
 * @return ME_OK; ME_ERR_IO where it cannot be read; ME_ERR_CONFIG with the line
 *         of what is no host, or for a file without any; ME_ERR_NOMEM
 */
me_status me_host_pool_read(me_host_pool *pool, const char *path,
                            me_diag *diag) ME_MUST_CHECK;

/**
 * Add the hosts of mpirun's `--host`: `NAME` or `NAME:N`, commas between them.
 * Local.
 *
 * @return ME_OK; ME_ERR_CONFIG where a number of slots is none (`NAME:auto`);
 *         ME_ERR_NOMEM
 */
me_status me_host_pool_add_list(me_host_pool *pool, const char *list,
                                me_diag *diag) ME_MUST_CHECK;

/** How many hosts are in a list of Slurm's, `node[1-4,7],login1`; 0: it is none.
 *  Local. */
uint64_t me_host_list_count(const char *list);

#endif /* MEMEST_CONFIG_LAUNCH_HOSTS_H */
