/* SPDX-License-Identifier: BSD-3-Clause */
/* SentencePiece's models are protocol buffers: fields, each a tag (its number
 * times 8 and how its value is written) and the value. */
#include "base/alloc.h"
#include "base/input.h"
#include "config/tokenizer/token_files.h"

#include <stdio.h>

enum {
    WIRE_VARINT = 0,
    WIRE_64_BITS = 1,
    WIRE_BYTES = 2,
    WIRE_32_BITS = 5,
    FIELD_PIECES = 1,
    FIELD_PIECE = 1,           /* of a piece: its text */
    PIECE_MAX_BYTES = 1 << 16, /* with its score and kind */
    VARINT_SHIFT = 7,
    VARINT_MORE = 0x80
};

/** A model that is being read. */
typedef struct model {
    FILE *file;
    const char *path;
    unsigned char piece[PIECE_MAX_BYTES];
    me_diag *diag;
} model;

static me_status fail_model(const model *m)
{
    return me_fail(m->diag, ME_ERR_SYNTAX,
                   "%s: no SentencePiece model, or one that was cut off, at "
                   "byte %ld",
                   m->path, ftell(m->file));
}

/** A number in groups of seven bits, the lowest first. False at the end. */
static bool read_varint(FILE *file, uint64_t *value_out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += VARINT_SHIFT) {
        const int c = getc(file);
        if (c == EOF) {
            return false;
        }
        value |= (uint64_t)(c & (VARINT_MORE - 1)) << shift;
        if ((c & VARINT_MORE) == 0) {
            *value_out = value;
            return true;
        }
    }
    return false;
}

/** The text of a piece, which comes first in it. */
static void see_piece(me_token_set *set, const unsigned char *piece,
                      size_t length)
{
    const size_t head = 2; // tag, and a length that fits into seven bits
    if (length < head || piece[0] != (FIELD_PIECE << 3 | WIRE_BYTES) ||
        (piece[1] & VARINT_MORE) != 0 || length - head < piece[1]) {
        return;
    }
    me_token_set_see(set, (const char *)piece + head, piece[1]);
}

static me_status read_piece(model *m, me_token_set *set, uint64_t length)
{
    if (length > sizeof m->piece ||
        fread(m->piece, 1, (size_t)length, m->file) != length ||
        set->n_tokens >= ME_TOKEN_ID_MAX) {
        return fail_model(m);
    }
    see_piece(set, m->piece, (size_t)length);
    return me_token_set_add(set, m->path, set->n_tokens, m->diag);
}

static me_status skip_bytes(model *m, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++) {
        if (getc(m->file) == EOF) {
            return fail_model(m);
        }
    }
    return ME_OK;
}

static me_status read_field(model *m, me_token_set *set, uint64_t tag)
{
    uint64_t value = 0;
    switch (tag & 7) {
    case WIRE_VARINT:
        return read_varint(m->file, &value) ? ME_OK : fail_model(m);
    case WIRE_64_BITS: return skip_bytes(m, sizeof(uint64_t));
    case WIRE_32_BITS: return skip_bytes(m, sizeof(uint32_t));
    case WIRE_BYTES:
        if (!read_varint(m->file, &value)) {
            return fail_model(m);
        }
        return tag >> 3 == FIELD_PIECES ? read_piece(m, set, value)
                                        : skip_bytes(m, value);
    default: return fail_model(m);
    }
}

static me_status read_fields(model *m, me_token_set *set)
{
    uint64_t tag = 0;
    me_status status = ME_OK;
    while (status == ME_OK && read_varint(m->file, &tag)) {
        status = read_field(m, set, tag);
    }
    return status == ME_OK && (feof(m->file) == 0 || set->n_tokens == 0)
               ? fail_model(m)
               : status;
}

me_status me_tokens_of_sentencepiece(me_token_set *set, const char *path,
                                     me_diag *diag)
{
    model *m = me_alloc(1, sizeof *m, "a SentencePiece model");
    if (m == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "%s: no memory for a piece", path);
    }
    m->path = path;
    m->diag = diag;
    me_status status = me_input_open(path, diag, &m->file);
    if (status == ME_OK) {
        status = read_fields(m, set);
        (void)fclose(m->file);
    }
    me_free(m);
    return status;
}
