/**
 * @file
 * Values as bytes: fixed widths, little-endian. One description of a format
 * serves both directions: each function writes its value when encoding and
 * replaces it when decoding. Nothing happens after the first failure. For the
 * files of this folder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_CODEC_H
#define MEMEST_TRACK_CODEC_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct me_codec {
    bool is_decoding;
    me_str out;                 /**< encoding */
    const unsigned char *bytes; /**< decoding: what is left of the input */
    size_t left;
    me_arena *arena; /**< decoding: of what is made */
    me_status status;
} me_codec;

/** Hand out what was encoded. @return ME_OK, ME_ERR_NOMEM */
me_status me_codec_give(me_codec *c, unsigned char **bytes_out,
                        size_t *size_out);
/** What came of decoding @p size bytes of @p what, all of which must be taken.
 *  @return ME_OK, ME_ERR_SYNTAX, ME_ERR_NOMEM */
me_status me_codec_end(const me_codec *c, size_t size, const char *what,
                       me_diag *diag);
/** Fail with @p status, if nothing failed before. */
void me_codec_refuse(me_codec *c, me_status status);
/** The next @p count bytes of the input; NULL if there are none. */
const unsigned char *me_codec_take(me_codec *c, size_t count);
void me_code_u64(me_codec *c, uint64_t *value);
void me_code_u32(me_codec *c, uint32_t *value);
void me_code_i32(me_codec *c, int32_t *value);
void me_code_i64(me_codec *c, int64_t *value);
void me_code_bool(me_codec *c, bool *value);
/** A number below @p limit. */
void me_code_u8(me_codec *c, uint8_t *value, uint32_t limit);
/** A text or NULL. */
void me_code_text(me_codec *c, const char **text);
/** A text that is never NULL. */
void me_code_name(me_codec *c, const char **name);
/**
 * The number of items of an array, and when decoding the array: refused if
 * the input cannot hold that many of at least @p least_fields fields.
 *
 * @return the items to code, one by one
 */
void *me_code_array(me_codec *c, void *items, uint32_t *count, size_t size,
                    uint32_t least_fields);

#endif /* MEMEST_TRACK_CODEC_H */
