/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/html_charts.h"

#include "report/page.h"
#include "track/result.h"

static const me_rank_result *result_of(const me_report *report, int32_t rank)
{
    return report->results[report->ranks[rank].result];
}

static uint64_t peak_bytes(const me_report *report, int32_t rank)
{
    const me_peak_result *peak = me_rank_result_peak(result_of(report, rank));
    return peak == NULL ? 0 : peak->requested_bytes;
}

/** The lowest rank of a stage with the largest peak; -1: no such stage. */
static int32_t worst_of_stage(const me_report *report, int32_t stage)
{
    int32_t worst = -1;
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        if (report->ranks[rank].place.pp == stage &&
            (worst < 0 ||
             peak_bytes(report, rank) > peak_bytes(report, worst))) {
            worst = rank;
        }
    }
    return worst;
}

static int32_t count_stages(const me_report *report)
{
    return report->config->parallel.pipeline;
}

static void add_categories(const me_report *report, int32_t stage,
                           me_chart_rows *rows)
{
    const int32_t rank = worst_of_stage(report, stage);
    const me_peak_result *peak =
        rank < 0 ? NULL : me_rank_result_peak(result_of(report, rank));
    for (unsigned i = 0; peak != NULL && i < ME_CATEGORY_COUNT; i++) {
        if (peak->by_category[i] == 0) {
            continue;
        }
        me_chart_row_begin(rows);
        me_chart_integer(rows, stage);
        me_chart_integer(rows, rank);
        me_chart_text(rows, me_category_name((me_category)i));
        me_chart_number(rows, peak->by_category[i]);
        me_chart_row_end(rows);
    }
}

me_status me_html_peaks(const me_report *report, me_str *page)
{
    me_chart_rows rows = {.count = 0};
    for (int32_t stage = 0; stage < count_stages(report); stage++) {
        add_categories(report, stage, &rows);
    }
    const me_status status = me_page_chart(
        page, &(me_chart){
                  .spec = "peaks",
                  .data = "peaks",
                  .columns = "\"stage\",\"rank\",\"category\",\"bytes\"",
                  .rows = &rows,
                  .signals = json_pack("{s:i}", "rows", count_stages(report)),
              });
    me_chart_rows_fini(&rows);
    return status;
}

void me_chart_part(me_chart_rows *rows, const me_course_part *part)
{
    me_chart_text(rows, part->name);
    me_chart_integer(rows, part->chunk);
    me_chart_integer(rows, part->microbatch);
    me_chart_number(rows, part->requested.begin);
    me_chart_number(rows, part->requested.peak);
    me_chart_number(rows, part->requested.end);
    me_chart_number(rows, part->reserved.peak);
    me_chart_row_end(rows);
}
