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

#include "base/str.h"
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

/** A class that is known by name; texts are static. */
typedef struct me_hf_class {
    const char *name;   /**< as `architectures` has it */
    const char *others; /**< with the same layers; bars between them, or NULL */
    const char *missing; /**< why it is refused; NULL: it is read */
} me_hf_class;

/**
 * The class of that index, from 0. Local.
 *
 * @param left_out  what all its models have that is not modelled is appended
 * @return false behind the last one
 */
bool me_huggingface_class(size_t index, me_hf_class *class_out,
                          me_str *left_out);

#endif /* MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_H */
