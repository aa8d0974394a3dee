/**
 * @file
 * What a name of a file is read as while a script's launch is read: bytes that the
 * script wrote, another file that it made a link to, a file in the folder where it
 * launches. For base/input.c, which opens what is read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_STAND_IN_H
#define MEMEST_BASE_STAND_IN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/** What a name is. */
typedef struct me_meaning {
    char path[PATH_MAX]; /**< of the file or folder; "": too long a name */
    char *bytes;   /**< that are read in its place, borrowed; NULL: none */
    size_t length; /**< of them */
    bool is_above; /**< a folder: something stands in below it */
} me_meaning;

/** What @p path is now. Local. */
void me_meaning_of(const char *path, me_meaning *meaning_out);

#endif /* MEMEST_BASE_STAND_IN_H */
