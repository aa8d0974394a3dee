/**
 * @file
 * What the first layers of a block save waits for the backward in the host's
 * memory, by the code path that NVTE_CPU_OFFLOAD_V1=1 takes: Transformer
 * Engine's AsyncDoubleBufferGroupOffloadHandler (pytorch/cpu_offload_v1.py),
 * without double buffers, which no flag of Megatron-LM's asks for.
 *
 * A layer is a group. All that any layer saves is held by the handler; what
 * Transformer Engine's modules and Megatron-LM's swiglu mark of the first N
 * layers goes to the host, whatever its size. Of L layers group i leaves the
 * card at the end of the forward of layer floor(L/N) (i+1) - 1 + min(i+1, L mod
 * N), and comes back before that layer's backward.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_CPU_OFFLOAD_V1_H
#define MEMEST_NN_MEGATRON_CPU_OFFLOAD_V1_H

#include "tensor/tensor.h"

/** Of one block of layers. */
typedef struct me_cpu_offload_v1 me_cpu_offload_v1;

/** For @p num_layers layers, of which the first @p num_offloaded leave the
 *  card; the engine's memory. NULL: without, or after a failure. */
me_cpu_offload_v1 *me_cpu_offload_v1_create(me_engine *e, int32_t num_layers,
                                            int32_t num_offloaded);

/** Let go of what is left; NULL is allowed, here and below. */
void me_cpu_offload_v1_fini(me_engine *e, me_cpu_offload_v1 *offload);

/** The next layer's forward begins: `with offload_context`. */
void me_cpu_offload_v1_enter(me_engine *e, me_cpu_offload_v1 *offload);

/** It has ended and made @p y (group_prefetch_offload_commit_async()).
 *  @return what stands for @p y: a variable of the running frame, or @p y */
me_tensor *me_cpu_offload_v1_exit(me_engine *e, me_cpu_offload_v1 *offload,
                                  me_tensor *y);

#endif /* MEMEST_NN_MEGATRON_CPU_OFFLOAD_V1_H */
