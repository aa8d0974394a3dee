/**
 * @file
 * Text on a terminal: lines no longer than it is wide, titles and what is worst
 * in bold. What is said does not change.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_TEXT_WRAP_H
#define MEMEST_BASE_TEXT_WRAP_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/** A terminal; all zero is none, whose text stays as it is. */
typedef struct me_terminal {
    unsigned width;  /**< columns; 0: lines are as long as they are */
    bool is_colored; /**< takes colours and bold letters */
} me_terminal;

/**
 * Append @p lines for a terminal. A line that is too long goes on, four columns
 * further in, at the last blank that fits; a word that is longer than a line is
 * left whole. Escape sequences take no column. Local.
 */
void me_text_wrap(const char *lines, const me_terminal *terminal, me_str *text);

/** Lines that @p lines are on a terminal of @p width columns. Local. */
size_t me_text_lines(const char *lines, unsigned width);

/**
 * Append a line, and its end, for a text of @p text->columns: what does not fit
 * goes on @p further columns in. Local.
 *
 * @param length  bytes of @p line, without an end
 */
void me_text_wrap_line(const char *line, size_t length, size_t further,
                       me_str *text);

/** As me_text_wrap_line(), of words for a shell, which has to know that they go
 *  on: a backslash ends each line but the last. */
void me_text_wrap_shell(const char *line, size_t length, size_t further,
                        me_str *text);

/**
 * Append an entry of a list: a name, and what it is from column @p at on, over as
 * many lines as @p text->columns ask for; under the name where it would have less
 * than half of them. Local.
 */
void me_text_entry(const char *name, size_t at, const char *what, me_str *text);

#endif /* MEMEST_BASE_TEXT_WRAP_H */
