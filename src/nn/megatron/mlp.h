/**
 * @file
 * The MLP of a transformer layer (core/transformer/mlp.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_MLP_H
#define MEMEST_NN_MEGATRON_MLP_H

#include "nn/megatron/linear.h"

typedef struct me_mlp {
    me_module_id module;
    me_linear linear_fc1;
    me_linear linear_fc2;
    bool is_fused; /**< Transformer Engine's operations run it as one */
} me_mlp;

/** The routing weights of an expert's tokens. */
typedef struct me_token_scale {
    me_tensor *probs; /**< (n), a part of the weights of all tokens */
    uint64_t first;   /**< where that part begins */
} me_token_scale;

/** How an MLP is made. */
typedef struct me_mlp_spec {
    uint64_t ffn_hidden_size; /**< whole */
    bool has_norm;            /**< fc1 normalises its input */
    bool is_fused;            /**< see me_mlp */
    bool is_expert;
    bool explicit_comm; /**< the caller does what there is to communicate */
    bool save_original_input; /**< fc1 does, see me_linear */
} me_mlp_spec;

/** Its parameters below @p module, its own. */
void me_mlp_create(me_nn *nn, me_module_id module, const me_mlp_spec *spec,
                   me_mlp *mlp);

/**
 * (s, b, h) to (s, b, h), of an expert (n, h) to (n, h); the bias of fc2 is
 * left to the caller.
 *
 * @param scale  of an expert's tokens, or NULL
 */
me_tensor *me_mlp_forward(me_nn *nn, const me_mlp *mlp, me_tensor *x,
                          const me_token_scale *scale);

/** Are the two halves of what fc1 gives multiplied? */
bool me_activation_is_gated(const me_nn *nn);

/**
 * The activation of what fc1 gave, times the tokens' routing weights.
 *
 * @param u      (…, f or 2f), which stays the caller's
 * @param bias   of fc1, or NULL
 * @param scale  of an expert's tokens, or NULL
 * @return (…, f)
 */
me_tensor *me_mlp_activation(me_nn *nn, me_tensor *u, me_parameter *bias,
                             const me_token_scale *scale);

/** The same as single operations, though a fused function exists. */
me_tensor *me_mlp_open_activation(me_nn *nn, me_tensor *u, me_parameter *bias,
                                  const me_token_scale *scale);

/** That of shared experts which overlap with the dispatcher, without bias and
 *  weights: halves are neither clamped nor offset (SharedExpertMLP's own glu()). */
me_tensor *me_mlp_plain_activation(me_nn *nn, me_tensor *u);

#endif /* MEMEST_NN_MEGATRON_MLP_H */
