/**
 * @file
 * Tests that run in several processes. A failing cmocka assertion jumps out on
 * one process while the others wait for it, so no assertion may stand between
 * collectives: a test collects a verdict, all agree on it, then all assert.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_MPI_H
#define MEMEST_TESTS_SUPPORT_MPI_H

#include "collectives/transport.h"

#include <stdio.h>

/** Remember that something is wrong; the first thing counts. */
static inline void mpi_expect(me_diag *verdict, int is_right, const char *what,
                              int line)
{
    if (!is_right && verdict->status == ME_OK) {
        (void)me_fail(verdict, ME_ERR_INTERNAL, "line %d: %s", line, what);
    }
}

#define MPI_EXPECT(verdict, condition)                                         \
    mpi_expect(verdict, (condition), #condition, __LINE__)

/** Have all processes nothing to object? Collective. */
static inline int mpi_agree(me_transport *transport, me_diag *verdict)
{
    const me_status status =
        me_transport_agree(transport, verdict->status, verdict);
    if (status != ME_OK) {
        (void)fprintf(stderr, "process %d: %s\n", me_transport_rank(transport),
                      verdict->text);
    }
    return status == ME_OK;
}

#endif /* MEMEST_TESTS_SUPPORT_MPI_H */
