/**
 * @file
 * Text that grows. Its first failure sticks: later appends do nothing, and one
 * look at me_str_status() at the end is enough.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_STR_H
#define MEMEST_BASE_STR_H

#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/** A string under construction; all zero is an empty one. */
typedef struct me_str {
    char *text;    /**< ends with a NUL once something was appended */
    size_t length; /**< bytes without the NUL */
    size_t capacity;
    unsigned columns; /**< of the terminal that it is for: tables and lists of
                         entries keep to them (base/text_wrap.h); 0: none */
    me_status status;
} me_str;

/** Give back the text; the string is empty again. */
void me_str_fini(me_str *str);

/** Empty, with the memory that it has; a failure stays. */
void me_str_clear(me_str *str);

/** Give back a piece of which @p whole was made: where the piece failed, the
 *  whole has. */
void me_str_fini_piece(me_str *piece, me_str *whole);

/** Append; the first failure is kept, and what follows it does nothing. */
void me_str_append(me_str *str, const char *text);
/** As me_str_append(), @p length bytes; @p text may be NULL if that is 0. */
void me_str_append_n(me_str *str, const char *text, size_t length);
/** As me_str_append(), formatted as printf() does. */
void me_str_printf(me_str *str, const char *format, ...) ME_PRINTF(2, 3);
/** As me_str_printf(), of arguments that were handed over. */
void me_str_vprintf(me_str *str, const char *format, va_list arguments)
    ME_PRINTF(2, 0);

/** As me_str_append_n(), of a name that somebody else made up: made printable
 *  by me_text_clean(). */
void me_str_append_clean(me_str *str, const char *text, size_t length);

/** Append a field of CSV (RFC 4180): @p length bytes, made printable, in quotes
 * and with inner ones doubled where they hold a separator. An apostrophe goes
 * before what a spreadsheet would take for a formula: text that begins with
 * `=`, `+`, `-` or `@` and is no number. */
void me_str_append_csv(me_str *str, const char *field, size_t length);

/** The "s" of a word for @p count things. */
static inline const char *me_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/** The text so far, never NULL; borrowed until the next append. */
const char *me_str_text(const me_str *str);

/** ME_OK; ME_ERR_NOMEM or ME_ERR_OVERFLOW if any append failed. */
me_status me_str_status(const me_str *str);

#endif /* MEMEST_BASE_STR_H */
