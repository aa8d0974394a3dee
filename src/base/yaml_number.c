/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yaml_number.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** Of any base up to 16; 16: none. */
static unsigned digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char small = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    const char *at = c == '\0' ? NULL : strchr(digits, small);
    return at == NULL ? 16 : (unsigned)(at - digits);
}

static bool append(uint64_t *value, uint64_t base, uint64_t digit)
{
    if (*value > (UINT64_MAX - digit) / base) {
        return false;
    }
    *value = *value * base + digit;
    return true;
}

/** Digits, `_` between or behind them. */
static bool read_digits(const char *text, unsigned base, uint64_t *value_out)
{
    uint64_t value = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        const unsigned digit = digit_of(*text);
        if (*text != '_' && (digit >= base || !append(&value, base, digit))) {
            return false;
        }
    }
    *value_out = value;
    return true;
}

/** `1:10:05`: parts of one or two digits below 60 behind the first. */
static bool read_sixties(const char *text, uint64_t *value_out)
{
    char first[ME_YAML_NUMBER];
    const size_t length = strcspn(text, ":");
    if (length >= sizeof first || text[length] == '\0') {
        return false;
    }
    memcpy(first, text, length);
    first[length] = '\0';
    if (!read_digits(first, 10, value_out)) {
        return false;
    }
    for (text += length; *text == ':';) {
        text++;
        const unsigned a = digit_of(text[0]);
        const unsigned b = a < 10 ? digit_of(text[1]) : 16;
        const unsigned part = b < 10 ? 10 * a + b : a;
        if (a >= 10 || part >= 60 || !append(value_out, 60, part)) {
            return false;
        }
        text += b < 10 ? 2 : 1;
    }
    return *text == '\0';
}

const char *me_yaml_not_finite(const char *text)
{
    static const char *const spelled[][2] = {
        {".inf", "inf"}, {".Inf", "inf"}, {".INF", "inf"},
        {".nan", "nan"}, {".NaN", "nan"}, {".NAN", "nan"},
    };
    const bool has_sign = *text == '-' || *text == '+';
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        if (strcmp(text + has_sign, spelled[i][0]) == 0 &&
            !(has_sign && spelled[i][1][0] == 'n')) {
            return *text == '-' ? "-inf" : spelled[i][1];
        }
    }
    return NULL;
}

bool me_yaml_number(const char *text, char number_out[ME_YAML_NUMBER])
{
    const bool is_negative = *text == '-';
    text += *text == '-' || *text == '+' ? 1 : 0;
    uint64_t value = 0;
    bool is_number = false;
    if (text[0] == '0' && text[1] == 'b') {
        is_number = read_digits(text + 2, 2, &value);
    } else if (text[0] == '0' && text[1] == 'x') {
        is_number = read_digits(text + 2, 16, &value);
    } else if (text[0] == '0') {
        is_number = read_digits(text, 8, &value);
    } else if (text[0] >= '1' && text[0] <= '9') {
        is_number = read_digits(text, 10, &value) || read_sixties(text, &value);
    }
    if (is_number) {
        (void)snprintf(number_out, ME_YAML_NUMBER, "%s%" PRIu64,
                       is_negative && value > 0 ? "-" : "", value);
    }
    return is_number;
}
