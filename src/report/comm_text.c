/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/comm.h"
#include "report/quantity.h"
#include "report/table.h"

#include <inttypes.h>

static void append_iteration(me_str *cell, int32_t iteration)
{
    if (iteration < 0) {
        me_str_append(cell, "set-up");
    } else {
        me_str_printf(cell, "%" PRId32, iteration);
    }
}

static void append_bytes(me_str *cell, bool has_bytes, uint64_t bytes)
{
    if (has_bytes) {
        me_count_append(cell, bytes);
    } else {
        me_str_append(cell, "-");
    }
}

static void row_iteration(const void *row, me_str *cell)
{
    append_iteration(cell, ((const me_comm_row *)row)->iteration);
}

static void row_phase(const void *row, me_str *cell)
{
    me_str_append(cell, me_phase_name(((const me_comm_row *)row)->phase));
}

static void row_module(const void *row, me_str *cell)
{
    me_str_append(cell, ((const me_comm_row *)row)->module);
}

static void row_name(const void *row, me_str *cell)
{
    me_str_append(cell, ((const me_comm_row *)row)->op.name);
}

static void row_group(const void *row, me_str *cell)
{
    me_str_append(cell,
                  me_group_kind_name(((const me_comm_row *)row)->op.group));
}

static void row_size(const void *row, me_str *cell)
{
    me_str_printf(cell, "%" PRId32, ((const me_comm_row *)row)->op.group_size);
}

static void row_peer(const void *row, me_str *cell)
{
    const me_collective_op *op = &((const me_comm_row *)row)->op;
    if (op->peer < 0) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%" PRId32, op->peer);
    }
}

static void row_bytes(const void *row, me_str *cell)
{
    const me_collective_op *op = &((const me_comm_row *)row)->op;
    append_bytes(cell, op->has_bytes, op->bytes);
}

static const me_column row_columns[] = {
    {"iteration", NULL, false, false, row_iteration},
    {"phase", NULL, false, false, row_phase},
    {"module", NULL, false, false, row_module},
    {"operation", NULL, false, false, row_name},
    {"group", NULL, false, false, row_group},
    {"ranks", NULL, true, false, row_size},
    {"peer", NULL, true, false, row_peer},
    {"bytes", NULL, true, false, row_bytes},
};

static void sum_iteration(const void *row, me_str *cell)
{
    append_iteration(cell, ((const me_comm_sum *)row)->iteration);
}

static void sum_name(const void *row, me_str *cell)
{
    me_str_append(cell, ((const me_comm_sum *)row)->name);
}

static void sum_group(const void *row, me_str *cell)
{
    me_str_append(cell, me_group_kind_name(((const me_comm_sum *)row)->group));
}

static void sum_size(const void *row, me_str *cell)
{
    me_str_printf(cell, "%" PRId32, ((const me_comm_sum *)row)->group_size);
}

static void sum_count(const void *row, me_str *cell)
{
    me_count_append(cell, ((const me_comm_sum *)row)->count);
}

static void sum_bytes(const void *row, me_str *cell)
{
    const me_comm_sum *sum = row;
    append_bytes(cell, sum->has_bytes, sum->bytes);
}

static const me_column sum_columns[] = {
    {"iteration", NULL, false, false, sum_iteration},
    {"operation", NULL, false, false, sum_name},
    {"group", NULL, false, false, sum_group},
    {"ranks", NULL, true, false, sum_size},
    {"calls", NULL, true, false, sum_count},
    {"bytes", NULL, true, false, sum_bytes},
};

me_status me_comm_text_append(me_str *text, const me_comm_tracker *t)
{
    uint32_t n_rows = 0;
    uint32_t n_sums = 0;
    const me_comm_row *rows = me_comm_tracker_rows(t, &n_rows);
    const me_comm_sum *sums = me_comm_tracker_sums(t, &n_sums);
    const int32_t iteration = me_comm_tracker_iteration(t);
    if (n_rows == 0) {
        me_str_printf(text,
                      "No collectives in set-up and iteration %" PRId32 "\n",
                      iteration);
        return me_str_status(text);
    }
    me_str_printf(text,
                  "Collectives of set-up and iteration %" PRId32
                  ", in their order\n",
                  iteration);
    const me_status status =
        me_table_print(ME_TABLE(row_columns, rows, n_rows), text);
    if (status != ME_OK) {
        return status;
    }
    me_str_append(text, "\nBy operation and process group\n");
    return me_table_print(ME_TABLE(sum_columns, sums, n_sums), text);
}
