/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"

#include "base/clean.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static ME_PRINTF(5, 0) void fill(me_diag *diag, me_status status,
                                 const char *where, int line,
                                 const char *format, va_list arguments)
{
    if (diag == NULL) {
        return;
    }
    diag->status = status;
    diag->line = line;
    (void)snprintf(diag->where, sizeof diag->where, "%s",
                   where == NULL ? "" : where);
    (void)vsnprintf(diag->text, sizeof diag->text, format, arguments);
    diag->flag[0] = '\0';
    diag->is_missing = false;
    me_text_clean(diag->where);
    me_text_clean(diag->text);
}

me_status me_fail(me_diag *diag, me_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(diag, status, NULL, 0, format, arguments);
    va_end(arguments);
    return status;
}

me_status me_fail_at(me_diag *diag, me_status status, const char *where,
                     int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(diag, status, where, line, format, arguments);
    va_end(arguments);
    return status;
}

me_status me_fail_flag(me_diag *diag, me_status status, const char *flag)
{
    if (diag != NULL) {
        (void)snprintf(diag->flag, sizeof diag->flag, "%s", flag);
    }
    return status;
}

me_status me_fail_missing(me_diag *diag, me_status status)
{
    if (diag != NULL) {
        diag->is_missing = true;
    }
    return status;
}

/** A text that another one is put into, of the same failure. */
static ME_PRINTF(4, 0) void fill_again(me_diag *diag, me_status status,
                                       const me_diag *found, const char *format,
                                       va_list arguments)
{
    fill(diag, status, found->where, found->line, format, arguments);
    (void)me_fail_flag(diag, status, found->flag);
    diag->is_missing = found->is_missing;
}

me_status me_fail_of(me_diag *diag, me_status status, const char *format, ...)
{
    if (diag == NULL) {
        return status;
    }
    const me_diag found = *diag;
    va_list arguments;
    va_start(arguments, format);
    fill_again(diag, status, &found, format, arguments);
    va_end(arguments);
    const size_t length = strlen(diag->text);
    (void)snprintf(diag->text + length, sizeof diag->text - length, ": %s",
                   found.text);
    return status;
}

me_status me_fail_behind(me_diag *diag, me_status status, const char *format,
                         ...)
{
    if (diag == NULL) {
        return status;
    }
    const me_diag found = *diag;
    va_list arguments;
    va_start(arguments, format);
    fill_again(diag, status, &found, format, arguments);
    va_end(arguments);
    const me_diag reason = *diag;
    const size_t taken = strlen(reason.text) + strlen(" ()");
    const size_t room =
        taken < sizeof diag->text ? sizeof diag->text - taken : 1;
    memcpy(diag->text, found.text, room);
    diag->text[room - 1] = '\0';
    const size_t length = strlen(diag->text);
    (void)snprintf(diag->text + length, sizeof diag->text - length, " (%s)",
                   reason.text);
    return status;
}

const char *me_status_text(me_status status)
{
    switch (status) {
#define ME_STATUS_CASE(constant, value, text)                                  \
    case constant: return text;
        ME_STATUS_LIST(ME_STATUS_CASE)
#undef ME_STATUS_CASE
    }
    return "unknown status";
}

void me_diag_line(const me_diag *diag, char line_out[ME_DIAG_LINE])
{
    if (diag->where[0] == '\0') {
        (void)snprintf(line_out, ME_DIAG_LINE, "%s", diag->text);
    } else if (diag->line > 0) {
        (void)snprintf(line_out, ME_DIAG_LINE, "%s:%d: %s", diag->where,
                       diag->line, diag->text);
    } else {
        (void)snprintf(line_out, ME_DIAG_LINE, "%s: %s", diag->where,
                       diag->text);
    }
}
