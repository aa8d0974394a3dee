/**
 * @file
 * Texts of files that a command has read: each is read once, so that what is run
 * many times over, such as a search's candidates, is about the same files however
 * they change meanwhile. For base/input.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_KEPT_TEXT_H
#define MEMEST_BASE_KEPT_TEXT_H

#include "base/str.h"

#include <stdbool.h>

/**
 * Append the text of a file that was read before. From any thread. Local.
 *
 * @param path      as it was read
 * @param text_out  whose status tells of memory
 * @return false: it was not, or nothing is kept
 */
bool me_kept_text_find(const char *path, me_str *text_out);

/** Keep a file's text, if texts are kept and there is room; the first of a path
 *  stays. From any thread. Local. */
void me_kept_text_add(const char *path, const char *text, size_t length);

#endif /* MEMEST_BASE_KEPT_TEXT_H */
