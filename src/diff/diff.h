/**
 * @file
 * `memest diff`: what a prediction and a real run, or two predictions, differ
 * in: rank by rank, and where both sources have it by category, phase, module
 * and block.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DIFF_DIFF_H
#define MEMEST_DIFF_DIFF_H

#include "base/str.h"
#include "diff/profile.h"

/** A rank of both. Borrowed from the profiles. */
typedef struct me_diff_pair {
    int32_t rank;
    const me_profile_rank *a;
    const me_profile_rank *b;
} me_diff_pair;

/** Where the allocations and frees of a prediction's last iteration stand in
 *  the other's trace. */
typedef struct me_diff_calls {
    bool is_known;         /**< both have traces, one says where it is */
    bool is_of_b;          /**< the iteration is of the second one */
    const char *iteration; /**< its name; borrowed */
    uint32_t n_calls;      /**< of the iteration */
    uint32_t n_equal;      /**< so many of them stand there in one go */
    uint32_t at;           /**< from this allocation or free on, from 1 */
    int64_t wanted;        /**< bytes of the first that does not */
    int64_t found;         /**< what stands there in its place; 0: the end */
} me_diff_calls;

typedef struct me_diff {
    const me_profile *a;
    const me_profile *b;
    me_diff_pair *pairs; /**< by rank; owned */
    uint32_t n_pairs;
    const me_profile *guessed; /**< does not say whose memory it shows, and is
                                    taken for that of rank 0 of several; NULL */
    uint32_t n_alone[2];       /**< ranks that only one of them has */
    uint64_t largest_bytes;    /**< of all quantities, beyond what is rounded */
    me_diff_calls calls;
} me_diff;

/**
 * Compare two profiles, which have to outlive the result. Local.
 *
 * @param rank      whose memory a source shows that does not say it; -1: the
 *                  only rank of the other one, or 0
 * @param diff_out  for me_diff_fini()
 * @return ME_OK; ME_ERR_CONFIG where nothing can be compared; ME_ERR_NOMEM
 */
me_status me_diff_init(const me_profile *a, const me_profile *b, int32_t rank,
                       me_diag *diag, me_diff *diff_out) ME_MUST_CHECK;

void me_diff_fini(me_diff *diff);

/** By how much two numbers differ beyond their rounding, in bytes. */
uint64_t me_diff_beyond(const me_diff *diff, uint64_t a, uint64_t b);

/** A part of two ranks. */
typedef struct me_part_pair {
    const me_part *a; /**< NULL: only the other one has it */
    const me_part *b;
} me_part_pair;

/** Parts of a division of both ranks that differ, by their bytes, the largest
 *  difference first. @return ME_OK; ME_ERR_NOMEM; the list is the caller's */
me_status me_diff_parts(const me_diff_pair *pair, me_division division,
                        me_part_pair **pairs_out,
                        uint32_t *n_out) ME_MUST_CHECK;

/** The one of the two that a pair is named after: the one that has more, since
 *  blocks of one size bear a name of their own in each source. Borrowed. */
const me_part *me_part_named(const me_part_pair *pair);

/** Bytes of the second less those of the first. */
int64_t me_part_change(const me_part_pair *pair);

/** The rank whose parts the text shows: that with the largest difference. */
const me_diff_pair *me_diff_worst(const me_diff *diff);

/** Append it. @return ME_OK, ME_ERR_NOMEM */
me_status me_diff_text(const me_diff *diff, me_str *text) ME_MUST_CHECK;
me_status me_diff_json(const me_diff *diff, me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_DIFF_DIFF_H */
