/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pickle_text.h"

#include "base/alloc.h"
#include "base/pickle.h"

enum {
    KEPT_BYTES = 1 << 14 /* of a text in memory */
};

/** Bytes of the temporary file. */
typedef struct span {
    uint64_t offset;
    uint64_t length;
} span;

struct me_pickle_text {
    uint32_t holders;
    bool is_object;
    bool is_closed;
    uint8_t class_number;
    uint32_t n_of[ME_PICKLE_CLASSES]; /**< that were appended */
    span *spans;                      /**< what it begins with */
    uint32_t n_spans;
    uint32_t capacity;
    me_str tail; /**< what follows */
};

me_pickle_text *me_pickle_text_create(bool is_object)
{
    me_pickle_text *t = me_alloc(1, sizeof *t, "base.pickle");
    if (t != NULL) {
        t->holders = 1;
        t->is_object = is_object;
        t->class_number = ME_PICKLE_NO_CLASS;
    }
    return t;
}

void me_pickle_text_retain(me_pickle_text *text)
{
    text->holders++;
}

void me_pickle_text_release(me_pickle_text *text)
{
    if (text != NULL && --text->holders == 0) {
        me_free(text->spans);
        me_str_fini(&text->tail);
        me_free(text);
    }
}

bool me_pickle_text_is_object(const me_pickle_text *text)
{
    return text->is_object;
}

void me_pickle_text_close(me_pickle_text *text)
{
    text->is_closed = true;
}

bool me_pickle_text_is_closed(const me_pickle_text *text)
{
    return text->is_closed;
}

void me_pickle_text_lower_class(me_pickle_text *text, uint8_t class_number)
{
    if (class_number < text->class_number) {
        text->class_number = class_number;
    }
}

uint8_t me_pickle_text_class(const me_pickle_text *text)
{
    return text->class_number;
}

uint32_t me_pickle_text_count(const me_pickle_text *text, uint8_t class_number)
{
    return text->n_of[class_number];
}

bool me_pickle_text_is_empty(const me_pickle_text *text)
{
    return text->n_spans == 0 && text->tail.length == 0;
}

static me_status add_span(me_pickle_text *t, span s)
{
    span *last = t->n_spans > 0 ? &t->spans[t->n_spans - 1] : NULL;
    if (last != NULL && last->offset + last->length == s.offset) {
        last->length += s.length;
        return ME_OK;
    }
    span *grown = me_grow(t->spans, t->n_spans, &t->capacity, sizeof *grown,
                          "base.pickle");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    t->spans = grown;
    t->spans[t->n_spans++] = s;
    return ME_OK;
}

/** What lies in memory goes to the file. */
static me_status flush_tail(me_pickle_text *t, me_pickle_spool *spool)
{
    const size_t length = t->tail.length;
    if (length == 0) {
        return ME_OK;
    }
    if (fwrite(me_str_text(&t->tail), 1, length, spool->file) != length) {
        return ME_ERR_IO;
    }
    const span s = {spool->bytes, length};
    spool->bytes += length;
    t->tail.length = 0;
    return add_span(t, s);
}

static me_status spend(me_pickle_spool *spool, uint64_t bytes)
{
    if (bytes > spool->budget) {
        return ME_ERR_CAPACITY;
    }
    spool->budget -= bytes;
    return ME_OK;
}

me_status me_pickle_text_append(me_pickle_text *text, me_pickle_spool *spool,
                                const char *piece, size_t length)
{
    me_status status = spend(spool, length);
    if (status != ME_OK) {
        return status;
    }
    me_str_append_n(&text->tail, piece, length);
    status = me_str_status(&text->tail);
    return status == ME_OK && text->tail.length > KEPT_BYTES
               ? flush_tail(text, spool)
               : status;
}

me_status me_pickle_text_append_text(me_pickle_text *text,
                                     me_pickle_spool *spool,
                                     const me_pickle_text *part)
{
    if (part->class_number < ME_PICKLE_CLASSES) {
        text->n_of[part->class_number]++;
    }
    me_status status =
        me_pickle_text_append(text, spool, part->is_object ? "{" : "[", 1);
    if (status == ME_OK && part->n_spans > 0) {
        status = flush_tail(text, spool);
    }
    for (uint32_t i = 0; status == ME_OK && i < part->n_spans; i++) {
        status = spend(spool, part->spans[i].length);
        if (status == ME_OK) {
            status = add_span(text, part->spans[i]);
        }
    }
    if (status == ME_OK) {
        status = me_pickle_text_append(text, spool, me_str_text(&part->tail),
                                       part->tail.length);
    }
    return status == ME_OK ? me_pickle_text_append(
                                 text, spool, part->is_object ? "}" : "]", 1)
                           : status;
}

static me_status copy_span(FILE *from, span s, FILE *out)
{
    char buffer[BUFSIZ];
    if (fseek(from, (long)s.offset, SEEK_SET) != 0) {
        return ME_ERR_IO;
    }
    while (s.length > 0) {
        const size_t n =
            s.length < sizeof buffer ? (size_t)s.length : sizeof buffer;
        if (fread(buffer, 1, n, from) != n || fwrite(buffer, 1, n, out) != n) {
            return ME_ERR_IO;
        }
        s.length -= n;
    }
    return ME_OK;
}

me_status me_pickle_text_write(const me_pickle_text *text,
                               me_pickle_spool *spool, FILE *out)
{
    me_status status =
        fputc(text->is_object ? '{' : '[', out) != EOF ? ME_OK : ME_ERR_IO;
    for (uint32_t i = 0; status == ME_OK && i < text->n_spans; i++) {
        status = copy_span(spool->file, text->spans[i], out);
    }
    if (status == ME_OK &&
        (fwrite(me_str_text(&text->tail), 1, text->tail.length, out) !=
             text->tail.length ||
         fputc(text->is_object ? '}' : ']', out) == EOF)) {
        status = ME_ERR_IO;
    }
    return status;
}
