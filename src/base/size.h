/**
 * @file
 * Sizes that cannot overflow in silence: once a sum or product does not fit
 * into 64 bits the result is ME_SIZE_INVALID, and stays so through every later
 * step, so that a formula reads like the formula and is checked once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_SIZE_H
#define MEMEST_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define ME_SIZE_INVALID UINT64_MAX

/** Has nothing been lost on the way to @p size? */
static inline bool me_size_is_valid(uint64_t size)
{
    return size != ME_SIZE_INVALID;
}

/** a + b, or ME_SIZE_INVALID. */
static inline uint64_t me_size_add(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    const bool is_lost = a == ME_SIZE_INVALID || b == ME_SIZE_INVALID ||
                         __builtin_add_overflow(a, b, &sum);
    return is_lost ? ME_SIZE_INVALID : sum;
}

/** a * b, or ME_SIZE_INVALID. */
static inline uint64_t me_size_mul(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    const bool is_lost = a == ME_SIZE_INVALID || b == ME_SIZE_INVALID ||
                         __builtin_mul_overflow(a, b, &product);
    return is_lost ? ME_SIZE_INVALID : product;
}

/** a / b, rounded up; division by 0 is lost like an overflow. */
static inline uint64_t me_div_up(uint64_t a, uint64_t b)
{
    const bool is_lost = a == ME_SIZE_INVALID || b == 0;
    return is_lost ? ME_SIZE_INVALID : a / b + (a % b != 0);
}

/** The smallest multiple of @p step that is at least @p size. */
static inline uint64_t me_round_up(uint64_t size, uint64_t step)
{
    return me_size_mul(me_div_up(size, step), step);
}

/** The smaller one. */
static inline uint64_t me_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/** The larger one; ME_SIZE_INVALID is larger than all. */
static inline uint64_t me_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif /* MEMEST_BASE_SIZE_H */
