/**
 * @file
 * Plain PyTorch jobs under autocast and with a GradScaler: what goes together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TORCH_AUTOCAST_H
#define MEMEST_CONFIG_TORCH_TORCH_AUTOCAST_H

#include "config/config.h"

/** @return ME_ERR_CONFIG, with the reason in @p diag, where autocast or the
 *  GradScaler stands beside what it is not modelled with */
me_status me_torch_check_autocast(const me_config *config, me_diag *diag);

/** Add what is assumed of such a job to the report's assumptions. */
me_status me_torch_note_autocast(me_config *config, me_diag *diag);

#endif /* MEMEST_CONFIG_TORCH_TORCH_AUTOCAST_H */
