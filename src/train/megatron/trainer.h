/**
 * @file
 * State of one rank's training, for the files of this folder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_TRAINER_H
#define MEMEST_TRAIN_MEGATRON_TRAINER_H

#include "parallel/buffer.h"
#include "parallel/shards.h"
#include "tensor/launch.h"
#include "tensor/script.h"
#include "train/fsdp/fsdp.h"
#include "train/megatron/megatron.h"
#include "train/optim/optim.h"

/** Parameters that share a data-parallel group: experts that are spread over
 *  expert ranks have one of their own. */
typedef enum me_sharing {
    ME_SHARING_DENSE,
    ME_SHARING_EXPERT,
    ME_SHARINGS
} me_sharing;

/** A buffer of gradients, and of parameters, and who fills it. */
typedef struct me_ddp_buffer {
    me_buffer *layout;         /**< owned */
    me_tensor *param_buffer;   /**< distributed optimizer; owned */
    me_tensor *grad_buffer;    /**< owned */
    me_parameter **parameters; /**< of the chunk, registration order */
    uint32_t n_parameters;
    uint32_t *left_in_bucket; /**< parameters whose gradient is awaited */
    me_group_kind group;      /**< that its gradients are summed over */
} me_ddp_buffer;

/** One chunk's DistributedDataParallel. */
typedef struct me_ddp {
    me_ddp_buffer buffers[ME_SHARINGS]; /**< without parameters: empty */
    uint32_t *bucket_of;                /**< each parameter's bucket */
    bool is_reduced; /**< in this iteration, during the backward */
} me_ddp;

enum {
    ME_GROUP_DECAYED,
    ME_GROUP_UNDECAYED,
    ME_OPTIMIZER_GROUPS
};

enum {
    ME_OPTIMIZERS_MAX = 3 /**< the first chunk's, the others', the experts' */
};

/** One of those that are chained. */
typedef struct me_optimizer {
    me_sharing sharing;     /**< whose parameters it steps, and of which */
    int32_t chunk_begin;    /**< chunks */
    int32_t chunk_end;      /**< the first that it doesn't */
    me_shard_state *shards; /**< decayed first, then undecayed */
    uint32_t count;
    uint32_t group_end[ME_OPTIMIZER_GROUPS];
    me_tensor *overflow_flag; /**< of fused kernels; NULL: it has none */
    me_tensor *constants[6];  /**< loss scale and what goes with it */
    me_precision_aware aware; /**< if the optimizer is precision-aware */
    bool has_stepped;         /**< moments exist */
    int32_t overflows;        /**< of fp16, in a row */
} me_optimizer;

/** What outlives a micro-batch of multi-token prediction (mtp.c). */
typedef struct me_mtp_state {
    me_tensor *loss_scale;    /**< of the last micro-batch */
    me_tensor *cumulative[2]; /**< correct, total predictions, (D) */
    me_tensor *total_loss[ME_MTP_MAX_DEPTHS]; /**< since the last log */
} me_mtp_state;

enum {
    ME_REPEATED_KINDS = ME_ACTION_WEIGHT_GRADIENT + 1,
    ME_REPEATED_MADE = 3 /**< tensors that an action makes for its caller */
};

/** Tensors of its caller that an action works on. */
enum {
    ME_FOUND_INPUT,
    ME_FOUND_OUTPUT,
    ME_FOUND_GRADIENT /**< of the output */
};

/** A tensor that an action makes for its caller. */
typedef struct me_repeated_tensor {
    bool is_there;
    bool has_graph; /**< it is no leaf */
    uint32_t slot;
    me_tensor like;
    me_storage storage;
} me_repeated_tensor;

/** What one kind of action of a chunk did last. */
typedef struct me_repeated_action {
    me_script script;
    uint32_t id;
    bool is_proven;   /**< the one before did the same */
    int32_t n_places; /**< of it in the order */
    int32_t n_unlike; /**< that touched blocks of others, as the first may */
    int32_t iteration;
    uint64_t calls_begin; /**< of collectives */
    uint64_t calls_end;
    me_repeated_tensor made[ME_REPEATED_MADE];
    bool keeps_gradient; /**< of the output, or a view of it, for the weights */
    bool keeps_view;
} me_repeated_action;

typedef struct me_repeated_chunk {
    int32_t n_run_now; /**< micro-batches that were run in this iteration */
    bool is_unlike;    /**< its micro-batches are run, all of them */
} me_repeated_chunk;

typedef struct me_repeated_microbatch {
    bool is_told;     /**< not run */
    int32_t place;    /**< the least that it has among the chunk's backwards, or
                           other actions of a kind */
    me_tensor *input; /**< of its forward; borrowed, its caller has it as long
                           as its gradient is made */
    me_blocks kept;   /**< between its actions */
    me_tensor *gradient; /**< of the output, held for weights that are told;
                              owned */
    me_storage *gradient_storage; /**< for weights that are run; borrowed */
} me_repeated_microbatch;

/** Micro-batches that are told and not run (repeat.c). */
typedef struct me_repeats {
    bool is_off;
    me_repeated_chunk *chunks;
    me_repeated_action *actions;          /**< chunk x kinds */
    me_repeated_microbatch *microbatches; /**< chunk x micro-batches */
    int32_t n_microbatches;
    uint32_t n_ids;
    me_action_kind kind; /**< of the action that runs or is told */
    int32_t chunk;
    int32_t microbatch;
    bool is_told;
    me_tensor **output; /**< the name of what the backward goes out from */
    me_script_found found;
    uint32_t gradient_refs; /**< when it began */
    uint32_t gradient_storage_refs;
    uint64_t calls;
} me_repeats;

typedef struct me_trainer {
    me_engine *e;
    const me_config *config; /**< the job; borrowed */
    const me_megatron_spec *spec;
    const me_communicators *comm;
    me_nn nn;
    me_parameter_list parameters;
    me_weight_gradients weights; /**< of the backward that runs, if split */
    me_rope_cache rope_cache;
    me_gpt *chunks;
    me_ddp *ddp;                                /**< one a chunk */
    me_fsdp *fsdp;                              /**< in its place; NULL: DDP */
    me_fully_shard_config fully_shard;          /**< its arguments */
    me_optimizer optimizers[ME_OPTIMIZERS_MAX]; /**< chained; that of experts
                                                     is the last, and without
                                                     parameters does nothing */
    int n_optimizers;
    int32_t iteration;
    int32_t forwards;        /**< of the iteration so far */
    bool is_last_microbatch; /**< gradients are synchronised */
    me_tensor *grad_norm;    /**< of the step, until its statistics are shared;
                                  NULL: a number of the host */
    me_tensor *barrier_byte;
    me_tensor *start_time;
    me_tensor **reports; /**< losses of the iteration's micro-batches */
    int32_t n_reports;
    me_tensor *mean_loss;     /**< of the iteration before */
    me_tensor *new_mean_loss; /**< of this one, until it is logged */
    me_tensor *total_loss;
    bool has_logged; /**< a total of losses exists */
    me_mtp_state mtp;
    me_moe_state moe;
    me_tensor *aux_loss_scale; /**< MoEAuxLossAutoScaler's */
    me_tensor *total_aux_loss;
    me_repeats repeats;
} me_trainer;

/** @name the trainer itself (training.c)
 *  @{ */
/** All zero but for what it borrows; a failure is the engine's. */
void me_trainer_init(me_trainer *t, me_engine *e, const me_megatron_spec *spec,
                     const me_communicators *comm);
/** get_model(). */
void me_build_model(me_trainer *t);
void me_trainer_fini(me_trainer *t);
/** @} */

/** @name start-up and bookkeeping (bookkeeping.c)
 *  @{ */
/** `+bytes −bytes`: a scalar that is gone at once. */
void me_blip(me_engine *e, const char *op, uint64_t bytes);
/** @p count of them, one after the other; what changes nothing is told to those
 *  alone who want to know. */
void me_blips(me_trainer *t, const char *op, uint64_t bytes, uint64_t count);
/** A scalar that somebody keeps. */
me_tensor *me_keep_scalar(me_engine *e, const char *op, uint64_t bytes);
/** torch.distributed.barrier() @p n times. */
void me_barriers(me_trainer *t, int n);
/** From `initialized` to the first parameter. */
void me_start_up(me_trainer *t);
/** all_gather_object of the optimizer's parameter groups over the world. */
void me_gather_parameter_groups(me_trainer *t);
/** Between `optimizer_built` and the first iteration. */
void me_before_training(me_trainer *t);
/** rerun_state_machine: is a scalar of @p bytes NaN, is it infinite? Not asked
 *  in the first iteration. */
void me_validate_scalar(me_trainer *t, uint64_t bytes);
/** The end of train_step: losses averaged, scalars reduced. */
void me_reduce_losses(me_trainer *t);
/** training_log(). */
void me_log_iteration(me_trainer *t, bool is_skipped);
/** @} */

/** @name multi-token prediction (mtp.c); nothing without it
 *  @{ */
/** The scale of its loss, after each micro-batch's own, on every stage. */
void me_set_mtp_loss_scale(me_trainer *t);
/** track_mtp_metrics(): its part of the log. */
void me_track_mtp_metrics(me_trainer *t);
/** Totals begin anew once they are logged. */
void me_reset_mtp_totals(me_trainer *t);
/** @} */

/** @name gradient buffers (ddp.c)
 *  @{ */
/** The chunk's buffers, on the side stream; its parameters move into them. */
void me_ddp_create(me_trainer *t, int32_t chunk);
/** Let go of buffers and layout. */
void me_ddp_destroy(me_trainer *t, me_ddp *ddp);
/** A new iteration: every bucket awaits all its gradients. */
void me_ddp_zero_grad(me_trainer *t);
/** Checks and reduces all buckets of a chunk, once an iteration. */
void me_ddp_reduce(me_trainer *t, int32_t chunk);
/** @} */

/** @name torch_FSDP instead (fsdp.c)
 *  @{ */
/** TorchFullyShardedDataParallel of the only chunk, on the side stream. */
void me_fsdp_wrap_model(me_trainer *t);
/** What DTensor makes of the partial gradients' sum over tensor ranks, which
 *  have @p numel elements in all. */
void me_fsdp_reduce_partial_gradients(me_trainer *t, uint64_t numel);
/** Elements of a parameter that this rank's shard has. */
uint64_t me_fsdp_local_numel(const me_trainer *t, const me_parameter *p);
/** @} */

/** @name forward and backward of one micro-batch (step.c)
 *  @{ */
/**
 * forward_step(): @p input is what the previous stage sent, or NULL.
 *
 * @param num_tokens_out  the micro-batch's token count on the last stage,
 *                        owned by the caller; NULL elsewhere
 * @return the loss or the hidden states, owned by the caller
 */
me_tensor *me_forward_step(me_trainer *t, int32_t chunk, int32_t microbatch,
                           me_tensor *input, me_tensor **num_tokens_out);
/**
 * backward_step(): the loss is scaled, and @p output is replaced by it.
 *
 * @param output    owned by the caller, replaced on the last stage
 * @param gradient  of the output; NULL on the last stage
 */
void me_backward_step(me_trainer *t, int32_t chunk, int32_t microbatch,
                      me_tensor **output, me_tensor *gradient);
/** weight_backward(): the gradients of the weights that a backward of inputs
 *  left for later. */
void me_weight_step(me_trainer *t, int32_t chunk, int32_t microbatch,
                    me_weight_gradients *weights);
/** Name of a point of the forward that runs, for the engine's life. */
const char *me_forward_name(me_trainer *t, const char *what);
/** deallocate_output_tensor(): one element takes the data's place. */
void me_deallocate_output(me_trainer *t, me_tensor *output);

/** @} */

/** @name micro-batches that are told and not run (repeat.c)
 *  @{ */
void me_repeats_init(me_trainer *t);
void me_repeats_fini(me_trainer *t);
void me_repeats_begin_iteration(me_trainer *t);
/** An action begins; whether it is told is settled. */
void me_repeats_begin_action(me_trainer *t, me_action_kind kind, int32_t chunk,
                             int32_t microbatch);
/** It ends. @param begin  the launch that it began with */
void me_repeats_end_action(me_trainer *t, const me_launch *begin);
/**
 * Tell the running action, if it is one that need not be run.
 *
 * @param found  what it works on, ME_SCRIPT_TENSORS; NULL: none
 * @param made   what it makes, ME_REPEATED_MADE, the caller's; set if told
 * @return false: it is to be run, up to me_repeats_end()
 */
bool me_repeats_tell(me_trainer *t, me_tensor *const *found, me_tensor **made);
/** The name of the output that the backward which begins may let go of. */
void me_repeats_name_output(me_trainer *t, me_tensor **output);
/** What the running micro-batch's forward worked on; NULL: nothing. */
me_tensor *me_repeats_input(const me_trainer *t);
/** It has run. @param made  as above, borrowed */
void me_repeats_end(me_trainer *t, me_tensor *const *found,
                    me_tensor *const *made);

/** @} */

/** @name point-to-point communication between stages (p2p.c)
 *
 *  A received tensor exists before any send or receive is issued, so before
 *  any wait, and is owned by the caller. Tensors that travel are used by
 *  NCCL's stream as well, so they are freed late.
 *  @{ */
/** What one exchange does; tensors that are sent may be NULL. */
typedef struct me_exchange {
    me_tensor *to_next;     /**< an output */
    me_tensor *to_previous; /**< an input's gradient */
    bool from_previous;     /**< receive an input */
    bool from_next;         /**< receive an output's gradient */
} me_exchange;

/** Run one exchange; what is not asked for is NULL, and the outputs may be. */
void me_exchange_run(me_trainer *t, const me_exchange *exchange,
                     me_tensor **from_previous_out, me_tensor **from_next_out);
/** Receive an input (@p is_forward) or an output's gradient from a rank of the
 *  pipeline. @return owned by the caller */
me_tensor *me_receive_from(me_trainer *t, bool is_forward, int32_t rank);
/** Say that one transfer of an order is launched, for times: @p transfer is
 *  an ME_TRANSFER_ bit, @p rank the other side's, chunk and micro-batch what
 *  it belongs to. */
void me_tell_transfer(me_trainer *t, int transfer, int32_t rank, int32_t chunk,
                      int32_t microbatch);
/** Send a tensor to a rank of the pipeline. */
void me_send_to(me_trainer *t, me_tensor *x, int32_t rank);
/** @} */

/** @name forward-backward functions, one file each
 *  @{ */
/** One stage: every micro-batch forward, then backward. */
void me_forward_backward_no_pipelining(me_trainer *t);
/** One chunk a rank. */
void me_forward_backward_1f1b(me_trainer *t);
/** Several chunks a rank, transfers overlapped. */
void me_forward_backward_interleaved(me_trainer *t);
/** Any order: the config's. */
void me_forward_backward_order(me_trainer *t);
/** @} */

/** Gradients that each tensor rank has only a part of the sum of. */
bool me_gradient_is_partial(const me_trainer *t, const me_parameter *p);
/** finalize_model_grads() (finalize.c). */
void me_finalize_model_grads(me_trainer *t);

/** @name optimizer (optimizer.c)
 *  @{ */
/** List what this rank steps. */
void me_optimizer_collect(me_trainer *t);
/** Loss scale and float32 main parameters; no state yet. */
void me_optimizer_create(me_trainer *t);
/** Let go of everything it holds. */
void me_optimizer_destroy(me_trainer *t);
/** @return false if the step was skipped (fp16 overflow) */
bool me_optimizer_step(me_trainer *t);
/** Type of the gradients that are clipped and stepped. */
me_dtype me_step_grad_dtype(const me_trainer *t);
/** Float32 copies of gradients, if there are any, go. */
void me_optimizer_zero_grad(me_trainer *t);
/** @} */

/** @name gradient norm and clipping (clip_grads.c)
 *  @{ */
/** get_grad_norm() of the first @p count optimizers, and their clipping. A norm
 *  that stays on the device is the trainer's from then on. */
void me_clip_gradients(me_trainer *t, int count);
/** Ranks that hold the other parts of what an optimizer steps. */
me_group_kind me_model_group_of(const me_optimizer *o);
/** @} */

#endif /* MEMEST_TRAIN_MEGATRON_TRAINER_H */
