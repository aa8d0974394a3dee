/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/fine_offload_chunks.h"

#include "base/alloc.h"
#include "base/size.h"

static void *grow(me_engine *e, void *items, uint32_t count, uint32_t *capacity,
                  size_t size)
{
    return me_engine_grow(e, items, count, capacity, size, "offload.list");
}

bool me_group_list_add(me_engine *e, me_group_list *list, uint32_t item)
{
    uint32_t *items =
        grow(e, list->items, list->count, &list->capacity, sizeof *list->items);
    if (items == NULL) {
        return false;
    }
    list->items = items;
    items[list->count++] = item;
    return true;
}

void me_group_list_remove(me_group_list *list, uint32_t item)
{
    uint32_t i = 0;
    while (i < list->count && list->items[i] != item) {
        i++;
    }
    if (i == list->count) {
        return;
    }
    list->count--;
    for (; i < list->count; i++) {
        list->items[i] = list->items[i + 1];
    }
}

static bool add_chunk(me_engine *e, me_chunk_list *list,
                      me_offload_chunk *chunk)
{
    me_offload_chunk **items =
        grow(e, list->items, list->count, &list->capacity, sizeof *list->items);
    if (items == NULL) {
        return false;
    }
    list->items = items;
    items[list->count++] = chunk;
    return true;
}

uint32_t me_chunk_find(const me_offload_chunk *chunk, me_offload_module module,
                       uint32_t first)
{
    uint32_t i = first;
    while (i < chunk->count && chunk->groups[i].module != module) {
        i++;
    }
    return i < chunk->count ? i : chunk->count;
}

void me_group_forget(me_engine *e, me_offload_tensors *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        me_clear(e, &group->tensors[i].x);
    }
    group->count = 0;
}

/** flush(): as soon as all virtual stages have as many chunks, they are put
 *  down for the backward, the last stage first. */
static void flush(me_engine *e, me_fine_offload *o)
{
    const int32_t last = o->n_stages - 1;
    if (o->stages[0].count != o->stages[last].count) {
        return;
    }
    o->stages[last].count = 0;
    for (int32_t i = last; i >= 0; i--) {
        for (uint32_t k = 0; k < o->stages[i].count; k++) {
            (void)add_chunk(e, &o->backward, o->stages[i].items[k]);
        }
    }
    for (int32_t i = 0; i <= last; i++) {
        o->stages[i].count = 0;
    }
}

void me_chunk_begin(me_engine *e, me_fine_offload *offload, int32_t stage)
{
    const bool is_last = stage == offload->n_stages - 1;
    if (is_last) {
        flush(e, offload);
    }
    me_offload_chunk *chunk = me_engine_alloc(e, 1, sizeof *chunk);
    if (chunk == NULL) {
        return;
    }
    chunk->manager = offload;
    chunk->number = offload->forward.count;
    if (!add_chunk(e, &offload->stages[stage], chunk)) {
        return;
    }
    if (is_last) {
        (void)add_chunk(e, &offload->backward, chunk);
        flush(e, offload);
    }
    offload->current_forward = chunk;
    (void)add_chunk(e, &offload->forward, chunk);
}

/** finish_all_groups(). */
static bool is_finished(const me_offload_chunk *chunk, me_offload_module module)
{
    return (chunk->to_reload.count == 0 && chunk->to_offload.count == 0 &&
            chunk->index > 0) ||
           me_chunk_find(chunk, module, chunk->index) == chunk->count;
}

me_offload_chunk *me_chunk_of_forward(me_fine_offload *offload,
                                      me_offload_module module)
{
    me_fine_offload *o = offload;
    while (o->is_warm && (o->current_forward == NULL ||
                          is_finished(o->current_forward, module))) {
        if (o->next_forward >= o->forward.count) {
            o->current_forward = NULL;
            break;
        }
        o->current_forward = o->forward.items[o->next_forward++];
    }
    return o->current_forward;
}

void me_chunk_begin_group(me_engine *e, me_offload_chunk *chunk,
                          me_offload_module module)
{
    if (!chunk->manager->is_warm) {
        me_offload_tensors *groups = grow(e, chunk->groups, chunk->count,
                                          &chunk->capacity, sizeof *groups);
        if (groups == NULL) {
            return;
        }
        chunk->groups = groups;
        groups[chunk->count++] = (me_offload_tensors){.module = module};
        chunk->index++;
    } else {
        chunk->index = me_chunk_find(chunk, module, chunk->index) + 1;
    }
    if (chunk->index > chunk->count) {
        me_engine_fail(e, ME_ERR_INTERNAL,
                       "a module's group was not there in the first iteration");
        return;
    }
    me_group_forget(e, &chunk->groups[chunk->index - 1]);
    (void)me_group_list_add(e, &chunk->to_offload, chunk->index - 1);
}

bool me_chunk_offloads(const me_offload_chunk *chunk, uint32_t group)
{
    const me_offload_tensors *g = &chunk->groups[group];
    if (!chunk->manager->is_warm) {
        return true;
    }
    const bool is_next =
        me_chunk_next_backward(chunk->manager, &g->module) == chunk;
    return !g->is_kept &&
           !(is_next &&
             me_chunk_find(chunk, g->module, chunk->index) == chunk->count);
}

me_offload_chunk *me_chunk_next_backward(const me_fine_offload *offload,
                                         const me_offload_module *module)
{
    for (uint32_t i = offload->next_backward; i < offload->backward.count;
         i++) {
        me_offload_chunk *chunk = offload->backward.items[i];
        const bool has_it =
            module == NULL ? chunk->count > 0
                           : me_chunk_find(chunk, *module, 0) < chunk->count;
        if (has_it) {
            return chunk;
        }
    }
    return NULL;
}

void me_chunk_of_backward(me_engine *e, me_fine_offload *offload,
                          me_offload_module module)
{
    me_fine_offload *o = offload;
    o->current_backward = NULL;
    while (o->next_backward < o->backward.count &&
           o->current_backward == NULL) {
        me_offload_chunk *chunk = o->backward.items[o->next_backward++];
        if (me_chunk_find(chunk, module, 0) < chunk->count) {
            o->current_backward = chunk;
        }
    }
    if (o->current_backward == NULL) {
        me_engine_fail(e, ME_ERR_INTERNAL,
                       "no chunk of offloaded groups is left");
    }
}

/** A module's last group in a chunk, or NULL. */
static me_offload_tensors *last_of(const me_offload_chunk *chunk,
                                   me_offload_module module)
{
    uint32_t i = chunk->count;
    while (i > 0 && chunk->groups[i - 1].module != module) {
        i--;
    }
    return i == 0 ? NULL : &chunk->groups[i - 1];
}

/** The last group of each module in the first backward that has one stays, so
 *  that nothing waits for a reload. The margin is counted in modules: all that
 *  a chunk has. */
static void keep_last(const me_fine_offload *o)
{
    for (int module = 0; module < ME_OFFLOAD_MODULES; module++) {
        me_offload_tensors *last = NULL;
        for (uint32_t i = 0; i < o->backward.count && last == NULL; i++) {
            last = last_of(o->backward.items[i], (me_offload_module)module);
        }
        if (last != NULL) {
            last->is_kept = true;
        }
    }
}

/** Each stage keeps more than the one before it. */
static void keep_more_by_stage(me_fine_offload *o)
{
    double left = (double)o->stage * (double)o->config->offload.delta_bytes;
    for (uint32_t i = 0; i < o->backward.count; i++) {
        const me_offload_chunk *chunk = o->backward.items[i];
        for (uint32_t k = 0; k < chunk->count && left > 0; k++) {
            me_offload_tensors *group = &chunk->groups[k];
            if (!group->is_kept) {
                left -= (double)group->offloaded_bytes;
                group->is_kept = true;
            }
        }
    }
}

static bool is_eligible(const me_offload_tensors *group)
{
    return !group->is_kept && group->offloaded_bytes > 0;
}

/** And of each chunk the last groups, down to the fraction that the user wants. */
static void keep_last_groups(const me_fine_offload *o, me_offload_chunk *chunk)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < chunk->count; k++) {
        n += is_eligible(&chunk->groups[k]) ? 1 : 0;
    }
    uint32_t kept = (uint32_t)(n * (1 - o->config->offload.fraction));
    for (uint32_t k = chunk->count; k > 0 && kept > 0; k--) {
        if (is_eligible(&chunk->groups[k - 1])) {
            chunk->groups[k - 1].is_kept = true;
            kept--;
        }
    }
}

/** Of the chunks up to the first backward, after which there is never more. */
static void sum_up(const me_fine_offload *o, me_offload_summary *summary)
{
    *summary = (me_offload_summary){.groups = {0}};
    for (uint32_t i = 0; i < o->forward.count; i++) {
        const me_offload_chunk *chunk = o->forward.items[i];
        for (uint32_t k = 0; k < chunk->count; k++) {
            const me_offload_tensors *group = &chunk->groups[k];
            uint64_t *sum = &summary->bytes[group->module];
            if (!group->is_kept) {
                summary->groups[group->module]++;
                *sum = me_size_add(*sum, group->offloaded_bytes);
            }
        }
        if (o->backward.count > 0 && chunk == o->backward.items[0]) {
            break;
        }
    }
}

void me_chunks_settle(me_fine_offload *offload, me_offload_summary *summary_out)
{
    offload->is_warm = true;
    keep_last(offload);
    keep_more_by_stage(offload);
    for (uint32_t i = 0; i < offload->backward.count; i++) {
        keep_last_groups(offload, offload->backward.items[i]);
    }
    sum_up(offload, summary_out);
}
