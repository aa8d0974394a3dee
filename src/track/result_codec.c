/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "track/codec.h"
#include "track/result.h"

#include <string.h>

enum {
    VERSION = 8
};

static const char format_magic[8] = "memestRR";

static void code_point(me_codec *c, me_point_result *point)
{
    me_code_name(c, &point->name);
    me_code_u64(c, &point->requested_bytes);
    me_code_u64(c, &point->requested_peak_bytes);
    me_code_u64(c, &point->allocated_bytes);
    me_code_u64(c, &point->allocated_peak_bytes);
    me_code_u64(c, &point->reserved_bytes);
    me_code_u64(c, &point->reserved_peak_bytes);
    me_code_u64(c, &point->device_bytes);
}

static void code_phase(me_codec *c, me_phase_result *phase)
{
    me_code_name(c, &phase->name);
    me_code_u64(c, &phase->requested_bytes);
    me_code_u64(c, &phase->allocated_bytes);
    me_code_u64(c, &phase->reserved_bytes);
}

static void code_contributor(me_codec *c, me_contributor *contributor)
{
    uint32_t category = contributor->category;
    me_code_name(c, &contributor->module);
    me_code_text(c, &contributor->op);
    me_code_u32(c, &category);
    me_code_u32(c, &contributor->modules);
    me_code_u64(c, &contributor->blocks);
    me_code_u64(c, &contributor->bytes);
    if (category >= ME_CATEGORY_COUNT) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
        category = ME_CATEGORY_OTHER;
    }
    contributor->category = (uint8_t)category;
}

static void code_peak(me_codec *c, me_peak_result *peak)
{
    me_code_u64(c, &peak->requested_bytes);
    me_code_u64(c, &peak->allocated_bytes);
    me_code_u64(c, &peak->reserved_bytes);
    me_code_u64(c, &peak->device_bytes);
    me_code_i32(c, &peak->iteration);
    me_code_i32(c, &peak->microbatch);
    me_code_name(c, &peak->phase);
    me_code_name(c, &peak->module);
    me_code_text(c, &peak->op);
    for (unsigned i = 0; i < ME_CATEGORY_COUNT; i++) {
        me_code_u64(c, &peak->by_category[i]);
    }
    peak->contributors =
        me_code_array(c, peak->contributors, &peak->n_contributors,
                      sizeof *peak->contributors, 6);
    for (uint32_t i = 0; i < peak->n_contributors; i++) {
        code_contributor(c, &peak->contributors[i]);
    }
}

static void code_iteration(me_codec *c, me_iteration_result *iteration)
{
    me_code_i32(c, &iteration->iteration);
    me_code_u64(c, &iteration->requested_bytes);
    me_code_u64(c, &iteration->allocated_bytes);
    me_code_u64(c, &iteration->reserved_bytes);
    iteration->phases =
        me_code_array(c, iteration->phases, &iteration->n_phases,
                      sizeof *iteration->phases, 4);
    for (uint32_t i = 0; i < iteration->n_phases; i++) {
        code_phase(c, &iteration->phases[i]);
    }
    code_peak(c, &iteration->peak);
}

static void code_module(me_codec *c, me_module_result *module, uint32_t index)
{
    me_code_name(c, &module->name);
    me_code_u32(c, &module->parent);
    me_code_u64(c, &module->forward_peak_bytes);
    me_code_u64(c, &module->backward_peak_bytes);
    me_code_u64(c, &module->parameters);
    me_code_u64(c, &module->parameter_bytes);
    me_code_u64(c, &module->activation_bytes);
    if (module->parent != UINT32_MAX && module->parent >= index) {
        me_codec_refuse(c, ME_ERR_SYNTAX); /* parents come first */
    }
}

static void code_limit(me_codec *c, me_limit_result *limit)
{
    me_code_bool(c, &limit->is_known);
    me_code_bool(c, &limit->oom);
    me_code_i32(c, &limit->iteration);
    me_code_text(c, &limit->phase);
    me_code_text(c, &limit->module);
    me_code_text(c, &limit->op);
    me_code_text(c, &limit->message);
    me_code_u64(c, &limit->tried_bytes);
    me_code_u64(c, &limit->num_alloc_retries);
    me_code_u64(c, &limit->reserved_bytes);
    me_code_bool(c, &limit->oom_with_less);
    me_code_bool(c, &limit->oom_with_more);
}

static void code_device(me_codec *c, me_device_result *device)
{
    me_code_bool(c, &device->is_known);
    me_code_u64(c, &device->context_bytes);
    me_code_u64(c, &device->library_bytes);
    me_code_u64(c, &device->communicator_bytes);
    me_code_u64(c, &device->band_bytes);
    device->communicators =
        me_code_array(c, device->communicators, &device->n_communicators,
                      sizeof *device->communicators, 3);
    for (uint32_t i = 0; i < device->n_communicators; i++) {
        me_communicator_result *one = &device->communicators[i];
        me_code_name(c, &one->group);
        me_code_i32(c, &one->size);
        me_code_u64(c, &one->bytes);
    }
}

static void code_late(me_codec *c, me_late_result *late)
{
    me_code_bool(c, &late->is_known);
    me_code_u64(c, &late->requested_bytes);
    me_code_u64(c, &late->allocated_bytes);
    me_code_u64(c, &late->reserved_bytes);
}

static void code_volume(me_codec *c, me_rank_result *result)
{
    for (int group = 0; group < ME_GROUP_COUNT; group++) {
        for (int kind = 0; kind < ME_COLLECTIVE_COUNT; kind++) {
            me_code_u64(c, &result->volume[group][kind].calls);
            me_code_u64(c, &result->volume[group][kind].bytes);
        }
    }
}

static void code_course_bytes(me_codec *c, me_course_bytes *bytes)
{
    me_code_u64(c, &bytes->begin);
    me_code_u64(c, &bytes->peak);
    me_code_u64(c, &bytes->end);
}

static void code_course(me_codec *c, me_rank_result *result)
{
    result->course = me_code_array(c, result->course, &result->n_course,
                                   sizeof *result->course, 12);
    for (uint32_t i = 0; i < result->n_course; i++) {
        me_course_part *part = &result->course[i];
        me_code_name(c, &part->name);
        me_code_i32(c, &part->chunk);
        me_code_i32(c, &part->microbatch);
        code_course_bytes(c, &part->requested);
        code_course_bytes(c, &part->allocated);
        code_course_bytes(c, &part->reserved);
    }
    me_code_u32(c, &result->course_left_out);
}

static void code_head(me_codec *c)
{
    uint32_t version = VERSION;
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
    if (version != VERSION) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
    }
}

static void code_result(me_codec *c, me_rank_result *result)
{
    code_head(c);
    me_code_u64(c, &result->parameters);
    me_code_u64(c, &result->parameter_bytes);
    result->points = me_code_array(c, result->points, &result->n_points,
                                   sizeof *result->points, 8);
    for (uint32_t i = 0; i < result->n_points; i++) {
        code_point(c, &result->points[i]);
    }
    result->iterations =
        me_code_array(c, result->iterations, &result->n_iterations,
                      sizeof *result->iterations, 24);
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        code_iteration(c, &result->iterations[i]);
    }
    result->modules = me_code_array(c, result->modules, &result->n_modules,
                                    sizeof *result->modules, 7);
    for (uint32_t i = 0; i < result->n_modules; i++) {
        code_module(c, &result->modules[i], i);
    }
    code_limit(c, &result->limit);
    code_device(c, &result->device);
    for (int i = 0; i < ME_HOST_USES; i++) {
        me_code_u64(c, &result->host.bytes[i]);
    }
    me_code_u64(c, &result->host.pinned_bytes);
    code_late(c, &result->late);
    code_volume(c, result);
    code_course(c, result);
}

me_status me_rank_result_encode(const me_rank_result *result,
                                unsigned char **bytes_out, size_t *size_out)
{
    me_codec c = {0};
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
    me_codec c = {.is_decoding = true,
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
