/**
 * @file
 * Whether all processes are about to do the same. They take their part of one
 * job each, so two that were given different jobs would make one report of
 * both, and two with different commands would wait for each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_AGREEMENT_H
#define MEMEST_COLLECTIVES_AGREEMENT_H

#include "base/str.h"
#include "collectives/transport.h"

/**
 * Hold the processes' statements against each other. Collective.
 *
 * Digests are compared first; only where they differ the statements travel, to
 * say in what.
 *
 * @param statement  this process's (base/statement.h); borrowed
 * @return ME_OK; ME_ERR_MISMATCH naming the first fact that differs, its value
 *         on process 0 and on the lowest process that has another;
 *         ME_ERR_NOMEM, ME_ERR_MPI; the same on all processes
 */
me_status me_statement_agree(me_transport *transport, const me_str *statement,
                             me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_COLLECTIVES_AGREEMENT_H */
