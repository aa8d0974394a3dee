/**
 * @file
 * Jobs in YAML of trainers that are not modelled, known by their keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_FOREIGN_YAML_H
#define MEMEST_CONFIG_MEGATRON_FOREIGN_YAML_H

#include "base/status.h"
#include "base/yaml_text.h"

/**
 * Refuse a file that is another trainer's, by its name and with what memest
 * lacks of it. Local.
 *
 * @param where  the file, for messages
 * @return ME_OK: it may be Megatron-LM's; ME_ERR_UNSUPPORTED
 */
me_status me_foreign_yaml_check(const char *where, const me_yaml *yaml,
                                me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_FOREIGN_YAML_H */
