/**
 * @file
 * What the first layers of a block save waits for the backward in the host's
 * memory: Transformer Engine's DefaultOffloadSynchronizer
 * (pytorch/cpu_offload.py), which Megatron-LM's cpu_offloading_num_layers asks
 * for. The code path of NVTE_CPU_OFFLOAD_V1 is not here.
 *
 * Of L layers the first N are offloaded: what layer i saved leaves the card as
 * layer L - N + i begins, and comes back as the backward of layer L - N + i - 1
 * begins. Saved tensors of less than 256 Ki elements stay, and so do parameters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_CPU_OFFLOAD_H
#define MEMEST_NN_MEGATRON_CPU_OFFLOAD_H

#include "tensor/tensor.h"

/** Of one block of layers. */
typedef struct me_cpu_offload me_cpu_offload;

/** For @p num_layers layers, of which the first @p num_offloaded leave the
 *  card; the engine's memory. NULL: without, or after a failure. */
me_cpu_offload *me_cpu_offload_create(me_engine *e, int32_t num_layers,
                                      int32_t num_offloaded);

/** Let go of what is left; NULL is allowed. */
void me_cpu_offload_fini(me_engine *e, me_cpu_offload *offload);

/** The next layer's forward begins: `with offload_context`. NULL is allowed,
 *  here and below. */
void me_cpu_offload_enter(me_engine *e, me_cpu_offload *offload);

/** It has ended and made @p y (synchronization_function()). */
void me_cpu_offload_exit(me_engine *e, me_cpu_offload *offload,
                         const me_tensor *y);

#endif /* MEMEST_NN_MEGATRON_CPU_OFFLOAD_H */
