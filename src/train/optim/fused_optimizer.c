/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/optim/fused_optimizer.h"

#include "base/size.h"
#include "tensor/launch.h"

/** Bytes that a kernel moves for an element of float32: Adam reads gradient,
 *  parameter and two moments, SGD gradient, parameter and momentum, and each
 *  writes all but the gradient. */
enum {
    ADAM_BYTES = 28,
    SGD_BYTES = 20
};

me_tensor *me_make_state(me_engine *e, const char *op, me_dtype dtype,
                         me_shape shape)
{
    return me_keep(e, op, ME_CATEGORY_OPTIMIZER_STATE, dtype, shape);
}

void me_fused_launch(me_engine *e, const me_step_group *group, uint64_t bytes)
{
    uint64_t numel = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        numel = me_size_add(numel, group->shards[i].numel);
    }
    if (numel > 0) {
        me_launch_kernel(e, ME_KERNEL_OPTIMIZER, numel,
                         me_size_mul(bytes, numel));
    }
}

void me_fused_adam_step(me_engine *e, const me_step_group *group)
{
    if (group->aware != NULL) {
        me_precision_aware_step(e, group);
        return;
    }
    for (uint32_t i = 0; group->is_first_step && i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        const me_shape shape = ME_SHAPE(s->numel);
        me_module_switch_to_shard(e, s->parameter->module);
        s->moments[0] = me_make_state(e, "exp_avg", s->dtype, shape);
        s->moments[1] = me_make_state(e, "exp_avg_sq", s->dtype, shape);
    }
    me_fused_launch(e, group, ADAM_BYTES);
}

/** It has momentum, be it 0. */
void me_fused_sgd_step(me_engine *e, const me_step_group *group)
{
    for (uint32_t i = 0; group->is_first_step && i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        me_module_switch_to_shard(e, s->parameter->module);
        s->moments[0] =
            me_make_state(e, "momentum_buffer", s->dtype, ME_SHAPE(s->numel));
    }
    me_fused_launch(e, group, SGD_BYTES);
}
