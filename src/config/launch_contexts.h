/**
 * @file
 * mpirun(1)'s application contexts, which a word `:` parts: each has options and a
 * program of its own, and all of them make one job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_CONTEXTS_H
#define MEMEST_CONFIG_LAUNCH_CONTEXTS_H

#include "base/arena.h"
#include "config/argument_files.h"

/**
 * Make one context of several that start the same words: the first one's options,
 * with the sum of their ranks. Local.
 *
 * @param arena  of the words that it makes
 * @param words  a whole launch command, borrowed; changed on success, if it has
 *               contexts
 * @return ME_OK; ME_ERR_CONFIG where a context does not say its ranks by a number,
 *         or has an option that is not known; ME_ERR_UNSUPPORTED where they start
 *         different words, or another launcher parts them; ME_ERR_NOMEM
 */
me_status me_launch_contexts_join(me_arena *arena, me_argument_words *words,
                                  me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_LAUNCH_CONTEXTS_H */
