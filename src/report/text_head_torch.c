/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/job_report.h"
#include "report/text_head.h"

void me_text_head_torch(const me_report *report, me_str *text)
{
    const me_config *config = report->config;
    const me_layer_spec *root = &config->torch_job.tree->root;
    const me_parallel_config *p = &config->parallel;
    const char *name = config->torch.model_name;
    me_str_printf(text, "  model       %s%sPyTorch's layers: %s of %u module%s",
                  name, *name == '\0' ? "" : ", as ",
                  me_layer_kind_name(root->kind), (unsigned)root->n_children,
                  me_plural(root->n_children));
    if (config->torch.called_module[0] != '\0') {
        me_str_printf(text, ", of which the loop calls %s",
                      config->torch.called_module);
    }
    me_str_append(text, "\n");
    me_str_printf(text, "  grid        %d rank%s: pipeline %d",
                  (int)report->world_size,
                  me_plural((uint64_t)report->world_size), (int)p->pipeline);
    if (p->pipeline > 1) {
        me_str_printf(
            text, " (%d stage%s a rank, %s)", (int)p->virtual_pipeline,
            me_plural((uint64_t)p->virtual_pipeline), config->pipeline.name);
    }
    if (p->tensor > 1) {
        me_str_printf(text, ", tensor %d", (int)p->tensor);
    }
    me_str_printf(text, ", data %d", (int)p->data);
    if (config->torch.data_parallel != ME_DATA_PARALLEL_NONE) {
        me_str_printf(text, ", %s",
                      me_choice_title(me_data_parallel_choices,
                                      (int)config->torch.data_parallel));
    }
    if (config->torch.data_parallel_replicate > 1) {
        me_str_printf(text, " in %d copies",
                      (int)config->torch.data_parallel_replicate);
    }
    me_str_append(text, "\n");
    me_str_printf(
        text, "  batch       input %s %s, %d micro-batch%s an iteration\n",
        config->torch.input_shape, me_dtype_name(config->torch.input_dtype),
        (int)config->train.num_microbatches,
        config->train.num_microbatches == 1 ? "" : "es");
    me_str_printf(text, "  loss        %s\n", config->torch.loss);
    me_str_printf(
        text, "  optimizer   %s, %s\n",
        me_choice_title(me_optimizer_kind_choices, (int)config->optimizer.kind),
        me_choice_title(me_optimizer_impl_choices,
                        (int)config->impl.optimizer));
}
