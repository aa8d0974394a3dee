/**
 * @file
 * Text on a terminal: lines no longer than it is wide, titles and what is worst
 * in bold. What is said does not change.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_TEXT_WRAP_H
#define MEMEST_REPORT_TEXT_WRAP_H

#include "base/str.h"

#include <stdbool.h>

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

#endif /* MEMEST_REPORT_TEXT_WRAP_H */
