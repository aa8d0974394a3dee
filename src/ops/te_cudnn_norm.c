/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_cudnn_norm.h"

#include "base/size.h"
#include "ops/te_cudnn_norm_tables.h"

#include <string.h>

enum {
    MEASURED_SMS = 132,
    FEWEST_ROWS = 64,
    MOST_HALF_COLUMNS = 2048, /**< 1,056 have a kernel, 2,080 have none */
    TOO_MANY_COLUMNS = 16384, /**< where SMs are left; 8,192 are not */
    PLACES = 4,               /**< of twice as many rows */
    FORWARD_BYTES = 32,
    PART_ROWS = 10000, /**< that a general kernel sums up at once */
    GENERAL = '-' /**< a kernel for any columns, of a shape in the tables */
};

/** What a kernel asks for: quarters of a sum of all columns, in float32, each row
 *  or each of the card's SMs, and a little more. */
typedef struct norm_kernel {
    char name;
    bool is_by_row;
    uint8_t quarters;
    uint8_t more_bytes;
} norm_kernel;

static const norm_kernel kernels[] = {
    {'a', false, 4, 64},   {'b', false, 6, 96},    {'c', false, 8, 64},
    {'d', false, 8, 112},  {'e', false, 12, 96},   {'f', false, 16, 64},
    {'g', false, 16, 112}, {'h', false, 24, 64},   {'i', false, 24, 96},
    {'j', false, 32, 112}, {'k', false, 48, 96},   {'l', false, 64, 112},
    {'m', false, 192, 96}, {'n', true, 2, 64},     {'o', true, 3, 96},
    {'p', true, 4, 64},    {'q', true, 4, 112},    {'r', true, 6, 96},
    {'s', true, 8, 64},    {'t', true, 8, 112},    {'u', true, 12, 96},
    {'v', true, 16, 112},  {'w', false, 128, 112}, {'x', false, 3, 96},
};

/** Columns that cuDNN's own kernels take; others fall back to general ones. */
static bool has_own_kernel(const me_te_norm_call *call)
{
    const bool is_half_block = call->columns % 64 != 0;
    const bool takes_halves =
        call->is_layer_norm &&
        (!call->is_backward || (call->dtype == ME_DTYPE_FLOAT32 &&
                                call->columns <= MOST_HALF_COLUMNS));
    return call->columns % 32 == 0 && (!is_half_block || takes_halves);
}

/** Two statistics of each row (LayerNorm: four), and sums of each part of the rows
 *  where there are several: 142 shapes. */
static uint64_t general_bytes(const me_te_norm_call *call)
{
    const uint64_t sums = call->is_layer_norm ? 2 : 1;
    const uint64_t parts = me_div_up(call->rows, PART_ROWS);
    return me_size_add(
        me_size_mul(8 * sums, call->rows),
        me_size_mul(4 * sums,
                    me_size_mul(call->columns, parts > 1 ? parts : 0)));
}

/** @param sms  that the call may use */
static uint64_t kernel_bytes(const me_te_norm_call *call, uint64_t sms,
                             char name)
{
    if (name == GENERAL) {
        return general_bytes(call);
    }
    const norm_kernel *kernel = kernels;
    while (kernel->name != name) {
        kernel++;
    }
    const uint64_t each = kernel->is_by_row ? call->rows : sms;
    return me_size_add(
        me_size_mul(kernel->quarters, me_size_mul(each, call->columns)),
        kernel->more_bytes);
}

static uint64_t ratio_percent(uint64_t a, uint64_t b)
{
    const uint64_t more = me_max_u64(a, b);
    return me_size_mul(more, 100) / me_max_u64(1, me_min_u64(a, b));
}

/** The measured columns that are next. */
static const me_te_measured_norm *next_columns(const me_te_norm_call *call)
{
    const me_te_measured_norm *best = me_te_measured_norms(call);
    for (const me_te_measured_norm *n = best; n->columns != 0; n++) {
        if (ratio_percent(n->columns, call->columns) <
            ratio_percent(best->columns, call->columns)) {
            best = n;
        }
    }
    return best;
}

/** Rows of place @p i in the tables. */
static uint64_t rows_of(size_t i)
{
    uint64_t power = FEWEST_ROWS;
    for (size_t k = 0; k < i / PLACES; k++) {
        power = me_size_mul(power, 2);
    }
    return power / PLACES * (PLACES + i % PLACES);
}

/** The kernel of the measured rows that are next; of the more of two that are as
 *  far. */
static char next_kernel(const char *names, uint64_t rows)
{
    size_t best = strspn(names, ".");
    for (size_t i = best; names[i] != '\0'; i++) {
        if (names[i] != '.' && ratio_percent(rows_of(i), rows) <=
                                   ratio_percent(rows_of(best), rows)) {
            best = i;
        }
    }
    return names[best];
}

uint64_t me_te_cudnn_norm_workspace_bytes(const me_card *card,
                                          const me_te_norm_call *call)
{
    if (!call->is_backward) {
        return has_own_kernel(call) ? FORWARD_BYTES : 1;
    }
    if (!has_own_kernel(call)) {
        return me_max_u64(general_bytes(call), 1);
    }
    const char *names = me_te_measured_norm_kernels(call, next_columns(call));
    return kernel_bytes(call, card->multiprocessors - call->margin,
                        next_kernel(names, call->rows));
}

/** What kernels of some rows ask for. */
typedef struct asked {
    uint64_t least_bytes;
    uint64_t most_bytes;
} asked;

/** Add those measured at @p fewest to @p most rows, and on either side the next. */
static void ask(const me_te_norm_call *call, uint64_t sms, const char *names,
                const uint64_t rows[2], asked *a)
{
    const size_t n = strlen(names);
    size_t from = strspn(names, ".");
    for (size_t i = from; i < n; i++) {
        from = names[i] != '.' && rows_of(i) <= rows[0] ? i : from;
    }
    for (size_t i = from; i < n; i++) {
        if (names[i] == '.') {
            continue;
        }
        const uint64_t bytes = kernel_bytes(call, sms, names[i]);
        a->least_bytes = me_min_u64(a->least_bytes, bytes);
        a->most_bytes = me_max_u64(a->most_bytes, bytes);
        if (rows_of(i) >= rows[1]) {
            break;
        }
    }
}

/** Were columns and card measured? */
static bool is_known(const me_card *card, const me_te_norm_call *call)
{
    return card->multiprocessors == MEASURED_SMS &&
           next_columns(call)->columns == call->columns;
}

/** The kernel that was measured of these rows; '.': none was. */
static char measured_kernel(const me_card *card, const me_te_norm_call *call)
{
    const char *names = me_te_measured_norm_kernels(call, next_columns(call));
    const size_t n = strlen(names);
    for (size_t i = 0; is_known(card, call) && i < n; i++) {
        if (rows_of(i) == call->rows) {
            return names[i];
        }
    }
    return '.';
}

/** What the kernels that may be the call's ask for: the measured one; else those of
 *  half as many rows to twice as many, of its columns or those on either side. */
static asked ask_all(const me_card *card, const me_te_norm_call *call)
{
    const uint64_t sms = card->multiprocessors - call->margin;
    const char name = measured_kernel(card, call);
    asked a = {.least_bytes = UINT64_MAX};
    if (name != '.') {
        const uint64_t bytes = kernel_bytes(call, sms, name);
        return (asked){bytes, bytes};
    }
    const uint64_t rows[2] = {call->rows / 2, me_size_mul(call->rows, 2)};
    const me_te_measured_norm *n = me_te_measured_norms(call);
    while (n[1].columns != 0 && n[1].columns <= call->columns) {
        n++;
    }
    ask(call, sms, me_te_measured_norm_kernels(call, n), rows, &a);
    if (n->columns != call->columns && n[1].columns != 0) {
        ask(call, sms, me_te_measured_norm_kernels(call, n + 1), rows, &a);
    }
    return a;
}

static bool has_table(const me_te_norm_call *call)
{
    return call->is_backward && has_own_kernel(call);
}

bool me_te_cudnn_norm_is_measured(const me_card *card,
                                  const me_te_norm_call *call)
{
    if (!has_table(call)) {
        return true;
    }
    const asked a = ask_all(card, call);
    const char *names = me_te_measured_norm_kernels(call, next_columns(call));
    const size_t n = strlen(names);
    return is_known(card, call) && a.least_bytes == a.most_bytes && n > 0 &&
           call->rows >= rows_of(strspn(names, ".")) &&
           call->rows <= rows_of(n - 1);
}

uint64_t me_te_cudnn_norm_doubt_bytes(const me_card *card,
                                      const me_te_norm_call *call)
{
    if (!has_table(call)) {
        return 0;
    }
    const asked a = ask_all(card, call);
    return a.least_bytes == a.most_bytes ? 0 : a.most_bytes;
}

bool me_te_cudnn_norm_stops(const me_te_norm_call *call)
{
    return call->is_backward && call->margin > 0 &&
           (call->columns % 64 != 0 || call->columns >= TOO_MANY_COLUMNS);
}
