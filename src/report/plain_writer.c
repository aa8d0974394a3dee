/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/plain_writer.h"

#include "base/assert.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    BATCH = 1000 /* values of a list at once, as Python's pickle has it */
};

/** See pickletools.opcodes. */
enum {
    PROTO = 0x80,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    LONG1 = 0x8a,
    PROTOCOL = 2
};

static void put_byte(me_plain_writer *w, int byte)
{
    (void)fputc(byte, w->file);
}

static void put_bytes(me_plain_writer *w, uint64_t number, int n)
{
    for (int i = 0; i < n; i++) {
        put_byte(w, (int)(number & 0xffU));
        number >>= 8U;
    }
}

void me_plain_begin(me_plain_writer *w, FILE *file, bool is_pickle)
{
    memset(w, 0, sizeof *w);
    w->file = file;
    w->is_pickle = is_pickle;
    if (is_pickle) {
        put_byte(w, PROTO);
        put_byte(w, PROTOCOL);
    }
}

void me_plain_end(me_plain_writer *w)
{
    ME_ASSERT(w->depth == 0);
    put_byte(w, w->is_pickle ? '.' : '\n');
}

/** Before each value: what parts it from the one before. */
static void part(me_plain_writer *w)
{
    if (w->depth == 0 || w->is_value) {
        w->is_value = false;
        return;
    }
    uint32_t *n = &w->n_items[w->depth - 1];
    if (!w->is_pickle && *n > 0) {
        put_byte(w, ',');
    } else if (w->is_pickle && *n > 0 && *n % BATCH == 0) {
        put_byte(w, w->is_object[w->depth - 1] ? 'u' : 'e');
        put_byte(w, '(');
    }
    ++*n;
}

void me_plain_open(me_plain_writer *w, bool is_object)
{
    part(w);
    ME_ASSERT(w->depth < ME_PLAIN_DEPTH);
    put_byte(w, is_object == w->is_pickle ? (is_object ? '}' : '[')
                                          : (is_object ? '{' : ']'));
    if (w->is_pickle) {
        put_byte(w, '(');
    }
    w->is_object[w->depth] = is_object;
    w->n_items[w->depth++] = 0;
}

void me_plain_close(me_plain_writer *w)
{
    const bool is_object = w->is_object[--w->depth];
    put_byte(w,
             w->is_pickle ? (is_object ? 'u' : 'e') : (is_object ? '}' : ']'));
}

static void write_json_text(me_plain_writer *w, const char *text)
{
    put_byte(w, '"');
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c < ' ' || c == '"' || c == '\\') {
            (void)fprintf(w->file, "\\u%04x", (unsigned)c);
        } else {
            put_byte(w, c);
        }
    }
    put_byte(w, '"');
}

static void write_text(me_plain_writer *w, const char *text)
{
    if (!w->is_pickle) {
        write_json_text(w, text);
        return;
    }
    const size_t length = strlen(text);
    put_byte(w, 'X');
    put_bytes(w, length, 4);
    (void)fwrite(text, 1, length, w->file);
}

static void write_word(me_plain_writer *w, const char *word)
{
    int i = 0;
    while (i < w->n_words && w->words[i] != word) {
        i++;
    }
    if (!w->is_pickle || i == ME_PLAIN_WORDS) {
        write_text(w, word);
    } else if (i < w->n_words) {
        put_byte(w, w->places[i] <= UINT8_MAX ? 'h' : 'j');
        put_bytes(w, w->places[i], w->places[i] <= UINT8_MAX ? 1 : 4);
    } else {
        write_text(w, word);
        w->words[w->n_words] = word;
        w->places[w->n_words++] = me_plain_put(w);
    }
}

void me_plain_key(me_plain_writer *w, const char *key)
{
    part(w);
    write_word(w, key);
    if (!w->is_pickle) {
        put_byte(w, ':');
    }
    w->is_value = true;
}

void me_plain_text(me_plain_writer *w, const char *text)
{
    part(w);
    write_text(w, text);
}

void me_plain_word(me_plain_writer *w, const char *word)
{
    part(w);
    write_word(w, word);
}

void me_plain_number(me_plain_writer *w, uint64_t number)
{
    part(w);
    if (!w->is_pickle) {
        (void)fprintf(w->file, "%" PRIu64, number);
    } else if (number <= UINT8_MAX) {
        put_byte(w, 'K');
        put_bytes(w, number, 1);
    } else if (number <= INT32_MAX) {
        put_byte(w, 'J');
        put_bytes(w, number, 4);
    } else {
        const int n = number > INT64_MAX ? 9 : 8; // of two's complement
        put_byte(w, LONG1);
        put_byte(w, n);
        put_bytes(w, number, n);
    }
}

void me_plain_real(me_plain_writer *w, double number)
{
    part(w);
    if (!w->is_pickle) {
        (void)fprintf(w->file, isfinite(number) ? "%.17g" : "null", number);
        return;
    }
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    put_byte(w, 'G');
    for (unsigned shift = 64; shift > 0; shift -= 8) {
        put_byte(w, (int)(bits >> (shift - 8) & 0xffU));
    }
}

void me_plain_bool(me_plain_writer *w, bool is_true)
{
    part(w);
    if (w->is_pickle) {
        put_byte(w, is_true ? NEWTRUE : NEWFALSE);
    } else {
        (void)fputs(is_true ? "true" : "false", w->file);
    }
}

uint32_t me_plain_put(me_plain_writer *w)
{
    if (w->is_pickle) {
        put_byte(w, w->n_put <= UINT8_MAX ? 'q' : 'r');
        put_bytes(w, w->n_put, w->n_put <= UINT8_MAX ? 1 : 4);
    }
    return w->n_put++;
}

void me_plain_get(me_plain_writer *w, uint32_t place)
{
    part(w);
    put_byte(w, place <= UINT8_MAX ? 'h' : 'j');
    put_bytes(w, place, place <= UINT8_MAX ? 1 : 4);
}
