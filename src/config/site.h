/**
 * @file
 * What only a site's administrators know of its Slurm: which card the nodes of a
 * partition have. `configs/site.cfg`, or the file that MEMEST_SITE names; a site
 * without one has no partitions that are known. docs/slurm.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_SITE_H
#define MEMEST_CONFIG_SITE_H

#include "base/status.h"
#include "config/slurm.h"

#include <stdbool.h>
#include <stdint.h>

/** One partition of the file. */
typedef struct me_site_partition {
    char name[ME_SLURM_TYPE];
    char card[ME_SLURM_TYPE]; /**< as `--device` takes it */
    uint64_t gpus_per_node;   /**< 0: not said */
    bool is_default;          /**< sbatch without `-p` means this one */
} me_site_partition;

/**
 * Look up a partition. Local.
 *
 * @param name           as `-p` has it; NULL: the default one
 * @param partition_out  set where the file has it; else all zero
 * @return ME_OK, also where there is no file; ME_ERR_SYNTAX or ME_ERR_CONFIG
 *         with file and line of what is wrong in it; ME_ERR_IO for a file of
 *         MEMEST_SITE that cannot be read; ME_ERR_NOMEM
 */
me_status
me_site_partition_find(const char *name, me_diag *diag,
                       me_site_partition *partition_out) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_SITE_H */
