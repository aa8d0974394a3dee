/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/outfile.h"
#include "base/text_wrap.h"
#include "report/format.h"
#include "report/job_report.h"
#include "report/page.h"
#include "report/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool find_format(const char *name, me_format *format_out)
{
#define FIND_FORMAT(constant, text)                                            \
    if (strcmp(name, text) == 0) {                                             \
        *format_out = constant;                                                \
        return true;                                                           \
    }
    ME_FORMAT_LIST(FIND_FORMAT)
#undef FIND_FORMAT
    return false;
}

static me_status check_vega(me_diag *diag)
{
    return me_page_is_available()
               ? ME_OK
               : me_fail(diag, ME_ERR_UNSUPPORTED,
                         "--format html: this memest was built without Vega "
                         "(Debian's libjs-vega); text, json and csv work");
}

me_status me_format_read(const char *name, const char *json_ranks,
                         me_diag *diag, me_format *format_out)
{
    me_format format = ME_FORMAT_TEXT;
    if (!find_format(name, &format)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--format %s: text, json, csv and html are known", name);
    }
    if (json_ranks != NULL && format != ME_FORMAT_JSON) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--json-ranks %s: --format must be json, not %s",
                       json_ranks, name);
    }
    if (json_ranks != NULL && strcmp(json_ranks, "classes") == 0) {
        format = ME_FORMAT_JSON_CLASSES;
    } else if (json_ranks != NULL && strcmp(json_ranks, "all") != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--json-ranks %s: all and classes are known",
                       json_ranks);
    }
    *format_out = format;
    return format == ME_FORMAT_HTML ? check_vega(diag) : ME_OK;
}

/** One of the formats that are text. */
static me_status append_text(const me_report *report, me_format format,
                             bool is_colored, me_str *text)
{
    const bool shows_ranks = format == ME_FORMAT_BRIEF_RANKS;
    if (format == ME_FORMAT_CHECK || format == ME_FORMAT_FIT) {
        return me_check_print(report, format == ME_FORMAT_CHECK, text);
    }
    return format == ME_FORMAT_TEXT
               ? me_text_append(report, is_colored, text)
               : me_brief_append(report, shows_ranks, is_colored, text);
}

static me_status print_text(const me_report *report, me_format format,
                            FILE *stream, const me_terminal *terminal,
                            me_diag *diag)
{
    me_str lines = {.columns = terminal->width};
    me_str text = {0};
    me_status status =
        append_text(report, format, terminal->is_colored, &lines);
    status = status == ME_OK ? me_str_status(&lines) : status;
    if (status == ME_OK) {
        me_text_wrap(me_str_text(&lines), terminal, &text);
        status = me_str_status(&text);
    }
    if (status == ME_OK) {
        (void)fwrite(me_str_text(&text), 1, text.length, stream);
    } else {
        (void)me_fail(diag, status, "no memory for the text report");
    }
    me_str_fini(&lines);
    me_str_fini(&text);
    return status;
}

static me_status print_format(const me_report *report, me_format format,
                              FILE *stream, const me_terminal *terminal,
                              me_diag *diag)
{
    switch (format) {
    case ME_FORMAT_JSON: return me_json_print(report, false, stream, diag);
    case ME_FORMAT_JSON_CLASSES:
        return me_json_print(report, true, stream, diag);
    case ME_FORMAT_CSV: return me_csv_print(report, stream, diag);
    case ME_FORMAT_HTML: return me_html_print(report, stream, diag);
    case ME_FORMAT_TEXT:
    case ME_FORMAT_BRIEF:
    case ME_FORMAT_BRIEF_RANKS:
    case ME_FORMAT_CHECK:
    case ME_FORMAT_FIT:
        return print_text(report, format, stream, terminal, diag);
    }
    return me_fail(diag, ME_ERR_INTERNAL, "no such report format");
}

static me_status write_stdout(const me_report *report, me_format format,
                              const me_terminal *terminal, me_diag *diag)
{
    const me_status status =
        print_format(report, format, stdout, terminal, diag);
    if (status != ME_OK) {
        return status;
    }
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        return me_fail(diag, ME_ERR_IO, "cannot write the report: %s",
                       me_stream_reason(stdout, errno));
    }
    return ME_OK;
}

me_status me_report_write(const me_report *report, me_format format,
                          const char *path, const me_terminal *terminal,
                          me_diag *diag)
{
    if (path == NULL || strcmp(path, "-") == 0) {
        return write_stdout(report, format, terminal, diag);
    }
    me_outfile *file = NULL;
    me_status status = me_outfile_create(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    status =
        print_format(report, format, me_outfile_stream(file), terminal, diag);
    if (status == ME_OK) {
        status = me_outfile_commit(file, diag);
    }
    me_outfile_destroy(file);
    return status;
}

static const me_terminal no_terminal = {.width = 0};

me_status me_report_append(const me_report *report, me_format format,
                           me_diag *diag, me_str *text)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&bytes, &length);
    if (stream == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the report");
    }
    me_status status = print_format(report, format, stream, &no_terminal, diag);
    if (fclose(stream) != 0 && status == ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for the report");
    }
    if (status == ME_OK) {
        me_str_append_n(text, bytes, length);
        status = me_str_status(text);
        if (status != ME_OK) {
            (void)me_fail(diag, status, "no host memory for the report");
        }
    }
    // style-allow(free): open_memstream's allocation
    free(bytes);
    return status;
}
