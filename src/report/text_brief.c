/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on one screen: the reason, the job, the stages, the peak. */
#include "base/text_wrap.h"
#include "report/text.h"

#include <string.h>

enum {
    LINES_MAX = 60,
    CONTRIBUTORS_SHOWN = 5
};

/** How to see what is left out. */
static const char more[] = "\nMore: --ranks all has each rank, --details the "
                           "card, modules, collectives, links and points\n";

/** How many lines the first of @p lines is, with its end up to @p end. */
static size_t lines_of_first(const char *lines, const char *end, me_str *text)
{
    me_str first = {0};
    me_str_append_n(&first, lines, (size_t)(end - lines));
    const size_t n = me_text_lines(me_str_text(&first), text->columns);
    me_str_fini_piece(&first, text);
    return n;
}

/** As many lines as there is room for, and how many are missing. */
static void append_shortened(const char *lines, size_t room, me_str *text)
{
    const size_t all = me_text_lines(lines, text->columns);
    size_t left = all <= room ? all : room > 0 ? room - 1 : 0;
    size_t missing = all;
    while (*lines != '\0') {
        const char *end = strchr(lines, '\n') + 1;
        const size_t n = lines_of_first(lines, end, text);
        if (n > left) {
            break;
        }
        me_str_append_n(text, lines, (size_t)(end - lines));
        left -= n;
        missing -= n;
        lines = end;
    }
    if (missing > 0) {
        me_str_printf(text, "  and %zu lines more with --details\n", missing);
    }
}

static void append_notes(const me_report *report, me_str *text)
{
    me_str notes = {0};
    const size_t before = me_text_lines(me_str_text(text), text->columns) +
                          me_text_lines(more, text->columns);
    me_text_notes(report, &notes);
    append_shortened(me_str_text(&notes),
                     before < LINES_MAX ? LINES_MAX - before : 0, text);
    me_str_fini_piece(&notes, text);
}

/** @param n_contributors  of the peak */
static me_status append_all(const me_report *report, bool shows_ranks,
                            bool is_colored, size_t n_contributors,
                            me_str *text)
{
    me_status status = ME_OK;
    me_text_summary(report, true, is_colored, text);
    status = shows_ranks ? me_text_ranks(report, text)
                         : me_text_stages(report, text);
    if (status == ME_OK) {
        status = me_text_late(report, text);
    }
    if (status == ME_OK) {
        status = me_text_peak(report, n_contributors, text);
    }
    me_text_step(report, text);
    append_notes(report, text);
    me_str_append(text, more);
    return status == ME_OK ? me_str_status(text) : status;
}

me_status me_brief_append(const me_report *report, bool shows_ranks,
                          bool is_colored, me_str *text)
{
    me_status status = ME_OK;
    bool is_done = false;
    // the peak has fewer rows where the rest leaves no room
    for (size_t n = CONTRIBUTORS_SHOWN; status == ME_OK && !is_done; n--) {
        me_str made = {.columns = text->columns};
        status = append_all(report, shows_ranks, is_colored, n, &made);
        is_done = shows_ranks || n == 1 ||
                  me_text_lines(me_str_text(&made), made.columns) <= LINES_MAX;
        if (status == ME_OK && is_done) {
            me_str_append(text, me_str_text(&made));
        }
        me_str_fini_piece(&made, text);
    }
    return status == ME_OK ? me_str_status(text) : status;
}
