/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/leaf_arithmetic.h"

#include "base/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    DEPTH_MAX = 64,    /**< of brackets, signs and powers in one another */
    NUMBER_BYTES = 64, /**< of one in the text */
    DIGITS = 17        /**< that tell any double from the others */
};

/** Whole numbers up to here are doubles as well. */
static const double WHOLE_MAX = 0x1p53;

/** int or float of Python's; the value is exact in both. */
typedef struct number {
    double value;
    bool is_real; /**< float */
} number;

typedef struct reading {
    const char *at;
    int depth;
    bool is_wrong;
} reading;

static number fail(reading *r)
{
    r->is_wrong = true;
    return (number){.value = 0};
}

/** A result that is a float if one of the two is. */
static number make(reading *r, double value, bool is_real)
{
    const bool is_good =
        isfinite(value) && (is_real || fabs(value) <= WHOLE_MAX);
    return is_good ? (number){.value = value, .is_real = is_real} : fail(r);
}

/** Take @p sign if it comes next; `*` is none of `**`, `/` none of `//`. */
static bool take(reading *r, const char *sign)
{
    const size_t n = strlen(sign);
    r->at += strspn(r->at, " \t");
    const bool is_double = r->at[0] == '*' || r->at[0] == '/';
    if (strncmp(r->at, sign, n) != 0 ||
        (n == 1 && is_double && r->at[1] == r->at[0])) {
        return false;
    }
    r->at += n;
    return true;
}

static number read_sum(reading *r);

static number read_digits(reading *r)
{
    char text[NUMBER_BYTES];
    number n = {.value = 0};
    size_t length = strspn(r->at, "0123456789.");
    if (length > 0 && (r->at[length] == 'e' || r->at[length] == 'E')) {
        length++;
        length += r->at[length] == '-' || r->at[length] == '+';
        length += strspn(r->at + length, "0123456789");
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)length, r->at);
    if (length == 0 || length >= sizeof text ||
        me_parse_double(text, &n.value) != ME_OK) {
        return fail(r);
    }
    r->at += length;
    return make(r, n.value, strpbrk(text, ".eE") != NULL);
}

/** The next of `min()` and `max()`: the first of those that are equal stays. */
static number choose(number kept, number next, bool is_max)
{
    const bool is_next =
        is_max ? next.value > kept.value : next.value < kept.value;
    return is_next ? next : kept;
}

/** A function's value, behind whose name the brackets stand. */
// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it
static number read_call(reading *r)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    const char *name = r->at;
    const size_t n = strspn(name, letters);
    const bool is_min = n == 3 && strncmp(name, "min", n) == 0;
    const bool is_max = n == 3 && strncmp(name, "max", n) == 0;
    int count = 1;
    r->at += n;
    if (!take(r, "(")) {
        return fail(r);
    }
    number kept = read_sum(r);
    for (; (is_min || is_max) && take(r, ","); count++) {
        kept = choose(kept, read_sum(r), is_max);
    }
    if (!take(r, ")") || r->is_wrong) {
        return fail(r);
    }
    if (n == 3 && strncmp(name, "int", n) == 0) {
        return make(r, trunc(kept.value), false);
    }
    if (n == 5 && strncmp(name, "round", n) == 0) {
        return make(r, nearbyint(kept.value), false); // half to even
    }
    if (n == 5 && strncmp(name, "float", n) == 0) {
        return make(r, kept.value, true);
    }
    if (n == 3 && strncmp(name, "abs", n) == 0) {
        return make(r, fabs(kept.value), kept.is_real);
    }
    return count > 1 ? kept : fail(r);
}

// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it
static number read_atom(reading *r)
{
    r->at += strspn(r->at, " \t");
    if (take(r, "(")) {
        const number inside = read_sum(r);
        return take(r, ")") ? inside : fail(r);
    }
    return *r->at >= 'a' && *r->at <= 'z' ? read_call(r) : read_digits(r);
}

/** `-a ** -b` is -(a ** (-b)). */
// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it
static number read_signed(reading *r)
{
    if (r->is_wrong || r->depth >= DEPTH_MAX) {
        return fail(r);
    }
    r->depth++;
    number n;
    if (take(r, "-")) {
        n = read_signed(r);
        n = make(r, -n.value, n.is_real);
    } else if (take(r, "+")) {
        n = read_signed(r);
    } else {
        n = read_atom(r);
        if (take(r, "**")) {
            const number to = read_signed(r);
            n = make(r, pow(n.value, to.value),
                     n.is_real || to.is_real || to.value < 0);
        }
    }
    r->depth--;
    return n;
}

/** Python's `//` and `%` round down, and the rest has the divisor's sign. */
static number divide(reading *r, number a, number b, bool is_rest)
{
    const bool is_real = a.is_real || b.is_real;
    if (b.value == 0) {
        return fail(r);
    }
    double rest = fmod(a.value, b.value);
    rest += rest != 0 && (rest < 0) != (b.value < 0) ? b.value : 0;
    return make(r, is_rest ? rest : nearbyint((a.value - rest) / b.value),
                is_real);
}

// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it
static number read_product(reading *r)
{
    number n = read_signed(r);
    while (!r->is_wrong) {
        if (take(r, "//")) {
            n = divide(r, n, read_signed(r), false);
        } else if (take(r, "%")) {
            n = divide(r, n, read_signed(r), true);
        } else if (take(r, "/")) {
            const number by = read_signed(r);
            n = by.value == 0 ? fail(r) : make(r, n.value / by.value, true);
        } else if (take(r, "*")) {
            const number by = read_signed(r);
            n = make(r, n.value * by.value, n.is_real || by.is_real);
        } else {
            break;
        }
    }
    return n;
}

// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it
static number read_sum(reading *r)
{
    number n = read_product(r);
    while (!r->is_wrong) {
        const bool is_minus = take(r, "-");
        if (!is_minus && !take(r, "+")) {
            break;
        }
        const number by = read_product(r);
        n = make(r, is_minus ? n.value - by.value : n.value + by.value,
                 n.is_real || by.is_real);
    }
    return n;
}

/** The fewest digits that are this double. */
static void append(number n, me_str *out)
{
    char text[NUMBER_BYTES];
    double back = NAN;
    for (int digits = 1; digits <= DIGITS && back != n.value; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, n.value);
        if (me_parse_double(text, &back) != ME_OK) {
            break;
        }
    }
    me_str_append(out, text);
    me_str_append(out, strpbrk(text, ".e") == NULL ? ".0" : "");
}

bool me_leaf_evaluate(const char *expression, me_str *number_out)
{
    reading r = {.at = expression};
    const number n = read_sum(&r);
    r.at += strspn(r.at, " \t");
    if (r.is_wrong || *r.at != '\0') {
        return false;
    }
    if (n.is_real) {
        append(n, number_out);
    } else {
        me_str_printf(number_out, "%" PRId64, (int64_t)n.value);
    }
    return true;
}
