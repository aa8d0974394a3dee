/**
 * @file
 * How many ranks the `deepspeed` command starts: its host file, what of it is
 * included or excluded, its numbers of nodes and GPUs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_DEEPSPEED_H
#define MEMEST_CONFIG_LAUNCH_DEEPSPEED_H

#include "config/rank_counts.h"

/** What its options say; texts are borrowed, NULL: not said. */
typedef struct me_deepspeed_said {
    const char *host_file;
    const char *include;
    const char *exclude;
    bool is_used;
} me_deepspeed_said;

/** GPUs of the machine that a launcher starts on; 0: not known. */
typedef struct me_gpus_here {
    uint64_t visible; /**< that CUDA_VISIBLE_DEVICES lists */
    uint64_t of_node; /**< that Slurm gives */
} me_gpus_here;

/** GPUs that a launcher finds, the usual number of a node where nobody says
 *  it, which the job then says. Local. */
me_status me_gpus_here_count(const me_gpus_here *here, me_config *config,
                             me_diag *diag, uint64_t *count_out) ME_MUST_CHECK;

/**
 * Settle the ranks as deepspeed/launcher/runner.py does: the slots of its host
 * file, or of this machine where it has none. A named file that is not here
 * leaves the world open, unless numbers of nodes and GPUs stand beside it.
 *
 * @param counts  its --num_nodes and --num_gpus; ranks, nodes and GPUs of a node
 * @return ME_OK; ME_ERR_CONFIG where the command would stop: a filter beside
 *         numbers, a host that the file lacks, a line that is no host's;
 *         ME_ERR_NOMEM
 */
me_status me_deepspeed_settle(const me_deepspeed_said *said,
                              const me_gpus_here *here, me_rank_counts *counts,
                              me_config *config, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_LAUNCH_DEEPSPEED_H */
