/**
 * @file
 * How the kinds of changes of a job are written down, a file a framework; see
 * run/fit_changes.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_FIT_BUILDER_H
#define MEMEST_RUN_FIT_BUILDER_H

#include "run/fit_changes.h"

/** One job's changes, growing. */
typedef struct me_fit_builder {
    const me_config *config; /**< finished; borrowed */
    bool host_is_short;      /**< what is there must not stay on the host */
    me_fit_changes *to;
    me_fit_change none; /**< what no longer goes in */
} me_fit_builder;

/** A kind of change: adds what there is of it, or nothing. */
typedef struct me_fit_kind {
    void (*add)(me_fit_builder *b); /**< NULL ends a list */
    bool changes_numerics;          /**< losses come out otherwise */
    unsigned needs; /**< ME_FIT_NEEDS_…, of all that it adds */
} me_fit_kind;

/** A change more, without assignments; borrowed until the next one. Local. */
me_fit_change *me_fit_add(me_fit_builder *b, const char *format, ...)
    ME_PRINTF(2, 3);

/** An assignment more, "KEY=VALUE". A change of too many is useless, and the job
 *  refuses what is left of it. Local. */
void me_fit_set(me_fit_change *change, const char *format, ...) ME_PRINTF(2, 3);

/** @name in the order of what they cost; each ends with NULL
 *  @{ */
extern const me_fit_kind me_fit_megatron_kinds[];
extern const me_fit_kind me_fit_torch_kinds[];
extern const me_fit_kind me_fit_torchtitan_kinds[];
/** @} */

#endif /* MEMEST_RUN_FIT_BUILDER_H */
