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

#include <stddef.h>

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

#endif /* MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_H */
