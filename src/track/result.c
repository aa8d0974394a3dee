/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/result.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "model/event.h"

#include <stdatomic.h>

/** A result of the largest known models takes some MiB. */
static const uint64_t ceiling_bytes = UINT64_C(1) << 30;

me_result_common *me_result_common_create(void)
{
    me_result_common *common =
        me_alloc(1, sizeof *common, "rank_result.common");
    if (common == NULL) {
        return NULL;
    }
    common->arena = me_arena_create(ceiling_bytes, "rank_result.common_arena");
    if (common->arena == NULL) {
        me_free(common);
        return NULL;
    }
    atomic_init(&common->n_holders, 1);
    return common;
}

void me_result_common_release(me_result_common *common)
{
    if (common != NULL && atomic_fetch_sub(&common->n_holders, 1) == 1) {
        me_arena_destroy(common->arena);
        me_free(common);
    }
}

me_rank_result *me_rank_result_create(void)
{
    me_rank_result *result = me_alloc(1, sizeof *result, "rank_result");
    if (result == NULL) {
        return NULL;
    }
    result->arena = me_arena_create(ceiling_bytes, "rank_result.arena");
    if (result->arena == NULL) {
        me_free(result);
        return NULL;
    }
    return result;
}

void me_rank_result_destroy(me_rank_result *result)
{
    if (result == NULL) {
        return;
    }
    me_result_common_release(result->common);
    me_arena_destroy(result->arena);
    me_free(result);
}

void me_rank_result_share(me_rank_result *result, me_result_common *common)
{
    ME_ASSERT(result->common == NULL);
    atomic_fetch_add(&common->n_holders, 1);
    result->common = common;
    result->points = common->points;
    result->n_points = common->n_points;
    result->modules = common->modules;
    result->n_modules = common->n_modules;
}

const me_iteration_result *
me_rank_result_iteration(const me_rank_result *result, int32_t iteration)
{
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        if (result->iterations[i].iteration == iteration) {
            return &result->iterations[i];
        }
    }
    return NULL;
}

bool me_is_evaluation(const me_iteration_result *iteration)
{
    return me_phase_is_evaluation(iteration->peak.phase);
}

const me_peak_result *me_rank_result_peak(const me_rank_result *result)
{
    const me_peak_result *peak = NULL;
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        const me_iteration_result *it = &result->iterations[i];
        if (it->iteration <= ME_STEADY_ITERATION ||
            (me_is_evaluation(it) && peak != NULL &&
             it->peak.requested_bytes > peak->requested_bytes)) {
            peak = &it->peak;
        }
    }
    return peak;
}

uint64_t me_peak_fragmentation(const me_peak_result *peak)
{
    return peak->reserved_bytes == ME_BYTES_UNKNOWN ||
                   peak->allocated_bytes == ME_BYTES_UNKNOWN ||
                   peak->allocated_bytes > peak->reserved_bytes
               ? ME_BYTES_UNKNOWN
               : peak->reserved_bytes - peak->allocated_bytes;
}

/** Copies @p text to where it says; NULL stays NULL. */
static me_status copy_text(me_arena *arena, const char *text,
                           const char **copy_out)
{
    *copy_out = text == NULL ? NULL : me_arena_strdup(arena, text);
    return text == NULL || *copy_out != NULL ? ME_OK : ME_ERR_NOMEM;
}

me_status me_rank_result_set_limit(me_rank_result *result,
                                   const me_limit_result *limit)
{
    me_limit_result copy = *limit;
    if (copy_text(result->arena, limit->phase, &copy.phase) != ME_OK ||
        copy_text(result->arena, limit->module, &copy.module) != ME_OK ||
        copy_text(result->arena, limit->op, &copy.op) != ME_OK ||
        copy_text(result->arena, limit->message, &copy.message) != ME_OK) {
        return ME_ERR_NOMEM;
    }
    result->limit = copy;
    return ME_OK;
}

me_status me_rank_result_set_device(me_rank_result *result,
                                    const me_device_result *device)
{
    me_device_result copy = *device;
    const uint32_t count = device->n_communicators;
    copy.communicators =
        me_arena_alloc(result->arena, count, sizeof *copy.communicators);
    if (copy.communicators == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        copy.communicators[i] = device->communicators[i];
        if (copy_text(result->arena, device->communicators[i].group,
                      &copy.communicators[i].group) != ME_OK) {
            return ME_ERR_NOMEM;
        }
    }
    result->device = copy;
    return ME_OK;
}

me_status me_rank_result_set_time(me_rank_result *result,
                                  const me_time_program *time)
{
    me_time_program copy = *time;
    copy.stretches = me_arena_alloc(result->arena, time->n_stretches,
                                    sizeof *copy.stretches);
    copy.items =
        me_arena_alloc(result->arena, time->n_items, sizeof *copy.items);
    if (copy.stretches == NULL || copy.items == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < time->n_stretches; i++) {
        copy.stretches[i] = time->stretches[i];
    }
    for (uint32_t i = 0; i < time->n_items; i++) {
        copy.items[i] = time->items[i];
    }
    result->time = copy;
    return ME_OK;
}
