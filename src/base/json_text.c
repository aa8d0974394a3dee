/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json_text.h"

me_status me_json_parse(const char *where, const char *text, size_t length,
                        me_diag *diag, json_t **root_out)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (root != NULL) {
        *root_out = root;
        return ME_OK;
    }
    if (json_error_code(&error) == json_error_out_of_memory) {
        return me_fail_at(diag, ME_ERR_NOMEM, where, 0, "no memory to read it");
    }
    return me_fail_at(diag, ME_ERR_SYNTAX, where, error.line, "%s, column %d",
                      error.text, error.column);
}
