/**
 * @file
 * Stacks of a memory snapshot, as PyTorch has them, the innermost frame first:
 * the operation, the modules around it, the phase, micro-batch and iteration.
 * In a pickle each is written once and shared.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_MEMORY_FRAMES_H
#define MEMEST_REPORT_MEMORY_FRAMES_H

#include "base/status.h"
#include "base/str.h"
#include "report/plain_writer.h"
#include "track/memory_trace.h"

#include <stdbool.h>
#include <stdint.h>

/** All zero is none. */
typedef struct me_frame_writer {
    const me_trace_place *places;
    const me_module_tree *tree;
    uint32_t *stack_at;  /**< by place: where it was put aside, and one */
    uint32_t *module_at; /**< by module: the same of its frame */
    me_str text;
} me_frame_writer;

/** @return ME_OK or ME_ERR_NOMEM */
me_status me_frame_writer_init(me_frame_writer *f, const me_memory_trace *trace,
                               const me_module_tree *tree,
                               bool is_shared) ME_MUST_CHECK;

void me_frame_writer_fini(me_frame_writer *f);

/** @return ME_OK or ME_ERR_NOMEM */
me_status me_frame_writer_status(const me_frame_writer *f);

/** In which iteration a place is, "iteration 1", "evaluation" or "before training";
 *  borrowed until the next call. */
const char *me_frames_iteration(me_frame_writer *f, uint32_t place);

/** Write the stack of a place. */
void me_frames_write(me_frame_writer *f, me_plain_writer *w, uint32_t place);

#endif /* MEMEST_REPORT_MEMORY_FRAMES_H */
