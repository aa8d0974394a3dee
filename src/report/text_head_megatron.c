/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/parameters.h"
#include "report/job_report.h"
#include "report/quantity.h"
#include "report/text_head.h"

#include <inttypes.h>
#include <string.h>

static void append_model(const me_model_config *m, me_str *text)
{
    me_str_printf(text,
                  "  model       %d layer%s, hidden %" PRIu64 ", heads %" PRIu64
                  " of %" PRIu64,
                  (int)m->num_layers, me_plural((uint64_t)m->num_layers),
                  m->hidden_size, m->num_attention_heads, m->query_head_size);
    if (m->num_query_groups != m->num_attention_heads) {
        me_str_printf(text, " (%" PRIu64 " query group%s)", m->num_query_groups,
                      me_plural(m->num_query_groups));
    }
    me_str_printf(
        text,
        ", ffn %" PRIu64 " %s, %s%s%s, vocabulary %" PRIu64
        ", sequence %" PRIu64 "\n",
        m->ffn_hidden_size,
        me_choice_title(me_activation_choices, (int)m->activation),
        me_choice_title(me_normalization_choices, (int)m->normalization),
        m->norm_placement == ME_NORMS_PRE ? "" : " ",
        m->norm_placement == ME_NORMS_PRE
            ? ""
            : me_choice_title(me_norm_placement_choices,
                              (int)m->norm_placement),
        m->padded_vocab_size, m->seq_length);
}

/** Of the model, not of a rank: ties count once. */
static void append_parameters(const me_config *config, me_str *text)
{
    me_model_summary summary;
    const me_status status =
        config->own == NULL // made by hand, not by a reader
            ? ME_ERR_UNSUPPORTED
            : me_model_summarize(config, NULL, &summary);
    if (status == ME_ERR_NOMEM && text->status == ME_OK) {
        text->status = status;
    }
    if (status == ME_OK) {
        me_str_append(text, "  parameters  ");
        me_count_append(text, summary.parameters);
        me_str_append(text, "\n");
    }
}

/** Nothing without experts. */
static void append_experts(const me_moe_options *m, me_str *text)
{
    if (m->num_experts == 0) {
        return;
    }
    me_str_printf(
        text, "  experts     %" PRIu64 ", %" PRIu64 " of a token, ffn %" PRIu64,
        m->num_experts, m->router_topk, m->ffn_hidden_size);
    if (m->shared_expert_intermediate_size > 0) {
        me_str_printf(text, ", shared %" PRIu64,
                      m->shared_expert_intermediate_size);
    }
    if (strcmp(m->layer_freq, "1") != 0) {
        me_str_printf(text, ", layers %s", m->layer_freq);
    }
    me_str_printf(
        text, ", %s",
        me_choice_title(me_token_dispatcher_choices, (int)m->token_dispatcher));
    if (m->tokens[0] != '\0') {
        me_str_printf(text, ", tokens as in %s\n", m->tokens);
    } else if (m->is_skewed) {
        me_str_printf(text, ", routing %s, seed %" PRIu64 "\n", m->routing,
                      m->routing_seed);
    } else {
        me_str_printf(text, ", imbalance %g\n", m->imbalance);
    }
}

static void append_grid(const me_report *report, me_str *text)
{
    const me_parallel_config *p = &report->config->parallel;
    me_str_printf(text, "  grid        %d rank%s: tensor %d%s, pipeline %d",
                  (int)report->world_size,
                  me_plural((uint64_t)report->world_size), (int)p->tensor,
                  p->sequence ? " with sequence parallel" : "",
                  (int)p->pipeline);
    if (p->virtual_pipeline > 1) {
        me_str_printf(text, " (%d chunks a rank)", (int)p->virtual_pipeline);
    }
    me_str_printf(text, ", context %d, data %d%s", (int)p->context,
                  (int)p->data,
                  p->torch_fsdp2     ? " with FSDP2"
                  : p->megatron_fsdp ? " with Megatron-FSDP"
                                     : "");
    if (p->expert > 1) {
        me_str_printf(text, ", expert %d", (int)p->expert);
    }
    me_str_append(text, "\n");
}

static void append_training(const me_config *config, me_str *text)
{
    const me_train_config *t = &config->train;
    const me_optimizer_config *o = &config->optimizer;
    me_str_printf(text,
                  "  batch       micro %" PRIu64 ", global %" PRIu64
                  ": %d micro-batch%s an iteration\n",
                  t->micro_batch_size, t->global_batch_size,
                  (int)t->num_microbatches,
                  t->num_microbatches == 1 ? "" : "es");
    me_str_printf(text, "  precision   %s parameters",
                  me_dtype_name(t->params_dtype));
    if (t->params_dtype != ME_DTYPE_FLOAT32) {
        me_str_printf(text, ", gradients reduced in %s",
                      me_dtype_name(t->grad_dtype));
    }
    me_str_printf(text, "\n  optimizer   %s%s%s%s%s%s\n",
                  me_choice_title(me_optimizer_kind_choices, (int)o->kind),
                  o->distributed ? ", distributed" : "",
                  o->precision_aware ? ", precision-aware" : "",
                  o->cpu_offload ? ", on the host" : "",
                  o->overlap_grad_reduce ? ", overlapping grad reduce" : "",
                  o->overlap_param_gather ? ", overlapping param gather" : "");
}

static void append_recompute(const me_recompute_config *r, me_str *text)
{
    me_str_printf(text, "  recompute   %s",
                  me_choice_title(me_recompute_choices, (int)r->granularity));
    if (r->granularity == ME_RECOMPUTE_SELECTIVE && r->core_attn) {
        me_str_append(text, ", core_attn");
    } else if (r->granularity == ME_RECOMPUTE_FULL) {
        me_str_printf(
            text, ", %s, %d layer%s",
            me_choice_title(me_recompute_method_choices, (int)r->method),
            (int)r->num_layers, me_plural((uint64_t)r->num_layers));
    }
    me_str_append(text, "\n");
}

void me_text_head_megatron(const me_report *report, me_str *text)
{
    const me_config *config = report->config;
    append_model(&config->model, text);
    append_parameters(config, text);
    append_experts(&report->config->moe, text);
    append_grid(report, text);
    append_training(config, text);
    append_recompute(&config->recompute, text);
    const char *attention = me_choice_title(me_core_attention_kind_choices,
                                            (int)config->impl.core_attention);
    const char *within = me_choice_title(me_core_attention_kind_choices,
                                         (int)config->impl.window_attention);
    const bool is_mixed =
        config->impl.window_attention != config->impl.core_attention;
    const char *optimizer =
        me_choice_title(me_optimizer_impl_choices, (int)config->impl.optimizer);
    if (config->impl.transformer == ME_TRANSFORMER_ENGINE) {
        me_str_printf(text,
                      "  code        Transformer Engine %s, core_attention "
                      "%s%s%s, optimizer %s\n",
                      config->impl.te_version, attention,
                      is_mixed ? ", within windows " : "",
                      is_mixed ? within : "", optimizer);
        return;
    }
    const bool has_te_norm = config->impl.importable == ME_IMPORTABLE_TE &&
                             config->moe.num_experts == 0;
    me_str_printf(
        text, "  code        core_attention %s, norm %s%s, optimizer %s\n",
        attention,
        me_choice_title(me_norm_impl_choices, (int)config->impl.norm),
        has_te_norm ? " (the last Transformer Engine's)" : "", optimizer);
}
