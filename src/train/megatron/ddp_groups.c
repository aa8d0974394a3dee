/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/ddp_groups.h"

#include "train/megatron/trainer.h"

/** Are all buckets of a chunk one group? They are where bucketing is off
 *  (get_model's disable_bucketing), and else a group each. */
static bool is_one_group(const me_trainer *t, int32_t chunk)
{
    return chunk > 0 ||
           t->config->optimizer.overlap_param_gather_with_optimizer_step;
}

/** Is each bucket a group? Else those of plain parameters are in the last of
 *  quantised ones. */
static bool is_group_each(const me_trainer *t)
{
    return t->config->optimizer.ddp_reduce_scatter_with_fp32_accumulation;
}

/** The buffer of a sharing's quantised parameters, or NULL. */
static const me_ddp_buffer *quantized_of(const me_ddp *ddp, me_sharing sharing)
{
    for (int i = 0; i < ddp->n_buffers; i++) {
        const me_ddp_buffer *b = &ddp->buffers[i];
        if (b->sharing == sharing && b->is_quantized) {
            return b;
        }
    }
    return NULL;
}

uint32_t me_bucket_group_of(const me_trainer *t, int32_t chunk,
                            const me_ddp_buffer *buffer, uint32_t bucket)
{
    const me_ddp_buffer *quantized =
        quantized_of(&t->ddp[chunk], buffer->sharing);
    if (is_one_group(t, chunk)) {
        return 0;
    }
    if (quantized == NULL || buffer->is_quantized) {
        return bucket;
    }
    return is_group_each(t) ? quantized->layout->n_buckets + bucket
                            : quantized->layout->n_buckets - 1;
}

uint32_t me_bucket_groups_count(const me_trainer *t, int32_t chunk,
                                me_sharing sharing)
{
    const me_ddp *ddp = &t->ddp[chunk];
    const me_ddp_buffer *quantized = quantized_of(ddp, sharing);
    uint32_t n = 0;
    for (int i = 0; i < ddp->n_buffers; i++) {
        const me_ddp_buffer *b = &ddp->buffers[i];
        if (b->sharing == sharing && b->layout != NULL &&
            (quantized == NULL || b == quantized || is_group_each(t))) {
            n += b->layout->n_buckets;
        }
    }
    return is_one_group(t, chunk) && n > 1 ? 1 : n;
}

/** Buckets of one buffer that are the group's. */
static void visit_buffer(me_trainer *t, int32_t chunk, const me_ddp_buffer *b,
                         uint32_t group, me_bucket_visit *visit, void *self)
{
    for (uint32_t k = 0; b->layout != NULL && k < b->layout->n_buckets; k++) {
        if (me_bucket_group_of(t, chunk, b, k) == group) {
            visit(t, b, k, self);
        }
    }
}

void me_bucket_group_visit(me_trainer *t, int32_t chunk, me_sharing sharing,
                           uint32_t group, me_bucket_visit *visit, void *self)
{
    const me_ddp *ddp = &t->ddp[chunk];
    for (int turn = 0; turn < 2; turn++) { // quantised ones, unless all are one
        for (int i = 0; i < ddp->n_buffers; i++) {
            const me_ddp_buffer *b = &ddp->buffers[i];
            const bool is_later = !is_one_group(t, chunk) && !b->is_quantized;
            if (b->sharing == sharing && is_later == (turn == 1)) {
                visit_buffer(t, chunk, b, group, visit, self);
            }
        }
    }
}
