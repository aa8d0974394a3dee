/* SPDX-License-Identifier: BSD-3-Clause */
#include "diff/snapshot_peak.h"

#include "base/alloc.h"
#include "model/event.h"

#include <stdlib.h>
#include <string.h>

/** Of a block that is not freed. */
#define NEVER UINT32_MAX

int32_t me_trace_category(const char *file)
{
    for (int i = 0; i < ME_CATEGORY_COUNT; i++) {
        if (strcmp(file, me_category_name((me_category)i)) == 0) {
            return i;
        }
    }
    return -1;
}

/** The number of the label that was read; 0 without memory, which the caller
 *  sees by there being none. */
static uint32_t find_label(me_trace_reading *t)
{
    const char *text = me_str_text(&t->label);
    bool is_new = false;
    me_id_value *value = NULL;
    if (me_id_map_add(&t->label_of, text, strlen(text), &is_new, &value) !=
        ME_OK) {
        return 0;
    }
    if (is_new) {
        char **grown = me_grow(t->labels, t->n_labels, &t->label_capacity,
                               sizeof(char *), "diff.labels");
        char *copy = me_strdup(text, "diff.labels");
        t->labels = grown == NULL ? t->labels : grown;
        if (grown == NULL || copy == NULL) {
            me_free(copy);
            return 0;
        }
        value->block = t->n_labels;
        t->labels[t->n_labels++] = copy;
    }
    return value->block;
}

static me_status append(me_trace_call **list, uint32_t *count,
                        uint32_t *capacity, const me_trace_call *call)
{
    me_trace_call *grown =
        me_grow(*list, *count, capacity, sizeof *grown, "diff.blocks");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    *list = grown;
    grown[(*count)++] = *call;
    return ME_OK;
}

static me_status note_call(me_trace_reading *t, int64_t bytes,
                           const char *metadata)
{
    me_profile_calls *calls = &t->profile->calls;
    int64_t *grown = me_grow(calls->bytes, calls->count, &calls->capacity,
                             sizeof *grown, "diff.calls");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    calls->bytes = grown;
    if (strncmp(metadata, "iteration ", 10) == 0) {
        if (calls->iteration == NULL ||
            strcmp(calls->iteration, metadata) != 0) {
            me_free(calls->iteration);
            calls->iteration = me_strdup(metadata, "diff.calls");
            calls->first = calls->count;
            t->profile->n_iterations = me_profile_iterations(metadata + 10);
        }
        calls->end = calls->count + 1;
    }
    grown[calls->count++] = bytes;
    return ME_OK;
}

static me_status note_change(me_trace_reading *t, int64_t bytes)
{
    int64_t *grown = me_grow(t->changes, t->n_changes, &t->change_capacity,
                             sizeof *grown, "diff.changes");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    t->changes = grown;
    grown[t->n_changes++] = bytes;
    return ME_OK;
}

static me_status make(me_trace_reading *t, const me_trace_call *call,
                      uint32_t made_at)
{
    me_trace_call block = *call;
    bool is_new = false;
    me_id_value *value = NULL;
    block.label = find_label(t);
    block.category = t->category;
    block.made_at = made_at;
    block.freed_at = NEVER;
    if (t->n_labels == 0 ||
        me_id_map_add(&t->live, (const char *)&block.address,
                      sizeof block.address, &is_new, &value) != ME_OK) {
        return ME_ERR_NOMEM;
    }
    value->block = t->n_blocks;
    return append(&t->blocks, &t->n_blocks, &t->block_capacity, &block);
}

static me_status free_block(me_trace_reading *t, const me_trace_call *call,
                            uint32_t at)
{
    me_id_value *value = me_id_map_find(&t->live, (const char *)&call->address,
                                        sizeof call->address);
    if (value == NULL) { // it was there before
        me_str_clear(&t->label);
        t->category = -1;
        const me_status status = make(t, call, 0);
        if (status == ME_OK) {
            value = me_id_map_find(&t->live, (const char *)&call->address,
                                   sizeof call->address);
        }
        if (value == NULL) {
            return ME_ERR_NOMEM;
        }
    }
    t->blocks[value->block].freed_at = at;
    me_id_map_remove(&t->live, value);
    return ME_OK;
}

me_status me_trace_add(me_trace_reading *t, const char *action,
                       const me_trace_call *call, const char *metadata)
{
    const int64_t bytes = (int64_t)call->bytes;
    me_status status = ME_OK;
    if (strcmp(action, "alloc") == 0) {
        status = make(t, call, t->n_changes + 1);
        status = status == ME_OK ? note_change(t, bytes) : status;
        return status == ME_OK ? note_call(t, bytes, metadata) : status;
    }
    if (strcmp(action, "free_requested") == 0) {
        return note_call(t, -bytes, metadata);
    }
    if (strcmp(action, "free_completed") == 0) {
        status = free_block(t, call, t->n_changes);
        return status == ME_OK ? note_change(t, -bytes) : status;
    }
    if (strcmp(action, "segment_alloc") == 0 ||
        strcmp(action, "segment_map") == 0) {
        t->reserved += bytes;
    } else if (strcmp(action, "segment_free") == 0 ||
               strcmp(action, "segment_unmap") == 0) {
        t->reserved -= bytes;
    }
    t->reserved_peak =
        t->reserved > t->reserved_peak ? t->reserved : t->reserved_peak;
    return ME_OK;
}

me_status me_trace_add_end(me_trace_reading *t, const me_trace_call *block)
{
    me_trace_call copy = *block;
    copy.label = find_label(t);
    copy.category = t->category;
    return t->n_labels == 0
               ? ME_ERR_NOMEM
               : append(&t->at_end, &t->n_at_end, &t->end_capacity, &copy);
}

/** Blocks of the end that the trace does not make. */
static me_status add_early(me_trace_reading *t)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < t->n_at_end; i++) {
        me_trace_call block = t->at_end[i];
        if (me_id_map_find(&t->live, (const char *)&block.address,
                           sizeof block.address) == NULL) {
            block.made_at = 0;
            block.freed_at = NEVER;
            status =
                append(&t->blocks, &t->n_blocks, &t->block_capacity, &block);
        }
    }
    return status;
}

/** Bytes that are there when the trace begins. */
static uint64_t bytes_before(const me_trace_reading *t)
{
    int64_t made = 0;
    uint64_t now = 0;
    for (uint32_t i = 0; i < t->n_blocks; i++) {
        now += t->blocks[i].freed_at == NEVER ? t->blocks[i].bytes : 0;
    }
    for (uint32_t i = 0; i < t->n_changes; i++) {
        made += t->changes[i];
    }
    return now - (uint64_t)made;
}

/** How many changes there are up to the peak, which is the first one. */
static uint32_t find_peak(const me_trace_reading *t, uint64_t *peak_out)
{
    uint64_t now = bytes_before(t);
    uint32_t at = 0;
    *peak_out = now;
    for (uint32_t i = 0; i < t->n_changes; i++) {
        now += (uint64_t)t->changes[i];
        if (t->changes[i] > 0 && now > *peak_out) {
            *peak_out = now;
            at = i + 1;
        }
    }
    return at;
}

/** By their bytes, then by their label. */
static int by_label(const void *a, const void *b)
{
    const me_trace_call *x = *(const me_trace_call *const *)a;
    const me_trace_call *y = *(const me_trace_call *const *)b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes) - (x->bytes < y->bytes)
                                : (x->label > y->label) - (x->label < y->label);
}

/** Blocks of one size are a part, which the label that most of them bear names.
 *  @param blocks  n, ordered by them */
static me_status add_blocks(const me_trace_reading *t,
                            const me_trace_call *const *blocks, uint32_t n,
                            me_part_list *parts)
{
    me_status status = ME_OK;
    uint32_t next = 0;
    for (uint32_t i = 0; status == ME_OK && i < n; i = next) {
        const uint64_t bytes = blocks[i]->bytes;
        uint32_t n_most = 0;
        uint32_t label = blocks[i]->label;
        uint32_t n_same = 0;
        for (next = i; next < n && blocks[next]->bytes == bytes; next++) {
            const bool is_same =
                next > i && blocks[next]->label == blocks[next - 1]->label;
            n_same = is_same ? n_same + 1 : 1;
            if (n_same > n_most) {
                n_most = n_same;
                label = blocks[next]->label;
            }
        }
        status = me_part_add(parts, t->labels[label], bytes, bytes * (next - i),
                             next - i);
    }
    return status;
}

static me_status list_peak(me_trace_reading *t, uint32_t at,
                           me_profile_rank *rank)
{
    me_status status = ME_OK;
    uint32_t n = 0;
    const me_trace_call **blocks =
        me_alloc(t->n_blocks, sizeof *blocks, "diff.peak");
    if (blocks == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; status == ME_OK && i < t->n_blocks; i++) {
        const me_trace_call *b = &t->blocks[i];
        if (b->made_at > at || b->freed_at < at) {
            continue;
        }
        blocks[n++] = b;
        if (b->category >= 0) {
            status = me_part_add(&rank->divisions[ME_DIVISION_CATEGORY],
                                 me_category_name((me_category)b->category), 0,
                                 b->bytes, 1);
        }
    }
    qsort(blocks, n, sizeof(const me_trace_call *), by_label);
    if (status == ME_OK) {
        status = add_blocks(t, blocks, n, &rank->divisions[ME_DIVISION_BLOCK]);
    }
    me_free(blocks);
    return status;
}

me_status me_trace_finish(me_trace_reading *t)
{
    me_status status = add_early(t);
    me_profile_rank *rank = me_profile_rank_add(t->profile, t->rank);
    if (status != ME_OK || rank == NULL) {
        return ME_ERR_NOMEM;
    }
    uint64_t peak = 0;
    const uint32_t at = find_peak(t, &peak);
    const uint64_t before = t->reserved_end - (uint64_t)t->reserved;
    me_profile_set(rank, ME_QUANTITY_REQUESTED_PEAK, peak);
    me_profile_set(rank, ME_QUANTITY_ALLOCATED_END, t->allocated_end);
    me_profile_set(rank, ME_QUANTITY_RESERVED_END, t->reserved_end);
    me_profile_set(rank, ME_QUANTITY_RESERVED_PEAK,
                   before + (uint64_t)t->reserved_peak);
    return list_peak(t, at, rank);
}

void me_trace_reading_fini(me_trace_reading *t)
{
    for (uint32_t i = 0; i < t->n_labels; i++) {
        me_free(t->labels[i]);
    }
    me_free(t->labels);
    me_free(t->blocks);
    me_free(t->at_end);
    me_free(t->changes);
    me_id_map_fini(&t->label_of);
    me_id_map_fini(&t->live);
    me_str_fini(&t->label);
}
