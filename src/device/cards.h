/**
 * @file
 * Cards by name: the files of `configs/cards`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DEVICE_CARDS_H
#define MEMEST_DEVICE_CARDS_H

#include "base/str.h"

#include <stdbool.h>

/**
 * The file that @p card means: itself if it is a path (has a slash or ends in
 * `.cfg`), else NAME.cfg in `configs/cards` of the working directory, then of
 * the installation. Local.
 *
 * @param path_out  appended to; the caller gives it back, also on failure
 * @return ME_OK; ME_ERR_CONFIG with the names that there are; ME_ERR_NOMEM
 */
me_status me_card_find(const char *card, me_diag *diag,
                       me_str *path_out) ME_MUST_CHECK;

/**
 * Call @p on_file for the file of every card, those of the working directory
 * first; the order within a directory is by name. Stops at the first true.
 * Local.
 *
 * @return whether one was true
 */
bool me_cards_visit(bool (*on_file)(void *self, const char *name,
                                    const char *path),
                    void *self);

#endif /* MEMEST_DEVICE_CARDS_H */
