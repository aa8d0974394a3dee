/**
 * @file
 * The collectives that a rank of a PyTorch job runs, as PyTorch's dispatcher
 * sees them: names, process groups and communication sizes of
 * torch/distributed/_tools/fake_collectives.py, with the module and phase that
 * run. What only waits has no size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_COMM_TRACKER_H
#define MEMEST_TRACK_COMM_TRACKER_H

#include "tensor/hooks.h"

/** A collective that has run. */
typedef struct me_comm_row {
    me_collective_op op;
    int32_t iteration; /**< -1 during set-up */
    int32_t microbatch;
    me_phase phase;
    const char *module; /**< path of the one that runs, "" for none */
} me_comm_row;

/** Those of one iteration, of one name and one group. */
typedef struct me_comm_sum {
    const char *name;
    me_group_kind group;
    int32_t group_size;
    int32_t iteration;
    bool has_bytes;
    uint64_t count;
    uint64_t bytes; /**< ME_SIZE_INVALID beyond 64 bits */
} me_comm_sum;

typedef struct me_comm_tracker me_comm_tracker;

/**
 * A tracker on the program of @p e, before it runs; of its set-up and of
 * iteration @p iteration.
 *
 * @return owned by the caller; NULL without memory
 */
me_comm_tracker *me_comm_tracker_create(me_engine *e, int32_t iteration);

/** Give back; NULL is allowed. */
void me_comm_tracker_destroy(me_comm_tracker *t);

/** What it has seen, in order; borrowed. */
const me_comm_row *me_comm_tracker_rows(const me_comm_tracker *t,
                                        uint32_t *count_out);

/** The same by iteration, name and group, each where the first one is;
 *  borrowed. */
const me_comm_sum *me_comm_tracker_sums(const me_comm_tracker *t,
                                        uint32_t *count_out);

/** The iteration that it was created for. */
int32_t me_comm_tracker_iteration(const me_comm_tracker *t);

#endif /* MEMEST_TRACK_COMM_TRACKER_H */
