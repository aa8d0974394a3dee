/**
 * @file
 * One chunk of a GPT model: embedding on the first stage, layers, final norm
 * and output layer on the last (core/models/gpt/gpt_model.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_GPT_H
#define MEMEST_NN_MEGATRON_GPT_H

#include "nn/megatron/embedding.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/multi_token_prediction.h"
#include "nn/megatron/rope.h"
#include "nn/megatron/transformer.h"
#include "nn/megatron/weight_gradients.h"

/** What a chunk holds of the whole model. */
typedef struct me_gpt_spec {
    int32_t first_layer;
    int32_t num_layers;
    bool pre_process;  /**< has the embedding */
    bool post_process; /**< has the output layer, and mostly the final norm */
    bool has_mtp;      /**< has multi-token prediction, and its embedding */
    bool is_pipelined; /**< there are other stages */
    int32_t chunk;     /**< index among the rank's chunks */
    int32_t pieces_in; /**< (s, b, h) in what it receives: 1, or of each depth
                            of multi-token prediction and the decoder */
    int32_t pieces_out;
    me_module_id parent;
} me_gpt_spec;

typedef struct me_gpt {
    me_nn nn; /**< shared by its modules; does not move */
    me_gpt_spec spec;
    me_embedding_layer embedding;
    me_rope rope;
    me_transformer_block decoder;
    me_mtp_block mtp; /**< layers if spec.has_mtp, metrics beside the loss */
    me_linear output_layer;
    me_deferred_gradients deferred; /**< the output layer's */
    bool is_tied; /**< uses the embedding's weight for its output */
    const me_module_hooks *hooks; /**< borrowed; NULL: none */
} me_gpt;

/** A micro-batch on the device; what a stage does not need is NULL. */
typedef struct me_batch {
    me_tensor *tokens;         /**< (b, s) int64 */
    me_tensor *labels;         /**< (b, s) int64 */
    me_tensor *loss_mask;      /**< (b, s) float32 */
    me_tensor *attention_mask; /**< (b, 1, s, s) bool */
    me_tensor *position_ids;   /**< (b, s) int64 */
} me_batch;

/** Build a chunk; norms and positions stay on the host for now. @p nn and
 *  @p spec are copied; @p gpt must not move afterwards. */
void me_gpt_create(const me_nn *nn, const me_gpt_spec *spec, me_gpt *gpt);

/** clip_qk() of the decoder's layers (core/optimizer/qk_clip.py); those of
 *  multi-token prediction are left out there. */
void me_gpt_clip_qk(me_gpt *gpt);

/** Has the model a rotary embedding of its own? Layers of multi-latent attention
 *  have theirs. */
bool me_gpt_has_rotary_embedding(const me_model_config *c);

/** Let go of what the chunk holds beside its parameters. */
void me_gpt_fini(me_engine *e, me_gpt *gpt);

/**
 * Forward of one micro-batch.
 *
 * @return the loss of each token (b, s) on the last stage, else the hidden
 *         states (s, b, h) for the next, or those of all depths below each
 *         other
 */
me_tensor *me_gpt_forward(me_gpt *gpt, const me_batch *batch);

/** @name Parts of its forward, for schedules that run them apart
 *  @{ */
/** GPTModel._preprocess(): the embedding, or what the stage before sent; and the
 *  angles of the rotary embedding, NULL without one. */
me_tensor *me_gpt_preprocess(me_gpt *gpt, const me_batch *batch,
                             me_tensor **angles_out);
/**
 * GPTModel._postprocess(): the decoder's output to the loss of each token.
 *
 * @param angles              of the rotary embedding; NULL: none, or no depths
 *                            are run here
 * @param mtp_in_postprocess  depths of multi-token prediction come first; else
 *                            @p x has their hidden states below its own
 */
me_tensor *me_gpt_postprocess(me_gpt *gpt, const me_batch *batch, me_tensor *x,
                              me_tensor *angles, bool mtp_in_postprocess);
/** @} */

/** finish_embedding_wgrad_compute(): gradients of the output layer's weight that
 *  have waited; nothing where they do not. */
void me_gpt_make_deferred(me_gpt *gpt);

/** `set_input_tensor`: what the previous stage sent; NULL forgets it. */
void me_gpt_set_input(me_engine *e, me_gpt *gpt, me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_GPT_H */
