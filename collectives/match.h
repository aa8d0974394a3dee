/**
 * @file
 * Whether ranks make the same calls, by digests; and where they do not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_MATCH_H
#define MEMEST_COLLECTIVES_MATCH_H

#include "collectives/roster.h"

/** Two ranks that disagree. */
typedef struct me_mismatch {
    bool is_found;
    bool is_p2p;
    int ranks[2]; /**< p2p: sender, receiver */
    me_group_kind kind;
    int instance;   /**< which communicator of that kind */
    int32_t offset; /**< p2p: from sender to receiver */
} me_mismatch;

/** The first disagreement, in the order of ranks and kinds. Local. */
me_mismatch me_match(const me_roster *roster);

/**
 * Say what the two ranks do differently. Local.
 *
 * @param logs  of the programs of both ranks
 * @return ME_ERR_MISMATCH
 */
me_status me_mismatch_explain(const me_roster *roster,
                              const me_mismatch *mismatch,
                              const me_call_log *const *logs, me_diag *diag);

#endif /* MEMEST_COLLECTIVES_MATCH_H */
