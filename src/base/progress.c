/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/progress.h"

#include <signal.h>
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
    if (passed_ms < SECOND_MS || done > progress->total) {
        return 0;
    }
    const bool is_open = progress->then != NULL || done == 0;
    const uint64_t left_ms =
        is_open ? 0 : passed_ms * (progress->total - done) / done;
    const char *then = progress->then == NULL ? "" : progress->then;
    const uint64_t shown_ms =
        is_open ? passed_ms : left_ms + SECOND_MS - 1; // not less than it is
    const int length = snprintf(
        line, LINE, "  %u of %u %s%s%s %llu s %s", (unsigned)done,
        (unsigned)progress->total, progress->what, is_open ? then : "",
        is_open ? ";" : ",", (unsigned long long)(shown_ms / SECOND_MS),
        is_open ? "so far" : "left");
    return length < LINE ? length : LINE - 1;
}

/** Write the line, if the last one is a while ago. */
static void show(me_progress *progress, uint32_t done)
{
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

/** Each second up to the first step, and again where other steps have begun. */
static void *beat(void *self)
{
    me_progress *progress = self;
    struct timespec next = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &next);
    (void)pthread_mutex_lock(&progress->lock);
    while (!progress->is_over) {
        next.tv_sec++;
        int woken = 0;
        while (!progress->is_over && woken == 0) {
            woken =
                pthread_cond_timedwait(&progress->over, &progress->lock, &next);
        }
        if (!progress->is_over && atomic_load(&progress->done) == 0) {
            show(progress, 0);
        }
    }
    (void)pthread_mutex_unlock(&progress->lock);
    return NULL;
}

/** Start the thread, which no signal finds. Without one nothing is shown before
 *  the first step. */
static void start_pulse(me_progress *progress)
{
    pthread_condattr_t clock;
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    progress->is_over = false;
    if (pthread_condattr_init(&clock) != 0) {
        return;
    }
    const bool is_made =
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) == 0 &&
        pthread_mutex_init(&progress->lock, NULL) == 0 &&
        pthread_cond_init(&progress->over, &clock) == 0;
    (void)pthread_condattr_destroy(&clock);
    if (is_made && pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        progress->has_pulse =
            pthread_create(&progress->pulse, NULL, beat, progress) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

/** What the thread reads is changed by nobody meanwhile. */
static void lock(me_progress *progress)
{
    if (progress->has_pulse) {
        (void)pthread_mutex_lock(&progress->lock);
    }
}

static void unlock(me_progress *progress)
{
    if (progress->has_pulse) {
        (void)pthread_mutex_unlock(&progress->lock);
    }
}

static void stop_pulse(me_progress *progress)
{
    lock(progress);
    progress->is_over = true;
    (void)pthread_cond_signal(&progress->over);
    unlock(progress);
    (void)pthread_join(progress->pulse, NULL);
    (void)pthread_cond_destroy(&progress->over);
    (void)pthread_mutex_destroy(&progress->lock);
    progress->has_pulse = false;
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
    progress->has_pulse = false;
    if (progress->is_on && total > 0) {
        start_pulse(progress);
    }
}

void me_progress_next(me_progress *progress, const char *what, uint32_t total)
{
    lock(progress);
    progress->what = what;
    progress->total = total;
    progress->then = "";
    atomic_store(&progress->done, 0);
    unlock(progress);
}

void me_progress_follow(me_progress *progress, const char *then,
                        uint64_t start_ms)
{
    lock(progress);
    progress->then = then;
    progress->start_ms = start_ms == 0 ? progress->start_ms : start_ms;
    unlock(progress);
}

void me_progress_step(me_progress *progress)
{
    if (progress->is_on) {
        show(progress, atomic_fetch_add(&progress->done, 1) + 1);
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
    if (progress->has_pulse) {
        stop_pulse(progress);
    }
    if (progress->is_on && atomic_load(&progress->last_ms) != 0) {
        char text[ME_PROGRESS_BYTES];
        put(text,
            me_progress_write("", 0, atomic_load(&progress->shown), text));
    }
    progress->is_on = false;
}
