/**
 * @file
 * What a part of a candidate takes, shown by a small job, so that bounds need not
 * be far. What one layer takes: a job of one layer and one of two, without
 * allocator, pipeline or other copies, told apart. What ranks hold beside their
 * allocators: a job of one layer a stage. Candidates with the same layers, however
 * many, wherever they stand, or with the same groups, share a probe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_PROBE_H
#define MEMEST_SEARCH_PROBE_H

#include "collectives/digest.h"
#include "run/job_card.h"
#include "search/candidates.h"

/** What a probe of a kind does not show is zero. Of a layer the least of the
 *  micro-batches of a step: the first one may make what the others have, and lack
 *  what they add to. */
typedef struct me_probe {
    int64_t
        forward_ns; /**< of a layer: kernels, and the collectives of its ranks
                             that kernels wait for: at once,
                             or beyond what runs meanwhile */
    int64_t backward_ns; /**< likewise, with what is recomputed */
    int64_t ends_ns;     /**< of embedding, head and loss together, both ways */
    int64_t head_ns;     /**< of head and loss alone */
    int64_t host_ns;     /**< of the host, for a layer both ways */
    int64_t host_ends_ns; /**< of the host, beside that of layers */
    int64_t
        collectives_ns; /**< of a layer's ranks, both ways, also of those that
                                 kernels do not wait for */
    uint64_t lasting_bytes; /**< of a layer, beside micro-batches: weights,
                                 gradients, and states as if nobody shared them */
    uint64_t held_bytes;  /**< that a layer's forward leaves for its backward */
    uint64_t kept_bytes;  /**< of them, what the next one's forward leaves as
                                 well: modules keep some until then */
    uint64_t spike_bytes; /**< at most, beside that of all layers, while none of
                               it is given back: of head and loss */
    me_digest digest; /**< of all that a rank allocates, frees and launches */
    uint64_t
        outside_bytes; /**< of the card beside the allocator's, on the first
                                 or the last stage, whichever are fewer */
} me_probe;

/** The probes of a search, of one kind. */
typedef struct me_probes {
    me_probe_kind kind;
    char **keys; /**< what candidates of a probe have in common; owned */
    me_probe *items;
    uint32_t *first; /**< a candidate of each */
    uint32_t count;
    uint32_t *of; /**< of each candidate; UINT32_MAX: none; owned */
} me_probes;

/**
 * Find out which candidates share a probe: those that are undecided, and that
 * their framework says how to probe. Local.
 *
 * @param probes  empty but for its kind, for me_probes_fini()
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_probes_find(const me_candidates *candidates, const me_config *job,
                         me_diag *diag, me_probes *probes) ME_MUST_CHECK;

/**
 * Find candidates that are the very same job: what they recompute changes nothing
 * that their layers do, as that of a norm which is part of a linear layer. Local.
 *
 * @param probes  of layers, with what they have shown
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_probes_find_like(const me_probes *probes, const me_config *job,
                              me_diag *diag,
                              me_candidates *candidates) ME_MUST_CHECK;

/** Give back. Local. */
void me_probes_fini(me_probes *probes);

/**
 * Run a probe. One that cannot run knows nothing. Local.
 *
 * @param candidate  one that has it
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_probe_run(const me_candidate *candidate, const me_config *job,
                       me_probe_kind kind, const me_job_card *card,
                       me_diag *diag, me_probe *probe_out) ME_MUST_CHECK;

#endif /* MEMEST_SEARCH_PROBE_H */
