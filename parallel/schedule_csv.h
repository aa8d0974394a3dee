/**
 * @file
 * Orders as PyTorch's schedule files: one row a rank, one cell an action.
 *
 * A cell is STAGE TYPE MICROBATCH, as `2F0` or `3SEND_F1`; UNSHARD, RESHARD and
 * REDUCE_GRAD have no micro-batch; `(7F4;0B0)OVERLAP_F_B` is a block of a
 * forward and a backward. Empty cells mean an idle step and are skipped. Rows
 * end with LF or CRLF. The file does not say where stages stand: a stage is on
 * the rank in whose row it is. Older files write B for the input gradient and
 * BW for a whole backward.
 *
 * memest's own extension are orders of two directions, which PyTorch would
 * read as one chain: stages P + k are the second copy of stage k, with the
 * second half of the micro-batches (parallel/placement.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_SCHEDULE_CSV_H
#define MEMEST_PARALLEL_SCHEDULE_CSV_H

#include "base/str.h"
#include "parallel/pipeline_order.h"

#include <stddef.h>

/** Which of the two meanings B has. */
typedef enum me_csv_dialect {
    ME_CSV_GUESS, /**< older if there is a BW, or W without any I */
    ME_CSV_TODAY, /**< B: whole backward */
    ME_CSV_OLDER  /**< B: input gradient, BW: whole backward */
} me_csv_dialect;

/** How a file is read. */
typedef struct me_csv_options {
    const char *where;  /**< its name, for errors; NULL: none */
    bool has_transfers; /**< SEND and RECV cells are allowed; else an error */
    me_csv_dialect dialect;
} me_csv_options;

/**
 * Read a file. The order passes me_pipeline_order_check(), and if it has
 * transfers me_pipeline_order_check_transfers().
 *
 * @param text       of @p length bytes
 * @param order_out  to be destroyed by the caller
 * @return ME_OK; ME_ERR_SYNTAX for a cell that cannot be read, with row and
 *         cell; ME_ERR_CONFIG for actions that are missing, twice or on the
 *         wrong rank; ME_ERR_NOMEM
 */
me_status me_schedule_csv_read(const char *text, size_t length,
                               const me_csv_options *options, me_diag *diag,
                               me_pipeline_order **order_out) ME_MUST_CHECK;

/** Write an order, rows ending with LF; the text keeps its own failure. */
void me_schedule_csv_write(const me_pipeline_order *order, me_str *text);

/** One rank's cell at *index, which goes on behind it: a block is one cell. */
void me_schedule_csv_cell(const me_actions *actions, int32_t *index,
                          me_str *text);

#endif /* MEMEST_PARALLEL_SCHEDULE_CSV_H */
