/**
 * @file
 * `@FILE` among a script's arguments: the words of that file stand in its place,
 * as Python's argparse has it with fromfile_prefix_chars.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_ARGUMENT_FILES_H
#define MEMEST_CONFIG_ARGUMENT_FILES_H

#include "config/config.h"

/** Words of a script. */
typedef struct me_argument_words {
    int argc;
    const char *const *argv; /**< of the job's arena, or what was given */
} me_argument_words;

/**
 * Put in words of files. A line is a word; one that begins with `-` is split at
 * blanks, as scripts with a parser of their own have it, and quotes keep blanks;
 * empty lines and those with `#` in front are none. The job says which files
 * were read, since Megatron-LM's own parser takes none. Local.
 *
 * @param words  borrowed; changed on success
 * @return ME_OK; ME_ERR_IO where there is no such file, ME_ERR_CONFIG for more
 *         words than a job has, ME_ERR_NOMEM
 */
me_status me_argument_files_expand(me_config *config, me_argument_words *words,
                                   me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_ARGUMENT_FILES_H */
