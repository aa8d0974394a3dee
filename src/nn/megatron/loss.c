/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/loss.h"

#include "model/mup.h"
#include "nn/megatron/backend.h"
#include "nn/megatron/vocabulary.h"
#include "ops/compiled.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/sort.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** Kernels that change @p x in place. */
static void pass_over(me_engine *e, me_kernel_class kernel, const me_tensor *x,
                      int times)
{
    for (int i = 0; i < times; i++) {
        me_launch_kernel(e, kernel, me_numel(x), 2 * me_bytes(x));
    }
}

enum {
    CE_SAVED_PROBABILITIES,
    CE_SAVED_TARGET_MASK,
    CE_SAVED_TARGET
};

/** The numbers of the rows, int64: (s b). */
static me_tensor *arange(me_engine *e, const me_tensor *rows)
{
    me_tensor *range = me_pointwise(e, "arange", rows, ME_DTYPE_INT64);
    me_fill_resized(e, 8);
    return range;
}

/** The probabilities become the gradient in place. */
static me_tensor *gradient_in_place(me_engine *e, const me_node *node,
                                    const me_tensor *gy)
{
    const me_tensor *probabilities = node->saved[CE_SAVED_PROBABILITIES];
    const me_tensor *mask = node->saved[CE_SAVED_TARGET_MASK];
    me_launch_host(e, ME_HOST_LOSS);
    me_tensor *gradient = me_detach(e, probabilities);
    me_tensor *range = arange(e, mask);
    me_tensor *ones = me_pointwise(e, "to", mask, ME_DTYPE_FLOAT32);
    me_tensor *update = me_pointwise(e, "rsub", ones, ME_DTYPE_FLOAT32);
    me_drop(e, ones);
    me_tensor *picked = me_pointwise(e, "index", gy, ME_DTYPE_FLOAT32);
    if (me_is_deterministic(e)) {
        me_index_put_pairs(e, me_numel(gy), me_numel(gradient), false);
    }
    me_drop(e, picked);
    me_drop(e, range);
    me_drop(e, update);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, 2 * me_numel(gradient),
                     2 * me_bytes(gradient));
    return gradient;
}

static void cross_entropy_backward(me_engine *e, me_node *node,
                                   me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = gradient_in_place(e, node, gy[0]);
}

static const me_op cross_entropy_op = {.node =
                                           "_VocabParallelCrossEntropyBackward",
                                       .backward = cross_entropy_backward};

/** `torch.max(x, dim=-1)[0]`: values and indices; the indices go at once. */
static me_tensor *row_maximum(me_engine *e, const me_tensor *x,
                              const me_tensor *target)
{
    me_tensor *values = me_empty_like_as(e, "max", target, ME_DTYPE_FLOAT32);
    me_tensor *indices = me_empty_like_as(e, "max", target, ME_DTYPE_INT64);
    me_reduce_to(e, x, me_numel(target), 16);
    me_drop(e, indices);
    return values;
}

/** The logits of the targets, and the sum of the exponentials, which take the
 *  logits' place. */
static me_tensor *predicted_logits(me_engine *e, const me_tensor *x,
                                   const me_tensor *target,
                                   me_tensor **sum_exp_out)
{
    me_tensor *range = arange(e, target);
    me_tensor *picked = me_pointwise(e, "index", target, ME_DTYPE_FLOAT32);
    me_tensor *predicted = me_pointwise(e, "clone", picked, ME_DTYPE_FLOAT32);
    me_drop(e, picked);
    *sum_exp_out = me_sum_last_detached(e, x);
    me_drop(e, range);
    return predicted;
}

/** The predicted logits and the sums of the exponentials, both float32 of a row
 *  each, summed over the tensor ranks. */
static void sum_over_ranks(me_nn *nn, me_tensor *predicted, me_tensor *sum_exp)
{
    me_all_reduce(nn->e, nn->comm, ME_GROUP_TENSOR, predicted);
    me_all_reduce(nn->e, nn->comm, ME_GROUP_TENSOR, sum_exp);
}

/** The same in one call: both behind each other in one tensor, which is
 *  returned, and of which they are halves from then on. */
static me_tensor *sum_joined(me_nn *nn, me_tensor *predicted,
                             me_tensor *sum_exp)
{
    me_engine *e = nn->e;
    const uint64_t rows = me_numel(sum_exp);
    me_tensor *joined =
        me_empty(e, "cat", ME_DTYPE_FLOAT32, ME_SHAPE(2 * rows));
    me_drop(e, predicted);
    me_drop(e, sum_exp);
    me_all_reduce(e, nn->comm, ME_GROUP_TENSOR, joined);
    return joined;
}

/** The forward operation by operation; @p joins: the fused one's, with a single
 *  sum over ranks. */
static me_tensor *op_by_op(me_nn *nn, me_node *node, me_tensor *logits,
                           me_tensor *target, bool joins)
{
    me_engine *e = nn->e;
    const bool grad = me_grad_enable(e, false);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_cast(e, logits, ME_DTYPE_FLOAT32); // (s, b, v/t)
    me_tensor *maximum = row_maximum(e, x, target);
    me_all_reduce(e, nn->comm, ME_GROUP_TENSOR, maximum);
    me_tensor *masked = NULL;
    me_tensor *mask = me_mask_other_vocabulary(e, target, &masked);
    me_tensor *sum_exp = NULL;
    me_tensor *predicted = predicted_logits(e, x, target, &sum_exp);
    me_tensor *joined = NULL;
    if (joins) {
        joined = sum_joined(nn, predicted, sum_exp);
        predicted = NULL;
        sum_exp = NULL;
    } else {
        sum_over_ranks(nn, predicted, sum_exp);
    }
    me_tensor *log =
        me_pointwise(e, "log", joins ? target : sum_exp, ME_DTYPE_FLOAT32);
    me_tensor *loss = me_pointwise(e, "sub", log, ME_DTYPE_FLOAT32);
    me_drop(e, log);
    pass_over(e, ME_KERNEL_ELEMENTWISE, x, 3); // -= maximum; exp_; /= sum_exp
    me_launch_host(e, ME_HOST_LOSS);
    me_save(e, node, CE_SAVED_PROBABILITIES, x);
    me_save(e, node, CE_SAVED_TARGET_MASK, mask);
    me_save(e, node, CE_SAVED_TARGET, masked);
    me_drop(e, maximum);
    me_drop(e, predicted);
    me_drop(e, sum_exp);
    me_drop(e, joined);
    me_drop(e, masked); // without a tape a tuple goes from its end
    me_drop(e, mask);
    me_leave(e, frame, loss);
    me_grad_enable(e, grad);
    return me_output(e, node, loss);
}

static me_tensor *cross_entropy(me_nn *nn, me_tensor *logits, me_tensor *target)
{
    me_node *node = me_record1(nn->e, &cross_entropy_op, logits);
    return op_by_op(nn, node, logits, target, false);
}

/** calculate_gradients() of the fused one makes bfloat16 of it, whatever the
 *  logits are, and the tape their type. */
static void op_by_op_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    me_tensor *wide = gradient_in_place(e, node, gy[0]);
    gx[0] = me_pointwise(e, "to", wide, ME_DTYPE_BFLOAT16);
    me_drop(e, wide);
    if (node->data.n[0] != ME_DTYPE_BFLOAT16) {
        me_tensor *own =
            me_pointwise(e, "to", gx[0], (me_dtype)node->data.n[0]);
        me_drop(e, gx[0]);
        gx[0] = own;
    }
}

static const me_op op_by_op_op =
    ME_NODE("_VocabParallelCrossEntropyBackward", op_by_op_backward);

/** The natively fused one where nothing is compiled: the operations of the other
 *  one, but for a single sum over ranks. */
static me_tensor *op_by_op_cross_entropy(me_nn *nn, me_tensor *logits,
                                         me_tensor *target)
{
    me_node *node = me_record1(nn->e, &op_by_op_op, logits);
    if (node != NULL) {
        node->data.n[0] = logits->dtype;
    }
    return op_by_op(nn, node, logits, target, true);
}

enum {
    FUSED_SAVED_PROBABILITIES,
    FUSED_SAVED_TARGET_MASK,
    FUSED_SAVED_TARGET
};

static void fused_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)gy;
    const me_tensor *x = node->saved[FUSED_SAVED_PROBABILITIES];
    me_launch_host(e, ME_HOST_LOSS);
    me_tensor *gradient =
        me_pointwise(e, "cross_entropy_backward", x, ME_DTYPE_FLOAT32);
    me_compiled_run(e, ME_COMPILED_LOSS_BACKWARD, NULL);
    gx[0] = me_pointwise(e, "to", x, ME_DTYPE_BFLOAT16); // of any model's
    me_compiled_run(e, ME_COMPILED_LOSS_CAST, NULL);
    me_drop(e, gradient);
}

static const me_op fused_op =
    ME_NODE("_VocabParallelCrossEntropyBackward", fused_backward);

/** The natively fused one, of compiled functions. */
static me_tensor *fused_cross_entropy(me_nn *nn, me_tensor *logits,
                                      me_tensor *target)
{
    me_engine *e = nn->e;
    me_node *node = me_record1(e, &fused_op, logits);
    const bool grad = me_grad_enable(e, false);
    const me_frame frame = me_enter(e);
    const uint64_t rows = me_numel(target);
    me_tensor *x = logits->dtype == ME_DTYPE_FLOAT32
                       ? logits
                       : me_pointwise(e, "to", logits, ME_DTYPE_FLOAT32);
    me_tensor *maximum = me_pointwise(e, "max", target, ME_DTYPE_FLOAT32);
    me_all_reduce(e, nn->comm, ME_GROUP_TENSOR, maximum);
    me_tensor *mask = me_pointwise(e, "mask", target, ME_DTYPE_BOOL);
    me_tensor *masked = me_pointwise(e, "target", target, ME_DTYPE_INT64);
    me_tensor *predicted = me_pointwise(e, "index", target, ME_DTYPE_FLOAT32);
    me_tensor *sum_exp = me_pointwise(e, "sum", target, ME_DTYPE_FLOAT32);
    me_compiled_run(e, ME_COMPILED_LOSS_TARGET, NULL);
    me_tensor *joined =
        me_empty(e, "cat", ME_DTYPE_FLOAT32, ME_SHAPE(2 * rows));
    me_compiled_run_in_place(e, ME_COMPILED_LOSS_JOIN, predicted);
    me_drop(e, predicted);
    me_drop(e, sum_exp);
    me_all_reduce(e, nn->comm, ME_GROUP_TENSOR, joined);
    me_tensor *exponential = me_pointwise(e, "exp", x, ME_DTYPE_FLOAT32);
    me_compiled_run(e, ME_COMPILED_LOSS_EXP, NULL);
    me_drop(e, exponential);
    me_tensor *loss = me_pointwise(e, "sub", target, ME_DTYPE_FLOAT32);
    me_compiled_run(e, ME_COMPILED_LOSS, NULL);
    me_compiled_run_in_place(e, ME_COMPILED_LOSS_PROBABILITIES, x);
    pass_over(e, ME_KERNEL_COMPILED, x, 2);
    me_launch_host(e, ME_HOST_LOSS);
    me_save(e, node, FUSED_SAVED_PROBABILITIES, x);
    me_save(e, node, FUSED_SAVED_TARGET_MASK, mask);
    me_save(e, node, FUSED_SAVED_TARGET, masked);
    me_drop(e, maximum);
    me_drop(e, joined);
    me_drop(e, masked);
    me_drop(e, mask);
    me_leave(e, frame, loss);
    me_grad_enable(e, grad);
    return me_output(e, node, loss);
}

me_tensor *me_vocab_parallel_cross_entropy(me_nn *nn, me_tensor *logits,
                                           me_tensor *target)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    if (!nn->config->train.cross_entropy_loss_fusion) {
        return cross_entropy(nn, logits, target);
    }
    const me_backend *backend = me_backend_of(nn);
    if (nn->config->train.cross_entropy_fusion_impl == ME_CROSS_ENTROPY_TE &&
        backend->cross_entropy != NULL) {
        return backend->cross_entropy(nn, logits, target);
    }
    return nn->config->train.torch_compile
               ? fused_cross_entropy(nn, logits, target)
               : op_by_op_cross_entropy(nn, logits, target);
}

me_tensor *me_scale_logits(me_nn *nn, me_tensor *logits)
{
    return me_model_scales_logits(&nn->config->model)
               ? me_rebind(nn->e, logits, me_mul_number(nn->e, logits))
               : logits;
}

me_tensor *me_language_model_loss(me_nn *nn, me_tensor *labels,
                                  me_tensor *logits)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *turned = me_transpose(e, labels, 0, 1);
    me_tensor *target = me_contiguous(e, turned); // (s, b)
    me_tensor *loss = me_vocab_parallel_cross_entropy(nn, logits, target);
    me_tensor *back = me_transpose(e, loss, 0, 1);
    me_tensor *dense = me_contiguous(e, back); // (b, s)
    if (dense != back) {
        me_drop(e, loss);
        me_drop(e, back);
    }
    return me_leave(e, frame, dense);
}
