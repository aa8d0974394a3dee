/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/faults.h"

#include "base/alloc.h"
#include "support/test.h"

#include <stdbool.h>

enum {
    MOST_ALLOCATIONS = 1000000
};

/** What may come of a lost request: alone it may be one that nothing depends
 *  on, such as a list for a message that is not needed after all. */
static bool is_answer(me_status status, bool is_once)
{
    return status == ME_ERR_NOMEM || (is_once && status == ME_OK);
}

static void sweep(me_fault_scenario scenario, void *context, uint64_t at_least,
                  void (*refuse)(uint64_t nth))
{
    for (uint64_t nth = 1; nth < MOST_ALLOCATIONS; nth++) {
        refuse(nth);
        const me_status status = scenario(context);
        const uint64_t requests = me_alloc_count();
        me_alloc_fail_at(0);
        if (requests < nth) {
            assert_int_equal(status, ME_OK);
            assert_true(requests >= at_least);
            return;
        }
        if (!is_answer(status, refuse == me_alloc_fail_once)) {
            fail_msg("allocation %llu failed%s and the status is \"%s\"",
                     (unsigned long long)nth,
                     refuse == me_alloc_fail_once ? " once" : "",
                     me_status_text(status));
        }
    }
    fail_msg("more than %d allocations", (int)MOST_ALLOCATIONS);
}

void me_sweep_faults(me_fault_scenario scenario, void *context,
                     uint64_t at_least)
{
    sweep(scenario, context, at_least, me_alloc_fail_at);
    sweep(scenario, context, at_least, me_alloc_fail_once);
}
