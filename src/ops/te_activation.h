/**
 * @file
 * Activations of transformer_engine.pytorch.ops (basic/activation.py, swiglu.py),
 * each a node of the tape by itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_TE_ACTIVATION_H
#define MEMEST_OPS_TE_ACTIVATION_H

#include "tensor/tensor.h"

/** GELU, or where @p is_gated SwiGLU or GEGLU, which take (…, 2f) to (…, f); saves
 *  its input. @return a view of what the kernel made */
me_tensor *me_te_op_activation(me_engine *e, me_tensor *x, bool is_gated);

#endif /* MEMEST_OPS_TE_ACTIVATION_H */
