/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** Digits from *cursor on; leaves the cursor behind them. */
static me_status scan_u64(const char **cursor, uint64_t *value_out)
{
    const char *c = *cursor;
    uint64_t value = 0;
    if (!is_digit(*c)) {
        return ME_ERR_SYNTAX;
    }
    bool is_lost = false;
    for (; is_digit(*c); c++) {
        is_lost = is_lost || __builtin_mul_overflow(value, 10, &value) ||
                  __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value);
    }
    *cursor = c;
    *value_out = value;
    return is_lost ? ME_ERR_OVERFLOW : ME_OK;
}

me_status me_parse_u64(const char *text, uint64_t *value_out)
{
    uint64_t value = 0;
    const me_status status = scan_u64(&text, &value);
    if (status == ME_ERR_SYNTAX || *text != '\0') {
        return ME_ERR_SYNTAX;
    }
    if (status == ME_OK) {
        *value_out = value;
    }
    return status;
}

/** -1: it is no digit of any base. */
static int digit_of(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

me_status me_parse_c_integer(const char *text, uint64_t *value_out)
{
    const char *c = text + strspn(text, " \t\n\v\f\r");
    c += *c == '+';
    int base = 10;
    if (c[0] == '0' && (c[1] | 0x20) == 'x' && digit_of(c[2]) >= 0) {
        base = 16;
        c += 2;
    } else if (c[0] == '0') {
        base = 8;
    }
    uint64_t value = 0;
    bool is_lost = false;
    const char *begin = c;
    for (; digit_of(*c) >= 0 && digit_of(*c) < base; c++) {
        is_lost = is_lost ||
                  __builtin_mul_overflow(value, (uint64_t)base, &value) ||
                  __builtin_add_overflow(value, (uint64_t)digit_of(*c), &value);
    }
    if (c == begin || *c != '\0') {
        return ME_ERR_SYNTAX;
    }
    if (is_lost) {
        return ME_ERR_OVERFLOW;
    }
    *value_out = value;
    return ME_OK;
}

me_status me_parse_bytes(const char *text, uint64_t *bytes_out)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };

    uint64_t value = 0;
    const me_status status = scan_u64(&text, &value);
    if (status == ME_ERR_SYNTAX) {
        return status;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text, units[i].unit) == 0) {
            if (status != ME_OK ||
                __builtin_mul_overflow(value, units[i].bytes, &value)) {
                return ME_ERR_OVERFLOW;
            }
            *bytes_out = value;
            return ME_OK;
        }
    }
    return ME_ERR_SYNTAX;
}

const char *me_lacking_unit(const char *text)
{
    const uint64_t least_mib = 1024; // as GiB they would be a TiB
    uint64_t value = 0;
    if (me_parse_u64(text, &value) != ME_OK || value == 0 ||
        value >= ME_LEAST_MEMORY_BYTES) {
        return NULL;
    }
    return value < least_mib ? "GiB" : "MiB";
}

/** A decimal number as digits times a power of ten. */
typedef struct decimal {
    bool is_negative;
    int n_digits; /* significant ones that `digits` holds */
    uint64_t digits;
    int exponent;
} decimal;

enum {
    DIGITS_MAX = 18,
    EXPONENT_MAX = 100000
};

/** Takes a run of digits; those beyond what 64 bits hold only move the point. */
static int scan_digits(const char **cursor, decimal *number, bool is_fraction)
{
    int n_seen = 0;
    for (; is_digit(**cursor); ++*cursor) {
        n_seen = 1;
        const bool is_kept = number->n_digits < DIGITS_MAX;
        if (is_kept) {
            number->digits = number->digits * 10 + (uint64_t)(**cursor - '0');
            number->n_digits += number->digits != 0;
        }
        if (is_kept == is_fraction && number->exponent < EXPONENT_MAX &&
            number->exponent > -EXPONENT_MAX) {
            number->exponent += is_fraction ? -1 : 1;
        }
    }
    return n_seen;
}

static bool scan_exponent(const char **cursor, decimal *number)
{
    if (**cursor != 'e' && **cursor != 'E') {
        return true;
    }
    ++*cursor;
    const bool is_negative = **cursor == '-';
    if (**cursor == '-' || **cursor == '+') {
        ++*cursor;
    }
    if (!is_digit(**cursor)) {
        return false;
    }
    int exponent = 0;
    for (; is_digit(**cursor); ++*cursor) {
        if (exponent < EXPONENT_MAX) {
            exponent = exponent * 10 + (**cursor - '0');
        }
    }
    number->exponent += is_negative ? -exponent : exponent;
    return true;
}

/** Below 1e22 every power of ten is exact, and so is the one rounding here. */
static double scale(const decimal *number)
{
    double value = (double)number->digits;
    int left = number->exponent < 0 ? -number->exponent : number->exponent;
    if (value == 0.0 || left > 700) {
        return value == 0.0 || number->exponent < 0 ? 0.0 : DBL_MAX * 2;
    }
    while (left > 0) {
        const int step = left > 22 ? 22 : left;
        double power = 1.0;
        for (int i = 0; i < step; i++) {
            power *= 10.0;
        }
        value = number->exponent < 0 ? value / power : value * power;
        left -= step;
    }
    return value;
}

me_status me_parse_double(const char *text, double *value_out)
{
    decimal number = {.is_negative = *text == '-'};
    if (*text == '-' || *text == '+') {
        text++;
    }
    int n_seen = scan_digits(&text, &number, false);
    if (*text == '.') {
        text++;
        n_seen += scan_digits(&text, &number, true);
    }
    if (n_seen == 0 || !scan_exponent(&text, &number) || *text != '\0') {
        return ME_ERR_SYNTAX;
    }
    const double value = scale(&number);
    if (value > DBL_MAX) {
        return ME_ERR_OVERFLOW;
    }
    *value_out = number.is_negative ? -value : value;
    return ME_OK;
}

bool me_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    const size_t n = strlen(end);
    return length >= n && strcmp(text + length - n, end) == 0;
}

bool me_is_one_of(const char *text, size_t length, const char *const *names,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == length &&
            strncmp(names[i], text, length) == 0) {
            return true;
        }
    }
    return false;
}

const char *me_name_next(const char **cursor, size_t *length_out)
{
    const char *name = *cursor + strspn(*cursor, " ");
    const size_t length = strcspn(name, " ");
    *cursor = name + length;
    if (length == 0) {
        return NULL;
    }
    *length_out = length;
    return name;
}

bool me_names_have(const char *names, const char *name, size_t length)
{
    size_t n = 0;
    for (const char *one = me_name_next(&names, &n); one != NULL;
         one = me_name_next(&names, &n)) {
        if (n == length && memcmp(one, name, length) == 0) {
            return true;
        }
    }
    return false;
}

bool me_path_is_within(const char *path, uint32_t depth)
{
    uint32_t names = 1;
    for (const char *c = path; *c != '\0'; c++) {
        names += *c == '.' ? 1 : 0;
    }
    return names <= depth;
}
