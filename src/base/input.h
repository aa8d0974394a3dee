/**
 * @file
 * Files of the user's: the one way in which memest opens what it reads. A file
 * that is no regular one is refused before anybody waits for its bytes, and
 * what is held whole has a limit, no byte order mark and no NUL.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_INPUT_H
#define MEMEST_BASE_INPUT_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    ME_INPUT_MAX_BYTES = 16 << 20 /**< of what somebody writes by hand */
};

/**
 * Open a regular file for reading. Local.
 *
 * @param path      its name
 * @param file_out  at its beginning; the caller closes it
 * @return ME_OK; ME_ERR_IO with the reason if it is missing, cannot be read, is
 *         no regular file or what Git LFS left in its place; ME_ERR_CONFIG for one
 *         of me_input_keep_apart()
 */
me_status me_input_open(const char *path, me_diag *diag,
                        FILE **file_out) ME_MUST_CHECK;

/**
 * The text of a regular file. Local.
 *
 * @param path       its name
 * @param max_bytes  that it may have: whole MiB, such as ME_INPUT_MAX_BYTES
 * @param text_out   appended to, without a byte order mark; the caller gives it
 *                   back, also on failure
 * @return ME_OK; ME_ERR_IO as me_input_open(), and for a larger file;
 *         ME_ERR_SYNTAX with the line of a NUL byte; ME_ERR_NOMEM
 */
me_status me_input_read(const char *path, size_t max_bytes, me_diag *diag,
                        me_str *text_out) ME_MUST_CHECK;

/** From now on, in this process, me_input_read() reads a file once and has the same
 *  text ever after. For the program: a library's user may change files. Not while
 *  another thread reads. Local. */
void me_input_keep_texts(void);

/** Files are read as they are again; gives back what was kept. Not while another
 *  thread reads. Local. */
void me_input_drop_texts(void);

enum {
    ME_INPUT_APART_MAX = 4
};

/**
 * From now on refuse to read, in this process, files that are written: what is
 * read must not be lost. What was told before is forgotten. For the program,
 * which writes each file once; a library's user may read what was written. Not
 * while another thread reads.
 *
 * @param flags  why each is written, such as "--output"; static
 * @param paths  as the user names them, of files that may not be there yet;
 *               borrowed as long as files are read
 * @param n      of them, at most ME_INPUT_APART_MAX
 */
void me_input_keep_apart(const char *const *flags, const char *const *paths,
                         size_t n);

/**
 * May a file be written? One that was refused to a reader may not, whatever
 * became of the refusal: a comparison goes on without the setting that wanted
 * to read it. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG with what the reader was told
 */
me_status me_input_check_output(const char *path, me_diag *diag) ME_MUST_CHECK;

enum {
    ME_INPUT_STAND_INS_MAX = 256,
    ME_INPUT_STRAYS_MAX = 16
};

/**
 * From now on, in this process, a file is read as these bytes: a script wrote it,
 * and nothing that it writes stays. Not while another thread reads. Local.
 *
 * @param path    by which it is read, whatever slashes it has more; copied, and so
 *                are the bytes
 * @return ME_OK; ME_ERR_CONFIG for more than ME_INPUT_STAND_INS_MAX of them;
 *         ME_ERR_NOMEM
 */
me_status me_input_stand_in(const char *path, const char *bytes, size_t length,
                            me_diag *diag) ME_MUST_CHECK;

/**
 * The same, of a file that a script made a link to.
 *
 * @param to  absolute, copied
 * @return as me_input_stand_in()
 */
me_status me_input_link(const char *path, const char *to,
                        me_diag *diag) ME_MUST_CHECK;

/**
 * From now on, in this process, a relative name is that of a file in a folder,
 * where a script launches its job, and only where that has none of this process's
 * folder. Not while another thread reads. Local.
 *
 * @param folder  absolute, copied
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_input_enter(const char *folder, me_diag *diag) ME_MUST_CHECK;

/** A relative name that was found in this process's folder, since that of
 *  me_input_enter() has none of it. Local.
 *
 *  @return borrowed until me_input_stand_ins_end(); NULL: there are no more, of
 *          which ME_INPUT_STRAYS_MAX are kept */
const char *me_input_stray(size_t index);

/** Files are read as they are again, and from this process's folder. Gives back
 *  what stood in. */
void me_input_stand_ins_end(void);

/** Can @p path be read as a regular file, or do bytes stand in for it? */
bool me_input_is_file(const char *path);

/** Is @p path a folder, or does something stand in for a file below it? */
bool me_input_is_folder(const char *path);

/** Is there anything of that name? */
bool me_input_is_there(const char *path);

/** Bytes of the UTF-8 byte order mark that @p text begins with: 3, or 0. */
size_t me_input_mark_bytes(const char *text, size_t length);

/**
 * Refuse text with a NUL byte, behind which nothing would be read. Local.
 *
 * @param where  file name for messages
 * @return ME_OK; ME_ERR_SYNTAX with the line
 */
me_status me_input_check_text(const char *where, const char *text,
                              size_t length, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_BASE_INPUT_H */
