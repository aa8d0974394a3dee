/**
 * @file
 * Files that a job in YAML names: FlagScale's and Hydra's `defaults:`, Primus'
 * `extends:`, `model:` and `config:`, and recipes by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_YAML_PRESETS_H
#define MEMEST_CONFIG_MEGATRON_YAML_PRESETS_H

#include "base/str.h"
#include "base/yaml_text.h"
#include "config/config.h"

/** A file's text, as it is called in messages. */
typedef struct me_yaml_file {
    const char *where;
    const char *text;
    size_t length; /**< bytes */
} me_yaml_file;

/**
 * Parse a job and the files that it names, which lie beside it, in a folder of
 * their group's name, or in Primus' tree above it. What the job itself says
 * stands behind what they say and wins; of a model that is not there, but known
 * by name, the file of `configs/models` is read into @p config. Local.
 *
 * @param file      the job's
 * @param arena     holds the result
 * @param yaml_out  set on success
 * @param missing   appended to: files that are nowhere; the caller gives it back
 * @return ME_OK; as me_yaml_parse(), me_input_read() and me_config_read_file();
 *         ME_ERR_CONFIG with the line of a file too many
 */
me_status me_yaml_gather(me_config *config, const me_yaml_file *file,
                         me_arena *arena, me_diag *diag, me_yaml *yaml_out,
                         me_str *missing) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_YAML_PRESETS_H */
