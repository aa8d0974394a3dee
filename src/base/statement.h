/**
 * @file
 * What a process is about to do, one line a fact, so that processes can hold
 * theirs against each other (collectives/agreement.h): "name", a tab, "value".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_STATEMENT_H
#define MEMEST_BASE_STATEMENT_H

#include "base/str.h"

/**
 * Append a fact. Local.
 *
 * @param statement  of which no other fact has the name; keeps its failure
 * @param format     printf format of the value; a line break in it becomes a
 *                   space
 */
void me_statement_add(me_str *statement, const char *name, const char *format,
                      ...) ME_PRINTF(3, 4);

#endif /* MEMEST_BASE_STATEMENT_H */
