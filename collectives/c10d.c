/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/c10d.h"

#include "base/size.h"

#include <string.h>

/** What is known of a collective. */
typedef struct c10d_row {
    const char *name;
    me_c10d_size size;
    int group;
    me_c10d_rows rows;
} c10d_row;

static const c10d_row collectives[] = {
#define C10D_ROW(constant, name, size, group, rows)                            \
    [constant] = {name, ME_C10D_##size, group, ME_C10D_ROWS_##rows},
    ME_C10D_LIST(C10D_ROW)
#undef C10D_ROW
};

const char *me_c10d_name(me_c10d_op op)
{
    return collectives[op].name;
}

bool me_c10d_find(const char *name, me_c10d_op *op_out)
{
    for (int i = 0; i < ME_C10D_COUNT; i++) {
        if (strcmp(collectives[i].name, name) == 0) {
            *op_out = (me_c10d_op)i;
            return true;
        }
    }
    return false;
}

me_c10d_size me_c10d_size_of(me_c10d_op op)
{
    return collectives[op].size;
}

int me_c10d_group_argument(me_c10d_op op)
{
    return collectives[op].group;
}

uint64_t me_c10d_bytes(me_c10d_op op, uint64_t input_bytes,
                       uint64_t output_bytes)
{
    switch (collectives[op].size) {
    case ME_C10D_EXCLUDED: return 0;
    case ME_C10D_UNCOUNTED: break;
    case ME_C10D_INPUT: return input_bytes;
    case ME_C10D_OUTPUT: return output_bytes;
    case ME_C10D_LARGER: return me_max_u64(input_bytes, output_bytes);
    case ME_C10D_BOTH: return me_size_add(input_bytes, output_bytes);
    }
    return ME_SIZE_INVALID;
}

uint64_t me_c10d_result_rows(me_c10d_op op, uint64_t rows, uint64_t group_size)
{
    switch (collectives[op].rows) {
    case ME_C10D_ROWS_SAME: break;
    case ME_C10D_ROWS_GATHERED: return me_size_mul(rows, group_size);
    case ME_C10D_ROWS_SCATTERED: return rows / group_size;
    }
    return rows;
}
