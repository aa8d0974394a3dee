/**
 * @file
 * How summaries travel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_ROSTER_WIRE_H
#define MEMEST_COLLECTIVES_ROSTER_WIRE_H

#include "collectives/roster.h"
#include "collectives/wire.h"

/** Write this process's part; fails where a log or the thread does. Local. */
me_status me_part_write(me_writer *writer, const me_check_part *part,
                        me_diag *diag);

/**
 * Read one log's summary; on failure nothing is owned. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM, ME_ERR_INTERNAL
 */
me_status me_program_read(me_reader *reader, me_program *program);

#endif /* MEMEST_COLLECTIVES_ROSTER_WIRE_H */
