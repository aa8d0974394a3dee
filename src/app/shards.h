/**
 * @file
 * Which data-parallel ranks own the same shards under the distributed
 * optimizer, as the plan asks for it: answered by the program itself, so that
 * no second list of a model's parameters exists.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_SHARDS_H
#define MEMEST_APP_SHARDS_H

#include "plan/plan.h"

/** An me_shard_classes.find. @param self not used */
me_status me_shards_find(void *self, const me_plan *plan, int32_t rank,
                         me_diag *diag, int32_t *class_out);

#endif /* MEMEST_APP_SHARDS_H */
