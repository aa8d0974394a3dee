/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/schema.h"

#include "track/result.h"

#include <string.h>

static const void *member(const me_field *field, const void *record)
{
    return (const char *)record + field->offset;
}

bool me_field_is_there(const me_field *field, const void *record)
{
    return field->is_there == NULL || field->is_there(record);
}

uint64_t me_field_bytes(const me_field *field, const void *record)
{
    if (!me_field_is_there(field, record)) {
        return ME_BYTES_UNKNOWN;
    }
    return field->derive != NULL ? field->derive(record)
                                 : *(const uint64_t *)member(field, record);
}

const void *me_field_at(const me_field *field, const void *record)
{
    if (field->find != NULL) {
        return field->find(record);
    }
    if (field->kind != ME_FIELD_ITEMS) {
        return member(field, record);
    }
    const void *items = NULL;
    memcpy(&items, member(field, record), sizeof items);
    return items;
}

uint32_t me_field_count(const me_field *field, const void *record)
{
    return field->kind == ME_FIELD_ROWS
               ? (uint32_t)field->count
               : *(const uint32_t *)(const void *)((const char *)record +
                                                   field->count);
}
