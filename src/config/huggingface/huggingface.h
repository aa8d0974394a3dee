/**
 * @file
 * Hugging Face's config.json as a description of a model.
 *
 * Causal language models whose layers are those that memest models, and of models
 * of images too the part that is one. Every key of the file ends in one of the
 * job's lists, as the flags of a launch command do, and so does what all models of
 * a class have that is not modelled. What such a file does not say (batch, sequence
 * length, parallelism) keeps its default.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_H
#define MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_H

#include "config/config.h"

#include <stddef.h>

/**
 * Read a config.json. Local.
 *
 * @param config  set; on failure only good for me_config_destroy()
 * @param where   the file's name in messages
 * @param text    bytes, end with a NUL
 * @param length  their number without it
 * @return ME_OK; ME_ERR_SYNTAX for what is no JSON; ME_ERR_UNSUPPORTED for an
 *         architecture or a key that is not modelled; ME_ERR_CONFIG for a value
 *         that is missing or wrong; ME_ERR_NOMEM
 */
me_status me_huggingface_read(me_config *config, const char *where,
                              const char *text, size_t length,
                              me_diag *diag) ME_MUST_CHECK;

/**
 * A class that is known by name, as `architectures` has it. Local.
 *
 * @param index        from 0
 * @param name_out     static
 * @param missing_out  why it is refused, static; NULL: it is read
 * @return false behind the last one
 */
bool me_huggingface_class(size_t index, const char **name_out,
                          const char **missing_out);

#endif /* MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_H */
