/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled, never run: the real <nccl.h> against the table of the stubs. */
#include "collectives/nccl_table.h"

#include <nccl.h>

ME_NCCL_FUNCTION_LIST(ME_NCCL_CHECK_FUNCTION)
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
ME_NCCL_FUNCTION_LIST_2_28(ME_NCCL_CHECK_FUNCTION)
#endif
ME_NCCL_VALUE_LIST(ME_NCCL_CHECK_VALUE)
