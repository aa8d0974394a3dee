/**
 * @file
 * `memest compare`: one job under several schedules and settings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_COMPARE_COMMAND_H
#define MEMEST_APP_COMPARE_COMMAND_H

#include "app/cli.h"
#include "collectives/transport.h"

/**
 * Run the command. Collective: all processes return the same code.
 *
 * @param diag  filled in unless the result is that of a verdict
 * @return an exit code
 */
int me_compare(me_transport *transport, const me_cli *cli, me_diag *diag);

#endif /* MEMEST_APP_COMPARE_COMMAND_H */
