/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/fit.h"
#include "report/format.h"
#include "report/html_charts.h"
#include "report/page.h"
#include "report/text.h"

/** The job's name is the page's. */
static void append_title(const me_report *report, me_str *page)
{
    me_str title = {0};
    const char *name = report->config->name;
    me_str_printf(&title, "memest%s%s", *name == '\0' ? "" : ": ", name);
    me_page_begin(page, me_str_text(&title));
    me_str_fini_piece(&title, page);
}

static void append_verdict(const me_report *report, me_str *page)
{
    me_str verdict = {0};
    me_verdict_print(report, &verdict);
    me_str_printf(page, "<p class=\"verdict %s\">",
                  me_risk_name(report->verdict.risk));
    me_html_append(page, me_str_text(&verdict));
    me_str_append(page, "</p>\n");
    me_str_fini_piece(&verdict, page);
}

static void append_reason(const me_report *report, me_str *page)
{
    me_str reason = {0};
    me_text_reason(report, &reason);
    me_str_append(page, "<p class=\"reason\">");
    me_html_append(page, me_str_text(&reason));
    me_str_append(page, "</p>\n");
    me_str_fini_piece(&reason, page);
}

/** Lines that a section of the text report has. */
static void append_lines(const me_report *report,
                         void (*section)(const me_report *, me_str *),
                         me_str *page)
{
    me_str lines = {0};
    section(report, &lines);
    if (lines.length > 0) {
        me_page_lines(page, me_str_text(&lines));
    }
    me_str_fini_piece(&lines, page);
}

static me_status append_text_report(const me_report *report, me_str *page)
{
    me_str text = {0};
    const me_status status = me_text_append(report, false, &text);
    me_page_details(page, "The whole report as text", me_str_text(&text));
    me_str_fini(&text);
    return status;
}

static me_status append_fit(const me_report *report, me_str *page)
{
    if (report->fit == NULL || report->fit->n_offers == 0) {
        return ME_OK;
    }
    me_page_heading(page, "What makes it fit");
    me_str note = {0};
    me_str_append(&note,
                  "Each change by itself, or several together where none "
                  "is enough; simulated");
    me_fit_order_append(report->fit, &note);
    me_str_append(&note, ". (#): losses come out otherwise.");
    me_page_note(page, me_str_text(&note));
    me_str_fini_piece(&note, page);
    return me_fit_table(report, 0, me_page_table, page);
}

static me_status append_peaks(const me_report *report, me_str *page)
{
    me_page_heading(page, "What each stage has at its peak");
    me_page_note(page, "The rank of the stage that requests most, in the "
                       "steady iteration.");
    return me_html_peaks(report, page);
}

static me_status append_ranks(const me_report *report, me_str *page)
{
    me_page_heading(page, "Ranks: peaks in GiB, * marks the worst");
    return me_ranks_table(report, me_page_table, page);
}

static me_status append_modules(const me_report *report, me_str *page)
{
    me_page_heading(page, "Modules of the worst rank");
    return me_modules_table(report, me_page_table, page);
}

static me_status append_memory(const me_report *report, me_str *page)
{
    me_page_heading(page, "Memory over iteration 1");
    return me_html_memory(report, page);
}

/** Charts and tables, each with its heading; the first failure ends it. */
static me_status append_sections(const me_report *report, me_str *page)
{
    me_status (*const sections[])(const me_report *, me_str *) = {
        append_fit,   append_memory, append_peaks,
        me_html_heat, append_ranks,  append_modules};
    me_status status = ME_OK;
    for (size_t i = 0;
         i < sizeof sections / sizeof *sections && status == ME_OK; i++) {
        status = sections[i](report, page);
    }
    return status;
}

me_status me_html_print(const me_report *report, FILE *stream, me_diag *diag)
{
    me_str page = {0};
    if (!me_page_is_available()) {
        return me_fail(diag, ME_ERR_INTERNAL, "no Vega, and nobody asked");
    }
    append_title(report, &page);
    append_verdict(report, &page);
    append_reason(report, &page);
    append_lines(report, me_text_band, &page);
    append_lines(report, me_text_node, &page);
    append_lines(report, me_text_end, &page);
    append_lines(report, me_text_head, &page);
    me_status status = append_sections(report, &page);
    append_lines(report, me_text_notes, &page);
    if (status == ME_OK) {
        status = append_text_report(report, &page);
    }
    me_page_end(&page);
    if (status == ME_OK) {
        status = me_str_status(&page);
    }
    if (status == ME_OK) {
        (void)fwrite(me_str_text(&page), 1, page.length, stream);
    } else {
        (void)me_fail(diag, status, "cannot make the page: %s",
                      me_status_text(status));
    }
    me_str_fini(&page);
    return status;
}
