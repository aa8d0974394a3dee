/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "report/quantity.h"
#include "report/table.h"
#include "report/text.h"
#include "report/verdict.h"
#include "track/fold.h"

#include <stdlib.h>
#include <string.h>

enum {
    RANGES_MAX = 4 /* "0-3,8-11,16-19,24-27,..." */
};

/** Ranks of one stage with the same result. */
typedef struct rank_row {
    const me_report *report;
    const me_rank_result *result;
    const me_report_rank *const *ranks; /**< rising; borrowed */
    size_t n_ranks;
    /* requested peaks of phases; unknown: it never ran */
    uint64_t setup;
    uint64_t forward;
    uint64_t backward; /**< recomputation is a part of it */
    uint64_t reduction;
    uint64_t optimizer;
} rank_row;

static bool has_worst(const rank_row *row)
{
    for (size_t i = 0; i < row->n_ranks; i++) {
        if (row->ranks[i]->place.rank == row->report->verdict.worst_rank) {
            return true;
        }
    }
    return false;
}

static void get_mark(const void *row, me_str *cell)
{
    me_str_append(cell, has_worst(row) ? "*" : "");
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/** The ranges of one coordinate of the row's ranks. */
static void append_places(const rank_row *row, size_t offset, me_str *cell)
{
    uint32_t *numbers = me_alloc(row->n_ranks, sizeof *numbers, "text.numbers");
    if (numbers == NULL) {
        cell->status = ME_ERR_NOMEM;
        return;
    }
    for (size_t i = 0; i < row->n_ranks; i++) {
        const char *place = (const char *)&row->ranks[i]->place;
        int32_t value = 0;
        memcpy(&value, place + offset, sizeof value);
        numbers[i] = (uint32_t)value;
    }
    qsort(numbers, row->n_ranks, sizeof *numbers, compare_numbers);
    me_ranges_append(cell, numbers, row->n_ranks, RANGES_MAX);
    me_free(numbers);
}

static void get_ranks(const void *row, me_str *cell)
{
    append_places(row, offsetof(me_rank_place, rank), cell);
}

static void get_count(const void *row, me_str *cell)
{
    me_count_append(cell, ((const rank_row *)row)->n_ranks);
}

static void get_stage(const void *row, me_str *cell)
{
    append_places(row, offsetof(me_rank_place, pp), cell);
}

static void get_tensor(const void *row, me_str *cell)
{
    append_places(row, offsetof(me_rank_place, tp), cell);
}

static void get_context(const void *row, me_str *cell)
{
    append_places(row, offsetof(me_rank_place, cp), cell);
}

static void get_expert(const void *row, me_str *cell)
{
    append_places(row, offsetof(me_rank_place, ep), cell);
}

static void get_data(const void *row, me_str *cell)
{
    append_places(row, offsetof(me_rank_place, dp), cell);
}

/** Requested peak of a phase in an iteration, which may be NULL. */
static uint64_t phase_bytes(const me_iteration_result *it, const char *name)
{
    for (uint32_t i = 0; it != NULL && i < it->n_phases; i++) {
        if (strcmp(it->phases[i].name, name) == 0) {
            return it->phases[i].requested_bytes;
        }
    }
    return ME_BYTES_UNKNOWN;
}

static void fill_phases(rank_row *row)
{
    const me_rank_result *result = row->result;
    const me_peak_result *peak = me_rank_result_peak(result);
    const me_iteration_result *setup =
        me_rank_result_iteration(result, ME_SETUP_ITERATION);
    const me_iteration_result *steady =
        peak == NULL ? NULL : me_rank_result_iteration(result, peak->iteration);
    const uint64_t backward = phase_bytes(steady, "backward");
    const uint64_t recompute = phase_bytes(steady, "recompute");
    row->setup = setup == NULL ? ME_BYTES_UNKNOWN : setup->requested_bytes;
    row->forward = phase_bytes(steady, "forward");
    row->backward = backward == ME_BYTES_UNKNOWN ? recompute
                    : recompute == ME_BYTES_UNKNOWN
                        ? backward
                        : me_max_u64(backward, recompute);
    row->reduction = phase_bytes(steady, "gradient_reduction");
    row->optimizer = phase_bytes(steady, "optimizer");
}

static const void *find_peak(const void *row)
{
    return me_rank_result_peak(((const rank_row *)row)->result);
}

static const me_schema row_schema =
    ME_SCHEMA(rank_row, {ME_BYTES(rank_row, setup), .title = "setup"},
              {ME_BYTES(rank_row, forward), .title = "forward"},
              {ME_BYTES(rank_row, backward), .title = "backward"},
              {ME_BYTES(rank_row, reduction), .title = "reduction"},
              {ME_BYTES(rank_row, optimizer), .title = "optimizer"},
              {ME_FOUND(find_peak, me_peak_schema)});

enum {
    COLUMNS_MAX = 8
};

/** Coordinates that do not exist in the job have no column, nor has the number of
 *  ranks where each has a row. */
static size_t choose_columns(const me_report *report, bool is_joined,
                             me_column *columns)
{
    const me_parallel_config *p = &report->config->parallel;

    const struct {
        bool is_there;
        me_column column;
    } all[COLUMNS_MAX] = {
        {true, {"", NULL, false, false, get_mark}},
        {true,
         {is_joined ? "ranks" : "rank", NULL, !is_joined, false, get_ranks}},
        {is_joined, {"count", NULL, true, false, get_count}},
        {true, {"stage", NULL, true, false, get_stage}},
        {true, {"tensor", NULL, true, false, get_tensor}},
        {p->context > 1, {"context", NULL, true, false, get_context}},
        {p->data > 1, {"data", NULL, true, false, get_data}},
        {p->expert > 1, {"expert", NULL, true, false, get_expert}},
    };

    size_t n = 0;
    for (size_t i = 0; i < COLUMNS_MAX; i++) {
        if (all[i].is_there) {
            columns[n++] = all[i].column;
        }
    }
    return n;
}

/** By stage, then rank. */
static int compare_places(const me_report_rank *x, const me_report_rank *y)
{
    if (x->place.pp != y->place.pp) {
        return x->place.pp < y->place.pp ? -1 : 1;
    }
    return (x->place.rank > y->place.rank) - (x->place.rank < y->place.rank);
}

static int compare_ranks(const void *a, const void *b)
{
    return compare_places(*(const me_report_rank *const *)a,
                          *(const me_report_rank *const *)b);
}

/** By stage, then result (in the order of lowest ranks), then rank. */
static int compare_alike(const void *a, const void *b)
{
    const me_report_rank *x = *(const me_report_rank *const *)a;
    const me_report_rank *y = *(const me_report_rank *const *)b;
    if (x->place.pp == y->place.pp && x->result != y->result) {
        return x->result < y->result ? -1 : 1;
    }
    return compare_places(x, y);
}

/** @param is_joined  equal ranks of a stage share a row */
static size_t make_rows(const me_report *report, bool is_joined,
                        const me_report_rank **ranks, rank_row *rows)
{
    const size_t count = (size_t)report->world_size;
    for (size_t i = 0; i < count; i++) {
        ranks[i] = &report->ranks[i];
    }
    qsort(ranks, count, sizeof(me_report_rank *),
          is_joined ? compare_alike : compare_ranks);
    size_t n_rows = 0;
    for (size_t i = 0, last = 0; i < count; i = last) {
        for (last = i + 1; is_joined && last < count &&
                           ranks[last]->place.pp == ranks[i]->place.pp &&
                           ranks[last]->result == ranks[i]->result;) {
            last++;
        }
        rows[n_rows] = (rank_row){.report = report,
                                  .result = report->results[ranks[i]->result],
                                  .ranks = ranks + i,
                                  .n_ranks = last - i};
        fill_phases(&rows[n_rows++]);
    }
    return n_rows;
}

/** The stages that take most and least, by their worst ranks. */
static void append_imbalance(const me_report *report, const rank_row *rows,
                             size_t n_rows, me_str *text)
{
    const me_basis basis = report->verdict.basis;
    uint64_t most = 0;
    uint64_t least = ME_BYTES_UNKNOWN;
    int32_t most_stage = 0;
    int32_t least_stage = 0;
    for (size_t i = 0; i < n_rows;) {
        const int32_t stage = rows[i].ranks[0]->place.pp;
        uint64_t bytes = 0;
        for (; i < n_rows && rows[i].ranks[0]->place.pp == stage; i++) {
            bytes =
                me_max_u64(bytes, me_result_most_bytes(rows[i].result, basis));
        }
        if (bytes > most) {
            most = bytes;
            most_stage = stage;
        }
        if (bytes < least) {
            least = bytes;
            least_stage = stage;
        }
    }
    if (most == ME_BYTES_UNKNOWN || most_stage == least_stage) {
        return;
    }
    me_str_printf(text, "  stage %d takes most, ", (int)most_stage);
    me_gib_append(text, most);
    me_str_printf(text, " GiB %s, stage %d least, ", me_basis_name(basis),
                  (int)least_stage);
    me_gib_append(text, least);
    me_str_append(text, " GiB: ");
    me_percent_append(text, most - least, most);
    me_str_append(text, " less\n");
}

static void append_worst(const me_report *report, me_str *text)
{
    const char *before = "  most ";
#define APPEND_WORST(basis, name)                                              \
    {                                                                          \
        uint64_t bytes = 0;                                                    \
        const int32_t rank = me_report_worst_by(report, basis, &bytes);        \
        if (bytes != ME_BYTES_UNKNOWN) {                                       \
            me_str_printf(text, "%s" name ": rank %d, ", before, (int)rank);   \
            me_gib_append(text, bytes);                                        \
            before = " GiB; ";                                                 \
        }                                                                      \
    }
    ME_BASIS_LIST(APPEND_WORST)
#undef APPEND_WORST
    me_str_append(text, " GiB\n");
    const me_peak_result *peak = me_rank_result_peak(me_report_worst(report));
    if (peak != NULL && me_peak_fragmentation(peak) != ME_BYTES_UNKNOWN) {
        me_str_printf(text, "  fragmentation: rank %d reserves ",
                      (int)report->verdict.worst_rank);
        me_gib_append(text, me_peak_fragmentation(peak));
        me_str_append(text, " GiB, ");
        me_percent_append(text, me_peak_fragmentation(peak),
                          peak->reserved_bytes);
        me_str_append(text, " of its most, more than it ever allocates\n");
    }
}

/** What becomes of the rows, while they are there. */
typedef me_status (*rows_user)(const me_report *report, bool is_joined,
                               const rank_row *rows, size_t n_rows,
                               me_table_printer print, me_str *text);

static me_status with_rows(const me_report *report, bool is_joined,
                           rows_user use, me_table_printer print, me_str *text)
{
    const size_t count = (size_t)report->world_size;
    const me_report_rank **ranks =
        me_alloc(count, sizeof(me_report_rank *), "text.ranks");
    rank_row *rows = me_alloc(count, sizeof *rows, "text.rank_rows");
    me_status status = ME_ERR_NOMEM;
    if (ranks != NULL && rows != NULL) {
        const size_t n_rows = make_rows(report, is_joined, ranks, rows);
        status = use(report, is_joined, rows, n_rows, print, text);
    }
    me_free(ranks);
    me_free(rows);
    return status;
}

static me_status print_table(const me_report *report, bool is_joined,
                             const rank_row *rows, size_t n_rows,
                             me_table_printer print, me_str *text)
{
    me_column columns[COLUMNS_MAX];
    const size_t n_columns = choose_columns(report, is_joined, columns);
    return print(&(me_table){.columns = columns,
                             .n_columns = n_columns,
                             .schema = &row_schema,
                             .rows = rows,
                             .n_rows = n_rows,
                             .row_bytes = sizeof *rows,
                             .narrow = "setup;reduction;optimizer;allocated;"
                                       "forward;data;tensor;context;expert;"
                                       "backward;count;"},
                 text);
}

static me_status print_section(const me_report *report, bool is_joined,
                               const rank_row *rows, size_t n_rows,
                               me_table_printer print, me_str *text)
{
    me_str_printf(text,
                  "\nRanks: peaks in GiB, %s* marks the worst\n"
                  "  setup to requested are requested bytes; backward "
                  "includes recomputation\n",
                  is_joined ? "ranks with equal numbers in one line, " : "");
    const me_status status =
        print_table(report, is_joined, rows, n_rows, print, text);
    append_imbalance(report, rows, n_rows, text);
    append_worst(report, text);
    return status;
}

me_status me_ranks_table(const me_report *report, me_table_printer print,
                         me_str *text)
{
    return with_rows(report, true, print_table, print, text);
}

me_status me_text_ranks(const me_report *report, bool is_joined, me_str *text)
{
    return with_rows(report, is_joined, print_section, me_table_print, text);
}
