/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/compare_format.h"
#include "report/compare_timeline.h"
#include "report/confidence.h"
#include "report/json.h"

/*
 * A value that jansson cannot make is NULL, and whatever it was put into
 * becomes NULL.
 */

static json_t *nanoseconds(const me_step_time *step, int64_t ns)
{
    return step == NULL ? json_null() : json_integer(ns);
}

/** Of fixed durations. */
static json_t *ticks(const me_step_time *step, int64_t ns)
{
    return step == NULL ? json_null()
                        : json_real((double)ns / (double)ME_COMPARE_TICK_NS);
}

static json_t *make_timed_part(const me_compare_print *print,
                               const me_timed_part *timed)
{
    const bool has_ticks = print->comparison->durations != NULL;
    const double tick = (double)ME_COMPARE_TICK_NS;
    json_t *part = me_json_record(&me_course_schema, timed->part);
    part = me_json_put(part, has_ticks ? "start_ticks" : "start_ns",
                       has_ticks ? json_real((double)timed->start_ns / tick)
                                 : json_integer(timed->start_ns));
    return me_json_put(part, has_ticks ? "end_ticks" : "end_ns",
                       has_ticks ? json_real((double)timed->end_ns / tick)
                                 : json_integer(timed->end_ns));
}

/** Empty where there are no times. */
static json_t *make_timeline(const me_compare_print *print,
                             const me_compare_line *line, int32_t stage)
{
    me_timed_course course = {.n_parts = 0};
    if (me_compare_step(line) != NULL &&
        me_timed_course_init(line, stage, &course) != ME_OK) {
        return NULL;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < course.n_parts && list != NULL; i++) {
        list = me_json_push(list, make_timed_part(print, &course.parts[i]));
    }
    me_timed_course_fini(&course);
    return list;
}

static json_t *make_stage(const me_compare_print *print,
                          const me_compare_line *line, int32_t i)
{
    const me_compare_stage *stage = &line->stages[i];
    json_t *object = json_pack(
        "{s:i, s:i, s:i, s:o, s:o}", "stage", (int)stage->stage, "worst_rank",
        (int)stage->rank, "in_flight_chunk_microbatches", (int)stage->in_flight,
        "peak", me_json_record(&me_compare_bytes_schema, stage), "late_peak",
        stage->result->late.is_known
            ? me_json_record(&me_late_schema, &stage->result->late)
            : json_null());
    return print->has_course
               ? me_json_put(object, "timeline", make_timeline(print, line, i))
               : object;
}

static json_t *make_stages(const me_compare_print *print,
                           const me_compare_line *line)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < line->n_stages && list != NULL; i++) {
        list = me_json_push(list, make_stage(print, line, i));
    }
    return list;
}

/** NULL also where fixed durations stand for it. */
static const me_step_time *predicted_step(const me_compare_line *line)
{
    return line->row->ticks_step != NULL ? NULL : me_compare_step(line);
}

/** Add what fixed durations give. @return false without memory */
static bool add_ticks(const me_compare_line *line, json_t *row)
{
    const me_step_time *step = line->row->ticks_step;
    json_t *figures = json_pack(
        "{s:o, s:o, s:o, s:o}", "step_ticks",
        ticks(step, step == NULL ? 0 : step->step_ns), "bubble_ticks",
        ticks(step, step == NULL ? 0 : step->bubble_ns), "span_bubble_ticks",
        ticks(step, step == NULL ? 0 : step->span_bubble_ns), "bubble_fraction",
        step == NULL || step->step_ns == 0
            ? json_null()
            : json_real((double)step->bubble_ns / (double)step->step_ns));
    const bool is_good =
        figures != NULL && json_object_update(row, figures) == 0;
    json_decref(figures);
    return is_good;
}

/** What a row has that can run. */
static json_t *make_figures(const me_compare_print *print,
                            const me_compare_line *line)
{
    const me_verdict *v = &line->row->report->verdict;
    const me_step_time *step = predicted_step(line);
    const double tokens = line->row->report->time.tokens_per_second;
    const me_confidence confidence = me_confidence_of(line->row->report);
    const bool is_judged =
        v->risk != ME_RISK_UNKNOWN && v->risk != ME_RISK_CANNOT_SAY;
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:b, s:o, s:s?, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, "
        "s:I, s:o}",
        "fits", is_judged ? json_boolean(v->fits) : json_null(), "risk",
        me_risk_name(v->risk), "confidence", me_confidence_json(&confidence),
        "place", line->place > 0 ? json_integer(line->place) : json_null(),
        "is_tie", (int)line->is_tie, "step_ns",
        nanoseconds(step, step == NULL ? 0 : step->step_ns), "host_lacks",
        me_compare_host_lacks(line), "tokens_per_second",
        step == NULL || !(tokens > 0) ? json_null() : json_real(tokens),
        "forward_backward_ns",
        nanoseconds(step, step == NULL ? 0 : step->forward_backward_ns),
        "bubble_ns", nanoseconds(step, step == NULL ? 0 : step->bubble_ns),
        "exposed_communication_ns",
        nanoseconds(step, step == NULL ? 0 : me_compare_exposed_ns(step)),
        "chunks", (int)me_compare_chunks(line), "in_flight_chunk_microbatches",
        (int)line->worst.in_flight, "worst_rank", (int)line->worst.rank, "peak",
        me_json_record(&me_compare_bytes_schema, &line->worst), "host_bytes",
        (json_int_t)me_compare_host_bytes(line), "stages",
        make_stages(print, line));
}

static json_t *make_row(const me_compare_print *print,
                        const me_compare_line *line)
{
    const me_compare_row *row = line->row;
    json_t *head =
        json_pack("{s:s, s:s, s:s, s:b, s:s?}", "schedule", row->schedule,
                  "variant", row->variant, "assignments", row->assignments,
                  "runs", (int)(row->report != NULL), "reason", row->reason);
    if (head == NULL || line->n_stages == 0) {
        return head;
    }
    json_t *figures = make_figures(print, line);
    if (figures == NULL || json_object_update(head, figures) != 0 ||
        json_object_set_new(head, "not_modelled",
                            me_json_not_modelled(row->report)) != 0 ||
        json_object_set_new(head, "assumptions",
                            me_json_assumptions(row->report)) != 0 ||
        (print->comparison->durations != NULL && !add_ticks(line, head))) {
        json_decref(head);
        head = NULL;
    }
    json_decref(figures);
    return head;
}

static json_t *make_durations(const me_ticks *t)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I}", "F", (json_int_t)t->forward, "I",
        (json_int_t)t->input_gradient, "W", (json_int_t)t->weight_gradient, "B",
        (json_int_t)me_ticks_backward(t), "FB", (json_int_t)t->overlapped,
        "comm", (json_int_t)t->transfer);
}

/** A row a line, in the order of the table. */
me_status me_compare_json(const me_compare_print *print, me_str *text)
{
    const me_comparison *c = print->comparison;
    json_t *head =
        json_pack("{s:s, s:s, s:f}", "memest", c->version, "name", c->name,
                  "tie_below", c->durations == NULL ? ME_TIME_TIE : 0.0);
    if (c->durations != NULL) {
        head = me_json_put(head, "durations", make_durations(c->durations));
    }
    me_str_append(text, "{\"head\": ");
    bool is_good = me_json_dump(head, JSON_REAL_PRECISION(6), text);
    json_decref(head);
    me_str_append(text, ",\n \"rows\": [\n");
    for (size_t i = 0; i < c->n_rows && is_good; i++) {
        json_t *row = make_row(print, &print->lines[i]);
        me_str_append(text, i == 0 ? "  " : ",\n  ");
        is_good = me_json_dump(row, 0, text);
        json_decref(row);
    }
    me_str_append(text, "\n ]}\n");
    return is_good ? me_str_status(text) : ME_ERR_NOMEM;
}
