/**
 * @file
 * Optimizers of NVIDIA's package emerging_optimizers (v0.2.0, the one that
 * Megatron-LM pins) as Megatron-LM core_v0.19.0 makes them: Muon over tensor
 * ranks, adaptive Muon, Lion. They step parameter by parameter; what a loop's
 * name is bound to lives until it is bound again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_OPTIM_EMERGING_H
#define MEMEST_TRAIN_OPTIM_EMERGING_H

#include "train/optim/optim.h"

/** A step of Muon or adaptive Muon (OrthogonalizedOptimizer.step()). */
void me_muon_step(me_engine *e, const me_step_group *group);

/** A step of Lion (scalar_optimizers/lion.py). */
void me_lion_step(me_engine *e, const me_step_group *group);

/** The end of a step of all groups: its names go. */
void me_emerging_end(me_engine *e, me_emerging *emerging);

#endif /* MEMEST_TRAIN_OPTIM_EMERGING_H */
