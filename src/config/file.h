/**
 * @file
 * Configuration files: libconfig's format with the groups and names of the
 * option table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_FILE_H
#define MEMEST_CONFIG_FILE_H

#include "config/config.h"

#include <stddef.h>

/**
 * Read a file and the files it includes; what the file says wins over what it
 * includes. Local.
 *
 * @param config  set; on failure only good for me_config_destroy()
 * @param model   a path, or the name of a model in `configs/models` of the
 *                working directory or of the installation: a name has neither
 *                a slash nor `.cfg`, `.json` or `.toml` at its end. `.json` at the
 *                end is a config.json of Hugging Face: huggingface.h;
 *                `.toml` a job of torchtitan's: torchtitan.h;
 *                `.yaml` and `.yml` one of Megatron-LM's: megatron_yaml.h
 * @return ME_OK; ME_ERR_IO, ME_ERR_SYNTAX, ME_ERR_CONFIG or ME_ERR_NOMEM with
 *         file, line, option and what would be right in @p diag
 */
me_status me_config_read_file(me_config *config, const char *model,
                              me_diag *diag) ME_MUST_CHECK;

/**
 * As me_config_read_file(), for text in memory. Includes are looked up beside
 * @p where. Local.
 *
 * @param where   the file's name in messages
 * @param text    bytes, need not end with a NUL
 * @param length  their number
 */
me_status me_config_read_text(me_config *config, const char *where,
                              const char *text, size_t length,
                              me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_FILE_H */
