/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on one screen: the reason, the job, the stages, the peak. */
#include "base/text_wrap.h"
#include "report/text.h"
#include "report/text_screen.h"

#include <stdint.h>

enum {
    NOTES_LEAST = 2, /* lines: how many there are */
    STEPS_MAX = 25   /* until no table gets shorter, and the head does */
};

/** Rows of the report's tables. */
typedef struct brief_rows {
    size_t contributors; /**< of the peak */
    size_t categories;
    size_t late; /**< of what is freed late */
    size_t stages;
} brief_rows;

/** What has fewer rows where there is no room for all, one after the other. */
static brief_rows rows_after(size_t step)
{
    static const brief_rows least = {1, 3, 2, 2};
    brief_rows rows = {5, ME_CATEGORY_COUNT, 16, 10};
    for (; step > 0; step--) {
        if (rows.contributors > least.contributors) {
            rows.contributors--;
        } else if (rows.categories > least.categories) {
            rows.categories--;
        } else if (rows.late > rows.stages) {
            rows.late--;
        } else if (rows.stages > least.stages) {
            rows.stages--;
            rows.late--;
        }
    }
    return rows;
}

/** How to see what is left out. */
static const char more[] = "\nMore: --ranks all has each rank, --details the "
                           "card, modules, collectives, links and points\n";

static void append_notes(const me_report *report, me_str *text)
{
    me_str notes = {0};
    const size_t before =
        me_screen_count(text) + me_text_lines(more, text->columns);
    me_text_notes(report, &notes);
    me_screen_append(me_str_text(&notes), me_screen_room(before), "--details",
                     text);
    me_str_fini_piece(&notes, text);
}

static me_status append_tables(const me_report *report, bool shows_ranks,
                               brief_rows rows, me_str *text)
{
    me_status status = shows_ranks ? me_text_ranks(report, false, text)
                                   : me_text_stages(report, rows.stages, text);
    if (status == ME_OK) {
        status = me_text_late(report, rows.late, text);
    }
    if (status == ME_OK) {
        status = me_text_peak(report, rows.contributors, rows.categories, text);
    }
    me_text_step(report, text);
    return status;
}

/** What the job is, in what is left of a screen that has @p tables too. */
static void append_head(const me_report *report, bool is_shortened,
                        const char *tables, me_str *text)
{
    me_str head = {0};
    const size_t others = me_screen_count(text) +
                          me_text_lines(tables, text->columns) +
                          me_text_lines(more, text->columns) + NOTES_LEAST;
    me_text_head(report, &head);
    me_screen_append(me_str_text(&head),
                     is_shortened ? me_screen_room(others) : SIZE_MAX,
                     "--details", text);
    me_str_fini_piece(&head, text);
}

static me_status append_all(const me_report *report, bool shows_ranks,
                            bool is_colored, size_t step, me_str *text)
{
    me_str tables = {.columns = text->columns};
    const me_status status =
        append_tables(report, shows_ranks, rows_after(step), &tables);
    me_text_top(report, true, is_colored, text);
    append_head(report, step == STEPS_MAX, me_str_text(&tables), text);
    me_str_append(text, me_str_text(&tables));
    me_str_fini_piece(&tables, text);
    append_notes(report, text);
    me_str_append(text, more);
    return status == ME_OK ? me_str_status(text) : status;
}

me_status me_brief_append(const me_report *report, bool shows_ranks,
                          bool is_colored, me_str *text)
{
    me_status status = ME_OK;
    bool is_done = false;
    for (size_t step = 0; status == ME_OK && !is_done; step++) {
        me_str made = {.columns = text->columns};
        status = append_all(report, shows_ranks, is_colored, step, &made);
        is_done = shows_ranks || step == STEPS_MAX ||
                  me_screen_count(&made) <= ME_SCREEN_LINES;
        if (status == ME_OK && is_done) {
            me_str_append(text, me_str_text(&made));
        }
        me_str_fini_piece(&made, text);
    }
    return status == ME_OK ? me_str_status(text) : status;
}
