/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torchtitan/toml.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum {
    VALUES_MAX = 4096,
    TABLES_MAX = 1024,
    LIST_DEPTH_MAX = 8
};

/** A walk over the text. */
typedef struct scanner {
    me_arena *arena;
    const char *where;
    const char *at;
    int line;
    const char *table;
    me_toml *toml;
    me_diag *diag;
} scanner;

static me_status fail(const scanner *s, const char *what)
{
    return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line, "%s", what);
}

static me_status fail_memory(const scanner *s)
{
    return me_fail_at(s->diag, ME_ERR_NOMEM, s->where, 0,
                      "no memory to read it");
}

static void skip_blank(scanner *s)
{
    s->at += strspn(s->at, " \t\r");
    if (*s->at == '#') {
        s->at += strcspn(s->at, "\n");
    }
}

/** Blanks, comments and ends of lines. */
static void skip_lines(scanner *s)
{
    for (skip_blank(s); *s->at == '\n'; skip_blank(s)) {
        s->at++;
        s->line++;
    }
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/** The end of a line, or of the file. */
static me_status end_line(scanner *s, const char *what)
{
    skip_blank(s);
    if (*s->at != '\n' && *s->at != '\0') {
        return fail(s, what);
    }
    return ME_OK;
}

/** A copy of @p length bytes; NULL without memory. */
static const char *copy(scanner *s, const char *text, size_t length)
{
    char *kept = me_arena_alloc(s->arena, length + 1, 1);
    if (kept != NULL) {
        memcpy(kept, text, length);
        kept[length] = '\0';
    }
    return kept;
}

/** Is a table of this name what a key has as its value, or within that? */
static bool is_within(const char *name, const me_toml_value *value)
{
    const size_t n = strlen(value->table);
    if (strncmp(name, value->table, n) != 0 || (n > 0 && name[n] != '.')) {
        return false;
    }
    const char *key = name + n + (n > 0);
    const size_t length = strlen(value->key);
    return strncmp(key, value->key, length) == 0 &&
           (key[length] == '.' || key[length] == '\0');
}

/** A table is declared once, and where no key has a value. */
static me_status check_table(const scanner *s, const char *name)
{
    const me_toml *toml = s->toml;
    for (uint32_t i = 0; i < toml->n_tables; i++) {
        if (strcmp(toml->tables[i].name, name) == 0) {
            return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                              "[%.60s] stands in line %d already", name,
                              toml->tables[i].line);
        }
    }
    for (uint32_t i = 0; i < toml->count; i++) {
        const me_toml_value *value = &toml->values[i];
        if (is_within(name, value)) {
            return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                              "[%.60s] is a key with a value in line %d", name,
                              value->line);
        }
    }
    return toml->n_tables == TABLES_MAX ? fail(s, "over 1024 tables") : ME_OK;
}

static me_status read_table(scanner *s)
{
    s->at++;
    if (*s->at == '[') {
        return fail(s, "[[…]], an array of tables, is not read");
    }
    skip_blank(s);
    const char *begin = s->at;
    while (is_bare(*s->at) || *s->at == '.') {
        s->at++;
    }
    const size_t length = (size_t)(s->at - begin);
    skip_blank(s);
    if (length == 0 || *s->at != ']') {
        return fail(s, "a table is a name in brackets, as [training]");
    }
    s->at++;
    s->table = copy(s, begin, length);
    if (s->table == NULL) {
        return fail_memory(s);
    }
    const me_status status = check_table(s, s->table);
    if (status != ME_OK) {
        return status;
    }
    s->toml->tables[s->toml->n_tables++] =
        (me_toml_table){.name = s->table, .line = s->line};
    return end_line(s, "nothing may follow a table's name on its line");
}

/** What stands for a byte after a backslash; NUL: nothing does. */
static char escaped(char c)
{
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '"':
    case '\\': return c;
    default: return '\0';
    }
}

/** A text in double or single quotes, on one line. */
static me_status read_quoted(scanner *s, me_str *text)
{
    const char quote = *s->at++;
    if (s->at[0] == quote && s->at[1] == quote) {
        return fail(s, "a text of several lines is not read");
    }
    while (*s->at != quote) {
        char c = *s->at;
        if (c == '\0' || c == '\n') {
            return fail(s, "text in quotes is not closed on its line");
        }
        if (c == '\\' && quote == '"') {
            c = escaped(*++s->at);
            if (c == '\0') {
                return fail(s, "after a backslash only n, t, r, \" and \\ are "
                               "read");
            }
        }
        me_str_append_n(text, &c, 1);
        s->at++;
    }
    s->at++;
    return ME_OK;
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

/** A hexadecimal digit's; 16: it is none. */
static uint64_t digit_of(char c)
{
    static const char all[] = "0123456789abcdef";
    const char *at =
        c == '\0' ? NULL : strchr(all, c >= 'A' && c <= 'F' ? c | 0x20 : c);
    return at == NULL ? 16 : (uint64_t)(at - all);
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
static void read_sign(scanner *s, me_str *text)
{
    if (*s->at == '-') {
        me_str_append(text, "-");
    }
    s->at += *s->at == '-' || *s->at == '+';
}

static bool accept_word(scanner *s, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(s->at, word, length) != 0 || is_bare(s->at[length])) {
        return false;
    }
    s->at += length;
    return true;
}

static me_status read_number(scanner *s, me_toml_type *type_out, me_str *text)
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
            return fail(s, "a number has no zeros in front");
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
    if (!is_right || is_bare(*s->at) || *s->at == ':' || *s->at == '.') {
        return fail(s, wrong);
    }
    return ME_OK;
}

static me_status read_value(scanner *s, int depth, me_toml_type *type_out,
                            me_str *text);

/** Elements with commas between them, lists in lists written out flat. */
// NOLINTNEXTLINE(misc-no-recursion): at most LIST_DEPTH_MAX deep
static me_status read_list(scanner *s, int depth, me_str *text)
{
    if (depth > LIST_DEPTH_MAX) {
        return fail(s, "lists are nested too deep");
    }
    s->at++;
    for (bool is_first = true;; is_first = false) {
        skip_lines(s);
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
        skip_lines(s);
        if (*s->at != ',' && *s->at != ']') {
            return fail(s, "a list goes on with ',' or ends with ']'");
        }
        s->at += *s->at == ',';
    }
}

// NOLINTNEXTLINE(misc-no-recursion): at most LIST_DEPTH_MAX deep
static me_status read_value(scanner *s, int depth, me_toml_type *type_out,
                            me_str *text)
{
    if (*s->at == '"' || *s->at == '\'') {
        *type_out = ME_TOML_TEXT;
        return read_quoted(s, text);
    }
    if (*s->at == '[') {
        *type_out = ME_TOML_LIST;
        return read_list(s, depth, text);
    }
    if (*s->at == '{') {
        return fail(s, "an inline table, {…}, is not read");
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

static me_status check_new(const scanner *s, const char *key)
{
    for (uint32_t i = 0; i < s->toml->count; i++) {
        const me_toml_value *other = &s->toml->values[i];
        if (strcmp(other->key, key) == 0 &&
            strcmp(other->table, s->table) == 0) {
            return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                              "%.60s of [%.60s] stands in line %d already", key,
                              s->table, other->line);
        }
    }
    return s->toml->count == VALUES_MAX ? fail(s, "over 4096 keys") : ME_OK;
}

static me_status read_key(scanner *s)
{
    const char *begin = s->at;
    while (is_bare(*s->at)) {
        s->at++;
    }
    const size_t length = (size_t)(s->at - begin);
    skip_blank(s);
    if (length > 0 && *s->at == '.') {
        return fail(s, "a dotted key is not read: write its table in brackets");
    }
    if (length == 0 || *s->at != '=') {
        return fail(s, "expected key = value, or a table in brackets");
    }
    s->at++;
    skip_blank(s);
    me_toml_value value = {
        .table = s->table, .key = copy(s, begin, length), .line = s->line};
    me_str text = {0};
    me_status status =
        value.key == NULL ? fail_memory(s) : check_new(s, value.key);
    if (status == ME_OK) {
        status = read_value(s, 0, &value.type, &text);
    }
    if (status == ME_OK) {
        value.text = me_str_status(&text) != ME_OK
                         ? NULL
                         : me_arena_strdup(s->arena, me_str_text(&text));
        status = value.text == NULL ? fail_memory(s)
                                    : end_line(s, "nothing may follow a value "
                                                  "on its line");
    }
    me_str_fini(&text);
    s->toml->values[s->toml->count++] = value;
    return status;
}

me_status me_toml_read(me_arena *arena, const char *where, const char *text,
                       size_t length, me_diag *diag, me_toml *toml_out)
{
    scanner s = {.arena = arena,
                 .where = where,
                 .at = text,
                 .line = 1,
                 .table = "",
                 .toml = toml_out,
                 .diag = diag};
    *toml_out = (me_toml){0};
    toml_out->values =
        me_arena_alloc(arena, VALUES_MAX + 1, sizeof *toml_out->values);
    toml_out->tables =
        me_arena_alloc(arena, TABLES_MAX, sizeof *toml_out->tables);
    if (toml_out->values == NULL || toml_out->tables == NULL) {
        return fail_memory(&s);
    }
    if (strlen(text) != length) {
        return fail(&s, "binary file: it has a NUL byte");
    }
    me_status status = ME_OK;
    for (skip_lines(&s); status == ME_OK && *s.at != '\0'; skip_lines(&s)) {
        status = *s.at == '[' ? read_table(&s) : read_key(&s);
    }
    return status;
}
