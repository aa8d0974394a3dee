/**
 * @file
 * The candidates of a search: every combination of words of a space's axes,
 * under each schedule that is asked for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_CANDIDATES_H
#define MEMEST_SEARCH_CANDIDATES_H

#include "run/variant.h"
#include "search/space.h"

/** What no rank takes less than, and no step is faster than; 0: not known. */
typedef struct me_search_bound {
    uint64_t bytes;
    int64_t step_ns;
} me_search_bound;

/** X(constant, name, what became of a candidate). */
#define ME_SEARCH_END_LIST(X)                                                  \
    X(ME_SEARCH_UNDECIDED, "undecided", "left undecided")                      \
    X(ME_SEARCH_REFUSED, "refused", "refused by the framework")                \
    X(ME_SEARCH_TOO_LARGE, "too_large", "too large by their bounds")           \
    X(ME_SEARCH_BEHIND, "behind", "behind others by their bounds")             \
    X(ME_SEARCH_SIMULATED, "simulated", "simulated")

typedef enum me_search_end {
#define ME_SEARCH_ENUM(constant, name, what) constant,
    ME_SEARCH_END_LIST(ME_SEARCH_ENUM)
#undef ME_SEARCH_ENUM
    ME_SEARCH_ENDS
} me_search_end;

/** The name, and what it is; static. Local. */
const char *me_search_end_name(me_search_end end);
const char *me_search_end_text(me_search_end end);

/** X(type, member): what a simulation gives of a candidate, a row of `memest
 *  compare`; all of it are whole numbers. */
#define ME_SEARCH_RESULT_LIST(X)                                               \
    X(int32_t, risk)            /* me_risk */                                  \
    X(int32_t, basis)           /* me_basis, of worst and capacity */          \
    X(bool, fits)               /* or the card's memory is not known */        \
    X(bool, is_open)            /* what is left out may be of any size */      \
    X(bool, is_lower_step)      /* a part of the host's time is not in it */   \
    X(int32_t, worst_rank)      /* lowest with most bytes of the basis */      \
    X(uint64_t, worst_bytes)    /* of it, in its whole life */                 \
    X(uint64_t, capacity_bytes) /* 0: not known */                             \
    X(uint64_t, requested_bytes)                                               \
    X(uint64_t, allocated_bytes)                                               \
    X(uint64_t, reserved_bytes)                                                \
    X(uint64_t, device_bytes)                                                  \
    X(int64_t, step_ns) /* 0: not predicted */                                 \
    X(int64_t, forward_backward_ns)                                            \
    X(int64_t, bubble_ns)                                                      \
    X(int64_t, exposed_ns)                                                     \
    X(uint64_t, step_tokens) /* that a step trains on; 0: nobody says */

typedef struct me_search_result {
#define ME_SEARCH_MEMBER(type, member) type member;
    ME_SEARCH_RESULT_LIST(ME_SEARCH_MEMBER)
#undef ME_SEARCH_MEMBER
} me_search_result;

typedef struct me_candidate {
    char *assignments; /**< "KEY=VALUE,…", as --variant takes them; owned */
    char *layout;      /**< short: "tp=8 pp=4"; owned */
    const me_schedule_choice *choice; /**< borrowed */
    int32_t world;
    me_search_bound bound;
    me_search_end end;
    me_search_end known; /**< what it will be without being simulated, by a log;
                              UNDECIDED: nobody knows */
    char *reason;        /**< of what is refused; owned */
    me_search_result result;
    bool is_screened;   /**< its bounds are what stands for its stages */
    bool is_like;       /**< an earlier candidate is the very same job */
    uint32_t next_like; /**< the next candidate that is; 0: none */
} me_candidate;

/** Jobs that show a part of what a candidate takes (search/probe.h). */
typedef enum me_probe_kind {
    ME_PROBE_LAYER, /**< what one of its layers takes */
    ME_PROBE_PLACE, /**< what its ranks hold beside their allocators */
    ME_PROBE_KINDS
} me_probe_kind;

/** In place of a number of layers. */
enum {
    ME_PROBE_REST = 0, /**< of kinds that the probe is not of */
    ME_PROBE_END = -1  /**< one, as the last stage of a pipeline has it */
};

typedef struct me_candidates {
    const me_schedule_choice *choices; /**< borrowed; n_choices of them */
    size_t n_choices;
    me_candidate *items; /**< owned */
    uint32_t count;
    uint32_t capacity;
} me_candidates;

/**
 * Enumerate. The order is that of the axes, the last one fastest. Local.
 *
 * @param candidates  empty but for its choices, for me_candidates_fini(), also
 *                    on failure
 * @return ME_OK; ME_ERR_CONFIG for too many; ME_ERR_NOMEM
 */
me_status me_candidates_fill(const me_space *space, const me_config *job,
                             me_diag *diag,
                             me_candidates *candidates) ME_MUST_CHECK;

/** Give back. Local. */
void me_candidates_fini(me_candidates *candidates);

/**
 * The job of a candidate, finished. Local.
 *
 * @param config_out  owned by the caller
 * @return ME_OK; ME_ERR_CONFIG and what else the framework refuses it with;
 *         ME_ERR_NOMEM
 */
me_status me_candidate_finish(const me_candidate *candidate,
                              const me_config *job, me_diag *diag,
                              me_config **config_out) ME_MUST_CHECK;

/**
 * Append the launch command's flags that make the candidate, as
 * me_paste_append_flags(); none of plain PyTorch's. Local.
 *
 * @param config  its job, finished
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_candidate_flags(const me_candidate *candidate,
                             const me_config *config, me_diag *diag,
                             me_str *text) ME_MUST_CHECK;

/**
 * What candidates with the same probe of a kind have in common. Local.
 *
 * @param has_out  whether it has such a probe
 * @param key      appended to where it has; never without a text then
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_candidate_probe_key(const me_candidate *candidate,
                                 const me_config *job, me_probe_kind kind,
                                 me_diag *diag, bool *has_out,
                                 me_str *key) ME_MUST_CHECK;

/** What candidates have in common that are the very same job if their layers are
 *  (me_probes_find_like()). @return as me_candidate_probe_key() */
me_status me_candidate_like_key(const me_candidate *candidate,
                                const me_config *job, me_diag *diag,
                                me_str *key) ME_MUST_CHECK;

/** The job of its probe, not finished; as me_candidate_finish(). Local.
 *  @param n_layers  of a layer's; or what stands in its place */
me_status me_candidate_probe(const me_candidate *candidate,
                             const me_config *job, me_probe_kind kind,
                             int32_t n_layers, me_diag *diag,
                             me_config **config_out) ME_MUST_CHECK;

/** Is a failure the candidate's own, a reason to be told? Local. */
bool me_candidate_is_reason(me_status status);

#endif /* MEMEST_SEARCH_CANDIDATES_H */
