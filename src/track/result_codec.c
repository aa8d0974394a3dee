/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/str.h"
#include "track/result.h"

#include <string.h>

/*
 * One description of the format serves both directions: each code_*()
 * function writes its value when encoding and replaces it when decoding.
 * Nothing happens after the first failure.
 */
enum {
    VERSION = 3,
    FIELD_BYTES = 8, /**< the least that any field takes */
    NO_TEXT = -1
};

static const char format_magic[8] = "memestRR";

typedef struct codec {
    bool is_decoding;
    me_str out;                 /**< encoding */
    const unsigned char *bytes; /**< decoding: what is left of the input */
    size_t left;
    me_arena *arena; /**< decoding: of the result */
    me_status status;
} codec;

static void refuse(codec *c, me_status status)
{
    if (c->status == ME_OK) {
        c->status = status;
    }
}

/** The next @p count bytes of the input; NULL if there are none. */
static const unsigned char *take(codec *c, size_t count)
{
    if (c->status != ME_OK) {
        return NULL;
    }
    if (count > c->left) {
        refuse(c, ME_ERR_SYNTAX);
        return NULL;
    }
    const unsigned char *bytes = c->bytes;
    c->bytes += count;
    c->left -= count;
    return bytes;
}

static void code_u64(codec *c, uint64_t *value)
{
    enum {
        WIDTH = 8
    };

    if (!c->is_decoding) {
        char bytes[WIDTH];
        for (unsigned i = 0; i < WIDTH; i++) {
            bytes[i] = (char)(unsigned char)(*value >> (8 * i));
        }
        me_str_append_n(&c->out, bytes, WIDTH);
        return;
    }
    const unsigned char *bytes = take(c, WIDTH);
    *value = 0;
    for (unsigned i = 0; bytes != NULL && i < WIDTH; i++) {
        *value |= (uint64_t)bytes[i] << (8 * i);
    }
}

static void code_u32(codec *c, uint32_t *value)
{
    uint64_t wide = *value;
    code_u64(c, &wide);
    if (wide > UINT32_MAX) {
        refuse(c, ME_ERR_SYNTAX);
        wide = 0;
    }
    *value = (uint32_t)wide;
}

static void code_i32(codec *c, int32_t *value)
{
    uint32_t bits = (uint32_t)*value;
    code_u32(c, &bits);
    *value =
        bits <= INT32_MAX ? (int32_t)bits : -(int32_t)(UINT32_MAX - bits) - 1;
}

static void code_bool(codec *c, bool *value)
{
    uint32_t number = *value ? 1 : 0;
    code_u32(c, &number);
    if (number > 1) {
        refuse(c, ME_ERR_SYNTAX);
    }
    *value = number == 1;
}

static void code_text(codec *c, const char **text)
{
    int32_t length = *text == NULL ? NO_TEXT : (int32_t)strlen(*text);
    code_i32(c, &length);
    if (!c->is_decoding) {
        if (*text != NULL) {
            me_str_append_n(&c->out, *text, (size_t)length);
        }
        return;
    }
    *text = NULL;
    if (length < 0) {
        if (length != NO_TEXT) {
            refuse(c, ME_ERR_SYNTAX);
        }
        return;
    }
    const unsigned char *bytes = take(c, (size_t)length);
    if (bytes == NULL) {
        return;
    }
    if (memchr(bytes, '\0', (size_t)length) != NULL) {
        refuse(c, ME_ERR_SYNTAX);
        return;
    }
    char *copy = me_arena_alloc(c->arena, (size_t)length + 1, 1);
    if (copy == NULL) {
        refuse(c, ME_ERR_NOMEM);
        return;
    }
    memcpy(copy, bytes, (size_t)length);
    *text = copy;
}

/** A text that is never NULL. */
static void code_name(codec *c, const char **name)
{
    code_text(c, name);
    if (c->is_decoding && *name == NULL) {
        refuse(c, ME_ERR_SYNTAX);
        *name = "";
    }
}

/**
 * The number of items of an array, and when decoding the array: refused if
 * the input cannot hold that many of at least @p least_fields fields.
 */
static void *code_array(codec *c, void *items, uint32_t *count, size_t size,
                        uint32_t least_fields)
{
    code_u32(c, count);
    if (!c->is_decoding) {
        return items;
    }
    if (c->status == ME_OK && *count > c->left / least_fields / FIELD_BYTES) {
        refuse(c, ME_ERR_SYNTAX);
    }
    if (c->status != ME_OK) {
        *count = 0;
        return NULL;
    }
    void *made = me_arena_alloc(c->arena, *count, size);
    if (made == NULL) {
        refuse(c, ME_ERR_NOMEM);
        *count = 0;
    }
    return made;
}

static void code_point(codec *c, me_point_result *point)
{
    code_name(c, &point->name);
    code_u64(c, &point->requested_bytes);
    code_u64(c, &point->requested_peak_bytes);
    code_u64(c, &point->allocated_bytes);
    code_u64(c, &point->allocated_peak_bytes);
    code_u64(c, &point->reserved_bytes);
    code_u64(c, &point->reserved_peak_bytes);
    code_u64(c, &point->device_bytes);
}

static void code_phase(codec *c, me_phase_result *phase)
{
    code_name(c, &phase->name);
    code_u64(c, &phase->requested_bytes);
    code_u64(c, &phase->allocated_bytes);
    code_u64(c, &phase->reserved_bytes);
}

static void code_contributor(codec *c, me_contributor *contributor)
{
    uint32_t category = contributor->category;
    code_name(c, &contributor->module);
    code_text(c, &contributor->op);
    code_u32(c, &category);
    code_u32(c, &contributor->modules);
    code_u64(c, &contributor->blocks);
    code_u64(c, &contributor->bytes);
    if (category >= ME_CATEGORY_COUNT) {
        refuse(c, ME_ERR_SYNTAX);
        category = ME_CATEGORY_OTHER;
    }
    contributor->category = (uint8_t)category;
}

static void code_peak(codec *c, me_peak_result *peak)
{
    code_u64(c, &peak->requested_bytes);
    code_u64(c, &peak->allocated_bytes);
    code_u64(c, &peak->reserved_bytes);
    code_u64(c, &peak->device_bytes);
    code_i32(c, &peak->iteration);
    code_i32(c, &peak->microbatch);
    code_name(c, &peak->phase);
    code_name(c, &peak->module);
    code_text(c, &peak->op);
    for (unsigned i = 0; i < ME_CATEGORY_COUNT; i++) {
        code_u64(c, &peak->by_category[i]);
    }
    peak->contributors =
        code_array(c, peak->contributors, &peak->n_contributors,
                   sizeof *peak->contributors, 6);
    for (uint32_t i = 0; i < peak->n_contributors; i++) {
        code_contributor(c, &peak->contributors[i]);
    }
}

static void code_iteration(codec *c, me_iteration_result *iteration)
{
    code_i32(c, &iteration->iteration);
    code_u64(c, &iteration->requested_bytes);
    code_u64(c, &iteration->allocated_bytes);
    code_u64(c, &iteration->reserved_bytes);
    iteration->phases = code_array(c, iteration->phases, &iteration->n_phases,
                                   sizeof *iteration->phases, 4);
    for (uint32_t i = 0; i < iteration->n_phases; i++) {
        code_phase(c, &iteration->phases[i]);
    }
    code_peak(c, &iteration->peak);
}

static void code_module(codec *c, me_module_result *module, uint32_t index)
{
    code_name(c, &module->name);
    code_u32(c, &module->parent);
    code_u64(c, &module->forward_peak_bytes);
    code_u64(c, &module->backward_peak_bytes);
    code_u64(c, &module->parameters);
    code_u64(c, &module->parameter_bytes);
    code_u64(c, &module->activation_bytes);
    if (module->parent != UINT32_MAX && module->parent >= index) {
        refuse(c, ME_ERR_SYNTAX); /* parents come first */
    }
}

static void code_limit(codec *c, me_limit_result *limit)
{
    code_bool(c, &limit->is_known);
    code_bool(c, &limit->oom);
    code_i32(c, &limit->iteration);
    code_text(c, &limit->phase);
    code_text(c, &limit->module);
    code_text(c, &limit->op);
    code_text(c, &limit->message);
    code_u64(c, &limit->tried_bytes);
    code_u64(c, &limit->num_alloc_retries);
    code_u64(c, &limit->reserved_bytes);
}

static void code_device(codec *c, me_device_result *device)
{
    code_bool(c, &device->is_known);
    code_u64(c, &device->context_bytes);
    code_u64(c, &device->library_bytes);
    code_u64(c, &device->communicator_bytes);
    code_u64(c, &device->band_bytes);
    device->communicators =
        code_array(c, device->communicators, &device->n_communicators,
                   sizeof *device->communicators, 3);
    for (uint32_t i = 0; i < device->n_communicators; i++) {
        me_communicator_result *one = &device->communicators[i];
        code_name(c, &one->group);
        code_i32(c, &one->size);
        code_u64(c, &one->bytes);
    }
}

static void code_volume(codec *c, me_rank_result *result)
{
    for (int group = 0; group < ME_GROUP_COUNT; group++) {
        for (int kind = 0; kind < ME_COLLECTIVE_COUNT; kind++) {
            code_u64(c, &result->volume[group][kind].calls);
            code_u64(c, &result->volume[group][kind].bytes);
        }
    }
}

static void code_head(codec *c)
{
    uint32_t version = VERSION;
    if (!c->is_decoding) {
        me_str_append_n(&c->out, format_magic, sizeof format_magic);
    } else {
        const unsigned char *magic = take(c, sizeof format_magic);
        if (magic != NULL &&
            memcmp(magic, format_magic, sizeof format_magic) != 0) {
            refuse(c, ME_ERR_SYNTAX);
        }
    }
    code_u32(c, &version);
    if (version != VERSION) {
        refuse(c, ME_ERR_SYNTAX);
    }
}

static void code_result(codec *c, me_rank_result *result)
{
    code_head(c);
    code_u64(c, &result->parameters);
    code_u64(c, &result->parameter_bytes);
    result->points = code_array(c, result->points, &result->n_points,
                                sizeof *result->points, 8);
    for (uint32_t i = 0; i < result->n_points; i++) {
        code_point(c, &result->points[i]);
    }
    result->iterations =
        code_array(c, result->iterations, &result->n_iterations,
                   sizeof *result->iterations, 24);
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        code_iteration(c, &result->iterations[i]);
    }
    result->modules = code_array(c, result->modules, &result->n_modules,
                                 sizeof *result->modules, 7);
    for (uint32_t i = 0; i < result->n_modules; i++) {
        code_module(c, &result->modules[i], i);
    }
    code_limit(c, &result->limit);
    code_device(c, &result->device);
    code_volume(c, result);
}

me_status me_rank_result_encode(const me_rank_result *result,
                                unsigned char **bytes_out, size_t *size_out)
{
    codec c = {0};
    me_rank_result copy = *result; /* encoding changes nothing */
    code_result(&c, &copy);
    if (me_str_status(&c.out) != ME_OK) {
        me_str_fini(&c.out);
        return ME_ERR_NOMEM;
    }
    *bytes_out = (unsigned char *)c.out.text;
    *size_out = c.out.length;
    return ME_OK;
}

me_status me_rank_result_decode(const unsigned char *bytes, size_t size,
                                me_diag *diag, me_rank_result **result_out)
{
    me_rank_result *result = me_rank_result_create();
    if (result == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a rank's result");
    }
    codec c = {.is_decoding = true,
               .bytes = bytes,
               .left = size,
               .arena = result->arena};
    code_result(&c, result);
    if (c.status == ME_OK && c.left != 0) {
        c.status = ME_ERR_SYNTAX;
    }
    if (c.status != ME_OK) {
        me_rank_result_destroy(result);
        return me_fail(diag, c.status,
                       c.status == ME_ERR_NOMEM
                           ? "no memory for a rank's result"
                           : "a rank's result of %zu bytes is damaged at byte "
                             "%zu",
                       size, size - c.left);
    }
    *result_out = result;
    return ME_OK;
}
