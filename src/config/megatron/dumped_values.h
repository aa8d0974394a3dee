/**
 * @file
 * Values that Megatron-LM's and Megatron-Bridge's dumpers of configurations write
 * as objects: types of tensors, members of enumerations, functions
 * (core_v0.19.0, megatron/training/config/yaml_utils.py).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_DUMPED_VALUES_H
#define MEMEST_CONFIG_MEGATRON_DUMPED_VALUES_H

#include "base/arena.h"
#include "base/status.h"
#include "base/yaml_text.h"

/**
 * Put the value in the place of each object that stands for one, the members'
 * in that of a list of them: `unfused` for `{_target_: …AttnBackend, _call_: true,
 * _args_: [3]}`, and for a type of torch's the word that flags have, `bf16`.
 * Objects with keys of their own stay as they are. Local.
 *
 * @param yaml   the leaves of one file, changed in place
 * @param arena  holds what is new
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_dumped_values_read(me_yaml *yaml, me_arena *arena,
                                me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_DUMPED_VALUES_H */
