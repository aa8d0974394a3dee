/**
 * @file
 * A large file is told of before it is written, and refused where the disk has no
 * room for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_TRACE_SIZE_H
#define MEMEST_APP_TRACE_SIZE_H

#include "base/status.h"

#include <stdint.h>
#include <stdio.h>

enum {
    ME_TRACE_LARGE_BYTES = 256 << 20 /**< from which on it is a warning */
};

/**
 * Say how large a file will be. Local.
 *
 * @param format   its name, for messages
 * @param bytes    it will have about as many
 * @param smaller  what makes it smaller, for messages
 * @param stream   where it is written
 * @return ME_OK; ME_ERR_IO where less than half of it has room, since an estimate
 *         may be wrong by less than that
 */
me_status me_trace_size_tell(const char *format, uint64_t bytes,
                             const char *smaller, FILE *stream,
                             me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_APP_TRACE_SIZE_H */
