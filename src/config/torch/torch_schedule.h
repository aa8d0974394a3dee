/**
 * @file
 * Which orders plain PyTorch's executor runs. _PipelineScheduleRuntime of
 * torch.distributed.pipelining takes any: PyTorch's classes, and whatever
 * _load_csv() reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TORCH_SCHEDULE_H
#define MEMEST_CONFIG_TORCH_TORCH_SCHEDULE_H

#include "config/config.h"
#include "parallel/pipeline_order.h"

/** Is the job's order that of a loop (Schedule1F1B, ScheduleGPipe), or is there
 * no pipeline? Then it needs no list of actions. Local. */
bool me_torch_has_loop(const me_config *config);

/** Does PyTorch know a schedule of that name, or is there a file? Local.
 *  @return ME_OK; ME_ERR_CONFIG or ME_ERR_UNSUPPORTED with what is wrong */
me_status me_torch_check_schedule(const me_config *config,
                                  me_diag *diag) ME_MUST_CHECK;

/**
 * Would PyTorch's runtime run the order, on the job's stages?
 *
 * @param order  that of the job, as it was named or read
 * @return ME_OK; ME_ERR_CONFIG for what its assertions refuse;
 *         ME_ERR_UNSUPPORTED for what is not modelled; ME_ERR_NOMEM
 */
me_status me_torch_check_order(const me_config *config,
                               const me_pipeline_order *order,
                               me_diag *diag) ME_MUST_CHECK;

/** Say in the report that PyTorch has no class of the order. */
me_status me_torch_note_schedule(me_config *config,
                                 me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_TORCH_TORCH_SCHEDULE_H */
