/* SPDX-License-Identifier: BSD-3-Clause */
/* What others see of a pool: counters, PyTorch's message. */
#include "alloc/pool_internal.h"

#include <inttypes.h>

static const char *const stat_names[] = {
#define STAT_NAME(constant, name) [constant] = (name),
    ME_POOL_STAT_LIST(STAT_NAME)
#undef STAT_NAME
};

static const char *const action_names[] = {
#define ACTION_NAME(constant, name) [constant] = (name),
    ME_POOL_ACTION_LIST(ACTION_NAME)
#undef ACTION_NAME
};

const char *me_pool_stat_name(me_pool_stat_kind kind)
{
    return stat_names[kind];
}

const char *me_pool_action_name(me_pool_action action)
{
    return action_names[action];
}

const char *me_pool_taker_name(me_pool_taker taker)
{
    static const char *const names[] = {
#define TAKER_NAME(constant, name) [constant] = (name),
        ME_POOL_TAKER_LIST(TAKER_NAME)
#undef TAKER_NAME
    };
    return names[taker];
}

static me_pool_stat read_counter(const counter *c)
{
    return (me_pool_stat){
        .current = c->current,
        .peak = c->peak,
        .allocated = c->allocated,
        .freed = c->allocated - c->current,
    };
}

void me_pool_read(const me_pool *pool, me_pool_stats *stats_out)
{
    for (int kind = 0; kind < ME_POOL_STAT_COUNT; kind++) {
        for (int slot = 0; slot < ME_POOL_SLOTS; slot++) {
            stats_out->stat[kind][slot] =
                read_counter(&pool->counters[kind][slot]);
        }
    }
    stats_out->oversize_allocations = read_counter(&pool->oversize_allocations);
    stats_out->oversize_segments = read_counter(&pool->oversize_segments);
    stats_out->num_alloc_retries = pool->num_alloc_retries;
    stats_out->num_ooms = pool->num_ooms;
    stats_out->num_sync_all_streams = pool->num_sync_all_streams;
    stats_out->num_device_alloc = pool->num_device_alloc;
    stats_out->num_device_free = pool->num_device_free;
}

uint64_t me_pool_current(const me_pool *pool, me_pool_stat_kind kind)
{
    return pool->counters[kind][ME_POOL_ALL].current;
}

uint64_t me_pool_peak(const me_pool *pool, me_pool_stat_kind kind)
{
    return pool->counters[kind][ME_POOL_ALL].peak;
}

uint64_t me_pool_num_alloc_retries(const me_pool *pool)
{
    return pool->num_alloc_retries;
}

uint64_t me_pool_driver_calls(const me_pool *pool)
{
    return pool->num_device_alloc + pool->num_device_free +
           pool->num_alloc_retries + pool->num_ooms;
}

uint64_t me_pool_num_given_back(const me_pool *pool)
{
    return pool->num_device_free;
}

uint64_t me_pool_small_segments(const me_pool *pool)
{
    return pool->counters[ME_POOL_SEGMENT][ME_POOL_SMALL].current;
}

uint64_t me_pool_num_taken(const me_pool *pool)
{
    return pool->num_device_alloc;
}

uint64_t me_pool_newest_address(const me_pool *pool)
{
    return pool->newest_address;
}

uint64_t me_pool_room(const me_pool *pool)
{
    const uint64_t capacity = pool->options.capacity_bytes;
    const uint64_t most =
        me_min_u64(pool->limit_bytes, capacity == 0 ? UINT64_MAX : capacity);
    return most == UINT64_MAX ? most
                              : most - me_min_u64(most, reserved_bytes(pool));
}

bool me_pool_is_small(const me_pool *pool, uint64_t bytes)
{
    return bytes <= SMALL_REQUEST &&
           me_pool_round(&pool->options.conf, bytes) <= SMALL_REQUEST;
}

const me_pool_oom *me_pool_last_oom(const me_pool *pool)
{
    return &pool->oom;
}

void me_pool_reset_peaks(me_pool *pool)
{
    counter *all = &pool->counters[0][0];
    for (int i = 0; i < ME_POOL_STAT_COUNT * ME_POOL_SLOTS; i++) {
        all[i].peak = all[i].current;
    }
    pool->oversize_allocations.peak = pool->oversize_allocations.current;
    pool->oversize_segments.peak = pool->oversize_segments.current;
}

/** Sizes as PyTorch prints them. */
static void append_size(me_str *text, uint64_t bytes)
{
    if (bytes <= UINT64_C(1) << 10) {
        me_str_printf(text, "%" PRIu64 " bytes", bytes);
    } else if (bytes <= UINT64_C(1) << 20) {
        me_str_printf(text, "%.2f KiB", (double)bytes / 1024.0);
    } else if (bytes <= UINT64_C(1) << 30) {
        me_str_printf(text, "%.2f MiB", (double)bytes / 1048576.0);
    } else {
        me_str_printf(text, "%.2f GiB", (double)bytes / 1073741824.0);
    }
}

static void append_device(const me_pool *pool, me_str *text)
{
    const me_pool_options *o = &pool->options;
    const uint64_t total =
        o->device_total_bytes != 0 ? o->device_total_bytes : o->capacity_bytes;
    me_str_printf(text, ". GPU %d", o->device_index);
    if (total != 0) {
        me_str_append(text, " has a total capacity of ");
        append_size(text, total);
        me_str_append(text, " of which ");
        append_size(text, pool->oom.free_bytes);
        me_str_append(text, " is free");
    }
    me_str_append(text, ". Including non-PyTorch memory, this process has ");
    append_size(text, pool->oom.reserved_bytes + o->outside_bytes);
    me_str_append(text, " memory in use. ");
}

void me_pool_oom_text(const me_pool *pool, me_str *text)
{
    const me_pool_oom *oom = &pool->oom;
    me_str_append(text, "CUDA out of memory. Tried to allocate ");
    if (oom->requested_bytes >= TOO_LARGE) {
        me_str_append(text, "more than 1EB memory.");
        return;
    }
    append_size(text, oom->tried_bytes);
    append_device(pool, text);
    if (pool->limit_bytes != UINT64_MAX) {
        append_size(text, pool->limit_bytes);
        me_str_append(text, " allowed; ");
    }
    me_str_append(text, "Of the allocated memory ");
    append_size(text, oom->allocated_bytes);
    me_str_append(text, " is allocated by PyTorch, and ");
    append_size(text, oom->reserved_bytes - oom->allocated_bytes);
    me_str_append(
        text,
        " is reserved by PyTorch but unallocated. If reserved but unallocated "
        "memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
        "expandable_segments:True to avoid fragmentation.  See documentation "
        "for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
        "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)");
}

uint64_t me_pool_private_bytes(const me_pool *pool)
{
    return pool->private_bytes;
}

uint64_t me_pool_largest_free(const me_pool *pool, uint64_t stream)
{
    uint64_t largest = 0;
    for (int slot = ME_POOL_SMALL; slot <= ME_POOL_LARGE; slot++) {
        const uint32_t last = me_pool_free_last(pool, (unsigned)slot, stream);
        if (last != NIL) {
            largest = me_max_u64(largest, at(pool, last)->size);
        }
    }
    return largest;
}
