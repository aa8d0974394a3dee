/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include "base/clean.h"
#include "base/outfile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const level_names[ME_LOG_COUNT] = {
#define ME_LOG_NAME(constant, name) [constant] = (name),
    ME_LOG_LIST(ME_LOG_NAME)
#undef ME_LOG_NAME
};

enum {
    LINE_BYTES = 2048 /* of a message; more is cut */
};

typedef struct log_sink {
    me_log_level level;
    FILE *file;
} log_sink;

/** Writable at file scope: where a process's messages go is the process's, and
 * no result depends on it. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): above
static log_sink sink = {.level = ME_LOG_WARN};

bool me_log_level_find(const char *name, me_log_level *level_out)
{
    for (int i = 0; i < ME_LOG_COUNT; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level_out = (me_log_level)i;
            return true;
        }
    }
    return false;
}

void me_log_set_level(me_log_level level)
{
    sink.level = level;
}

me_status me_log_open(const char *path, me_diag *diag)
{
    FILE *file = me_output_open(path, true);
    if (file == NULL) {
        return me_fail(diag, ME_ERR_IO, "%s: cannot be written: %s", path,
                       me_output_reason(errno));
    }
    me_log_close();
    sink.file = file;
    return ME_OK;
}

void me_log_close(void)
{
    if (sink.file != NULL) {
        (void)fclose(sink.file);
        sink.file = NULL;
    }
}

static bool print_line(FILE *file, me_log_level level, const char *line)
{
    return fprintf(file, "memest: %s: %s\n", level_names[level], line) >= 0 &&
           fflush(file) == 0;
}

/** Is a message of @p level printed? */
static bool is_on(me_log_level level)
{
    return level <= sink.level;
}

void me_log(me_log_level level, const char *format, ...)
{
    if (!is_on(level)) {
        return;
    }
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    me_text_clean(line);
    if (sink.file != NULL && !print_line(sink.file, level, line)) {
        char reason[160];
        (void)snprintf(reason, sizeof reason,
                       "the log's file cannot be written, and messages go "
                       "here: %.80s",
                       strerror(errno));
        me_log_close();
        (void)print_line(stderr, ME_LOG_WARN, reason);
        (void)print_line(stderr, level, line);
    } else if (sink.file == NULL) {
        (void)print_line(stderr, level, line);
    }
}

double me_log_cpu_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
