/**
 * @file
 * Models by name: the files of `configs/models`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MODELS_H
#define MEMEST_CONFIG_MODELS_H

#include "base/str.h"

/**
 * The file that @p model means: itself if it is a path (has a slash, ends in
 * `.cfg` or `.json`, or exists), else NAME.cfg in `configs/models` of the working
 * directory, then of the installation. Local.
 *
 * @param path_out  appended to; the caller gives it back, also on failure
 * @return ME_OK; ME_ERR_CONFIG with the nearest known name; ME_ERR_NOMEM
 */
me_status me_model_find(const char *model, me_diag *diag,
                        me_str *path_out) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MODELS_H */
