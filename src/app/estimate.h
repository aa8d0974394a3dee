/**
 * @file
 * `memest estimate` and `memest check`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_ESTIMATE_H
#define MEMEST_APP_ESTIMATE_H

#include "app/cli.h"
#include "collectives/transport.h"
#include "report/report.h"

/** Exit codes of the program. */
enum {
    ME_EXIT_OK = 0,
    ME_EXIT_INTERNAL = 1,
    ME_EXIT_USAGE = 2,
    ME_EXIT_DOES_NOT_FIT = 3, /**< or is too close to call */
    ME_EXIT_CANNOT_SAY = 4    /**< too much of it is not modelled */
};

/**
 * Run the command. Collective: all processes return the same code.
 *
 * @param diag  filled in unless the result is that of a verdict
 * @return an exit code
 */
int me_estimate(me_transport *transport, const me_cli *cli, me_diag *diag);

/** The exit code for a failure. */
int me_exit_code(me_status status);

/** The exit code for a verdict that is asked for. Local. */
int me_exit_code_of(const me_verdict *verdict);

#endif /* MEMEST_APP_ESTIMATE_H */
