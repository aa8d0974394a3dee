/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/quantity.h"
#include "report/text.h"

static void append_use(me_str *text, uint64_t bytes, const char *what)
{
    me_count_append(text, bytes);
    me_str_append(text, what);
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
               " of optimizer state\n");
    if (host->pinned_bytes > 0) {
        me_str_append(text, "  pinned: ");
        append_use(text, host->pinned_bytes,
                   " bytes, which parameters and gradients take in blocks of "
                   "powers of two\n");
    }
    return me_str_status(text);
}
