/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/op_series.h"

#include "base/alloc.h"
#include "base/clean.h"

#include <string.h>

/** A series that was saved has names that somebody else made up. */
static char *copy_name(const char *name)
{
    char *copy = me_strdup(name, "op_series");
    if (copy != NULL) {
        me_text_clean(copy);
    }
    return copy;
}

me_status me_op_series_append(me_op_series *s, const char *name,
                              const me_op_memory *memory)
{
    void *rows =
        me_grow(s->rows, s->n_rows, &s->capacity, sizeof *s->rows, "op_series");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    s->rows = rows;
    char *copy = copy_name(name);
    if (copy == NULL) {
        return ME_ERR_NOMEM;
    }
    s->rows[s->n_rows++] = (me_op_row){.name = copy, .memory = *memory};
    return ME_OK;
}

me_status me_op_series_mark(me_op_series *s, const char *name, uint64_t at)
{
    for (uint32_t i = 0; i < s->n_markers; i++) {
        if (strcmp(s->markers[i].name, name) == 0) {
            s->markers[i].at = at;
            return ME_OK;
        }
    }
    void *markers = me_grow(s->markers, s->n_markers, &s->markers_capacity,
                            sizeof *s->markers, "op_series");
    if (markers == NULL) {
        return ME_ERR_NOMEM;
    }
    s->markers = markers;
    char *copy = copy_name(name);
    if (copy == NULL) {
        return ME_ERR_NOMEM;
    }
    s->markers[s->n_markers++] = (me_op_marker){.name = copy, .at = at};
    return ME_OK;
}

void me_op_series_fini(me_op_series *s)
{
    for (uint32_t i = 0; i < s->n_rows; i++) {
        me_free(s->rows[i].name);
    }
    for (uint32_t i = 0; i < s->n_markers; i++) {
        me_free(s->markers[i].name);
    }
    me_free(s->rows);
    me_free(s->markers);
    *s = (me_op_series){.rows = NULL};
}
