/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/routing.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/** Where a reader is. */
typedef struct reader {
    const char *at;
    const char *name;
    int line;
    uint32_t capacity;
    me_routing *routing;
    me_diag *diag;
} reader;

enum {
    PLACE_COLUMNS = 4
};

static bool skip_blanks(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
        r->at++;
    }
    return *r->at != '\0' && *r->at != '\n' && *r->at != '#';
}

static void skip_line(reader *r)
{
    while (*r->at != '\0' && *r->at != '\n') {
        r->at++;
    }
    if (*r->at == '\n') {
        r->at++;
    }
    r->line++;
}

/** A number below 2^31. */
static bool read_number(reader *r, int32_t *number_out)
{
    int64_t value = 0;
    const char *begin = r->at;
    while (*r->at >= '0' && *r->at <= '9' && value <= INT32_MAX) {
        value = 10 * value + (*r->at - '0');
        r->at++;
    }
    *number_out = (int32_t)(value <= INT32_MAX ? value : 0);
    return r->at != begin && value <= INT32_MAX &&
           strchr(" \t\r\n#", *r->at) != NULL;
}

static me_status reserve(reader *r)
{
    me_routing *routing = r->routing;
    if (routing->n_rows < r->capacity) {
        return ME_OK;
    }
    const uint32_t capacity = r->capacity == 0 ? 256 : 2 * r->capacity;
    me_routing_row *rows =
        me_realloc(routing->rows, capacity, sizeof *rows, "routing.rows");
    if (rows != NULL) {
        routing->rows = rows;
    }
    uint64_t *counts =
        me_realloc(routing->counts, (size_t)capacity * routing->n_experts,
                   sizeof *counts, "routing.counts");
    if (counts != NULL) {
        routing->counts = counts;
    }
    if (rows == NULL || counts == NULL) {
        return me_fail(r->diag, ME_ERR_NOMEM, "no host memory for routing");
    }
    r->capacity = capacity;
    return ME_OK;
}

static me_status refuse(const reader *r)
{
    return me_fail(r->diag, ME_ERR_CONFIG,
                   "%s, line %d: expected numbers: iteration, layer, "
                   "micro-batch, rank and the tokens of its %u experts",
                   r->name, r->line, r->routing->n_experts);
}

static me_status read_row(reader *r)
{
    const me_status status = reserve(r);
    if (status != ME_OK) {
        return status;
    }
    me_routing *routing = r->routing;
    me_routing_row *row = &routing->rows[routing->n_rows];
    row->first = routing->n_rows * routing->n_experts;
    row->line = r->line;
    int32_t *const place[PLACE_COLUMNS] = {&row->at.iteration, &row->at.layer,
                                           &row->at.microbatch, &row->at.rank};
    for (uint32_t i = 0; i < PLACE_COLUMNS + routing->n_experts; i++) {
        int32_t number = 0;
        if (!skip_blanks(r) || !read_number(r, &number)) {
            return refuse(r);
        }
        if (i < PLACE_COLUMNS) {
            *place[i] = number;
        } else {
            routing->counts[row->first + i - PLACE_COLUMNS] = (uint64_t)number;
        }
    }
    if (skip_blanks(r)) {
        return refuse(r);
    }
    routing->n_rows++;
    return ME_OK;
}

/** Is the line `alone`? Then it is read. */
static bool read_alone(reader *r)
{
    static const char word[] = "alone";
    const size_t length = sizeof word - 1;
    if (strncmp(r->at, word, length) != 0 ||
        strchr(" \t\r\n#", r->at[length]) == NULL) {
        return false;
    }
    const char *begin = r->at;
    r->at += length;
    if (skip_blanks(r)) {
        r->at = begin;
        return false;
    }
    r->routing->is_alone = true;
    return true;
}

static int compare_numbers(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

static int compare_places(const void *x, const void *y)
{
    const me_routing_place *a = x;
    const me_routing_place *b = y;
    int order = compare_numbers(a->rank, b->rank);
    order = order != 0 ? order : compare_numbers(a->iteration, b->iteration);
    order = order != 0 ? order : compare_numbers(a->layer, b->layer);
    return order != 0 ? order : compare_numbers(a->microbatch, b->microbatch);
}

static int compare_rows(const void *x, const void *y)
{
    const me_routing_row *a = x;
    const me_routing_row *b = y;
    return compare_places(&a->at, &b->at);
}

static me_status check_unique(const reader *r)
{
    const me_routing *routing = r->routing;
    for (uint32_t i = 1; i < routing->n_rows; i++) {
        const me_routing_place *at = &routing->rows[i].at;
        if (compare_places(at, &routing->rows[i - 1].at) == 0) {
            return me_fail(r->diag, ME_ERR_CONFIG,
                           "%s: two lines for iteration %d, layer %d, "
                           "micro-batch %d, rank %d",
                           r->name, at->iteration, at->layer, at->microbatch,
                           at->rank);
        }
    }
    return routing->n_rows > 0 ? ME_OK
                               : me_fail(r->diag, ME_ERR_CONFIG,
                                         "%s: no counts in it", r->name);
}

me_status me_routing_read(const char *text, const char *name,
                          uint32_t n_experts, me_diag *diag,
                          me_routing *routing_out)
{
    *routing_out = (me_routing){.imbalance = 1, .n_experts = n_experts};
    reader r = {.at = text,
                .name = name,
                .line = 1,
                .routing = routing_out,
                .diag = diag};
    me_status status = ME_OK;
    while (status == ME_OK && *r.at != '\0') {
        if (skip_blanks(&r) && !read_alone(&r)) {
            status = read_row(&r);
        }
        skip_line(&r);
    }
    if (status == ME_OK && routing_out->n_rows > 0) {
        qsort(routing_out->rows, routing_out->n_rows, sizeof *routing_out->rows,
              compare_rows);
    }
    if (status == ME_OK) {
        status = check_unique(&r);
    }
    if (status != ME_OK) {
        me_routing_fini(routing_out);
    }
    return status;
}

void me_routing_fini(me_routing *routing)
{
    me_free(routing->rows);
    me_free(routing->counts);
    *routing = (me_routing){.imbalance = 1};
}

static const me_routing_row *find(const me_routing *routing,
                                  const me_routing_place *at)
{
    const me_routing_row key = {.at = *at};
    return routing->n_rows == 0 ? NULL
                                : bsearch(&key, routing->rows, routing->n_rows,
                                          sizeof key, compare_rows);
}

bool me_routing_names(const me_routing *routing, int32_t rank)
{
    uint32_t first = 0;
    uint32_t end = routing->n_rows;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (routing->rows[middle].at.rank < rank) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < routing->n_rows && routing->rows[first].at.rank == rank;
}

bool me_routing_has(const me_routing *routing, const me_routing_place *at)
{
    return routing->n_rows == 0 || find(routing, at) != NULL ||
           (routing->is_alone && !me_routing_names(routing, at->rank));
}

bool me_routing_is_uniform(const me_routing *routing)
{
    return routing->n_rows == 0 && routing->n_skewed == 0;
}

bool me_routing_is_steady(const me_routing *routing)
{
    return routing->n_rows == 0;
}

/** Rows of an expert rank's experts, of a skewed routing. */
static const uint64_t *skewed_counts(const me_routing *routing,
                                     const me_routing_place *at,
                                     uint32_t n_experts)
{
    return routing->counts + (size_t)at->layer * routing->n_skewed +
           (size_t)at->member * n_experts;
}

uint64_t me_routing_share(uint64_t whole, uint64_t parts, uint64_t index)
{
    return whole / parts + (index < whole % parts ? 1 : 0);
}

uint64_t me_routing_received(const me_routing *routing,
                             const me_routing_place *at, uint64_t balanced)
{
    const me_routing_row *row = find(routing, at);
    if (row == NULL) {
        return (uint64_t)((double)balanced * routing->imbalance);
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < routing->n_experts; i++) {
        sum += routing->counts[row->first + i];
    }
    return sum;
}

void me_routing_counts(const me_routing *routing, const me_routing_place *at,
                       uint64_t balanced, uint32_t n_experts,
                       uint64_t *counts_out)
{
    if (routing->n_skewed > 0) {
        memcpy(counts_out, skewed_counts(routing, at, n_experts),
               n_experts * sizeof *counts_out);
        return;
    }
    const me_routing_row *row = find(routing, at);
    const uint64_t sum = me_routing_received(routing, at, balanced);
    ME_ASSERT(row == NULL || n_experts == routing->n_experts);
    for (uint32_t i = 0; i < n_experts; i++) {
        counts_out[i] = row != NULL ? routing->counts[row->first + i]
                                    : me_routing_share(sum, n_experts, i);
    }
}
