/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "model/event.h"
#include "report/json.h"

/** By categories' names. */
static json_t *make_categories(const uint64_t *bytes)
{
    json_t *object = json_object();
    for (unsigned i = 0; i < ME_CATEGORY_COUNT && object != NULL; i++) {
        object = me_json_put(object, me_category_name((me_category)i),
                             me_json_bytes(bytes[i]));
    }
    return object;
}

static json_t *make_text(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

static json_t *make_index(int32_t index)
{
    return index < 0 ? json_null() : json_integer(index);
}

static json_t *make_items(const me_field *field, const void *record)
{
    const char *item = me_field_at(field, record);
    const uint32_t count = me_field_count(field, record);
    const me_schema *of = field->of;
    json_t *array = json_array();
    for (uint32_t i = 0; i < count && array != NULL; i++, item += of->size) {
        if (field->is_shown == NULL || field->is_shown(item)) {
            array = me_json_push(array, me_json_record(of, item));
        }
    }
    return array;
}

static json_t *make_field(const me_field *field, const void *record)
{
    if (!me_field_is_there(field, record)) {
        return json_null();
    }
    const void *at = me_field_at(field, record);
    switch (field->kind) {
    case ME_FIELD_BYTES:
    case ME_FIELD_COUNT: return me_json_bytes(me_field_bytes(field, record));
    case ME_FIELD_NS: return json_integer(*(const int64_t *)at);
    case ME_FIELD_U32: return json_integer(*(const uint32_t *)at);
    case ME_FIELD_I32: return json_integer(*(const int32_t *)at);
    case ME_FIELD_INDEX: return make_index(*(const int32_t *)at);
    case ME_FIELD_BOOL: return json_boolean(*(const bool *)at);
    case ME_FIELD_NAME:
    case ME_FIELD_TEXT: return make_text(*(const char *const *)at);
    case ME_FIELD_CATEGORY:
        return make_text(me_category_name((me_category) * (const uint8_t *)at));
    case ME_FIELD_BY_CATEGORY: return make_categories(at);
    case ME_FIELD_RECORD:
        return at == NULL ? json_null() : me_json_record(field->of, at);
    case ME_FIELD_ITEMS: return make_items(field, record);
    default: break;
    }
    ME_ASSERT(false); // no other kind is in JSON yet
    return NULL;
}

json_t *me_json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *me_json_push(json_t *list, json_t *item)
{
    if (json_array_append_new(list, item) != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *me_json_add(json_t *object, const me_schema *schema, const void *item)
{
    for (size_t i = 0; i < schema->n_fields && object != NULL; i++) {
        const me_field *field = &schema->fields[i];
        const bool is_left_out = (field->left_out & ME_FIELD_NOT_JSON) != 0 ||
                                 ((field->left_out & ME_FIELD_IF_THERE) != 0 &&
                                  !me_field_is_there(field, item));
        if (!is_left_out) {
            object = me_json_put(object, field->key, make_field(field, item));
        }
    }
    return object;
}

json_t *me_json_record(const me_schema *schema, const void *item)
{
    return me_json_add(json_object(), schema, item);
}
