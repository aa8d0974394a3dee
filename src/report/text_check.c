/* SPDX-License-Identifier: BSD-3-Clause */
/* What `check` prints: the verdict in one screen. */
#include "config/options.h"
#include "report/confidence.h"
#include "report/fit.h"
#include "report/quantity.h"
#include "report/text.h"

#include <inttypes.h>

enum {
    OFFERS_SHOWN = 8 /* of what would make it fit */
};

static void append_worst(const me_report *report, me_str *text)
{
    const int32_t rank = report->verdict.worst_rank;
    const me_report_rank *worst = &report->ranks[rank];
    const me_rank_place *p = &worst->place;
    int32_t n_alike = 0;
    for (int32_t i = 0; i < report->world_size; i++) {
        n_alike += report->ranks[i].result == worst->result ? 1 : 0;
    }
    me_str_printf(
        text, "  worst rank  %d of %d (tensor %d, pipeline %d, data %d)",
        (int)rank, (int)report->world_size, (int)p->tp, (int)p->pp, (int)p->dp);
    if (n_alike > 1) {
        me_str_printf(text, ", %d ranks take as much", (int)n_alike);
    }
    me_str_append(text, "\n");
}

static void append_amount(const char *name, uint64_t bytes, me_str *text)
{
    me_str_printf(text, "%s ", name);
    me_gib_append(text, bytes);
}

static void append_bytes(const me_rank_result *worst,
                         const me_peak_result *peak, me_str *text)
{
    me_str_append(text, "  GiB         ");
    append_amount("requested", peak->requested_bytes, text);
    append_amount(", allocated", peak->allocated_bytes, text);
    append_amount(", reserved", peak->reserved_bytes, text);
    append_amount(", device", peak->device_bytes, text);
    me_str_append(text, "\n");
    const me_device_result *d = &worst->device;
    if (d->is_known) {
        me_str_append(text, "  outside     ");
        append_amount("context", d->context_bytes, text);
        append_amount(", libraries", d->library_bytes, text);
        me_str_printf(text, ", %" PRIu32, d->n_communicators);
        append_amount(" communicators", d->communicator_bytes, text);
        me_str_append(text, "\n");
    }
}

/** A card that nobody named is said to be one. */
static void append_card(const me_config *config, me_str *text)
{
    if (config->device.name[0] != '\0') {
        me_str_printf(text, "  card        %s%s\n", config->device.name,
                      me_config_is_set(config, "device.name")
                          ? ""
                          : ", since nothing names one (--device)");
    }
}

static void append_margin(const me_verdict *v, me_str *text)
{
    if (v->capacity_bytes == 0) {
        return;
    }
    const bool is_over = v->worst_bytes > v->capacity_bytes;
    me_str_append(text, is_over ? "  over by     " : "  margin      ");
    me_gib_append(text, is_over ? v->worst_bytes - v->capacity_bytes
                                : v->capacity_bytes - v->worst_bytes);
    me_str_append(text, " GiB of ");
    me_gib_append(text, v->capacity_bytes);
    me_str_append(text, v->basis == ME_BASIS_DEVICE
                            ? " on the card\n"
                            : " that the allocator may hold\n");
}

static void append_not_modelled(const me_flag_list *missing, me_str *text)
{
    if (missing->count == 0) {
        return;
    }
    me_str_append(text, "  not modelled ");
    for (int32_t i = 0; i < missing->count; i++) {
        me_str_printf(text, "%s%s", i == 0 ? "" : ", ", missing->flags[i].flag);
        me_effect_append(missing->flags[i].effect, text);
    }
    me_str_append(text, "\n");
}

me_status me_check_print(const me_report *report, bool is_brief, me_str *text)
{
    const me_rank_result *worst = me_report_worst(report);
    const me_peak_result *peak = me_report_life_peak(worst);
    const me_confidence confidence = me_confidence_of(report);
    me_verdict_print(report, text);
    me_str_append(text, "; ");
    me_confidence_append(&confidence, text);
    me_str_append(text, "\n");
    me_text_reason(report, text);
    append_worst(report, text);
    if (peak != NULL) {
        append_bytes(worst, peak, text);
    }
    if (report->config->device.alloc_conf[0] != '\0') {
        me_str_printf(text, "  allocator   %s\n",
                      report->config->device.alloc_conf);
    }
    append_card(report->config, text);
    append_margin(&report->verdict, text);
    me_text_band(report, text);
    me_text_end(report, text);
    append_not_modelled(&report->config->not_modelled, text);
    for (uint32_t i = 0; i < report->n_assumptions; i++) {
        me_str_printf(text, "  assumes     %s\n", report->assumptions[i]);
    }
    return me_fit_text(report, is_brief ? OFFERS_SHOWN : 0, text);
}
