/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "report/quantity.h"
#include "report/text.h"

static void append_use(me_str *text, uint64_t bytes, const char *what)
{
    me_count_append(text, bytes);
    me_str_append(text, what);
}

me_status me_text_graphs(const me_report *report, me_str *text)
{
    const uint64_t bytes = me_report_worst(report)->private_pool_bytes;
    if (bytes == 0) {
        return ME_OK;
    }
    me_str_printf(text, "\nPrivate pools of CUDA graphs on rank %d\n  ",
                  (int)report->verdict.worst_rank);
    append_use(text, bytes,
               " bytes of the reserved ones, which nothing but the graphs "
               "can use\n");
    return me_str_status(text);
}

/** What a node of such ranks pins, where activations do. */
static void append_node(me_str *text, const me_report *report, uint64_t bytes)
{
    const me_host_memory *host = &me_report_worst(report)->host;
    const int32_t per_node = report->config->device.gpus_per_node;
    const int32_t n =
        report->world_size < per_node ? report->world_size : per_node;
    if (host->bytes[ME_HOST_ACTIVATIONS] > 0 && n > 1) {
        me_str_printf(text, "; %d such ranks of a node: ", (int)n);
        append_use(text, me_size_mul((uint64_t)n, bytes), " bytes");
    }
}

me_status me_text_host(const me_report *report, me_str *text)
{
    const me_host_memory *host = &me_report_worst(report)->host;
    if (!me_host_memory_is_used(host)) {
        return ME_OK;
    }
    me_str_printf(text,
                  "\nHost memory of rank %d for what its card does not keep\n"
                  "  ",
                  (int)report->verdict.worst_rank);
    append_use(text, host->bytes[ME_HOST_PARAMETERS], " bytes of parameters, ");
    append_use(text, host->bytes[ME_HOST_GRADIENTS], " of gradients, ");
    append_use(text, host->bytes[ME_HOST_OPTIMIZER_STATE],
               " of optimizer state");
    const bool has_activations = host->bytes[ME_HOST_ACTIVATIONS] > 0;
    if (has_activations) {
        me_str_append(text, ", ");
        append_use(text, host->bytes[ME_HOST_ACTIVATIONS], " of activations");
    }
    me_str_append(text, "\n");
    if (host->pinned_bytes > 0) {
        me_str_append(text, "  pinned: ");
        append_use(text, host->pinned_bytes,
                   has_activations
                       ? " bytes, in blocks of powers of two"
                       : " bytes, which parameters and gradients take in "
                         "blocks of powers of two");
        append_node(text, report, host->pinned_bytes);
        me_str_append(text, "\n");
    }
    return me_str_status(text);
}
