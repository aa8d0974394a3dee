/**
 * @file
 * How the attention of each layer communicates under context parallelism: one
 * way for all of them, or a list of words with one for each (`--cp-comm-type`).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_CP_COMM_H
#define MEMEST_MODEL_CP_COMM_H

#include "model/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The next word of a list of layers, which spaces or commas separate.
 *
 * @param at        where to go on, then behind the word; a word that is none of
 *                  me_cp_comm_type_choices, or the end: it points there
 * @param type_out  set where a word was read
 * @return whether one was
 */
bool me_cp_comm_next(const char **at, me_cp_comm_type *type_out);

/** The way of layer @p layer, from 0; of others than the list has, that of all. */
me_cp_comm_type me_cp_comm_of(const me_parallel_config *p, int32_t layer);

/** Has any layer this way? */
bool me_cp_comm_has(const me_parallel_config *p, me_cp_comm_type type);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_MODEL_CP_COMM_H */
