/**
 * @file
 * Text that is to fit on a screen, and says what it leaves out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_TEXT_SCREEN_H
#define MEMEST_REPORT_TEXT_SCREEN_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    ME_SCREEN_LINES = 60
};

/** Lines that a text is on its terminal. Local. */
size_t me_screen_count(const me_str *text);

/** Lines that are left on a screen beside @p n others; 0: none. Local. */
size_t me_screen_room(size_t n);

/**
 * Append as many of @p lines as there is room for. Local.
 *
 * @param lines  whole ones
 * @param room   for them, in lines of @p text's terminal; SIZE_MAX: for all
 * @param flags  where the others are to be had: a line says how many they are
 */
void me_screen_append(const char *lines, size_t room, const char *flags,
                      me_str *text);

#endif /* MEMEST_REPORT_TEXT_SCREEN_H */
