/**
 * @file
 * State of one rank's training, for the files of this folder. Each part of it
 * belongs to the header of its name, which has the functions that change it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_TRAINER_H
#define MEMEST_TRAIN_MEGATRON_TRAINER_H

#include "nn/megatron/cuda_graph.h"
#include "nn/megatron/te_state.h"
#include "nn/megatron/weight_gradients.h"
#include "train/fsdp/fsdp.h"
#include "train/megatron/ddp.h"
#include "train/megatron/megatron.h"
#include "train/megatron/megatron_fsdp.h"
#include "train/megatron/model_wrapper.h"
#include "train/megatron/mtp.h"
#include "train/megatron/optimizer.h"

struct me_repeats;

typedef struct me_trainer {
    me_engine *e;
    const me_config *config; /**< the job; borrowed */
    const me_megatron_spec *spec;
    const me_communicators *comm;
    me_nn nn;
    me_parameter_list parameters;
    me_weight_gradients weights; /**< of the backward that runs, if split */
    me_rope_cache rope_cache;
    me_te_state te;
    me_cuda_graphs graphs;
    me_gpt *chunks;
    const me_model_wrapper *wrapper;        /**< around the chunks */
    me_ddp *ddp;                            /**< DDP's, one a chunk */
    me_fsdp *fsdp;                          /**< FSDP2's; NULL: none */
    struct me_megatron_fsdp *megatron_fsdp; /**< NULL: none */
    me_main_grads main_grads; /**< what makes room for a main gradient */
    me_fully_shard_config fully_shard;          /**< its arguments */
    me_optimizer optimizers[ME_OPTIMIZERS_MAX]; /**< chained, the experts' last;
                                      one without parameters does nothing */
    int n_optimizers;
    int32_t *layer_owner; /**< of each parameter the data-parallel rank that
                               steps it; NULL: not dealt out so */
    int32_t iteration;
    int32_t forwards;        /**< of the iteration so far */
    bool is_last_microbatch; /**< gradients are synchronised */
    me_tensor *grad_norm;    /**< until logged; NULL: a number on the host */
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
    me_tensor *total_router_losses[ME_ROUTER_LOSSES]; /**< running; NULL: none
                                                           yet */
    struct me_repeats *repeats; /**< owned; the engine's memory */
} me_trainer;

/** All zero but for what it borrows; a failure is the engine's. */
void me_trainer_init(me_trainer *t, me_engine *e, const me_megatron_spec *spec,
                     const me_communicators *comm);
/** get_model(). */
void me_build_model(me_trainer *t);
void me_trainer_fini(me_trainer *t);

#endif /* MEMEST_TRAIN_MEGATRON_TRAINER_H */
