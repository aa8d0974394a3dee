/**
 * @file
 * `memest estimate` and `memest check`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_ESTIMATE_COMMAND_H
#define MEMEST_APP_ESTIMATE_COMMAND_H

#include "app/cli.h"
#include "collectives/transport.h"
#include "run/exit_code.h"

/**
 * Run the command. Collective: all processes return the same code.
 *
 * @param diag  filled in unless the result is that of a verdict
 * @return an exit code
 */
int me_estimate(me_transport *transport, const me_cli *cli, me_diag *diag);

#endif /* MEMEST_APP_ESTIMATE_COMMAND_H */
