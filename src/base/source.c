/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/source.h"

#include "base/alloc.h"
#include "base/input.h"

#include <stdbool.h>
#include <string.h>

enum {
    DIGITS_MAX = 18, /* what 63 bits always hold */
    DEPTH_MAX = 16,
    STRING_MAX = 1 << 16,     /* bytes: libconfig copies it again and again */
    COMPARISONS_MAX = 1 << 23 /* of names with those of their groups */
};

/** What is open at a depth. */
typedef struct level {
    char bracket;     /* 0 outside of all groups */
    unsigned n_names; /* so far */
} level;

/** A walk over raw text. Reading at or past the end gives NUL. */
typedef struct scanner {
    const char *where;
    const char *raw;
    size_t length;
    size_t at;
    int line;
    int depth; /* open groups, lists and arrays */
    level levels[DEPTH_MAX + 1];
    size_t text_bytes;      /* of texts in quotes, one behind another */
    unsigned n_comparisons; /* that libconfig makes to find names twice */
    char previous; /* first byte of the last token, blanks not counted */
    bool is_line_start;
    me_source *source;
    me_diag *diag;
    bool allows_lists;
} scanner;

static char peek(const scanner *s, size_t ahead)
{
    if (s->length - s->at <= ahead) {
        return '\0';
    }
    return s->raw[s->at + ahead];
}

static void copy(scanner *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s->line += peek(s, i) == '\n';
    }
    me_str_append_n(&s->source->text, s->raw + s->at, n);
    s->at += n;
}

static me_status fail(const scanner *s, int line, const char *what)
{
    return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, line, "%s", what);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '*' ||
           c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c) || c == '-';
}

static bool is_in_list(const scanner *s)
{
    const char bracket = s->levels[s->depth].bracket;
    return bracket == '(' || bracket == '[';
}

/** May text follow what stands before it? */
static bool may_be_text(const scanner *s)
{
    switch (s->previous) {
    case '=':
    case ':':
    case '"': return true;
    case '(':
    case '[':
    case ',': return is_in_list(s);
    default: return false;
    }
}

/** Where no text may stand libconfig would not only refuse but leak it. */
static me_status scan_string(scanner *s)
{
    size_t n = 1;
    if (!may_be_text(s)) {
        return fail(s, s->line, "text in quotes must follow a '='");
    }
    while (peek(s, n) != '"') {
        n += peek(s, n) == '\\' ? 2 : 1;
        if (n >= s->length - s->at || peek(s, n) == '\n') {
            return fail(s, s->line, "string is not closed on its line");
        }
    }
    s->text_bytes = n + (s->previous == '"' ? s->text_bytes : 0);
    if (s->text_bytes > STRING_MAX) {
        return fail(s, s->line, "text in quotes is over 64 KiB");
    }
    copy(s, n + 1);
    return ME_OK;
}

static me_status scan_block_comment(scanner *s)
{
    size_t n = 2;
    while (peek(s, n) != '*' || peek(s, n + 1) != '/') {
        n++;
        if (n >= s->length - s->at) {
            return fail(s, s->line, "comment is not closed: no */ follows");
        }
    }
    copy(s, n + 2);
    return ME_OK;
}

static void scan_line_comment(scanner *s)
{
    size_t n = 1;
    while (n < s->length - s->at && peek(s, n) != '\n') {
        n++;
    }
    copy(s, n);
}

/** Whole numbers get libconfig's suffix of 64-bit ones. */
static me_status scan_number(scanner *s)
{
    const bool is_hex =
        peek(s, 0) == '0' && (peek(s, 1) == 'x' || peek(s, 1) == 'X');
    size_t n = 0;
    size_t n_significant = 0;
    if (is_hex) {
        return fail(s, s->line, "hexadecimal number: write it in decimal");
    }
    for (; is_digit(peek(s, n)); n++) {
        n_significant += n_significant != 0 || peek(s, n) != '0';
    }
    const char next = peek(s, n);
    if (next != '.' && next != 'e' && next != 'E') {
        if (n_significant > DIGITS_MAX) {
            return fail(s, s->line, "number needs more than 64 bits");
        }
        const size_t n_suffix = next == 'L';
        copy(s, n + n_suffix);
        if (n_suffix == 0) {
            me_str_append(&s->source->text, "L");
        }
        return ME_OK;
    }
    while (is_digit(peek(s, n)) || peek(s, n) == '.' || peek(s, n) == 'e' ||
           peek(s, n) == 'E' ||
           ((peek(s, n) == '-' || peek(s, n) == '+') &&
            (peek(s, n - 1) == 'e' || peek(s, n - 1) == 'E'))) {
        n++;
    }
    copy(s, n);
    return ME_OK;
}

static me_status keep_include(scanner *s, const char *path, size_t length)
{
    me_source *source = s->source;
    if (source->n_includes == ME_INCLUDES_MAX) {
        return fail(s, s->line, "more than 32 includes in one file");
    }
    char *kept = me_alloc(length + 1, 1, "config.include");
    if (kept == NULL) {
        return me_fail(s->diag, ME_ERR_NOMEM, "no memory for an include");
    }
    memcpy(kept, path, length);
    source->includes[source->n_includes++] =
        (me_include){.path = kept, .line = s->line};
    return ME_OK;
}

static me_status scan_include(scanner *s)
{
    static const char word[] = "@include";
    size_t n = sizeof word - 1;
    if (s->length - s->at < n || memcmp(s->raw + s->at, word, n) != 0) {
        return fail(s, s->line, "stray '@': only @include \"FILE\" has one");
    }
    if (!s->is_line_start || s->depth != 0) {
        return fail(s, s->line,
                    "@include must be a line of its own outside of groups");
    }
    while (peek(s, n) == ' ' || peek(s, n) == '\t') {
        n++;
    }
    const size_t begin = n + 1;
    size_t end = begin;
    while (peek(s, end) != '"' && peek(s, end) != '\n' &&
           end < s->length - s->at) {
        end++;
    }
    if (peek(s, n) != '"' || peek(s, end) != '"' || end == begin) {
        return fail(s, s->line, "write @include \"FILE\"");
    }
    const me_status status =
        keep_include(s, s->raw + s->at + begin, end - begin);
    s->at += end + 1;
    return status;
}

/** libconfig compares each name with all before it in its group. */
static me_status count_name(scanner *s)
{
    s->n_comparisons += s->levels[s->depth].n_names++;
    if (s->n_comparisons > COMPARISONS_MAX) {
        return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                          "too many names in one group: this is number %u",
                          s->levels[s->depth].n_names);
    }
    return ME_OK;
}

static me_status fail_stray(const scanner *s, unsigned char c)
{
    return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                      c > ' ' && c < 0x7f ? "stray '%c'" : "stray byte 0x%02X",
                      c);
}

static me_status scan_bracket(scanner *s, char c)
{
    if (c == '}' || c == ')' || c == ']') {
        s->depth -= s->depth > 0; // libconfig says what is wrong
    } else if ((c == '(' || c == '[') && !s->allows_lists) {
        return fail(s, s->line, "lists and arrays are not used: write a value");
    } else if (s->depth == DEPTH_MAX) {
        return fail(s, s->line, "groups are nested too deep");
    } else {
        s->levels[++s->depth] = (level){.bracket = c};
    }
    return ME_OK;
}

static me_status scan_other(scanner *s)
{
    const char c = peek(s, 0);
    me_status status = ME_OK;
    if (strchr("{}()[]", c) != NULL) {
        status = scan_bracket(s, c);
    } else if (c == '=' || c == ':') {
        status = count_name(s);
    } else if (strchr(";,+-", c) == NULL) {
        status = fail_stray(s, (unsigned char)c);
    }
    copy(s, 1);
    return status;
}

static void scan_name(scanner *s)
{
    size_t n = 1;
    while (is_name(peek(s, n))) {
        n++;
    }
    copy(s, n);
}

static bool skip_blank(scanner *s)
{
    const char c = peek(s, 0);
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
        return false;
    }
    s->is_line_start = s->is_line_start || c == '\n';
    copy(s, 1);
    return true;
}

static bool skip_line_comment(scanner *s)
{
    if (peek(s, 0) != '#' && (peek(s, 0) != '/' || peek(s, 1) != '/')) {
        return false;
    }
    scan_line_comment(s);
    return true;
}

static me_status scan_token(scanner *s)
{
    const char c = peek(s, 0);
    me_status status = ME_OK;
    if (skip_blank(s) || skip_line_comment(s)) {
        return ME_OK;
    }
    if (c == '/' && peek(s, 1) == '*') {
        return scan_block_comment(s);
    }
    if (c == '"') {
        status = scan_string(s);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(s, 1)))) {
        status = scan_number(s);
    } else if (c == '@') {
        status = scan_include(s);
    } else if (is_name_start(c) || c == '.') {
        scan_name(s);
    } else {
        status = scan_other(s);
    }
    s->previous = c;
    s->is_line_start = false;
    return status;
}

static me_status scan(scanner *s)
{
    *s->source = (me_source){0};
    s->line = 1;
    s->is_line_start = true;
    me_status status =
        me_input_check_text(s->where, s->raw, s->length, s->diag);
    s->at = me_input_mark_bytes(s->raw, s->length);
    while (status == ME_OK && s->at < s->length) {
        status = scan_token(s);
    }
    if (status == ME_OK && me_str_status(&s->source->text) != ME_OK) {
        status =
            me_fail(s->diag, ME_ERR_NOMEM, "no memory for %.80s", s->where);
    }
    return status;
}

me_status me_source_scan(const char *where, const char *raw, size_t length,
                         me_diag *diag, me_source *source_out)
{
    return scan(&(scanner){.where = where,
                           .raw = raw,
                           .length = length,
                           .source = source_out,
                           .diag = diag});
}

me_status me_source_scan_lists(const char *where, const char *raw,
                               size_t length, me_diag *diag,
                               me_source *source_out)
{
    return scan(&(scanner){.where = where,
                           .raw = raw,
                           .length = length,
                           .allows_lists = true,
                           .source = source_out,
                           .diag = diag});
}

void me_source_fini(me_source *source)
{
    for (size_t i = 0; i < source->n_includes; i++) {
        me_free(source->includes[i].path);
    }
    me_str_fini(&source->text);
    source->n_includes = 0;
}
