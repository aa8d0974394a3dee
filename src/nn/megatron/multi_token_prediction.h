/**
 * @file
 * Multi-token prediction (core/transformer/multi_token_prediction.py): after
 * the decoder, each depth predicts one token further. It joins the hidden
 * states of the depth before with the embedding of the next token, projects
 * them to (s, b, h), and runs a transformer layer of its own. Embedding and
 * output layer are the model's. Detached heads and packed sequences are left
 * out.
 *
 * D is the number of depths.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_MULTI_TOKEN_PREDICTION_H
#define MEMEST_NN_MEGATRON_MULTI_TOKEN_PREDICTION_H

#include "nn/megatron/embedding.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/transformer.h"
#include "tensor/autograd.h"

enum {
    ME_MTP_MAX_DEPTHS = 2 /**< one node splits 1 + D pieces */
};

typedef struct me_mtp_layer {
    me_module_id module;
    me_norm enorm;     /**< of the embedding */
    me_norm hnorm;     /**< of the hidden states */
    me_linear eh_proj; /**< 2h to h */
    me_transformer_layer mtp_model_layer;
    me_norm final_layernorm;
    me_section section; /**< the layer, when it is recomputed */
} me_mtp_layer;

/** MTPLossLoggingHelper's vectors, (D) float32, made in the first forward. */
typedef struct me_mtp_metrics {
    me_tensor *loss_values;
    me_tensor *correct_values;
    me_tensor *total_values;
} me_mtp_metrics;

typedef struct me_mtp_block {
    me_module_id module;
    me_mtp_layer *layers; /**< owned by the engine */
    int32_t num_layers;   /**< built: D, or one that all depths share */
    me_mtp_metrics metrics;
} me_mtp_block;

/** What the depths get from the model; borrowed. */
typedef struct me_mtp_inputs {
    const me_embedding_layer *embedding;
    me_tensor *tokens;         /**< (b, s) int64 */
    me_tensor *position_ids;   /**< (b, s) int64 */
    me_tensor *attention_mask; /**< or NULL */
    me_tensor *angles;         /**< of the rotary embedding, or NULL */
} me_mtp_inputs;

/** What the depths' loss needs of the model; borrowed. */
typedef struct me_mtp_head {
    const me_linear *output_layer;
    const me_parameter *output_weight; /**< NULL: the layer's own */
    me_tensor *labels;                 /**< (b, s) int64 */
    me_tensor *loss_mask;              /**< (b, s) float32 */
} me_mtp_head;

/** The block and its parameters below @p parent, in Megatron's order. @p block
 *  must not move afterwards. */
void me_mtp_block_create(me_nn *nn, me_module_id parent, me_mtp_block *block);

/** Let go of what the block holds beside its parameters; one that was never
 *  created is allowed. */
void me_mtp_block_fini(me_engine *e, me_mtp_block *block);

/** The decoder's hidden states (s, b, h) to those of the decoder and all
 *  depths below each other, ((1 + D)·s, b, h); rows s/t under sequence
 *  parallelism. */
me_tensor *me_mtp_block_forward(me_nn *nn, me_mtp_block *block,
                                const me_mtp_inputs *inputs, me_tensor *hidden);

/** What one depth hands to the next. */
enum {
    ME_MTP_HIDDEN,    /**< (s, b, h) */
    ME_MTP_TOKENS,    /**< (b, s) int64 */
    ME_MTP_POSITIONS, /**< (b, s) int64 */
    ME_MTP_STATE
};

/** @name Parts of a depth, for schedules that run them apart
 *  @{ */
/** _get_embeddings(): tokens and positions one further, and their embedding
 *  (s, b, h), which is returned; the hidden states hide that they are a view.
 *  Replaces @p state, variables of the running frame. */
me_tensor *me_mtp_get_embeddings(me_nn *nn, const me_embedding_layer *embedding,
                                 me_tensor **state);
/** _concat_embeddings(): (s, b, h) twice to (s, b, h). */
me_tensor *me_mtp_concat_embeddings(me_nn *nn, const me_mtp_layer *layer,
                                    me_tensor *hidden,
                                    me_tensor *decoder_input);
/** _postprocess(): the depth's norm, (s, b, h). */
me_tensor *me_mtp_postprocess(me_nn *nn, const me_mtp_layer *layer,
                              me_tensor *hidden);
/** @} */

/** process_mtp_loss(): the loss of every depth, whose gradient joins the
 *  model's through the result. @return the decoder's hidden states (s, b, h) */
me_tensor *me_process_mtp_loss(me_nn *nn, me_mtp_block *block,
                               const me_mtp_head *head, me_tensor *hidden);

#endif /* MEMEST_NN_MEGATRON_MULTI_TOKEN_PREDICTION_H */
