/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/rank_stages.h"
#include "parallel/schedule.h"
#include "report/json.h"
#include "report/schedule_report.h"

/*
 * A value that jansson cannot make is NULL, and whatever it was put into
 * becomes NULL.
 */

static json_t *make_durations(const me_ticks *t)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I}", "F", (json_int_t)t->forward, "I",
        (json_int_t)t->input_gradient, "W", (json_int_t)t->weight_gradient, "B",
        (json_int_t)me_ticks_backward(t), "comm", (json_int_t)t->transfer);
}

static json_t *make_stages(const me_rank_stages *of_ranks, int32_t rank)
{
    json_t *list = json_array();
    for (int32_t i = of_ranks->first[rank]; i < of_ranks->first[rank + 1];
         i++) {
        list = me_json_push(list, json_integer(of_ranks->stages[i]));
    }
    return list;
}

/** What computes, with its times. */
static json_t *make_actions(const me_actions *actions,
                            const me_timeline_rank *times)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < actions->count; i++) {
        const me_action *a = &actions->items[i];
        if (!me_action_computes((me_action_kind)a->kind)) {
            continue;
        }
        list = me_json_push(
            list, json_pack("{s:s, s:i, s:i, s:i, s:I, s:I}", "kind",
                            me_action_letter((me_action_kind)a->kind), "stage",
                            (int)a->stage, "chunk", (int)a->chunk, "microbatch",
                            (int)a->microbatch, "start",
                            (json_int_t)times->spans[i].start, "end",
                            (json_int_t)times->spans[i].end));
    }
    return list;
}

/** As PyTorch writes them, with transfers where they are shown. */
static json_t *make_order(const me_actions *actions)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < actions->count; i++) {
        me_str name = {0};
        me_action_write(&actions->items[i], &name);
        json_t *text = me_str_status(&name) == ME_OK
                           ? json_string(me_str_text(&name))
                           : NULL;
        list = me_json_push(list, text);
        me_str_fini(&name);
    }
    return list;
}

static json_t *make_rank(const me_schedule_report *report,
                         const me_rank_stages *stages, int32_t rank)
{
    const me_actions *actions = &report->order->ranks[rank];
    const me_timeline_rank *times = &report->timeline->ranks[rank];
    const me_action_peaks peaks = me_actions_peaks(actions);
    return json_pack(
        "{s:i, s:o, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
        "rank", (int)rank, "stages", make_stages(stages, rank),
        "in_flight_chunk_microbatches", (int)peaks.full, "activations",
        (int)peaks.activation, "pending_weight_gradients", (int)peaks.pending_w,
        "forwards_first", (int)peaks.forwards_first, "first_start",
        (json_int_t)times->first_start, "end", (json_int_t)times->end, "busy",
        (json_int_t)times->busy, "idle", (json_int_t)times->idle, "span_idle",
        (json_int_t)times->span_idle, "actions", make_actions(actions, times),
        "order", make_order(&report->shown->ranks[rank]));
}

static json_t *make_report(const me_schedule_report *report)
{
    const me_pipeline_order *order = report->order;
    const me_timeline *timeline = report->timeline;
    me_rank_stages stages;
    if (me_rank_stages_init(order, &stages) != ME_OK) {
        return NULL;
    }
    json_t *ranks = json_array();
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        ranks = me_json_push(ranks, make_rank(report, &stages, rank));
    }
    me_rank_stages_fini(&stages);
    return json_pack(
        "{s:s, s:s?, s:i, s:i, s:i, s:s, s:o, s:I, s:I, s:I, s:o}", "schedule",
        report->name, "summary", report->summary, "pipeline_ranks",
        (int)order->n_ranks, "stages", (int)order->n_stages, "microbatches",
        (int)order->n_microbatches, "placement",
        me_placement_name(order->placement), "durations",
        make_durations(report->ticks), "makespan",
        (json_int_t)timeline->makespan, "bubble", (json_int_t)timeline->bubble,
        "span_bubble", (json_int_t)timeline->span_bubble, "ranks", ranks);
}

me_status me_schedule_report_json(const me_schedule_report *report,
                                  me_diag *diag, me_str *text)
{
    const me_status status = me_json_append(make_report(report), 0, text);
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no host memory for the report");
}
