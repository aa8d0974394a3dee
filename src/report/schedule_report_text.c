/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/rank_stages.h"
#include "parallel/schedule_text.h"
#include "report/schedule_report.h"

static double percent(int64_t part, int64_t whole)
{
    return whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
}

static void write_head(const me_schedule_report *report, me_str *text)
{
    const me_pipeline_order *order = report->order;
    const me_ticks *ticks = report->ticks;
    const me_timeline *timeline = report->timeline;
    me_str_printf(text, "schedule %s%s%s\n", report->name,
                  report->summary == NULL ? "" : ": ",
                  report->summary == NULL ? "" : report->summary);
    me_str_printf(text,
                  "%d pipeline rank%s, %d stage%s placed %s, %d "
                  "micro-batch%s\n",
                  order->n_ranks, order->n_ranks == 1 ? "" : "s",
                  order->n_stages, order->n_stages == 1 ? "" : "s",
                  me_placement_name(order->placement), order->n_microbatches,
                  order->n_microbatches == 1 ? "" : "es");
    me_str_printf(text, "ticks F=%lld I=%lld W=%lld B=%lld comm=%lld\n",
                  (long long)ticks->forward, (long long)ticks->input_gradient,
                  (long long)ticks->weight_gradient,
                  (long long)me_ticks_backward(ticks),
                  (long long)ticks->transfer);
    me_str_printf(text,
                  "makespan %lld, bubble %lld (%.2f %%), within a rank %lld\n",
                  (long long)timeline->makespan, (long long)timeline->bubble,
                  percent(timeline->bubble, timeline->makespan),
                  (long long)timeline->span_bubble);
}

/** The stages of a rank, ascending. */
static void write_stages(const me_rank_stages *of_ranks, int32_t rank,
                         me_str *text)
{
    const char *comma = "";
    me_str stages = {0};
    for (int32_t i = of_ranks->first[rank]; i < of_ranks->first[rank + 1];
         i++) {
        me_str_printf(&stages, "%s%d", comma, (int)of_ranks->stages[i]);
        comma = ",";
    }
    me_str_printf(text, "  %-8s", me_str_text(&stages));
    me_str_fini_piece(&stages, text);
}

static void write_ranks(const me_pipeline_order *order,
                        const me_timeline *timeline, me_str *text)
{
    me_rank_stages stages;
    if (me_rank_stages_init(order, &stages) != ME_OK) {
        text->status = ME_ERR_NOMEM;
        return;
    }
    me_str_append(text, "\nrank  stages    in_flight  activations  pending_w  "
                        "first  begin    end   busy   idle  within\n");
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        const me_timeline_rank *r = &timeline->ranks[rank];
        const me_action_peaks peaks = me_actions_peaks(&order->ranks[rank]);
        me_str_printf(text, "%4d", rank);
        write_stages(&stages, rank, text);
        me_str_printf(text,
                      "  %9d  %11d  %9d  %5d  %5lld  %5lld  %5lld  %5lld  "
                      "%6lld\n",
                      peaks.full, peaks.activation, peaks.pending_w,
                      peaks.forwards_first, (long long)r->first_start,
                      (long long)r->end, (long long)r->busy, (long long)r->idle,
                      (long long)r->span_idle);
    }
    me_rank_stages_fini(&stages);
}

void me_schedule_report_text(const me_schedule_report *report, me_str *text)
{
    write_head(report, text);
    write_ranks(report->order, report->timeline, text);
    me_str grid = {0};
    const int64_t unit =
        me_schedule_text_time(report->order, report->timeline, 1, &grid);
    me_str_printf(text, "\ntime, a column for %lld tick%s\n%s", (long long)unit,
                  unit == 1 ? "" : "s", me_str_text(&grid));
    me_str_fini_piece(&grid, text);
    me_str_append(text, "\norder\n");
    me_schedule_text_steps(report->shown, text);
}
