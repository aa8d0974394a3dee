/**
 * @file
 * What other versions of Transformer Engine than the measured one are known to have
 * of other sizes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_TE_VERSIONS_H
#define MEMEST_CONFIG_MEGATRON_TE_VERSIONS_H

#include "config/config.h"

#include <stdint.h>

/**
 * cuBLAS's workspace for Transformer Engine's products, of the job's version of it:
 * get_cublas_workspace_size_bytes() (pytorch/module/base.py, later
 * pytorch/cpp_extensions/gemm.py). Local.
 *
 * @param bytes  what the job's card has for the measured version
 */
uint64_t me_te_version_workspace(const me_config *config, uint64_t bytes);

#endif /* MEMEST_CONFIG_MEGATRON_TE_VERSIONS_H */
