/**
 * @file
 * The chunks and groups of fine-grained activation offloading (fine_offload.h):
 * which group of which micro-batch is at hand, and which go to the host. Pure
 * bookkeeping, in the order of fine_grained_activation_offload.py's
 * PipelineOffloadManager and ChunkOffloadHandler.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_FINE_OFFLOAD_CHUNKS_H
#define MEMEST_NN_MEGATRON_FINE_OFFLOAD_CHUNKS_H

#include "nn/megatron/fine_offload.h"
#include "nn/megatron/pinned_pool.h"
#include "tensor/saved_hooks.h"

/** A tensor that a group's module saved. */
typedef struct me_offloaded {
    me_tensor *x;   /**< on the card; NULL: on the host, or handed out; owned */
    me_tensor like; /**< what it was like */
    bool is_on_host;
} me_offloaded;

/** OffloadTensorGroup: one pass of a module. */
typedef struct me_offload_tensors {
    me_offload_module module;
    bool is_kept; /**< after the warm-up it stays on the card */
    me_offloaded *tensors;
    uint32_t count;
    uint32_t capacity;
    uint64_t offloaded_bytes; /**< by the warm-up */
} me_offload_tensors;

/** Numbers of groups, in a row. */
typedef struct me_group_list {
    uint32_t *items;
    uint32_t count;
    uint32_t capacity;
} me_group_list;

/** ChunkOffloadHandler: a micro-batch's pass through a chunk of layers. */
typedef struct me_offload_chunk {
    struct me_fine_offload *manager;
    uint32_t number; /**< among its `forward` */
    me_offload_tensors *groups;
    uint32_t count;
    uint32_t capacity;
    uint32_t index; /**< groups begun in this iteration */
    me_group_list to_offload;
    me_group_list to_reload;
} me_offload_chunk;

/** Chunks in a row; borrowed. */
typedef struct me_chunk_list {
    me_offload_chunk **items;
    uint32_t count;
    uint32_t capacity;
} me_chunk_list;

struct me_fine_offload {
    const me_config *config;
    int32_t stage;
    int32_t n_stages;       /**< virtual ones of the rank */
    bool is_warm;           /**< the warm-up is over */
    me_chunk_list forward;  /**< in the order of forwards; owned */
    me_chunk_list backward; /**< in that of backwards */
    me_chunk_list *stages;  /**< of each virtual one, not in `backward` yet */
    uint32_t next_forward;
    uint32_t next_backward;
    me_offload_chunk *current_forward;
    me_offload_chunk *current_backward;
    me_saved_hooks hooks;
    const me_saved_hooks *before; /**< that were on */
    me_pinned_pool pool;
};

/** An item of a list; false, and the engine has failed, without memory. */
bool me_group_list_add(me_engine *e, me_group_list *list, uint32_t item);

/** Remove the first @p item. */
void me_group_list_remove(me_group_list *list, uint32_t item);

/** Let go of what a group holds. */
void me_group_forget(me_engine *e, me_offload_tensors *group);

/** The first group of @p module from group @p first on; the chunk's count: none. */
uint32_t me_chunk_find(const me_offload_chunk *chunk, me_offload_module module,
                       uint32_t first);

/** init_model_chunk_offload_handler(): a chunk of virtual stage @p stage, in the
 *  warm-up. */
void me_chunk_begin(me_engine *e, me_fine_offload *offload, int32_t stage);

/** pop_forward_chunk(): sets and @return the one that a group of @p module
 *  belongs to; NULL: none any more. */
me_offload_chunk *me_chunk_of_forward(me_fine_offload *offload,
                                      me_offload_module module);

/** on_group_start_forward(): the next group of @p module. */
void me_chunk_begin_group(me_engine *e, me_offload_chunk *chunk,
                          me_offload_module module);

/** should_bulk_offload(). */
bool me_chunk_offloads(const me_offload_chunk *chunk, uint32_t group);

/** pop_backward_chunk(): sets the next one that has a group of @p module. */
void me_chunk_of_backward(me_engine *e, me_fine_offload *offload,
                          me_offload_module module);

/** front_backward_chunk(): the one that me_chunk_of_backward() would take of
 *  those with
 *  @p module (NULL: any group at all); NULL: none. */
me_offload_chunk *me_chunk_next_backward(const me_fine_offload *offload,
                                         const me_offload_module *module);

/** post_warmup_callback(): which groups are kept from now on. */
void me_chunks_settle(me_fine_offload *offload,
                      me_offload_summary *summary_out);

#endif /* MEMEST_NN_MEGATRON_FINE_OFFLOAD_CHUNKS_H */
