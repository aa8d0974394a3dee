/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json_text.h"

#include <stdbool.h>
#include <string.h>

/** A value, or why there is none. */
typedef struct reading {
    json_t *root;
    json_error_t error;
} reading;

static reading read_once(const char *text, size_t length)
{
    reading r = {.root = NULL};
    r.root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &r.error);
    return r;
}

static bool are_alike(const reading *a, const reading *b)
{
    if (a->root != NULL && b->root != NULL) {
        return json_equal(a->root, b->root) != 0;
    }
    return a->root == NULL && b->root == NULL &&
           a->error.position == b->error.position &&
           strcmp(a->error.text, b->error.text) == 0;
}

/** What is wrong with a text is said; of most lost requests nothing is. */
static bool lacks_memory(const reading *r)
{
    return r->root == NULL &&
           (r->error.text[0] == '\0' ||
            json_error_code(&r->error) == json_error_out_of_memory);
}

/** Jansson's lexer drops a byte of a word that it finds no room for, and reads
 * on: a lost request may be another name, or an error that is none. So all is
 * read twice, since it is not lost twice in the same place: where all requests
 * from one on fail, the second reading has no value and no reason. */
me_status me_json_parse(const char *where, const char *text, size_t length,
                        me_diag *diag, json_t **root_out)
{
    const reading first = read_once(text, length);
    const reading again = read_once(text, length);
    const bool is_lost = lacks_memory(&first) || lacks_memory(&again) ||
                         !are_alike(&first, &again);
    json_decref(again.root);
    if (is_lost) {
        json_decref(first.root);
        return me_fail_at(diag, ME_ERR_NOMEM, where, 0, "no memory to read it");
    }
    if (first.root == NULL) {
        return me_fail_at(diag, ME_ERR_SYNTAX, where, first.error.line,
                          "%s, column %d", first.error.text,
                          first.error.column);
    }
    *root_out = first.root;
    return ME_OK;
}
