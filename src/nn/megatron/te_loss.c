/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_loss.h"

#include "base/size.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** Numbers of a row: its largest logit, the sum of its exponentials, and the
 *  target's logit. */
enum {
    STATISTICS = 3
};

/** What is left of the logits is their gradient, but for the loss's own. */
static void backward(me_engine *e, me_node *node, me_tensor *const *gy,
                     me_tensor **gx)
{
    me_temporary(e, "tensor", 4); // torch.equal(grad_output, 1)
    me_tensor *gradient = me_detach(e, node->saved[0]);
    me_tensor *scale = me_contiguous(e, gy[0]);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(gradient),
                     2 * me_bytes(gradient));
    if (scale != gy[0]) {
        me_drop(e, scale);
    }
    gx[0] = gradient;
}

static const me_op op = ME_NODE("CrossEntropyFunctionBackward", backward);

static me_tensor *zeros(me_engine *e, uint64_t n)
{
    return me_empty(e, "zeros", ME_DTYPE_FLOAT32, ME_SHAPE(n));
}

/** cross_entropy_forward(): two kernels, between which tensor ranks gather what
 *  each knows of its part of a row. */
static me_tensor *forward(me_nn *nn, me_tensor *logits, me_tensor *target)
{
    me_engine *e = nn->e;
    const uint64_t rows = me_numel(target);
    const uint64_t ranks = (uint64_t)nn->config->parallel.tensor;
    const uint64_t n = me_size_mul(STATISTICS, rows);
    me_tensor *loss = me_empty_like_as(e, "zeros", target, ME_DTYPE_FLOAT32);
    me_tensor *statistics = zeros(e, n);
    me_tensor *counted = me_scratch(e, "zeros", 8);
    me_launch_kernel(e, ME_KERNEL_SOFTMAX, me_numel(logits), me_bytes(logits));
    counted = me_rebind(e, counted, me_scratch(e, "clamp", 8));
    me_tensor *all = NULL;
    if (ranks > 1) {
        all = zeros(e, me_size_mul(n, ranks));
        me_communicate(e, nn->comm,
                       (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_GATHER,
                                 ME_DTYPE_FLOAT32, n, -1, false});
    }
    me_launch_kernel(e, ME_KERNEL_SOFTMAX, me_numel(logits),
                     2 * me_bytes(logits));
    if (all != NULL) { // else it is named twice
        me_drop(e, statistics);
    }
    me_drop(e, counted);
    me_drop(e, all != NULL ? all : statistics);
    return loss;
}

me_tensor *me_te_cross_entropy(me_nn *nn, me_tensor *logits, me_tensor *target)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_node *node = me_record1(e, &op, logits);
    const bool grad = me_grad_enable(e, false);
    const me_frame frame = me_enter(e);
    me_tensor *loss = forward(nn, logits, target);
    me_launch_host(e, ME_HOST_LOSS);
    me_save(e, node, 0, logits);
    me_leave(e, frame, loss);
    me_grad_enable(e, grad);
    return me_output(e, node, loss);
}
