/**
 * @file
 * The processes of one launch run the same command.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_COMMAND_AGREE_H
#define MEMEST_APP_COMMAND_AGREE_H

#include "app/cli.h"
#include "collectives/transport.h"

/**
 * Do all processes run the same command of the same version with the same operands
 * and flags? Flags that say what a process alone does (where its messages go, its
 * threads), and those of the job, whose values count, are left out.
 * Collective.
 *
 * @return as me_statement_agree()
 */
me_status me_cli_agree(me_transport *transport, const me_cli *cli,
                       me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_COMMAND_AGREE_H */
