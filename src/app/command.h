/**
 * @file
 * A whole command, from the words of its command line to its exit code: all
 * that the program does once its processes know each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_COMMAND_H
#define MEMEST_APP_COMMAND_H

#include "base/status.h"
#include "collectives/transport.h"

/**
 * Run a command. Collective.
 *
 * @param argv  words; the first is the program's name
 * @param diag  why, where the code is neither 0 nor 3
 * @return the exit code (app/estimate_command.h)
 */
int me_command_run(me_transport *transport, int argc, char **argv,
                   me_diag *diag);

#endif /* MEMEST_APP_COMMAND_H */
