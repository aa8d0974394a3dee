/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/result.h"

/* The order of a record's rows is that of JSON, where fields may be added at
 * the end and are never moved. What the numbers mean stands in result.h. */

const me_schema me_point_schema = ME_SCHEMA(
    me_point_result, {ME_NAME(me_point_result, name), .title = "point"},
    {ME_BYTES(me_point_result, requested_bytes), .title = "requested"},
    {ME_BYTES(me_point_result, requested_peak_bytes),
     .title = "requested peak"},
    {ME_BYTES(me_point_result, allocated_bytes), .title = "allocated"},
    {ME_BYTES(me_point_result, allocated_peak_bytes),
     .title = "allocated peak"},
    {ME_BYTES(me_point_result, reserved_bytes)},
    {ME_BYTES(me_point_result, reserved_peak_bytes), .title = "reserved peak"},
    {ME_BYTES(me_point_result, device_bytes), .title = "device"});

static const me_schema phase_schema =
    ME_SCHEMA(me_phase_result, {ME_NAME(me_phase_result, name)},
              {ME_BYTES(me_phase_result, requested_bytes)},
              {ME_BYTES(me_phase_result, allocated_bytes)},
              {ME_BYTES(me_phase_result, reserved_bytes)});

static const me_schema contributor_schema = ME_SCHEMA(
    me_contributor, {ME_NAME(me_contributor, module)},
    {ME_U32(me_contributor, modules)}, {ME_TEXT(me_contributor, op)},
    {ME_FIELD(ME_FIELD_CATEGORY, me_contributor, category, uint8_t)},
    {ME_COUNT(me_contributor, blocks)}, {ME_BYTES(me_contributor, bytes)});

static uint64_t derive_fragmentation(const void *peak)
{
    return me_peak_fragmentation(peak);
}

const me_schema me_peak_schema = ME_SCHEMA(
    me_peak_result,
    {ME_BYTES(me_peak_result, requested_bytes), .title = "requested",
     .csv = 10},
    {ME_BYTES(me_peak_result, allocated_bytes), .title = "allocated",
     .csv = 11},
    {ME_BYTES(me_peak_result, reserved_bytes), .title = "reserved", .csv = 12},
    {ME_DERIVED("fragmentation_bytes", ME_FIELD_BYTES, derive_fragmentation,
                0)},
    {ME_BYTES(me_peak_result, device_bytes), .title = "device", .csv = 13},
    {ME_I32(me_peak_result, iteration)},
    {ME_NAME(me_peak_result, phase), .csv = 15},
    {ME_NAME(me_peak_result, module), .csv = 16},
    {ME_TEXT(me_peak_result, op), .csv = 17},
    {ME_INDEX(me_peak_result, microbatch)},
    {.key = "by_category",
     .kind = ME_FIELD_BY_CATEGORY,
     .csv = 18, /* to 27 */
     .offset = offsetof(me_peak_result, by_category)},
    {ME_ITEMS(me_peak_result, contributors, contributor_schema)});

/** Set-up is not an iteration: its numbers are in the points. */
static bool is_iteration(const void *iteration)
{
    return ((const me_iteration_result *)iteration)->iteration >
           ME_SETUP_ITERATION;
}

/** Those of its peak are shown as the iteration's own. */
const me_schema me_iteration_schema = ME_SCHEMA(
    me_iteration_result, {ME_I32(me_iteration_result, iteration)},
    {ME_BYTES(me_iteration_result, requested_bytes), .title = "requested"},
    {ME_BYTES(me_iteration_result, allocated_bytes), .title = "allocated"},
    {ME_BYTES(me_iteration_result, reserved_bytes), .title = "reserved"},
    {ME_FIELD_AS("phase", ME_FIELD_NAME, me_iteration_result, peak.phase,
                 const char *),
     .left_out = ME_FIELD_NOT_SENT, .title = "peak in"},
    {ME_FIELD_AS("module", ME_FIELD_NAME, me_iteration_result, peak.module,
                 const char *),
     .left_out = ME_FIELD_NOT_SENT, .title = "module"},
    {ME_FIELD_AS("op", ME_FIELD_TEXT, me_iteration_result, peak.op,
                 const char *),
     .left_out = ME_FIELD_NOT_SENT, .title = "op"},
    {.key = "by_category",
     .kind = ME_FIELD_BY_CATEGORY,
     .left_out = ME_FIELD_NOT_SENT,
     .offset = offsetof(me_iteration_result, peak.by_category)},
    {ME_ITEMS(me_iteration_result, phases, phase_schema)},
    {ME_WITHIN("peak", me_iteration_result, peak, me_peak_schema),
     .left_out = ME_FIELD_NOT_JSON});

const me_schema me_module_schema =
    ME_SCHEMA(me_module_result, {ME_NAME(me_module_result, name)},
              {ME_FIELD(ME_FIELD_PARENT, me_module_result, parent, uint32_t),
               .left_out = ME_FIELD_NOT_JSON},
              {ME_BYTES(me_module_result, forward_peak_bytes),
               .title = "forward peak", .unit = "GiB", .is_last = true},
              {ME_BYTES(me_module_result, backward_peak_bytes),
               .title = "backward peak", .unit = "GiB", .is_last = true},
              {ME_COUNT(me_module_result, parameters), .title = "parameters"},
              {ME_BYTES(me_module_result, parameter_bytes),
               .title = "parameters", .unit = "GiB"},
              {ME_BYTES(me_module_result, activation_bytes),
               .title = "activation", .unit = "GiB"});

static bool is_limited(const void *limit)
{
    return ((const me_limit_result *)limit)->is_known;
}

static bool is_dead(const void *limit)
{
    return is_limited(limit) && ((const me_limit_result *)limit)->oom;
}

static const me_schema limit_schema = ME_SCHEMA(
    me_limit_result,
    {ME_BOOL(me_limit_result, is_known), .left_out = ME_FIELD_NOT_JSON},
    {ME_BOOL(me_limit_result, oom), .is_there = is_limited},
    {ME_I32(me_limit_result, iteration), .is_there = is_dead},
    {ME_TEXT(me_limit_result, phase), .is_there = is_dead},
    {ME_TEXT(me_limit_result, module), .is_there = is_dead},
    {ME_TEXT(me_limit_result, op), .is_there = is_dead},
    {ME_TEXT(me_limit_result, message), .is_there = is_dead},
    {ME_BYTES(me_limit_result, tried_bytes), .is_there = is_dead},
    {ME_COUNT(me_limit_result, num_alloc_retries), .is_there = is_limited},
    {ME_BYTES(me_limit_result, reserved_bytes), .is_there = is_limited},
    {ME_FIELD_AS("oom_with_band_less", ME_FIELD_BOOL, me_limit_result,
                 oom_with_less, bool),
     .is_there = is_limited},
    {ME_FIELD_AS("oom_with_band_more", ME_FIELD_BOOL, me_limit_result,
                 oom_with_more, bool),
     .is_there = is_limited});

static const me_schema communicator_schema =
    ME_SCHEMA(me_communicator_result, {ME_NAME(me_communicator_result, group)},
              {ME_I32(me_communicator_result, size)},
              {ME_BYTES(me_communicator_result, bytes)});

static bool is_device_known(const void *device)
{
    return ((const me_device_result *)device)->is_known;
}

static const me_schema device_schema = ME_SCHEMA(
    me_device_result,
    {ME_BOOL(me_device_result, is_known), .left_out = ME_FIELD_NOT_JSON},
    {ME_BYTES(me_device_result, context_bytes), .is_there = is_device_known},
    {ME_BYTES(me_device_result, library_bytes), .is_there = is_device_known},
    {ME_BYTES(me_device_result, user_buffer_bytes),
     .left_out = ME_FIELD_NOT_JSON},
    {ME_BYTES(me_device_result, communicator_bytes),
     .is_there = is_device_known},
    {ME_BYTES(me_device_result, band_bytes), .is_there = is_device_known},
    {ME_ITEMS(me_device_result, communicators, communicator_schema),
     .is_there = is_device_known});

const me_schema me_late_schema = ME_SCHEMA(
    me_late_result,
    {ME_BOOL(me_late_result, is_known), .left_out = ME_FIELD_NOT_JSON},
    {ME_BYTES(me_late_result, requested_bytes)},
    {ME_BYTES(me_late_result, allocated_bytes)},
    {ME_BYTES(me_late_result, reserved_bytes)});

/** Its bytes are a column of GiB, and one of their exact number. */
const me_schema me_volume_schema = ME_SCHEMA(
    me_volume_result, {ME_COUNT(me_volume_result, calls), .title = "calls"},
    {ME_BYTES(me_volume_result, bytes), .title = "GiB"},
    {ME_COUNT(me_volume_result, bytes), .title = "bytes",
     .left_out = ME_FIELD_NOT_SENT | ME_FIELD_NOT_JSON});

static const me_schema course_bytes_schema = ME_SCHEMA(
    me_course_bytes, {ME_BYTES(me_course_bytes, begin)},
    {ME_BYTES(me_course_bytes, peak)}, {ME_BYTES(me_course_bytes, end)});

const me_schema me_course_schema = ME_SCHEMA(
    me_course_part, {ME_NAME(me_course_part, name)},
    {ME_INDEX(me_course_part, chunk)}, {ME_INDEX(me_course_part, microbatch)},
    {ME_WITHIN("requested_bytes", me_course_part, requested,
               course_bytes_schema)},
    {ME_WITHIN("allocated_bytes", me_course_part, allocated,
               course_bytes_schema)},
    {ME_WITHIN("reserved_bytes", me_course_part, reserved,
               course_bytes_schema)},
    {.key = "end_by_category",
     .kind = ME_FIELD_BY_CATEGORY,
     .offset = offsetof(me_course_part, end_by_category)});

static const me_schema host_schema = ME_SCHEMA(
    me_host_memory,
    {ME_FIELD_AS("parameter_bytes", ME_FIELD_BYTES, me_host_memory,
                 bytes[ME_HOST_PARAMETERS], uint64_t)},
    {ME_FIELD_AS("gradient_bytes", ME_FIELD_BYTES, me_host_memory,
                 bytes[ME_HOST_GRADIENTS], uint64_t)},
    {ME_FIELD_AS("optimizer_state_bytes", ME_FIELD_BYTES, me_host_memory,
                 bytes[ME_HOST_OPTIMIZER_STATE], uint64_t)},
    {ME_FIELD_AS("activation_bytes", ME_FIELD_BYTES, me_host_memory,
                 bytes[ME_HOST_ACTIVATIONS], uint64_t)},
    {ME_BYTES(me_host_memory, pinned_bytes)},
    {ME_BYTES(me_host_memory, peak_bytes)});

static const void *find_peak(const void *result)
{
    return me_rank_result_peak(result);
}

static bool is_late_known(const void *result)
{
    return ((const me_rank_result *)result)->late.is_known;
}

static uint64_t derive_iteration_0(const void *result)
{
    const me_iteration_result *it = me_rank_result_iteration(result, 0);
    return it == NULL ? ME_BYTES_UNKNOWN : it->requested_bytes;
}

const me_schema me_result_schema =
    ME_SCHEMA(me_rank_result, {ME_COUNT(me_rank_result, parameters), .csv = 8},
              {ME_BYTES(me_rank_result, parameter_bytes), .csv = 9},
              {.key = "peak",
               .kind = ME_FIELD_RECORD,
               .left_out = ME_FIELD_NOT_SENT,
               .of = &me_peak_schema,
               .find = find_peak},
              {ME_WITHIN("late_peak", me_rank_result, late, me_late_schema),
               .is_there = is_late_known},
              {ME_ITEMS(me_rank_result, points, me_point_schema)},
              {ME_ITEMS(me_rank_result, iterations, me_iteration_schema),
               .is_shown = is_iteration},
              {ME_ITEMS(me_rank_result, modules, me_module_schema)},
              {ME_WITHIN("limit", me_rank_result, limit, limit_schema)},
              {ME_WITHIN("device", me_rank_result, device, device_schema)},
              {.key = "volume",
               .kind = ME_FIELD_ROWS,
               .left_out = ME_FIELD_NOT_JSON,
               .offset = offsetof(me_rank_result, volume),
               .count = (size_t)ME_GROUP_COUNT * ME_COLLECTIVE_COUNT,
               .of = &me_volume_schema},
              {ME_DERIVED("iteration_0_requested_bytes", ME_FIELD_BYTES,
                          derive_iteration_0, ME_FIELD_NOT_JSON),
               .csv = 14});

static bool has_host(const void *result)
{
    return me_host_memory_is_used(&((const me_rank_result *)result)->host);
}

static bool has_private_pools(const void *result)
{
    return ((const me_rank_result *)result)->private_pool_bytes > 0;
}

static bool has_timing_buffer(const void *result)
{
    return ((const me_rank_result *)result)->timing_buffer_bytes > 0;
}

static bool has_workspace_doubt(const void *result)
{
    return ((const me_rank_result *)result)->workspace_doubt_bytes > 0;
}

static bool has_course(const void *result)
{
    return ((const me_rank_result *)result)->n_course > 0;
}

const me_schema me_result_optional_schema =
    ME_SCHEMA(me_rank_result,
              {ME_WITHIN("host", me_rank_result, host, host_schema),
               .is_there = has_host, .left_out = ME_FIELD_IF_THERE},
              {ME_ITEMS(me_rank_result, course, me_course_schema),
               .is_there = has_course, .left_out = ME_FIELD_IF_THERE},
              {.key = "course_begin_by_category",
               .kind = ME_FIELD_BY_CATEGORY,
               .offset = offsetof(me_rank_result, course_begin_by_category),
               .is_there = has_course,
               .left_out = ME_FIELD_IF_THERE},
              {ME_U32(me_rank_result, course_left_out), .is_there = has_course,
               .left_out = ME_FIELD_IF_THERE},
              {ME_BYTES(me_rank_result, private_pool_bytes),
               .is_there = has_private_pools, .left_out = ME_FIELD_IF_THERE},
              {ME_BYTES(me_rank_result, timing_buffer_bytes),
               .is_there = has_timing_buffer, .left_out = ME_FIELD_IF_THERE},
              {ME_BYTES(me_rank_result, workspace_doubt_bytes),
               .is_there = has_workspace_doubt, .left_out = ME_FIELD_IF_THERE});
