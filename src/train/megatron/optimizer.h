/**
 * @file
 * The chained optimizers of a rank (core/optimizer): loss scale, main
 * parameters, the step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_OPTIMIZER_H
#define MEMEST_TRAIN_MEGATRON_OPTIMIZER_H

#include "tensor/strand.h"
#include "train/megatron/ddp.h"
#include "train/optim/optim.h"

struct me_trainer;

/** Parameters that share all settings, in the order that Megatron-LM sorts
 *  them. */
typedef enum me_parameter_group {
    ME_GROUP_DECAYED,
    ME_GROUP_OWN_RATE, /**< with a learning rate of their own */
    ME_GROUP_UNDECAYED,
    ME_OPTIMIZER_GROUPS
} me_parameter_group;

enum {
    ME_OPTIMIZER_CONSTANTS = 6 /**< most scalars of an optimizer */
};

enum {
    ME_OPTIMIZERS_MAX = 4 /**< the first chunk's, the others', the experts'; or
                               of matrices and of all else, and experts' */
};

/** Which parameters an optimizer steps: an emerging one matrices of the layers
 *  alone, and the one chained to it the others. */
typedef enum me_optimizer_part {
    ME_PART_ALL,
    ME_PART_MATRICES,
    ME_PART_REST
} me_optimizer_part;

/** What one rank steps of an optimizer's parameters. */
typedef struct me_shard_list {
    me_shard_state *shards; /**< group by group; owned */
    uint32_t count;
    uint32_t group_end[ME_OPTIMIZER_GROUPS];
} me_shard_list;

/** One optimizer of a rank's ChainedOptimizer. */
typedef struct me_optimizer {
    me_optimizer_kind kind;
    me_optimizer_part part;
    bool has_all_sharings;  /**< a layer-wise one: also experts'; else … */
    me_sharing sharing;     /**< experts' parameters or all others, of … */
    int32_t chunk_begin;    /**< … these chunks */
    int32_t chunk_end;      /**< the first chunk that it does not step */
    me_shard_state *shards; /**< group by group */
    uint32_t count;
    uint32_t group_end[ME_OPTIMIZER_GROUPS];
    /** Of each strand, if there are several (strands.h); of the one that runs the
     *  same as above. */
    me_shard_list strands[ME_STRANDS_MAX];
    uint32_t n_offloaded; /**< how many of `shards`, from the first on, the host
                             steps */
    me_shard_state *whole; /**< of whole parameters, which a distributed
                              optimizer first builds; owned */
    uint32_t n_whole;
    uint32_t n_whole_offloaded; /**< as n_offloaded, of `whole` */
    me_tensor *whole_flag;      /**< its kernels', with it */
    me_tensor *overflow_flag;   /**< of fused kernels; NULL: it has none */
    me_tensor *constants[ME_OPTIMIZER_CONSTANTS]; /**< loss scale and what goes
                                                       with it */
    bool has_stepped;                             /**< moments exist */
    bool has_host_states;     /**< … and gradients of what the host steps */
    int32_t overflows;        /**< of fp16, in a row */
    me_precision_aware aware; /**< if the optimizer is precision-aware */
    me_emerging emerging;     /**< if it is one of those */
} me_optimizer;

/** Is a parameter among those that an optimizer steps? */
bool me_optimizer_takes(const me_optimizer *o, const me_parameter *p);

/** @name parameter groups (parameter_groups.c)
 *  @{ */
/** Which of an optimizer's groups a parameter is in. */
me_parameter_group me_parameter_group_of(const struct me_trainer *t,
                                         const me_parameter *p);
/** All ranks tell each other the keys of the groups of an optimizer's chunks.
 */
void me_gather_parameter_groups(struct me_trainer *t, const me_optimizer *o);
/** Are there experts that are spread over ranks, by the job's options? */
bool me_job_has_expert_groups(const struct me_trainer *t);
/** Does a rank of the job have experts that are spread over ranks? Then all
 * have an optimizer of experts. */
bool me_has_experts_optimizer(const struct me_trainer *t);
/** @} */

/** Does FusedAdam hold the main parameters of a precision-aware optimizer, and
 *  take gradients as they are? Not in FP8, except with delayed scaling, with main
 *  parameters that are not float32 or where the host steps
 *  (OptimizerConfig.use_precision_aware_optimizer_no_fp8_or_ds_fp8). Local. */
bool me_adam_holds_main_parameters(const me_config *config);

/** Fill in which shards each optimizer of this rank steps. */
void me_optimizer_collect(struct me_trainer *t);
/** Loss scale and float32 main parameters; no state yet. */
void me_optimizer_create(struct me_trainer *t);
/** Let go of everything it holds. */
void me_optimizer_destroy(struct me_trainer *t);
/** @return false if the step was skipped (fp16 overflow) */
bool me_optimizer_step(struct me_trainer *t);
/** A clone in the model's dtype, and from it the float32 main parameter of a
 *  shard. @return owned by the caller */
me_tensor *me_make_main_parameter(struct me_trainer *t,
                                  const me_parameter *parameter,
                                  uint64_t numel);
/** Step the shards that are on the device. */
void me_optimizer_step_groups(struct me_trainer *t, me_optimizer *o);
/** Type of the gradients that are clipped and stepped. */
me_dtype me_step_grad_dtype(const struct me_trainer *t);
/** Float32 copies of gradients, if there are any, go. */
void me_optimizer_zero_grad(struct me_trainer *t);

#endif /* MEMEST_TRAIN_MEGATRON_OPTIMIZER_H */
