/**
 * @file
 * Where a script says what a launch's flag has: the line of the flag, and the one
 * that sets the variable behind it. The shell has run the script already; here its
 * text is only looked at, so what it puts together itself is not found.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_SCRIPT_LINE_H
#define MEMEST_APP_SCRIPT_LINE_H

#include "base/str.h"

/**
 * Append `train.sh:46: --tokenizer-model $HF; line 12: HF=`, or nothing where the
 * flag is not seen; of a variable that `read` takes from the script's input, which
 * is empty, that line. Local.
 *
 * @param name  of the script
 * @param text  of it
 * @param flag  with its dashes; ends at a blank, a colon or a comma
 */
void me_script_line_append(const char *name, const char *text, const char *flag,
                           me_str *line);

#endif /* MEMEST_APP_SCRIPT_LINE_H */
