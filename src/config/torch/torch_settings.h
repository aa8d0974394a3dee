/**
 * @file
 * Settings of plain PyTorch jobs: their defaults where PyTorch's are others, and
 * those that nothing would look at, which are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_TORCH_SETTINGS_H
#define MEMEST_CONFIG_TORCH_TORCH_SETTINGS_H

#include "config/framework.h"

/** torch.optim's defaults of what the user has not said: AdamW, whose weight
 *  decay is 0.01; none of Adam and SGD; no momentum; no clipping. Local. */
void me_torch_derive_optimizer(me_config *config);

/** @return ME_OK; ME_ERR_CONFIG naming the setting, and what would give it an
 *  effect. Local. */
me_status me_torch_check_settings(const me_config *config,
                                  me_diag *diag) ME_MUST_CHECK;

/** What options are about that may be given without effect; see torch_needs.c. */
extern const me_option_need me_torch_needs[];

#endif /* MEMEST_CONFIG_TORCH_TORCH_SETTINGS_H */
