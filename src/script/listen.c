/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/listen.h"

#include "base/clean.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "script/keep.h"
#include "script/record.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNK = 1 << 16,
    CROWD = 1000,   /**< of a machine's processes, all new */
    PATIENCE = 5000 /**< milliseconds, with the kernel that ends processes */
};

/** A run as it is heard. */
typedef struct hearing {
    me_listening *l;
    me_record_reader reader;
    uint64_t output_bytes;
    me_str said;
    char line[sizeof((me_script *)0)->last_line];
    size_t line_length;
    bool is_enough; /**< of launches */
} hearing;

static const char *next_word(const char **at)
{
    const char *word = *at;
    *at += strlen(word) + 1;
    return word;
}

/** Words of a record, as an array in the script's arena. */
static const char *const *take_words(me_script *script, const char **at,
                                     const char *end, uint64_t count)
{
    const char **words =
        me_arena_alloc(script->arena, count + 1, sizeof *words);
    for (uint64_t i = 0; words != NULL && i < count; i++) {
        words[i] =
            *at < end ? me_arena_strdup(script->arena, next_word(at)) : NULL;
        if (words[i] == NULL) {
            return NULL;
        }
    }
    return words;
}

static uint64_t count_words(const char *at, const char *end)
{
    uint64_t count = 0;
    for (; at < end; count++) {
        at += strlen(at) + 1;
    }
    return count;
}

static me_status hear_launch(hearing *h, const char *at, const char *end,
                             me_diag *diag)
{
    me_script *script = h->l->script;
    uint64_t argc = 0;
    if (script->n_launches == ME_SCRIPT_LAUNCHES_MAX) {
        h->is_enough = true;
        return ME_OK;
    }
    const me_order order = me_order_read(at < end ? next_word(&at) : "");
    if (at >= end || me_parse_u64(next_word(&at), &argc) != ME_OK ||
        argc == 0 || argc > count_words(at, end)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s wrote to what memest listens to", h->l->name);
    }
    me_script_launch *launch = &script->launches[script->n_launches];
    launch->order = order;
    launch->argc = (int)argc;
    launch->argv = take_words(script, &at, end, argc);
    const uint64_t n = count_words(at, end);
    launch->n_variables = (int)n;
    launch->variables = take_words(script, &at, end, n);
    if (launch->argv == NULL || launch->variables == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a script's launches");
    }
    script->n_launches++;
    return ME_OK;
}

static me_status hear_nothing(hearing *h, const char *at, const char *end,
                              me_diag *diag)
{
    me_script *script = h->l->script;
    me_str text = {0};
    while (at < end) {
        const char *word = next_word(&at);
        me_str_append(&text, text.length == 0 ? "" : " ");
        me_str_append_clean(&text, word, strlen(word));
    }
    const char *copy = me_str_status(&text) == ME_OK
                           ? me_arena_strdup(script->arena, me_str_text(&text))
                           : NULL;
    me_str_fini(&text);
    if (copy == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for what a script does");
    }
    for (uint32_t i = 0; i < script->n_nothings; i++) {
        if (strcmp(script->nothings[i], copy) == 0) {
            return ME_OK;
        }
    }
    if (script->n_nothings < ME_SCRIPT_NOTHINGS_MAX) {
        script->nothings[script->n_nothings++] = copy;
    }
    return ME_OK;
}

static me_status hear_record(void *self, const char *words, size_t length,
                             me_diag *diag)
{
    hearing *h = self;
    const char *end = words + length;
    const char *what = next_word(&words);
    if (strcmp(what, ME_RECORD_LAUNCH) == 0) {
        return hear_launch(h, words, end, diag);
    }
    if (strcmp(what, ME_RECORD_NOTHING) == 0) {
        return hear_nothing(h, words, end, diag);
    }
    if (strcmp(what, ME_RECORD_FAILURE) == 0 && words < end) {
        return me_fail(diag, ME_ERR_CONFIG, "%s: %.400s", h->l->name, words);
    }
    return me_fail(diag, ME_ERR_CONFIG, "%s wrote to what memest listens to",
                   h->l->name);
}

/** Colours and the like go: an escape, a bracket, up to a letter. */
static void drop_escapes(char *line)
{
    char *to = line;
    while (*line != '\0') {
        if (line[0] == '\033' && line[1] == '[') {
            line += 2 + strcspn(line + 2, "ABCDEFGHJKSTfmnsu");
            line += *line != '\0';
        } else {
            *to++ = *line++;
        }
    }
    *to = '\0';
}

/** The last line that is not blank is what a shell says of its trouble. */
static void keep_line(hearing *h)
{
    h->line[h->line_length] = '\0';
    drop_escapes(h->line);
    h->line_length = strlen(h->line);
    if (strspn(h->line, " \t\r") < h->line_length) {
        memcpy(h->l->script->last_line, h->line, h->line_length + 1);
        me_text_clean(h->l->script->last_line);
    }
    h->line_length = 0;
}

static me_status hear_output(hearing *h, const char *bytes, size_t length,
                             me_diag *diag)
{
    h->output_bytes += length;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\0') {
            keep_line(h);
        } else if (h->line_length < sizeof h->line - 1) {
            h->line[h->line_length++] = bytes[i];
        }
    }
    return h->output_bytes <= ME_SCRIPT_OUTPUT_BYTES
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "%s was stopped: it printed more than %d MiB",
                         h->l->name, ME_SCRIPT_OUTPUT_BYTES >> 20);
}

/** What there is to read of one descriptor; closes it at its end. */
static me_status hear(hearing *h, int *fd, me_diag *diag)
{
    static char bytes[CHUNK];
    const ssize_t n = read(*fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return ME_OK;
    }
    if (n <= 0) {
        (void)close(*fd);
        *fd = -1;
        return ME_OK;
    }
    if (fd == &h->l->records) {
        return me_record_take(&h->reader, bytes, (size_t)n, hear_record, h,
                              diag);
    }
    if (fd == &h->l->output) {
        return hear_output(h, bytes, (size_t)n, diag);
    }
    me_str_append_n(&h->said, bytes, (size_t)n);
    return me_str_status(&h->said);
}

static int64_t milliseconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/** All at once, whoever was forked meanwhile: nobody can leave the group. Those
 *  whose parents are gone are ours to wait for, since we are their reaper. */
static void end_all(const me_listening *l)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    const int64_t end = milliseconds() + PATIENCE;
    siginfo_t info;
    (void)kill(-l->keeper, SIGKILL);
    (void)kill(l->keeper, SIGKILL);
    while (waitid(P_PID, (id_t)l->keeper, &info, WEXITED) < 0 &&
           errno == EINTR) {
    }
    int left = 0;
    do {
        (void)kill(-l->keeper, SIGKILL);
        info.si_pid = 0;
        left = waitid(P_PGID, (id_t)l->keeper, &info, WEXITED | WNOHANG);
        if (left == 0 && info.si_pid == 0) {
            (void)nanosleep(&moment, NULL);
        }
    } while (left == 0 && milliseconds() < end);
}

/** The keeper's lines: how it ended. */
static me_status read_said(hearing *h, me_diag *diag)
{
    me_listening *l = h->l;
    me_status status = ME_OK;
    l->script->is_replaced = true;
    for (const char *line = me_str_text(&h->said); *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        const char *rest = line + 1;
        uint64_t code = 0;
        char text[256];
        (void)snprintf(text, sizeof text, "%.*s", n == 0 ? 0 : (int)n - 1,
                       rest);
        if (line[0] == ME_KEEP_ENDED) {
            const char *digits = text + strspn(text, "0");
            if (me_parse_u64(*digits == '\0' ? "0" : digits, &code) == ME_OK) {
                l->script->exit_code = (int)code;
            }
        } else if (line[0] == ME_KEEP_PATHS) {
            l->script->is_replaced = false;
        } else if (line[0] == ME_KEEP_FENCE) {
            l->is_fence_missing = true;
            memcpy(l->fence, text, sizeof l->fence);
        } else if (line[0] == ME_KEEP_CROWD) {
            status = me_fail(diag, ME_ERR_CONFIG,
                             "%s was stopped: more than %d processes at once",
                             l->name, ME_KEEP_MAX_PROCESSES);
        } else if (line[0] == ME_KEEP_FAILED) {
            status = me_fail(diag, ME_ERR_CONFIG, "%s: its shell: %s", l->name,
                             text);
        }
        line += n + (line[n] != '\0');
    }
    return status;
}

/** One round of poll(). @p is_open_out: there is more to come */
static me_status hear_round(hearing *h, int timeout, bool *is_open_out,
                            me_diag *diag)
{
    int *fds[] = {&h->l->records, &h->l->output, &h->l->said};
    struct pollfd polls[3];
    for (int i = 0; i < 3; i++) {
        polls[i] = (struct pollfd){.fd = *fds[i], .events = POLLIN};
    }
    me_status status = ME_OK;
    if (poll(polls, 3, timeout) > 0) {
        for (int i = 0; status == ME_OK && i < 3; i++) {
            if (*fds[i] >= 0 && polls[i].revents != 0) {
                status = hear(h, fds[i], diag);
            }
        }
    }
    *is_open_out = false;
    for (int i = 0; i < 3; i++) {
        *is_open_out = *is_open_out || *fds[i] >= 0;
    }
    return status;
}

/** Has the keeper ended, and with it what can still be heard? */
static bool has_ended(const me_listening *l)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)l->keeper, &info, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           info.si_pid == l->keeper;
}

static unsigned processes(void)
{
    struct sysinfo info = {.procs = 0};
    (void)sysinfo(&info);
    return info.procs;
}

/** Where nobody counts a script's processes, those of the machine tell. */
static bool is_crowd(const hearing *h, unsigned before)
{
    const char *said = me_str_text(&h->said);
    return strchr(said, ME_KEEP_PATHS) != NULL && processes() > before + CROWD;
}

/** Has somebody asked memest to stop? It does after it has cleaned up. */
static bool is_asked_to_stop(void)
{
    sigset_t stops;
    sigset_t pending;
    bool is_asked = false;
    if (sigpending(&pending) != 0) {
        return false;
    }
    me_ending_signals(&stops);
    for (int i = 1; i < SIGRTMIN && !is_asked; i++) {
        struct sigaction what;
        is_asked = sigismember(&stops, i) == 1 &&
                   sigismember(&pending, i) == 1 &&
                   sigaction(i, NULL, &what) == 0 && what.sa_handler != SIG_IGN;
    }
    return is_asked;
}

static me_status hear_all(hearing *h, me_diag *diag)
{
    const unsigned before = processes();
    const int64_t end = milliseconds() + (int64_t)h->l->seconds * 1000;
    me_status status = ME_OK;
    bool is_open = true;
    while (status == ME_OK && is_open && !h->is_enough) {
        const int64_t left = end - milliseconds();
        if (left <= 0) {
            status = me_fail(diag, ME_ERR_CONFIG,
                             "%s was stopped: it took more than %d seconds",
                             h->l->name, h->l->seconds);
        } else if (is_asked_to_stop()) {
            status =
                me_fail(diag, ME_ERR_STOPPED, "%s was interrupted", h->l->name);
        } else if (is_crowd(h, before)) {
            status = me_fail(diag, ME_ERR_CONFIG,
                             "%s was stopped: more than %d processes at once",
                             h->l->name, ME_KEEP_MAX_PROCESSES);
        } else if (has_ended(h->l)) {
            (void)kill(-h->l->keeper, SIGKILL); // pipes end
        }
        if (status == ME_OK) {
            status =
                hear_round(h, left < 100 ? (int)left : 100, &is_open, diag);
        }
    }
    return status;
}

/** Background jobs tell of themselves as they come. */
static void sort_launches(me_script *script)
{
    for (uint32_t i = 1; i < script->n_launches; i++) {
        const me_script_launch launch = script->launches[i];
        uint32_t to = i;
        while (to > 0 &&
               me_order_compare(&launch.order,
                                &script->launches[to - 1].order) < 0) {
            script->launches[to] = script->launches[to - 1];
            to--;
        }
        script->launches[to] = launch;
    }
}

me_status me_listen(me_listening *l, me_diag *diag)
{
    hearing h = {.l = l};
    l->script->exit_code = -1;
    me_status status = hear_all(&h, diag);
    end_all(l);
    if (h.line_length > 0) {
        keep_line(&h);
    }
    if (status == ME_OK) {
        status = read_said(&h, diag);
    }
    sort_launches(l->script);
    int *fds[] = {&l->records, &l->output, &l->said};
    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0) {
            (void)close(*fds[i]);
        }
    }
    me_record_reader_fini(&h.reader);
    me_str_fini(&h.said);
    return status;
}
