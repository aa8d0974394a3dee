/**
 * @file
 * What a launch's words mean where the script has gone: names of files below the
 * folder that it is in, and what it wrote, of which nothing stays: files, folders
 * of models and tokenizers, and links.
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
    ME_CARRY_FILE_BYTES = 1 << 20,   /**< of a text that is carried */
    ME_CARRY_MODEL_BYTES = 20 << 20, /**< of a file as models and tokenizers
                                          have them */
    ME_CARRY_ALL_BYTES = 22 << 20,   /**< of all of a launch */
    ME_CARRY_FOLDER_FILES = 32       /**< of a folder */
};

/** Behind the variables of a launch, `MEMEST_FILE=PATH`, a line's end, the file's
 *  bytes as me_carry_decode() reads them. */
#define ME_CARRY_FILE "MEMEST_FILE="

/** Beside it, `MEMEST_LINK=PATH`, a line's end, where a link leads that the script
 *  made. */
#define ME_CARRY_LINK "MEMEST_LINK="

/** Beside it, the folder of a launch, where it is not the one where the script
 *  began: relative names are meant in it. */
#define ME_CARRY_FOLDER "MEMEST_FOLDER="

/** When and where the script began: a variable of its processes. */
#define ME_CARRY_BEGIN "MEMEST_BEGIN"

/** Append the variable, without a NUL: now, and in the folder of this process. */
void me_carry_begin(me_str *variable);

/** Append a word, `--flag=VALUE` or `key=VALUE`: the name of a file that is below
 *  the script's folder now, but not below the one where it began, with its path;
 *  of one that the script made a link to, what that leads to. */
void me_carry_word(const char *word, me_str *text);

/** Add the files that were written since the script began and that words name,
 *  or texts among these files, or that lie in a folder which a word names; each
 *  once. Left out are binary files but for models' and tokenizers', and those that
 *  are too large: where memest finds no such file it says so.
 *  @param words  each with a NUL behind it */
void me_carry_files(const me_str *words, me_words *record);

/** Add ME_CARRY_FOLDER, of this process, where it says something. */
void me_carry_folder(me_words *record);

/** Append a file's bytes as they were, of a text without a NUL. */
void me_carry_decode(const char *text, me_str *bytes);

#endif /* MEMEST_SCRIPT_CARRY_H */
