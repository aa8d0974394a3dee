/**
 * @file
 * A running 128-bit digest of a sequence of words: equal sequences have equal
 * digests, and different ones differ but for chance (two independent lanes of
 * SplitMix64's finalizer). It guards against bugs, not against forgery.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_DIGEST_H
#define MEMEST_COLLECTIVES_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

/** The digest of the words so far; all zero is that of none. */
typedef struct me_digest {
    uint64_t a;
    uint64_t b;
} me_digest;

/** SplitMix64's finalizer: a permutation of the 64-bit words. Local. */
static inline uint64_t me_digest_mix(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/** Append @p word. Local. */
static inline void me_digest_add(me_digest *digest, uint64_t word)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    digest->a = me_digest_mix((digest->a ^ word) + golden);
    digest->b =
        me_digest_mix((digest->b + (word << 32 | word >> 32)) ^ ~golden);
}

/** Append three words that belong together: as good as one by one, but for chance,
 *  in the time of one. Local. */
static inline void me_digest_add_three(me_digest *digest, uint64_t x,
                                       uint64_t y, uint64_t z)
{
    me_digest odd = {x + y * UINT64_C(0xd1342543de82ef95) +
                         z * UINT64_C(0xaf251af3b0f025b5),
                     x * UINT64_C(0xda942042e4dd58b5) +
                         y * UINT64_C(0x9fb21c651e98df25) + z};
    digest->a = me_digest_mix((digest->a ^ odd.a) + ~odd.b);
    digest->b = me_digest_mix((digest->b + odd.b) ^ odd.a);
}

/** Same words in the same order, as far as 128 bits tell? */
static inline bool me_digest_is_equal(me_digest x, me_digest y)
{
    return x.a == y.a && x.b == y.b;
}

#endif /* MEMEST_COLLECTIVES_DIGEST_H */
