/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/quantity.h"
#include "report/table.h"
#include "report/text.h"

#include <inttypes.h>
#include <string.h>

enum {
    BAR_WIDTH = 24,
    CONTRIBUTORS_MAX = 40,
    CONTRIBUTORS_OF_ALL = 15 /* shown with all details */
};

/** A share of the peak: a category or a contributor. */
typedef struct share_row {
    uint64_t bytes;
    uint64_t whole; /**< the peak */
    const char *category;
    const me_contributor *contributor; /**< NULL: all the others */
} share_row;

static void get_share(const void *row, me_str *cell)
{
    const share_row *r = row;
    me_percent_append(cell, r->bytes, r->whole);
}

static void get_bar(const void *row, me_str *cell)
{
    const share_row *r = row;
    me_bar_append(cell, r->bytes, r->whole, BAR_WIDTH);
}

static void get_category(const void *row, me_str *cell)
{
    me_str_append(cell, ((const share_row *)row)->category);
}

static void get_module(const void *row, me_str *cell)
{
    const me_contributor *c = ((const share_row *)row)->contributor;
    if (c == NULL) {
        me_str_append(cell, "(all others)");
        return;
    }
    me_str_append(cell, *c->module == '\0' ? "-" : c->module);
    if (c->modules > 1) {
        me_str_printf(cell, " x%" PRIu32, c->modules);
    }
}

static void get_op(const void *row, me_str *cell)
{
    const me_contributor *c = ((const share_row *)row)->contributor;
    if (c != NULL) {
        me_str_append(cell, c->op == NULL ? "-" : c->op);
    }
}

static void get_blocks(const void *row, me_str *cell)
{
    const me_contributor *c = ((const share_row *)row)->contributor;
    if (c != NULL) {
        me_count_append(cell, c->blocks);
    }
}

static const me_column category_columns[] = {
    {"category", NULL, false, false, get_category},
    {"share", NULL, true, false, get_share},
    {"", NULL, false, false, get_bar},
};

static const me_schema category_schema =
    ME_SCHEMA(share_row, {ME_BYTES(share_row, bytes), .title = "GiB"},
              {ME_COUNT(share_row, bytes), .title = "bytes"});

static const me_column contributor_columns[] = {
    {"share", NULL, true, false, get_share},
    {"blocks", NULL, true, false, get_blocks},
    {"category", NULL, false, false, get_category},
    {"module", NULL, false, false, get_module},
    {"op", NULL, false, false, get_op},
};

static const me_schema contributor_schema =
    ME_SCHEMA(share_row, {ME_BYTES(share_row, bytes), .title = "GiB"});

/** The largest stay, in order; the others are one row. @return rows */
static size_t shorten(share_row *rows, size_t n, size_t n_shown)
{
    share_row others = {.whole = rows[0].whole, .category = "(all others)"};
    while (n >= n_shown) {
        size_t least = 0;
        for (size_t i = 1; i < n; i++) {
            least = rows[i].bytes < rows[least].bytes ? i : least;
        }
        others.bytes += rows[least].bytes;
        memmove(&rows[least], &rows[least + 1], (n - least - 1) * sizeof *rows);
        n--;
    }
    rows[n] = others;
    return n + 1;
}

static me_status append_categories(const me_peak_result *peak, size_t n_shown,
                                   me_str *text)
{
    share_row rows[ME_CATEGORY_COUNT];
    size_t n = 0;
    for (unsigned i = 0; i < ME_CATEGORY_COUNT; i++) {
        if (peak->by_category[i] > 0) {
            rows[n++] = (share_row){
                .bytes = peak->by_category[i],
                .whole = peak->requested_bytes,
                .category = me_category_name((me_category)i),
            };
        }
    }
    n = n > n_shown ? shorten(rows, n, n_shown) : n;
    me_table table =
        *ME_FIELDS_TABLE(category_columns, 2, &category_schema, rows, n);
    table.narrow = ";bytes;";
    return me_table_print(&table, text);
}

me_status me_contributors_table(const me_peak_result *peak, size_t n_shown,
                                me_table_printer print, me_str *text)
{
    share_row rows[CONTRIBUTORS_MAX + 1];
    size_t n = 0;
    uint64_t rest = peak->requested_bytes;
    for (; n < n_shown && n < CONTRIBUTORS_MAX && n < peak->n_contributors;
         n++) {
        const me_contributor *c = &peak->contributors[n];
        rows[n] = (share_row){
            .bytes = c->bytes,
            .whole = peak->requested_bytes,
            .category = me_category_name((me_category)c->category),
            .contributor = c,
        };
        rest -= c->bytes;
    }
    if (rest > 0) {
        rows[n++] = (share_row){
            .bytes = rest, .whole = peak->requested_bytes, .category = ""};
    }
    me_table table =
        *ME_FIELDS_TABLE(contributor_columns, 5, &contributor_schema, rows, n);
    table.narrow = "blocks;share;category;";
    return print(&table, text);
}

void me_text_instant(const me_peak_result *peak, me_str *text)
{
    me_iteration_append(text, peak->iteration, peak->phase);
    if (peak->microbatch != ME_NO_MICROBATCH) {
        me_str_printf(text, " of micro-batch %d", (int)peak->microbatch);
    }
    if (*peak->module != '\0') {
        me_str_printf(text, ", in %s", peak->module);
    }
    if (peak->op != NULL) {
        me_str_printf(text, ", by %s", peak->op);
    }
}

static void append_cause(const me_peak_result *peak, me_str *text)
{
    me_str_append(text, "  ");
    me_count_append(text, peak->requested_bytes);
    me_str_append(text, " bytes requested");
    me_text_instant(peak, text);
    me_str_append(text, "\n\n");
}

me_status me_text_peak(const me_report *report, size_t n_shown,
                       size_t n_categories, me_str *text)
{
    const me_peak_result *peak = me_rank_result_peak(me_report_worst(report));
    if (peak == NULL) {
        return ME_OK;
    }
    me_str_printf(text, "\nWhere the peak of rank %d goes\n",
                  (int)report->verdict.worst_rank);
    if (n_shown >= CONTRIBUTORS_OF_ALL) {
        append_cause(peak, text); // which a brief report has said
    }
    const me_status status = append_categories(peak, n_categories, text);
    if (status != ME_OK) {
        return status;
    }
    me_str_append(text, "\n");
    return me_contributors_table(peak, n_shown, me_table_print, text);
}
