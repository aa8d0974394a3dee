/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/text_wrap.h"
#include "report/compare_format.h"
#include "report/quantity.h"
#include "report/table.h"
#include "search/search_report.h"

#include <stdio.h>

enum {
    FLAGS_AT = 9 /* columns in */
};

/** A row of the table with its number. */
typedef struct numbered {
    const me_search_row *row;
    uint32_t number;
} numbered;

static const me_candidate *candidate_of(const void *row)
{
    return ((const numbered *)row)->row->front.candidate;
}

static const me_search_result *result_of(const void *row)
{
    return &candidate_of(row)->result;
}

static void get_number(const void *row, me_str *cell)
{
    me_str_printf(cell, "%u", (unsigned)((const numbered *)row)->number);
}

static void get_place(const void *row, me_str *cell)
{
    const me_front_row *front = &((const numbered *)row)->row->front;
    if (front->place > 0) {
        me_str_printf(cell, "%d%s", (int)front->place,
                      front->is_equal ? "=="
                      : front->is_tie ? "="
                                      : "");
    }
}

static void get_gpus(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)candidate_of(row)->world);
}

static void get_layout(const void *row, me_str *cell)
{
    const me_candidate *c = candidate_of(row);
    me_str_printf(cell, "%s%s%s", c->layout,
                  c->choice->name[0] == '\0' ? "" : " ", c->choice->name);
}

static void append_ms(me_str *cell, int64_t step_ns, int64_t ns)
{
    if (step_ns == 0) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%.1f", (double)ns * 1e-6);
    }
}

static void get_step(const void *row, me_str *cell)
{
    const me_search_result *r = result_of(row);
    me_str_append(cell, r->is_lower_step ? ">=" : "");
    append_ms(cell, r->step_ns, r->step_ns);
}

static void get_tokens(const void *row, me_str *cell)
{
    const double tokens = me_search_tokens(result_of(row));
    if (!(tokens > 0)) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%s%.0f", result_of(row)->is_lower_step ? "<=" : "",
                      tokens);
    }
}

static void get_bubble(const void *row, me_str *cell)
{
    const me_search_result *r = result_of(row);
    me_percent_append(cell, (uint64_t)r->bubble_ns,
                      (uint64_t)r->forward_backward_ns);
}

static void get_exposed(const void *row, me_str *cell)
{
    append_ms(cell, result_of(row)->step_ns, result_of(row)->exposed_ns);
}

static void get_requested(const void *row, me_str *cell)
{
    me_gib_append(cell, result_of(row)->requested_bytes);
}

static void get_device(const void *row, me_str *cell)
{
    me_gib_append(cell, result_of(row)->device_bytes);
}

static void get_margin(const void *row, me_str *cell)
{
    const me_search_result *r = result_of(row);
    if (r->capacity_bytes == 0) {
        me_str_append(cell, "-");
        return;
    }
    const bool is_over = r->worst_bytes > r->capacity_bytes;
    me_str_append(cell, is_over ? "-" : "");
    me_gib_append(cell, is_over ? r->worst_bytes - r->capacity_bytes
                                : r->capacity_bytes - r->worst_bytes);
}

static void get_rank(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)result_of(row)->worst_rank);
}

static void get_verdict(const void *row, me_str *cell)
{
    me_str_append(cell, me_risk_phrase((me_risk)result_of(row)->risk));
}

static const me_column columns[] = {
    {"#", NULL, true, false, get_number},
    {"place", NULL, true, false, get_place},
    {"GPUs", NULL, true, false, get_gpus},
    {"step", "ms", true, false, get_step},
    {"tokens/s", NULL, true, false, get_tokens},
    {"bubble", NULL, true, false, get_bubble},
    {"exposed comm", "ms", true, false, get_exposed},
    {"requested", NULL, true, false, get_requested},
    {"device", NULL, true, false, get_device},
    {"margin", NULL, true, false, get_margin},
    {"worst rank", NULL, true, false, get_rank},
    {"verdict", NULL, false, false, get_verdict},
    {"layout", NULL, false, false, get_layout},
};

/** "12 candidates: 3 refused by the framework, …". */
static void append_counts(const me_search_found *found, me_str *text)
{
    const char *between = ": ";
    me_str_append(text, "  ");
    me_count_append(text, found->candidates->count);
    me_str_printf(text, " candidate%s", me_plural(found->candidates->count));
    for (int end = ME_SEARCH_ENDS - 1; end >= 0; end--) {
        if (found->counts[end] > 0) {
            me_str_append(text, between);
            me_count_append(text, found->counts[end]);
            me_str_printf(text, " %s", me_search_end_text((me_search_end)end));
            between = ", ";
        }
        if (end == ME_SEARCH_SIMULATED && found->counts[end] > 0) {
            me_str_append(text, " (");
            me_count_append(text, found->n_fit);
            me_str_append(text, " fit");
            if (found->n_open > 0) {
                me_str_append(text, ", of ");
                me_count_append(text, found->n_open);
                me_str_append(text, " nobody can say");
            }
            me_str_append(text, ")");
        }
    }
    me_str_append(text, "\n");
    if (found->counts[ME_SEARCH_UNDECIDED] > 0) {
        me_str_append(
            text, "  The search was stopped: what was left undecided may be "
                  "better than all below.\n");
    }
}

/** What is left to do where no candidate fits. */
static void append_nothing(const me_search_found *found, me_str *text)
{
    if (found->counts[ME_SEARCH_UNDECIDED] > 0) {
        me_str_append(text, "  None of those that were decided fits: a larger "
                            "--budget decides more.\n");
    } else if (found->n_open > 0) {
        me_str_append(text,
                      "  Of none it can be said that it fits: what is not "
                      "modelled may be larger than the margin.\n");
    } else {
        me_str_append(text, "  None of them fits on these GPUs: more of them "
                            "(--gpus), a card with more memory (--device) or a "
                            "wider space (--space) may hold it; memest fit "
                            "tries other changes of the job as it is.\n");
    }
}

static me_status append_table(const me_search_found *found, me_str *text)
{
    numbered *rows = me_alloc(found->n_rows, sizeof *rows, "search.table");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < found->n_rows; i++) {
        rows[i] = (numbered){&found->rows[i], i + 1};
    }
    me_table table = *ME_TABLE(columns, rows, found->n_rows);
    table.narrow = "exposed comm;bubble;worst rank;requested;tokens/s;device;";
    const me_status status = me_table_print(&table, text);
    me_free(rows);
    return status;
}

/** For `memest compare`, and for the launch command. */
static void append_settings(const me_search_found *found, me_str *text)
{
    me_str_append(text, "\nSettings\n");
    for (uint32_t i = 0; i < found->n_rows; i++) {
        const me_search_row *row = &found->rows[i];
        me_str_printf(text, "  %u  ", (unsigned)(i + 1));
        if (me_search_schedule(row)[0] != '\0') {
            me_str_printf(text, "--schedule %s ", me_search_schedule(row));
        }
        me_str_printf(text, "--variant %u:%s\n", (unsigned)(i + 1),
                      row->front.candidate->assignments);
        if (row->flags[0] != '\0') {
            me_str flags = {0};
            me_str_printf(&flags, "     %s", row->flags);
            me_text_wrap_shell(me_str_text(&flags), flags.length, FLAGS_AT,
                               text);
            me_str_fini_piece(&flags, text);
        }
    }
}

/** As those of a comparison, the rows by their numbers. */
static me_status append_notes(const me_search_found *found, me_str *text)
{
    const uint32_t n = found->n_rows;
    uint32_t n_texts = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_texts += me_search_n_notes(&found->rows[i]);
    }
    char(*names)[16] = me_alloc(n, sizeof *names, "search.notes");
    char **texts = me_alloc(n_texts, sizeof(char *), "search.notes");
    me_report *reports = me_alloc(n, sizeof *reports, "search.notes");
    me_compare_row *rows = me_alloc(n, sizeof *rows, "search.notes");
    const bool is_good =
        names != NULL && texts != NULL && reports != NULL && rows != NULL;
    uint32_t at = 0;
    for (uint32_t i = 0; is_good && i < n; i++) {
        reports[i] = me_search_notes(&found->rows[i], texts + at);
        at += reports[i].n_assumptions;
        (void)snprintf(names[i], sizeof *names, "%u", (unsigned)(i + 1));
        rows[i] = (me_compare_row){
            .schedule = names[i], .variant = "", .report = &reports[i]};
    }
    if (is_good) {
        me_compare_notes(&(me_comparison){.rows = rows, .n_rows = n}, text);
    }
    me_free(names);
    me_free((void *)texts);
    me_free(reports);
    me_free(rows);
    return is_good ? ME_OK : ME_ERR_NOMEM;
}

static bool has_bounds(const me_search_found *found)
{
    bool has = false;
    for (size_t i = 0; i < found->n_rows; i++) {
        has = has || found->rows[i].front.candidate->result.is_lower_step;
    }
    return has;
}

me_status me_search_text(const me_search_found *found, me_str *text)
{
    me_str_printf(text, "memest %s search%s%s\n\n", found->version,
                  found->name[0] == '\0' ? "" : ": ", found->name);
    append_counts(found, text);
    if (found->n_rows == 0) {
        append_nothing(found, text);
        return me_str_status(text);
    }
    me_str_append(text, "\n");
    me_status status = append_table(found, text);
    me_str_append(
        text,
        "\n  Each row is beaten by no other candidate in step time, margin and "
        "GPUs at once. Bytes are the most of any rank, in GiB; the margin is "
        "what the worst rank leaves of the card. Times less than 15 % above the "
        "fastest of a place share it (=), since the prediction is no better; "
        "rows with == have the same numbers.");
    me_str_append(text, has_bounds(found) ? " >= is a lower bound, since the "
                                            "host's time is not known: it has "
                                            "no place.\n"
                                          : "\n");
    append_settings(found, text);
    if (status == ME_OK) {
        status = append_notes(found, text);
    }
    return status == ME_OK ? me_str_status(text) : status;
}
