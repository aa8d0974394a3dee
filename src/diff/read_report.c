/* SPDX-License-Identifier: BSD-3-Clause */
/* memest's own report, as --format json writes it. */
#include "base/input.h"
#include "base/json_text.h"
#include "base/str.h"
#include "diff/profile_read.h"
#include "model/event.h"

#include <string.h>

enum {
    MAX_BYTES = 1 << 30
};

static bool is_report(const char *head, size_t length)
{
    return length > 0 && head[0] == '{' &&
           me_head_has(head, length < 64 ? length : 64, "\"memest\": ");
}

static bool read_number(const json_t *object, const char *key,
                        uint64_t *number_out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *number_out = (uint64_t)json_integer_value(value);
    return true;
}

static void read_points(me_profile_rank *rank, const json_t *points)
{
    static const struct {
        const char *key;
        me_quantity quantity;
    } peaks[] = {
        {"requested_peak_bytes", ME_QUANTITY_REQUESTED_PEAK},
        {"allocated_peak_bytes", ME_QUANTITY_ALLOCATED_PEAK},
        {"reserved_peak_bytes", ME_QUANTITY_RESERVED_PEAK},
        {"device_bytes", ME_QUANTITY_DEVICE_PEAK},
    };

    uint64_t bytes = 0;
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *point = json_array_get(points, i);
        for (size_t p = 0; p < sizeof peaks / sizeof peaks[0]; p++) {
            if (read_number(point, peaks[p].key, &bytes)) {
                me_profile_raise(rank, peaks[p].quantity, bytes);
            }
        }
        if (read_number(point, "allocated_bytes", &bytes)) {
            me_profile_set(rank, ME_QUANTITY_ALLOCATED_END, bytes);
        }
        if (read_number(point, "reserved_bytes", &bytes)) {
            me_profile_set(rank, ME_QUANTITY_RESERVED_END, bytes);
        }
    }
}

/** How many end, by the last of such names, `iter1_end`: what a job does after it
 *  has other ones. 0: it says none */
static uint32_t count_iterations(const json_t *points)
{
    static const char begin[] = "iter";
    for (size_t n = json_array_size(points); n > 0; n--) {
        const char *name = json_string_value(
            json_object_get(json_array_get(points, n - 1), "name"));
        if (name != NULL && strncmp(name, begin, sizeof begin - 1) == 0) {
            return me_profile_iterations(name + sizeof begin - 1);
        }
    }
    return 0;
}

/** Of the last iteration of training; NULL: there is none. */
static const json_t *last_iteration(const json_t *iterations)
{
    for (size_t n = json_array_size(iterations); n > 0; n--) {
        const json_t *it = json_array_get(iterations, n - 1);
        if (!me_phase_is_evaluation(
                json_string_value(json_object_get(it, "phase")))) {
            return it;
        }
    }
    return NULL;
}

/** Where a rank has its requested peak, which may be in the first iteration: of
 *  that, not of the one that repeats, are the categories. NULL: in none */
static const json_t *find_peak(const me_profile_rank *rank,
                               const json_t *record)
{
    const json_t *peak = json_object_get(record, "peak");
    const json_t *iterations = json_object_get(record, "iterations");
    const uint64_t most = rank->bytes[ME_QUANTITY_REQUESTED_PEAK];
    uint64_t bytes = 0;
    for (size_t i = 0; i < json_array_size(iterations); i++) {
        const json_t *iteration = json_array_get(iterations, i);
        if (read_number(iteration, "requested_bytes", &bytes) &&
            bytes == most) {
            return iteration;
        }
    }
    return read_number(peak, "requested_bytes", &bytes) && bytes != most ? NULL
                                                                         : peak;
}

static me_status read_categories(me_profile_rank *rank, const json_t *peak)
{
    json_t *categories = json_object_get(peak, "by_category");
    const char *name = NULL;
    json_t *value = NULL;
    me_status status = ME_OK;
    json_object_foreach(categories, name, value)
    {
        if (status == ME_OK && json_is_integer(value)) {
            status = me_part_add(&rank->divisions[ME_DIVISION_CATEGORY], name,
                                 0, (uint64_t)json_integer_value(value), 1);
        }
    }
    return status;
}

/** Of the last iteration. */
static me_status read_phases(me_profile_rank *rank, const json_t *iterations)
{
    const json_t *phases =
        json_object_get(last_iteration(iterations), "phases");
    me_status status = ME_OK;
    uint64_t bytes = 0;
    for (size_t i = 0; status == ME_OK && i < json_array_size(phases); i++) {
        const json_t *phase = json_array_get(phases, i);
        const char *name = json_string_value(json_object_get(phase, "name"));
        if (name != NULL && read_number(phase, "requested_bytes", &bytes)) {
            status = me_part_add(&rank->divisions[ME_DIVISION_PHASE], name, 0,
                                 bytes, 1);
        }
    }
    return status;
}

/** A module's path with a star for the number of a layer, so that like ones
 *  are one. */
static void fold_path(const char *path, me_str *text)
{
    while (*path != '\0') {
        const size_t length = strcspn(path, ".");
        if (strspn(path, "0123456789") == length && length > 0) {
            me_str_append(text, "*");
        } else {
            me_str_append_n(text, path, length);
        }
        path += length;
        if (*path == '.') {
            me_str_append(text, ".");
            path++;
        }
    }
}

static uint64_t bytes_of(const json_t *module)
{
    uint64_t parameters = 0;
    uint64_t activations = 0;
    (void)read_number(module, "parameter_bytes", &parameters);
    (void)read_number(module, "activation_bytes", &activations);
    return parameters + activations;
}

/** Is @p path directly within @p parent? */
static bool is_child(const char *parent, const char *path)
{
    const size_t length = strlen(parent);
    return strncmp(parent, path, length) == 0 && path[length] == '.' &&
           strchr(path + length + 1, '.') == NULL;
}

static bool is_within(const char *parent, const char *path)
{
    const size_t length = strlen(parent);
    return strncmp(parent, path, length) == 0 && path[length] == '.';
}

/** What a module has beside those within it, which follow it. */
static uint64_t own_bytes(const json_t *modules, size_t at, const char *path)
{
    uint64_t bytes = bytes_of(json_array_get(modules, at));
    for (size_t i = at + 1; i < json_array_size(modules); i++) {
        const json_t *module = json_array_get(modules, i);
        const char *other = json_string_value(json_object_get(module, "name"));
        if (other == NULL || !is_within(path, other)) {
            break;
        }
        if (is_child(path, other)) {
            const uint64_t inner = bytes_of(module);
            bytes -= inner < bytes ? inner : bytes;
        }
    }
    return bytes;
}

static me_status read_modules(me_profile_rank *rank, const json_t *modules)
{
    me_str name = {0};
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < json_array_size(modules); i++) {
        const char *path = json_string_value(
            json_object_get(json_array_get(modules, i), "name"));
        if (path == NULL) {
            continue;
        }
        const uint64_t bytes = own_bytes(modules, i, path);
        me_str_clear(&name);
        fold_path(path, &name);
        status = me_str_status(&name);
        if (status == ME_OK && bytes > 0) {
            status = me_part_add(&rank->divisions[ME_DIVISION_MODULE],
                                 me_str_text(&name), 0, bytes, 1);
        }
    }
    me_str_fini(&name);
    return status;
}

static me_status add_rank(me_profile *profile, const json_t *record,
                          int32_t number)
{
    const uint32_t n_ranks = profile->n_ranks;
    me_profile_rank *rank = me_profile_rank_add(profile, number);
    if (rank == NULL || profile->n_ranks == n_ranks) {
        return rank == NULL ? ME_ERR_NOMEM : ME_ERR_MISMATCH;
    }
    const json_t *points = json_object_get(record, "points");
    read_points(rank, points);
    profile->n_iterations = count_iterations(points);
    me_status status = read_categories(rank, find_peak(rank, record));
    if (status == ME_OK) {
        status = read_phases(rank, json_object_get(record, "iterations"));
    }
    return status == ME_OK
               ? read_modules(rank, json_object_get(record, "modules"))
               : status;
}

/** A record is of a rank, or of the ranges that it lists. */
static me_status read_record(me_profile *profile, const json_t *record)
{
    const json_t *ranges = json_object_get(record, "ranks");
    uint64_t number = 0;
    me_status status = ME_OK;
    if (!read_number(record, "rank", &number) || number > INT32_MAX) {
        return ME_ERR_SYNTAX;
    }
    if (ranges == NULL) {
        return add_rank(profile, record, (int32_t)number);
    }
    for (size_t i = 0; i < json_array_size(ranges); i++) {
        const json_t *range = json_array_get(ranges, i);
        const json_int_t last = json_integer_value(json_array_get(range, 1));
        json_int_t rank = json_integer_value(json_array_get(range, 0));
        for (; status == ME_OK && rank <= last && rank <= INT32_MAX; rank++) {
            status = add_rank(profile, record, (int32_t)rank);
        }
    }
    return status;
}

static me_status read_options(me_profile *profile, json_t *options)
{
    const char *name = NULL;
    json_t *value = NULL;
    me_status status = ME_OK;
    profile->has_options = json_is_object(options);
    json_object_foreach(options, name, value)
    {
        const char *text = json_string_value(value);
        if (status == ME_OK && text != NULL) {
            status = me_profile_option_add(profile, name, text);
        }
    }
    return status;
}

static me_status read_report(me_profile *profile, FILE *file, me_diag *diag)
{
    (void)file;
    me_str text = {0};
    json_t *root = NULL;
    me_status status = me_input_read(profile->name, MAX_BYTES, diag, &text);
    if (status == ME_OK) {
        status = me_json_parse(profile->name, me_str_text(&text), text.length,
                               diag, &root);
    }
    me_str_fini(&text);
    if (status != ME_OK) {
        return status;
    }
    const json_t *ranks = json_object_get(root, "ranks");
    for (size_t i = 0; status == ME_OK && i < json_array_size(ranks); i++) {
        status = read_record(profile, json_array_get(ranks, i));
    }
    if (status == ME_OK) {
        status = read_options(profile, json_object_get(root, "options"));
    }
    json_decref(root);
    return status == ME_ERR_SYNTAX
               ? me_fail_at(diag, status, profile->name, 0,
                            "a record of ranks has no number of its rank")
           : status == ME_ERR_MISMATCH
               ? me_fail_at(diag, ME_ERR_SYNTAX, profile->name, 0,
                            "two records of ranks are of one rank")
           : status == ME_ERR_NOMEM
               ? me_fail(diag, status, "no memory to read %s", profile->name)
               : status;
}

const me_profile_reader me_report_reader = {"memest's report", is_report,
                                            read_report};
