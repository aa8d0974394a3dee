/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json_object.h"

#include <string.h>

static me_status read_field(me_json_reader *reader, me_diag *diag,
                            me_json_field *f, void *self)
{
    me_json_token token;
    me_status status = me_json_next(reader, diag, &token);
    if (status != ME_OK) {
        return status;
    }
    if (f->is_there) {
        return me_fail_at(diag, ME_ERR_SYNTAX, me_json_reader_name(reader), 0,
                          "an object has %s twice", f->key);
    }
    f->is_there = true;
    if (f->read != NULL) {
        return f->read(self, diag, &token);
    }
    f->is_number = me_json_whole_number(&token, &f->number);
    const size_t length = strlen(token.text);
    if (token.kind == ME_JSON_STRING && length < sizeof f->word) {
        memcpy(f->word, token.text, length + 1);
    }
    return me_json_skip(reader, diag, &token);
}

static me_status skip_value(me_json_reader *reader, me_diag *diag)
{
    me_json_token token;
    const me_status status = me_json_next(reader, diag, &token);
    return status == ME_OK ? me_json_skip(reader, diag, &token) : status;
}

me_status me_json_read_object(me_json_reader *reader, me_diag *diag,
                              me_json_field *fields, size_t n_fields,
                              void *self)
{
    for (;;) {
        me_json_token token;
        me_status status = me_json_next(reader, diag, &token);
        if (status != ME_OK || token.kind == ME_JSON_OBJECT_END) {
            return status;
        }
        size_t i = 0;
        while (i < n_fields && strcmp(fields[i].key, token.text) != 0) {
            i++;
        }
        status = i < n_fields ? read_field(reader, diag, &fields[i], self)
                              : skip_value(reader, diag);
        if (status != ME_OK) {
            return status;
        }
    }
}

me_status me_json_read_list(me_json_reader *reader, me_diag *diag,
                            me_json_read *read, void *self)
{
    me_json_token token;
    me_status status = me_json_next(reader, diag, &token);
    while (status == ME_OK && token.kind != ME_JSON_ARRAY_END) {
        status = read(self, diag, &token);
        if (status == ME_OK) {
            status = me_json_next(reader, diag, &token);
        }
    }
    return status;
}
