/**
 * @file
 * Variables in front of srun that its --export does not pass on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_EXPORT_H
#define MEMEST_CONFIG_LAUNCH_EXPORT_H

#include <stdbool.h>

/**
 * Is a variable lost before the job starts: does an srun behind it pass on named
 * variables alone (--export, SRUN_EXPORT_ENV, SLURM_EXPORT_ENV: srun(1))? Local.
 *
 * @param at  of the word `NAME=VALUE`
 */
bool me_launch_export_loses(int argc, const char *const *argv, int at);

#endif /* MEMEST_CONFIG_LAUNCH_EXPORT_H */
