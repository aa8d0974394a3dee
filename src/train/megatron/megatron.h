/**
 * @file
 * Megatron-LM's training of a GPT model on one rank: from the end of its
 * initialisation to the end of the last iteration (training/training.py,
 * core/pipeline_parallel, core/distributed, core/optimizer at core_v0.19.0).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_MEGATRON_H
#define MEMEST_TRAIN_MEGATRON_MEGATRON_H

#include "model/shard_kin.h"
#include "nn/megatron/gpt.h"
#include "parallel/pipeline_order.h"

/** Told where ranks of a tensor group may differ (run/twin.h): between `begins`
 * and its end each rank allocates scalars that live side by side and are then
 * freed, some ranks more of them than others. */
typedef struct me_twin_listener {
    void (*tell)(void *self, bool begins); /**< NULL: nobody */
    void *self;
} me_twin_listener;

/** What a rank's program is made from; read-only while it runs. */
typedef struct me_megatron_spec {
    const me_config *config;   /**< the job; borrowed */
    const me_gpt_spec *chunks; /**< n_chunks of them, borrowed */
    int32_t n_chunks;
    me_pipeline pipeline;           /**< ranks, micro-batches, chunks */
    const me_pipeline_order *order; /**< with sends and receives; borrowed;
                                         NULL: Megatron's own schedule */
    bool exchanges_shapes;     /**< before whatever stages send: multi-token
                                         prediction is in a stage of its own */
    const bool *is_moe_layer;  /**< of each of the model's; borrowed */
    const me_routing *routing; /**< who gets how many tokens; borrowed */
    int32_t iterations; /**< to run, without what me_config_iterations() adds */
    bool runs_all_rounds; /**< micro-batches that repeat are run as well */
    bool
        times_kernels; /**< compiled ones, whatever the job says of the cache */
    bool *must_run_all; /**< set where they turn out not to repeat; borrowed */
    me_twin_listener twin_listener;
    /** Of each rank that is run as a strand (strands.h), from the program's own
     *  on; borrowed. */
    const me_communicators *strands;
    int32_t n_strands;    /**< of them; 0: the program's own alone */
    bool *must_run_apart; /**< set where ranks cannot be strands after all;
                               borrowed */
} me_megatron_spec;

/**
 * Run the program on @p e, which tells its observers. Set-up is iteration -1.
 *
 * @return the engine's status; a failure's reason is the engine's
 */
me_status me_megatron_run(me_engine *e, const me_megatron_spec *spec,
                          const me_communicators *comm);

/**
 * Number the data-parallel ranks (context included) of the rank's stage by
 * what they own under the distributed optimizer: ranks with the same number
 * step the same parts of the same parameters, so that their programs are
 * equal. Builds the model on @p e, which must be new.
 *
 * @param expert_index  of each member of the group, its place in its expert
 *                      data-parallel group
 * @param class_out     a number for each member of the group, from 0 on
 * @param kin           all zero; which of these numbers are of one kin; owned by
 *                      the caller, also after a failure
 * @return the engine's status
 */
me_status me_megatron_shard_classes(me_engine *e, const me_megatron_spec *spec,
                                    const me_communicators *comm,
                                    const int32_t *expert_index,
                                    int32_t *class_out, me_shard_kin *kin);

#endif /* MEMEST_TRAIN_MEGATRON_MEGATRON_H */
