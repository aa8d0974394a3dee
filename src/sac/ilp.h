/**
 * @file
 * Which modules of a model to checkpoint selectively, and what share of each
 * one's activations to give up, so that the peak fits a budget and the least is
 * computed twice: the integer programme of torch/distributed/_tools/sac_ilp.py
 * (sac_milp()).
 *
 * PyTorch takes any choice within a twentieth of the best; this is the best. Of
 * choices whose times differ by less than a hundred-thousandth it has fewest
 * modules, and then the earliest; of these the earlier gives up more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_ILP_H
#define MEMEST_SAC_ILP_H

#include "sac/graph.h"

typedef struct me_sac_request {
    double budget_gib;             /**< GiB that a rank may take */
    uint32_t world_size;           /**< ranks that parameters and gradients are
                                       spread over; 1 at least */
    const char *const *ac_units;   /**< names of the only modules that may be
                                       checkpointed */
    uint32_t n_ac_units;           /**< 0: all may be */
    const char *const *fsdp_units; /**< names of modules that none which is
                                        checkpointed may hold */
    uint32_t n_fsdp_units;
} me_sac_request;

typedef struct me_sac_decision {
    uint32_t module; /**< of the graph */
    double ratio;    /**< of its memory that is given up, to 4 digits */
} me_sac_decision;

typedef struct me_sac_solution {
    bool is_optimal;     /**< false: no choice keeps to the budget */
    double recompute_ms; /**< to 2 digits; 0 if there is no choice */
    int64_t peak_bytes;  /**< that the peak does not exceed: the budget; -1 if
                              there is no choice */
    double gap;          /**< 0; of a model too large to prove that nothing is
                              better: by which share of its time, at most */
    uint32_t n_decisions;
    me_sac_decision decisions[]; /**< in the order of the graph */
} me_sac_solution;

/**
 * Decide what to checkpoint in @p graph. Modules whose operations take no memory
 * stay as they are (PyTorch divides by zero). A module whose operations take less
 * than its forward leaves behind is said in a warning. Local.
 *
 * @param solution_out  to be given back by me_free()
 * @return ME_OK, also where no choice keeps to the budget; ME_ERR_NOMEM;
 *         ME_ERR_UNSUPPORTED without the solver's library
 */
me_status me_sac_ilp_solve(const me_sac_graph *graph,
                           const me_sac_request *request, me_diag *diag,
                           me_sac_solution **solution_out) ME_MUST_CHECK;

#endif /* MEMEST_SAC_ILP_H */
