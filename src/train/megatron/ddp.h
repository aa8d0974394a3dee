/**
 * @file
 * DistributedDataParallel (core/distributed/distributed_data_parallel.py): a
 * chunk's gradients, and with the distributed optimizer its parameters, lie in
 * flat buffers, one for each group that sums them and type of parameters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_DDP_H
#define MEMEST_TRAIN_MEGATRON_DDP_H

#include "nn/nn.h"
#include "parallel/buffer.h"

struct me_trainer;

/** Parameters that share a data-parallel group: experts that are spread over
 *  expert ranks have one of their own. */
typedef enum me_sharing {
    ME_SHARING_DENSE,
    ME_SHARING_EXPERT,
    ME_SHARINGS
} me_sharing;

enum {
    ME_DDP_BUFFERS =
        2 * ME_SHARINGS /**< of each sharing, plain and quantised */
};

/** A buffer of gradients, and of parameters, and who fills it. */
typedef struct me_ddp_buffer {
    me_sharing sharing;
    bool is_quantized;         /**< parameters are kept in FP8, a byte each */
    me_buffer *layout;         /**< owned */
    me_tensor *param_buffer;   /**< distributed optimizer; owned */
    me_tensor *grad_buffer;    /**< owned */
    me_parameter **parameters; /**< of the chunk, registration order */
    uint32_t n_parameters;
    uint32_t *n_in_bucket;    /**< gradients that came in the first iteration's
                                   last backwards, in each bucket: more than one
                                   of a parameter whose uses run apart */
    uint32_t *left_in_bucket; /**< gradients that are awaited */
    me_tensor **exchanged; /**< of each bucket: what an all-to-all has brought
                                   that is not summed yet, or NULL; owned */
    me_group_kind group;   /**< that its gradients are summed over */
} me_ddp_buffer;

/** One chunk's DistributedDataParallel. */
typedef struct me_ddp {
    me_ddp_buffer buffers[ME_DDP_BUFFERS]; /**< in the order in which their
                                                first parameters are registered */
    int n_buffers;
    uint32_t *bucket_of; /**< each parameter's bucket */
    bool is_reduced;     /**< in this iteration, during the backward */
    bool is_gathered;    /**< in this iteration, during the forward */
} me_ddp;

/** A matrix of a layer (_is_nonlinear_or_embedding()): neither a vector nor
 *  of embedding or output layer. */
bool me_is_layer_matrix(const me_parameter *p);
/** The type of what a buffer of parameters holds. */
me_dtype me_ddp_param_dtype(const struct me_trainer *t,
                            const me_ddp_buffer *buffer);
/** Are there several instances of the distributed optimizer? With one, the group
 *  of its ranks is that of all data-parallel ones. */
bool me_ddp_has_instances(const struct me_trainer *t);
/** The chunk's buffers, on the side stream; its parameters move into them. */
void me_ddp_create(struct me_trainer *t, int32_t chunk);
/** Let go of buffers and layout. */
void me_ddp_destroy(struct me_trainer *t, me_ddp *ddp);
/** A new iteration: every bucket awaits all its gradients. */
void me_ddp_zero_grad(struct me_trainer *t);
/** Checks and reduces all buckets of a chunk, once an iteration. */
void me_ddp_reduce(struct me_trainer *t, int32_t chunk);

#endif /* MEMEST_TRAIN_MEGATRON_DDP_H */
