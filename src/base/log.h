/**
 * @file
 * Messages to the person at the terminal: stderr, or a file, one line each.
 * The report is never written here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_LOG_H
#define MEMEST_BASE_LOG_H

#include "base/status.h"

#include <stdbool.h>

/** X(constant, name): levels from what must be read to what may be. */
#define ME_LOG_LIST(X)                                                         \
    X(ME_LOG_ERROR, "error")                                                   \
    X(ME_LOG_WARN, "warn")                                                     \
    X(ME_LOG_INFO, "info")                                                     \
    X(ME_LOG_DEBUG, "debug")                                                   \
    X(ME_LOG_TRACE, "trace")

typedef enum me_log_level {
#define ME_LOG_ENUM(constant, name) constant,
    ME_LOG_LIST(ME_LOG_ENUM)
#undef ME_LOG_ENUM
    ME_LOG_COUNT
} me_log_level;

/** The level of a name. @return false for an unknown one */
bool me_log_level_find(const char *name, me_log_level *level_out);

/** What is printed from now on; at first ME_LOG_WARN. */
void me_log_set_level(me_log_level level);

/**
 * Write to a file from now on, appending.
 *
 * @return ME_OK, or ME_ERR_IO and nothing changes
 */
me_status me_log_open(const char *path, me_diag *diag);

/** Close the file, if there is one. */
void me_log_close(void);

/** One line: "memest: level: text". */
void me_log(me_log_level level, const char *format, ...) ME_PRINTF(2, 3);

/** Seconds of CPU that this thread has taken, for messages alone. */
double me_log_cpu_seconds(void);

#endif /* MEMEST_BASE_LOG_H */
