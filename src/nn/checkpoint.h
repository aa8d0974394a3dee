/**
 * @file
 * Re-entrant activation recomputation: Megatron's CheckpointFunction
 * (core/tensor_parallel/random.py), and PyTorch's, which is
 * `torch.utils.checkpoint` with use_reentrant=True. The section runs without the
 * tape in the forward; in the backward it runs again with it, and then backward.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_CHECKPOINT_H
#define MEMEST_NN_CHECKPOINT_H

#include "nn/nn.h"

enum {
    ME_CHECKPOINT_INPUTS = 4
};

/** What is run again: tensors in, one tensor out. Lives with the model. */
typedef struct me_section {
    me_nn *nn;
    me_tensor *(*run)(const struct me_section *section,
                      me_tensor *const *inputs);
    const void *self;
    int32_t first; /**< layers of the section */
    int32_t count;
} me_section;

/**
 * Run a section under recomputation.
 *
 * @param inputs      tensors that the section works on, NULL allowed; saved
 * @param distribute  keep only this tensor rank's part of the first input
 */
me_tensor *me_checkpoint(me_nn *nn, const me_section *section,
                         me_tensor *const inputs[ME_CHECKPOINT_INPUTS],
                         bool distribute);

/** One use of Megatron's CheckpointWithoutOutput: what ran is discarded once
 *  others have saved it, and run again before they need it. */
typedef struct me_output_checkpoint me_output_checkpoint;

/**
 * Run a section of one input under it.
 *
 * @param checkpoint_out  lives with the model; NULL without a tape
 */
me_tensor *me_checkpoint_output(me_nn *nn, const me_section *section,
                                me_tensor *input,
                                me_output_checkpoint **checkpoint_out);

/** discard_output_and_register_recompute(): the output's memory goes; it comes
 *  back when the gradient of @p hooked is there. NULL is allowed. */
void me_checkpoint_discard(me_output_checkpoint *checkpoint, me_tensor *hooked);

#endif /* MEMEST_NN_CHECKPOINT_H */
