/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/cudnn_norms.h"

#include "base/size.h"
#include "config/config.h"
#include "ops/te_cudnn_norm.h"

/** The backward of a norm of @p rows rows. */
static me_te_norm_call backward_of(const me_config *config, const me_card *card,
                                   uint64_t rows, uint64_t columns)
{
    return (me_te_norm_call){
        .is_layer_norm =
            config->model.normalization == ME_NORMALIZATION_LAYER_NORM,
        .is_backward = true,
        .dtype = config->train.params_dtype,
        .rows = rows,
        .columns = columns,
        .margin = card->te.backward_norm_margin,
    };
}

static bool is_measured(const me_config *config, const me_card *card,
                        uint64_t rows, uint64_t columns)
{
    const me_te_norm_call call = backward_of(config, card, rows, columns);
    return me_te_cudnn_norm_is_measured(card, &call);
}

/** Norms of the hidden states, and of each rank's heads of queries and keys; those
 *  of latent attention are not looked at. */
static bool are_measured(const me_config *config, const me_card *card)
{
    const me_model_config *m = &config->model;
    const uint64_t tensor = (uint64_t)config->parallel.tensor;
    const uint64_t rows =
        me_size_mul(m->rank_seq_length, config->train.micro_batch_size);
    const uint64_t layer_rows =
        config->parallel.sequence ? rows / tensor : rows;
    if (!is_measured(config, card, layer_rows, m->hidden_size)) {
        return false;
    }
    if (!m->qk_layernorm) {
        return true;
    }
    const uint64_t queries = m->num_attention_heads / tensor;
    const uint64_t keys = me_max_u64(1, m->num_query_groups / tensor);
    return !m->multi_latent_attention && !m->qk_layernorm_across_heads &&
           is_measured(config, card, me_size_mul(rows, queries),
                       m->kv_channels) &&
           is_measured(config, card, me_size_mul(rows, keys), m->kv_channels);
}

/** Columns of which cuDNN has no kernel that leaves SMs to others. */
static me_status check_margin(const me_config *config, const me_card *card,
                              me_diag *diag)
{
    const me_model_config *m = &config->model;
    const uint64_t columns[2] = {m->hidden_size,
                                 m->qk_layernorm && !m->multi_latent_attention
                                     ? m->kv_channels
                                     : m->hidden_size};
    for (int i = 0; i < 2; i++) {
        const me_te_norm_call call = backward_of(config, card, 1, columns[i]);
        if (me_te_cudnn_norm_stops(&call)) {
            return me_fail(
                diag, ME_ERR_CONFIG,
                "NVTE_BWD_LAYERNORM_SM_MARGIN=%u: cuDNN has no kernel that "
                "leaves SMs to others for the backward of norms of %llu "
                "columns, so that Transformer Engine stops: leave it or "
                "NVTE_NORM_BWD_USE_CUDNN=1 out",
                call.margin, (unsigned long long)columns[i]);
        }
    }
    return ME_OK;
}

me_status me_cudnn_norms_note(const me_job_card *job, me_config *config,
                              me_diag *diag)
{
    const me_card card = me_job_card_kernels(job);
    const me_te_settings *te = &card.te;
    me_status status =
        te->has_cudnn_norm_backward ? check_margin(config, &card, diag) : ME_OK;
    if (status == ME_OK && te->has_cudnn_norm_forward &&
        config->fp8.format != ME_FP8_NONE &&
        config->fp8.recipe == ME_FP8_MXFP8) {
        status = me_config_add_not_modelled(
            config, "NVTE_NORM_FWD_USE_CUDNN",
            "norms whose kernel writes MXFP8 by itself",
            (me_effect)ME_LOWER(SOME), diag);
    }
    if (status != ME_OK ||
        !(te->has_cudnn_norm_forward || te->has_cudnn_norm_backward)) {
        return status;
    }
    return me_config_assume(
        config, diag,
        te->has_cudnn_norm_backward && !are_measured(config, &card)
            ? "norms through cuDNN have the workspaces that its version 9.19 "
              "asked for on an H200; which kernel it takes for some of these "
              "rows, columns or SMs was not measured: that of the next ones, "
              "and a band (docs/accounting.md)"
            : "norms through cuDNN have the workspaces that its version 9.19 "
              "asked for on an H200");
}
