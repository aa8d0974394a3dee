/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text_head.h"

#include "report/text.h"

/** What of a job its head shows: one row a framework. */
static void (*const jobs[])(const me_report *report, me_str *text) = {
    [ME_FRAMEWORK_MEGATRON] = me_text_head_megatron,
    [ME_FRAMEWORK_TORCH] = me_text_head_torch,
};

void me_text_title(const me_report *report, me_str *text)
{
    me_str_printf(text, "memest %s", report->version);
    if (report->config->name[0] != '\0') {
        me_str_printf(text, ": %s", report->config->name);
    }
    me_str_append(text, "\n");
}

void me_text_head(const me_report *report, me_str *text)
{
    const me_config *config = report->config;
    jobs[config->framework](report, text);
    if (config->device.name[0] != '\0') {
        me_str_printf(text, "  card        %s\n", config->device.name);
    }
    if (config->device.alloc_conf[0] != '\0') {
        me_str_printf(text, "  allocator   %s\n", config->device.alloc_conf);
    }
}
