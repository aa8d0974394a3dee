/**
 * @file
 * Limits that a process has from outside (`ulimit`), as far as memest needs more
 * of something.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_LIMITS_H
#define MEMEST_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /** Of a thread's stack: twice what the deepest calls were seen to take. */
    ME_STACK_BYTES = 1 << 19
};

/**
 * Raise a soft limit to what is needed, if it is less and the hard one allows
 * it. Local.
 *
 * @param what   RLIMIT_STACK, RLIMIT_NOFILE
 * @param least  bytes or descriptors that are needed
 * @return false: there are fewer
 */
bool me_limit_raise(int what, uint64_t least);

#endif /* MEMEST_BASE_LIMITS_H */
