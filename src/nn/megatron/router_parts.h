/**
 * @file
 * Steps of a router's forward. The letters are those of router.h; z is the type
 * of logits and weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_ROUTER_PARTS_H
#define MEMEST_NN_MEGATRON_ROUTER_PARTS_H

#include "nn/megatron/router.h"

/** RouterGatingLinearFunction: (s, b, h) to logits (s, b, E) of type z. */
me_tensor *me_router_gating(const me_router *router, me_tensor *x);

/** topk_routing_with_score_function() or sinkhorn_load_balancing(): logits (T, E)
 *  to weights (T, E) and flags. */
me_tensor *me_router_topk(const me_router *router, me_tensor *logits,
                          me_tensor **map_out);

/** compute_routing_scores_for_aux_loss(): fp32 scores (T, E), flags (T, E). */
me_tensor *me_router_loss_scores(const me_router *router, me_tensor *logits,
                                 me_tensor **map_out);

/** apply_router_token_dropping(): weights (T, E) without those beyond the
 *  capacity; @p map is exchanged for the new flags. */
me_tensor *me_router_drop_tokens(const me_router *router, me_tensor *probs,
                                 me_tensor **map);

/** Does it make a loss of the experts' loads? */
bool me_router_has_aux_loss(const me_config *config);

/**
 * The losses of the experts' loads: @p probs, whose backward begins theirs.
 *
 * @param sequences  of the micro-batch, b
 */
me_tensor *me_router_apply_aux_losses(const me_router *router,
                                      me_tensor *logits, me_tensor *probs,
                                      uint64_t sequences);

/** apply_z_loss(): @p logits, whose backward begins the loss's. */
me_tensor *me_router_apply_z_loss(const me_router *router, me_tensor *logits);

#endif /* MEMEST_NN_MEGATRON_ROUTER_PARTS_H */
