/**
 * @file
 * A mixture of experts in place of a layer's MLP
 * (core/transformer/moe/moe_layer.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_MOE_H
#define MEMEST_NN_MEGATRON_MOE_H

#include "nn/megatron/cuda_graph.h"
#include "nn/megatron/experts.h"
#include "nn/megatron/router.h"
#include "nn/megatron/shared_experts.h"
#include "nn/megatron/token_dispatcher.h"

typedef struct me_moe_layer {
    me_module_id module;
    me_router *router; /**< of the engine, as the dispatcher */
    me_dispatcher *token_dispatcher;
    me_experts experts;
    me_linear
        fc1_latent_proj; /**< to what experts work on, if that is narrower */
    me_linear fc2_latent_proj; /**< and back */
    bool has_shared_experts;
    me_shared_experts shared_experts;
    me_section section; /**< when recomputed */
} me_moe_layer;

/** Router and experts below @p module, its own, of layer @p layer of the
 *  model. @p moe must not move afterwards. */
void me_moe_layer_create(me_nn *nn, me_module_id module, int32_t layer,
                         me_moe_layer *moe);

/** Let go of what its dispatcher keeps. */
void me_moe_layer_fini(me_engine *e, me_moe_layer *moe);

/** @name Parts of its forward, for schedules that run them apart
 *  @{ */
/** Shared experts (@p shared_out; NULL: none), router and preprocess(). */
me_dispatched me_moe_pre_dispatch(me_nn *nn, const me_moe_layer *moe,
                                  me_tensor *x, me_tensor **shared_out);
/** dispatch(). */
me_dispatched me_moe_dispatch(me_nn *nn, const me_moe_layer *moe,
                              me_dispatched rows);
/** routed_experts_compute(). */
me_tensor *me_moe_experts(me_nn *nn, const me_moe_layer *moe,
                          me_dispatched rows);
/** combine() and postprocess(); @p shared may be NULL. */
me_tensor *me_moe_combine(me_nn *nn, const me_moe_layer *moe, me_tensor *rows,
                          me_tensor *shared);
/** @} */

/** @name Its two parts where a graph of Transformer Engine's has the first one
 *  @{ */
/** MoECudaGraphPartialCaptureSignal: (s, b, h) up to the router, or up to
 *  preprocess(). */
void me_moe_capture(me_nn *nn, const me_moe_layer *moe, me_tensor *x,
                    me_graph_outputs *outputs_out);
/** Around a replay, which gives the dispatcher's names to its outputs, if it has
 *  preprocess() and ends there: what they named goes when it is over. All others
 *  leave them as they were. */
void me_moe_stash(const me_moe_layer *moe, me_dispatcher_stash *stash_out);
void me_moe_unstash(me_nn *nn, const me_moe_layer *moe,
                    me_dispatcher_stash *stash);
/** The rest, from those outputs to (s, b, h). */
me_tensor *me_moe_resume(me_nn *nn, const me_moe_layer *moe,
                         const me_graph_outputs *outputs);
/** @} */

/** (s, b, h) to (s, b, h). */
me_tensor *me_moe_layer_forward(me_nn *nn, const me_moe_layer *moe,
                                me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_MOE_H */
