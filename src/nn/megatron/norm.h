/**
 * @file
 * Normalisation layers (torch.nn.LayerNorm, torch.nn.RMSNorm).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_NORM_H
#define MEMEST_NN_MEGATRON_NORM_H

#include "nn/module_hooks.h"
#include "nn/nn.h"

struct me_backend;

typedef struct me_norm {
    const struct me_backend *backend; /**< whose it is */
    me_module_id module;
    me_parameter *weight;
    me_parameter *bias;           /**< NULL: none */
    const me_module_hooks *hooks; /**< borrowed; NULL: none */
    bool is_l2; /**< no weight: the last dimension's mean square becomes 1 */
} me_norm;

/** A norm over @p size columns, of the kind the model's config names; the layers'
 *  back end has it. */
me_norm me_norm_create(me_nn *nn, me_module_id parent, const char *name,
                       uint64_t size);

/** An L2Norm (core/transformer/torch_norm.py), whatever the back end. */
me_norm me_norm_create_l2(me_nn *nn, me_module_id parent, const char *name);

/** The norm behind the decoder's last layer, of the back end that has it. */
me_norm me_norm_create_final(me_nn *nn, me_module_id parent, uint64_t size);

/** The same as part of the layer @p module, with names of its own: of a weight and
 *  a bias; static. */
me_norm me_norm_of(me_nn *nn, me_module_id module, uint64_t size,
                   const char *const names[2]);

/** (…, size) to (…, size). */
me_tensor *me_norm_forward(me_nn *nn, const me_norm *norm, me_tensor *x);

#endif /* MEMEST_NN_MEGATRON_NORM_H */
