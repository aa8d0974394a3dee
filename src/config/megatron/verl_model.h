/**
 * @file
 * The model of verl's actor: what its overrides put over the config.json, as
 * verl/workers/megatron_workers.py does, and its vocabulary.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_VERL_MODEL_H
#define MEMEST_CONFIG_MEGATRON_VERL_MODEL_H

#include "config/megatron/trainers.h"

/**
 * Put `override_config.model_config` over a model that was read; keys that are not
 * read are named as not modelled. Local.
 *
 * @param all     all of verl's overrides
 * @param picked  keys of Megatron-LM's; added to
 * @param where   for messages
 * @return ME_OK; ME_ERR_CONFIG or ME_ERR_SYNTAX naming key and value; ME_ERR_NOMEM
 */
me_status me_verl_model_read(const me_leaf_list *all, me_leaf_list *picked,
                             const char *where, me_config *config,
                             me_diag *diag) ME_MUST_CHECK;

/** mbridge and verl's own converter pad no vocabulary (_model_provider() of
 *  mbridge's llm_bridge.py, verl's model_initializer.py), which tensor ranks have
 *  to divide. Local. */
me_status me_verl_model_keep_vocabulary(me_config *config,
                                        me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_VERL_MODEL_H */
