/**
 * @file
 * The processes of one launch are given the same operands. What process 0 answers
 * alone nobody else reads: the others' files would be lost without a word.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_OPERAND_AGREE_H
#define MEMEST_APP_OPERAND_AGREE_H

#include "app/cli.h"
#include "collectives/transport.h"

/** What to hold the first operand against the others' by: the word itself, or that
 *  it is a file, whose contents count and not its name. Static or of @p cli;
 *  NULL: none was given. Local. */
const char *me_operand_word(const me_cli *cli);

/**
 * Have the files that are operands of `replay`, `diff` and `schedule`, and of
 * `track --load`, the same contents for all processes? They are read only where
 * they are not one file of one host. Collective.
 *
 * @return as me_statement_agree()
 */
me_status me_operand_files_agree(me_transport *transport, const me_cli *cli,
                                 me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_OPERAND_AGREE_H */
