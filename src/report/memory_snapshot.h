/**
 * @file
 * A rank's memory as PyTorch's own tools read it: what
 * `torch.cuda.memory._snapshot()` gives (torch/csrc/cuda/memory_snapshot.cpp of
 * PyTorch 2.11), as pickle or JSON. Stacks name what memest knows in place of
 * Python's functions: iteration, phase, modules, operation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_MEMORY_SNAPSHOT_H
#define MEMEST_REPORT_MEMORY_SNAPSHOT_H

#include "base/status.h"
#include "track/memory_trace.h"

#include <stdbool.h>
#include <stdio.h>

/** What is written. All borrowed. */
typedef struct me_memory_snapshot {
    int32_t rank; /**< whose it is: PyTorch has no place for it, and passes the
                       key over */
    const me_memory_trace *trace;
    uint32_t n_entries; /**< of it, that are written: the first ones */
    const me_module_tree *tree;
    const me_pool_listed *blocks; /**< behind them, by address */
    uint32_t n_blocks;
    const char *alloc_conf_text; /**< as given; "" */
    const me_alloc_conf *conf;
} me_memory_snapshot;

/** About as many bytes as it will have. */
uint64_t me_memory_snapshot_bytes(const me_memory_snapshot *snapshot,
                                  bool is_pickle);

/** Write it. Errors are the stream's. @return ME_OK or ME_ERR_NOMEM */
me_status me_memory_snapshot_write(const me_memory_snapshot *snapshot,
                                   bool is_pickle, FILE *stream,
                                   me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_MEMORY_SNAPSHOT_H */
