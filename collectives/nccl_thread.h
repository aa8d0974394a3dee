/**
 * @file
 * What NCCL keeps for each thread: the open group section and the last error.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_NCCL_THREAD_H
#define MEMEST_COLLECTIVES_NCCL_THREAD_H

#include "base/status.h"
#include "collectives/nccl_stub.h"

#include <stdint.h>

/** The section that is open, from 1; 0 if none is. Local. */
uint64_t me_nccl_section(void);

/** Look at @p comm again when the section ends. Local. */
void me_nccl_section_touch(ncclComm_t comm);

/** Close whatever section is open, as if nothing had been in it. Local. */
void me_nccl_section_drop(void);

/** Remember why a call fails. @return @p result. Local. */
ncclResult_t me_nccl_fail(ncclResult_t result, const char *format, ...)
    ME_PRINTF(2, 3);

/** Were calls of @p comm to itself paired? Resets their count. Local. */
ncclResult_t me_nccl_settle_self(ncclComm_t comm);

#endif /* MEMEST_COLLECTIVES_NCCL_THREAD_H */
