/**
 * @file
 * What `${…}` in a YAML job stands for, as OmegaConf has it: another key's value,
 * a variable of the environment, the number that one of NeMo's functions makes
 * of such, or a text with such in it. Left out: functions that memest does not
 * know.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_LEAF_REFERENCES_H
#define MEMEST_CONFIG_MEGATRON_LEAF_REFERENCES_H

#include "base/arena.h"
#include "base/status.h"
#include "base/yaml_text.h"

#include <stdbool.h>

/**
 * Put values in the place of `${section.key}`, of `${.key}` beside the leaf and
 * `${..key}` above it, `${NAME:value}`, `${oc.env:NAME,value}`,
 * `${multiply:4, ${.hidden_size}}` and `${eval:'8//3*${.hidden_size}'}`. The first
 * part of a path may be the group that the file lies in. Local.
 *
 * @param leaf       one value, no list
 * @param is_text    it may be any text: one of which something is not known here
 *                   stays as it is
 * @param arena      holds what is made
 * @param value_out  the leaf's own, another's, or of the arena
 * @return ME_OK; ME_ERR_CONFIG with file and line of a leaf that refers to nothing,
 *         or to a function that is not known; ME_ERR_NOMEM
 */
me_status me_leaf_resolve(const me_yaml *yaml, const me_yaml_leaf *leaf,
                          bool is_text, me_arena *arena, const char **value_out,
                          me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_LEAF_REFERENCES_H */
