/* SPDX-License-Identifier: BSD-3-Clause */
/* What `check` prints: the verdict in one screen. */
#include "config/options.h"
#include "report/confidence.h"
#include "report/fit.h"
#include "report/quantity.h"
#include "report/text.h"
#include "report/text_screen.h"

#include <inttypes.h>

enum {
    NOTES_LEAST = 2 /* lines: how many assumptions there are */
};

/** What there is room for. */
typedef struct check_parts {
    size_t n_offers;  /**< of what would make it fit; 0: all */
    bool has_message; /**< PyTorch's own, of a job that dies */
    bool has_notes; /**< all assumptions, or as many as a screen has room for */
} check_parts;

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

static void append_head(const me_report *report, bool has_message, me_str *text)
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
    me_text_node(report, text);
    (has_message ? me_text_end : me_text_end_line)(report, text);
    append_not_modelled(&report->config->not_modelled, text);
}

static void append_assumptions(const me_report *report, size_t room,
                               me_str *text)
{
    me_str lines = {0};
    for (uint32_t i = 0; i < report->n_assumptions; i++) {
        me_str_printf(&lines, "  assumes     %s\n", report->assumptions[i]);
    }
    me_screen_append(me_str_text(&lines), room, "memest estimate --details",
                     text);
    me_str_fini_piece(&lines, text);
}

static me_status append_parts(const me_report *report, check_parts parts,
                              me_str *text)
{
    me_str fit = {.columns = text->columns};
    const me_status status = me_fit_text(report, parts.n_offers, &fit);
    append_head(report, parts.has_message, text);
    const size_t others = me_screen_count(text) + me_screen_count(&fit);
    const size_t room = me_screen_room(others);
    append_assumptions(report,
                       parts.has_notes      ? SIZE_MAX
                       : room < NOTES_LEAST ? NOTES_LEAST
                                            : room,
                       text);
    me_str_append(text, me_str_text(&fit));
    me_str_fini_piece(&fit, text);
    return status == ME_OK ? me_str_status(text) : status;
}

/** The most that a screen has room for. */
static me_status append_screen(const me_report *report, me_str *text)
{
    static const check_parts choices[] = {
        {8, true, false},  {7, true, false},  {6, true, false},
        {5, true, false},  {4, true, false},  {3, true, false},
        {3, false, false}, {2, false, false}, {1, false, false}};
    static const size_t n_choices = sizeof choices / sizeof *choices;
    me_status status = ME_OK;
    bool is_done = false;
    for (size_t i = 0; status == ME_OK && !is_done; i++) {
        me_str made = {.columns = text->columns};
        status = append_parts(report, choices[i], &made);
        is_done =
            i == n_choices - 1 || me_screen_count(&made) <= ME_SCREEN_LINES;
        if (status == ME_OK && is_done) {
            me_str_append(text, me_str_text(&made));
        }
        me_str_fini_piece(&made, text);
    }
    return status == ME_OK ? me_str_status(text) : status;
}

me_status me_check_print(const me_report *report, bool is_brief, me_str *text)
{
    static const check_parts all = {.has_message = true, .has_notes = true};
    return is_brief ? append_screen(report, text)
                    : append_parts(report, all, text);
}
