/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/limits.h"

#include <sys/resource.h>

bool me_limit_raise(int what, uint64_t least)
{
    struct rlimit limits;
    if (getrlimit((__rlimit_resource_t)what, &limits) != 0 ||
        limits.rlim_cur >= least) { // RLIM_INFINITY is the largest number
        return true;
    }
    limits.rlim_cur = limits.rlim_max < least ? limits.rlim_max : least;
    return setrlimit((__rlimit_resource_t)what, &limits) == 0 &&
           limits.rlim_cur >= least;
}
