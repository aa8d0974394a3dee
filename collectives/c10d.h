/**
 * @file
 * torch.distributed's collectives as PyTorch's dispatcher names them, and what
 * PyTorch's tools count of each: the table of torch/distributed/_tools/
 * fake_collectives.py, PyTorch 2.11. A collective is added by adding a row.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_C10D_H
#define MEMEST_COLLECTIVES_C10D_H

#include <stdbool.h>
#include <stdint.h>

/** Whose storages are the size of a communication. */
typedef enum me_c10d_size {
    ME_C10D_EXCLUDED,  /**< nobody's: it only waits */
    ME_C10D_UNCOUNTED, /**< PyTorch's tools know the collective and raise a
                            TypeError about its size */
    ME_C10D_INPUT,
    ME_C10D_OUTPUT,
    ME_C10D_LARGER, /**< of inputs and outputs */
    ME_C10D_BOTH
} me_c10d_size;

/** How the first dimension of a result follows from that of an input. */
typedef enum me_c10d_rows {
    ME_C10D_ROWS_SAME,
    ME_C10D_ROWS_GATHERED, /**< times the group's size */
    ME_C10D_ROWS_SCATTERED /**< divided by it */
} me_c10d_rows;

/** X(constant, the dispatcher's name, me_c10d_size, place of the process group
 *  among the arguments from 0 or -1 for none, me_c10d_rows). Collectives in
 *  place, of which one argument is input and output, count it as the input;
 *  receives as the output. */
#define ME_C10D_LIST(X)                                                        \
    X(ME_C10D_BROADCAST_, "c10d.broadcast_.default", INPUT, 1, SAME)           \
    X(ME_C10D_ALLREDUCE_, "c10d.allreduce_.default", INPUT, 1, SAME)           \
    X(ME_C10D_REDUCE_, "c10d.reduce_.default", INPUT, 1, SAME)                 \
    X(ME_C10D_SEND, "c10d.send.default", INPUT, 1, SAME)                       \
    X(ME_C10D_RECV_, "c10d.recv_.default", OUTPUT, 1, SAME)                    \
    X(ME_C10D_RECV_ANY_SOURCE_, "c10d.recv_any_source_.default", OUTPUT, 1,    \
      SAME)                                                                    \
    X(ME_C10D_ALLGATHER_, "c10d.allgather_.default", OUTPUT, 2, SAME)          \
    X(ME_C10D_REDUCE_SCATTER_, "c10d.reduce_scatter_.default", INPUT, 2, SAME) \
    X(ME_C10D_REDUCE_SCATTER_BASE_, "c10d._reduce_scatter_base_.default",      \
      INPUT, 2, SCATTERED)                                                     \
    X(ME_C10D_ALLGATHER_BASE_, "c10d._allgather_base_.default", OUTPUT, 2,     \
      GATHERED)                                                                \
    X(ME_C10D_GATHER_, "c10d.gather_.default", OUTPUT, 2, SAME)                \
    X(ME_C10D_SCATTER_, "c10d.scatter_.default", INPUT, 2, SAME)               \
    X(ME_C10D_ALLTOALL_, "c10d.alltoall_.default", LARGER, 2, SAME)            \
    X(ME_C10D_ALLTOALL_BASE_, "c10d.alltoall_base_.default", LARGER, 2, SAME)  \
    X(ME_C10D_BARRIER, "c10d.barrier.default", EXCLUDED, 1, SAME)              \
    X(ME_C10D_MONITORED_BARRIER_, "c10d.monitored_barrier_.default", EXCLUDED, \
      -1, SAME)                                                                \
    X(ME_C10D_FUNCTIONAL_BROADCAST, "_c10d_functional.broadcast.default",      \
      INPUT, 2, SAME)                                                          \
    X(ME_C10D_FUNCTIONAL_BROADCAST_, "_c10d_functional.broadcast_.default",    \
      INPUT, 2, SAME)                                                          \
    X(ME_C10D_FUNCTIONAL_ALL_REDUCE, "_c10d_functional.all_reduce.default",    \
      INPUT, 2, SAME)                                                          \
    X(ME_C10D_FUNCTIONAL_ALL_REDUCE_, "_c10d_functional.all_reduce_.default",  \
      INPUT, 2, SAME)                                                          \
    X(ME_C10D_FUNCTIONAL_ALL_REDUCE_COALESCED,                                 \
      "_c10d_functional.all_reduce_coalesced.default", INPUT, 2, SAME)         \
    X(ME_C10D_FUNCTIONAL_ALL_REDUCE_COALESCED_,                                \
      "_c10d_functional.all_reduce_coalesced_.default", INPUT, 2, SAME)        \
    X(ME_C10D_FUNCTIONAL_ALL_GATHER,                                           \
      "_c10d_functional.all_gather_into_tensor.default", OUTPUT, 2, GATHERED)  \
    X(ME_C10D_FUNCTIONAL_ALL_GATHER_OUT,                                       \
      "_c10d_functional.all_gather_into_tensor_out.default", OUTPUT, 2,        \
      GATHERED)                                                                \
    X(ME_C10D_FUNCTIONAL_ALL_GATHER_COALESCED,                                 \
      "_c10d_functional.all_gather_into_tensor_coalesced.default", OUTPUT, 2,  \
      GATHERED)                                                                \
    X(ME_C10D_AUTOGRAD_ALL_GATHER,                                             \
      "_c10d_functional_autograd.all_gather_into_tensor.default", OUTPUT, 2,   \
      GATHERED)                                                                \
    X(ME_C10D_FUNCTIONAL_REDUCE_SCATTER,                                       \
      "_c10d_functional.reduce_scatter_tensor.default", INPUT, 3, SCATTERED)   \
    X(ME_C10D_FUNCTIONAL_REDUCE_SCATTER_OUT,                                   \
      "_c10d_functional.reduce_scatter_tensor_out.default", UNCOUNTED, -1,     \
      SCATTERED)                                                               \
    X(ME_C10D_FUNCTIONAL_REDUCE_SCATTER_COALESCED,                             \
      "_c10d_functional.reduce_scatter_tensor_coalesced.default", OUTPUT, 3,   \
      SCATTERED)                                                               \
    X(ME_C10D_AUTOGRAD_REDUCE_SCATTER,                                         \
      "_c10d_functional_autograd.reduce_scatter_tensor.default", INPUT, 3,     \
      SCATTERED)                                                               \
    X(ME_C10D_FUNCTIONAL_ALL_TO_ALL,                                           \
      "_c10d_functional.all_to_all_single.default", BOTH, 3, SAME)             \
    X(ME_C10D_AUTOGRAD_ALL_TO_ALL,                                             \
      "_c10d_functional_autograd.all_to_all_single.default", BOTH, 3, SAME)    \
    X(ME_C10D_SHARD_DIM_ALLTOALL, "_dtensor.shard_dim_alltoall.default", BOTH, \
      3, SAME)                                                                 \
    X(ME_C10D_FUNCTIONAL_WAIT, "_c10d_functional.wait_tensor.default",         \
      EXCLUDED, -1, SAME)

typedef enum me_c10d_op {
#define ME_C10D_ENUM(constant, name, size, group, rows) constant,
    ME_C10D_LIST(ME_C10D_ENUM)
#undef ME_C10D_ENUM
    ME_C10D_COUNT
} me_c10d_op;

/** The dispatcher's name, such as "c10d.allreduce_.default"; static. Local. */
const char *me_c10d_name(me_c10d_op op);

/** Find a collective by that name. @return false: PyTorch's tools do not know
 *  it. Local. */
bool me_c10d_find(const char *name, me_c10d_op *op_out);

/** Whose storages count. Local. */
me_c10d_size me_c10d_size_of(me_c10d_op op);

/** Place of the process group among the arguments, from 0; -1: it has none.
 *  Local. */
int me_c10d_group_argument(me_c10d_op op);

/**
 * Communication size in bytes: of whole storages, however little of one a
 * tensor shows, and a storage as often as there are tensors of it. Local.
 *
 * @param input_bytes   of the storages of what is sent
 * @param output_bytes  of those of what is received
 * @return 0 for what is excluded; ME_SIZE_INVALID if it exceeds 64 bits or is
 *         not counted by PyTorch's tools
 */
uint64_t me_c10d_bytes(me_c10d_op op, uint64_t input_bytes,
                       uint64_t output_bytes);

/**
 * First dimension of the result for an input of @p rows, in a group of
 * @p group_size. Local.
 *
 * @return ME_SIZE_INVALID if it exceeds 64 bits
 */
uint64_t me_c10d_result_rows(me_c10d_op op, uint64_t rows, uint64_t group_size);

#endif /* MEMEST_COLLECTIVES_C10D_H */
