/**
 * @file
 * The run of one rank for a user's observers, and for a tool of PyTorch's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_API_API_WATCH_H
#define MEMEST_API_API_WATCH_H

#include "api/api_private.h"
#include "run/tool.h"

/**
 * Run a rank.
 *
 * @param rank       one that the job has
 * @param tool       has not begun, and is told before the observers; NULL: none
 * @param observers  n_observers of them; borrowed for the call
 * @return ME_OK; ME_ERR_STOPPED by a hook; ME_ERR_CONFIG for a record without
 *         a size; the engine's failure; ME_ERR_NOMEM
 */
me_status me_api_watch(const me_run *run, int32_t rank, me_tool *tool,
                       const memest_observer *const *observers,
                       size_t n_observers, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_API_API_WATCH_H */
