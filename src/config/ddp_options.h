/**
 * @file
 * Options of DistributedDataParallel's buckets: when they are reduced and gathered,
 * how large they are and how they are summed. Rows of the table in options.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_DDP_OPTIONS_H
#define MEMEST_CONFIG_DDP_OPTIONS_H

/* clang-format off */
#define ME_DDP_OPTIONS \
    BOOL("optimizer.overlap_grad_reduce", "false", optimizer.overlap_grad_reduce, \
        "Reduce gradients bucket by bucket during the backward."), \
    BOOL("optimizer.overlap_param_gather", "false", optimizer.overlap_param_gather, \
        "Gather parameters during the next forward."), \
    BOOL("optimizer.overlap_param_gather_with_optimizer_step", "false", \
        optimizer.overlap_param_gather_with_optimizer_step, \
        "Step the first chunk on its own, and gather it during the others' step."), \
    BOOL("optimizer.align_grad_reduce", "true", optimizer.align_grad_reduce, \
        "Pipeline stages begin to reduce gradients together."), \
    COUNT("optimizer.ddp_bucket_size", "0", 1, 1e12, "elements", \
        "the larger of 40000000 and 1000000 x data parallel size", \
        optimizer.ddp_bucket_size, \
        "Size of a gradient bucket under overlap_grad_reduce."), \
    COUNT("optimizer.ddp_num_buckets", "0", 1, 1e6, "buckets", \
        "as ddp_bucket_size says", optimizer.ddp_num_buckets, \
        "Number of gradient buckets under overlap_grad_reduce."), \
    BOOL("optimizer.ddp_pad_buckets_for_high_nccl_busbw", "false", \
        optimizer.ddp_pad_buckets_for_high_nccl_busbw, \
        "Pad buckets to a multiple of 2 to the 16th elements."), \
    BOOL("optimizer.ddp_reduce_scatter_with_fp32_accumulation", "false", \
        optimizer.ddp_reduce_scatter_with_fp32_accumulation, \
        "The distributed optimizer's gradients go by all-to-all, bucket by bucket, and " \
        "are summed in float32."),
/* clang-format on */

#endif /* MEMEST_CONFIG_DDP_OPTIONS_H */
