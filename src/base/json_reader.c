/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json_reader.h"

#include "base/alloc.h"
#include "base/parse.h"

#include <limits.h>
#include <string.h>

enum {
    BUFFER_BYTES = 1 << 16,
    TEXT_BYTES = 256, /* of a string that are kept, with the NUL */
    MAX_DEPTH = 512,
    END_OF_TEXT = -1
};

/** What may come next. */
typedef enum expected {
    A_VALUE,
    A_VALUE_OR_END, /**< behind [ */
    A_KEY,
    A_KEY_OR_END,   /**< behind { */
    A_COMMA_OR_END, /**< behind a value in an object or array */
    NOTHING         /**< behind the outermost value */
} expected;

struct me_json_reader {
    FILE *file;
    const char *name;
    const char *at; /**< what has not been read yet */
    const char *end;
    uint64_t line;
    expected expected;
    size_t depth;
    bool failed_to_read;
    me_progress_part *part;    /**< NULL: nobody looks */
    uint64_t n_read;           /**< bytes of the file */
    bool is_object[MAX_DEPTH]; /**< of what is open, else an array */
    char text[TEXT_BYTES];
    size_t length; /**< of text, with what is not kept */
    char buffer[BUFFER_BYTES];
};

me_json_reader *me_json_reader_create(const char *head, size_t head_length,
                                      FILE *file, const char *name)
{
    me_json_reader *r = me_alloc(1, sizeof *r, "base.json_reader");
    if (r != NULL) {
        r->file = file;
        r->name = name;
        r->at = head;
        r->end = head + head_length;
        r->line = 1;
        r->expected = A_VALUE;
    }
    return r;
}

void me_json_reader_watch(me_json_reader *reader, me_progress_part *part)
{
    reader->part = part;
}

void me_json_reader_destroy(me_json_reader *reader)
{
    me_free(reader);
}

const char *me_json_reader_name(const me_json_reader *reader)
{
    return reader->name;
}

static me_status bad(const me_json_reader *r, me_diag *diag, const char *what)
{
    if (r->failed_to_read) {
        return me_fail_at(diag, ME_ERR_IO, r->name, 0, "cannot be read");
    }
    return me_fail_at(diag, ME_ERR_SYNTAX, r->name,
                      r->line > INT_MAX ? INT_MAX : (int)r->line,
                      "not JSON: %s", what);
}

/** The next byte, which stays there; END_OF_TEXT behind the last. */
static int peek(me_json_reader *r)
{
    if (r->at == r->end) {
        const size_t n = fread(r->buffer, 1, BUFFER_BYTES, r->file);
        r->at = r->buffer;
        r->end = r->buffer + n;
        r->n_read += n;
        me_progress_reach(r->part, r->n_read);
        if (n == 0) {
            r->failed_to_read = ferror(r->file) != 0;
            return END_OF_TEXT;
        }
    }
    return (unsigned char)*r->at;
}

static int peek_word(me_json_reader *r)
{
    int c = peek(r);
    while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        r->line += c == '\n' ? 1 : 0;
        r->at++;
        c = peek(r);
    }
    return c;
}

static void keep(me_json_reader *r, const char *text, size_t length)
{
    const size_t room =
        r->length < TEXT_BYTES - 1 ? TEXT_BYTES - 1 - r->length : 0;
    const size_t n = length < room ? length : room;
    if (n > 0) {
        memcpy(r->text + r->length, text, n);
        r->text[r->length + n] = '\0';
    }
    r->length += length;
}

static me_status read_hex(me_json_reader *r, me_diag *diag)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        const int c = peek(r);
        const char *digits = "0123456789abcdef";
        const char *digit =
            c > 0 ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
        if (digit == NULL) {
            return bad(r, diag, "\\u needs four hexadecimal digits");
        }
        code = code * 16 + (unsigned)(digit - digits);
        r->at++;
    }
    const char c = (char)code;
    if (code < 0x80) {
        keep(r, &c, 1);
    } else {
        keep(r, "\xEF\xBF\xBD", 3);
    }
    return ME_OK;
}

static me_status read_escape(me_json_reader *r, me_diag *diag)
{
    static const char names[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const int c = peek(r);
    if (c == 'u') {
        r->at++;
        return read_hex(r, diag);
    }
    const char *name = c > 0 ? strchr(names, c) : NULL;
    if (name == NULL) {
        return bad(r, diag, "a string has an unknown escape");
    }
    keep(r, &meant[name - names], 1);
    r->at++;
    return ME_OK;
}

/** From behind the first quote to behind the last one. */
static me_status read_string(me_json_reader *r, me_diag *diag)
{
    r->length = 0;
    r->text[0] = '\0';
    for (;;) {
        const int c = peek(r);
        if (c == END_OF_TEXT) {
            return bad(r, diag, "a string has no end");
        }
        const char *from = r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' &&
               (unsigned char)*r->at >= ' ') {
            r->at++;
        }
        keep(r, from, (size_t)(r->at - from));
        if (r->at == r->end) {
            continue;
        }
        const char stop = *r->at;
        if (stop != '"' && stop != '\\') {
            return bad(r, diag, "a string has a control character");
        }
        r->at++;
        if (stop == '"') {
            return ME_OK;
        }
        const me_status status = read_escape(r, diag);
        if (status != ME_OK) {
            return status;
        }
    }
}

/** The letters, digits and signs that follow, as one word. */
static void read_word(me_json_reader *r)
{
    r->length = 0;
    r->text[0] = '\0';
    for (int c = peek(r); c != END_OF_TEXT; c = peek(r)) {
        const bool is_part = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                             (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
                             c == '.';
        if (!is_part) {
            return;
        }
        const char part = (char)c;
        keep(r, &part, 1);
        r->at++;
    }
}

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

static bool is_number(const char *text)
{
    const char *at = text + (*text == '-' ? 1 : 0);
    const char *whole = at;
    at = skip_digits(at);
    if (at == whole || (*whole == '0' && at > whole + 1)) {
        return false;
    }
    if (*at == '.') {
        const char *fraction = ++at;
        at = skip_digits(at);
        if (at == fraction) {
            return false;
        }
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        const char *exponent = at;
        at = skip_digits(at);
        if (at == exponent) {
            return false;
        }
    }
    return *at == '\0';
}

static me_status read_plain(me_json_reader *r, me_diag *diag,
                            me_json_kind *kind_out)
{
    static const struct {
        const char *word;
        me_json_kind kind;
    } words[] = {{"true", ME_JSON_TRUE},
                 {"false", ME_JSON_FALSE},
                 {"null", ME_JSON_NULL}};

    read_word(r);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(r->text, words[i].word) == 0) {
            *kind_out = words[i].kind;
            return ME_OK;
        }
    }
    *kind_out = ME_JSON_NUMBER;
    return r->length < TEXT_BYTES && is_number(r->text)
               ? ME_OK
               : bad(r, diag, "a value was expected");
}

static void after_value(me_json_reader *r)
{
    r->expected = r->depth == 0 ? NOTHING : A_COMMA_OR_END;
}

static me_status read_value(me_json_reader *r, int c, me_diag *diag,
                            me_json_kind *kind_out)
{
    if (c == '{' || c == '[') {
        if (r->depth == MAX_DEPTH) {
            return bad(r, diag, "values are nested too deep");
        }
        r->at++;
        r->is_object[r->depth++] = c == '{';
        r->expected = c == '{' ? A_KEY_OR_END : A_VALUE_OR_END;
        *kind_out = c == '{' ? ME_JSON_OBJECT : ME_JSON_ARRAY;
        return ME_OK;
    }
    me_status status = ME_OK;
    if (c == '"') {
        r->at++;
        *kind_out = ME_JSON_STRING;
        status = read_string(r, diag);
    } else {
        status = read_plain(r, diag, kind_out);
    }
    after_value(r);
    return status;
}

static me_status read_key(me_json_reader *r, int c, me_diag *diag)
{
    if (c != '"') {
        return bad(r, diag, "a key was expected");
    }
    r->at++;
    const me_status status = read_string(r, diag);
    if (status != ME_OK) {
        return status;
    }
    if (peek_word(r) != ':') {
        return bad(r, diag, "a key has no colon behind it");
    }
    r->at++;
    r->expected = A_VALUE;
    return ME_OK;
}

/** Close what is open if that is what comes. */
static bool close_at(me_json_reader *r, int c, me_json_kind *kind_out)
{
    const bool is_object = r->depth > 0 && r->is_object[r->depth - 1];
    if (r->depth == 0 || c != (is_object ? '}' : ']')) {
        return false;
    }
    r->at++;
    r->depth--;
    after_value(r);
    *kind_out = is_object ? ME_JSON_OBJECT_END : ME_JSON_ARRAY_END;
    return true;
}

static me_status read_token(me_json_reader *r, me_diag *diag,
                            me_json_kind *kind_out)
{
    int c = peek_word(r);
    if (r->expected == NOTHING) {
        *kind_out = ME_JSON_END;
        return c == END_OF_TEXT && !r->failed_to_read
                   ? ME_OK
                   : bad(r, diag, "something follows its end");
    }
    if (c == END_OF_TEXT) {
        return bad(r, diag, "it ends too early");
    }
    const bool can_end = r->expected == A_VALUE_OR_END ||
                         r->expected == A_KEY_OR_END ||
                         r->expected == A_COMMA_OR_END;
    if (can_end && close_at(r, c, kind_out)) {
        return ME_OK;
    }
    if (r->expected == A_COMMA_OR_END) {
        if (c != ',') {
            return bad(r, diag, "a comma was expected");
        }
        r->at++;
        r->expected = r->is_object[r->depth - 1] ? A_KEY : A_VALUE;
        c = peek_word(r);
    }
    if (r->expected == A_KEY || r->expected == A_KEY_OR_END) {
        *kind_out = ME_JSON_KEY;
        return read_key(r, c, diag);
    }
    return read_value(r, c, diag, kind_out);
}

me_status me_json_next(me_json_reader *reader, me_diag *diag,
                       me_json_token *token_out)
{
    *token_out = (me_json_token){.kind = ME_JSON_END, .text = reader->text};
    const me_status status = read_token(reader, diag, &token_out->kind);
    token_out->is_cut = reader->length >= TEXT_BYTES;
    return status;
}

me_status me_json_skip(me_json_reader *reader, me_diag *diag,
                       const me_json_token *token)
{
    if (token->kind != ME_JSON_OBJECT && token->kind != ME_JSON_ARRAY) {
        return ME_OK;
    }
    const size_t depth = reader->depth - 1;
    me_json_kind kind = ME_JSON_END;
    me_status status = ME_OK;
    while (status == ME_OK && reader->depth > depth) {
        status = read_token(reader, diag, &kind);
    }
    return status;
}

bool me_json_whole_number(const me_json_token *token, uint64_t *number_out)
{
    uint64_t number = 0;
    if (token->kind != ME_JSON_NUMBER ||
        me_parse_u64(token->text, &number) != ME_OK || number > INT64_MAX) {
        return false;
    }
    *number_out = number;
    return true;
}
