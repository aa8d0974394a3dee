/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/compare_format.h"
#include "report/text.h"

#include <string.h>

/*
 * What the settings of a comparison leave out and assume: each sentence once,
 * with the settings that it holds for where it does not hold for all.
 */

/** One sentence of a setting. */
typedef struct sentence {
    const char *head; /**< a flag, or the assumption */
    const char *more; /**< about the flag; "" */
    me_effect effect; /**< of the flag */
} sentence;

/** What to list of a setting that runs. */
typedef struct sentence_kind {
    const char *title;
    uint32_t (*count)(const me_report *report);
    sentence (*get)(const me_report *report, uint32_t i);
} sentence_kind;

static uint32_t count_missing(const me_report *report)
{
    return (uint32_t)report->config->not_modelled.count;
}

static sentence get_missing(const me_report *report, uint32_t i)
{
    const me_flag_note *note = &report->config->not_modelled.flags[i];
    return (sentence){note->flag, note->note == NULL ? "" : note->note,
                      note->effect};
}

static uint32_t count_assumed(const me_report *report)
{
    return report->n_assumptions;
}

static sentence get_assumed(const me_report *report, uint32_t i)
{
    return (sentence){report->assumptions[i], "", ME_EITHER(NONE)};
}

static const sentence_kind kinds[] = {
    {"Not modelled: these flags may change memory, and the numbers above "
     "leave them out",
     count_missing, get_missing},
    {"Assumptions", count_assumed, get_assumed},
};

static bool is_in(const sentence_kind *kind, const me_report *report,
                  const sentence *wanted)
{
    for (uint32_t i = 0; i < kind->count(report); i++) {
        const sentence s = kind->get(report, i);
        if (strcmp(s.head, wanted->head) == 0 &&
            strcmp(s.more, wanted->more) == 0) {
            return true;
        }
    }
    return false;
}

/** Does a setting before row @p end have it? */
static bool is_said(const me_comparison *c, const sentence_kind *kind,
                    size_t end, const sentence *s)
{
    for (size_t i = 0; i < end; i++) {
        if (c->rows[i].report != NULL && is_in(kind, c->rows[i].report, s)) {
            return true;
        }
    }
    return false;
}

/** The settings that it holds for, unless it is all that run. */
static void append_holders(const me_comparison *c, const sentence_kind *kind,
                           const sentence *s, me_str *text)
{
    size_t n_running = 0;
    size_t n_holders = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        const me_report *report = c->rows[i].report;
        n_running += report != NULL ? 1 : 0;
        n_holders += report != NULL && is_in(kind, report, s) ? 1 : 0;
    }
    if (n_holders == n_running) {
        return;
    }
    const char *before = " (";
    for (size_t i = 0; i < c->n_rows; i++) {
        const me_report *report = c->rows[i].report;
        if (report != NULL && is_in(kind, report, s)) {
            me_str_append(text, before);
            me_compare_title(&c->rows[i], text);
            before = "; ";
        }
    }
    me_str_append(text, ")");
}

static void append_kind(const me_comparison *c, const sentence_kind *kind,
                        me_str *text)
{
    bool is_first_one = true;
    for (size_t i = 0; i < c->n_rows; i++) {
        const me_report *report = c->rows[i].report;
        const uint32_t n = report == NULL ? 0 : kind->count(report);
        for (uint32_t j = 0; j < n; j++) {
            const sentence s = kind->get(report, j);
            if (is_said(c, kind, i, &s)) {
                continue;
            }
            if (is_first_one) {
                me_str_printf(text, "\n%s\n", kind->title);
            }
            is_first_one = false;
            me_str_printf(text, "  %s%s%s", s.head,
                          s.more[0] == '\0' ? "" : ": ", s.more);
            me_effect_append(s.effect, text);
            append_holders(c, kind, &s, text);
            me_str_append(text, "\n");
        }
    }
}

void me_compare_notes(const me_comparison *comparison, me_str *text)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        append_kind(comparison, &kinds[i], text);
    }
}
