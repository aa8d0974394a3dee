/**
 * @file
 * What a launch's words mean where the script has gone: names of files below the
 * folder that it is in, and files that it wrote, of which nothing stays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_CARRY_H
#define MEMEST_SCRIPT_CARRY_H

#include "base/str.h"
#include "script/record.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_CARRY_FILE_BYTES = 1 << 20, /**< of a file that is carried */
    ME_CARRY_ALL_BYTES = 2 << 20   /**< of all of a launch */
};

/** Behind the variables of a launch, `MEMEST_FILE=PATH`, a line's end, the file's
 *  text. */
#define ME_CARRY_FILE "MEMEST_FILE="

/** When and where the script began: a variable of its processes. */
#define ME_CARRY_BEGIN "MEMEST_BEGIN"

/** Append the variable, without a NUL: now, and in the folder of this process. */
void me_carry_begin(me_str *variable);

/** Append a word, or `--flag=VALUE`: the name of a file that is below the
 *  script's folder now, but not below the one where it began, with its path. */
void me_carry_word(const char *word, me_str *text);

/** Add the files that words name and that were written since the script began,
 *  each once. Binary files and those that are too large are left out: where
 *  memest finds no such file it says so. @param words  each with a NUL behind it */
void me_carry_files(const me_str *words, me_words *record);

#endif /* MEMEST_SCRIPT_CARRY_H */
