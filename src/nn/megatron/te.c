/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/backend.h"
#include "nn/megatron/te_grouped.h"
#include "nn/megatron/te_linear.h"
#include "nn/megatron/te_loss.h"
#include "nn/megatron/te_mlp.h"
#include "nn/megatron/te_state.h"
#include "ops/te_activation.h"
#include "ops/te_fused_attention.h"
#include "ops/te_norm.h"

/* TESpecProvider (core/extensions/transformer_engine_spec_provider.py): the
 * modules of transformer_engine.pytorch. */

static void reduce_amaxes(void *self)
{
    me_fp8_reduce(self, false);
}

/** TENorm: a norm of te.ops, whose backward may be the last of a context in FP8. */
static me_tensor *layer_norm(me_nn *nn, const me_norm *norm, me_tensor *x)
{
    const me_te_op_end *end = NULL;
    if (me_fp8_takes_first(nn, false)) {
        nn->te->op_end = (me_te_op_end){.run = reduce_amaxes, .self = nn};
        end = &nn->te->op_end;
    }
    return me_te_op_norm(nn->e, x, norm->weight->tensor,
                         norm->bias == NULL ? NULL : norm->bias->tensor, end);
}

const me_backend me_te_backend = {
    .fuse_layernorm_and_linear = true,
    .linear = me_te_linear,
    .column_parallel_linear = me_te_linear,
    .column_parallel_layer_norm_linear = me_te_layer_norm_linear,
    .row_parallel_linear = me_te_linear,
    .grouped_linear = me_te_grouped_linear,
    .layer_norm = layer_norm,
    .activation_func = me_te_op_activation,
    .cross_entropy = me_te_cross_entropy,
    .fused_rope = me_te_rope,
    .fused_mlp = me_te_fused_mlp,
};
