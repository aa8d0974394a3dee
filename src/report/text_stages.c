/* SPDX-License-Identifier: BSD-3-Clause */
/* Peaks of a pipeline's stages, the least and the most of each one's ranks. */
#include "base/alloc.h"
#include "base/size.h"
#include "report/quantity.h"
#include "report/table.h"
#include "report/text.h"
#include "report/verdict.h"

#include <string.h>

/** Bytes of one kind, of all ranks of a stage. */
typedef struct range {
    uint64_t least;
    uint64_t most; /**< unknown: of one of them nobody knows */
} range;

/** Stages that follow each other and take the same. */
typedef struct stage_row {
    int32_t first; /**< -1: all that are not shown */
    int32_t last;
    int32_t n_ranks;
    int32_t worst_rank; /**< lowest with most of the verdict's kind */
    uint64_t worst_bytes;
    bool has_worst; /**< of the job */
    range requested;
    range reserved;
    range device;
} stage_row;

static const stage_row *row_of(const void *row)
{
    return row;
}

static void get_mark(const void *row, me_str *cell)
{
    me_str_append(cell, row_of(row)->has_worst ? "*" : "");
}

static void get_stage(const void *row, me_str *cell)
{
    const stage_row *r = row_of(row);
    if (r->first < 0) {
        me_str_append(cell, "others");
    } else if (r->first == r->last) {
        me_str_printf(cell, "%d", (int)r->first);
    } else {
        me_str_printf(cell, "%d-%d", (int)r->first, (int)r->last);
    }
}

static void get_count(const void *row, me_str *cell)
{
    me_count_append(cell, (uint64_t)row_of(row)->n_ranks);
}

static void get_worst(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)row_of(row)->worst_rank);
}

static void append_range(range r, me_str *cell)
{
    if (r.least != r.most && r.most != ME_BYTES_UNKNOWN) {
        me_gib_append(cell, r.least);
        me_str_append(cell, " to ");
    }
    me_gib_append(cell, r.most);
}

static void get_requested(const void *row, me_str *cell)
{
    append_range(row_of(row)->requested, cell);
}

static void get_reserved(const void *row, me_str *cell)
{
    append_range(row_of(row)->reserved, cell);
}

static void get_device(const void *row, me_str *cell)
{
    append_range(row_of(row)->device, cell);
}

static const me_column columns[] = {
    {"", NULL, false, false, get_mark},
    {"stage", NULL, true, false, get_stage},
    {"ranks", NULL, true, false, get_count},
    {"worst rank", NULL, true, false, get_worst},
    {"requested", "GiB", true, false, get_requested},
    {"reserved", "GiB", true, false, get_reserved},
    {"device", "GiB", true, false, get_device},
};

static void widen(range *r, range by)
{
    r->least = by.least < r->least ? by.least : r->least;
    r->most = me_max_u64(r->most, by.most);
}

static range range_of(const me_rank_result *result, me_basis basis)
{
    const uint64_t bytes = me_result_most_bytes(result, basis);
    return (range){bytes, bytes};
}

/** Two rows as one. */
static void add_row(stage_row *to, const stage_row *row)
{
    if (to->n_ranks == 0 || row->worst_bytes > to->worst_bytes) {
        to->worst_rank = row->worst_rank;
        to->worst_bytes = row->worst_bytes;
    }
    to->n_ranks += row->n_ranks;
    to->has_worst = to->has_worst || row->has_worst;
    widen(&to->requested, row->requested);
    widen(&to->reserved, row->reserved);
    widen(&to->device, row->device);
}

static stage_row empty_row(int32_t stage)
{
    const range none = {ME_BYTES_UNKNOWN, 0};
    return (stage_row){.first = stage,
                       .last = stage,
                       .requested = none,
                       .reserved = none,
                       .device = none};
}

/** What a result puts into a row for each of its ranks. */
static stage_row row_of_result(const me_report *report, uint32_t i)
{
    const me_rank_result *result = report->results[i];
    return (stage_row){
        .n_ranks = 1,
        .worst_bytes = me_result_most_bytes(result, report->verdict.basis),
        .requested = range_of(result, ME_BASIS_REQUESTED),
        .reserved = range_of(result, ME_BASIS_RESERVED),
        .device = range_of(result, ME_BASIS_DEVICE),
    };
}

/** Ranks into the rows of their stages. @return ME_OK or ME_ERR_NOMEM */
static me_status add_ranks(const me_report *report, stage_row *rows)
{
    stage_row *of_result =
        me_alloc(report->n_results, sizeof *of_result, "text.stage_results");
    if (of_result == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < report->n_results; i++) {
        of_result[i] = row_of_result(report, i);
    }
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        const me_report_rank *its = &report->ranks[rank];
        stage_row *one = &of_result[its->result];
        one->worst_rank = rank;
        one->has_worst = rank == report->verdict.worst_rank;
        add_row(&rows[its->place.pp], one);
    }
    me_free(of_result);
    return ME_OK;
}

static bool is_equal(range a, range b)
{
    return a.least == b.least && a.most == b.most;
}

/** Stages next to each other with equal numbers share a row. @return rows */
static size_t fold(stage_row *rows, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        stage_row *before = kept == 0 ? NULL : &rows[kept - 1];
        if (before != NULL && is_equal(before->requested, rows[i].requested) &&
            is_equal(before->reserved, rows[i].reserved) &&
            is_equal(before->device, rows[i].device)) {
            before->last = rows[i].last;
            add_row(before, &rows[i]);
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

/** Those that take most stay, in order; the others are one row. @return rows */
static size_t shorten(stage_row *rows, size_t n, size_t n_shown)
{
    stage_row others = empty_row(-1);
    while (n >= n_shown) {
        size_t least = 0;
        for (size_t i = 1; i < n; i++) {
            if (rows[i].worst_bytes < rows[least].worst_bytes) {
                least = i;
            }
        }
        add_row(&others, &rows[least]);
        memmove(&rows[least], &rows[least + 1], (n - least - 1) * sizeof *rows);
        n--;
    }
    rows[n] = others;
    return n + 1;
}

/** On a narrow terminal what the verdict is of stays longest. */
static me_status print_rows(const me_report *report, const stage_row *rows,
                            size_t n, me_str *text)
{
    static const char *const narrow[] = {
        [ME_BASIS_REQUESTED] = "worst rank;reserved;device;ranks;",
        [ME_BASIS_RESERVED] = "worst rank;requested;device;ranks;",
        [ME_BASIS_DEVICE] = "worst rank;requested;reserved;ranks;",
    };
    me_table table = *ME_TABLE(columns, rows, n);
    table.narrow = narrow[report->verdict.basis];
    return me_table_print(&table, text);
}

me_status me_text_stages(const me_report *report, size_t n_shown, me_str *text)
{
    const size_t n_stages = (size_t)report->config->parallel.pipeline;
    stage_row *rows = me_alloc(n_stages + 1, sizeof *rows, "text.stage_rows");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    for (size_t i = 0; i < n_stages; i++) {
        rows[i] = empty_row((int32_t)i);
    }
    me_status status = add_ranks(report, rows);
    if (status == ME_OK) {
        size_t n = fold(rows, n_stages);
        n = n > n_shown ? shorten(rows, n, n_shown) : n;
        me_str_append(text,
                      "\nStages: the most of each rank's whole life, least "
                      "to most; * has the worst\n");
        status = print_rows(report, rows, n, text);
    }
    me_free(rows);
    return status;
}
