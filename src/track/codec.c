/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/codec.h"

#include <string.h>

enum {
    FIELD_BYTES = 8, /**< the least that any field takes */
    NO_TEXT = -1
};

void me_codec_refuse(me_codec *c, me_status status)
{
    if (c->status == ME_OK) {
        c->status = status;
    }
}

me_status me_codec_give(me_codec *c, unsigned char **bytes_out,
                        size_t *size_out)
{
    if (me_str_status(&c->out) != ME_OK) {
        me_str_fini(&c->out);
        return ME_ERR_NOMEM;
    }
    *bytes_out = (unsigned char *)c->out.text;
    *size_out = c->out.length;
    return ME_OK;
}

me_status me_codec_end(const me_codec *c, size_t size, const char *what,
                       me_diag *diag)
{
    const me_status status =
        c->status == ME_OK && c->left != 0 ? ME_ERR_SYNTAX : c->status;
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "%s of %zu bytes: %s at byte %zu", what,
                         size, me_status_text(status), size - c->left);
}

const unsigned char *me_codec_take(me_codec *c, size_t count)
{
    if (c->status != ME_OK) {
        return NULL;
    }
    if (count > c->left) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
        return NULL;
    }
    const unsigned char *bytes = c->bytes;
    c->bytes += count;
    c->left -= count;
    return bytes;
}

void me_code_u64(me_codec *c, uint64_t *value)
{
    enum {
        WIDTH = 8
    };

    if (!c->is_decoding) {
        char bytes[WIDTH];
        for (unsigned i = 0; i < WIDTH; i++) {
            bytes[i] = (char)(unsigned char)(*value >> (8 * i));
        }
        me_str_append_n(&c->out, bytes, WIDTH);
        return;
    }
    const unsigned char *bytes = me_codec_take(c, WIDTH);
    *value = 0;
    for (unsigned i = 0; bytes != NULL && i < WIDTH; i++) {
        *value |= (uint64_t)bytes[i] << (8 * i);
    }
}

void me_code_u32(me_codec *c, uint32_t *value)
{
    uint64_t wide = *value;
    me_code_u64(c, &wide);
    if (wide > UINT32_MAX) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
        wide = 0;
    }
    *value = (uint32_t)wide;
}

void me_code_i32(me_codec *c, int32_t *value)
{
    uint32_t bits = (uint32_t)*value;
    me_code_u32(c, &bits);
    *value =
        bits <= INT32_MAX ? (int32_t)bits : -(int32_t)(UINT32_MAX - bits) - 1;
}

void me_code_bool(me_codec *c, bool *value)
{
    uint32_t number = *value ? 1 : 0;
    me_code_u32(c, &number);
    if (number > 1) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
    }
    *value = number == 1;
}

void me_code_i64(me_codec *c, int64_t *value)
{
    uint64_t bits = (uint64_t)*value;
    me_code_u64(c, &bits);
    *value =
        bits <= INT64_MAX ? (int64_t)bits : -(int64_t)(UINT64_MAX - bits) - 1;
}

void me_code_u8(me_codec *c, uint8_t *value, uint32_t limit)
{
    uint32_t wide = *value;
    me_code_u32(c, &wide);
    if (wide >= limit) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
        wide = 0;
    }
    *value = (uint8_t)wide;
}

void me_code_text(me_codec *c, const char **text)
{
    int32_t length = *text == NULL ? NO_TEXT : (int32_t)strlen(*text);
    me_code_i32(c, &length);
    if (!c->is_decoding) {
        if (*text != NULL) {
            me_str_append_n(&c->out, *text, (size_t)length);
        }
        return;
    }
    *text = NULL;
    if (length < 0) {
        if (length != NO_TEXT) {
            me_codec_refuse(c, ME_ERR_SYNTAX);
        }
        return;
    }
    const unsigned char *bytes = me_codec_take(c, (size_t)length);
    if (bytes == NULL) {
        return;
    }
    if (memchr(bytes, '\0', (size_t)length) != NULL) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
        return;
    }
    char *copy = me_arena_alloc(c->arena, (size_t)length + 1, 1);
    if (copy == NULL) {
        me_codec_refuse(c, ME_ERR_NOMEM);
        return;
    }
    memcpy(copy, bytes, (size_t)length);
    *text = copy;
}

void me_code_name(me_codec *c, const char **name)
{
    me_code_text(c, name);
    if (c->is_decoding && *name == NULL) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
        *name = "";
    }
}

void *me_code_array(me_codec *c, void *items, uint32_t *count, size_t size,
                    uint32_t least_fields)
{
    me_code_u32(c, count);
    if (!c->is_decoding) {
        return items;
    }
    if (c->status == ME_OK && *count > c->left / least_fields / FIELD_BYTES) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
    }
    if (c->status != ME_OK) {
        *count = 0;
        return NULL;
    }
    void *made = me_arena_alloc(c->arena, *count, size);
    if (made == NULL) {
        me_codec_refuse(c, ME_ERR_NOMEM);
        *count = 0;
    }
    return made;
}
