/* SPDX-License-Identifier: BSD-3-Clause */
/* core/optimizer/distrib_optimizer.py: what saving a checkpoint takes. */
#include "base/alloc.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/trainer.h"

enum {
    GATHERED_STATES = 3 /* main parameters, and Adam's two moments */
};

/**
 * One bucket of get_parameter_state_dp_zero() with NCCL: every rank's shard, the
 * rank's own, which came from the host, and what all_gather() of equal sizes
 * flattens the list into. Then all of it goes to the host.
 */
static void gather_bucket(me_trainer *t, const me_ddp_buffer *buffer,
                          const me_bucket *bucket, me_tensor **parts)
{
    me_engine *e = t->e;
    const uint64_t ranks = (uint64_t)t->comm->size[buffer->group];
    const uint64_t local = (bucket->end - bucket->start) / ranks;
    const me_frame frame = me_enter(e);
    for (uint64_t i = 0; i < ranks; i++) {
        parts[i] = me_empty(e, "zeros", ME_DTYPE_FLOAT32, ME_SHAPE(local));
    }
    me_tensor *own = me_empty(e, "cuda", ME_DTYPE_FLOAT32, ME_SHAPE(local));
    me_tensor *flat =
        me_empty(e, "all_gather", ME_DTYPE_FLOAT32, ME_SHAPE(ranks * local));
    me_communicate(e, t->comm,
                   (me_call){buffer->group, ME_COLLECTIVE_ALL_GATHER,
                             ME_DTYPE_FLOAT32, local, -1, false});
    me_drop(e, flat);
    me_drop(e, own);
    for (uint64_t i = 0; i < ranks; i++) {
        me_drop(e, parts[i]);
    }
    me_leave(e, frame, NULL);
}

static void gather_buffer(me_trainer *t, const me_ddp_buffer *buffer)
{
    const me_buffer *layout = buffer->layout;
    me_tensor **parts = me_engine_alloc(
        t->e, (size_t)t->comm->size[buffer->group], sizeof(me_tensor *));
    const uint32_t n = layout == NULL || parts == NULL ? 0 : layout->n_buckets;
    for (uint32_t i = 0; i < n * GATHERED_STATES; i++) {
        gather_bucket(t, buffer, &layout->buckets[i / GATHERED_STATES], parts);
    }
}

void me_save_checkpoint(me_trainer *t)
{
    me_engine *e = t->e;
    if (!t->config->optimizer.saves_fully_reshardable ||
        !t->config->optimizer.distributed) {
        return;
    }
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    for (int32_t c = 0; c < t->spec->n_chunks; c++) {
        for (int i = 0; i < t->ddp[c].n_buffers; i++) {
            gather_buffer(t, &t->ddp[c].buffers[i]);
        }
    }
    me_category_set(e, category);
    me_point(e, "checkpoint_saved");
}
