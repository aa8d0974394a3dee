/**
 * @file
 * The casts of operations under autocast: each operation asks for what its list
 * says (AT_FORALL_LOWER_PRECISION_FP, AT_FORALL_FP32 and AT_FORALL_FP32_SET_
 * OPT_DTYPE in aten/src/ATen/autocast_mode.h, PyTorch 2.11). Outside of a
 * context nothing is cast. Arguments are cast from the last to the first, as
 * the compiled wrappers do.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_AUTOCAST_CASTS_H
#define MEMEST_OPS_AUTOCAST_CASTS_H

#include "tensor/tensor.h"

/** Of the operations of lower precision (linear, matmul, attention): @p x or
 *  its cast, a variable of the running frame unless it is @p x. The cast of a
 *  float32 parameter is made once a context and kept until that ends. NULL
 *  gives NULL. */
me_tensor *me_autocast_lower(me_engine *e, me_tensor *x);

/** Of the operations that run in float32 (norms, pow, losses): @p x or its
 *  cast, likewise; none is kept. NULL gives NULL. */
me_tensor *me_autocast_float(me_engine *e, me_tensor *x);

/** Of an operation with a list of its own: autocast asks where its first operand
 *  lies, and of a loss's target, which are not cast. The two above do so
 *  themselves. */
void me_autocast_ask(me_engine *e, const me_tensor *x);

/** The type of what such an operation makes that is told its type instead of
 *  being given casts (sum). */
me_dtype me_autocast_float_dtype(const me_engine *e, const me_tensor *x);

#endif /* MEMEST_OPS_AUTOCAST_CASTS_H */
