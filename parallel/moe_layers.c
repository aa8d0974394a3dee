/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/moe_layers.h"

#include <string.h>

enum {
    MAX_DEPTH = 16,
    MAX_NUMBER = 1 << 20
};

/** Where a reader is, and the layers that it has read. */
typedef struct reader {
    const char *at;
    bool *layers;
    int32_t capacity; /**< of `layers`, which more would overflow */
    int32_t count;    /**< may exceed the capacity, then only counted */
    int depth;
} reader;

static bool next_is(reader *r, char c)
{
    while (*r->at == ' ') {
        r->at++;
    }
    if (*r->at != c) {
        return false;
    }
    r->at += c == '\0' ? 0 : 1;
    return true;
}

static bool read_number(reader *r, int32_t *number_out)
{
    (void)next_is(r, '\0');
    int32_t value = 0;
    const char *begin = r->at;
    while (*r->at >= '0' && *r->at <= '9' && value < MAX_NUMBER) {
        value = 10 * value + (*r->at - '0');
        r->at++;
    }
    *number_out = value;
    return r->at != begin && value < MAX_NUMBER;
}

static void append(reader *r, bool is_moe)
{
    if (r->count < r->capacity) {
        r->layers[r->count] = is_moe;
    }
    r->count += r->count <= MAX_NUMBER ? 1 : 0;
}

/** `[0, 1, …]` after its bracket. */
static bool read_list(reader *r)
{
    do {
        int32_t number = 0;
        if (!read_number(r, &number) || number > 1) {
            return false;
        }
        append(r, number == 1);
    } while (next_is(r, ','));
    return next_is(r, ']');
}

static bool read_sum(reader *r);

/** A list or a sum in parentheses, times numbers. */
static bool read_product(reader *r)
{
    const int32_t begin = r->count;
    if (next_is(r, '(')) {
        r->depth++;
        if (r->depth > MAX_DEPTH || !read_sum(r) || !next_is(r, ')')) {
            return false;
        }
        r->depth--;
    } else if (!next_is(r, '[') || !read_list(r)) {
        return false;
    }
    while (next_is(r, '*')) {
        const int32_t length = r->count - begin;
        int32_t times = 0;
        if (!read_number(r, &times)) {
            return false;
        }
        r->count = times == 0 ? begin : r->count;
        for (int64_t i = length; i < (int64_t)length * times; i++) {
            const int64_t from = begin + i % length;
            append(r, from < r->capacity && r->layers[from]);
            if (r->count > r->capacity) {
                return true; // too long, whatever comes
            }
        }
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the parentheses, which is bound
static bool read_sum(reader *r)
{
    do {
        if (!read_product(r)) {
            return false;
        }
    } while (next_is(r, '+'));
    return true;
}

static me_status refuse(const char *text, me_diag *diag)
{
    return me_fail(diag, ME_ERR_CONFIG,
                   "moe.layer_freq = %s must be a number of layers from 1, or "
                   "a list of 0 and 1 such as ([0]*1+[1]*26)",
                   text);
}

me_status me_moe_layers_read(const char *text, int32_t n_layers, me_diag *diag,
                             bool *is_moe_out)
{
    reader r = {.at = text, .layers = is_moe_out, .capacity = n_layers};
    int32_t period = 0;
    if (strpbrk(text, "[(") == NULL) {
        if (!read_number(&r, &period) || period < 1 || !next_is(&r, '\0')) {
            return refuse(text, diag);
        }
        for (int32_t i = 0; i < n_layers; i++) {
            is_moe_out[i] = i % period == 0;
        }
        return ME_OK;
    }
    const bool is_read = read_sum(&r);
    if (!is_read || (r.count <= n_layers && !next_is(&r, '\0'))) {
        return refuse(text, diag);
    }
    if (r.count != n_layers) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "moe.layer_freq = %s is not as long as "
                       "model.num_layers = %d",
                       text, (int)n_layers);
    }
    return ME_OK;
}
