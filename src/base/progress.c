/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    SECOND_MS = 1000,
    BETWEEN_MS = 100, /* lines */
    LINE = 80
};

/** Where the line begins, and what clears it. */
static const char erase[] = "\r\033[K";

static uint64_t now_ms(void)
{
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_MS + (uint64_t)now.tv_nsec / 1000000;
}

/** What finds no room on a terminal is nobody's loss. */
static void put(const char *text, int length)
{
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0) {
        return;
    }
}

void me_progress_begin(me_progress *progress, bool is_wanted, const char *what,
                       uint32_t total)
{
    progress->what = what;
    progress->total = total;
    progress->then = NULL;
    progress->is_on = is_wanted && isatty(STDERR_FILENO) != 0;
    progress->start_ms = progress->is_on ? now_ms() : 0;
    atomic_init(&progress->done, 0);
    atomic_init(&progress->last_ms, 0);
}

int me_progress_line(const me_progress *progress, uint32_t done,
                     uint64_t passed_ms, char line[80])
{
    if (passed_ms < SECOND_MS || done == 0 || done > progress->total) {
        return 0;
    }
    const uint64_t left_ms = passed_ms * (progress->total - done) / done;
    const bool is_open = progress->then != NULL;
    const uint64_t shown_ms =
        is_open ? passed_ms : left_ms + SECOND_MS - 1; // not less than it is
    const int length =
        snprintf(line, LINE, "  %u of %u %s%s%s %llu s %s", (unsigned)done,
                 (unsigned)progress->total, progress->what,
                 is_open ? progress->then : "", is_open ? ";" : ",",
                 (unsigned long long)(shown_ms / SECOND_MS),
                 is_open ? "so far" : "left");
    return length < LINE ? length : LINE - 1;
}

void me_progress_step(me_progress *progress)
{
    if (!progress->is_on) {
        return;
    }
    const uint32_t done = atomic_fetch_add(&progress->done, 1) + 1;
    const uint64_t now = now_ms();
    unsigned long long last = atomic_load(&progress->last_ms);
    char line[LINE];
    const int length =
        me_progress_line(progress, done, now - progress->start_ms, line);
    // Of threads that come at once one writes.
    if (length > 0 && now >= last + BETWEEN_MS &&
        atomic_compare_exchange_strong(&progress->last_ms, &last, now)) {
        char text[LINE + sizeof erase];
        put(text, snprintf(text, sizeof text, "%s%s", erase, line));
    }
}

void me_progress_end(me_progress *progress)
{
    if (progress->is_on && atomic_load(&progress->last_ms) != 0) {
        put(erase, (int)sizeof erase - 1);
    }
    progress->is_on = false;
}
