/**
 * @file
 * Which ranks of a job of plain PyTorch have equal shards under fully_shard().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PLAN_TORCH_SHARDS_H
#define MEMEST_PLAN_TORCH_SHARDS_H

#include "plan/plan.h"

/**
 * Number the members of a data-parallel group by the rows that they have of
 * each parameter, as torch.chunk() cuts the first dimension: ranks that do not
 * divide one differ at the end. Where tensor-parallel ranks cut it too, or may,
 * both cuts count, which may tell ranks apart that are equal.
 *
 * @param rank       a rank of the group
 * @param class_out  a number for each member, from 0 on
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_torch_shard_classes(const me_plan *plan, int32_t rank,
                                 int32_t *class_out) ME_MUST_CHECK;

#endif /* MEMEST_PLAN_TORCH_SHARDS_H */
