/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/seed_spread.h"

#include "base/alloc.h"
#include "report/quantity.h"
#include "report/verdict.h"

#include <inttypes.h>
#include <stdlib.h>

static int compare_bytes(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x;
    const uint64_t b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/** The first row that could run; NULL: none. */
static const me_report *first_report(const me_comparison *c)
{
    for (size_t i = 0; i < c->n_rows; i++) {
        if (c->rows[i].report != NULL) {
            return c->rows[i].report;
        }
    }
    return NULL;
}

static me_seed_spread spread_of(const me_comparison *c, const me_report *first,
                                uint32_t index, uint64_t *peaks)
{
    const me_verdict *verdict = &first->verdict;
    me_seed_spread s = {.rank = first->ranks[index].place.rank};
    for (size_t i = 0; i < c->n_rows; i++) {
        const me_report *r = c->rows[i].report;
        if (r == NULL) {
            continue;
        }
        const uint64_t bytes = me_result_most_bytes(
            r->results[r->ranks[index].result], verdict->basis);
        peaks[s.n_seeds++] = bytes;
        s.n_above +=
            verdict->capacity_bytes > 0 && bytes > verdict->capacity_bytes ? 1
                                                                           : 0;
    }
    qsort(peaks, s.n_seeds, sizeof *peaks, compare_bytes);
    s.least_bytes = peaks[0];
    s.median_bytes = peaks[(s.n_seeds - 1) / 2];
    s.most_bytes = peaks[s.n_seeds - 1];
    return s;
}

me_status me_seed_spreads(const me_comparison *comparison, me_diag *diag,
                          me_seed_spread **spreads_out, size_t *n_out)
{
    const me_report *first = first_report(comparison);
    *spreads_out = NULL;
    *n_out = 0;
    if (first == NULL) {
        return ME_OK;
    }
    const size_t n = (size_t)first->world_size;
    me_seed_spread *spreads = me_alloc(n, sizeof *spreads, "spread.ranks");
    uint64_t *peaks =
        me_alloc(comparison->n_rows, sizeof *peaks, "spread.peaks");
    if (spreads == NULL || peaks == NULL) {
        me_free(spreads);
        me_free(peaks);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the spread");
    }
    for (size_t i = 0; i < n; i++) {
        spreads[i] = spread_of(comparison, first, (uint32_t)i, peaks);
    }
    me_free(peaks);
    *spreads_out = spreads;
    *n_out = n;
    return ME_OK;
}

/** Ranks beside each other whose numbers are equal. */
typedef struct spread_row {
    const me_seed_spread *first;
    int32_t last_rank;
} spread_row;

static const spread_row *row_of(const void *row)
{
    return row;
}

static void get_ranks(const void *row, me_str *cell)
{
    const spread_row *r = row_of(row);
    me_str_printf(cell, "%d", (int)r->first->rank);
    if (r->last_rank > r->first->rank) {
        me_str_printf(cell, "-%d", (int)r->last_rank);
    }
}

static void get_least(const void *row, me_str *cell)
{
    me_gib_append(cell, row_of(row)->first->least_bytes);
}

static void get_median(const void *row, me_str *cell)
{
    me_gib_append(cell, row_of(row)->first->median_bytes);
}

static void get_most(const void *row, me_str *cell)
{
    me_gib_append(cell, row_of(row)->first->most_bytes);
}

static void get_above(const void *row, me_str *cell)
{
    const me_seed_spread *s = row_of(row)->first;
    me_percent_append(cell, s->n_above, s->n_seeds);
}

static bool is_equal(const me_seed_spread *a, const me_seed_spread *b)
{
    return a->least_bytes == b->least_bytes &&
           a->median_bytes == b->median_bytes &&
           a->most_bytes == b->most_bytes && a->n_above == b->n_above;
}

static size_t make_rows(const me_seed_spread *spreads, size_t n,
                        spread_row *rows)
{
    size_t n_rows = 0;
    for (size_t i = 0; i < n; i++) {
        if (n_rows > 0 && is_equal(rows[n_rows - 1].first, &spreads[i])) {
            rows[n_rows - 1].last_rank = spreads[i].rank;
        } else {
            rows[n_rows++] = (spread_row){&spreads[i], spreads[i].rank};
        }
    }
    return n_rows;
}

/** The sentence that people ask for: of the rank that is above most often. */
static void append_answer(const me_report *report,
                          const me_seed_spread *spreads, size_t n, me_str *text)
{
    const me_seed_spread *worst = &spreads[0];
    for (size_t i = 1; i < n; i++) {
        worst = spreads[i].n_above > worst->n_above ? &spreads[i] : worst;
    }
    if (report->verdict.capacity_bytes == 0) {
        return;
    }
    me_str_printf(text, "  over %" PRIu32 " seeds, ", worst->n_seeds);
    if (worst->n_above == 0) {
        me_str_append(text, "no rank is above ");
    } else {
        me_str_printf(text, "rank %d is above ", (int)worst->rank);
    }
    me_gib_append(text, report->verdict.capacity_bytes);
    me_str_append(text, " GiB");
    if (worst->n_above > 0) {
        me_str_append(text, " in ");
        me_percent_append(text, worst->n_above, worst->n_seeds);
    }
    me_str_append(text, "\n");
}

static me_status append_text(const me_comparison *c,
                             const me_seed_spread *spreads, size_t n,
                             me_diag *diag, me_str *text)
{
    static const me_column columns[] = {
        {.title = "ranks", .get = get_ranks},
        {.title = "least", .is_number = true, .get = get_least},
        {.title = "median", .is_number = true, .get = get_median},
        {.title = "most", .is_number = true, .get = get_most},
        {.title = "above", .is_number = true, .get = get_above},
    };
    const me_report *report = first_report(c);
    spread_row *rows = me_alloc(n, sizeof *rows, "spread.rows");
    if (rows == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the spread");
    }
    const size_t n_rows = make_rows(spreads, n, rows);
    me_str_printf(text,
                  "memest %s: %s\n\nRanks: %s peaks in GiB over seeds of "
                  "routing %s; above: seeds with more than the card has\n",
                  c->version, c->name, me_basis_name(report->verdict.basis),
                  report->config->moe.routing);
    const me_status status =
        me_table_print(ME_TABLE(columns, rows, n_rows), text);
    append_answer(report, spreads, n, text);
    me_free(rows);
    return status;
}

static void append_csv(const me_seed_spread *spreads, size_t n, me_str *text)
{
    me_str_append(text, "rank,seeds,least_bytes,median_bytes,most_bytes,"
                        "seeds_above\n");
    for (size_t i = 0; i < n; i++) {
        const me_seed_spread *s = &spreads[i];
        me_str_printf(text,
                      "%d,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                      ",%" PRIu32 "\n",
                      (int)s->rank, s->n_seeds, s->least_bytes, s->median_bytes,
                      s->most_bytes, s->n_above);
    }
}

me_status me_seed_spread_append(const me_comparison *comparison, bool is_csv,
                                me_diag *diag, me_str *text)
{
    me_seed_spread *spreads = NULL;
    size_t n = 0;
    me_status status = me_seed_spreads(comparison, diag, &spreads, &n);
    if (status == ME_OK && spreads == NULL) {
        status =
            me_fail(diag, ME_ERR_CONFIG, "no seed can run: %s",
                    comparison->n_rows > 0 && comparison->rows[0].reason != NULL
                        ? comparison->rows[0].reason
                        : "nothing was asked for");
    } else if (status == ME_OK && is_csv) {
        append_csv(spreads, n, text);
    } else if (status == ME_OK) {
        status = append_text(comparison, spreads, n, diag, text);
    }
    me_free(spreads);
    return status;
}
