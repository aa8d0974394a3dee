/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SECOND_MS = 1000,
    BETWEEN_MS = 100, /* lines */
    LINE = 80
};

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
    atomic_init(&progress->shown, 0);
}

void me_progress_next(me_progress *progress, const char *what, uint32_t total)
{
    progress->what = what;
    progress->total = total;
    progress->then = "";
    atomic_store(&progress->done, 0);
}

/** Characters of a line that a terminal does not break; its last column stays
 *  empty, since some go on with the next line behind it. */
static int room_of(int length)
{
    struct winsize size;
    const bool is_known =
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known && size.ws_col <= length ? size.ws_col - 1 : length;
}

int me_progress_write(const char *line, int length, unsigned shown,
                      char text[ME_PROGRESS_BYTES])
{
    const int over = (int)shown > length ? (int)shown - length : 0;
    return snprintf(text, ME_PROGRESS_BYTES, "\r%.*s%*s%s", length, line, over,
                    "", length == 0 ? "\r" : "");
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
        char text[ME_PROGRESS_BYTES];
        const int room = room_of(length);
        put(text, me_progress_write(
                      line, room,
                      atomic_exchange(&progress->shown, (unsigned)room), text));
    }
}

uint64_t me_progress_bytes_of(FILE *file)
{
    struct stat is;
    const long at = ftell(file);
    const bool is_known = at >= 0 && fstat(fileno(file), &is) == 0 &&
                          S_ISREG(is.st_mode) && is.st_size > at;
    return is_known ? (uint64_t)(is.st_size - at) : 0;
}

me_progress_part me_progress_share(const me_progress_part *part,
                                   uint32_t tenths, uint64_t bytes)
{
    me_progress_part share = {.progress = NULL};
    if (part != NULL) {
        share.progress = part->progress;
        share.bytes = bytes;
        share.steps = part->steps * tenths / 10;
    }
    return share;
}

void me_progress_reach(me_progress_part *part, uint64_t bytes)
{
    if (part == NULL || part->progress == NULL || part->bytes == 0) {
        return;
    }
    const double whole = (double)part->bytes;
    const double at = bytes < part->bytes ? (double)bytes : whole;
    while (part->done < part->steps &&
           at * part->steps >= whole * (part->done + 1)) {
        part->done++;
        me_progress_step(part->progress);
    }
}

void me_progress_end(me_progress *progress)
{
    if (progress->is_on && atomic_load(&progress->last_ms) != 0) {
        char text[ME_PROGRESS_BYTES];
        put(text,
            me_progress_write("", 0, atomic_load(&progress->shown), text));
    }
    progress->is_on = false;
}
