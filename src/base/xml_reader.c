/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/xml_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

me_xml_reader me_xml_begin(const char *where, const char *text, size_t length)
{
    return (me_xml_reader){
        .where = where, .at = text, .end = text + length, .line = 1};
}

me_status me_xml_fail(const me_xml_reader *reader, me_diag *diag,
                      me_status status, const char *format, ...)
{
    char text[ME_DIAG_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return me_fail_at(diag, status, reader->where, reader->line, "%s", text);
}

static me_status fail(const me_xml_reader *r, me_diag *diag, const char *what)
{
    return me_xml_fail(r, diag, ME_ERR_SYNTAX, "not XML: %s", what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/** The next byte, which stays there; NUL at the end. */
static char peek(const me_xml_reader *r)
{
    if (r->at == r->end) {
        return '\0';
    }
    return *r->at;
}

static void advance(me_xml_reader *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        r->line += r->at[i] == '\n';
    }
    r->at += n;
}

static void skip_blanks(me_xml_reader *r)
{
    while (r->at < r->end && is_blank(*r->at)) {
        advance(r, 1);
    }
}

static bool is_at(const me_xml_reader *r, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

/** Go behind the next @p text. @return is there one? */
static bool pass(me_xml_reader *r, const char *text)
{
    while (r->at < r->end && !is_at(r, text)) {
        advance(r, 1);
    }
    const bool is_there = r->at < r->end;
    if (is_there) {
        advance(r, strlen(text));
    }
    return is_there;
}

static bool is_name(char c)
{
    return c != '\0' && !is_blank(c) && strchr("<>/=\"'&?!", c) == NULL;
}

static me_xml_span read_name(me_xml_reader *r)
{
    const char *begin = r->at;
    while (r->at < r->end && is_name(*r->at)) {
        r->at++;
    }
    return (me_xml_span){begin, (size_t)(r->at - begin)};
}

/** `<!DOCTYPE name …>`: where the type is described may be said; what it
 *  declares itself is in brackets. */
static me_status skip_type(me_xml_reader *r, me_diag *diag)
{
    while (r->at < r->end && *r->at != '>') {
        if (*r->at == '[') {
            return fail(r, diag,
                        "a document that declares its own type is "
                        "not read");
        }
        const char quote = *r->at;
        advance(r, 1);
        if (quote == '"' || quote == '\'') {
            const char quoted[] = {quote, '\0'};
            if (!pass(r, quoted)) {
                break;
            }
        }
    }
    if (peek(r) != '>') {
        return fail(r, diag, "the document's type does not end");
    }
    r->at++;
    return ME_OK;
}

/** What is no element and no text. @return was there one? */
static bool skip_other(me_xml_reader *r, me_diag *diag, me_status *status_out)
{
    const bool is_comment = is_at(r, "<!--");
    if (is_comment || is_at(r, "<?")) {
        if (!pass(r, is_comment ? "-->" : "?>")) {
            *status_out = fail(r, diag, "a comment or instruction has no end");
        }
        return true;
    }
    if (is_at(r, "<!DOCTYPE") && !r->has_root) {
        *status_out = skip_type(r, diag);
        return true;
    }
    return false;
}

static me_status read_attribute(me_xml_reader *r, me_diag *diag)
{
    if (r->n_attributes == ME_XML_ATTRIBUTES) {
        return fail(r, diag, "an element has over 64 attributes");
    }
    me_xml_attribute *a = &r->attributes[r->n_attributes];
    a->name = read_name(r);
    skip_blanks(r);
    if (a->name.length == 0 || peek(r) != '=') {
        return fail(r, diag, "an attribute is name=\"value\"");
    }
    r->at++;
    skip_blanks(r);
    const char quote = peek(r);
    if (quote != '"' && quote != '\'') {
        return fail(r, diag, "an attribute is name=\"value\"");
    }
    r->at++;
    const char *begin = r->at;
    while (r->at < r->end && *r->at != quote && *r->at != '<') {
        advance(r, 1);
    }
    if (peek(r) != quote) {
        return fail(r, diag, "an attribute's value has no end");
    }
    a->value = (me_xml_span){begin, (size_t)(r->at - begin)};
    r->at++;
    r->n_attributes++;
    return ME_OK;
}

static me_status read_open(me_xml_reader *r, me_diag *diag)
{
    r->at++;
    r->kind = ME_XML_OPEN;
    r->n_attributes = 0;
    r->name = read_name(r);
    if (r->name.length == 0) {
        return fail(r, diag, "a tag has no name");
    }
    if (r->depth == ME_XML_DEPTH || (r->depth == 0 && r->has_root)) {
        return fail(r, diag,
                    r->depth == 0 ? "a second root element"
                                  : "elements are nested too deep");
    }
    for (skip_blanks(r); peek(r) != '>' && peek(r) != '/'; skip_blanks(r)) {
        if (r->at == r->end) {
            return fail(r, diag, "a tag has no end");
        }
        const me_status status = read_attribute(r, diag);
        if (status != ME_OK) {
            return status;
        }
    }
    r->is_empty_tag = *r->at == '/';
    r->at += r->is_empty_tag;
    if (peek(r) != '>') {
        return fail(r, diag, "a tag has no end");
    }
    r->at++;
    r->open[r->depth++] = r->name;
    r->has_root = true;
    return ME_OK;
}

static bool is_same(me_xml_span a, me_xml_span b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static me_status read_close(me_xml_reader *r, me_diag *diag)
{
    r->at += 2;
    r->kind = ME_XML_CLOSE;
    r->name = read_name(r);
    skip_blanks(r);
    if (peek(r) != '>') {
        return fail(r, diag, "a tag has no end");
    }
    r->at++;
    if (r->depth == 0 || !is_same(r->name, r->open[r->depth - 1])) {
        return fail(r, diag, "an element ends that is not open");
    }
    r->depth--;
    return ME_OK;
}

me_status me_xml_next(me_xml_reader *reader, me_diag *diag)
{
    me_xml_reader *r = reader;
    if (r->is_empty_tag) {
        r->is_empty_tag = false;
        r->kind = ME_XML_CLOSE;
        r->depth--;
        return ME_OK;
    }
    me_status status = ME_OK;
    do {
        skip_blanks(r);
    } while (r->at < r->end && skip_other(r, diag, &status) && status == ME_OK);
    if (status != ME_OK) {
        return status;
    }
    if (r->at == r->end) {
        r->kind = ME_XML_END;
        return r->depth == 0 && r->has_root
                   ? ME_OK
                   : fail(r, diag, "it ends too early");
    }
    if (*r->at == '<') {
        return r->end - r->at > 1 && r->at[1] == '/' ? read_close(r, diag)
                                                     : read_open(r, diag);
    }
    const char *begin = r->at;
    while (r->at < r->end && *r->at != '<') {
        advance(r, 1);
    }
    r->kind = ME_XML_TEXT;
    r->text = (me_xml_span){begin, (size_t)(r->at - begin)};
    return r->depth > 0 ? ME_OK : fail(r, diag, "text stands outside of it");
}

me_status me_xml_skip(me_xml_reader *reader, me_diag *diag)
{
    const size_t depth = reader->depth - 1;
    me_status status = ME_OK;
    while (status == ME_OK && reader->depth > depth) {
        status = me_xml_next(reader, diag);
    }
    return status;
}

bool me_xml_is(me_xml_span span, const char *text)
{
    return is_same(span, (me_xml_span){text, strlen(text)});
}

me_xml_span me_xml_attribute_of(const me_xml_reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->n_attributes; i++) {
        if (me_xml_is(reader->attributes[i].name, name)) {
            return reader->attributes[i].value;
        }
    }
    return (me_xml_span){NULL, 0};
}

/** The character of an entity at the front of a span, and its length; 0: it is
 * none of XML's five. */
static size_t find_entity(me_xml_span span, char *c_out)
{
    static const struct {
        const char *text;
        char c;
    } entities[] = {{"&lt;", '<'},
                    {"&gt;", '>'},
                    {"&amp;", '&'},
                    {"&quot;", '"'},
                    {"&apos;", '\''}};

    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        const size_t n = strlen(entities[i].text);
        if (span.length >= n && memcmp(span.text, entities[i].text, n) == 0) {
            *c_out = entities[i].c;
            return n;
        }
    }
    return 0;
}

void me_xml_copy(me_xml_span span, char *text_out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < span.length && n + 1 < size;) {
        const me_xml_span left = {span.text + i, span.length - i};
        text_out[n] = *left.text;
        const size_t entity = find_entity(left, &text_out[n]);
        i += entity == 0 ? 1 : entity;
        n++;
    }
    text_out[n] = '\0';
}
