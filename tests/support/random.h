/**
 * @file
 * Random cases for property tests, the same on every machine. A property is a
 * function that takes a generator and returns NULL or what is wrong; a failure
 * names the seed, and ME_TEST_SEED=seed runs that one case again. ME_TEST_CASES=n
 * checks each property of a test on that many.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_RANDOM_H
#define MEMEST_TESTS_SUPPORT_RANDOM_H

#include "support/test.h"

#include <stdlib.h>

/** A generator (splitmix64); any seed is good. */
typedef struct me_random {
    uint64_t state;
} me_random;

/** A property: NULL if it holds for what @p random makes. */
typedef const char *me_property(me_random *random);

static inline uint64_t me_random_next(me_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** A number from @p low to @p high, both included. */
static inline int32_t me_random_in(me_random *random, int32_t low, int32_t high)
{
    const uint64_t span = (uint64_t)((int64_t)high - low) + 1;
    return (int32_t)(low + (int64_t)(me_random_next(random) % span));
}

/** Does @p property hold for this seed? Fails the test if not. */
static inline void me_property_check(me_property *property, uint64_t seed)
{
    me_random random = {seed};
    const char *wrong = property(&random);
    if (wrong != NULL) {
        fail_msg("%s (ME_TEST_SEED=%llu)", wrong, (unsigned long long)seed);
    }
}

/** How many cases somebody asks for; else @p cases. */
static inline uint64_t me_random_cases(uint64_t cases)
{
    const char *given = getenv("ME_TEST_CASES");
    return given != NULL ? strtoull(given, NULL, 10) : cases;
}

/* A sanitizer looks for what every case would show, and takes ten times as long:
 * there one seed of four. */
#ifdef __SANITIZE_ADDRESS__
#    define ME_SEED_STEP 4
#else
#    define ME_SEED_STEP 1
#endif

/** Check a property on seeds 1 to @p cases, or on ME_TEST_SEED alone. */
static inline void me_property_run(me_property *property, uint64_t cases)
{
    const char *given = getenv("ME_TEST_SEED");
    if (given != NULL) {
        me_property_check(property, strtoull(given, NULL, 10));
        return;
    }
    const uint64_t last = me_random_cases(cases);
    for (uint64_t seed = 1; seed <= last; seed += ME_SEED_STEP) {
        me_property_check(property, seed);
    }
}

#endif /* MEMEST_TESTS_SUPPORT_RANDOM_H */
