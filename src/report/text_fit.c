/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/fit.h"
#include "report/quantity.h"
#include "report/table.h"

#include <inttypes.h>

/** An offer beside the job as it is. */
typedef struct fit_row {
    const me_fit_offer *offer;
    const me_report *before;
} fit_row;

static const fit_row *row_of(const void *row)
{
    return row;
}

/** Is its time a lower bound? */
static bool is_bound(const me_fit_offer *offer)
{
    return offer->report->time.step != NULL &&
           offer->report->time.host_lacks != NULL;
}

static void get_place(const void *row, me_str *cell)
{
    const me_fit_offer *offer = row_of(row)->offer;
    if (offer->place > 0) {
        me_str_printf(cell, "%d%s", (int)offer->place,
                      offer->is_tie ? "=" : "");
    }
}

static void get_step(const void *row, me_str *cell)
{
    const me_report_time *time = &row_of(row)->offer->report->time;
    if (time->step == NULL) {
        me_str_append(cell, "-");
        return;
    }
    me_str_printf(cell, "%s%.1f", is_bound(row_of(row)->offer) ? ">=" : "",
                  (double)time->step->step_ns * 1e-6);
}

/** Against the job as it is, which would run if there were more memory. */
static void get_slower(const void *row, me_str *cell)
{
    const me_step_time *step = row_of(row)->offer->report->time.step;
    const me_step_time *before = row_of(row)->before->time.step;
    const bool is_known = row_of(row)->before->time.host_lacks == NULL;
    if (step == NULL || before == NULL || before->step_ns == 0 || !is_known) {
        me_str_append(cell, "-");
        return;
    }
    const double change =
        (double)(step->step_ns - before->step_ns) / (double)before->step_ns;
    me_str_printf(cell, "%s%+.0f %%", is_bound(row_of(row)->offer) ? ">=" : "",
                  100.0 * change + 0.0);
}

static void get_bytes(const void *row, me_str *cell)
{
    me_gib_append(cell, row_of(row)->offer->report->verdict.worst_bytes);
}

static void get_margin(const void *row, me_str *cell)
{
    const me_verdict *v = &row_of(row)->offer->report->verdict;
    if (v->worst_bytes > v->capacity_bytes) {
        me_str_append(cell, "tight"); // it gives cached blocks back
    } else {
        me_gib_append(cell, v->capacity_bytes - v->worst_bytes);
    }
}

static void get_change(const void *row, me_str *cell)
{
    const me_fit_offer *offer = row_of(row)->offer;
    me_str_append(cell, offer->name);
    me_str_append(cell, offer->changes_numerics ? " (#)" : "");
}

static void get_flags(const void *row, me_str *cell)
{
    me_str_append(cell, row_of(row)->offer->flags);
}

static const me_column columns[] = {
    {"place", NULL, true, false, get_place},
    {"step", "ms", true, false, get_step},
    {"step by", NULL, true, false, get_slower},
    {"takes", "GiB", true, false, get_bytes},
    {"margin", "GiB", true, false, get_margin},
    {"change", NULL, false, false, get_change},
    {"flags to paste", NULL, false, false, get_flags},
};

/** @param is_all  nobody else says more */
static void append_tried(const me_fit *fit, bool is_all, me_str *text)
{
    me_str_printf(text, "  tried: %d change%s; %d", (int)fit->n_tried,
                  me_plural((uint64_t)fit->n_tried), (int)fit->n_over);
    me_str_printf(text, " do not fit either, %d cannot be run",
                  (int)fit->n_refused);
    if (fit->n_equal > 0) {
        me_str_printf(text, ", %d the same as one above", (int)fit->n_equal);
    }
    if (fit->n_left > 0) {
        me_str_printf(
            text, ", %d may fit and were not simulated on all ranks%s",
            (int)fit->n_left, is_all ? "" : " (memest fit tries more)");
    }
    me_str_append(text, "\n");
}

static void append_nothing(const me_fit *fit, bool is_all, me_str *text)
{
    me_str_append(text, "\nNothing that was tried makes it fit");
    if (fit->closest != NULL) {
        me_str_append(text, "; the nearest, with ");
        me_gib_append(text, fit->closest_bytes);
        me_str_printf(text, " GiB:\n  %s", fit->closest);
    }
    me_str_append(text, "\n");
    append_tried(fit, is_all, text);
}

void me_fit_order_append(const me_fit *fit, me_str *text)
{
    size_t n_bounds = 0;
    for (size_t i = 0; i < fit->n_offers; i++) {
        n_bounds += is_bound(&fit->offers[i]) ? 1 : 0;
    }
    if (n_bounds < fit->n_offers) {
        me_str_append(text, ", the fastest first (= is a tie");
        me_str_append(text, n_bounds == 0 ? ")" : "; >= has no place)");
    } else {
        me_str_append(text,
                      "; no places, since a step takes at least (>=) what "
                      "is known of it");
    }
}

static void append_title(const me_fit *fit, me_str *text)
{
    me_str_append(text, "\nWhat makes it fit");
    if (fit->n_together > 1) {
        me_str_printf(text, ": no change alone; %d together",
                      (int)fit->n_together);
    }
    me_str_append(text, ", each simulated");
    me_fit_order_append(fit, text);
    me_str_append(text, "\n");
}

/** Of what is shown. */
static bool has_numerics(const me_fit *fit, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fit->offers[i].changes_numerics) {
            return true;
        }
    }
    return false;
}

static size_t count_shown(const me_fit *fit, size_t most)
{
    return most == 0 || fit->n_offers < most ? fit->n_offers : most;
}

me_status me_fit_table(const me_report *report, size_t most,
                       me_table_printer print, me_str *text)
{
    const me_fit *fit = report->fit;
    const size_t n = count_shown(fit, most);
    fit_row *rows = me_alloc(n + 1, sizeof *rows, "text.fit");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        rows[i] = (fit_row){.offer = &fit->offers[i], .before = report};
    }
    me_table table = *ME_TABLE(columns, rows, n);
    table.narrow = "step by;margin;";
    table.ends_in_shell = true;
    const me_status status = print(&table, text);
    me_free(rows);
    return status;
}

me_status me_fit_text(const me_report *report, size_t most, me_str *text)
{
    const me_fit *fit = report->fit;
    const bool is_all = most == 0;
    if (fit == NULL) {
        return ME_OK;
    }
    if (fit->n_offers == 0) {
        append_nothing(fit, is_all, text);
        return me_str_status(text);
    }
    const size_t n = count_shown(fit, most);
    append_title(fit, text);
    const me_status status = me_fit_table(report, most, me_table_print, text);
    if (n < fit->n_offers) {
        me_str_printf(text, "  and %zu more: memest fit shows them\n",
                      fit->n_offers - n);
    }
    if (has_numerics(fit, n)) {
        me_str_append(text, "  (#) losses come out otherwise\n");
    }
    append_tried(fit, is_all, text);
    return status == ME_OK ? me_str_status(text) : status;
}
