/**
 * @file
 * Are two jobs the same, as far as options say?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_SAME_JOB_H
#define MEMEST_TESTS_SUPPORT_SAME_JOB_H

#include "config/framework.h"
#include "config/options.h"

#include <string.h>

/** Have all options that the framework looks at equal values? */
static inline bool is_same_job(const me_config *a, const me_config *b)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    bool is_same = true;
    for (size_t i = 0; i < count; i++) {
        const size_t offset = options[i].offset;
        is_same = is_same &&
                  (me_framework_is_foreign(a->framework, options[i].name) ||
                   memcmp((const char *)a + offset, (const char *)b + offset,
                          options[i].size) == 0);
    }
    return is_same;
}

#endif /* MEMEST_TESTS_SUPPORT_SAME_JOB_H */
