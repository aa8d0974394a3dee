/**
 * @file
 * What PyTorch's optimizers allocate in a step: state on the first one, and
 * the temporaries of their kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_OPTIM_OPTIM_H
#define MEMEST_TRAIN_OPTIM_OPTIM_H

#include "model/impl_choices.h"
#include "nn/nn.h"

/** A shard's states as FusedAdam names and orders them. */
typedef enum me_adam_state {
    ME_ADAM_EXP_AVG,
    ME_ADAM_EXP_AVG_SQ,
    ME_ADAM_MASTER, /**< the main parameter */
    ME_ADAM_STATES
} me_adam_state;

enum {
    /** Of FP8 the transpose, scale, largest value and inverse scale; of any but
     *  float32 a scale. */
    ME_STATE_EXTRAS = 2 * 5 + 1
};

/** What the optimizer steps: a parameter or this rank's shard of one. */
typedef struct me_shard_state {
    me_parameter *parameter;
    uint64_t numel;
    me_dtype dtype;        /**< of its state */
    me_tensor *main;       /**< float32 copy, or NULL; of a precision-aware
                                optimizer what it is kept as */
    me_tensor *gradient;   /**< float32 copy of the gradient, or NULL */
    me_tensor *moments[2]; /**< exp_avg, exp_avg_sq; or momentum */
    me_tensor *step;       /**< on the device with fused kernels, or NULL */
    me_tensor *extras[ME_STATE_EXTRAS]; /**< of states that are not float32 */
    int n_extras;
} me_shard_state;

/** A FusedAdam that holds states in types of their own, and main parameters
 *  unless its caller does: Megatron-LM's precision-aware optimizer. */
typedef struct me_precision_aware {
    bool has_masters;
    me_dtype params_dtype;            /**< of what it steps: with main
                                           parameters 16 bits */
    me_dtype grad_dtype;              /**< of the gradients */
    me_dtype dtypes[ME_ADAM_STATES];  /**< uint8: FP8 */
    me_tensor *ranges[2];             /**< largest float16 and FP8 number */
    me_tensor **wide[ME_ADAM_STATES]; /**< float32 copies of the states of the
                                           group before, owned as each is */
    uint32_t n_wide[ME_ADAM_STATES];
} me_precision_aware;

/** An emerging optimizer's settings, and the names of its step() that outlive a
 *  parameter. */
typedef struct me_emerging {
    const me_optimizer_config *config;
    const me_communicators *comm;
    bool is_adaptive;
    uint64_t qkv_rows[3]; /**< of a query group: its queries, a key, a value */
    me_tensor *gradient;  /**< between gradient and momentum */
    me_tensor *orthogonal;
    me_tensor *update;
    me_tensor
        *bases[2];  /**< of SOAP: those that a parameter's step began with */
    uint64_t steps; /**< that it has taken */
} me_emerging;

/** A parameter group in one step. */
typedef struct me_step_group {
    me_shard_state *shards; /**< borrowed; their moments are made here */
    uint32_t count;
    const me_nn *nn; /**< redistributes gradients of DTensors; NULL: none are */
    me_optimizer_impl impl;
    bool has_plain_tensors; /**< parameters and states are neither DTensors nor
                                 parts of a buffer */
    bool is_first_step;
    bool is_scaled;    /**< of fused Adam: a GradScaler's found_inf
                            goes in */
    bool is_decayed;   /**< weight decay is not 0 */
    bool adds_decay;   /**< of Adam: to gradients; AdamW scales parameters */
    bool has_momentum; /**< of SGD */
    me_precision_aware *aware; /**< of FusedAdam; borrowed; NULL: all float32 */
    me_emerging *emerging;     /**< of one of that package; borrowed */
} me_step_group;

/** Let go of what a shard has: states, gradient, main parameter. */
void me_shard_state_fini(me_engine *e, me_shard_state *shard);

/** The end of a step: float32 copies of the last group's states go. */
void me_precision_aware_end(me_engine *e, me_precision_aware *aware);

/** Let go of what outlives a step. */
void me_precision_aware_fini(me_engine *e, me_precision_aware *aware);

/** One step of a group. */
void me_optim_step(me_engine *e, me_optimizer_kind kind,
                   const me_step_group *group);

#endif /* MEMEST_TRAIN_OPTIM_OPTIM_H */
