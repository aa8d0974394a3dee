/**
 * @file
 * How many ranks `accelerate launch` starts: its numbers of processes and
 * machines, or those of its configuration file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_ACCELERATE_H
#define MEMEST_CONFIG_LAUNCH_ACCELERATE_H

#include "config/launch_deepspeed.h"

/** What its options say; texts are borrowed, NULL: not said. */
typedef struct me_accelerate_said {
    const char *file;
    bool is_several; /**< an option makes it start several processes */
    bool is_cpu;     /**< --cpu: no file is taken that no option names */
    bool is_used;
    me_deepspeed_said deepspeed; /**< is_used: DeepSpeed trains */
    const char *launcher;        /**< DeepSpeed's, of several machines */
} me_accelerate_said;

/**
 * Settle the ranks as accelerate/commands/launch.py does. A file that is not
 * here leaves the world open, unless --num_processes says it. Without --config_file
 * that of `accelerate config` counts, in Hugging Face's folder of this machine, if
 * it is there.
 *
 * @param counts  its --num_processes and --num_machines; ranks, nodes and GPUs
 *                of a node
 * @return ME_OK; ME_ERR_SYNTAX for a file that is no YAML; ME_ERR_CONFIG with
 *         the line of a number that is none; ME_ERR_NOMEM
 */
me_status me_accelerate_settle(const me_accelerate_said *said,
                               const me_gpus_here *here, me_rank_counts *counts,
                               me_config *config, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_LAUNCH_ACCELERATE_H */
