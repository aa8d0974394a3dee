/**
 * @file
 * Plays the logs of all classes of ranks against one another, as NCCL would
 * run them, until all have ended or none can go on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_CALL_REPLAY_H
#define MEMEST_COLLECTIVES_CALL_REPLAY_H

#include "collectives/classes.h"
#include "collectives/lanes.h"
#include "collectives/roster.h"

/** The classes whose collectives on a communicator end together. */
typedef struct me_party {
    int *classes; /**< borrowed from the replay */
    int *comms;   /**< the communicator in each class's program */
    int count;
    int n_last;     /**< classes that have begun no more than `ended` */
    uint32_t ended; /**< collectives that all classes have begun */
} me_party;

/** Who is at the other end of a channel. */
typedef struct me_partner {
    int class;
    uint32_t channel;
} me_partner;

/** Where one class is. Arrays are borrowed from the replay. */
typedef struct me_runner {
    const me_lanes *lanes; /**< of its program */
    uint32_t *cursor;      /**< of each lane: steps that have ended */
    uint32_t *begun;       /**< of each stream: step that has begun + 1 */
    uint32_t *resume;      /**< of each stream: that step's next call */
    uint32_t *made;        /**< of each communicator: collectives begun */
    uint32_t *sent;        /**< of each channel: calls begun */
    int *party;            /**< of each communicator */
    me_partner *partners;  /**< of each channel */
    bool is_queued;
} me_runner;

typedef struct me_call_replay {
    const me_roster *roster;
    const me_classes *classes;
    me_lanes *lanes; /**< of each program */
    me_runner *runners;
    me_party *parties;
    int n_parties;
    int *queue; /**< classes to look at: a ring */
    int queue_head;
    int queue_length;
    void **blocks; /**< everything else that is owned */
    size_t n_blocks;
    size_t block_capacity;
} me_call_replay;

/**
 * Get ready. Local.
 *
 * @param logs        of all programs that ranks run
 * @param replay_out  to be given back with me_call_replay_fini(), also on failure
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_call_replay_init(const me_roster *roster,
                              const me_classes *classes,
                              const me_call_log *const *logs,
                              me_call_replay *replay_out);

/** Give back what the replay holds; all zero is allowed. Local. */
void me_call_replay_fini(me_call_replay *replay);

/** Play. @return have all classes ended? Local. */
bool me_call_replay_run(me_call_replay *replay);

/** The step at the head of @p lane, or UINT32_MAX if it has ended. Local. */
uint32_t me_runner_head(const me_runner *runner, uint32_t lane);

/** May the call end now, as far as the others are concerned? Local. */
bool me_call_replay_can_end(const me_call_replay *replay,
                            const me_runner *runner, const me_call *call);

/**
 * Say which ranks wait for which. Local.
 *
 * @param replay  after me_call_replay_run() returned false
 * @return ME_ERR_MISMATCH, ME_ERR_NOMEM
 */
me_status me_call_replay_explain(const me_call_replay *replay, me_diag *diag);

#endif /* MEMEST_COLLECTIVES_CALL_REPLAY_H */
