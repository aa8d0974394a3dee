/**
 * @file
 * What files a script's launch means by its words, as its record says them
 * (script/carry.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_LAUNCH_FILES_H
#define MEMEST_APP_LAUNCH_FILES_H

#include "script/script_run.h"

#include <stdbool.h>

/** A variable of a launch that says files, and not what the job has of it? */
bool me_launch_is_of_files(const char *variable);

/** Do two launches of the same words mean the same files by them? What the script
 *  wrote between them may differ, or the folder that they stand in. Local. */
bool me_launch_means_same(const me_script_launch *a, const me_script_launch *b);

#endif /* MEMEST_APP_LAUNCH_FILES_H */
