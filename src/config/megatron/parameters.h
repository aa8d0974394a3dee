/**
 * @file
 * How many parameters a model has, by arithmetic: those of its checkpoint, so
 * that the vocabulary is not padded and weights that are tied count once. What
 * each rank holds of them is the plan's and the modules' matter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_PARAMETERS_H
#define MEMEST_CONFIG_MEGATRON_PARAMETERS_H

#include "config/config.h"

/** A model at a glance, every derived value filled in. */
typedef struct me_model_summary {
    uint64_t parameters; /**< saturating */
    int32_t num_layers;
    uint64_t hidden_size;
    uint64_t num_attention_heads;
    uint64_t num_query_groups;
    uint64_t num_experts; /**< 0: none */
    uint64_t router_topk;
    uint64_t vocab_size;
} me_model_summary;

/**
 * Count a Megatron-LM model's parameters. Nothing but the model has to be
 * given. Local.
 *
 * @param config       as read, not finished
 * @param summary_out  set on success
 * @return ME_OK; ME_ERR_UNSUPPORTED for a plain PyTorch job, whose model is a
 *         tree; ME_ERR_CONFIG; ME_ERR_NOMEM
 */
me_status me_model_summarize(const me_config *config, me_diag *diag,
                             me_model_summary *summary_out) ME_MUST_CHECK;

/**
 * Which layers have experts (moe.layer_freq). Local.
 *
 * @param count_out  how many of the decoder's, set always
 * @param last_out   whether its last one has, as depths of multi-token prediction
 *                   then have; set always
 * @return ME_OK; ME_ERR_CONFIG; ME_ERR_NOMEM
 */
me_status me_moe_layers_count(const me_config *config, me_diag *diag,
                              uint64_t *count_out,
                              bool *last_out) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_PARAMETERS_H */
