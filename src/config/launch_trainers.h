/**
 * @file
 * Commands of trainers that are not read, by their names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_TRAINERS_H
#define MEMEST_CONFIG_LAUNCH_TRAINERS_H

/** What is to be said of a trainer's command in place of reading it, one clause;
 *  NULL: it is no such command. @p word  with or without its path. Local. */
const char *me_trainer_instead(const char *word);

#endif /* MEMEST_CONFIG_LAUNCH_TRAINERS_H */
