/**
 * @file
 * The allocation-failure sweep: a scenario is run again and again with host
 * allocation 1, 2, 3, … failing, first with all that follow and then alone,
 * until one run needs no more allocations than were granted. It must never
 * crash, and must say ME_ERR_NOMEM each time but the last; where one request
 * alone fails it may also succeed, and faults.lost_allocations holds it to the
 * same answer then. Leaks are what the asan preset adds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_FAULTS_H
#define MEMEST_TESTS_SUPPORT_FAULTS_H

#include "base/status.h"

#include <stdint.h>

/** What is tried: makes everything anew and gives everything back. */
typedef me_status (*me_fault_scenario)(void *context);

/**
 * Sweep @p scenario; fails the running cmocka test when one run misbehaves.
 *
 * @param context   handed to the scenario
 * @param at_least  allocations that the scenario is known to make, so that the
 *                  sweep cannot pass by sweeping nothing
 */
void me_sweep_faults(me_fault_scenario scenario, void *context,
                     uint64_t at_least);

#endif /* MEMEST_TESTS_SUPPORT_FAULTS_H */
