/**
 * @file
 * `memest track`: what PyTorch's own memory tools say of a rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_TRACK_COMMAND_H
#define MEMEST_APP_TRACK_COMMAND_H

#include "app/cli.h"
#include "collectives/transport.h"

/**
 * Run the command; process 0 simulates the rank and prints. Collective.
 *
 * @return exit code
 */
int me_track(me_transport *transport, const me_cli *cli, me_diag *diag);

#endif /* MEMEST_APP_TRACK_COMMAND_H */
