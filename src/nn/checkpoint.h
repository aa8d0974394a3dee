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

/** What is run again: tensors in, one tensor out, or several. Lives with the
 *  model. */
typedef struct me_section {
    me_nn *nn;
    me_tensor *(*run)(const struct me_section *section,
                      me_tensor *const *inputs);
    /** In place of `run`, where there are several outputs. */
    void (*run_many)(const struct me_section *section, me_tensor *const *inputs,
                     me_tensor **outputs);
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

/** What a section runs on, and makes; NULL inputs are allowed. */
typedef struct me_section_call {
    uint32_t n_inputs;  /**< at most ME_CHECKPOINT_INPUTS */
    uint32_t n_outputs; /**< at most ME_MAX_OUTPUTS */
    me_tensor *const *inputs;
} me_section_call;

/**
 * Run a section under it.
 *
 * @param outputs_out     variables of the running frame
 * @param checkpoint_out  lives with the model; NULL without a tape
 */
void me_checkpoint_outputs(me_nn *nn, const me_section *section,
                           const me_section_call *call, me_tensor **outputs_out,
                           me_output_checkpoint **checkpoint_out);

/** The same for one input and one output. */
me_tensor *me_checkpoint_output(me_nn *nn, const me_section *section,
                                me_tensor *input,
                                me_output_checkpoint **checkpoint_out);

/** discard_output_and_register_recompute(): the outputs' memory goes; it comes
 *  back when the gradient of @p hooked is there. NULL is allowed. */
void me_checkpoint_discard(me_output_checkpoint *checkpoint, me_tensor *hooked);

#endif /* MEMEST_NN_CHECKPOINT_H */
