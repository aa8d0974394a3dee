/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/str.h"

#include "base/alloc.h"
#include "base/clean.h"
#include "base/parse.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void me_str_fini(me_str *str)
{
    me_free(str->text);
    *str = (me_str){0};
}

void me_str_clear(me_str *str)
{
    str->length = 0;
    if (str->text != NULL) {
        str->text[0] = '\0';
    }
}

void me_str_fini_piece(me_str *piece, me_str *whole)
{
    if (whole->status == ME_OK) {
        whole->status = piece->status;
    }
    me_str_fini(piece);
}

static bool reserve(me_str *str, size_t more)
{
    if (str->status != ME_OK) {
        return false;
    }
    if (more > SIZE_MAX / 4 || str->length > SIZE_MAX / 4) {
        str->status = ME_ERR_OVERFLOW;
        return false;
    }
    const size_t need = str->length + more + 1;
    if (need <= str->capacity) {
        return true;
    }
    const size_t capacity = need < 128 ? 256 : need * 2;
    char *text = me_realloc(str->text, capacity, 1, "str");
    if (text == NULL) {
        str->status = ME_ERR_NOMEM;
        return false;
    }
    str->text = text;
    str->capacity = capacity;
    return true;
}

void me_str_append_n(me_str *str, const char *text, size_t length)
{
    if (reserve(str, length)) {
        if (length > 0) { // nothing may come without an address
            memcpy(str->text + str->length, text, length);
        }
        str->length += length;
        str->text[str->length] = '\0';
    }
}

void me_str_append(me_str *str, const char *text)
{
    me_str_append_n(str, text, strlen(text));
}

void me_str_append_clean(me_str *str, const char *text, size_t length)
{
    const size_t begin = str->length;
    me_str_append_n(str, text, length);
    if (me_str_status(str) == ME_OK) {
        me_text_clean_n(str->text + begin, length);
    }
}

static bool is_formula(const char *field)
{
    double number = 0;
    return field[0] != '\0' && strchr("=+-@", field[0]) != NULL &&
           field[1] != '\0' && me_parse_double(field, &number) != ME_OK;
}

void me_str_append_csv(me_str *str, const char *field, size_t length)
{
    me_str clean = {0};
    me_str_append_clean(&clean, field, length);
    const char *text = me_str_text(&clean);
    const bool is_plain = text[strcspn(text, ",\"")] == '\0';
    me_str_append(str, is_plain ? "" : "\"");
    me_str_append(str, is_formula(text) ? "'" : "");
    for (; *text != '\0'; text++) {
        me_str_append_n(str, *text == '"' ? "\"\"" : text,
                        *text == '"' ? 2 : 1);
    }
    me_str_append(str, is_plain ? "" : "\"");
    me_str_fini_piece(&clean, str);
}

void me_str_vprintf(me_str *str, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && reserve(str, (size_t)length)) {
        (void)vsnprintf(str->text + str->length, (size_t)length + 1, format,
                        again);
        str->length += (size_t)length;
    }
    va_end(again);
}

void me_str_printf(me_str *str, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    me_str_vprintf(str, format, arguments);
    va_end(arguments);
}

const char *me_str_text(const me_str *str)
{
    return str->text == NULL ? "" : str->text;
}

me_status me_str_status(const me_str *str)
{
    return str->status;
}
