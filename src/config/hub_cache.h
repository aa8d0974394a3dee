/**
 * @file
 * Models of Hugging Face's Hub that lie in its cache on this machine, as
 * huggingface_hub keeps them (constants.py, file_download.py):
 * CACHE/models--ORG--NAME/snapshots/REVISION. The network is never asked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_HUB_CACHE_H
#define MEMEST_CONFIG_HUB_CACHE_H

#include "base/str.h"
#include "config/config.h"

#include <stdbool.h>

/** Variables of a job's environment, before the process's own. */
typedef struct me_hub_environment {
    const char *(*variable)(const void *self, const char *name);
    const void *self;
} me_hub_environment;

/** The environment of a job whose launch command was read so far; @p config is
 *  borrowed. Local. */
me_hub_environment me_hub_environment_of(const me_config *config);

/** Does a variable say where the cache is? Local. */
bool me_hub_is_variable(const char *name);

/** Append the folder in which Hugging Face's programs keep what is theirs, if it
 *  is known; else nothing. Local. @param environment  NULL: the process's alone */
void me_hub_home(const me_hub_environment *environment, me_str *path);

/**
 * Append the folder of the model @p name, if it could be one of the Hub's and is
 * in the cache; else nothing. Local.
 *
 * @param environment  NULL: the process's alone
 * @param path         empty before
 */
void me_hub_cached(const char *name, const me_hub_environment *environment,
                   me_str *path);

#endif /* MEMEST_CONFIG_HUB_CACHE_H */
