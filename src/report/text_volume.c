/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/table.h"
#include "report/text.h"

/** One kind of collective on one kind of group. */
typedef struct volume_row {
    me_group_kind group;
    me_collective kind;
    me_volume_result volume;
} volume_row;

static void get_group(const void *row, me_str *cell)
{
    me_str_append(cell, me_group_kind_name(((const volume_row *)row)->group));
}

static void get_kind(const void *row, me_str *cell)
{
    me_str_append(cell, me_collective_name(((const volume_row *)row)->kind));
}

static const me_column columns[] = {
    {"group", NULL, false, false, get_group},
    {"collective", NULL, false, false, get_kind},
};

static const me_schema row_schema = ME_SCHEMA(
    volume_row,
    {ME_WITHIN("volume", volume_row, volume, me_volume_schema), .title = ""});

me_status me_text_volume(const me_report *report, me_str *text)
{
    const me_rank_result *worst = me_report_worst(report);
    volume_row rows[ME_GROUP_COUNT * ME_COLLECTIVE_COUNT];
    size_t n_rows = 0;
    for (int i = 0; i < ME_GROUP_COUNT * ME_COLLECTIVE_COUNT; i++) {
        const int group = i / ME_COLLECTIVE_COUNT;
        const int kind = i % ME_COLLECTIVE_COUNT;
        const me_volume_result *volume = &worst->volume[group][kind];
        if (volume->calls > 0) {
            rows[n_rows++] = (volume_row){(me_group_kind)group,
                                          (me_collective)kind, *volume};
        }
    }
    if (n_rows == 0) {
        return ME_OK;
    }
    me_str_printf(text,
                  "\nCommunication of rank %d in iteration 1, as it is passed "
                  "to NCCL\n",
                  (int)report->verdict.worst_rank);
    return me_table_print(
        ME_FIELDS_TABLE(columns, 0, &row_schema, rows, n_rows), text);
}
