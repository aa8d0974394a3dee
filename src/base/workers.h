/**
 * @file
 * Tasks on several threads of the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_WORKERS_H
#define MEMEST_BASE_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_WORKERS_MAX = 256
};

/** Threads for each of @p processes on this host: @p wanted, or if that is 0
 *  its share of the CPUs that this process may use; at least 1. Local. */
uint32_t me_workers_share(uint32_t wanted, uint32_t processes);

/**
 * Run tasks 0 to @p count - 1, each once; they begin in that order. With one
 * thread, or where no second one can be made, they run in the caller's. Local.
 *
 * @param run  does a task; called by several threads at once. False: no task
 *             that has not begun is begun
 */
void me_workers_run(uint32_t threads, uint32_t count,
                    bool (*run)(void *self, uint32_t task), void *self);

#endif /* MEMEST_BASE_WORKERS_H */
