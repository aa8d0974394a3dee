/**
 * @file
 * Simulations under a little less and a little more memory than there is: a
 * rank's bytes may be off by the verdict's band, so the report also says how
 * the rank would end a band lower and a band higher.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_MARGIN_H
#define MEMEST_RUN_MARGIN_H

#include "run/simulate.h"

/** Bytes more, or less where negative, than the allocator may hold and than
 *  the card has. */
#define ME_MARGIN_ENDLESS INT64_MAX /* of the card: there is no limit at all */

typedef struct me_margin {
    int64_t limit_bytes;
    int64_t card_bytes;
} me_margin;

/** What a rank held at most, in a simulation without limits. */
typedef struct me_footprint {
    uint64_t reserved_bytes;
    uint64_t outside_bytes; /**< of the allocator, on the card */
    uint64_t timing_bytes;  /**< see me_compile_timing_bytes() */
} me_footprint;

/** A band of a rank with this result. Local. */
me_margin me_margin_more(const me_config *config, const me_rank_result *result);

/** me_margin_more() with the signs turned. Local. */
me_margin me_margin_less(const me_config *config, const me_rank_result *result);

/** @p bytes and @p more, at least 1; an unlimited amount stays so. Local. */
uint64_t me_margin_apply(uint64_t bytes, int64_t more);

/**
 * Would a limit change nothing? Without one neither the pool nor what lies
 * outside ever shrinks, so that the end is the most that was there at once.
 * Local.
 */
bool me_margin_fits(const me_simulation *simulation,
                    const me_footprint *footprint, me_margin margin);

/**
 * Would a rank die under a limit for certain, also with a band and all that
 * timings of kernels ask for more? What lives at once cannot be held in less
 * than its bytes, whatever is cached, and nothing that was freed waits for
 * another stream when a request raises that. Local.
 *
 * @param footprint  of the run without limits that @p result is of
 */
bool me_margin_is_hopeless(const me_simulation *simulation,
                           const me_footprint *footprint,
                           const me_rank_result *result);

#endif /* MEMEST_RUN_MARGIN_H */
