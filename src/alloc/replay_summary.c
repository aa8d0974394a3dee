/* SPDX-License-Identifier: BSD-3-Clause */
/* All counters by pool, as torch.cuda.memory_summary() and memory_stats() have
 * them: at the end of a recording, with the peaks of all of it. */
#include "alloc/replay_internal.h"

#include <inttypes.h>

/** A metric of the summary. */
typedef struct metric {
    me_pool_stat_kind kind;
    const char *name; /**< PyTorch's */
    bool is_count;    /**< else bytes */
} metric;

/** In PyTorch's order. */
static const metric metrics[] = {
    {ME_POOL_ALLOCATED_BYTES, "Allocated memory", false},
    {ME_POOL_ACTIVE_BYTES, "Active memory", false},
    {ME_POOL_REQUESTED_BYTES, "Requested memory", false},
    {ME_POOL_RESERVED_BYTES, "GPU reserved memory", false},
    {ME_POOL_INACTIVE_SPLIT_BYTES, "Non-releasable memory", false},
    {ME_POOL_ALLOCATION, "Allocations", true},
    {ME_POOL_ACTIVE, "Active allocs", true},
    {ME_POOL_SEGMENT, "GPU reserved segments", true},
    {ME_POOL_INACTIVE_SPLIT, "Non-releasable allocs", true},
};

/** A line below a metric. */
typedef struct line {
    me_pool_slot slot;
    const char *key;  /**< of memory_stats() */
    const char *name; /**< of memory_summary(); NULL: the metric's */
} line;

static const line lines[] = {
    {ME_POOL_ALL, "all", NULL},
    {ME_POOL_LARGE, "large_pool", "      from large pool"},
    {ME_POOL_SMALL, "small_pool", "      from small pool"},
};

enum {
    N_METRICS = sizeof metrics / sizeof metrics[0],
    N_LINES = sizeof lines / sizeof lines[0]
};

static double in_mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

static void append_numbers(me_str *text, const metric *m, const char *name,
                           const me_pool_stat *stat)
{
    const uint64_t numbers[] = {stat->current, stat->peak, stat->allocated,
                                stat->freed};
    me_str_printf(text, "%-22s", name);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (m->is_count) {
            me_str_printf(text, " %14" PRIu64, numbers[i]);
        } else {
            me_str_printf(text, " %14.3f", in_mib(numbers[i]));
        }
    }
    me_str_append(text, "\n");
}

/** Counters at the end; peaks of the whole recording. */
static void read_stats(const replay *r, me_pool_stats *stats)
{
    me_pool_read(r->pool, stats);
    for (int kind = 0; kind < ME_POOL_STAT_COUNT; kind++) {
        for (int slot = 0; slot < ME_POOL_SLOTS; slot++) {
            stats->stat[kind][slot].peak = r->peaks[kind][slot];
        }
    }
    stats->oversize_allocations.peak = r->oversize_peaks[0];
    stats->oversize_segments.peak = r->oversize_peaks[1];
}

void me_replay_summary_text(const replay *r)
{
    me_pool_stats stats;
    read_stats(r, &stats);
    me_str_printf(r->report, "\n%-22s %14s %14s %14s %14s\n", "at the end, MiB",
                  "Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed");
    for (int i = 0; i < N_METRICS; i++) {
        const metric *m = &metrics[i];
        for (int k = 0; k < N_LINES; k++) {
            append_numbers(r->report, m,
                           lines[k].name == NULL ? m->name : lines[k].name,
                           &stats.stat[m->kind][lines[k].slot]);
        }
    }
    const metric counts = {.is_count = true};
    append_numbers(r->report, &counts, "Oversize allocations",
                   &stats.oversize_allocations);
    append_numbers(r->report, &counts, "Oversize GPU segments",
                   &stats.oversize_segments);
    me_str_printf(r->report,
                  "CUDA OOMs %" PRIu64 ", cudaMalloc retries %" PRIu64
                  ", segments taken %" PRIu64 ", given back %" PRIu64 "\n",
                  stats.num_ooms, stats.num_alloc_retries,
                  stats.num_device_alloc, stats.num_device_free);
}

static void append_json_stat(me_str *text, const char *key,
                             const me_pool_stat *stat)
{
    me_str_printf(text,
                  "\"%s\": {\"current\": %" PRIu64 ", \"peak\": %" PRIu64
                  ", \"allocated\": %" PRIu64 ", \"freed\": %" PRIu64 "}",
                  key, stat->current, stat->peak, stat->allocated, stat->freed);
}

void me_replay_summary_json(const replay *r)
{
    me_pool_stats stats;
    read_stats(r, &stats);
    me_str_append(r->report, "{");
    for (int i = 0; i < N_METRICS; i++) {
        me_str_printf(r->report, "%s\n    \"%s\": {", i == 0 ? "" : ",",
                      me_pool_stat_name(metrics[i].kind));
        for (int k = 0; k < N_LINES; k++) {
            me_str_append(r->report, k == 0 ? "" : ", ");
            append_json_stat(r->report, lines[k].key,
                             &stats.stat[metrics[i].kind][lines[k].slot]);
        }
        me_str_append(r->report, "}");
    }
    me_str_append(r->report, ",\n    ");
    append_json_stat(r->report, "oversize_allocations",
                     &stats.oversize_allocations);
    me_str_append(r->report, ",\n    ");
    append_json_stat(r->report, "oversize_segments", &stats.oversize_segments);
    me_str_printf(r->report,
                  ",\n    \"num_ooms\": %" PRIu64
                  ", \"num_alloc_retries\": %" PRIu64
                  ", \"num_device_alloc\": %" PRIu64
                  ", \"num_device_free\": %" PRIu64 "}",
                  stats.num_ooms, stats.num_alloc_retries,
                  stats.num_device_alloc, stats.num_device_free);
}
