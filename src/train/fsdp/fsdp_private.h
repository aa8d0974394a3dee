/**
 * @file
 * What the files of fsdp/ share: a group's types, streams and collectives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_FSDP_FSDP_PRIVATE_H
#define MEMEST_TRAIN_FSDP_FSDP_PRIVATE_H

#include "nn/communicate.h"
#include "train/fsdp/fsdp.h"

enum {
    ME_FSDP_COPY_BYTES = 2048 /**< that a block of the copy kernels handles
                                   (aten/native/cuda/TensorShape.cu) */
};

me_engine *me_fsdp_engine(const me_fsdp_group *group);

/** Ranks that share the shards. */
uint64_t me_fsdp_ranks(const me_fsdp_group *group);

/** Of the shards. */
me_dtype me_fsdp_original_dtype(const me_fsdp_group *group);

/** Of gathered parameters. */
me_dtype me_fsdp_param_dtype(const me_fsdp_group *group);

/** Make a call on a stream of FSDP's; who needs the result waits for it. Among
 *  one rank too, whose reduce-scatter makes a communicator (tp2_hsdp2_lm).
 *  @p call has group, kind, dtype and count; it is @p op of @p whole, what is
 *  gathered, scattered or reduced in place. */
void me_fsdp_communicate(me_fsdp_group *group, me_c10d_op op,
                         const me_tensor *whole, me_call call, uint8_t stream);

/** A kernel that reads and writes all of @p numel elements. */
void me_fsdp_copy(me_fsdp_group *group, me_dtype from, me_dtype to,
                  uint64_t numel);

/** A flat tensor on a stream of FSDP's, the caller's. */
me_tensor *me_fsdp_flat(me_fsdp_group *group, const char *op, uint8_t stream,
                        me_dtype dtype, uint64_t numel);

#endif /* MEMEST_TRAIN_FSDP_FSDP_PRIVATE_H */
