/**
 * @file
 * `memest --format snapshot` and its like: a rank's memory for the tools that
 * people have open, in place of a report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_TRACE_COMMAND_H
#define MEMEST_APP_TRACE_COMMAND_H

#include "app/cli.h"
#include "collectives/transport.h"

#include <stdbool.h>

/** Does the command line ask for such a format? */
bool me_is_trace(const me_cli *cli);

/** Run the command. Collective. @return the exit code */
int me_trace(me_transport *transport, const me_cli *cli, me_diag *diag);

#endif /* MEMEST_APP_TRACE_COMMAND_H */
