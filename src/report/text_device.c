/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/oom_text.h"
#include "report/quantity.h"
#include "report/table.h"
#include "report/text.h"

#include <inttypes.h>

/** One line of what lies outside of the allocator. */
typedef struct outside_row {
    const char *what;
    const char *group; /**< NULL: no communicator */
    int32_t size;
    uint64_t bytes;
    uint64_t whole;
} outside_row;

static void get_what(const void *row, me_str *cell)
{
    const outside_row *r = row;
    if (r->group == NULL) {
        me_str_append(cell, r->what);
    } else {
        me_str_printf(cell, "communicator of %s", r->group);
    }
}

static void get_size(const void *row, me_str *cell)
{
    const outside_row *r = row;
    if (r->group != NULL) {
        me_str_printf(cell, "%d", (int)r->size);
    }
}

static void get_share(const void *row, me_str *cell)
{
    const outside_row *r = row;
    me_percent_append(cell, r->bytes, r->whole);
}

static const me_column columns[] = {
    {"", NULL, false, false, get_what},
    {"ranks", NULL, true, false, get_size},
    {"share", NULL, true, false, get_share},
};

static const me_schema row_schema =
    ME_SCHEMA(outside_row, {ME_BYTES(outside_row, bytes), .title = "GiB"},
              {ME_COUNT(outside_row, bytes), .title = "bytes"});

enum {
    FIXED_ROWS = 3 /* context, libraries, user buffers */
};

static size_t fill_rows(const me_device_result *d, uint64_t whole,
                        outside_row *rows)
{
    size_t n = 0;
    rows[n++] = (outside_row){
        .what = "CUDA context", .bytes = d->context_bytes, .whole = whole};
    rows[n++] = (outside_row){.what = "kernels and libraries",
                              .bytes = d->library_bytes - d->user_buffer_bytes,
                              .whole = whole};
    if (d->user_buffer_bytes > 0) {
        rows[n++] = (outside_row){.what = "user buffers",
                                  .bytes = d->user_buffer_bytes,
                                  .whole = whole};
    }
    for (uint32_t i = 0; i < d->n_communicators; i++) {
        rows[n++] = (outside_row){.group = d->communicators[i].group,
                                  .size = d->communicators[i].size,
                                  .bytes = d->communicators[i].bytes,
                                  .whole = whole};
    }
    return n;
}

me_status me_text_device(const me_report *report, me_str *text)
{
    const me_device_result *d = &me_report_worst(report)->device;
    if (!d->is_known) {
        return ME_OK;
    }
    outside_row *rows = me_alloc((size_t)d->n_communicators + FIXED_ROWS,
                                 sizeof *rows, "text.device");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    const uint64_t whole =
        d->context_bytes + d->library_bytes + d->communicator_bytes;
    const size_t n_rows = fill_rows(d, whole, rows);
    me_str_printf(text,
                  "\nDevice memory of rank %d outside of PyTorch's allocator\n"
                  "  ",
                  (int)report->verdict.worst_rank);
    me_count_append(text, whole);
    me_str_append(text, " bytes at the end of iteration 1\n\n");
    const me_status status = me_table_print(
        ME_FIELDS_TABLE(columns, 1, &row_schema, rows, n_rows), text);
    me_free(rows);
    return status;
}

static void append_mib(me_str *text, uint64_t bytes)
{
    const uint64_t tenths = (bytes + (UINT64_C(1) << 20) / 20) * 10 >> 20;
    me_str_printf(text, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
}

static void append_part(uint64_t bytes, const char *what, bool *is_first,
                        me_str *text)
{
    if (bytes > 0) {
        me_str_append(text, *is_first ? ": " : ", ");
        append_mib(text, bytes);
        me_str_printf(text, " %s", what);
        *is_first = false;
    }
}

void me_text_band(const me_report *report, me_str *text)
{
    const me_verdict *v = &report->verdict;
    bool is_first = true;
    if (v->capacity_bytes == 0 || v->band_bytes == 0) {
        return;
    }
    me_str_append(text, "  band        ± ");
    append_mib(text, v->band_bytes);
    me_str_append(text, " MiB");
#define APPEND_PART(member, what)                                              \
    append_part(v->band.member, what, &is_first, text);
    ME_BAND_LIST(APPEND_PART)
#undef APPEND_PART
    me_str_append(text, "\n");
}

/** The lowest rank that retries most; -1: none does. */
static int32_t find_retries(const me_report *report)
{
    int32_t found = -1;
    uint64_t most = 0;
    for (int32_t i = 0; i < report->world_size; i++) {
        const me_limit_result *limit =
            &report->results[report->ranks[i].result]->limit;
        if (limit->is_known && limit->num_alloc_retries > most) {
            most = limit->num_alloc_retries;
            found = i;
        }
    }
    return found;
}

/** The rank whose end is told; -1: none. */
static int32_t ending_rank(const me_report *report)
{
    const int32_t dead = report->verdict.oom_rank;
    return dead >= 0 ? dead : find_retries(report);
}

static const me_limit_result *limit_of(const me_report *report, int32_t rank)
{
    return &report->results[report->ranks[rank].result]->limit;
}

void me_text_end_line(const me_report *report, me_str *text)
{
    const int32_t dead = report->verdict.oom_rank;
    const int32_t rank = ending_rank(report);
    if (rank < 0) {
        return;
    }
    const me_limit_result *limit = limit_of(report, rank);
    me_str_printf(text,
                  dead >= 0 ? "  end         rank %d frees its cached blocks "
                              "%" PRIu64 " time%s and dies"
                            : "  end         runs; rank %d frees its cached "
                              "blocks %" PRIu64 " time%s in %d iterations",
                  (int)rank, limit->num_alloc_retries,
                  me_plural(limit->num_alloc_retries), ME_LIMIT_ITERATIONS);
    if (dead >= 0) {
        me_iteration_append(text, limit->iteration, limit->phase);
        if (limit->module != NULL && *limit->module != '\0') {
            me_str_printf(text, ", %s", limit->module);
        }
        me_str_printf(text, ", %s, asking for %" PRIu64 " bytes",
                      limit->op == NULL ? "?" : limit->op, limit->tried_bytes);
    }
    me_str_append(text, "\n");
}

void me_text_end(const me_report *report, me_str *text)
{
    const int32_t rank = ending_rank(report);
    me_text_end_line(report, text);
    const char *message = rank < 0 ? NULL : limit_of(report, rank)->message;
    if (message != NULL) { // one line, which a terminal or a page breaks
        me_str_append(text, "    ");
        me_oom_text_append(message, me_report_device_index(report, rank), text);
        me_str_append(text, "\n");
    }
}
