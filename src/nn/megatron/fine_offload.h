/**
 * @file
 * Fine-grained activation offloading (core/pipeline_parallel/
 * fine_grained_activation_offload.py): what some modules of a layer save waits
 * for the backward in the host's memory.
 *
 * What a module saves within one pass is a group, the groups of a micro-batch
 * through a chunk of layers are a chunk of the manager's. The first iteration
 * (warm-up) offloads all of them and learns their order; from then on the last
 * group of each name is kept in the first backward, and what the user wants
 * kept besides. A group goes to the host at the end of its module's pass and
 * comes back, on a stream of its own, when the backward of the group behind it
 * has ended.
 *
 * CUDA graphs, which delay copies, are not here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_FINE_OFFLOAD_H
#define MEMEST_NN_MEGATRON_FINE_OFFLOAD_H

#include "nn/nn.h"

/** Modules whose groups there are (--offload-modules). */
typedef enum me_offload_module {
    ME_OFFLOAD_ATTN_NORM,
    ME_OFFLOAD_QKV_LINEAR,
    ME_OFFLOAD_CORE_ATTN,
    ME_OFFLOAD_ATTN_PROJ,
    ME_OFFLOAD_MLP_NORM,
    ME_OFFLOAD_EXPERT_FC1,
    ME_OFFLOAD_MOE_ACT,
    ME_OFFLOAD_MODULES
} me_offload_module;

/** PipelineOffloadManager, one a process. */
typedef struct me_fine_offload me_fine_offload;

/** For a rank of pipeline stage @p stage with @p chunks virtual stages; the
 *  engine's memory. NULL where the job offloads nothing so, or after a failure. */
me_fine_offload *me_fine_offload_create(me_engine *e, const me_config *config,
                                        int32_t stage, int32_t chunks);

/** Let go of what is left; NULL is allowed, here and below. */
void me_fine_offload_fini(me_engine *e, me_fine_offload *offload);

/** A chunk's forward of one micro-batch begins (init_chunk_handler()). */
void me_fine_offload_begin_chunk(me_engine *e, me_fine_offload *offload,
                                 int32_t chunk);

/** What the warm-up found that each module's groups offload from then on
 *  (print_offload_summary_table()). */
typedef struct me_offload_summary {
    uint32_t groups[ME_OFFLOAD_MODULES];
    uint64_t bytes[ME_OFFLOAD_MODULES];
} me_offload_summary;

/**
 * All micro-batches of an iteration have run (reset()).
 *
 * @param summary_out  set where true comes back
 * @return whether this was the warm-up
 */
bool me_fine_offload_reset(me_engine *e, me_fine_offload *offload,
                           me_offload_summary *summary_out);

/** Megatron-LM's name of a module, static. */
const char *me_offload_module_name(me_offload_module module);

/** One use of a module (FineGrainedActivationOffloadingInterface). */
typedef struct me_offload_group {
    me_offload_module module;
    bool is_on; /**< the job offloads it */
} me_offload_group;

/** The module's pass begins on @p x. @return what it is given in its place: a
 *  variable of the running frame, or @p x */
me_tensor *me_offload_enter(me_nn *nn, me_offload_group *group,
                            me_offload_module module, me_tensor *x);

/** What the module saves goes to its group no longer. */
void me_offload_exit(me_nn *nn, const me_offload_group *group);

/**
 * The group goes to the host (group_offload()).
 *
 * @param y         what the module made
 * @param n         of @p released
 * @param released  whose memory goes as well, if they are large enough
 * @return what stands for @p y: a variable of the running frame, or @p y
 */
me_tensor *me_offload_commit(me_nn *nn, const me_offload_group *group,
                             me_tensor *y, uint32_t n,
                             me_tensor *const *released);

#endif /* MEMEST_NN_MEGATRON_FINE_OFFLOAD_H */
