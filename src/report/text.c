/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text.h"

#define RED    "\033[1;31m"
#define YELLOW "\033[1;33m"
#define GREEN  "\033[1;32m"
#define PLAIN  "\033[0m"

enum {
    CONTRIBUTORS_SHOWN = 15 /* of a peak, with all details */
};

const me_rank_result *me_report_worst(const me_report *report)
{
    const int32_t rank = report->verdict.worst_rank;
    return report->results[report->ranks[rank].result];
}

static const char *risk_color(me_risk risk)
{
    switch (risk) {
    case ME_RISK_FITS: return GREEN;
    case ME_RISK_TIGHT:
    case ME_RISK_CANNOT_SAY: return YELLOW;
    case ME_RISK_COIN_FLIP:
    case ME_RISK_DOES_NOT_FIT: return RED;
    case ME_RISK_UNKNOWN: break;
    }
    return "";
}

static void append_verdict(const me_report *report, bool is_colored,
                           me_str *text)
{
    const char *color = is_colored ? risk_color(report->verdict.risk) : "";
    me_str_append(text, "\nverdict: ");
    me_str_append(text, color);
    me_verdict_print(report, text);
    me_str_append(text, *color == '\0' ? "\n" : PLAIN "\n");
}

void me_effect_append(me_effect effect, me_str *text)
{
    const bool is_lower = effect.lower != ME_REACH_NONE;
    const bool is_higher = effect.higher != ME_REACH_NONE;
    if (is_lower && is_higher && effect.lower == effect.higher) {
        me_str_printf(text, " (lower or higher: %s)",
                      me_reach_name(effect.lower));
    } else if (is_lower && is_higher) {
        me_str_printf(text, " (lower: %s, higher: %s)",
                      me_reach_name(effect.lower),
                      me_reach_name(effect.higher));
    } else if (is_lower || is_higher) {
        me_str_printf(text, " (%s: %s)", is_lower ? "lower" : "higher",
                      me_reach_name(is_lower ? effect.lower : effect.higher));
    }
}

void me_text_notes(const me_report *report, me_str *text)
{
    const me_flag_list *missing = &report->config->not_modelled;
    if (missing->count > 0) {
        me_str_append(text, "\nNot modelled: these flags may change memory, "
                            "and the numbers above leave them out\n");
    }
    for (int32_t i = 0; i < missing->count; i++) {
        const me_flag_note *note = &missing->flags[i];
        me_str_printf(text, "  %s", note->flag == NULL ? "?" : note->flag);
        if (note->note != NULL && *note->note != '\0') {
            me_str_printf(text, ": %s", note->note);
        }
        me_effect_append(note->effect, text);
        me_str_append(text, "\n");
    }
    if (report->n_assumptions > 0) {
        me_str_append(text, "\nAssumptions\n");
    }
    for (uint32_t i = 0; i < report->n_assumptions; i++) {
        me_str_printf(text, "  %s\n", report->assumptions[i]);
    }
}

void me_text_top(const me_report *report, bool is_brief, bool is_colored,
                 me_str *text)
{
    me_text_title(report, text);
    append_verdict(report, is_colored, text);
    me_text_reason(report, text);
    me_text_band(report, text);
    me_text_node(report, text);
    (is_brief ? me_text_end_line : me_text_end)(report, text);
    me_str_append(text, "\n");
}

static me_status append_peak(const me_report *report, me_str *text)
{
    return me_text_peak(report, CONTRIBUTORS_SHOWN, ME_CATEGORY_COUNT, text);
}

static me_status append_ranks(const me_report *report, me_str *text)
{
    return me_text_ranks(report, true, text);
}

static me_status append_late(const me_report *report, me_str *text)
{
    return me_text_late(report, SIZE_MAX, text);
}

me_status me_text_append(const me_report *report, bool is_colored, me_str *text)
{
    me_status (*const sections[])(const me_report *, me_str *) = {
        append_ranks,   append_late,     append_peak,    me_text_device,
        me_text_graphs, me_text_host,    me_text_volume, me_text_time,
        me_text_links,  me_text_modules, me_text_course};
    me_text_top(report, false, is_colored, text);
    me_text_head(report, text);
    me_status status = ME_OK;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (status == ME_OK) {
            status = sections[i](report, text);
        }
    }
    me_text_notes(report, text);
    return status == ME_OK ? me_str_status(text) : status;
}
