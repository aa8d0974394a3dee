/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torchtitan/toml_private.h"

#include <inttypes.h>
#include <string.h>

enum {
    LIST_DEPTH_MAX = 8
};

/** A hexadecimal digit's; 16: it is none. */
static uint64_t digit_of(char c)
{
    static const char all[] = "0123456789abcdef";
    const char *at =
        c == '\0' ? NULL : strchr(all, c >= 'A' && c <= 'F' ? c | 0x20 : c);
    return at == NULL ? 16 : (uint64_t)(at - all);
}

/** Put a code point behind @p text as UTF-8. */
static void append_point(me_str *text, uint64_t point)
{
    static const struct {
        uint64_t below;
        unsigned first;
        int n_more;
    } forms[] = {{0x80, 0x00, 0},
                 {0x800, 0xc0, 1},
                 {0x10000, 0xe0, 2},
                 {0x110000, 0xf0, 3}};

    int form = 0;
    while (point >= forms[form].below) {
        form++;
    }
    char bytes[4];
    const int n_more = forms[form].n_more;
    bytes[0] = (char)(forms[form].first | (unsigned)(point >> (6 * n_more)));
    for (int i = 1; i <= n_more; i++) {
        bytes[i] =
            (char)(0x80U | (unsigned)((point >> (6 * (n_more - i))) & 0x3fU));
    }
    me_str_append_n(text, bytes, (size_t)n_more + 1);
}

/** The four or eight digits of a code point. */
static me_status read_point(me_toml_scanner *s, int n_digits, me_str *text)
{
    uint64_t point = 0;
    for (int i = 0; i < n_digits; i++) {
        const uint64_t digit = digit_of(*++s->at);
        if (digit == 16) {
            return me_toml_fail(s,
                                "\\u has four hexadecimal digits, \\U eight");
        }
        point = point * 16 + digit;
    }
    if (point == 0 || point > 0x10ffff ||
        (point >= 0xd800 && point <= 0xdfff)) {
        return me_toml_fail(s,
                            "\\u and \\U name a character of Unicode, not NUL");
    }
    append_point(text, point);
    return ME_OK;
}

/** What stands for a byte after a backslash; NUL: nothing does. */
static char escaped(char c)
{
    switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '"':
    case '\\': return c;
    default: return '\0';
    }
}

/** What follows a backslash, which @p s is at. */
static me_status read_escape(me_toml_scanner *s, bool is_long, me_str *text)
{
    const char *behind = s->at + 1;
    behind += strspn(behind, " \t\r");
    if (is_long && *behind == '\n') {
        for (s->at = behind;
             strchr(" \t\r\n", *s->at) != NULL && *s->at != '\0'; s->at++) {
            s->line += *s->at == '\n';
        }
        return ME_OK;
    }
    s->at++;
    me_status status = ME_OK;
    if (*s->at == 'u' || *s->at == 'U') {
        status = read_point(s, *s->at == 'u' ? 4 : 8, text);
    } else {
        const char c = escaped(*s->at);
        if (c == '\0') {
            return me_toml_fail(s,
                                "after a backslash only b, t, n, f, r, u, U, "
                                "\" and \\ are read");
        }
        me_str_append_n(text, &c, 1);
    }
    s->at++;
    return status;
}

/** Do three quotes end a text here? The last three of up to five do. */
static bool is_long_end(const char *at, char quote)
{
    return at[0] == quote && at[1] == quote && at[2] == quote && at[3] != quote;
}

/** A byte of a text; the one at the end is the caller's. */
static me_status read_byte(me_toml_scanner *s, char quote, bool is_long,
                           me_str *text)
{
    const char c = *s->at;
    if (c == '\0' || (c == '\n' && !is_long)) {
        return me_toml_fail(s, is_long ? "text in three quotes is not closed"
                                       : "text in quotes is not closed on its "
                                         "line");
    }
    if (c == '\\' && quote == '"') {
        return read_escape(s, is_long, text);
    }
    s->line += c == '\n';
    me_str_append_n(text, s->at++, 1);
    return ME_OK;
}

me_status me_toml_read_quoted(me_toml_scanner *s, me_str *text)
{
    const char quote = *s->at;
    const bool is_long = s->at[1] == quote && s->at[2] == quote;
    s->at += is_long ? 3 : 1;
    if (is_long) {
        // an end of line right behind the quotes is not the text's
        const size_t blank = s->at[0] == '\r' && s->at[1] == '\n' ? 2
                             : s->at[0] == '\n'                   ? 1
                                                                  : 0;
        s->at += blank;
        s->line += blank > 0;
    }
    me_status status = ME_OK;
    while (status == ME_OK &&
           !(is_long ? is_long_end(s->at, quote) : *s->at == quote)) {
        status = read_byte(s, quote, is_long, text);
    }
    s->at += status != ME_OK ? 0 : is_long ? 3 : 1;
    return status;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** Digits with single underscores between them. @return how many bytes */
static size_t digits(const char *at, me_str *text)
{
    size_t n = 0;
    while (is_digit(at[n]) || (at[n] == '_' && n > 0 && is_digit(at[n - 1]) &&
                               is_digit(at[n + 1]))) {
        if (at[n] != '_') {
            me_str_append_n(text, at + n, 1);
        }
        n++;
    }
    return n;
}

static uint64_t base_of(const char *at)
{
    if (at[0] != '0') {
        return 0;
    }
    return at[1] == 'x' ? 16 : at[1] == 'o' ? 8 : at[1] == 'b' ? 2 : 0;
}

/** `0x10`, `0o20` and `0b1` as decimal digits, which have no sign in TOML.
 *  @return how many bytes; 0: it is none of them, or has more than 64 bits */
static size_t prefixed(const char *at, me_str *text)
{
    const uint64_t base = base_of(at);
    uint64_t number = 0;
    size_t n = 2;
    for (; base > 0; n++) {
        const uint64_t digit = digit_of(at[n]);
        if (digit >= base && (at[n] != '_' || n == 2 || at[n - 1] == '_')) {
            break;
        }
        if (digit < base && number > (UINT64_MAX - digit) / base) {
            return 0;
        }
        number = digit < base ? number * base + digit : number;
    }
    if (n == 2 || at[n - 1] == '_') {
        return 0;
    }
    me_str_printf(text, "%" PRIu64, number);
    return n;
}

/** A sign, if there is one. */
static void read_sign(me_toml_scanner *s, me_str *text)
{
    if (*s->at == '-') {
        me_str_append(text, "-");
    }
    s->at += *s->at == '-' || *s->at == '+';
}

static bool accept_word(me_toml_scanner *s, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(s->at, word, length) != 0 || me_toml_is_bare(s->at[length])) {
        return false;
    }
    s->at += length;
    return true;
}

static me_status read_number(me_toml_scanner *s, me_toml_type *type_out,
                             me_str *text)
{
    static const char wrong[] = "is no value: a text in quotes, a number, true "
                                "or false, or a list of those";
    const bool has_sign = *s->at == '-' || *s->at == '+';
    read_sign(s, text);
    if (accept_word(s, "inf") || accept_word(s, "nan")) {
        *type_out = ME_TOML_DECIMAL;
        me_str_append_n(text, s->at - 3, 3);
        return ME_OK;
    }
    *type_out = ME_TOML_WHOLE;
    size_t n = has_sign ? 0 : prefixed(s->at, text);
    if (n == 0) {
        if (s->at[0] == '0' && (is_digit(s->at[1]) || s->at[1] == '_')) {
            return me_toml_fail(s, "a number has no zeros in front");
        }
        n = digits(s->at, text);
    }
    bool is_right = n > 0;
    s->at += n;
    if (is_right && *s->at == '.') {
        *type_out = ME_TOML_DECIMAL;
        me_str_append(text, ".");
        n = digits(++s->at, text);
        is_right = n > 0;
        s->at += n;
    }
    if (is_right && (*s->at == 'e' || *s->at == 'E')) {
        *type_out = ME_TOML_DECIMAL;
        me_str_append(text, "e");
        s->at++;
        read_sign(s, text);
        n = digits(s->at, text);
        is_right = n > 0;
        s->at += n;
    }
    if (!is_right || me_toml_is_bare(*s->at) || *s->at == ':' ||
        *s->at == '.') {
        return me_toml_fail(s, wrong);
    }
    return ME_OK;
}

static me_status read_value(me_toml_scanner *s, int depth,
                            me_toml_type *type_out, me_str *text);

/** Elements with commas between them, lists in lists written out flat. */
// NOLINTNEXTLINE(misc-no-recursion): at most LIST_DEPTH_MAX deep
static me_status read_list(me_toml_scanner *s, int depth, me_str *text)
{
    if (depth > LIST_DEPTH_MAX) {
        return me_toml_fail(s, "lists are nested too deep");
    }
    s->at++;
    for (bool is_first = true;; is_first = false) {
        me_toml_skip_lines(s);
        if (*s->at == ']') {
            s->at++;
            return ME_OK;
        }
        if (!is_first) {
            me_str_append(text, ",");
        }
        me_toml_type type = ME_TOML_TEXT;
        const me_status status = read_value(s, depth + 1, &type, text);
        if (status != ME_OK) {
            return status;
        }
        me_toml_skip_lines(s);
        if (*s->at != ',' && *s->at != ']') {
            return me_toml_fail(s, "a list goes on with ',' or ends with ']'");
        }
        s->at += *s->at == ',';
    }
}

// NOLINTNEXTLINE(misc-no-recursion): at most LIST_DEPTH_MAX deep
static me_status read_value(me_toml_scanner *s, int depth,
                            me_toml_type *type_out, me_str *text)
{
    if (*s->at == '"' || *s->at == '\'') {
        *type_out = ME_TOML_TEXT;
        return me_toml_read_quoted(s, text);
    }
    if (*s->at == '[') {
        *type_out = ME_TOML_LIST;
        return read_list(s, depth, text);
    }
    if (*s->at == '{') {
        return me_toml_fail(s,
                            "a table in a list is not read: torchtitan has no "
                            "list of tables");
    }
    *type_out = ME_TOML_BOOL;
    if (accept_word(s, "true")) {
        me_str_append(text, "true");
        return ME_OK;
    }
    if (accept_word(s, "false")) {
        me_str_append(text, "false");
        return ME_OK;
    }
    return read_number(s, type_out, text);
}

me_status me_toml_read_value(me_toml_scanner *s, me_toml_type *type_out,
                             me_str *text)
{
    return read_value(s, 0, type_out, text);
}
