/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/python_number.h"

#include "base/parse.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    DECIMAL = 10
};

static const char blanks[] = " \t\n\r\v\f";

/** Zeros of Unicode 15.0's decimal digits (general category Nd) beyond ASCII, which
 *  1 to 9 follow: what Python 3.12 knows. */
static const uint32_t zeros[] = {
    0x0660,  0x06F0,  0x07C0,  0x0966,  0x09E6,  0x0A66,  0x0AE6,  0x0B66,
    0x0BE6,  0x0C66,  0x0CE6,  0x0D66,  0x0DE6,  0x0E50,  0x0ED0,  0x0F20,
    0x1040,  0x1090,  0x17E0,  0x1810,  0x1946,  0x19D0,  0x1A80,  0x1A90,
    0x1B50,  0x1BB0,  0x1C40,  0x1C50,  0xA620,  0xA8D0,  0xA900,  0xA9D0,
    0xA9F0,  0xAA50,  0xABF0,  0xFF10,  0x104A0, 0x10D30, 0x11066, 0x110F0,
    0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730,
    0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x11F50, 0x16A60, 0x16AC0,
    0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0,
    0x1E4F0, 0x1E950, 0x1FBF0,
};

/** Blanks beyond ASCII, as str.isspace() has them. */
static const uint32_t wide_blanks[] = {
    0x0085, 0x00A0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003,
    0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A,
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** The character at the front, beyond ASCII. No form that is too long and nothing
 *  else that is no UTF-8 gives one of the tables'.
 *  @return its bytes; 0: there is none, and @p character_out stays */
static size_t take_wide(const char *text, uint32_t *character_out)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t n = first >= 0xC2 && first < 0xE0   ? 2
                     : first >= 0xE0 && first < 0xF0 ? 3
                     : first >= 0xF0 && first < 0xF5 ? 4
                                                     : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = n == 0 ? 0 : first & (0x7FU >> n);
    for (size_t i = 1; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if ((byte & 0xC0U) != 0x80U) {
            return 0;
        }
        c = c << 6U | (byte & 0x3FU);
    }
    if (n == 0 || c < least[n]) {
        return 0;
    }
    *character_out = c;
    return n;
}

/** What int() and float() read a character beyond ASCII as; '?': as no number. */
static char plain_of(uint32_t c)
{
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        if (c >= zeros[i] && c - zeros[i] < DECIMAL) {
            return (char)('0' + (c - zeros[i]));
        }
    }
    for (size_t i = 0; i < sizeof wide_blanks / sizeof wide_blanks[0]; i++) {
        if (c == wide_blanks[i]) {
            return ' ';
        }
    }
    return '?';
}

void me_python_plain(const char *text, me_str *plain_out)
{
    while (*text != '\0') {
        uint32_t character = '?';
        char plain = *text;
        size_t n = 1;
        if ((unsigned char)*text >= 0x80) {
            n = take_wide(text, &character);
            plain = plain_of(character);
        }
        me_str_append_n(plain_out, &plain, 1);
        text += n == 0 ? 1 : n;
    }
}

/** Digits with single underscores between them, without zeros in front where
 *  others follow. @return were there any? */
static bool take_digits(const char **at, bool has_zeros, me_str *number)
{
    const char *begin = *at;
    const char *c = begin;
    bool has_digit = false; // that was written
    while (is_digit(*c) ||
           (*c == '_' && c > begin && is_digit(c[-1]) && is_digit(c[1]))) {
        const bool is_leading = *c == '0' && !has_digit && !has_zeros;
        if (*c != '_' && !is_leading) {
            me_str_append_n(number, c, 1);
            has_digit = true;
        }
        c++;
    }
    if (c > begin && !has_digit) {
        me_str_append(number, "0");
    }
    *at = c;
    return c > begin;
}

static void take_sign(const char **at, me_str *number)
{
    if (**at == '-') {
        me_str_append(number, "-");
    }
    *at += **at == '-' || **at == '+';
}

static bool ends(const char *at)
{
    return at[strspn(at, blanks)] == '\0';
}

static bool take_int(const char *text, me_str *number_out)
{
    const char *at = text + strspn(text, blanks);
    const size_t begin = number_out->length;
    take_sign(&at, number_out);
    const bool is_one = take_digits(&at, false, number_out) && ends(at);
    if (strcmp(me_str_text(number_out) + begin, "-0") == 0) {
        number_out->text[begin] = '0';
        number_out->text[--number_out->length] = '\0';
    }
    return is_one;
}

static bool take_float(const char *text, me_str *number_out)
{
    const char *at = text + strspn(text, blanks);
    take_sign(&at, number_out);
    bool has_digits = take_digits(&at, false, number_out);
    if (*at == '.') {
        at++;
        me_str_append(number_out, has_digits ? "." : "0.");
        const bool has_fraction = take_digits(&at, true, number_out);
        me_str_append(number_out, has_fraction ? "" : "0");
        has_digits = has_digits || has_fraction;
    }
    if (has_digits && (*at == 'e' || *at == 'E')) {
        at++;
        me_str_append(number_out, "e");
        take_sign(&at, number_out);
        has_digits = take_digits(&at, false, number_out);
    }
    return has_digits && ends(at);
}

/** As @p take takes @p text, whose digits and blanks may be of any script. */
static bool take_plain(const char *text, me_str *number_out,
                       bool (*take)(const char *text, me_str *number_out))
{
    me_str plain = {0};
    me_python_plain(text, &plain);
    const bool is_one = take(me_str_text(&plain), number_out);
    me_str_fini_piece(&plain, number_out);
    return is_one;
}

bool me_python_int(const char *text, me_str *number_out)
{
    return take_plain(text, number_out, take_int);
}

bool me_python_float(const char *text, me_str *number_out)
{
    return take_plain(text, number_out, take_float);
}

/** One of @p words, which are lower case, in letters of either case. */
static const char *take_word(const char *at, const char *const *words)
{
    for (; *words != NULL; words++) {
        size_t n = 0;
        while ((*words)[n] != '\0' && (at[n] | 0x20) == (*words)[n]) {
            n++;
        }
        if ((*words)[n] == '\0' && ends(at + n)) {
            return *words;
        }
    }
    return NULL;
}

/** Larger than any number: "1e400" is infinite. */
static bool is_too_large(const char *text)
{
    me_str number = {0};
    double value = 0.0;
    const bool is_one =
        me_python_float(text, &number) &&
        me_parse_double(me_str_text(&number), &value) == ME_ERR_OVERFLOW;
    me_str_fini(&number);
    return is_one;
}

static bool take_not_finite(const char *text, me_str *number_out)
{
    static const char *const words[] = {"infinity", "inf", "nan", NULL};
    const char *at = text + strspn(text, blanks);
    const bool is_negative = *at == '-';
    at += *at == '-' || *at == '+';
    const char *word = take_word(at, words);
    word = word == NULL && is_too_large(text) ? words[0] : word;
    if (word == NULL) {
        return false;
    }
    me_str_append(number_out, is_negative && word[0] == 'i' ? "-" : "");
    me_str_append_n(number_out, word, 3);
    return true;
}

bool me_python_not_finite(const char *text, me_str *number_out)
{
    return take_plain(text, number_out, take_not_finite);
}
