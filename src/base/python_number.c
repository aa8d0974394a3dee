/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/python_number.h"

#include "base/parse.h"

#include <string.h>

static const char blanks[] = " \t\n\r\v\f";

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
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

bool me_python_int(const char *text, me_str *number_out)
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

bool me_python_float(const char *text, me_str *number_out)
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

bool me_python_not_finite(const char *text, me_str *number_out)
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
