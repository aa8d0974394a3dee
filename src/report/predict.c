/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/framework.h"
#include "report/job_report.h"

#include <stdio.h>

/** Elements of the weights that each token is multiplied with. */
static double product_weights(const me_config *c)
{
    const me_model_config *m = &c->model;
    const double h = (double)m->hidden_size;
    const double d = (double)m->kv_channels;
    const double queries = (double)m->num_attention_heads * d;
    const double keys = (double)m->num_query_groups * d;
    const double up = me_is_gated_activation(m->activation) ? 2 : 1;
    const double gate = m->attention_output_gate ? queries : 0;
    const double attention = h * (queries + gate + 2 * keys) + queries * h;
    const double mlp = h * (double)m->ffn_hidden_size * (up + 1);
    return (double)m->num_layers * (attention + mlp) +
           h * (double)m->padded_vocab_size;
}

/** FLOPs that the model needs for a token: 6 a weight, forward and backward,
 *  and attention over the half of the tokens that it may look at, 2 products
 *  of 2 FLOPs forward and twice that backward. */
static double flops_of_token(const me_config *c)
{
    const me_model_config *m = &c->model;
    const double width =
        (double)m->num_attention_heads * (double)m->kv_channels;
    return 6 * product_weights(c) +
           (double)m->num_layers * 12 * width * (double)m->seq_length / 2;
}

/** Is flops_of_token() about such layers? */
static bool has_plain_layers(const me_config *c)
{
    return !c->model.multi_latent_attention && c->model.mtp_num_layers == 0 &&
           c->moe.num_experts == 0;
}

static void fill_in(const me_report *report, const me_rates *rates,
                    me_report_time *time)
{
    const me_config *c = report->config;
    const me_framework_traits *traits = me_framework_traits_of(c);
    time->host_lacks = traits->host_lacks(c);
    const double seconds = (double)time->step->step_ns * 1e-9;
    const double tokens =
        (double)c->train.global_batch_size * (double)c->model.seq_length;
    const double sheet = c->train.params_dtype == ME_DTYPE_FLOAT32
                             ? rates->single_sheet
                             : rates->half_sheet;
    (void)snprintf(time->source, sizeof time->source, "%s", rates->source);
    const bool has_machine =
        report->links != NULL && report->links->cluster != NULL;
    if (report->world_size > c->device.gpus_per_node && !has_machine) {
        (void)snprintf(time->network_source, sizeof time->network_source, "%s",
                       rates->network_source);
    }
    time->uncertainty = rates->uncertainty;
    if (!traits->has_tokens) {
        return;
    }
    time->tokens_per_second = tokens / seconds;
    time->flops_utilisation =
        !has_plain_layers(c) ? 0
                             : flops_of_token(c) * time->tokens_per_second /
                                   (sheet * (double)report->world_size);
}

me_status me_report_predict(me_report *report, const me_rates *rates,
                            const me_time_program *programs, me_diag *diag)
{
    me_diag why = {.status = ME_OK};
    const me_status status = me_step_time_create(
        programs, report->config->parallel.pipeline, &why, &report->time.step);
    if (status == ME_OK) {
        fill_in(report, rates, &report->time);
    } else if (status == ME_ERR_MISMATCH) {
        (void)snprintf(report->time.reason, sizeof report->time.reason, "%s",
                       why.text);
        return ME_OK;
    } else if (diag != NULL) {
        *diag = why;
    }
    return status;
}
