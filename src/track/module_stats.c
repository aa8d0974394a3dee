/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/module_stats.h"

#include "base/alloc.h"
#include "base/size.h"

#include <string.h>

void me_module_stats_init(me_module_stats *stats, const me_module_tree *tree)
{
    *stats = (me_module_stats){.tree = tree, .epoch = 1};
}

void me_module_stats_fini(me_module_stats *stats)
{
    me_free(stats->stats);
    me_free(stats->frames);
    *stats = (me_module_stats){0};
}

void me_module_stats_begin(me_module_stats *stats)
{
    if (stats->stats != NULL) {
        memset(stats->stats, 0, stats->n_stats * sizeof *stats->stats);
    }
    stats->n_frames = 0;
    stats->epoch++;
    stats->microbatch = ME_NO_MICROBATCH;
    stats->is_on = true;
}

/** The record of @p module, or NULL without memory. */
static me_module_stat *find_stat(me_module_stats *stats, uint32_t module)
{
    if (module < stats->n_stats) {
        return &stats->stats[module];
    }
    if (module >= stats->tree->count) {
        stats->status = ME_ERR_INTERNAL;
        return NULL;
    }
    const uint32_t count = stats->tree->count;
    me_module_stat *grown =
        me_realloc(stats->stats, count, sizeof *grown, "module_stats");
    if (grown == NULL) {
        stats->status = ME_ERR_NOMEM;
        return NULL;
    }
    memset(grown + stats->n_stats, 0, (count - stats->n_stats) * sizeof *grown);
    stats->stats = grown;
    stats->n_stats = count;
    return &grown[module];
}

static bool push_frame(me_module_stats *stats, me_module_frame frame)
{
    if (stats->n_frames == stats->frames_capacity) {
        me_module_frame *frames =
            me_grow(stats->frames, stats->n_frames, &stats->frames_capacity,
                    sizeof *frames, "module_stats.frames");
        if (frames == NULL) {
            stats->status = ME_ERR_NOMEM;
            return false;
        }
        stats->frames = frames;
    }
    stats->frames[stats->n_frames++] = frame;
    return true;
}

void me_module_stats_enter(me_module_stats *stats, const me_event *event,
                           uint64_t requested)
{
    me_module_stat *stat = NULL;
    if (!stats->is_on || (stat = find_stat(stats, event->module)) == NULL) {
        return;
    }
    const me_module_frame frame = {
        .module = event->module,
        .is_backward = event->phase == ME_PHASE_BACKWARD ||
                       event->phase == ME_PHASE_RECOMPUTE,
        .is_forward = event->phase == ME_PHASE_FORWARD,
        .peak = requested,
    };
    if (!push_frame(stats, frame) || event->phase != ME_PHASE_FORWARD) {
        return;
    }
    if (event->microbatch != stats->microbatch) {
        stats->microbatch = event->microbatch;
        stats->epoch++;
    }
    if (!stat->has_forward) {
        stat->has_forward = true;
        stat->first_microbatch = event->microbatch;
    }
}

static void raise_peak(me_module_stats *stats, uint32_t module,
                       const me_module_frame *frame)
{
    me_module_stat *stat = find_stat(stats, module);
    if (stat == NULL || (!frame->is_forward && !frame->is_backward)) {
        return;
    }
    uint64_t *peak =
        frame->is_backward ? &stat->backward_peak : &stat->forward_peak;
    *peak = me_max_u64(*peak, frame->peak);
}

/** Count @p frame for its module, those around it and the frame outside. */
static void settle_frame(me_module_stats *stats, const me_module_frame *frame)
{
    me_module_frame *outside =
        stats->n_frames == 0 ? NULL : &stats->frames[stats->n_frames - 1];
    if (outside != NULL) {
        outside->peak = me_max_u64(outside->peak, frame->peak);
    }
    uint32_t module = frame->module;
    while (module != ME_NO_MODULE &&
           !(outside != NULL && outside->module == module &&
             module != frame->module)) {
        raise_peak(stats, module, frame);
        module = stats->tree->modules[module].parent;
    }
}

static void settle_down_to(me_module_stats *stats, uint32_t depth)
{
    while (stats->n_frames > depth) {
        const me_module_frame frame = stats->frames[--stats->n_frames];
        settle_frame(stats, &frame);
    }
}

void me_module_stats_end(me_module_stats *stats)
{
    settle_down_to(stats, 0);
    stats->is_on = false;
}

void me_module_stats_leave(me_module_stats *stats, const me_event *event)
{
    if (!stats->is_on) {
        return;
    }
    uint32_t depth = stats->n_frames;
    while (depth > 0 && stats->frames[depth - 1].module != event->module) {
        depth--;
    }
    if (depth > 0) { // else entered before the iteration began
        settle_down_to(stats, depth - 1);
    }
}

void me_module_stats_raise(me_module_stats *stats, uint64_t requested)
{
    if (stats->is_on && stats->n_frames > 0) {
        me_module_frame *top = &stats->frames[stats->n_frames - 1];
        top->peak = me_max_u64(top->peak, requested);
    }
}

void me_module_stats_phase(me_module_stats *stats)
{
    stats->epoch++;
    stats->microbatch = ME_NO_MICROBATCH;
}

void me_module_stats_alloc(me_module_stats *stats, const me_event *event,
                           me_live_block *block, uint64_t requested)
{
    if (!stats->is_on) {
        return;
    }
    if (stats->n_frames > 0) {
        me_module_frame *top = &stats->frames[stats->n_frames - 1];
        top->peak = me_max_u64(top->peak, requested);
    }
    if (event->phase != ME_PHASE_FORWARD || event->module >= stats->n_stats) {
        return;
    }
    me_module_stat *stat = &stats->stats[event->module];
    if (!stat->has_forward || stat->first_microbatch != event->microbatch ||
        stats->microbatch != event->microbatch) {
        return;
    }
    block->epoch = stats->epoch;
    if (event->category == ME_CATEGORY_ACTIVATION) {
        stat->activation += block->bytes;
    }
}

void me_module_stats_recategorize(me_module_stats *stats, uint32_t module,
                                  uint8_t before, uint8_t after,
                                  const me_live_block *block)
{
    if (block->epoch != stats->epoch || module >= stats->n_stats) {
        return;
    }
    const bool was = before == ME_CATEGORY_ACTIVATION;
    const bool is = after == ME_CATEGORY_ACTIVATION;
    if (is && !was) {
        stats->stats[module].activation += block->bytes;
    } else if (was && !is) {
        stats->stats[module].activation -= block->bytes;
    }
}

void me_module_stats_free(me_module_stats *stats, uint32_t module,
                          uint8_t category, me_live_block *block)
{
    if (block->epoch == stats->epoch && module < stats->n_stats &&
        category == ME_CATEGORY_ACTIVATION) {
        stats->stats[module].activation -= block->bytes;
    }
    block->epoch = 0;
}
