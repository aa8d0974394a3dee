/**
 * @file
 * A layer's nodes in a combined schedule: what each does in its forward
 * (core/models/gpt/fine_grained_callables.py). A depth of multi-token prediction is
 * a layer whose first node also projects the next token's embedding, and which has
 * one node more (core/models/common/fine_grained_callables.py,
 * build_mtp_layer_callables()).
 *
 * Each takes what the node before gave, borrowed, and returns what goes to the
 * next, held for the caller. Local.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_SCHEDULE_LAYER_H
#define MEMEST_NN_MEGATRON_SCHEDULE_LAYER_H

#include "nn/megatron/moe.h"
#include "nn/megatron/schedule_plan.h"

/** The layer's experts; NULL: it is dense, and has neither exchange. */
const me_moe_layer *me_layer_plan_experts(const me_layer_plan *l);

/** pre_dispatch_computation: (s, b, h) to sorted tokens and their weights, or of a
 *  dense layer to the sum after attention. */
me_flow me_layer_plan_pre_dispatch(me_chunk_plan *p, me_layer_plan *l,
                                   me_flow x);

/** moe_dispatch: to the rows of this rank's experts. */
me_flow me_layer_plan_dispatch(me_chunk_plan *p, me_layer_plan *l, me_flow x);

/** mlp: the experts, or of a dense layer all that follows attention. */
me_flow me_layer_plan_mlp(me_chunk_plan *p, me_layer_plan *l, me_flow x);

/** moe_combine: back to (s, b, h), with the residual and, behind the decoder's last
 *  layer, the final norm. */
me_flow me_layer_plan_combine(me_chunk_plan *p, me_layer_plan *l, me_flow x);

/** mtp_post_process, of a depth alone: its norm, and hidden states of decoder and
 *  depth below each other, (2s, b, h). */
me_flow me_layer_plan_mtp_post_process(me_chunk_plan *p, me_layer_plan *l,
                                       me_flow x);

#endif /* MEMEST_NN_MEGATRON_SCHEDULE_LAYER_H */
