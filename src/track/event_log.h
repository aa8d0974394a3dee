/**
 * @file
 * Writes every allocation and every free of one iteration as a line of text:
 *
 *     alloc|free  bytes  block  stream  category  phase  module  op  [late]
 *
 * with tabs between. A free is written where the program asks for it; if another
 * stream still uses the block it is "late", and a line "free_completed block" says
 * when the allocator has it back. Before them come all that were before the
 * iteration, as earlier_alloc and earlier_free: then the file alone can be put
 * through the allocator again, under any settings. For that it also has
 *
 *     point  name             peaks begin anew
 *     mark   name             peaks go on
 *     take   taker  bytes     addresses, see me_pool_take()
 *
 * The first line is a comment that names the columns.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_EVENT_LOG_H
#define MEMEST_TRACK_EVENT_LOG_H

#include "base/status.h"
#include "model/event.h"
#include "tensor/module.h"

#include <stdint.h>

typedef struct me_event_log me_event_log;

/**
 * Begin a log. Local.
 *
 * @param path       of the file, which is written whole or not at all
 * @param tree       modules of the rank; borrowed
 * @param iteration  which is not "earlier": from its "iterN_begin" point, or
 *                   where there is none from its beginning, to "iterN_end"
 * @param log_out    owned by the caller
 * @return ME_OK, ME_ERR_IO, ME_ERR_NOMEM
 */
me_status me_event_log_create(const char *path, const me_module_tree *tree,
                              int32_t iteration, me_diag *diag,
                              me_event_log **log_out) ME_MUST_CHECK;

/** What to wire to the rank's engine; borrows @p log. Local. */
me_observer me_event_log_observer(me_event_log *log);

/** Others than the allocator take addresses, as @p taker. Local. */
void me_event_log_take(me_event_log *log, const char *taker, uint64_t bytes);

/**
 * The file is complete: bring it to its place. Local.
 *
 * @return ME_OK; ME_ERR_IO if it cannot be written; ME_ERR_CONFIG if the
 *         iteration never came. Then there is no new file.
 */
me_status me_event_log_finish(me_event_log *log, me_diag *diag) ME_MUST_CHECK;

/** Give back; a log that was not finished leaves no file. NULL is allowed. */
void me_event_log_destroy(me_event_log *log);

#endif /* MEMEST_TRACK_EVENT_LOG_H */
