/**
 * @file
 * A chunk's micro-batch as a plan of nodes, of which a forward and a backward of
 * two micro-batches run in turns (core/models/common/model_chunk_schedule_plan.py,
 * core/models/gpt/fine_grained_callables.py): attention to routing, exchange,
 * experts, exchange back with the residual.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_SCHEDULE_PLAN_H
#define MEMEST_NN_MEGATRON_SCHEDULE_PLAN_H

#include "nn/megatron/gpt.h"
#include "nn/megatron/schedule_node.h"

/** TransformerLayerSchedulePlan and its LayerState. */
typedef struct me_layer_plan {
    const me_transformer_layer *layer;
    const me_mtp_layer *mtp; /**< the depth whose layer it is; NULL: the
                                  decoder's */
    bool is_last;            /**< of the chunk's decoder */
    me_schedule_node pre_dispatch;
    me_schedule_node dispatch;
    me_schedule_node mlp;
    me_schedule_node combine;
    me_schedule_node mtp_post_process; /**< of a depth */
    me_tensor *residual;               /**< these: held between nodes */
    me_tensor *dispatched_probs;
    me_tensor *shared;
    me_output_checkpoint *norm;  /**< of a norm that is run again; borrowed */
    me_offload_group norm_group; /**< of a norm whose input is offloaded */
} me_layer_plan;

/** TransformerModelChunkSchedulePlan. */
typedef struct me_chunk_plan {
    me_gpt *gpt;
    me_batch batch;            /**< held */
    me_tensor *decoder_input;  /**< held */
    me_tensor *decoder_hidden; /**< held from a depth's first node to its
                                    last (mtp_hidden_states) */
    me_tensor *angles;
    int32_t microbatch;
    me_schedule_node pre_process;
    me_schedule_node post_process;
    me_layer_plan *layers; /**< the decoder's, then depths */
    int32_t n_layers;
    int32_t n_left; /**< whose backward has not run */
} me_chunk_plan;

/** What is called between the parts of a run; members may be NULL. */
typedef struct me_plan_hooks {
    void *self;
    void (*pre_forward)(void *self);
    void (*pre_backward)(void *self);
    /** Receives what the chunk sends to the next stage. Called on the stream of
     *  communication, the others on that of computation. */
    void (*post_forward)(void *self, me_tensor *output);
    /** And to the one before. */
    void (*post_backward)(void *self, me_tensor *gradient);
} me_plan_hooks;

/** Room for a plan of a chunk; of the engine. NULL on failure, which is the
 *  engine's. */
me_chunk_plan *me_chunk_plan_create(me_gpt *gpt);

/** A micro-batch begins: @p batch is held from now on. */
void me_chunk_plan_begin(me_chunk_plan *plan, const me_batch *batch,
                         int32_t microbatch);

/**
 * TransformerModelChunkSchedulePlan.run(): a forward, a backward or both in
 * turns.
 *
 * @param forward   NULL: none
 * @param backward  NULL: none
 * @param gradient  of the backward's output; borrowed
 * @return the forward's output, held for the caller; NULL: none
 */
me_tensor *me_chunk_plans_run(me_chunk_plan *forward, me_chunk_plan *backward,
                              me_tensor *gradient, const me_plan_hooks *hooks);

/** The plan is given up: what is left of its state goes. */
void me_chunk_plan_release(me_chunk_plan *plan);

#endif /* MEMEST_NN_MEGATRON_SCHEDULE_PLAN_H */
