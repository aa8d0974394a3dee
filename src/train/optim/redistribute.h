/**
 * @file
 * What an optimizer's operations over DTensors redistribute: the operands that
 * do not lie as DTensor's rule for the operation wants them
 * (torch/distributed/tensor/_ops).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_OPTIM_REDISTRIBUTE_H
#define MEMEST_TRAIN_OPTIM_REDISTRIBUTE_H

#include "nn/torch/dtensor.h"
#include "train/optim/optim.h"

/** What an operation over DTensors redistributes: its operand, and to what. */
typedef enum me_operand {
    ME_OPERAND_GRADIENT, /**< a gradient, to what the parameter is */
    ME_OPERAND_SUMMAND, /**< the same where it is a summand on each rank, alone: no
                           parameter takes part */
    ME_OPERAND_TO_DECAY, /**< a gradient to which decay is added */
    ME_OPERAND_DECAY,    /**< the parameter that is the decay */
    ME_OPERAND_DECAYED   /**< their sum, to what the parameter is */
} me_operand;

/** What redistributions made, until an operation is done. */
typedef struct me_copies {
    me_tensor **items; /**< owned */
    uint32_t count;
} me_copies;

/** How `grad + decay * parameter` lies. Of a list as the gradient, summed if it
 *  is a summand; of one tensor as the operand that is cut, else as the
 *  gradient (_ops/_pointwise_ops.py). */
me_dlayout me_decayed_layout(const me_step_group *group, const me_parameter *p);

/** Room for @p capacity of them. @return false after the engine's failure */
bool me_copies_init(me_engine *e, size_t capacity, me_copies *c);

/** They go, the last one first. */
void me_copies_fini(me_engine *e, me_copies *c);

/** An operation takes an operand of shard @p i, and redistributes it if it lies
 *  otherwise. Collective over the tensor-parallel ranks. */
void me_copies_take(me_engine *e, const me_step_group *group, uint32_t i,
                    me_operand kind, me_copies *c);

/**
 * An operation that takes the gradients of DTensors of shards [@p first,
 * @p end) as @p uses of its operands, and makes nothing. Collective over the
 * tensor-parallel ranks; nothing where there are no DTensors.
 */
void me_redistribute_group(me_engine *e, const me_step_group *group,
                           uint32_t first, uint32_t end, uint32_t uses,
                           me_operand kind);

#endif /* MEMEST_TRAIN_OPTIM_REDISTRIBUTE_H */
