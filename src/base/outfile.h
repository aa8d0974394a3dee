/**
 * @file
 * A file that is written whole or not at all: the text goes beside the target
 * and takes its place once it is on the disk, so that a full disk or a killed
 * run leaves the old file as it was. Until then it has no name, where the file
 * system has such files, and where not, a signal that can be caught takes it.
 * A target that is not a regular file (a terminal, a pipe, /dev/null) is written
 * directly, and so is the file that stdout or stderr goes to, behind what stands
 * there: others write to it as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_OUTFILE_H
#define MEMEST_BASE_OUTFILE_H

#include "base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct me_outfile me_outfile;

/**
 * Open what is no regular file, or a file that grows, to write it. A named pipe
 * that nobody reads is an error, where fopen() waits for a reader for ever. The
 * file of stdout or stderr is written where that stream is. Local.
 *
 * @param appends  what is there stays, and a file that is not there is made
 * @return for fclose(); NULL with the reason in errno
 */
FILE *me_output_open(const char *path, bool appends);

/** What errno says after me_output_open(); static. Local. */
const char *me_output_reason(int error);

/**
 * The file that is written when @p path is: with its links resolved, so that a link
 * stays a link, and where one leads to nothing yet, what it leads to. Local.
 *
 * @return owned by the caller, for me_free(); NULL: no memory
 */
char *me_output_target(const char *path) ME_MUST_CHECK;

/**
 * Begin to write @p path. Local.
 *
 * @param path      where the file shall be in the end; copied
 * @param file_out  owned by the caller, for me_outfile_commit() or
 *                  me_outfile_destroy()
 * @return ME_OK, ME_ERR_IO, ME_ERR_NOMEM
 */
me_status me_outfile_create(const char *path, me_diag *diag,
                            me_outfile **file_out) ME_MUST_CHECK;

/** Where to write; borrowed, buffered. Local. */
FILE *me_outfile_stream(me_outfile *file);

/**
 * Forget everything written after the first @p length bytes. Only for a file
 * that takes its target's place; of another, nothing can be taken back. Local.
 *
 * @return ME_OK, ME_ERR_IO
 */
me_status me_outfile_truncate(me_outfile *file, uint64_t length,
                              me_diag *diag) ME_MUST_CHECK;

/**
 * Bring what was written to the disk and to its name. The file is given back
 * with me_outfile_destroy() in any case. Local.
 *
 * @return ME_OK; ME_ERR_IO if any write since the beginning failed, and then
 *         the target is what it was before
 */
me_status me_outfile_commit(me_outfile *file, me_diag *diag) ME_MUST_CHECK;

/**
 * Why a write to @p stream failed, for a message. Local.
 *
 * @param error  of the call that failed; 0: an earlier one did, whose reason is
 *               lost, and a byte more is tried
 */
const char *me_stream_reason(FILE *stream, int error);

/** Bytes that the disk of a regular file has left; UINT64_MAX: nobody knows, or it
 *  is none. Local. */
uint64_t me_stream_room(FILE *stream);

/** The signals that end a process and can be caught or put off: a user's, a batch
 *  system's, a limit's. */
void me_ending_signals(sigset_t *signals_out);

/**
 * Let each of me_ending_signals(), unless it is ignored, take what is not
 * committed with it before it ends the process. For the program: a library
 * leaves signals to its user. Local.
 */
void me_outfile_guard_signals(void);

/** Give back; what was not committed is gone. NULL is allowed. Local. */
void me_outfile_destroy(me_outfile *file);

#endif /* MEMEST_BASE_OUTFILE_H */
