/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/compare_format.h"
#include "report/confidence.h"

#include <inttypes.h>
#include <string.h>

/** A field; in quotes where it must be. */
static void append_field(me_str *text, const char *field)
{
    me_str_append_csv(text, field, strlen(field));
}

/** Flags that are not modelled, with spaces between them. */
static void append_flags(const me_report *report, me_str *text)
{
    const int32_t n = report == NULL ? 0 : report->config->not_modelled.count;
    me_str flags = {0};
    for (int32_t i = 0; i < n; i++) {
        me_str_printf(&flags, "%s%s", i == 0 ? "" : " ",
                      report->config->not_modelled.flags[i].flag);
    }
    append_field(text, me_str_text(&flags));
    me_str_fini_piece(&flags, text);
}

static void append_setting(const me_compare_line *line, me_str *text)
{
    const me_compare_row *row = line->row;
    const me_step_time *step = me_compare_step(line);
    append_field(text, row->schedule);
    me_str_append(text, ",");
    append_field(text, row->variant);
    me_str_append(text, ",");
    append_field(text, row->assignments);
    me_str_append(text, ",");
    append_field(text, row->reason == NULL ? "" : row->reason);
    me_str_append(text, ",");
    append_flags(row->report, text);
    if (line->n_stages == 0) {
        me_str_append(text, ",,,,,,,,,");
        return;
    }
    const me_confidence confidence = me_confidence_of(row->report);
    me_str_printf(text, ",%s,%s,", me_risk_name(row->report->verdict.risk),
                  me_confidence_word(confidence.level));
    if (line->place > 0) {
        me_str_printf(text, "%d", (int)line->place);
    }
    if (step == NULL) {
        me_str_append(text, ",,,,,,");
    } else {
        const char *lacks = me_compare_host_lacks(line);
        me_str_printf(text, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",",
                      step->step_ns, step->forward_backward_ns, step->bubble_ns,
                      me_compare_exposed_ns(step));
        append_field(text, lacks == NULL ? "" : lacks);
        me_str_append(text, ",");
    }
    me_str_printf(text, "%d", (int)me_compare_chunks(line));
}

static void append_stage(const me_compare_stage *stage, me_str *text)
{
    me_str_printf(text, ",%d,%d,%d", (int)stage->stage, (int)stage->rank,
                  (int)stage->in_flight);
    for (size_t i = 0; i < me_compare_bytes_schema.n_fields; i++) {
        const uint64_t bytes =
            me_field_bytes(&me_compare_bytes_schema.fields[i], stage);
        me_str_append(text, ",");
        if (bytes != ME_BYTES_UNKNOWN) {
            me_str_printf(text, "%" PRIu64, bytes);
        }
    }
}

/** A line a stage; one without a stage for what cannot run. */
me_status me_compare_csv(const me_compare_print *print, me_str *text)
{
    me_str_append(
        text,
        "schedule,variant,assignments,reason,not_modelled,risk,confidence,place,step_ns,"
        "forward_backward_ns,bubble_ns,exposed_ns,host_lacks,chunks,stage,rank,"
        "in_flight_chunk_microbatches,requested_bytes,"
        "allocated_bytes,reserved_bytes,device_bytes\n");
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_compare_line *line = &print->lines[i];
        for (int32_t s = 0; s < line->n_stages; s++) {
            append_setting(line, text);
            append_stage(&line->stages[s], text);
            me_str_append(text, "\n");
        }
        if (line->n_stages == 0) {
            append_setting(line, text);
            me_str_append(text, ",,,,,,,\n");
        }
    }
    return me_str_status(text);
}
