/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/comparison.h"
#include "report/job_report.h"

const me_schema me_place_schema = ME_SCHEMA(
    me_rank_place, {ME_I32(me_rank_place, rank), .csv = 1},
    {ME_I32(me_rank_place, tp), .csv = 2},
    {ME_I32(me_rank_place, pp), .csv = 3},
    {ME_I32(me_rank_place, dp), .csv = 4},
    {ME_I32(me_rank_place, cp), .csv = 5},
    {ME_I32(me_rank_place, ep), .csv = 6},
    {ME_FIELD_AS("class", ME_FIELD_I32, me_rank_place, class_id, int32_t),
     .csv = 7});

/** A number of nanoseconds. */
#define NS(key_of, type, member)                                               \
    ME_FIELD_AS(key_of, ME_FIELD_NS, type, member, int64_t),                   \
        .left_out = ME_FIELD_NOT_SENT

/** What a stage's step is spent on; the first five add up to it. */
const me_schema me_stage_time_schema = ME_SCHEMA(
    me_time_stage,
    {NS("compute_ns", me_time_stage, compute_ns), .title = "compute",
     .csv = 29},
    {NS("exposed_communication_ns", me_time_stage, exposed_ns),
     .title = "exposed comm", .csv = 30},
    {NS("stage_wait_ns", me_time_stage, transfer_ns), .title = "stage wait",
     .csv = 31},
    {NS("host_ns", me_time_stage, host_ns), .title = "host", .csv = 32},
    {NS("optimizer_ns", me_time_stage, optimizer_ns), .title = "optimizer",
     .csv = 33},
    {NS("busy_ns", me_time_stage, busy_ns)},
    {NS("idle_ns", me_time_stage, idle_ns), .title = "idle", .csv = 34},
    {NS("host_busy_ns", me_time_stage, host_busy_ns), .title = "host busy"},
    {NS("card_busy_ns", me_time_stage, card_busy_ns), .title = "card busy"});

const me_schema me_step_schema =
    ME_SCHEMA(me_step_time, {NS("step_ns", me_step_time, step_ns), .csv = 28});

static uint64_t derive_is_bound(const void *time)
{
    const me_report_time *t = time;
    return t->step == NULL ? ME_BYTES_UNKNOWN : t->host_lacks == NULL ? 0 : 1;
}

const me_schema me_time_schema = ME_SCHEMA(
    me_report_time,
    {ME_DERIVED("step_is_lower_bound", ME_FIELD_COUNT, derive_is_bound, 0),
     .csv = 35});

const me_schema me_compare_bytes_schema = ME_SCHEMA(
    me_compare_stage,
    {ME_BYTES(me_compare_stage, requested_bytes), .title = "requested"},
    {ME_BYTES(me_compare_stage, allocated_bytes), .title = "allocated"},
    {ME_BYTES(me_compare_stage, reserved_bytes), .title = "reserved"},
    {ME_BYTES(me_compare_stage, device_bytes), .title = "device"});
