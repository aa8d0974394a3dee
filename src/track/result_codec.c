/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/assert.h"
#include "track/codec.h"
#include "track/result.h"

#include <string.h>

static const char format_magic[8] = "memestRR";

static void code_fields(me_codec *c, const me_schema *schema, void *item,
                        uint32_t index);

/** The items of an array, and when decoding the array. */
static void code_items(me_codec *c, const me_field *field, void *record)
{
    char *const bytes = record;
    uint32_t *count = (void *)(bytes + field->count);
    const size_t size = field->of->size;
    void *items = NULL;
    memcpy(&items, bytes + field->offset, sizeof items);
    // each takes more numbers than its schema has rows
    items = me_code_array(c, items, count, size, (uint32_t)field->of->n_fields);
    memcpy(bytes + field->offset, &items, sizeof items);
    for (uint32_t i = 0; i < *count; i++) {
        code_fields(c, field->of, (char *)items + i * size, i);
    }
}

static void code_parent(me_codec *c, uint32_t *parent, uint32_t index)
{
    me_code_u32(c, parent);
    if (*parent != UINT32_MAX && *parent >= index) {
        me_codec_refuse(c, ME_ERR_SYNTAX); // parents come first
    }
}

static void code_numbers(me_codec *c, uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        me_code_u64(c, &numbers[i]);
    }
}

static void code_field(me_codec *c, const me_field *field, void *record,
                       uint32_t index)
{
    char *const bytes = (char *)record + field->offset;
    void *const value = bytes;
    switch (field->kind) {
    case ME_FIELD_BYTES:
    case ME_FIELD_COUNT: me_code_u64(c, value); break;
    case ME_FIELD_U32: me_code_u32(c, value); break;
    case ME_FIELD_PARENT: code_parent(c, value, index); break;
    case ME_FIELD_I32:
    case ME_FIELD_INDEX: me_code_i32(c, value); break;
    case ME_FIELD_BOOL: me_code_bool(c, value); break;
    case ME_FIELD_NAME: me_code_name(c, value); break;
    case ME_FIELD_TEXT: me_code_text(c, value); break;
    case ME_FIELD_CATEGORY: me_code_u8(c, value, ME_CATEGORY_COUNT); break;
    case ME_FIELD_BY_CATEGORY: code_numbers(c, value, ME_CATEGORY_COUNT); break;
    case ME_FIELD_RECORD: code_fields(c, field->of, value, 0); break;
    case ME_FIELD_ITEMS: code_items(c, field, record); break;
    case ME_FIELD_ROWS:
        for (size_t i = 0; i < field->count; i++) {
            code_fields(c, field->of, bytes + i * field->of->size, 0);
        }
        break;
    default: ME_ASSERT(false); break; // no other kind is sent yet
    }
}

static void code_fields(me_codec *c, const me_schema *schema, void *item,
                        uint32_t index)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        if ((schema->fields[i].left_out & ME_FIELD_NOT_SENT) == 0) {
            code_field(c, &schema->fields[i], item, index);
        }
    }
}

/** FNV-1a of what is sent: a member more is another format. */
static uint32_t fingerprint(const me_schema *schema, uint32_t hash)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const me_field *field = &schema->fields[i];
        if ((field->left_out & ME_FIELD_NOT_SENT) != 0) {
            continue;
        }
        hash = (hash ^ field->kind) * UINT32_C(16777619);
        for (const char *c = field->key; *c != '\0'; c++) {
            hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
        }
        hash = field->of == NULL ? hash : fingerprint(field->of, hash);
    }
    return hash;
}

static void code_head(me_codec *c)
{
    const uint32_t common =
        fingerprint(&me_result_schema, UINT32_C(2166136261));
    const uint32_t expected = fingerprint(&me_result_optional_schema, common);
    uint32_t version = expected;
    if (!c->is_decoding) {
        me_str_append_n(&c->out, format_magic, sizeof format_magic);
    } else {
        const unsigned char *magic = me_codec_take(c, sizeof format_magic);
        if (magic != NULL &&
            memcmp(magic, format_magic, sizeof format_magic) != 0) {
            me_codec_refuse(c, ME_ERR_SYNTAX);
        }
    }
    me_code_u32(c, &version);
    if (version != expected) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
    }
}

static void code_result(me_codec *c, me_rank_result *result)
{
    code_head(c);
    code_fields(c, &me_result_schema, result, 0);
    code_fields(c, &me_result_optional_schema, result, 0);
}

me_status me_rank_result_encode(const me_rank_result *result,
                                unsigned char **bytes_out, size_t *size_out)
{
    me_codec c = {0};
    me_rank_result copy = *result; // encoding changes nothing
    code_result(&c, &copy);
    return me_codec_give(&c, bytes_out, size_out);
}

me_status me_rank_result_decode(const unsigned char *bytes, size_t size,
                                me_diag *diag, me_rank_result **result_out)
{
    me_rank_result *result = me_rank_result_create();
    if (result == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a rank's result");
    }
    me_codec c = {.is_decoding = true,
                  .bytes = bytes,
                  .left = size,
                  .arena = result->arena};
    code_result(&c, result);
    const me_status status = me_codec_end(&c, size, "a rank's result", diag);
    if (status == ME_OK) {
        *result_out = result;
    } else {
        me_rank_result_destroy(result);
    }
    return status;
}
