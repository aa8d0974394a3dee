/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/shards.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/size.h"

static me_status check_cut(const me_buffer *buffer, int32_t ranks, int32_t rank,
                           me_diag *diag)
{
    if (ranks < 1 || rank < 0 || rank >= ranks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "no rank %d among the %d that share a buffer", rank,
                       ranks);
    }
    for (uint32_t i = 0; i < buffer->n_buckets; i++) {
        const uint64_t numel =
            buffer->buckets[i].end - buffer->buckets[i].start;
        if (numel % (uint64_t)ranks != 0) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "bucket %u has %llu elements, not a multiple of %d "
                           "ranks",
                           i, (unsigned long long)numel, ranks);
        }
    }
    return ME_OK;
}

/** Add the parts of a bucket's parameters that lie in the rank's range. */
static void own_bucket(const me_buffer *buffer, uint32_t index, me_range range,
                       me_shards *shards)
{
    const me_bucket *bucket = &buffer->buckets[index];
    shards->range_numel += range.end - range.start;
    for (uint32_t i = 0; i < bucket->n_slots; i++) {
        const me_slot *slot = &buffer->slots[bucket->first_slot + i];
        const uint64_t start = me_max_u64(slot->start, range.start);
        const uint64_t end = me_min_u64(slot->start + slot->numel, range.end);
        if (start >= end) {
            continue;
        }
        shards->items[shards->count++] =
            (me_shard){.param = slot->param,
                       .bucket = index,
                       .start = start - slot->start,
                       .numel = end - start,
                       .buffer_start = start};
        shards->numel += end - start;
    }
}

/**
 * The range of a bucket that a rank owns.
 *
 * @param bucket  its length is a multiple of @p ranks
 * @param ranks   ranks that share the bucket
 * @param rank    index in their group
 */
static me_range bucket_range(const me_bucket *bucket, int32_t ranks,
                             int32_t rank)
{
    ME_ASSERT(rank >= 0 && rank < ranks);
    const uint64_t share = (bucket->end - bucket->start) / (uint64_t)ranks;
    const uint64_t start = bucket->start + share * (uint64_t)rank;
    return (me_range){start, start + share};
}

me_status me_shards_create(const me_buffer *buffer, int32_t ranks, int32_t rank,
                           me_diag *diag, me_shards **shards_out)
{
    me_status status = check_cut(buffer, ranks, rank, diag);
    if (status != ME_OK) {
        return status;
    }
    me_shards *shards = me_alloc(1, sizeof *shards, "shards");
    if (shards != NULL) {
        shards->items =
            me_alloc(buffer->n_slots, sizeof *shards->items, "shards.items");
    }
    if (shards == NULL || shards->items == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM,
                         "no host memory for the shards of %u parameters",
                         buffer->n_slots);
        goto out;
    }
    for (uint32_t i = 0; i < buffer->n_buckets; i++) {
        own_bucket(buffer, i, bucket_range(&buffer->buckets[i], ranks, rank),
                   shards);
    }
    *shards_out = shards;
    shards = NULL;
out:
    me_shards_destroy(shards);
    return status;
}

void me_shards_destroy(me_shards *shards)
{
    if (shards == NULL) {
        return;
    }
    me_free(shards->items);
    me_free(shards);
}
