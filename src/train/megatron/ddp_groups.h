/**
 * @file
 * Bucket groups (core/distributed/param_and_grad_buffer.py,
 * partition_buckets()): which buckets of a chunk's buffers are checked and
 * reduced together. Each is a group, but that parameters in FP8 have a buffer
 * of their own, with whose last bucket the buckets of all others go; and where
 * bucketing is off all are one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_DDP_GROUPS_H
#define MEMEST_TRAIN_MEGATRON_DDP_GROUPS_H

#include "train/megatron/ddp.h"

/** What is called with each bucket of a group. */
typedef void me_bucket_visit(struct me_trainer *t, const me_ddp_buffer *buffer,
                             uint32_t bucket, void *self);

/** How many groups the buckets of a chunk's sharing are. */
uint32_t me_bucket_groups_count(const struct me_trainer *t, int32_t chunk,
                                me_sharing sharing);

/** The group that a bucket is in. */
uint32_t me_bucket_group_of(const struct me_trainer *t, int32_t chunk,
                            const me_ddp_buffer *buffer, uint32_t bucket);

/** Call @p visit with each bucket of a group, in the group's order. */
void me_bucket_group_visit(struct me_trainer *t, int32_t chunk,
                           me_sharing sharing, uint32_t group,
                           me_bucket_visit *visit, void *self);

/** start_grad_sync(): with sums in float32 what the group before has exchanged is
 *  summed and let go of first; then all buckets of the group are checked, then all
 *  are reduced. */
void me_bucket_group_reduce(struct me_trainer *t, int32_t chunk,
                            me_sharing sharing, uint32_t group);

/** finish_grad_sync() of a group that has begun: what it has exchanged is summed
 *  in float32 and let go of, unless it was already. */
void me_bucket_group_finish(struct me_trainer *t, int32_t chunk,
                            me_sharing sharing, uint32_t group);

#endif /* MEMEST_TRAIN_MEGATRON_DDP_GROUPS_H */
