/* SPDX-License-Identifier: BSD-3-Clause */
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

void me_text_node(const me_report *report, me_str *text)
{
    const me_node_memory *node = &report->verdict.node;
    if (node->n_ranks == 0) {
        return;
    }
    me_str_append(text, "  host        ");
    me_gib_append(text, node->bytes);
    if (node->capacity_bytes > 0) {
        me_str_append(text, " of ");
        me_gib_append(text, node->capacity_bytes);
    }
    me_str_printf(text, " GiB in the memory of node %d (%d rank%s)",
                  (int)node->node, (int)node->n_ranks,
                  node->n_ranks == 1 ? "" : "s");
    if (node->pinned_bytes > 0) {
        me_str_append(text, ", ");
        me_gib_append(text, node->pinned_bytes);
        me_str_append(text, " pinned");
    }
    me_str_append(
        text, node->capacity_bytes == 0 ? "; nobody says what it has\n" : "\n");
}

/** Where a node has several such ranks: what they come to. */
static void append_node(me_str *text, const me_report *report)
{
    const me_node_memory *node = &report->verdict.node;
    if (node->n_ranks > 1) {
        me_str_printf(text, "; %d ranks of node %d: ", (int)node->n_ranks,
                      (int)node->node);
        append_use(text, node->bytes, " bytes");
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
        me_str_append(text, "\n");
    }
    me_str_append(text, "  at once: ");
    append_use(text, host->peak_bytes, " bytes at most");
    append_node(text, report);
    me_str_append(text, "\n");
    return me_str_status(text);
}
