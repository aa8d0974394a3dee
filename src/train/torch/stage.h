/**
 * @file
 * PipelineStage of torch.distributed.pipelining (stage.py, PyTorch 2.11): one
 * stage's part of the model, its receive buffers, and what it keeps of each
 * micro-batch between forward and backward.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_STAGE_H
#define MEMEST_TRAIN_TORCH_STAGE_H

#include "tensor/backward_groups.h"
#include "train/fsdp/fsdp.h"
#include "train/torch/torch_ddp.h"

/** What passes from a stage to the next. */
typedef struct me_boundary {
    me_shape shape;
    me_dtype dtype;
} me_boundary;

/** What a stage keeps of one micro-batch; all owned. */
typedef struct me_stage_microbatch {
    me_tensor *input_buffer;    /**< args_recv_info: a leaf, or the output of
                                     the stage before on the same rank */
    me_tensor *gradient_buffer; /**< grad_recv_info, likewise */
    me_tensor *input;           /**< fwd_cache */
    me_tensor *output;
    me_tensor *input_gradient; /**< bwd_cache */
    me_tensor *output_chunk;   /**< of the last stage, until the next step */
    me_tensor *state_output;   /**< backward_state, between I and W */
    me_tensor *state_input;
    me_tensor *state_gradient;
    me_parameter_groups groups;
} me_stage_microbatch;

typedef struct me_stage {
    me_loop *loop;
    int32_t index; /**< of n_stages */
    int32_t chunk; /**< of this rank's, from 0 */
    int32_t n_stages;
    bool has_previous_here; /**< the stage before is on this rank */
    bool has_next_here;
    int32_t previous_rank; /**< where the neighbours are; -1: there is none */
    int32_t next_rank;
    me_layer *model;
    me_fsdp *fsdp;            /**< fully_shard()'s; owned; NULL: none */
    me_ddp_module *ddp;       /**< DistributedDataParallel's; NULL: none */
    int32_t n_backwards;      /**< whole ones of this step so far */
    uint32_t first_parameter; /**< of the loop's; then n_weights of them */
    me_tensor **weights; /**< room for their tensors; fully_shard has two of
                              each, in turn */
    uint32_t n_weights;
    int32_t n_microbatches;
    me_stage_microbatch *microbatches;
    me_boundary input; /**< what it is given */
    me_boundary output;
} me_stage;

/** @name What a stage does with micro-batch @p m
 *  @{ */
/** forward_one_chunk(). @param input  of the first stage; borrowed
 *  @return the output, borrowed from the stage */
me_tensor *me_stage_forward(me_stage *stage, int32_t m, me_tensor *input);

/** backward_one_chunk(): the whole, or the input's half.
 *  @param loss  on the last stage; borrowed */
void me_stage_backward(me_stage *stage, int32_t m, me_tensor *loss,
                       bool is_full);

/** backward_weight_one_chunk(). */
void me_stage_backward_weight(me_stage *stage, int32_t m);

/** set_local_fwd_input(): the next stage, on this rank, gets the output. */
void me_stage_set_input(me_stage *stage, int32_t m, me_tensor *output);

/** set_local_bwd_input(): the stage before takes the gradient over. */
void me_stage_take_gradient(me_stage *stage, int32_t m, me_stage *next);

/** What the stage sends to the one before; the caller's. NULL: nothing. */
me_tensor *me_stage_pop_gradient(me_stage *stage, int32_t m);
/** @} */

/** Whose communicator stages talk over: the pipeline's dimension of the mesh. */
me_group_kind me_stage_group(const me_stage *stage);

/** Tell who watches that @p x is sent, or received; me_communicate() is for the
 *  call itself. @param rank  the other side, by its place in the group */
void me_stage_tell_p2p(const me_stage *stage, me_c10d_op op, const me_tensor *x,
                       int32_t rank);

/** perform_reduce_grad(), once all micro-batches are through. */
void me_stage_reduce(me_stage *stage);

/** clear_runtime_states(): what is left of the step before goes. */
void me_stage_clear(me_stage *stage);

/** Shapes by a forward without gradients, and what neighbours tell each other
 *  of them; then buffers for all inputs. */
void me_stage_prepare_forward(me_stage *stage);

/** Buffers for the gradients of all outputs. */
void me_stage_prepare_backward(me_stage *stage);

void me_stage_fini(me_stage *stage);

#endif /* MEMEST_TRAIN_TORCH_STAGE_H */
