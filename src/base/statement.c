/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/statement.h"

#include <stdarg.h>

void me_statement_add(me_str *statement, const char *name, const char *format,
                      ...)
{
    me_str_printf(statement, "%s\t", name);
    const size_t begin = statement->length;
    va_list arguments;
    va_start(arguments, format);
    me_str_vprintf(statement, format, arguments);
    va_end(arguments);
    for (size_t i = begin; i < statement->length; i++) {
        char *c = &statement->text[i];
        if (*c == '\n' || *c == '\t') {
            *c = ' ';
        }
    }
    me_str_append(statement, "\n");
}
