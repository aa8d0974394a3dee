/**
 * @file
 * Weight gradients that are made later: what a linear layer's backward keeps
 * when it makes the gradient of its input alone, as the zero-bubble forks of
 * Megatron-LM do it (sail-sg's WeightGradStore). A layer keeps its input and
 * its output's gradient until its weight's gradient is made of them; gradients
 * of norms, biases and embeddings are made at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_WEIGHT_GRADIENTS_H
#define MEMEST_NN_MEGATRON_WEIGHT_GRADIENTS_H

#include "tensor/tensor.h"

struct me_nn;

enum {
    ME_OPERAND_PARTS = 4 /**< of a quantised tensor */
};

/** An operand: a tensor, or the parts of a quantised one in the order in which they
 *  go; those that it does not have are NULL. Owned where it is kept. */
typedef struct me_weight_operand {
    me_tensor *parts[ME_OPERAND_PARTS];
} me_weight_operand;

/** One layer's: what its weight's gradient is made of. */
typedef struct me_weight_work {
    me_weight_operand x;  /**< (s/t or s, b, inputs) */
    me_weight_operand gy; /**< (s, b, outputs) */
    uint64_t rows;        /**< that are multiplied */
    me_tensor *weight;    /**< (outputs, inputs); borrowed from its parameter */
    bool gathers_rows;    /**< of x, over the tensor ranks */
    me_tensor *dw;     /**< (outputs, inputs), once made; NULL before; owned */
    bool is_te;        /**< of a layer of Transformer Engine's, whose products
                            take its own workspace */
    bool is_quantized; /**< the product multiplies FP8 */
    bool is_grouped; /**< of one of several weights that a module multiplies at
                            once; they were kept one after the other */
    uint8_t turn;    /**< ME_TURN_ */
    me_module_id module;
} me_weight_work;

/** What was kept since it was last emptied, in the order of the backward. */
typedef struct me_weight_gradients {
    bool is_split; /**< backwards that run now keep their weight gradients */
    me_weight_work *items;
    uint32_t count;
    uint32_t capacity;
} me_weight_gradients;

/** The gradient of @p weight (outputs, inputs), a variable of the running
 *  frame: gradient of the output and input are copied for the product where
 *  they have holes (prepare_input_tensors_for_wgrad_compute()). */
me_tensor *me_weight_gradient(me_engine *e, me_tensor *gy, me_tensor *x,
                              const me_tensor *weight);

/** Keep one layer's; a failure is the engine's. */
void me_weight_gradients_keep(me_engine *e, me_weight_gradients *kept,
                              const me_weight_work *work);

/** Put what was kept in the order of turns. */
void me_weight_gradients_sort(me_weight_gradients *kept);

/** Make all gradients that were kept, one layer after the other; what each was
 *  made of goes with it. @p kept is empty then. */
void me_weight_gradients_make(struct me_nn *nn, me_weight_gradients *kept);

/** Let go of everything, made or not. */
void me_weight_gradients_fini(me_engine *e, me_weight_gradients *kept);

/** The output layer's on the last stage of a pipeline, which may wait for the flush
 *  (defer_embedding_wgrad_compute): inputs are kept from the forward on, with
 *  their graphs. All zero: nothing is kept yet. */
typedef struct me_deferred_gradients {
    uint64_t limit;     /**< micro-batches whose gradient waits; 0: all */
    me_tensor **inputs; /**< (s/t or s, b, h); owned */
    uint32_t n_inputs;
    uint32_t inputs_capacity;
    me_tensor **gradients; /**< of outputs, (s, b, v/t); owned */
    uint32_t n_gradients;
    uint32_t gradients_capacity;
    me_tensor *gathered[2]; /**< buffers of the rows of all tensor ranks, made
                                 when first needed; owned */
} me_deferred_gradients;

/** The forward keeps @p x, if it may wait. */
void me_deferred_keep_input(me_engine *e, me_deferred_gradients *deferred,
                            me_tensor *x);

/** The backward keeps @p gy. @return it does; else the gradient is made now */
bool me_deferred_keep_gradient(me_engine *e, me_deferred_gradients *deferred,
                               me_tensor *gy);

/** Add all that wait to the gradient of @p weight (v/t, h), the oldest first
 *  (drain_embedding_wgrad_compute()). */
void me_deferred_make(struct me_nn *nn, me_deferred_gradients *deferred,
                      const me_tensor *weight);

/** Let go of everything. */
void me_deferred_fini(me_engine *e, me_deferred_gradients *deferred);

#endif /* MEMEST_NN_MEGATRON_WEIGHT_GRADIENTS_H */
