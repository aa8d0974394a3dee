/**
 * @file
 * Which addresses of the device CUDA, its libraries and NCCL take, and in what
 * order: what device_memory.h counts, piece by piece, for the pool whose
 * segments lie between. Nothing here changes a number of bytes outside of the
 * allocator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_DEVICE_ADDRESSES_H
#define MEMEST_ALLOC_DEVICE_ADDRESSES_H

#include "alloc/device_memory.h"

/** PyTorch's first kernel has run. Local. */
void me_device_take_kernel(me_device_memory *memory);

/** A cuBLAS handle; @p is_first of the process. Local. */
void me_device_take_cublas(const me_device_memory *memory, bool is_first);

/** A communicator, the last of @p memory, has been made. Local. */
void me_device_take_communicator(const me_device_memory *memory,
                                 const me_device_communicator *c);

/** Its ring. Local. */
void me_device_take_ring(const me_device_memory *memory,
                         const me_device_communicator *c);

/** The first kernel of a collective; of a broadcast. Local. */
void me_device_take_collective(me_device_memory *memory);
void me_device_take_broadcast(me_device_memory *memory);

/** Connections with peers of the node that are new. Local. */
void me_device_take_peers(const me_device_memory *memory,
                          const me_device_communicator *c);

/** Connections with every peer of the node. Local. */
void me_device_take_all_peers(const me_device_memory *memory,
                              const me_device_communicator *c);

/** The kernel of sends and receives, behind the first connections. Local. */
void me_device_take_send_recv(me_device_memory *memory);

/** Any other buffers of NCCL, in one piece. Local. */
void me_device_take_buffers(const me_device_memory *memory, uint64_t bytes);

#endif /* MEMEST_ALLOC_DEVICE_ADDRESSES_H */
