/**
 * @file
 * State of one rank's training loop, for the files of this folder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_LOOP_H
#define MEMEST_TRAIN_TORCH_LOOP_H

#include "model/layer.h"
#include "nn/torch/layers.h"
#include "train/optim/optim.h"
#include "train/torch/torch.h"

struct me_loop;

/** What stands around a model: one row a kind. Every member is there unless it
 *  says otherwise. */
typedef struct me_wrapper {
    /** Wrap the loop's model. @return its state, the engine's memory */
    void *(*wrap)(struct me_loop *l);
    /** Before the model's forward; NULL: nothing. */
    void (*pre_forward)(void *self);
    /** After it. @param y  what the model made, a variable of the running frame
     *  @return what the wrapper returns; NULL: nothing is done */
    me_tensor *(*post_forward)(void *self, me_tensor *y);
    /** At the end of each backward; NULL: nothing. */
    void (*end_backward)(void *self);
    /** Give back what the state holds; NULL is allowed. */
    void (*unwrap)(void *self);
} me_wrapper;

/** State of a GradScaler (grad_scaler.h); each owned, or NULL. */
typedef struct me_grad_scaler {
    me_tensor *scale; /**< made when a loss is first scaled */
    me_tensor *growth_tracker;
    me_tensor *found_inf; /**< of the gradients, until the update */
    bool is_unscaled;     /**< the gradients are, since the last update */
} me_grad_scaler;

typedef struct me_loop {
    me_engine *e;
    const me_config *config; /**< the job; borrowed */
    const me_torch_spec *spec;
    const me_communicators *comm;
    me_shape input_shape;       /**< of one micro-batch */
    me_autocast_state autocast; /**< of the forward and the loss */
    me_fully_shard_config fully_shard;
    me_nn nn;
    me_parameter_list parameters;
    me_layer *model;           /**< without a pipeline */
    me_layer *called;          /**< it, or a module of it */
    const me_wrapper *wrapper; /**< NULL: none */
    void *wrapper_state;
    struct me_reducer *reducers; /**< DistributedDataParallel's, the newest
                                      first; their own memory */
    me_shard_state *states; /**< of the optimizer, one a parameter; owned */
    uint32_t n_states;
    bool has_stepped; /**< states exist */
    me_grad_scaler scaler;
    me_tensor *barrier_byte;
    me_tensor *input;  /**< owned; NULL on ranks that are given none */
    me_tensor *target; /**< as the input */
    me_tensor *output; /**< the last one, where the loop keeps it; owned */
    int32_t iteration;
    bool is_last_pass; /**< of those before the optimizer's step */
} me_loop;

/** `model.to_empty(device=…)` of a model that was built on the meta device;
 *  what a wrapper has sharded has its memory. */
void me_loop_to_empty(me_loop *l);

/** What the loop calls: its model or a module of that (called.c). @return NULL,
 *  and the engine has failed, where there is none that can be called */
me_layer *me_loop_find_called(me_loop *l);

/** A loss that backward() cannot begin at is a failure of the engine: more than
 *  one number, or what needs no gradient. */
void me_loop_check_loss(me_loop *l, const me_tensor *loss);

/** @name A forward or backward of a micro-batch: a part of a course, and of
 *  what is predicted of time
 *  @{ */
void me_loop_begin_action(me_loop *l, me_action_kind kind, int32_t chunk,
                          int32_t microbatch);
void me_loop_end_action(me_loop *l);
/** @} */

/** How the gradient of @p p lies on the tensor-parallel ranks: as its backward
 *  makes it, or under fully_shard() as the parameter does (torch_optimizer.c). */
me_dlayout me_loop_gradient_layout(const me_loop *l, const me_parameter *p);

/** Operations over lists that have DTensors and other tensors fail the engine,
 *  as they do in PyTorch. @param what  asks for one (torch_optimizer.c) */
void me_loop_refuse_mixed(me_loop *l, const char *what);

/** Bytes of all gradients that there are. */
uint64_t me_loop_gradient_bytes(const me_loop *l);

/** `clip_grad_norm_(model.parameters(), …)` (clip.c). */
void me_loop_clip_gradients(me_loop *l);
/** `optimizer.step()` (torch_optimizer.c). */
void me_loop_step(me_loop *l);
/** `optimizer.zero_grad()`: None, in the order of parameters; nothing goes where
 *  gradients are kept as zeros. */
void me_loop_zero_grad(me_loop *l);

#endif /* MEMEST_TRAIN_TORCH_LOOP_H */
