/**
 * @file
 * Keys of a job in YAML that nobody reads while a switch beside them is off:
 * Primus' presets give all of a part's keys and the switch that turns it on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_YAML_SWITCHES_H
#define MEMEST_CONFIG_MEGATRON_YAML_SWITCHES_H

#include "base/yaml_text.h"
#include "config/config.h"

/**
 * Take away the leaves whose switch the job has and has off, those of a tuner,
 * which are what it tries, and a method beside selective recomputation. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_yaml_switches_apply(me_config *config, me_yaml *yaml,
                                 me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_YAML_SWITCHES_H */
