/**
 * @file
 * Which requests for host memory a sweep lets fail: of each name, which stands
 * for a place in the source, the first, the last and some between, so that a
 * short sweep misses no place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_LOST_H
#define MEMEST_TESTS_SUPPORT_LOST_H

#include <stddef.h>
#include <stdint.h>

enum {
    ME_LOST_NAMES = 1024
};

/** The requests of one name. */
typedef struct me_lost_name {
    const char *name;
    uint64_t *at; /**< numbers of its requests, rising; owned */
    size_t count;
    size_t capacity;
} me_lost_name;

/** What was asked for in one run; all zero is nothing. */
typedef struct me_lost_names {
    me_lost_name names[ME_LOST_NAMES];
    size_t count;
} me_lost_names;

/** Begin to write down the requests of this thread, counted from 1. */
void me_lost_begin(me_lost_names *names);

/** No more. */
void me_lost_end(void);

/**
 * The requests to let fail: @p each of every name at most, spread evenly over
 * its first to its last.
 *
 * @param count_out  how many
 * @return their numbers, rising; to be freed by the caller
 */
uint64_t *me_lost_choose(const me_lost_names *names, size_t each,
                         size_t *count_out);

/** Give back. */
void me_lost_fini(me_lost_names *names);

#endif /* MEMEST_TESTS_SUPPORT_LOST_H */
