/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/keep.h"

#include "base/str.h"
#include "script/filter.h"
#include "script/landlock.h"
#include "script/overlay.h"
#include "script/record.h"
#include "script/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FILES_MAX = 256,
    FILE_MAX_BYTES = 64 << 20
};

static void say(const me_keep *keep, int what, const char *text,
                const char *why)
{
    me_str line = {0};
    me_str_printf(&line, "%c%s%s%s\n", what, text, why == NULL ? "" : ": ",
                  why == NULL ? "" : why);
    const ssize_t n = write(keep->said, me_str_text(&line), line.length);
    (void)n; // who does not listen has ended us
    me_str_fini(&line);
}

_Noreturn static void fall(const me_keep *keep, const char *fence)
{
    say(keep, ME_KEEP_FENCE, fence, strerror(errno));
    _exit(1);
}

/** Descriptors of the script: nothing to read, one to write to, one to tell
 *  memest; all others go. */
static void set_descriptors(const me_keep *keep)
{
    const int nothing = openat(AT_FDCWD, "/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(keep->output, STDOUT_FILENO);
    (void)dup2(keep->output, STDERR_FILENO);
    (void)dup2(keep->record, ME_RECORD_FD);
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
        if (fd != ME_RECORD_FD && fd != keep->said) {
            (void)close(fd);
        }
    }
#ifdef __NR_close_range
    (void)syscall(__NR_close_range, 1024, ~0U, 0);
#endif
    (void)fcntl(keep->said, F_SETFD, FD_CLOEXEC);
}

/** Less than now for the script; what it takes more is not refused, and not given
 *  (the filter). */
static void lower(int what, rlim_t most)
{
    struct rlimit limits;
    if (getrlimit((__rlimit_resource_t)what, &limits) == 0 &&
        limits.rlim_cur > most) {
        limits.rlim_cur = most;
        (void)setrlimit((__rlimit_resource_t)what, &limits);
    }
}

void me_limit_for_good(int what, uint64_t most)
{
    const struct rlimit limits = {.rlim_cur = most, .rlim_max = most};
    (void)setrlimit((__rlimit_resource_t)what, &limits);
}

/** No capability of this process or of what it starts, for good. */
static bool drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{.effective = 0}};
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                               SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED;
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    (void)prctl(PR_SET_SECUREBITS, bits, 0, 0, 0); // only with one to drop
    return syscall(__NR_capset, &head, none) == 0;
}

/** In the script's first process: fences up, then the shell. */
_Noreturn static void start(const me_keep *keep, bool is_traced)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int signal = 1; signal < 32; signal++) {
        (void)sigaction(signal, &usual, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    lower(RLIMIT_CORE, 0);
    lower(RLIMIT_NOFILE, FILES_MAX);
    me_limit_for_good(RLIMIT_FSIZE, FILE_MAX_BYTES);
    if (ME_SCRIPT_LIMITS_MEMORY) {
        me_limit_for_good(RLIMIT_DATA, (uint64_t)ME_SCRIPT_MEMORY_MIB << 20);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !drop_capabilities()) {
        fall(keep, "privileges");
    }
    if (keep->fences.landlock &&
        !me_landlock_put_on(keep->place, !keep->fences.layer, is_traced)) {
        fall(keep, "Landlock");
    }
    if (keep->fences.filter && !me_filter_put_on(is_traced)) {
        fall(keep, "the filter of system calls");
    }
    (void)execve(keep->argv[0], keep->argv, keep->environment);
    say(keep, ME_KEEP_FAILED, keep->argv[0], strerror(errno));
    _exit(1);
}

/** NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): set by a signal */
static volatile sig_atomic_t is_late;

static void on_alarm(int signal)
{
    (void)signal;
    is_late = 1;
}

/** Exit code as a shell has it. */
static int code_of(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                  : 128 + WTERMSIG(wait_status);
}

static void say_end(const me_keep *keep, int wait_status)
{
    char code[4] = "";
    const int value = code_of(wait_status) & 255;
    code[0] = (char)('0' + value / 100);
    code[1] = (char)('0' + value / 10 % 10);
    code[2] = (char)('0' + value % 10);
    say(keep, ME_KEEP_ENDED, code, NULL);
}

/** Until all have ended, or the script has and background jobs take long. */
static void watch(const me_keep *keep, pid_t script)
{
    const struct sigaction wakes = {.sa_handler = on_alarm};
    int count = 1;
    (void)sigaction(SIGALRM, &wakes, NULL);
    while (is_late == 0) {
        int wait_status = 0;
        const pid_t pid = waitpid(-1, &wait_status, __WALL);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid < 0) {
            return;
        }
        if (WIFSTOPPED(wait_status)) {
            me_trace_go_on(keep->place, pid, wait_status, &count);
            if (count > ME_KEEP_MAX_PROCESSES) {
                say(keep, ME_KEEP_CROWD, "", NULL);
                return;
            }
            continue;
        }
        count--;
        if (pid == script) {
            say_end(keep, wait_status);
            (void)alarm(ME_KEEP_GRACE_SECONDS);
        }
    }
}

_Noreturn static void run(const me_keep *keep)
{
    int go[2];
    char is_traced = 0;
    if (pipe(go) != 0) {
        fall(keep, "a pipe");
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const pid_t script = fork();
    if (script < 0) {
        fall(keep, "a process");
    }
    if (script == 0) {
        (void)close(go[1]);
        const ssize_t n = read(go[0], &is_traced, 1);
        (void)close(go[0]);
        if (n == 1) {
            start(keep, is_traced != 0);
        }
        _exit(1);
    }
    (void)close(go[0]);
    (void)close(STDOUT_FILENO); // a keeper keeps no pipe of the script's
    (void)close(STDERR_FILENO);
    (void)close(ME_RECORD_FD);
    is_traced =
        keep->traces && keep->fences.filter && me_trace_begin(script) ? 1 : 0;
    if (!is_traced) {
        say(keep, ME_KEEP_PATHS, "", NULL);
    }
    const ssize_t n = write(go[1], &is_traced, 1);
    (void)close(go[1]);
    if (n == 1) {
        watch(keep, script);
    }
    _exit(0); // whoever waits for us kills the group
}

/** In front of the namespace's first process, whose end is the end of all. */
_Noreturn static void run_in_layer(const me_keep *keep)
{
    if (!me_layer_leave()) {
        fall(keep, "namespaces");
    }
    const pid_t first = fork();
    if (first < 0) {
        fall(keep, "namespaces");
    }
    if (first == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        const char *failed = me_layer_put_over(keep->place);
        if (failed != NULL) {
            fall(keep, failed);
        }
        run(keep);
    }
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    (void)close(ME_RECORD_FD);
    int wait_status = 0;
    while (waitpid(first, &wait_status, 0) < 0 && errno == EINTR) {
    }
    _exit(0);
}

static void on_orphaned(int signal)
{
    (void)kill(0, SIGKILL); // the group, this process with it
    (void)signal;
}

_Noreturn void me_keeper_run(const me_keep *keep)
{
    const struct sigaction ends_all = {.sa_handler = on_orphaned};
    sigset_t none;
    (void)setsid(); // no terminal: nothing can be typed into it
    (void)sigaction(SIGUSR1, &ends_all, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
    set_descriptors(keep);
    if (keep->fences.layer) {
        run_in_layer(keep);
    }
    run(keep);
}
