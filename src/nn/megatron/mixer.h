/**
 * @file
 * What a sub-layer of a transformer layer mixes its input with, between norm and
 * residual: heads' tokens (attention), or columns (MLP, experts). One row each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_MIXER_H
#define MEMEST_NN_MEGATRON_MIXER_H

#include "nn/megatron/core_attention.h"

/** What a mixer works on besides its input. */
typedef struct me_mixer_inputs {
    me_tensor *mask;   /**< or NULL */
    me_tensor *angles; /**< of the rotary embedding, or NULL */
} me_mixer_inputs;

/** One kind of mixer; every member is there but where NULL is allowed. */
typedef struct me_mixer {
    size_t size;          /**< of a module of its kind, bytes */
    bool can_have_norm;   /**< its first linear layer is the only reader of the
                               norm before it, and so may be one with it */
    bool has_experts;     /**< its module is a me_moe_layer */
    bool has_mlp_modules; /**< `--recompute-modules mlp` is of it */
    /** The module below @p parent, of layer @p number of the model, into @p self,
     *  which does not move. */
    void (*create)(me_nn *nn, me_module_id parent, int32_t number, void *self);
    /** (s, b, h) to (s, b, h); the bias is left to the residual step. */
    me_tensor *(*forward)(me_nn *nn, void *self, me_tensor *x,
                          const me_mixer_inputs *inputs);
    /** That bias, or NULL. */
    me_parameter *(*bias)(const void *self);
    /** Its core attention, borrowed; NULL: it is none. */
    const me_core_attention *(*core_attention)(const void *self);
    /** Let go of what it holds beside its parameters. */
    void (*fini)(me_engine *e, void *self);
} me_mixer;

/** The model's attention. */
const me_mixer *me_attention_mixer(const me_nn *nn);

/** What layer @p number of the model has after its attention; those of multi-token
 *  prediction, which are numbered on, have what the decoder's last one has. */
const me_mixer *me_mlp_mixer(const me_nn *nn, int32_t number);

#endif /* MEMEST_NN_MEGATRON_MIXER_H */
