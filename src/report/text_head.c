/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text_head.h"

#include "report/text.h"

/** What of a job its head shows: one row a framework. */
static void (*const jobs[])(const me_report *report, me_str *text) = {
    [ME_FRAMEWORK_MEGATRON] = me_text_head_megatron,
    [ME_FRAMEWORK_TORCH] = me_text_head_torch,
};

void me_text_head(const me_report *report, me_str *text)
{
    const me_config *config = report->config;
    me_str_printf(text, "memest %s", report->version);
    if (config->name[0] != '\0') {
        me_str_printf(text, ": %s", config->name);
    }
    me_str_append(text, "\n\n");
    jobs[config->framework](report, text);
    if (config->device.name[0] != '\0') {
        me_str_printf(text, "  card        %s\n", config->device.name);
    }
    if (config->device.alloc_conf[0] != '\0') {
        me_str_printf(text, "  allocator   %s\n", config->device.alloc_conf);
    }
}
