/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/outfile_guard.h"

#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GUARDS_MAX = 8,
    PATH_BYTES = 4096,
    MARK_BYTES = 6,      /**< "XXXXXX", with which a template ends */
    NAMES_MAX = 4096,    /**< that are tried */
    PATIENCE = 100000000 /**< turns in which a file is made */
};

/** What a handler may rely on. */
typedef enum guard_state {
    GUARD_FREE,
    GUARD_MAKING, /**< there is, or will be, a file without a name here */
    GUARD_ON
} guard_state;

typedef struct guarded {
    atomic_int state;
    char path[PATH_BYTES];
} guarded;

/** Writable at file scope, since a handler has nothing else: files that a
 * process has not finished are the process's, and no result depends on it. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): above
static guarded guards[GUARDS_MAX];

static const int ending[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGXCPU,
                             SIGALRM, SIGUSR1, SIGUSR2, SIGPIPE};

enum {
    N_ENDING = sizeof ending / sizeof ending[0]
};

void me_ending_signals(sigset_t *signals_out)
{
    (void)sigemptyset(signals_out);
    for (int i = 0; i < N_ENDING; i++) {
        (void)sigaddset(signals_out, ending[i]);
    }
}

/** A place for a file; GUARDS_MAX: there is none, or its name is too long. */
static size_t take(const char *name)
{
    size_t i = strlen(name) < PATH_BYTES ? 0 : GUARDS_MAX;
    for (; i < GUARDS_MAX; i++) {
        int is_free = GUARD_FREE;
        if (atomic_compare_exchange_strong(&guards[i].state, &is_free,
                                           GUARD_MAKING)) {
            break;
        }
    }
    return i;
}

/** Give the file a name that no other has: not at random, since others' names of
 *  this kind are seldom there. @return as me_outfile_guard_make() */
static int link_unnamed(char *name, int unnamed)
{
    char path[32];
    char *mark = name + strlen(name) - MARK_BYTES;
    int linked = -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", unnamed);
    for (unsigned i = 0; i < NAMES_MAX && linked != 0; i++) {
        const unsigned number =
            ((unsigned)getpid() * NAMES_MAX + i) & 0xffffffU;
        (void)snprintf(mark, MARK_BYTES + 1, "%06x", number);
        linked = linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
        if (linked != 0 && errno != EEXIST) {
            break;
        }
    }
    return linked == 0 ? unnamed : -1;
}

int me_outfile_guard_make(char *name, int unnamed, size_t *guard_out)
{
    sigset_t signals;
    sigset_t before;
    me_ending_signals(&signals);
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    const size_t guard = take(name);
    const int descriptor =
        unnamed < 0 ? mkstemp(name) : link_unnamed(name, unnamed);
    const int error = errno;
    if (guard < GUARDS_MAX) {
        if (descriptor >= 0) {
            memcpy(guards[guard].path, name, strlen(name) + 1);
        }
        atomic_store(&guards[guard].state,
                     descriptor >= 0 ? GUARD_ON : GUARD_FREE);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    *guard_out = descriptor >= 0 ? guard : GUARDS_MAX;
    errno = error;
    return descriptor;
}

void me_outfile_guard_end(size_t guard)
{
    if (guard < GUARDS_MAX) {
        atomic_store(&guards[guard].state, GUARD_FREE);
    }
}

/** The thread that makes a file takes no signal meanwhile: it can be waited
 * for. The handler is gone once it has begun (SA_RESETHAND), so that the
 * signal, sent again, does what it does without one. */
static void on_end(int signal)
{
    for (int i = 0; i < GUARDS_MAX; i++) {
        for (int turn = 0;
             turn < PATIENCE && atomic_load(&guards[i].state) == GUARD_MAKING;
             turn++) {
        }
        if (atomic_load(&guards[i].state) == GUARD_ON) {
            (void)unlink(guards[i].path);
        }
    }
    (void)raise(signal);
}

void me_outfile_guard_signals(void)
{
    // a file that may not grow is an error of its writes
    (void)signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < N_ENDING; i++) {
        struct sigaction now;
        if (sigaction(ending[i], NULL, &now) == 0 &&
            now.sa_handler == SIG_DFL) {
            struct sigaction ours = {.sa_flags = (int)SA_RESETHAND};
            ours.sa_handler = on_end;
            (void)sigemptyset(&ours.sa_mask);
            (void)sigaction(ending[i], &ours, NULL);
        }
    }
}
