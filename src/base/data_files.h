/**
 * @file
 * Files that come with memest and are asked for by name: NAME.cfg of
 * `configs/models`, `configs/cards`, …, looked up in the working directory first
 * and then where memest is installed (base/data_roots.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_DATA_FILES_H
#define MEMEST_BASE_DATA_FILES_H

#include "base/str.h"

#include <stdbool.h>

/** One kind of such files. */
typedef struct me_data_kind {
    const char *what;   /**< what one of them is, for messages: "card" */
    const char *folder; /**< "configs/cards" */
} me_data_kind;

extern const me_data_kind me_data_models;   /**< jobs and models */
extern const me_data_kind me_data_cards;    /**< graphics cards */
extern const me_data_kind me_data_machines; /**< nodes and their links */

/**
 * The file that @p name means: itself if it looks like a path (has a slash,
 * ends in `.cfg`, `.json`, `.toml`, `.yaml`, `.yml` or `.xml`), else NAME.cfg of
 * the kind's folder, else a file of that very name. Local.
 *
 * @param path_out  appended to; the caller gives it back, also on failure
 * @return ME_OK; ME_ERR_CONFIG with the nearest known name, or all that there
 *         are; ME_ERR_NOMEM
 */
me_status me_data_find(const me_data_kind *kind, const char *name,
                       me_diag *diag, me_str *path_out) ME_MUST_CHECK;

/**
 * Call @p on_file for every file of a kind, those of the working directory
 * first; the order within a directory is by name. Stops at the first true.
 * Local.
 *
 * @param is_done_out  whether one was true
 * @return ME_OK; ME_ERR_NOMEM: there may be files that nobody was called for
 */
me_status me_data_visit(const me_data_kind *kind,
                        bool (*on_file)(void *self, const char *name,
                                        const char *path),
                        void *self, bool *is_done_out) ME_MUST_CHECK;

#endif /* MEMEST_BASE_DATA_FILES_H */
