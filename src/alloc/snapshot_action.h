/**
 * @file
 * What stands in the trace and the segments of a memory snapshot of PyTorch's
 * (c10/cuda/CUDACachingAllocator.h, TraceEntry), for all who read one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_SNAPSHOT_ACTION_H
#define MEMEST_ALLOC_SNAPSHOT_ACTION_H

#include "alloc/stream.h"

#include <stdbool.h>

/** What an action does to the program's blocks. Local.
 *
 *  @param kind_out  ME_STREAM_END: nothing
 *  @return false if there is no action of that name */
bool me_snapshot_action(const char *action, me_stream_kind *kind_out);

/** Does a block in this state (torch/csrc/cuda/Module.cpp) keep its bytes? Local.
 *
 *  @return false if there is no state of that name */
bool me_snapshot_state(const char *state, bool *is_live_out);

#endif /* MEMEST_ALLOC_SNAPSHOT_ACTION_H */
