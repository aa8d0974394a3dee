/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of counts: blocks, characters, lines, and then their order. */
#include "base/alloc.h"
#include "base/input.h"
#include "parallel/routing.h"

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
    uint32_t n_all; /* experts of the model */
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
                   "micro-batch, rank and the tokens of %s%u experts",
                   r->name, r->line,
                   r->routing->is_routed ? "its own for each of " : "its ",
                   r->routing->n_experts);
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
            me_routing_row_counts(routing, row)[i - PLACE_COLUMNS] =
                (uint64_t)number;
        }
    }
    if (skip_blanks(r)) {
        return refuse(r);
    }
    routing->n_rows++;
    return ME_OK;
}

/** A line of one word that says what the counts are of. */
static me_status read_word(reader *r)
{
    const bool is_routed = peek(r) == 'r';
    const char *word = is_routed ? "routed" : "alone";
    while (*word != '\0' && peek(r) == *word) {
        r->at++;
        word++;
    }
    const bool is_word =
        *word == '\0' && (is_blank(peek(r)) || ends_line(peek(r)));
    if (!is_word || skip_blanks(r)) {
        return refuse(r);
    }
    if (!is_routed) {
        r->routing->is_alone = true;
        return ME_OK;
    }
    if (r->routing->n_rows > 0) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "%s, line %d: routed stands before all counts", r->name,
                       r->line);
    }
    r->routing->is_routed = true;
    r->routing->n_experts = r->n_all;
    return ME_OK;
}

static me_status read_lines(reader *r)
{
    me_status status = ME_OK;
    bool is_text = true;
    while (status == ME_OK && is_text && peek(r) != END) {
        if (skip_blanks(r)) {
            const int c = peek(r);
            const bool is_word = c == 'a' || c == 'r';
            status = c == '\0' ? ME_OK : is_word ? read_word(r) : read_row(r);
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

static me_status check_unique(const reader *r)
{
    const me_routing *routing = r->routing;
    for (uint32_t i = 1; i < routing->n_rows; i++) {
        const me_routing_place *at = &routing->rows[i].at;
        if (me_routing_compare(at, &routing->rows[i - 1].at) == 0) {
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
              me_routing_compare);
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
                          const uint32_t n_experts[2], me_diag *diag,
                          me_routing *routing_out)
{
    *routing_out = (me_routing){.imbalance = 1, .n_experts = n_experts[0]};
    reader r = {.at = text,
                .end = text + strlen(text),
                .name = name,
                .line = 1,
                .n_all = n_experts[1],
                .routing = routing_out,
                .diag = diag};
    return read_all(&r);
}

me_status me_routing_read_file(const char *path, const uint32_t n_experts[2],
                               me_diag *diag, me_routing *routing_out)
{
    *routing_out = (me_routing){.imbalance = 1, .n_experts = n_experts[0]};
    reader r = {.name = path,
                .line = 1,
                .n_all = n_experts[1],
                .routing = routing_out,
                .diag = diag};
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
