/**
 * @file
 * DistributedDataParallel's Reducer (torch/csrc/distributed/c10d/reducer.cpp,
 * PyTorch 2.11): gradients in flat buckets, each reduced once all of its
 * gradients are there.
 *
 * Buckets of the first iteration follow the order of parameters; at the forward
 * after the first reduction they are made anew in the order in which gradients
 * came, unless unused parameters are looked for. The buckets that go then are
 * held by NCCL's work until the process group's next all-reduce of gradients.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_REDUCER_H
#define MEMEST_TRAIN_TORCH_REDUCER_H

#include "train/torch/loop.h"

typedef struct me_ddp_bucket {
    me_tensor *gradients; /**< flat; owned */
    uint32_t begin;       /**< of the reducer's `order` */
    uint32_t end;
    uint32_t pending; /**< gradients that are still to come */
} me_ddp_bucket;

/** The reducer of one model; arrays are the engine's memory, and parameters in
 *  them are numbered from 0. */
typedef struct me_reducer {
    me_loop *loop;
    me_group_kind group;
    const me_torch_options *options; /**< borrowed */
    uint32_t first;                  /**< of the loop's parameters */
    uint32_t n;                      /**< parameters */
    me_tensor **variables;           /**< their leaves; borrowed */
    me_ddp_bucket *buckets;
    uint32_t n_buckets;
    uint32_t *order;     /**< parameters, bucket by bucket */
    uint32_t *bucket_of; /**< of each parameter */
    uint32_t *ready;     /**< in the order of their gradients, until rebuilt */
    uint32_t n_ready;
    uint32_t *hooks;      /**< how often each hook runs in a backward of a
                               static graph, as the first one says */
    uint32_t *hooks_left; /**< in this backward */
    bool *is_unused;     /**< as the last search, or the first backward, says */
    bool *is_marked;     /**< ready, in this backward */
    me_tensor *used_map; /**< local_used_map_dev_; owned; NULL: none */
    me_tensor *shelf;    /**< the first bucket, after its time; owned */
    uint32_t next_bucket; /**< to be reduced */
    uint32_t n_backwards; /**< of those that ended in a reduction, and this */
    bool has_begun;       /**< n_backwards counts this backward */
    bool expects_hooks;   /**< prepare_for_backward() came */
    bool has_marked_unused;
    bool must_finalize; /**< a gradient came, and the reduction's end did not */
    bool is_rebuilt;
    struct me_reducer *next; /**< of the loop's */
} me_reducer;

/**
 * Make a reducer, with its first buckets and hooks, of the @p n parameters of
 * the loop from @p first on, which are of one dtype and no DTensors any more.
 *
 * @return the engine's memory; NULL after a failure of the engine
 */
me_reducer *me_reducer_create(me_loop *l, me_group_kind group, uint32_t first,
                              uint32_t n);

/** rebuild_buckets(), before each forward. Fails the engine where a gradient of
 *  the last backward never came, as PyTorch raises. */
void me_reducer_rebuild(me_reducer *r);

/** prepare_for_backward(): the next backward reduces. */
void me_reducer_prepare(me_reducer *r);

/** What autograd calls back at the end of a backward. */
void me_reducer_end_backward(me_reducer *r);

/** Give back what it holds; NULL is allowed. */
void me_reducer_fini(me_reducer *r);

#endif /* MEMEST_TRAIN_TORCH_REDUCER_H */
