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

/** Exit codes of the program. */
enum {
    ME_EXIT_OK = 0,
    ME_EXIT_INTERNAL = 1,
    ME_EXIT_USAGE = 2,
    ME_EXIT_DOES_NOT_FIT = 3
};

/**
 * Run the command. Collective: all processes return the same code.
 *
 * @param diag  filled in unless the result is ME_EXIT_OK or DOES_NOT_FIT
 * @return an exit code
 */
int me_estimate(me_transport *transport, const me_cli *cli, me_diag *diag);

/** The exit code for a failure. */
int me_exit_code(me_status status);

#endif /* MEMEST_APP_ESTIMATE_H */
