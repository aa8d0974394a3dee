/**
 * @file
 * Foreign text before it is printed: it may hold line ends, the escapes that
 * steer a terminal, and bytes that are no UTF-8, which JSON cannot carry.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_CLEAN_H
#define MEMEST_BASE_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/** Is all of it printable UTF-8? Local. */
bool me_text_is_clean(const char *text);

/** Make it so in place: a control character becomes a blank, any other byte
 *  that is no UTF-8 a question mark. The length stays. Local. */
void me_text_clean(char *text);

/** As me_text_clean(), of @p length bytes that a NUL follows, whatever is among
 *  them. Local. */
void me_text_clean_n(char *text, size_t length);

#endif /* MEMEST_BASE_CLEAN_H */
