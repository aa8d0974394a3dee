/**
 * @file
 * A job's iteration as a timeline for Perfetto (ui.perfetto.dev) and Chrome: the
 * trace event format, a process a rank with what its pipeline, phases, modules
 * and communication do, and counters of its memory.
 *
 * Times are those of the predicted step, of the actions of the pipeline; what
 * is in between is spread evenly, call by call. Where nothing is predicted a
 * call takes a microsecond.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_PERFETTO_H
#define MEMEST_REPORT_PERFETTO_H

#include "base/status.h"
#include "time/pipeline_step.h"
#include "track/memory_trace.h"

#include <stdbool.h>
#include <stdio.h>

/** A rank's part. All borrowed. */
typedef struct me_perfetto_rank {
    int32_t rank;
    int32_t stage;
    int32_t n_like; /**< other ranks that do the same */
    int32_t iteration;
    const me_memory_trace *trace; /**< with the marks of the iteration */
    const me_module_tree *tree;
    const me_step_time *step; /**< NULL: not predicted */
} me_perfetto_rank;

/** The file's beginning, and its end. Errors are the stream's. */
void me_perfetto_begin(FILE *stream);
void me_perfetto_end(FILE *stream);

/** About as many bytes as a rank will have. */
uint64_t me_perfetto_bytes(const me_perfetto_rank *rank);

/** Append a rank. @return ME_OK or ME_ERR_NOMEM */
me_status me_perfetto_append(const me_perfetto_rank *rank, FILE *stream,
                             me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_PERFETTO_H */
