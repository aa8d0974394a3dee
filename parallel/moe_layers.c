/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/moe_layers.h"

#include <string.h>

enum {
    MAX_DEPTH = 100,
    MAX_NUMBER = 1 << 20 /**< of layers and times: what is above is as much */
};

/** Where a reader is, and the layers that it has read. */
typedef struct reader {
    const char *at;
    bool *layers;
    int32_t capacity; /**< of `layers`, which more would overflow */
    int32_t count;    /**< may exceed the capacity, then only counted */
    int depth;
} reader;

/** What a part of an expression comes to. */
typedef struct value {
    bool is_list;
    int64_t number; /**< else */
} value;

static int64_t limit(int64_t number)
{
    return number < MAX_NUMBER ? number : MAX_NUMBER;
}

static bool next_is(reader *r, char c)
{
    if (*r->at != c) {
        return false;
    }
    r->at += c == '\0' ? 0 : 1;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** As Python reads it: no zeros before another digit. */
static bool read_number(reader *r, int64_t *number_out)
{
    const char *begin = r->at;
    int64_t number = 0;
    for (; is_digit(*r->at); r->at++) {
        number = limit(10 * number + (*r->at - '0'));
    }
    *number_out = number;
    return r->at != begin && (*begin != '0' || number == 0);
}

static void append(reader *r, bool is_moe)
{
    if (r->count < r->capacity) {
        r->layers[r->count] = is_moe;
    }
    r->count += r->count < MAX_NUMBER ? 1 : 0;
}

static bool read_sum(reader *r, value *value_out);

/** `[0, 1, …]` after its bracket; a comma may end it. */
static bool read_list(reader *r)
{
    while (!next_is(r, ']')) {
        value element = {0};
        if (!read_sum(r, &element) || element.is_list || element.number > 1) {
            return false;
        }
        append(r, element.number == 1);
        if (*r->at != ']' && !next_is(r, ',')) {
            return false;
        }
    }
    return true;
}

/** A number, a list, or a sum in parentheses. */
static bool read_atom(reader *r, value *value_out)
{
    if (next_is(r, '(')) {
        return read_sum(r, value_out) && next_is(r, ')');
    }
    value_out->is_list = next_is(r, '[');
    return value_out->is_list ? read_list(r)
                              : read_number(r, &value_out->number);
}

/** Signs before it and powers of it, both of numbers alone. */
static bool read_factor(reader *r, value *value_out)
{
    const bool has_sign = next_is(r, '+');
    while (next_is(r, '+')) {
    }
    if (!read_atom(r, value_out)) {
        return false;
    }
    bool is_number = has_sign;
    if (r->at[0] == '*' && r->at[1] == '*') {
        r->at += 2;
        value exponent = {0};
        if (!read_factor(r, &exponent) || exponent.is_list) {
            return false;
        }
        int64_t power = 1;
        for (int64_t i = 0; i < exponent.number && power < MAX_NUMBER &&
                            (i == 0 || value_out->number > 1);
             i++) {
            power = limit(power * value_out->number);
        }
        value_out->number = power;
        is_number = true;
    }
    return !is_number || !value_out->is_list;
}

/** The list from @p begin on, so many times. */
static void repeat(reader *r, int32_t begin, int64_t times)
{
    const int64_t length = r->count - begin;
    const int64_t end = limit(begin + length * times);
    for (int64_t i = length; begin + i < end && begin + i < r->capacity; i++) {
        r->layers[begin + i] = r->layers[begin + i % length];
    }
    r->count = (int32_t)end;
}

/** Numbers, and at most one list, that are multiplied. */
static bool read_product(reader *r, value *value_out)
{
    const int32_t begin = r->count;
    if (!read_factor(r, value_out)) {
        return false;
    }
    while (next_is(r, '*')) {
        value factor = {0};
        if (!read_factor(r, &factor) ||
            (factor.is_list && value_out->is_list)) {
            return false;
        }
        if (factor.is_list || value_out->is_list) {
            repeat(r, begin,
                   factor.is_list ? value_out->number : factor.number);
            value_out->is_list = true;
        } else {
            value_out->number = limit(value_out->number * factor.number);
        }
    }
    return true;
}

/** Numbers or lists. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the parentheses, which is bound
static bool read_sum(reader *r, value *value_out)
{
    if (++r->depth > MAX_DEPTH || !read_product(r, value_out)) {
        return false;
    }
    while (next_is(r, '+')) {
        value term = {0};
        if (!read_product(r, &term) || term.is_list != value_out->is_list) {
            return false;
        }
        value_out->number = limit(value_out->number + term.number);
    }
    r->depth--;
    return true;
}

static me_status refuse(const char *option, const char *text, me_diag *diag)
{
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s = %s must be a number of layers from 1, or "
                   "a list of 0 and 1 without spaces, such as ([0]*1+[1]*26)",
                   option, text);
}

/** `int(text)`. */
static bool read_period(const char *text, value *value_out)
{
    reader r = {.at = text + strspn(text, " ")};
    (void)next_is(&r, '+');
    const bool is_read = read_number(&r, &value_out->number);
    return is_read && r.at[strspn(r.at, " ")] == '\0';
}

/** A period, or a list into the reader's layers. */
static me_status read_pattern(reader *r, const char *option, me_diag *diag,
                              value *pattern_out)
{
    const char *text = r->at;
    const bool is_read = strchr(text, '[') == NULL
                             ? read_period(text, pattern_out)
                             : read_sum(r, pattern_out) &&
                                   pattern_out->is_list && next_is(r, '\0');
    return is_read && (pattern_out->is_list || pattern_out->number >= 1)
               ? ME_OK
               : refuse(option, text, diag);
}

static me_status fail_length(const char *option, const char *text,
                             int32_t n_layers, me_diag *diag)
{
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s = %s is not as long as "
                   "model.num_layers = %d",
                   option, text, (int)n_layers);
}

me_status me_moe_layers_read(const char *text, int32_t n_layers, me_diag *diag,
                             bool *is_moe_out)
{
    static const char option[] = "moe.layer_freq";
    reader r = {.at = text, .layers = is_moe_out, .capacity = n_layers};
    value pattern = {0};
    const me_status status = read_pattern(&r, option, diag, &pattern);
    if (status != ME_OK) {
        return status;
    }
    for (int32_t i = 0; !pattern.is_list && i < n_layers; i++) {
        is_moe_out[i] = i % pattern.number == 0;
    }
    return pattern.is_list && r.count != n_layers
               ? fail_length(option, text, n_layers, diag)
               : ME_OK;
}

me_status me_window_layers_read(const char *text, int32_t n_layers,
                                me_diag *diag, bool *has_window_out)
{
    static const char option[] = "model.window_attn_skip_freq";
    reader r = {.at = text, .layers = has_window_out, .capacity = n_layers};
    value pattern = {0};
    for (int32_t i = 0; *text == '\0' && i < n_layers; i++) {
        has_window_out[i] = true;
    }
    if (*text == '\0') {
        return ME_OK;
    }
    const me_status status = read_pattern(&r, option, diag, &pattern);
    const int64_t period = pattern.number > 0 ? pattern.number : 1;
    if (status != ME_OK) {
        return status;
    }
    for (int32_t i = 0; !pattern.is_list && i < n_layers; i++) {
        has_window_out[i] = (i + 1) % period != 0;
    }
    return pattern.is_list && r.count < n_layers
               ? fail_length(option, text, n_layers, diag)
               : ME_OK;
}

me_status me_no_rope_layers_read(const char *text, int32_t n_layers,
                                 me_diag *diag, bool *lacks_rope_out)
{
    static const char option[] = "model.no_rope_freq";
    reader r = {.at = text, .layers = lacks_rope_out, .capacity = n_layers};
    value pattern = {0};
    if (*text == '\0' || strcmp(text, "0") == 0) {
        for (int32_t i = 0; i < n_layers; i++) {
            lacks_rope_out[i] = false;
        }
        return ME_OK;
    }
    const me_status status = read_pattern(&r, option, diag, &pattern);
    const int64_t period = pattern.number > 0 ? pattern.number : 1;
    if (status != ME_OK) {
        return status;
    }
    if (pattern.is_list) {
        return r.count == n_layers ? ME_OK
                                   : fail_length(option, text, n_layers, diag);
    }
    for (int32_t i = 0; i < n_layers; i++) {
        lacks_rope_out[i] = (i + 1) % period == 0;
    }
    return n_layers % period == 0
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "%s = %s does not divide model.num_layers = %d",
                         option, text, (int)n_layers);
}
