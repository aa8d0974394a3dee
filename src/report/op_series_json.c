/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/input.h"
#include "base/json_text.h"
#include "report/json.h"
#include "report/op_series_report.h"

#include <math.h>
#include <stdio.h>

static const double BYTES_OF_MB = 1048576.0;

/** The counters, by the names of PyTorch's attributes. */
static const struct {
    const char *key;
    size_t offset;
} counters[] = {
    {"memories_allocated", offsetof(me_op_memory, allocated)},
    {"memories_active", offsetof(me_op_memory, active)},
    {"memories_reserved", offsetof(me_op_memory, reserved)},
};

enum {
    N_COUNTERS = sizeof counters / sizeof counters[0],
    KEY_BYTES = 16,
    MARKERS_MAX = 8192,        /**< each is compared with those before */
    FILE_MAX_BYTES = 512 << 20 /**< some millions of operations */
};

static uint64_t *counter(me_op_memory *memory, size_t which)
{
    return (uint64_t *)(void *)((char *)memory + counters[which].offset);
}

/** index: [name, MB] of one counter. */
static json_t *make_counter(const me_op_series *s, size_t which)
{
    json_t *object = json_object();
    for (uint32_t i = 0; object != NULL && i < s->n_rows; i++) {
        char key[KEY_BYTES];
        me_op_memory memory = s->rows[i].memory;
        (void)snprintf(key, sizeof key, "%u", i);
        json_t *pair =
            json_pack("[s, f]", s->rows[i].name,
                      (double)*counter(&memory, which) / BYTES_OF_MB);
        object = me_json_put(object, key, pair);
    }
    return object;
}

static json_t *make_markers(const me_op_series *s)
{
    json_t *object = json_object();
    for (uint32_t i = 0; object != NULL && i < s->n_markers; i++) {
        object = me_json_put(object, s->markers[i].name,
                             json_integer((json_int_t)s->markers[i].at));
    }
    return object;
}

me_status me_op_series_save(me_str *text, const me_op_series *s)
{
    json_t *root = json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:I}", counters[0].key, make_counter(s, 0),
        counters[1].key, make_counter(s, 1), counters[2].key,
        make_counter(s, 2), "markers", make_markers(s), "num_alloc_retries",
        (json_int_t)s->num_alloc_retries, "op_index", (json_int_t)s->n_rows);
    return me_json_append(root, JSON_INDENT(1), text);
}

static me_status no_series(const char *path, const char *what, me_diag *diag)
{
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s: %s; memest track --tool memory --format json writes a "
                   "series",
                   path, what);
}

/** One counter of operation @p i. @return the name; NULL: it is not there */
static const char *read_pair(const json_t *root, uint32_t i, size_t which,
                             me_op_memory *memory)
{
    char key[KEY_BYTES];
    (void)snprintf(key, sizeof key, "%u", i);
    const json_t *pair =
        json_object_get(json_object_get(root, counters[which].key), key);
    const json_t *mb = json_array_get(pair, 1);
    const double value = json_number_value(mb);
    if (!json_is_number(mb) || !(value >= 0 && value < 1e12)) {
        return NULL;
    }
    *counter(memory, which) = (uint64_t)llround(value * BYTES_OF_MB);
    return json_string_value(json_array_get(pair, 0));
}

static me_status read_rows(const char *path, const json_t *root, me_diag *diag,
                           me_op_series *s)
{
    const size_t n = json_object_size(json_object_get(root, counters[0].key));
    me_status status =
        n == 0 ? no_series(path, "it has no operation", diag) : ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < n; i++) {
        me_op_memory memory = {0};
        const char *name = NULL;
        for (size_t which = 0; which < N_COUNTERS; which++) {
            name = read_pair(root, i, which, &memory);
            if (name == NULL) {
                return no_series(path, "an operation has no [name, MB]", diag);
            }
        }
        status = me_op_series_append(s, name, &memory);
    }
    return status;
}

static me_status read_markers(const char *path, const json_t *root,
                              me_diag *diag, me_op_series *s)
{
    json_t *markers = json_object_get(root, "markers");
    const char *name = NULL;
    json_t *at = NULL;
    me_status status = json_object_size(markers) > MARKERS_MAX
                           ? no_series(path, "it has over 8192 markers", diag)
                           : ME_OK;
    json_object_foreach(markers, name, at)
    {
        const json_int_t value = json_integer_value(at);
        if (!json_is_integer(at) || value < 0 ||
            value > (json_int_t)s->n_rows) {
            return no_series(path, "a marker is no number of operations", diag);
        }
        if (status == ME_OK) {
            status = me_op_series_mark(s, name, (uint64_t)value);
        }
    }
    return status;
}

static me_status read_series(const char *path, const json_t *root,
                             me_diag *diag, me_op_series *s_out)
{
    const json_t *retries = json_object_get(root, "num_alloc_retries");
    if (!json_is_object(json_object_get(root, counters[0].key)) ||
        !json_is_integer(retries) || json_integer_value(retries) < 0) {
        return no_series(path, "no memories_allocated and num_alloc_retries",
                         diag);
    }
    s_out->num_alloc_retries = (uint64_t)json_integer_value(retries);
    me_status status = read_rows(path, root, diag, s_out);
    if (status == ME_OK) {
        status = read_markers(path, root, diag, s_out);
    }
    return status == ME_ERR_NOMEM
               ? me_fail(diag, status, "no host memory for the series")
               : status;
}

me_status me_op_series_load(const char *path, me_diag *diag,
                            me_op_series *s_out)
{
    me_str text = {0};
    json_t *root = NULL;
    me_status status = me_input_read(path, FILE_MAX_BYTES, diag, &text);
    if (status == ME_OK) {
        status =
            me_json_parse(path, me_str_text(&text), text.length, diag, &root);
    }
    me_str_fini(&text);
    if (status == ME_OK) {
        status = read_series(path, root, diag, s_out);
    }
    json_decref(root);
    return status;
}
