/**
 * @file
 * torchtitan's job configuration: a TOML file, and the flags behind train.py
 * that win over it. It becomes a plain PyTorch job, as a `.cfg` file would
 * describe it: a tree of modules and options.
 *
 * Two sets of keys are read, which are told apart by the keys themselves: those
 * of torchtitan in December 2024 ([experimental], training.batch_size) and those
 * of its releases 0.2 ([parallelism], training.local_batch_size). The models are
 * the flavors of llama3. Every key ends in one of the job's lists, as the flags
 * of a launch command do; one that torchtitan does not have is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_H
#define MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a torchtitan job's keys come to, defaults among it. */
typedef struct me_torchtitan_job {
    bool is_0_2;         /**< of releases 0.2; else of December 2024 */
    uint64_t batch_size; /**< samples of a rank's forward and backward; of a
                              pipeline's step */
    int64_t shard;       /**< degrees; -1: what is left of the ranks */
    int64_t replicate;   /**< each of these at least 1 */
    int64_t tensor;
    int64_t pipeline;
    bool is_sharded;       /**< fully_shard */
    bool always_reshards;  /**< after forwards */
    bool is_offloaded;     /**< enable_cpu_offload */
    bool is_bfloat16;      /**< of mixed precision */
    bool is_fused;         /**< its optimizer */
    bool is_checkpointed;  /**< some of it */
    bool is_op_checkpoint; /**< "selective" with "op" */
    bool is_full_checkpoint;
} me_torchtitan_job;

/**
 * Read a file. Local.
 *
 * @param config  set; on failure only good for me_config_destroy()
 * @param where   the file's name in messages
 * @param text    bytes, end with a NUL
 * @param length  their number without it
 * @return ME_OK; ME_ERR_SYNTAX for what is no TOML; ME_ERR_UNSUPPORTED for a
 *         value that is not modelled; ME_ERR_CONFIG for keys and values that
 *         are wrong; ME_ERR_NOMEM
 */
me_status me_torchtitan_read(me_config *config, const char *where,
                             const char *text, size_t length,
                             me_diag *diag) ME_MUST_CHECK;

/**
 * Read the flags behind train.py: `--job.config_file FILE` and
 * `--table.key VALUE`. Local.
 *
 * @return as me_torchtitan_read(), and ME_ERR_IO for the file
 */
me_status me_torchtitan_read_flags(me_config *config, int argc,
                                   const char *const *argv,
                                   me_diag *diag) ME_MUST_CHECK;

/** The job as its keys say it, borrowed; NULL: it is not torchtitan's. Local. */
const me_torchtitan_job *me_torchtitan_of(const me_config *config);

/** Is the job torchtitan's, and @p name a key of its, "table.key"? Local. */
bool me_torchtitan_has_key(const me_config *config, const char *name);

/**
 * Set a key, "training.local_batch_size", over what was read, as a flag does.
 * Options of memest's own that were set since stay as they are. Local.
 *
 * @param config  for which me_torchtitan_has_key(); unfinished; as it was on
 *                failure
 * @return as me_torchtitan_read()
 */
me_status me_torchtitan_set(me_config *config, const char *name,
                            const char *value, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_H */
