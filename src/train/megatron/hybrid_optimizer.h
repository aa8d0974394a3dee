/**
 * @file
 * An optimizer of which the host steps a part
 * (core/optimizer/cpu_offloading/hybrid_optimizer.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_HYBRID_OPTIMIZER_H
#define MEMEST_TRAIN_MEGATRON_HYBRID_OPTIMIZER_H

#include "train/megatron/optimizer.h"

struct me_trainer;

/** HybridDeviceOptimizer of whole parameters, which DistributedOptimizer puts
 *  that of its shards in the place of. */
void me_hybrid_build_whole(struct me_trainer *t, me_optimizer *o);
/** The same of the rank's shards; that of whole parameters is garbage, until a
 *  first function is compiled or the optimizer steps (me_collect()). */
void me_hybrid_build(struct me_trainer *t, me_optimizer *o);
/** Let go of the optimizer of whole parameters, if it is there. */
void me_hybrid_forget_whole(struct me_trainer *t, me_optimizer *o);
/** Its step. */
void me_hybrid_step(struct me_trainer *t, me_optimizer *o);

#endif /* MEMEST_TRAIN_MEGATRON_HYBRID_OPTIMIZER_H */
