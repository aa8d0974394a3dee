/**
 * @file
 * What PyTorch's SACEstimator knows of a module's forward: its operations in
 * order, with the time that each takes and the memory that its results take
 * (torch/distributed/_tools/sac_estimator.py, SACStats).
 *
 * Whoever watches a forward writes down every operation while the module runs
 * and calls me_sac_stats_finish() at its end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_STATS_H
#define MEMEST_SAC_STATS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_SAC_NOT_IN_PLACE = -1
};

/** One operation. */
typedef struct me_sac_op {
    const char *name;    /**< without overload, such as "addmm"; borrowed */
    double runtime_ms;   /**< as the RuntimeEstimator has it */
    uint64_t bytes;      /**< of the storages of its results: on a GPU each
                               rounded up to 512, on the host as they are; 0 of
                               one that is view-like */
    bool is_view_like;   /**< me_sac_is_view_like() */
    bool is_random;      /**< it takes random numbers */
    bool is_saved;       /**< all storages of its results are saved for the
                               backward */
    int32_t in_place_of; /**< index of the module's first operation whose
                               results have this one's storages; its own index
                               where none has; ME_SAC_NOT_IN_PLACE of one that
                               does not work in place */
} me_sac_op;

/** A module's. Nothing of it is owned here. */
typedef struct me_sac_stats {
    const char *fqn;
    me_sac_op *ops;
    uint32_t n_ops;
    bool stores_random; /**< force_store_random: no tensor came in */
} me_sac_stats;

/** Is a result of @p name, an operation without its overload, a view of what
 *  came in, by name (torch/testing/_internal/composite_compliance.py)? */
bool me_sac_is_view_like(const char *name);

/** Does @p name work in place, by name (the same file)? */
bool me_sac_is_in_place(const char *name);

/** Is @p name left out of a module's operations? Selective checkpoints never
 *  see these (torch/utils/checkpoint.py, SAC_IGNORED_OPS, and clone,
 *  lift_fresh, the profiler's exit). */
bool me_sac_is_skipped(const char *name);

/**
 * Make of all operations of a forward those that count: skipped ones are taken
 * out, the others' indices follow, and the last operation that is neither
 * view-like nor in place takes no memory, since a checkpoint's output is stored
 * anyway. Local.
 *
 * @param stats  ops become fewer, in their array
 * @return ME_OK; ME_ERR_CONFIG where SACEstimator fails as well: nothing is left,
 *         or an operation works in place on the result of a skipped one
 */
me_status me_sac_stats_finish(me_sac_stats *stats, me_diag *diag) ME_MUST_CHECK;

/** Bytes of all its operations. */
uint64_t me_sac_stats_bytes(const me_sac_stats *stats);

/** Time of all its operations, added in their order. */
double me_sac_stats_runtime_ms(const me_sac_stats *stats);

#endif /* MEMEST_SAC_STATS_H */
