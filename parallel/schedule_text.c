/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/schedule_text.h"

#include "base/alloc.h"
#include "parallel/schedule_csv.h"

#include <string.h>

static int digits(int64_t number)
{
    int n = 1;
    for (; number >= 10; number /= 10) {
        n++;
    }
    return n;
}

/** Cells of a rank's list: a block is one. */
static int32_t count_cells(const me_actions *actions)
{
    int32_t n = 0;
    for (int32_t i = 0; i < actions->count; n++) {
        i += actions->items[i].is_overlapped && i + 1 < actions->count ? 2 : 1;
    }
    return n;
}

/** The widest cell of a rank's list. */
static int cell_width(const me_actions *actions, me_str *text)
{
    size_t most = 0;
    for (int32_t i = 0; i < actions->count;) {
        me_str cell = {0};
        me_schedule_csv_cell(actions, &i, &cell);
        most = cell.length > most ? cell.length : most;
        me_str_fini_piece(&cell, text);
    }
    return (int)most;
}

static int column_width(const me_pipeline_order *order, int32_t rank,
                        me_str *text)
{
    const int label = (int)strlen("Rank ") + digits(rank);
    const int cell = cell_width(&order->ranks[rank], text);
    return cell > label ? cell : label;
}

static void write_step(const me_pipeline_order *order, int32_t step,
                       int32_t *at, const int32_t *widths, me_str *text)
{
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        me_str cell = {0};
        if (step < 0) {
            me_str_printf(&cell, "Rank %d", rank);
        } else if (at[rank] < order->ranks[rank].count) {
            me_schedule_csv_cell(&order->ranks[rank], &at[rank], &cell);
        }
        me_str_printf(text, "%s%-*s", rank == 0 ? "" : " ", (int)widths[rank],
                      me_str_text(&cell));
        me_str_fini_piece(&cell, text);
    }
    me_str_append(text, "\n");
}

/** A line a rank: no longer than what is in the lists. */
static void write_lists(const me_pipeline_order *order, int32_t steps,
                        me_str *text)
{
    me_str_printf(text,
                  "a line a rank: most of %d ranks have far fewer than the %d "
                  "steps of the longest\n",
                  (int)order->n_ranks, (int)steps);
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        const me_actions *actions = &order->ranks[rank];
        me_str_printf(text, "Rank %d:", (int)rank);
        for (int32_t i = 0; i < actions->count;) {
            me_str_append(text, " ");
            me_schedule_csv_cell(actions, &i, text);
        }
        me_str_append(text, "\n");
    }
}

static void write_grid(const me_pipeline_order *order, int32_t steps,
                       me_str *text)
{
    int32_t *at = me_alloc((size_t)order->n_ranks, sizeof *at, "text.at");
    int32_t *widths =
        me_alloc((size_t)order->n_ranks, sizeof *widths, "text.widths");
    if (at == NULL || widths == NULL) {
        text->status = ME_ERR_NOMEM;
        goto out;
    }
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        widths[rank] = column_width(order, rank, text);
    }
    const int number = digits(steps > 0 ? steps - 1 : 0);
    me_str_printf(text, "%*s", (int)strlen("Step : ") + number, "");
    for (int32_t step = -1; step < steps; step++) {
        if (step >= 0) {
            me_str_printf(text, "Step %0*d: ", number, step);
        }
        write_step(order, step, at, widths, text);
    }
out:
    me_free(at);
    me_free(widths);
}

void me_schedule_text_steps(const me_pipeline_order *order, me_str *text)
{
    int32_t steps = 0;
    int64_t filled = 0;
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        const int32_t n = count_cells(&order->ranks[rank]);
        steps = n > steps ? n : steps;
        filled += n;
    }
    const int64_t cells = (int64_t)steps * order->n_ranks;
    if (cells > ME_TEXT_CELLS_MAX && filled < cells / 2) {
        write_lists(order, steps, text);
    } else {
        write_grid(order, steps, text);
    }
}

/** What an action is called in a grid of time: its stage stands there only
 *  where ranks have several. */
static void write_label(const me_pipeline_order *order, const me_action *action,
                        me_str *label)
{
    if (order->n_chunks > 1) {
        me_action_write(action, label);
        return;
    }
    me_str_printf(label, "%s%d", me_action_letter((me_action_kind)action->kind),
                  (int)action->microbatch);
}

/** The label of the work that begins at an action, a block's is both. @return
 *  actions of it */
static int32_t label_work(const me_pipeline_order *order, int32_t rank,
                          int32_t i, me_str *label)
{
    const me_actions *actions = &order->ranks[rank];
    const me_action *action = &actions->items[i];
    write_label(order, action, label);
    if (!action->is_overlapped || i + 1 == actions->count) {
        return 1;
    }
    me_str_append(label, "+");
    write_label(order, action + 1, label);
    return 2;
}

static int label_width(const me_pipeline_order *order, me_str *text)
{
    size_t most = 3;
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        for (int32_t i = 0; i < order->ranks[rank].count;) {
            const bool is_shown = me_action_computes(
                (me_action_kind)order->ranks[rank].items[i].kind);
            me_str label = {0};
            i += label_work(order, rank, i, &label);
            most = is_shown && label.length > most ? label.length : most;
            me_str_fini_piece(&label, text);
        }
    }
    return (int)most;
}

/** One rank's line. */
static void write_course(const me_pipeline_order *order,
                         const me_timeline *timeline, int32_t rank,
                         int64_t unit, int width, me_str *text)
{
    const me_actions *actions = &order->ranks[rank];
    const me_timeline_rank *course = &timeline->ranks[rank];
    int64_t column = 0;
    for (int32_t i = 0; i < actions->count;) {
        if (!me_action_computes((me_action_kind)actions->items[i].kind)) {
            i++;
            continue;
        }
        const me_span *span = &course->spans[i];
        me_str label = {0};
        i += label_work(order, rank, i, &label);
        const int64_t last = course->spans[i - 1].end;
        if (last > span->start && span->start / unit >= column) {
            for (; column < span->start / unit; column++) {
                me_str_printf(text, " %-*s", width, ".");
            }
            me_str_printf(text, " %-*s", width, me_str_text(&label));
            column++;
        }
        for (; column < last / unit; column++) {
            me_str_printf(text, " %-*s", width, "-");
        }
        me_str_fini_piece(&label, text);
    }
    for (; column < timeline->makespan / unit; column++) {
        me_str_printf(text, " %-*s", width, ".");
    }
}

static int64_t columns_max(int32_t n_ranks)
{
    const int64_t most = ME_TEXT_CELLS_MAX / (n_ranks > 0 ? n_ranks : 1);
    return most > ME_TEXT_COLUMNS_MAX ? ME_TEXT_COLUMNS_MAX
           : most > 0                 ? most
                                      : 1;
}

int64_t me_schedule_text_time(const me_pipeline_order *order,
                              const me_timeline *timeline, int64_t unit,
                              me_str *text)
{
    const int64_t most = columns_max(order->n_ranks);
    const int64_t least = timeline->makespan / most + 1;
    unit = unit > least || timeline->makespan <= most ? unit : least;
    const int width = label_width(order, text);
    const int number = digits(order->n_ranks - 1);
    for (int32_t rank = 0; rank < order->n_ranks; rank++) {
        me_str line = {0};
        me_str_printf(&line, "rank%-*d", number, rank);
        write_course(order, timeline, rank, unit, width, &line);
        size_t length = line.length;
        while (length > 0 && line.text[length - 1] == ' ') {
            length--;
        }
        me_str_append_n(text, me_str_text(&line), length);
        me_str_append(text, "\n");
        me_str_fini_piece(&line, text);
    }
    return unit;
}
