/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/json.h"

static json_t *nanoseconds(int64_t ns)
{
    return json_integer(ns);
}

static json_t *make_span(const void *items, uint32_t i)
{
    const me_time_span *s = (const me_time_span *)items + i;
    return json_pack("{s:s, s:i, s:i, s:o, s:o}", "kind",
                     me_time_part_name((me_time_part)s->part), "chunk",
                     (int)s->chunk, "microbatch", (int)s->microbatch,
                     "start_ns", nanoseconds(s->start_ns), "end_ns",
                     nanoseconds(s->end_ns));
}

static json_t *make_stage(const void *items, uint32_t i)
{
    const me_time_stage *s = (const me_time_stage *)items + i;
    return me_json_put(me_json_record(&me_stage_time_schema, s), "actions",
                       me_json_array(s->spans, s->n_spans, make_span));
}

json_t *me_json_time_reason(const me_report *report)
{
    return report->time.step != NULL ? json_null()
                                     : json_string(report->time.reason);
}

json_t *me_json_time(const me_report *report)
{
    const me_report_time *t = &report->time;
    if (t->step == NULL) {
        return json_null();
    }
    return json_pack(
        "{s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:s, s:s?, s:f, s:f, s:o}",
        "step_ns", nanoseconds(t->step->step_ns), "host_lacks", t->host_lacks,
        "tokens_per_second",
        t->tokens_per_second > 0 ? json_real(t->tokens_per_second)
                                 : json_null(),
        "model_flops_utilization",
        t->flops_utilisation > 0 ? json_real(t->flops_utilisation)
                                 : json_null(),
        "forward_backward_ns", nanoseconds(t->step->forward_backward_ns),
        "bubble_ns", nanoseconds(t->step->bubble_ns), "span_bubble_ns",
        nanoseconds(t->step->span_bubble_ns), "rates", t->source, "network",
        t->network_source[0] == '\0' ? NULL : t->network_source, "uncertainty",
        t->uncertainty, "tie", ME_TIME_TIE, "stages",
        me_json_array(t->step->stages, (uint32_t)t->step->n_stages,
                      make_stage));
}

char *me_json_stage_time(const me_report *report, int32_t stage)
{
    json_t *value = report->time.step == NULL
                        ? json_null()
                        : me_json_record(&me_stage_time_schema,
                                         &report->time.step->stages[stage]);
    return me_json_text(value, JSON_ENCODE_ANY);
}
