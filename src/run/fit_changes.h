/**
 * @file
 * What could be changed of a job so that it takes less memory, at the same world
 * size and global batch: one row a kind of change, those first that cost least
 * of a step's time, those last that change what is computed. Nothing is said
 * here about whether a job takes a change, or what it saves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_FIT_CHANGES_H
#define MEMEST_RUN_FIT_CHANGES_H

#include "run/variant.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_FIT_CHANGES_MAX = 96,
    ME_FIT_TEXT = 1600 /**< of a variant: a layout is as long as a pipeline */
};

/** What a change is of no use without, or-ed: with another change that takes it
 *  away, it would say nothing. */
enum {
    ME_FIT_NEEDS_SHARDS = 1, /**< several ranks that hold the same parameters */
    ME_FIT_NEEDS_TENSOR = 2, /**< several tensor ranks */
    ME_FIT_NEEDS_STAGES = 4  /**< several stages */
};

/** A change, or several together. */
typedef struct me_fit_change {
    char name[ME_VARIANT_NAME]; /**< "micro-batch 1" */
    char sets[ME_FIT_TEXT];     /**< "KEY=VALUE,…" */
    bool changes_numerics;      /**< losses come out otherwise */
    unsigned needs;             /**< ME_FIT_NEEDS_… */
} me_fit_change;

/** In the order of what they cost. */
typedef struct me_fit_changes {
    me_fit_change items[ME_FIT_CHANGES_MAX];
    int32_t count;
} me_fit_changes;

/**
 * Everything that the table proposes for a job. Local.
 *
 * @param config         finished
 * @param host_is_short  its ranks keep more in a host's memory than it has: what
 *                       takes less of that comes first
 */
void me_fit_changes_propose(const me_config *config, bool host_is_short,
                            me_fit_changes *changes_out);

/**
 * Both of two changes. Local.
 *
 * @return false where they set one option to two values, where one of them says
 *         all that the other does, or where the text would be too long
 */
bool me_fit_changes_join(const me_fit_change *a, const me_fit_change *b,
                         me_fit_change *both_out);

/** Whether everything that a change sets is of use. Local.
 *
 *  @param config  finished, with the change */
bool me_fit_change_is_of_use(const me_fit_change *change,
                             const me_config *config);

/** The variant of a change, with what has to be said so that world size and
 *  global batch stay: "NAME:KEY=VALUE,…". Local.
 *
 *  @param config  finished, without the change
 *  @return false where it is too long */
bool me_fit_change_variant(const me_fit_change *change, const me_config *config,
                           char text[ME_FIT_TEXT]);

#endif /* MEMEST_RUN_FIT_CHANGES_H */
