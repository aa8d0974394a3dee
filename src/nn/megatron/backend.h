/**
 * @file
 * What a transformer's parts are made of: Megatron-LM's own modules or those of
 * Transformer Engine, one row each, with the names of
 * core/models/backends.py (BackendSpecProvider).
 *
 * The embedding, the output layer and the loss are Megatron-LM's under either.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_BACKEND_H
#define MEMEST_NN_MEGATRON_BACKEND_H

#include "nn/megatron/core_attention.h"
#include "nn/megatron/grouped_linear.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/mlp.h"
#include "nn/megatron/norm.h"

/** One implementation; every member is there unless it says otherwise. */
typedef struct me_backend {
    /** Its norms are made on the host, float32, and moved to the card later. */
    bool makes_norms_on_host;
    /** fuse_layernorm_and_linear(): norms before a column-parallel layer are
     *  part of it, where nobody else reads what they make. */
    bool fuse_layernorm_and_linear;
    /** One that each tensor rank has all of, for its own rows; NULL: not with
     *  this one, what would be such a layer is column-parallel. */
    me_tensor *(*linear)(me_nn *nn, const me_linear *linear, me_tensor *x);
    /** Output cut over tensor ranks. */
    me_tensor *(*column_parallel_linear)(me_nn *nn, const me_linear *linear,
                                         me_tensor *x);
    /** The same of the normalised input; NULL: not with this one. */
    me_tensor *(*column_parallel_layer_norm_linear)(me_nn *nn,
                                                    const me_linear *linear,
                                                    me_tensor *x);
    /** Input cut over tensor ranks; its bias is left to the caller. */
    me_tensor *(*row_parallel_linear)(me_nn *nn, const me_linear *linear,
                                      me_tensor *x);
    /** The same layer of all experts of a rank at once (grouped_mlp_modules()),
     *  or NULL: one expert after another, as it is without moe.grouped_gemm. */
    me_tensor *(*grouped_linear)(me_nn *nn, const me_grouped_linear *linear,
                                 me_tensor *x, const uint64_t *tokens);
    me_tensor *(*layer_norm)(me_nn *nn, const me_norm *norm, me_tensor *x);
    /** A rotary embedding applied to queries or keys by one kernel, or NULL:
     *  by PyTorch's operations. */
    me_tensor *(*fused_rope)(me_engine *e, me_tensor *x, me_tensor *angles);
    /** activation_func(): one that is a module, for jobs that ask for it, gated:
     *  (…, 2f) to (…, f); or NULL: functions. */
    me_tensor *(*activation_func)(me_engine *e, me_tensor *x, bool is_gated);
    /** A fused cross entropy of its own, logits (s, b, v/t) and target (s, b) to
     *  the loss (s, b), or NULL: Megatron-LM's. */
    me_tensor *(*cross_entropy)(me_nn *nn, me_tensor *logits,
                                me_tensor *target);
    /** A dense MLP with its norm as one function, where the job asks for it, or
     *  NULL: by its layers. */
    me_tensor *(*fused_mlp)(me_nn *nn, const me_mlp *mlp, me_tensor *x);
} me_backend;

/** The rows. */
extern const me_backend me_local_backend;
extern const me_backend me_te_backend;

/** The job's. */
const me_backend *me_backend_of(const me_nn *nn);

/** That of the decoder's last norm: Transformer Engine's wherever it can be
 *  imported, but local layers with experts keep their own. */
const me_backend *me_final_norm_backend_of(const me_nn *nn);

/** Are the norms before sub-layers a part of their first linear layers, where
 *  these alone read them? There may be none. */
bool me_norms_are_fused(const me_nn *nn);

/** Run a column-parallel layer, with its norm if it has one. */
me_tensor *me_column_parallel(me_nn *nn, const me_linear *linear, me_tensor *x);

/** Run a row-parallel layer. */
me_tensor *me_row_parallel(me_nn *nn, const me_linear *linear, me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_BACKEND_H */
