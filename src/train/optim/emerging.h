/**
 * @file
 * Optimizers of NVIDIA's package emerging_optimizers (v0.2.0, the one that
 * Megatron-LM pins) as Megatron-LM core_v0.19.0 makes them: Muon over tensor
 * ranks, adaptive Muon, Lion, SOAP. They step parameter by parameter; what a
 * loop's name is bound to lives until it is bound again.
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

/** A step of SOAP (soap/soap.py). */
void me_soap_step(me_engine *e, const me_step_group *group);

/** One kernel over @p numel elements that moves @p bytes for each. */
void me_emerging_run(me_engine *e, uint64_t numel, uint64_t bytes);

/** A float32 result (rows, columns) of an operation that reads one tensor and
 *  writes one. */
me_tensor *me_emerging_result(me_engine *e, const char *op, uint64_t rows,
                              uint64_t columns);

/** The end of a step of all groups: its names go. */
void me_emerging_end(me_engine *e, me_emerging *emerging);

#endif /* MEMEST_TRAIN_OPTIM_EMERGING_H */
