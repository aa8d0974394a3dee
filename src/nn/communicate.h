/**
 * @file
 * What a rank's program says to other ranks: torch.distributed's collectives,
 * each an event for observers and a call of an NCCL-named stub that carries
 * the shape. None allocates device memory beyond the tensors named here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_COMMUNICATE_H
#define MEMEST_NN_COMMUNICATE_H

#include "collectives/c10d.h"
#include "tensor/tensor.h"

/** Where a rank stands in the groups it belongs to. */
typedef struct me_communicators {
    int32_t size[ME_GROUP_COUNT];  /**< members of its group of each kind */
    int32_t index[ME_GROUP_COUNT]; /**< its place among them */
    int32_t stage_stride;          /**< ranks of the world from a pipeline
                                        stage to the next */
    int32_t expert_stride;         /**< and from an expert rank to the next */
    int32_t context_stride; /**< and from one of a sequence to the next */
    /** Told of each call; `peer` is an index in the group, or -1. */
    me_status (*call)(void *self, me_group_kind group, me_collective kind,
                      me_dtype dtype, uint64_t count, int32_t peer,
                      me_diag *diag);
    /** Begin (true) or end a group of calls that complete together. */
    me_status (*group_call)(void *self, bool begin, me_diag *diag);
    /** The calls of an exchange, as me_communicate_exchange() has them; NULL: each
     *  is told by `call`. `sent` and `received` are rows, by member. */
    me_status (*exchange)(void *self, me_group_kind group, me_dtype dtype,
                          uint64_t width, const uint64_t *sent,
                          const uint64_t *received, me_diag *diag);
    /** How many calls were made so far. NULL: calls cannot be repeated. */
    uint64_t (*position)(void *self);
    /** Make the calls from @p begin to before @p end once more. */
    me_status (*repeat)(void *self, uint64_t begin, uint64_t end);
    void *self; /**< NULL: nobody is told */
} me_communicators;

/** One call of a collective, or one side of a send and receive. */
typedef struct me_call {
    me_group_kind group;
    me_collective kind;
    me_dtype dtype;
    uint64_t count; /**< elements, as NCCL counts them for this kind */
    int32_t peer;   /**< index in the group: the other side, the root; or -1 */
    bool is_async;  /**< kernels run on until me_launch_stream_waits() */
} me_call;

/** Rows that each member of a group has for each: an all-to-all of unequal parts,
 *  which is a send and a receive for every other member, all at once. */
typedef struct me_uneven_exchange {
    me_group_kind group;
    me_dtype dtype;
    uint64_t width;       /**< elements of a row */
    const uint64_t *sent; /**< rows to each member; nobody looks at the own */
    const uint64_t *received; /**< rows from each member, as above */
} me_uneven_exchange;

/** What PyTorch's dispatcher sees of a collective. */
typedef struct me_c10d_call {
    me_c10d_op op;
    me_group_kind group;
    int32_t peer;          /**< as me_call's */
    uint64_t input_bytes;  /**< of the storages of what is sent, one for each
                                tensor; of those in place here alone */
    uint64_t output_bytes; /**< of those of what is received */
} me_c10d_call;

/** Whose communicator a dimension of a device mesh has: the default process
 *  group's where it spans all ranks (init_device_mesh()). */
me_group_kind me_mesh_group(const me_communicators *comm, me_group_kind kind);

/** Bytes of the storage that @p x is a view of; 0 where it has none. */
uint64_t me_storage_bytes(const me_tensor *x);

/** Tell those who watch as PyTorch's tools do; the calls that it makes of NCCL
 *  are told by me_communicate(). */
void me_communicate_c10d(me_engine *e, const me_communicators *comm,
                         me_c10d_call call);

/** Make a call: an event, and a call of the stub. */
void me_communicate(me_engine *e, const me_communicators *comm, me_call call);

/** As me_communicate() for an isend or irecv outside of batch_isend_irecv,
 *  which PyTorch does on a communicator of the pair's own. */
void me_communicate_lone(me_engine *e, const me_communicators *comm,
                         me_call call);

/** Make the calls of an exchange, which complete together: to the next member
 *  first, none of no rows. */
void me_communicate_exchange(me_engine *e, const me_communicators *comm,
                             const me_uneven_exchange *exchange);

/** `batch_isend_irecv`: what lies between begin and end completes together. */
void me_communicate_group(me_engine *e, const me_communicators *comm,
                          bool begin);

/** Can calls be made again without being told one by one? Local. */
bool me_communicate_can_repeat(const me_communicators *comm);

/** Calls so far, and some of them made again, without events: those of an
 *  action that is not run (see tensor/script.h). */
uint64_t me_communicate_position(const me_communicators *comm);
void me_communicate_repeat(me_engine *e, const me_communicators *comm,
                           uint64_t begin, uint64_t end);

/** All-reduce in place. */
void me_all_reduce(me_engine *e, const me_communicators *comm,
                   me_group_kind group, const me_tensor *x);

/** Gather along the first dimension: (n, …) to (n · size, …), a new tensor. */
me_tensor *me_all_gather_first(me_engine *e, const me_communicators *comm,
                               me_group_kind group, const me_tensor *x);

/** Reduce-scatter along the first dimension: (n, …) to (n / size, …), new. */
me_tensor *me_reduce_scatter_first(me_engine *e, const me_communicators *comm,
                                   me_group_kind group, const me_tensor *x);

/** As me_reduce_scatter_first(), and kernels run on meanwhile. */
me_tensor *me_reduce_scatter_first_async(me_engine *e,
                                         const me_communicators *comm,
                                         me_group_kind group,
                                         const me_tensor *x);

/** @name Megatron's regions: custom autograd functions
 *  @{ */
/** Forward nothing, backward all-reduce over the tensor group. */
me_tensor *me_copy_to_tensor_region(me_engine *e, const me_communicators *comm,
                                    me_tensor *x);
/** Forward all-reduce in place, backward nothing. */
me_tensor *me_reduce_from_tensor_region(me_engine *e,
                                        const me_communicators *comm,
                                        me_tensor *x);
/** Forward reduce-scatter of rows, backward all-gather. */
me_tensor *me_reduce_scatter_to_sequence_region(me_engine *e,
                                                const me_communicators *comm,
                                                me_tensor *x);
/** Forward gather along the last dimension, backward this rank's part of it,
 *  a copy. */
me_tensor *me_gather_from_tensor_region(me_engine *e,
                                        const me_communicators *comm,
                                        me_tensor *x);
/** Forward gather along the last dimension, backward reduce-scatter. */
me_tensor *me_gather_last_from_tensor_region(me_engine *e,
                                             const me_communicators *comm,
                                             me_tensor *x);
/** Forward gather of rows, backward reduce-scatter. */
me_tensor *me_gather_from_sequence_region(me_engine *e,
                                          const me_communicators *comm,
                                          me_tensor *x);
/** Forward this rank's rows (a view, or a copy if they have holes), backward
 *  all-gather. */
me_tensor *me_scatter_to_sequence_region(me_engine *e,
                                         const me_communicators *comm,
                                         me_tensor *x);
/** @} */

#endif /* MEMEST_NN_COMMUNICATE_H */
