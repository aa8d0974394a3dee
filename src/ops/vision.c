/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/vision.h"

#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"

uint64_t me_window_count(const me_window *window, uint64_t extent)
{
    const uint64_t padded =
        me_size_add(extent, me_size_mul(2, window->padding));
    return padded < window->kernel
               ? 0
               : (padded - window->kernel) / window->stride + 1;
}

/** What the window leaves of an image, in @p channels. */
static me_shape windows(const me_tensor *x, uint64_t channels,
                        const me_window *window)
{
    return ME_SHAPE(me_dim(x, 0), channels,
                    me_window_count(window, me_dim(x, 2)),
                    me_window_count(window, me_dim(x, 3)));
}

enum {
    CONV_INPUT,
    CONV_WEIGHT,
    CONV_BIAS
};

/** Two for each element of the output and of the weight of its channel. */
static uint64_t conv_flops(const me_tensor *weight, uint64_t outputs)
{
    const uint64_t channels = me_dim(weight, 0);
    return channels == 0
               ? 0
               : me_size_mul(2,
                             me_size_mul(outputs, me_numel(weight) / channels));
}

/** Of the bias: what arrives, summed over all images and their points. */
static me_tensor *bias_gradient(me_engine *e, const char *op,
                                const me_tensor *gy)
{
    const uint64_t channels = me_dim(gy, 1);
    me_tensor *sum = me_empty(e, op, (me_dtype)gy->dtype, ME_SHAPE(channels));
    me_reduce_to(e, gy, channels, 4);
    return sum;
}

static const me_op conv2d_gradient = {
    "convolution_backward", .dispatcher = "convolution_backward.default"};

static void conv2d_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    const char *op = conv2d_gradient.event;
    const me_tensor *x = node->saved[CONV_INPUT];
    const me_tensor *weight = node->saved[CONV_WEIGHT];
    const uint64_t flops = conv_flops(weight, me_numel(gy[0]));
    if (me_needs(node, CONV_INPUT)) {
        gx[CONV_INPUT] = me_empty_like(e, op, x);
        me_launch_kernel(e, ME_KERNEL_COMPILED, flops,
                         me_bytes(gy[0]) + me_bytes(x));
    }
    if (me_needs(node, CONV_WEIGHT)) {
        gx[CONV_WEIGHT] = me_empty_like(e, op, weight);
        me_launch_kernel(e, ME_KERNEL_COMPILED, flops,
                         me_bytes(gy[0]) + me_bytes(x));
    }
    if (node->n_inputs > CONV_BIAS && me_needs(node, CONV_BIAS)) {
        gx[CONV_BIAS] = bias_gradient(e, op, gy[0]);
    }
    me_tell_operation(
        e, &(me_operation){
               .name = conv2d_gradient.dispatcher,
               .arguments = ME_TENSORS(gy[0], x, weight),
               .results = {.count = node->n_inputs,
                           .items = (const me_tensor *const *)gx},
               .flops = me_size_mul(flops, me_needs(node, CONV_INPUT) +
                                               me_needs(node, CONV_WEIGHT)),
           });
}

static const me_op conv2d_op = {
    "convolution", .dispatcher = "convolution.default",
    .node = "ConvolutionBackward0", .backward = conv2d_backward};

me_tensor *me_conv2d(me_engine *e, me_tensor *x, me_tensor *weight,
                     me_tensor *bias, const me_window *window)
{
    me_node *node = me_record(e, &conv2d_op, bias == NULL ? 2 : 3,
                              (me_tensor *[]){x, weight, bias});
    me_save(e, node, CONV_INPUT, x);
    me_save(e, node, CONV_WEIGHT, weight);
    me_tensor *y = me_empty(e, conv2d_op.event, (me_dtype)x->dtype,
                            windows(x, me_dim(weight, 0), window));
    me_launch_kernel(e, ME_KERNEL_COMPILED, conv_flops(weight, me_numel(y)),
                     me_bytes(x) + me_bytes(y));
    me_tell_operation(e, &(me_operation){
                             .name = conv2d_op.dispatcher,
                             .arguments = ME_TENSORS(x, weight, bias),
                             .results = ME_TENSORS(y),
                             .flops = conv_flops(weight, me_numel(y)),
                         });
    return me_output(e, node, y);
}

enum {
    BATCH_NORM_INPUT,
    BATCH_NORM_WEIGHT,
    BATCH_NORM_RUNNING_MEAN,
    BATCH_NORM_RUNNING_VAR,
    BATCH_NORM_MEAN,
    BATCH_NORM_RSTD
};

/** One float32 a channel. */
static me_tensor *per_channel(me_engine *e, const me_op *op, const me_tensor *x)
{
    return me_empty(e, op->event, ME_DTYPE_FLOAT32, ME_SHAPE(me_dim(x, 1)));
}

static const me_op batch_norm_gradient = {"cudnn_batch_norm_backward",
                                          "cudnn_batch_norm_backward.default",
                                          .cost = ME_COST(NORM, 0, 0, 3)};

static void batch_norm_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_op *op = &batch_norm_gradient;
    gx[0] = me_empty_like(e, op->event, gy[0]);
    gx[1] = me_empty_like(e, op->event, node->saved[BATCH_NORM_WEIGHT]);
    gx[2] = me_empty_like(e, op->event, node->saved[BATCH_NORM_WEIGHT]);
    me_op_run(e, op,
              ME_TENSORS(node->saved[BATCH_NORM_INPUT], gy[0],
                         node->saved[BATCH_NORM_WEIGHT],
                         node->saved[BATCH_NORM_RUNNING_MEAN],
                         node->saved[BATCH_NORM_RUNNING_VAR],
                         node->saved[BATCH_NORM_MEAN],
                         node->saved[BATCH_NORM_RSTD]),
              ME_TENSORS(gx[0], gx[1], gx[2]));
}

static const me_op batch_norm_op = ME_OP(
    "cudnn_batch_norm", "cudnn_batch_norm.default", ME_COST(NORM, 0, 0, 2),
    "CudnnBatchNormBackward0", .backward = batch_norm_backward);

static const me_op count_kernel = {.dispatcher = "add_.Tensor"};

me_tensor *me_batch_norm(me_engine *e, me_tensor *x, me_tensor *weight,
                         me_tensor *bias, const me_running_stats *stats)
{
    me_op_tell(e, &count_kernel, ME_TENSORS(stats->n_batches),
               ME_TENSORS(stats->n_batches));
    me_node *node =
        me_record(e, &batch_norm_op, 3, (me_tensor *[]){x, weight, bias});
    me_tensor *y = me_empty_like(e, batch_norm_op.event, x);
    me_tensor *mean = per_channel(e, &batch_norm_op, x);
    me_tensor *rstd = per_channel(e, &batch_norm_op, x);
    me_op_run(e, &batch_norm_op,
              ME_TENSORS(x, weight, bias, stats->mean, stats->var),
              ME_TENSORS(y, mean, rstd));
    me_save(e, node, BATCH_NORM_INPUT, x);
    me_save(e, node, BATCH_NORM_WEIGHT, weight);
    me_save(e, node, BATCH_NORM_RUNNING_MEAN, stats->mean);
    me_save(e, node, BATCH_NORM_RUNNING_VAR, stats->var);
    me_save(e, node, BATCH_NORM_MEAN, mean);
    me_save(e, node, BATCH_NORM_RSTD, rstd);
    me_drop(e, rstd);
    me_drop(e, mean);
    return me_output(e, node, y);
}

static const me_op max_pool2d_gradient = {
    "max_pool2d_backward", "max_pool2d_with_indices_backward.default",
    .cost = ME_COST(INDEX, 0, 1, 1)};

static void max_pool2d_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_empty_like(e, max_pool2d_gradient.event, node->saved[0]);
    me_op_run(e, &max_pool2d_gradient,
              ME_TENSORS(gy[0], node->saved[0], node->saved[1]),
              ME_TENSORS(gx[0]));
}

static const me_op max_pool2d_op =
    ME_OP("max_pool2d_with_indices", "max_pool2d_with_indices.default",
          ME_COST(INDEX, 0, 1, 1), "MaxPool2DWithIndicesBackward0",
          .backward = max_pool2d_backward);

me_tensor *me_max_pool2d(me_engine *e, me_tensor *x, const me_window *window)
{
    const me_op *op = &max_pool2d_op;
    me_node *node = me_record1(e, op, x);
    const me_shape shape = windows(x, me_dim(x, 1), window);
    me_tensor *y = me_empty(e, op->event, (me_dtype)x->dtype, shape);
    me_tensor *indices = me_empty(e, op->event, ME_DTYPE_INT64, shape);
    me_op_run(e, op, ME_TENSORS(x), ME_TENSORS(y, indices));
    me_save(e, node, 0, x);
    me_save(e, node, 1, indices);
    me_drop(e, indices);
    return me_output(e, node, y);
}

static const me_op average_op =
    ME_OP("mean", "mean.dim", ME_COST(REDUCE, 1, 1, 0), "MeanBackward1",
          .backward = me_mean_backward);

me_tensor *me_average_channels(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &average_op, x);
    me_tensor *y = me_kernel(e, &average_op, ME_TENSORS(x), (me_dtype)x->dtype,
                             ME_SHAPE(me_dim(x, 0), me_dim(x, 1), 1, 1));
    return me_output(e, node, y);
}
