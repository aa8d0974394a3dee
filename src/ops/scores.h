/**
 * @file
 * What a router makes of its logits: functions of each score, sums over them,
 * and picking by index (aten/native, derivatives.yaml). All of it is on the tape
 * unless it says otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_SCORES_H
#define MEMEST_OPS_SCORES_H

#include "tensor/tensor.h"

/** `sigmoid(x)`; saves its result. */
me_tensor *me_sigmoid(me_engine *e, me_tensor *x);

/** `softplus(x)`; saves @p x. */
me_tensor *me_softplus(me_engine *e, me_tensor *x);

/** `sqrt(x)`; saves its result. */
me_tensor *me_sqrt(me_engine *e, me_tensor *x);

/** `x.sum(dim=-1, keepdim=True)`: (…, n) to (…, 1). */
me_tensor *me_sum_last(me_engine *e, me_tensor *x);

/** `x.sum(dim=-1)`: (…, n) to (…). */
me_tensor *me_sum_away(me_engine *e, me_tensor *x);

/** `a / b`, where @p b has one column or none of @p a's shape is missing; saves
 *  both. */
me_tensor *me_divide(me_engine *e, me_tensor *a, me_tensor *b);

/** `a / number`. */
me_tensor *me_div_number(me_engine *e, me_tensor *a);

/** `torch.gather(x, 1, index)`: of the shape of @p index, which it saves. */
me_tensor *me_gather(me_engine *e, me_tensor *x, me_tensor *index);

/** `x.masked_fill(~mask.bool(), value)`: a copy; saves the flags. */
me_tensor *me_masked_fill_outside(me_engine *e, me_tensor *x,
                                  const me_tensor *mask);

/** `torch.logsumexp(x, dim=-1)`: (n, m) to (n); saves @p x and its result. */
me_tensor *me_logsumexp(me_engine *e, me_tensor *x);

#endif /* MEMEST_OPS_SCORES_H */
