/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/table.h"
#include "report/text.h"

static double milliseconds(int64_t ns)
{
    return (double)ns * 1e-6;
}

/** A stage in the table. */
typedef struct stage_row {
    me_time_stage stage; /**< first: the table reads its fields */
    int32_t number;
} stage_row;

static void get_stage(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)((const stage_row *)row)->number);
}

/** What the stage waits for most. */
static void get_bound(const void *row, me_str *cell)
{
    const me_time_stage *s = &((const stage_row *)row)->stage;
    me_str_append(cell, s->host_busy_ns > s->card_busy_ns ? "host" : "card");
}

static const me_column columns[] = {
    {"stage", NULL, true, false, get_stage},
    {"bound by", NULL, false, false, get_bound},
};

static me_status append_stages(const me_step_time *step, me_str *text)
{
    stage_row *rows =
        me_alloc((size_t)step->n_stages, sizeof *rows, "text.stages");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int32_t i = 0; i < step->n_stages; i++) {
        rows[i] = (stage_row){step->stages[i], i};
    }
    const me_status status =
        me_table_print(ME_FIELDS_TABLE(columns, 1, &me_stage_time_schema, rows,
                                       (size_t)step->n_stages),
                       text);
    me_free(rows);
    return status;
}

/** Without the line's end. */
static void append_step(const me_report_time *time, me_str *text)
{
    const me_step_time *step = time->step;
    const bool is_bound = time->host_lacks != NULL;
    me_str_printf(text, "\nPredicted time: %s%.1f ms a step",
                  is_bound ? "at least " : "", milliseconds(step->step_ns));
    if (time->tokens_per_second > 0) {
        me_str_printf(text, ", %s%.0f tokens/s", is_bound ? "at most " : "",
                      time->tokens_per_second);
    }
    if (time->flops_utilisation > 0) {
        me_str_printf(text, ", %.1f %% of the cards' FLOPs",
                      100 * time->flops_utilisation);
    }
}

void me_text_step(const me_report *report, me_str *text)
{
    const me_report_time *time = &report->time;
    if (time->step != NULL) {
        append_step(time, text);
        me_str_append(text, "\n");
    } else if (time->reason[0] != '\0') {
        me_str_printf(text, "\nPredicted time: not known: %s\n", time->reason);
    }
}

me_status me_text_time(const me_report *report, me_str *text)
{
    const me_report_time *time = &report->time;
    const me_step_time *step = time->step;
    if (step == NULL) {
        me_text_step(report, text);
        return ME_OK;
    }
    const bool is_bound = time->host_lacks != NULL;
    append_step(time, text);
    me_str_append(text, "; by stage, in ms\n");
    if (is_bound) {
        me_str_printf(text,
                      "  a lower bound: the host's time for %s is not in it\n",
                      time->host_lacks);
    }
    if (step->n_stages > 1) {
        me_str_printf(text,
                      "  bubble %.2f ms of the %.2f ms until the last backward "
                      "ends; %.2f ms within the span of a stage\n",
                      milliseconds(step->bubble_ns),
                      milliseconds(step->forward_backward_ns),
                      milliseconds(step->span_bubble_ns));
    }
    const me_status status = append_stages(step, text);
    me_str_printf(text,
                  "  card: %s, within %.0f %%; host: the one that the H200 was "
                  "measured with, another may take half or twice as long\n",
                  time->source, 100 * time->uncertainty);
    if (report->config->moe.num_experts > 0) {
        me_str_append(text, "  the first steps are slower, while experts' "
                            "numbers of tokens are new to cuBLAS\n");
    }
    if (time->network_source[0] != '\0') {
        me_str_printf(text, "  network between nodes: %s\n",
                      time->network_source);
    }
    if (report->config->train.params_dtype == ME_DTYPE_FLOAT16 &&
        !(report->config->train.loss_scale > 0)) {
        me_str_append(text, "  the optimizer does not step in it: float16's "
                            "first steps overflow\n");
    }
    me_str_printf(
        text,
        "  two settings whose predictions differ by less than %.0f %% "
        "are a tie\n",
        100 * ME_TIME_TIE);
    return status;
}
