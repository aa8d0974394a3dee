/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/routing.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 1 << 16, /* that are read at a time */
    PLACE_COLUMNS = 4,
    END = -1 /* of the text, in place of a character */
};

/** Where a reader is: in a block of a file, or in a text that is all there is. */
typedef struct reader {
    const char *at;
    const char *end; /* of what is there */
    FILE *file;      /* that has more; NULL: nothing more comes */
    char *block;     /* owned */
    const char *name;
    int line;
    uint32_t capacity;
    me_routing *routing;
    me_diag *diag;
} reader;

/** The next character, or END. */
static int peek(reader *r)
{
    if (r->at == r->end && r->file != NULL) {
        const size_t n = fread(r->block, 1, BLOCK_BYTES, r->file);
        r->at = r->block;
        r->end = r->block + n;
    }
    return r->at == r->end ? END : (unsigned char)*r->at;
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/** Does nothing of a line follow? */
static bool ends_line(int c)
{
    return c == END || c == '\n' || c == '#';
}

/** @return is there something more in the line? */
static bool skip_blanks(reader *r)
{
    int c = peek(r);
    while (is_blank(c)) {
        r->at++;
        c = peek(r);
    }
    return !ends_line(c);
}

/** To the next line. @return false: the text has a NUL byte */
static bool skip_line(reader *r)
{
    int c = peek(r);
    while (c != END && c != '\n' && c != '\0') {
        r->at++;
        c = peek(r);
    }
    if (c == '\n') {
        r->at++;
        r->line++;
    }
    return c != '\0';
}

/** A number below 2^31. */
static bool read_number(reader *r, int32_t *number_out)
{
    int64_t value = 0;
    bool has_digit = false;
    int c = peek(r);
    while (c >= '0' && c <= '9' && value <= INT32_MAX) {
        value = 10 * value + (c - '0');
        has_digit = true;
        r->at++;
        c = peek(r);
    }
    *number_out = (int32_t)(value <= INT32_MAX ? value : 0);
    return has_digit && value <= INT32_MAX && (is_blank(c) || ends_line(c));
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
    if (rows == NULL || counts == NULL || capacity < r->capacity) {
        return me_fail(r->diag, ME_ERR_NOMEM, "no host memory for routing");
    }
    r->capacity = capacity;
    return ME_OK;
}

static me_status refuse_text(const reader *r)
{
    return me_fail_at(r->diag, ME_ERR_SYNTAX, r->name, r->line,
                      "binary file: it has a NUL byte");
}

static me_status refuse(reader *r)
{
    if (peek(r) == '\0') {
        return refuse_text(r);
    }
    return me_fail(r->diag, ME_ERR_CONFIG,
                   "%s, line %d: expected numbers: iteration, layer, "
                   "micro-batch, rank and the tokens of its %u experts",
                   r->name, r->line, r->routing->n_experts);
}

/** Counts of a row. */
static uint64_t *counts_of(const me_routing *routing, const me_routing_row *row)
{
    return routing->counts + (size_t)row->number * routing->n_experts;
}

static me_status read_row(reader *r)
{
    const me_status status = reserve(r);
    if (status != ME_OK) {
        return status;
    }
    me_routing *routing = r->routing;
    me_routing_row *row = &routing->rows[routing->n_rows];
    *row = (me_routing_row){.number = routing->n_rows, .line = r->line};
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
            counts_of(routing, row)[i - PLACE_COLUMNS] = (uint64_t)number;
        }
    }
    if (skip_blanks(r)) {
        return refuse(r);
    }
    routing->n_rows++;
    return ME_OK;
}

/** The line `alone`. */
static me_status read_alone(reader *r)
{
    const char *word = "alone";
    while (*word != '\0' && peek(r) == *word) {
        r->at++;
        word++;
    }
    const bool is_word =
        *word == '\0' && (is_blank(peek(r)) || ends_line(peek(r)));
    if (!is_word || skip_blanks(r)) {
        return refuse(r);
    }
    r->routing->is_alone = true;
    return ME_OK;
}

static me_status read_lines(reader *r)
{
    me_status status = ME_OK;
    bool is_text = true;
    while (status == ME_OK && is_text && peek(r) != END) {
        if (skip_blanks(r)) {
            const int c = peek(r);
            status = c == '\0' ? ME_OK : c == 'a' ? read_alone(r) : read_row(r);
        }
        is_text = status != ME_OK || skip_line(r);
    }
    if (!is_text) {
        return refuse_text(r);
    }
    if (status == ME_OK && r->file != NULL && ferror(r->file)) {
        return me_fail_at(r->diag, ME_ERR_IO, r->name, 0, "cannot read: %s",
                          strerror(errno));
    }
    return status;
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

/** Where the rows of each rank begin. */
static me_status index_ranks(const reader *r)
{
    me_routing *routing = r->routing;
    uint32_t n = 1;
    for (uint32_t i = 1; i < routing->n_rows; i++) {
        n += routing->rows[i].at.rank != routing->rows[i - 1].at.rank;
    }
    routing->ranks =
        me_alloc((size_t)n + 1, sizeof *routing->ranks, "routing.ranks");
    if (routing->ranks == NULL) {
        return me_fail(r->diag, ME_ERR_NOMEM, "no host memory for routing");
    }
    for (uint32_t i = 0; i < routing->n_rows; i++) {
        const int32_t rank = routing->rows[i].at.rank;
        if (i == 0 || rank != routing->rows[i - 1].at.rank) {
            routing->ranks[routing->n_ranks++] = (me_routing_rank){rank, i};
        }
    }
    routing->ranks[n].begin = routing->n_rows;
    return ME_OK;
}

static me_status read_all(reader *r)
{
    me_routing *routing = r->routing;
    me_status status = read_lines(r);
    if (status == ME_OK && routing->n_rows > 0) {
        qsort(routing->rows, routing->n_rows, sizeof *routing->rows,
              compare_rows);
    }
    if (status == ME_OK) {
        status = check_unique(r);
    }
    if (status == ME_OK) {
        status = index_ranks(r);
    }
    if (status != ME_OK) {
        me_routing_fini(routing);
    }
    return status;
}

me_status me_routing_read(const char *text, const char *name,
                          uint32_t n_experts, me_diag *diag,
                          me_routing *routing_out)
{
    *routing_out = (me_routing){.imbalance = 1, .n_experts = n_experts};
    reader r = {.at = text,
                .end = text + strlen(text),
                .name = name,
                .line = 1,
                .routing = routing_out,
                .diag = diag};
    return read_all(&r);
}

me_status me_routing_read_file(const char *path, uint32_t n_experts,
                               me_diag *diag, me_routing *routing_out)
{
    *routing_out = (me_routing){.imbalance = 1, .n_experts = n_experts};
    reader r = {.name = path, .line = 1, .routing = routing_out, .diag = diag};
    me_status status = me_input_open(path, diag, &r.file);
    if (status != ME_OK) {
        return status;
    }
    r.block = me_alloc(BLOCK_BYTES, 1, "routing.block");
    if (r.block == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for routing");
    } else {
        r.at = r.block;
        r.end = r.block;
        (void)peek(&r);
        r.at += me_input_mark_bytes(r.at, (size_t)(r.end - r.at));
        status = read_all(&r);
    }
    me_free(r.block);
    (void)fclose(r.file);
    return status;
}

void me_routing_fini(me_routing *routing)
{
    me_free(routing->rows);
    me_free(routing->ranks);
    me_free(routing->counts);
    *routing = (me_routing){.imbalance = 1};
}

static int compare_ranks(const void *x, const void *y)
{
    const me_routing_rank *a = x;
    const me_routing_rank *b = y;
    return compare_numbers(a->rank, b->rank);
}

/** Where the rank's rows are; NULL: it has none. Files mostly name one rank after
 *  the other. */
static const me_routing_rank *find_rank(const me_routing *routing, int32_t rank)
{
    if (routing->n_ranks == 0) {
        return NULL;
    }
    const int64_t guess = (int64_t)rank - routing->ranks[0].rank;
    if (guess >= 0 && guess < routing->n_ranks &&
        routing->ranks[guess].rank == rank) {
        return &routing->ranks[guess];
    }
    const me_routing_rank key = {.rank = rank};
    return bsearch(&key, routing->ranks, routing->n_ranks, sizeof key,
                   compare_ranks);
}

/** Where a row is among those of its rank if there is one for each iteration,
 *  layer and micro-batch between the first and the last; else any number, as
 *  sums of unsigned numbers are that wrap. */
static uint64_t guess_row(const me_routing_place *first,
                          const me_routing_place *last,
                          const me_routing_place *at)
{
    const uint64_t layers = (uint64_t)last->layer - (uint64_t)first->layer + 1;
    const uint64_t microbatches =
        (uint64_t)last->microbatch - (uint64_t)first->microbatch + 1;
    const uint64_t iteration =
        (uint64_t)at->iteration - (uint64_t)first->iteration;
    const uint64_t layer = (uint64_t)at->layer - (uint64_t)first->layer;
    return (iteration * layers + layer) * microbatches +
           (uint64_t)at->microbatch - (uint64_t)first->microbatch;
}

const uint64_t *me_routing_row_counts(const me_routing *routing,
                                      const me_routing_row *row)
{
    return counts_of(routing, row);
}

static const me_routing_row *find(const me_routing *routing,
                                  const me_routing_place *at)
{
    const me_routing_rank *rank = find_rank(routing, at->rank);
    if (rank == NULL) {
        return NULL;
    }
    const me_routing_row *rows = routing->rows + rank[0].begin;
    const uint32_t n = rank[1].begin - rank[0].begin;
    const uint64_t guess = guess_row(&rows[0].at, &rows[n - 1].at, at);
    if (guess < n && compare_places(&rows[guess].at, at) == 0) {
        return &rows[guess];
    }
    const me_routing_row key = {.at = *at};
    return bsearch(&key, rows, n, sizeof key, compare_rows);
}

bool me_routing_names(const me_routing *routing, int32_t rank)
{
    return find_rank(routing, rank) != NULL;
}

bool me_routing_is_same(const me_routing *routing, int32_t rank, int32_t other)
{
    const me_routing_rank *a = find_rank(routing, rank);
    const me_routing_rank *b = find_rank(routing, other);
    if (a == NULL || b == NULL) {
        return a == b;
    }
    const uint32_t n = a[1].begin - a[0].begin;
    bool is_same = n == b[1].begin - b[0].begin;
    for (uint32_t i = 0; i < n && is_same; i++) {
        const me_routing_row *x = &routing->rows[a[0].begin + i];
        const me_routing_row *y = &routing->rows[b[0].begin + i];
        me_routing_place place = y->at;
        place.rank = rank;
        is_same = compare_places(&x->at, &place) == 0 &&
                  memcmp(counts_of(routing, x), counts_of(routing, y),
                         routing->n_experts * sizeof *routing->counts) == 0;
    }
    return is_same;
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

static uint64_t received(const me_routing *routing, const me_routing_row *row,
                         uint64_t balanced)
{
    if (row == NULL) {
        return (uint64_t)((double)balanced * routing->imbalance);
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < routing->n_experts; i++) {
        sum += counts_of(routing, row)[i];
    }
    return sum;
}

uint64_t me_routing_received(const me_routing *routing,
                             const me_routing_place *at, uint64_t balanced)
{
    return received(routing, find(routing, at), balanced);
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
    if (row != NULL) {
        ME_ASSERT(n_experts == routing->n_experts);
        memcpy(counts_out, counts_of(routing, row),
               n_experts * sizeof *counts_out);
        return;
    }
    const uint64_t sum = received(routing, NULL, balanced);
    for (uint32_t i = 0; i < n_experts; i++) {
        counts_out[i] = me_routing_share(sum, n_experts, i);
    }
}
