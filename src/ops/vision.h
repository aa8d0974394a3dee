/**
 * @file
 * Operations on images, (batch, channels, height, width): convolution, batch
 * norm, pooling; and the loss of a classifier.
 *
 * cuDNN's workspaces are not modelled: which it takes depends on the algorithm
 * that it finds at run time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_VISION_H
#define MEMEST_OPS_VISION_H

#include "tensor/tensor.h"

/** How a window moves over an image; the same in both directions. */
typedef struct me_window {
    uint64_t kernel;
    uint64_t stride;
    uint64_t padding;
} me_window;

/** Windows along an extent; 0: not one fits. */
uint64_t me_window_count(const me_window *window, uint64_t extent);

/** `torch.nn.functional.conv2d`; saves input and weight. @p bias may be NULL;
 *  its gradient is summed outside of cuDNN. One window must fit. */
me_tensor *me_conv2d(me_engine *e, me_tensor *x, me_tensor *weight,
                     me_tensor *bias, const me_window *window);

/** What a batch norm goes on with from one forward to the next. */
typedef struct me_running_stats {
    me_tensor *mean;
    me_tensor *var;
    me_tensor *n_batches; /**< int64 */
} me_running_stats;

/** `torch.nn.functional.batch_norm` in training, by cuDNN, after the module has
 *  counted the batch; @p stats are changed in place. Saves input, weight, those,
 *  mean and 1/std. */
me_tensor *me_batch_norm(me_engine *e, me_tensor *x, me_tensor *weight,
                         me_tensor *bias, const me_running_stats *stats);

/** `torch.nn.functional.max_pool2d`; saves input and indices. */
me_tensor *me_max_pool2d(me_engine *e, me_tensor *x, const me_window *window);

/** `torch.nn.functional.adaptive_avg_pool2d(x, 1)`: the mean of each channel. */
me_tensor *me_average_channels(me_engine *e, me_tensor *x);

#endif /* MEMEST_OPS_VISION_H */
