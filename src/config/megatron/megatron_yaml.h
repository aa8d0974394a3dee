/**
 * @file
 * Jobs in YAML: Megatron-LM's own `--yaml-cfg`, and files of those who train
 * with Megatron-LM's core (FlagScale, Primus, NeMo, Megatron-Bridge). Whatever
 * the file's sections, its keys are Megatron-LM's flags or fields of its
 * configuration, and are read as the flags that they stand for
 * (config/megatron/megatron_leaves.h), and so is what stands in files that it names
 * (config/megatron/yaml_presets.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_MEGATRON_YAML_H
#define MEMEST_CONFIG_MEGATRON_MEGATRON_YAML_H

#include "config/config.h"

#include <stddef.h>

/**
 * Read a job from text. Keys that are neither are listed as not modelled, but for
 * those of sections that have nothing to do with memory. `${section.key}` is
 * that key's value, `${NAME:value}` the variable's, or value where it is not set.
 * Local.
 *
 * @param where   the file's name in messages
 * @param length  of @p text
 * @return ME_OK; ME_ERR_SYNTAX as me_yaml_parse(); ME_ERR_CONFIG with file and
 *         line of a value that is not right, or refers to nothing;
 *         ME_ERR_NOMEM
 */
me_status me_megatron_read_yaml(me_config *config, const char *where,
                                const char *text, size_t length,
                                me_diag *diag) ME_MUST_CHECK;

/** As me_megatron_read_yaml(), of a file; ME_ERR_IO where it cannot be read. */
me_status me_megatron_load_yaml(me_config *config, const char *path,
                                me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_MEGATRON_YAML_H */
