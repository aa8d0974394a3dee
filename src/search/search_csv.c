/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/search_report.h"

#include <inttypes.h>
#include <string.h>

static void append_field(const char *field, me_str *text)
{
    me_str_append_csv(text, field, strlen(field));
    me_str_append(text, ",");
}

/** Flags that are not modelled, with spaces between them. */
static void append_missing(const me_search_row *row, me_str *text)
{
    const me_flag_list *list = &me_run_config(row->run)->not_modelled;
    me_str flags = {0};
    for (int32_t i = 0; i < list->count; i++) {
        me_str_printf(&flags, "%s%s", i == 0 ? "" : " ", list->flags[i].flag);
    }
    append_field(me_str_text(&flags), text);
    me_str_fini_piece(&flags, text);
}

static void append_times(const me_search_result *r, me_str *text)
{
    if (r->step_ns == 0) {
        me_str_append(text, ",,,,,");
        return;
    }
    me_str_printf(text, "%" PRId64 ",%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",",
                  r->step_ns, (int)r->is_lower_step, r->forward_backward_ns,
                  r->bubble_ns, r->exposed_ns);
}

/** A line a row of the front; the counts have no place in a table. */
me_status me_search_csv(const me_search_found *found, me_str *text)
{
    me_str_append(
        text, "number,place,is_tie,is_equal,gpus,layout,schedule,"
              "assignments,flags,not_modelled,risk,step_ns,"
              "step_is_lower_bound,forward_backward_ns,bubble_ns,exposed_ns,"
              "worst_rank,worst_bytes,capacity_bytes,requested_bytes,"
              "allocated_bytes,reserved_bytes,device_bytes\n");
    for (uint32_t i = 0; i < found->n_rows; i++) {
        const me_search_row *row = &found->rows[i];
        const me_candidate *c = row->front.candidate;
        const me_search_result *r = &c->result;
        me_str_printf(text, "%u,%d,%d,%d,%d,", (unsigned)(i + 1),
                      (int)row->front.place, (int)row->front.is_tie,
                      (int)row->front.is_equal, (int)c->world);
        append_field(c->layout, text);
        append_field(me_search_schedule(row), text);
        append_field(c->assignments, text);
        append_field(row->flags, text);
        append_missing(row, text);
        append_field(me_risk_name((me_risk)r->risk), text);
        append_times(r, text);
        me_str_printf(text, "%d,%" PRIu64 ",%" PRIu64, (int)r->worst_rank,
                      r->worst_bytes, r->capacity_bytes);
        me_str_printf(text,
                      ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                      r->requested_bytes, r->allocated_bytes, r->reserved_bytes,
                      r->device_bytes);
    }
    return me_str_status(text);
}
