/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/comm.h"
#include "report/json.h"

static json_t *make_number(bool is_there, int32_t number)
{
    return is_there ? json_integer(number) : json_null();
}

static json_t *make_bytes(bool has_bytes, uint64_t bytes)
{
    return has_bytes ? me_json_bytes(bytes) : json_null();
}

static json_t *make_row(const void *items, uint32_t i)
{
    const me_comm_row *row = &((const me_comm_row *)items)[i];
    const me_collective_op *op = &row->op;
    return json_pack(
        "{s:o, s:s, s:o, s:s, s:s, s:s, s:i, s:o, s:o}", "iteration",
        make_number(row->iteration >= 0, row->iteration), "phase",
        me_phase_name(row->phase), "microbatch",
        make_number(row->microbatch != ME_NO_MICROBATCH, row->microbatch),
        "module", row->module, "operation", op->name, "group",
        me_group_kind_name(op->group), "group_size", (int)op->group_size,
        "peer", make_number(op->peer >= 0, op->peer), "bytes",
        make_bytes(op->has_bytes, op->bytes));
}

static json_t *make_sum(const void *items, uint32_t i)
{
    const me_comm_sum *sum = &((const me_comm_sum *)items)[i];
    return json_pack("{s:o, s:s, s:s, s:i, s:I, s:o}", "iteration",
                     make_number(sum->iteration >= 0, sum->iteration),
                     "operation", sum->name, "group",
                     me_group_kind_name(sum->group), "group_size",
                     (int)sum->group_size, "calls", (json_int_t)sum->count,
                     "bytes", make_bytes(sum->has_bytes, sum->bytes));
}

me_status me_comm_json_append(me_str *text, const me_comm_tracker *t)
{
    uint32_t n_rows = 0;
    uint32_t n_sums = 0;
    const me_comm_row *rows = me_comm_tracker_rows(t, &n_rows);
    const me_comm_sum *sums = me_comm_tracker_sums(t, &n_sums);
    json_t *root = json_pack("{s:i, s:o, s:o}", "iteration",
                             (int)me_comm_tracker_iteration(t), "collectives",
                             me_json_array(rows, n_rows, make_row), "sums",
                             me_json_array(sums, n_sums, make_sum));
    return me_json_append(root, JSON_INDENT(1), text);
}
