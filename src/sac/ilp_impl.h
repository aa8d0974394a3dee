/**
 * @file
 * Private to src/sac: the integer programme's parts. A module that is checkpointed
 * gives up a share r of its operations' memory ACM; the first (ACM - IA) / ACM of
 * that frees nothing, since it is what nobody keeps anyway. So the amount that is
 * chosen here is the bytes x that are free in the end, 0 to IA:
 * r = (x + ACM - IA) / ACM.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_ILP_IMPL_H
#define MEMEST_SAC_ILP_IMPL_H

#include "base/arena.h"
#include "sac/ilp.h"

enum {
    ME_SAC_LINES = ME_SAC_SEGMENTS + 1
};

/** Shares by which numbers may differ and be the same: fits of equal modules do,
 *  by 4e-6 in what was recorded of PyTorch. */
#define ME_SAC_TIE 1e-5

/** PyTorch's M, milliseconds: no module may compute longer again. */
#define ME_SAC_MOST_MS 100.0

/** A module that may be checkpointed. */
typedef struct me_sac_candidate {
    uint32_t module;   /**< of the graph */
    uint32_t position; /**< fw_post_order */
    uint32_t last;     /**< candidates to this one lie in it */
    uint32_t kind;
    double act_bytes; /**< IA */
    double all_bytes; /**< ACM, IA at least */
    bool is_forced;   /**< the tool has no way to leave it alone */
    /** Milliseconds for x bytes: base + price x, of the line where it is most;
     *  the first one is 0. */
    uint32_t n_lines;
    double base[ME_SAC_LINES];
    double price[ME_SAC_LINES];
} me_sac_candidate;

/** What all candidates whose forward ends before a position give up together. */
typedef struct me_sac_bound {
    uint32_t position;
    double bytes;
} me_sac_bound;

/** Candidates that can stand for each other: alike themselves and in all that
 *  lies in them, under parents that can. */
typedef struct me_sac_kind {
    uint32_t first; /**< its first candidate */
    uint32_t n_members;
    uint32_t from, to; /**< positions of its first and last member in forward */
} me_sac_kind;

/** A graph and a request, made ready. All but the graph lives in the arena. */
typedef struct me_sac_ilp {
    me_arena *arena; /**< owned */
    const me_sac_graph *graph;
    const me_sac_request *request;
    me_sac_candidate *candidates; /**< in the graph's order */
    uint32_t n_candidates;
    me_sac_bound *needs; /**< at least these, positions and bytes rising */
    uint32_t n_needs;
    me_sac_bound *caps; /**< at most these, positions and bytes rising */
    uint32_t n_caps;
    me_sac_kind *kinds;
    uint32_t n_kinds;
    uint32_t *counts;  /**< members that are chosen of each kind */
    bool *chosen;      /**< candidates */
    double *bytes;     /**< that chosen ones give up */
    double unit_bytes; /**< the largest act_bytes: the solver counts in them */
    double unit_ms;    /**< the longest sac_ms */
    bool is_possible;  /**< false: no choice can keep to PyTorch's M */
} me_sac_ilp;

/** How good a choice of counts is. */
typedef struct me_sac_found {
    bool is_solved;
    double ms;
    double gap; /**< as in me_sac_solution */
} me_sac_found;

/** Make @p p ready. @return ME_OK or ME_ERR_NOMEM; to be given back either way. */
me_status me_sac_ilp_init(me_sac_ilp *p, const me_sac_graph *graph,
                          const me_sac_request *request,
                          me_diag *diag) ME_MUST_CHECK;

void me_sac_ilp_fini(me_sac_ilp *p);

/** Sort candidates into kinds. @param joined false: each is one of its own */
void me_sac_find_kinds(me_sac_ilp *p, bool joined);

/** Find the best counts of each kind, as if its members could change places.
 *  @return ME_OK and as me_milp_solve() */
me_status me_sac_find_counts(me_sac_ilp *p, me_diag *diag,
                             me_sac_found *found_out) ME_MUST_CHECK;

/** Choose the first members of each kind, as many as its count.
 *  @return false where they do not go together */
bool me_sac_choose(me_sac_ilp *p);

/**
 * How many bytes each chosen candidate gives up, so that it takes the least time.
 *
 * @param ms_out  that time
 * @return false where what is chosen cannot do it
 */
bool me_sac_fill(me_sac_ilp *p, double *ms_out);

#endif /* MEMEST_SAC_ILP_IMPL_H */
