/**
 * @file
 * A file that has no name while it is written: whatever ends its process, SIGKILL
 * too, which no handler sees, nothing of it stays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_OUTFILE_UNNAMED_H
#define MEMEST_BASE_OUTFILE_UNNAMED_H

/**
 * Make one, for its owner to read and write alone. Local.
 *
 * @param beside  the template, in its folder, of the name that it is to be given
 *                with me_outfile_guard_make()
 * @return a descriptor; −1: the system or the folder's file system has no such
 *         files, or gives them no such name
 */
int me_outfile_unnamed(const char *beside);

#endif /* MEMEST_BASE_OUTFILE_UNNAMED_H */
