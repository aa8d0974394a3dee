/**
 * @file
 * What was measured of one job: a case file, read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_ACCURACY_FACTS_H
#define MEMEST_TESTS_ACCURACY_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FACTS_WORDS = 256, /**< of the launch command */
    FACTS_SETS = 8,
    FACTS_RANKS = 8,
    FACTS_POINTS = 32
};

/** Requested bytes at a named moment: then, and the most since the one before;
 *  when every free completes at the allocation that follows its request. */
typedef struct facts_point {
    const char *name;
    uint64_t now;
    uint64_t peak;
    uint64_t measured_now;
    uint64_t measured_peak;
    bool is_compiling; /**< torch.compile took memory for itself before it */
    bool is_stand_in;  /**< NCCL would have held more */
} facts_point;

typedef struct facts_rank {
    int32_t rank;
    uint64_t parameters; /**< elements */
    uint64_t modules;    /**< that have parameters of their own */
    uint64_t modules_digest;
    uint64_t allocated; /**< peak of iteration 1 */
    uint64_t reserved;  /**< peak up to the end of iteration 1 */
    uint64_t device;    /**< gone from the card when iteration 1 ended */
    uint64_t events;    /**< of iteration 1 */
    uint64_t events_digest;
    facts_point points[FACTS_POINTS];
    uint32_t n_points;
} facts_rank;

typedef struct facts {
    int32_t world;
    const char *model; /**< file of the job, in the source folder; NULL: words.
                            Its events are digested with frees sorted. */
    const char *sets[FACTS_SETS + 1];
    uint32_t n_sets;
    const char *words[FACTS_WORDS];
    int n_words;
    facts_rank ranks[FACTS_RANKS];
    uint32_t n_ranks;
    char *text; /**< that the names point into; owned */
} facts;

/** Read a case file. @return false, and a line on stderr, if it is none */
bool me_facts_read(const char *path, facts *facts_out);

void me_facts_fini(facts *f);

/** FNV-1a, 64 bits: the digest of @p text behind @p digest. */
uint64_t me_facts_digest(uint64_t digest, const char *text);

/** The digest of nothing. */
#define FACTS_DIGEST_EMPTY UINT64_C(0xcbf29ce484222325)

#endif /* MEMEST_TESTS_ACCURACY_FACTS_H */
