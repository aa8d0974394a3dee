/**
 * @file
 * The MLP that every token of a layer with experts goes through
 * (core/transformer/moe/shared_experts.py): beside the others, or piece by piece
 * in a stream of its own while the dispatcher communicates, which then calls the
 * pieces in their order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_SHARED_EXPERTS_H
#define MEMEST_NN_MEGATRON_SHARED_EXPERTS_H

#include "nn/checkpoint.h"
#include "nn/megatron/mlp.h"

typedef struct me_shared_experts {
    me_nn *nn; /**< borrowed, does not move */
    me_mlp mlp;
    me_parameter *gate_weight; /**< (1, h); NULL: no gate */
    me_section section;        /**< when recomputed */
    /** Between the pieces; owned. */
    me_tensor *cached_fc1_input;
    me_tensor *cached_fc2_input;
    me_tensor *cached_output;
    me_tensor *gate_score;
} me_shared_experts;

/** Its parameters below @p parent, of layer @p layer of the model. @p shared must
 *  not move afterwards. */
void me_shared_experts_create(me_nn *nn, me_module_id parent, int32_t layer,
                              me_shared_experts *shared);

/** Let go of what is between the pieces. */
void me_shared_experts_fini(me_engine *e, me_shared_experts *shared);

/** (s, b, h) to (s, b, h), at once. */
me_tensor *me_shared_experts_forward(me_nn *nn, const me_shared_experts *shared,
                                     me_tensor *x);

/** @name Piece by piece (moe_shared_expert_overlap)
 *  @{ */
/** pre_forward_comm(): the rows of all tensor ranks of (s/t, b, h). */
void me_shared_experts_pre_forward_comm(me_shared_experts *shared,
                                        me_tensor *x);
/** linear_fc1_forward_and_act(), beside the exchange that gave @p overlapped. */
void me_shared_experts_fc1_and_act(me_shared_experts *shared,
                                   const me_tensor *overlapped);
/** linear_fc2_forward() and post_forward_comm(), beside another. */
void me_shared_experts_fc2(me_shared_experts *shared,
                           const me_tensor *overlapped);
/** get_output(): (s, b, h). */
me_tensor *me_shared_experts_get_output(me_shared_experts *shared);
/** @} */

#endif /* MEMEST_NN_MEGATRON_SHARED_EXPERTS_H */
