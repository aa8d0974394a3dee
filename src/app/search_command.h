/**
 * @file
 * `memest search`: which layouts of a number of GPUs fit, and which is fastest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_SEARCH_COMMAND_H
#define MEMEST_APP_SEARCH_COMMAND_H

#include "app/cli.h"
#include "collectives/transport.h"

/** Run the command. Collective. @return the process's exit code; the reason of a
 *  failure is in @p diag */
int me_search(me_transport *transport, const me_cli *cli, me_diag *diag);

#endif /* MEMEST_APP_SEARCH_COMMAND_H */
