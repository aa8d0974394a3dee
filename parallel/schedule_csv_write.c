/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/schedule_csv.h"

void me_schedule_csv_cell(const me_actions *actions, int32_t *index,
                          me_str *text)
{
    const me_action *action = &actions->items[(*index)++];
    if (!action->is_overlapped || *index == actions->count) {
        me_action_write(action, text);
        return;
    }
    me_str_append(text, "(");
    me_action_write(action, text);
    me_str_append(text, ";");
    me_action_write(&actions->items[(*index)++], text);
    me_str_append(text, ")OVERLAP_F_B");
}

void me_schedule_csv_write(const me_pipeline_order *order, me_str *text)
{
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        const me_actions *actions = &order->ranks[rank];
        for (int32_t i = 0; i < actions->count;) {
            me_str_append(text, i == 0 ? "" : ",");
            me_schedule_csv_cell(actions, &i, text);
        }
        me_str_append(text, "\n");
    }
}
