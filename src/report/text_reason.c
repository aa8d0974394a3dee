/* SPDX-License-Identifier: BSD-3-Clause */
/* Why the worst rank takes what it takes, in one sentence. */
#include "report/quantity.h"
#include "report/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARES_SHOWN = 4
};

const me_peak_result *me_report_life_peak(const me_rank_result *worst)
{
    const me_peak_result *most = me_rank_result_peak(worst);
    for (uint32_t i = 0; most != NULL && i < worst->n_iterations; i++) {
        const me_iteration_result *it = &worst->iterations[i];
        if (it->iteration > ME_STEADY_ITERATION &&
            it->peak.requested_bytes > most->requested_bytes) {
            most = &it->peak;
        }
    }
    return most;
}

/** "core_attention" as "core attention". */
static void append_words(const char *name, size_t length, me_str *text)
{
    for (size_t i = 0; i < length; i++) {
        me_str_append_n(text, name[i] == '_' ? " " : &name[i], 1);
    }
}

/** Of "decoder.layers.5.self_attention.core_attention": "layer 5's core
 *  attention". */
static void append_place(const char *module, me_str *text)
{
    static const char layers[] = "layers.";
    const char *layer = strstr(module, layers);
    const char *last = strrchr(module, '.');
    last = last == NULL ? module : last + 1;
    if (layer == NULL) {
        me_str_append(text, module);
        return;
    }
    const char *number = layer + sizeof layers - 1;
    const size_t digits = strspn(number, "0123456789");
    me_str_append(text, "layer ");
    me_str_append_n(text, number, digits);
    if (number[digits] == '.') {
        me_str_append(text, "'s ");
        append_words(last, strlen(last), text);
    }
}

/** A category's part of a peak. */
typedef struct share {
    unsigned category;
    uint64_t bytes;
} share;

static int compare_shares(const void *a, const void *b)
{
    const share *x = a;
    const share *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return (x->category > y->category) - (x->category < y->category);
}

static void append_share(uint64_t part, uint64_t whole, me_str *text)
{
    const double percent = 100.0 * (double)part / (double)whole;
    me_str_printf(text, "%.0f %% ", percent);
}

static void append_shares(const me_peak_result *peak, me_str *text)
{
    share shares[ME_CATEGORY_COUNT];
    uint64_t rest = peak->requested_bytes;
    for (unsigned i = 0; i < ME_CATEGORY_COUNT; i++) {
        shares[i] = (share){i, peak->by_category[i]};
    }
    qsort(shares, ME_CATEGORY_COUNT, sizeof *shares, compare_shares);
    for (unsigned i = 0; i < SHARES_SHOWN && shares[i].bytes > 0; i++) {
        me_str_append(text, i == 0 ? ": " : ", ");
        append_share(shares[i].bytes, peak->requested_bytes, text);
        const char *name = me_category_name((me_category)shares[i].category);
        append_words(name, strlen(name), text);
        rest -= shares[i].bytes;
    }
    if (rest > 0) {
        me_str_append(text, ", ");
        append_share(rest, peak->requested_bytes, text);
        me_str_append(text, "others");
    }
}

void me_text_reason(const me_report *report, me_str *text)
{
    const me_peak_result *peak = me_report_life_peak(me_report_worst(report));
    if (peak == NULL || peak->requested_bytes == 0) {
        return;
    }
    me_str_printf(text, "  rank %d peaks at ", (int)report->verdict.worst_rank);
    me_gib_append(text, peak->requested_bytes);
    me_str_append(text, " GiB");
    if (*peak->module != '\0') {
        me_str_append(text, " in ");
        append_place(peak->module, text);
    }
    me_iteration_append(text, peak->iteration, peak->phase);
    if (peak->microbatch != ME_NO_MICROBATCH) {
        me_str_printf(text, " of micro-batch %d", (int)peak->microbatch);
    }
    if (peak->op != NULL) {
        me_str_printf(text, ", by %s", peak->op);
    }
    append_shares(peak, text);
    me_str_append(text, "\n");
}
