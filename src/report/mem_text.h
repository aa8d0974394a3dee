/**
 * @file
 * What PyTorch's trackers print, in their layout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_MEM_TEXT_H
#define MEMEST_REPORT_MEM_TEXT_H

#include "base/status.h"
#include "base/str.h"
#include "track/mem_tracker.h"

#include <stdbool.h>
#include <stdint.h>

/** How to print. */
typedef struct me_mem_format {
    const char *units; /**< B, KiB, MiB or GiB; static or the caller's */
    double divisor;    /**< bytes of a unit */
    uint32_t depth;    /**< modules up to this many names deep */
    bool tabulates;
} me_mem_format;

/** Find a unit. @return ME_OK; ME_ERR_CONFIG for another word */
me_status me_mem_units_find(const char *units, me_diag *diag,
                            me_mem_format *format);

/** MemTracker.display_snapshot() of a snapshot. */
void me_mem_snapshot_append(me_str *text, const me_mem_tracker *t,
                            const me_mem_snapshot *snapshot,
                            const me_mem_format *format);

/** MemTracker.display_modulewise_snapshots(). @return ME_OK, ME_ERR_NOMEM */
me_status me_mem_modules_append(me_str *text, const me_mem_tracker *t,
                                const me_mem_format *format);

/** Modules in the order in which they are printed: by name, numbers in it as
 *  numbers. @return owned by the caller; NULL without memory */
const me_mem_module **me_mem_sorted(const me_mem_tracker *t,
                                    uint32_t *count_out);

/** All that the tracker knows as JSON, in bytes. @return ME_OK, ME_ERR_NOMEM */
me_status me_mem_json_append(me_str *text, const me_mem_tracker *t,
                             uint32_t depth);

#endif /* MEMEST_REPORT_MEM_TEXT_H */
