/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/faults.h"

#include "base/alloc.h"
#include "support/test.h"

enum {
    MOST_ALLOCATIONS = 1000000
};

void me_sweep_faults(me_fault_scenario scenario, void *context,
                     uint64_t at_least)
{
    for (uint64_t nth = 1; nth < MOST_ALLOCATIONS; nth++) {
        me_alloc_fail_at(nth);
        const me_status status = scenario(context);
        const uint64_t requests = me_alloc_count();
        me_alloc_fail_at(0);
        if (requests < nth) {
            assert_int_equal(status, ME_OK);
            assert_true(requests >= at_least);
            return;
        }
        if (status != ME_ERR_NOMEM) {
            fail_msg("allocation %llu failed and the status is \"%s\"",
                     (unsigned long long)nth, me_status_text(status));
        }
    }
    fail_msg("more than %d allocations", (int)MOST_ALLOCATIONS);
}
