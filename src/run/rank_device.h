/**
 * @file
 * What a rank's device holds beside the allocator, in the result's terms.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_RANK_DEVICE_H
#define MEMEST_RUN_RANK_DEVICE_H

#include "alloc/device_memory.h"
#include "model/job.h"
#include "track/result.h"

/** Bytes of the buffers through which experts' tokens go with the flex
 *  dispatcher, on a rank; 0: it has none. */
uint64_t me_rank_exchange_bytes(const me_config *config);

/** Bytes of Transformer Engine's user buffers on a rank, from its start on; 0: it
 *  has none. */
uint64_t me_rank_user_buffer_bytes(const me_config *config);

/** @return ME_OK, ME_ERR_NOMEM */
me_status me_rank_device_set(const me_device_memory *memory,
                             me_rank_result *result) ME_MUST_CHECK;

#endif /* MEMEST_RUN_RANK_DEVICE_H */
