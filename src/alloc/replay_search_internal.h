/**
 * @file
 * What the search's files share: its state, choices, and whom to blame. Nobody
 * else includes this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_REPLAY_SEARCH_INTERNAL_H
#define MEMEST_ALLOC_REPLAY_SEARCH_INTERNAL_H

#include "alloc/id_map.h"
#include "alloc/replay_order.h"
#include "alloc/replay_search.h"

enum {
    MAX_SEGMENTS = 4096,
    MAX_DECISIONS = 4096,
    MAX_EQUAL = 256, /* as the pool shows at most */
    MOST_CHECKPOINTS = 64,
    WORD_BITS = 64
};

/** A segment. */
typedef struct segment {
    uint64_t address;
    uint32_t number; /**< in the order in which they were taken */
} segment;

/** The block of an id. */
typedef struct live {
    uint32_t id;
    me_pool_block block;
    uint32_t epoch; /**< of its free, once requested */
    bool is_live;
    bool is_pending;
} live;

/** A change of where an id is. */
typedef struct move {
    uint32_t id;
    uint64_t before; /**< 0: it was not known */
} move;

/** Decisions, a bit each. */
typedef struct decision_set {
    uint64_t words[MAX_DECISIONS / WORD_BITS];
} decision_set;

/** Of several blocks that nothing tells apart one was taken. */
typedef struct decision {
    uint32_t call;
    uint32_t n_open;
    uint32_t taken;          /**< of the open ones; those before it failed */
    uint32_t *open_segments; /**< numbers; owned */
    decision_set conflict;   /**< decisions that those failed by */
} decision;

/** The state before a call, to go back to. */
typedef struct checkpoint {
    uint32_t call;
    uint32_t n_made;
    uint32_t n_rules;
    uint32_t n_moves;
    uint32_t n_chosen;
    uint32_t n_returned;
    uint32_t n_segments;
    uint32_t n_numbers;
    uint32_t n_lives;
    uint32_t n_pending;
    uint32_t quiet_call;
    uint32_t quiet_chosen;
    me_pool *pool;     /**< owned, as what follows */
    live *lives;       /**< of live ids */
    segment *segments; /**< by address */
} checkpoint;

typedef struct me_search {
    const me_replay_calls *calls;
    me_search_result *result;
    me_pool *pool;
    me_order *order;  /**< a rule's reason is the call that it follows from */
    live *lives;      /**< of each id */
    uint64_t *places; /**< of each id its address; 0: not known */
    me_id_map owned;  /**< addresses that have an id */
    move *moves;      /**< of places, to be undone */
    uint32_t n_moves;
    uint32_t move_capacity;
    segment segments[MAX_SEGMENTS]; /**< by address */
    uint32_t n_segments;
    uint32_t n_numbers;  /**< segments so far, those that went back included */
    decision *decisions; /**< in the order of calls */
    uint32_t n_decisions;
    uint32_t n_made; /**< of them, by the calls up to the one at hand */
    uint16_t *chosen;
    uint32_t n_chosen;
    uint32_t chosen_capacity;
    uint32_t n_returned; /**< ids that came back where they had been */
    uint32_t n_fixed; /**< choices that are no longer in question: those of the
                         result so far */
    checkpoint checkpoints[MOST_CHECKPOINTS];
    uint32_t n_checkpoints;
    uint32_t call;       /**< at hand */
    uint32_t n_lives;    /**< ids that have a block */
    uint32_t n_pending;  /**< frees that were requested and did not complete */
    uint32_t quiet_call; /**< the last one before which there were none */
    uint32_t quiet_chosen;    /**< choices up to it */
    uint64_t expected;        /**< where its id is; 0: not known */
    uint64_t given;           /**< where the pool put it */
    uint32_t best_quiet_call; /**< these two of what agrees with most calls */
    uint32_t best_quiet_chosen;
    uint32_t n_jumps;     /**< back, since the search last got further */
    uint32_t released_at; /**< calls that agreed before the last release */
    uint32_t sure_calls;  /**< calls, choices, before the first one */
    uint32_t sure_chosen;
    uint32_t n_fixed_before; /**< the last release */
    bool is_thorough;        /**< no more releases, but many jumps */
    bool is_conflict;        /**< it contradicts */
    bool is_lost;            /**< a request for host memory found none */
    bool is_full;            /**< too many segments or decisions */
    decision_set blame; /**< decisions that a contradiction can come from */
} me_search;

/** Number of the segment that holds an address. */
uint32_t me_search_segment(const me_search *s, uint64_t address);

/** Whether an id was at this address. */
bool me_search_is_owned(const me_search *s, uint64_t address);

/** The pool's hook: which of equal blocks, lowest address first, served the call
 * at hand. */
size_t me_search_choose(void *self, const uint64_t *addresses, size_t n);

/** The call at hand contradicts, and a block at this address has to do with
 *  it. */
void me_search_blame(me_search *s, uint64_t address);

/** Take another block at the last decision that is to blame and has one; false:
 * there is none. */
bool me_search_decide_anew(me_search *s);

/** The same at the last decision that has another one, to blame or not. */
bool me_search_decide_last(me_search *s);

/** Only the first @p n decisions stay. */
void me_search_drop_decisions(me_search *s, uint32_t n);

/** An id is at this address from now on; 0: nobody knows where. */
void me_search_move_id(me_search *s, uint32_t id, uint64_t address);

/** Whether it is time to keep the state before the call at hand. */
bool me_search_is_checkpoint_due(const me_search *s);

/** Keep it. */
me_status me_search_keep_checkpoint(me_search *s) ME_MUST_CHECK;

/** The state of the last checkpoint at or before a call. */
me_status me_search_go_back(me_search *s, uint32_t call) ME_MUST_CHECK;

/** Give all checkpoints back. */
void me_search_drop_checkpoints(me_search *s);

#endif /* MEMEST_ALLOC_REPLAY_SEARCH_INTERNAL_H */
