/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/trace.h"

#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where an architecture keeps the first argument of a system call, and the
 * stack. */
#if defined(__x86_64__)
#    include <elf.h>
#    define PATH_REGISTER(r)  ((r)->rdi)
#    define STACK_REGISTER(r) ((r)->rsp)
#    define IS_KNOWN          true
#elif defined(__aarch64__)
#    include <elf.h>
#    define PATH_REGISTER(r)  ((r)->regs[0])
#    define STACK_REGISTER(r) ((r)->sp)
#    define IS_KNOWN          true
#endif

enum {
    RED_ZONE = 128, /**< below the stack, may be in use (the x86-64 ABI) */
    OPTIONS = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
              PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE
};

bool me_trace_begin(pid_t child)
{
#ifdef IS_KNOWN
    return ptrace(PTRACE_SEIZE, child, 0, OPTIONS) == 0;
#else
    (void)child;
    return false;
#endif
}

#ifdef IS_KNOWN
/** A text of another process, page by page, as far as it can be read. */
static bool read_text(pid_t child, uint64_t at, char text[PATH_MAX])
{
    size_t filled = 0;
    while (filled < PATH_MAX) {
        const size_t page = 4096 - (size_t)((at + filled) & 4095U);
        const size_t room = PATH_MAX - filled;
        const size_t n = page < room ? page : room;
        struct iovec to = {.iov_base = text + filled, .iov_len = n};
        // NOLINTNEXTLINE(performance-no-int-to-ptr): of another process
        struct iovec from = {.iov_base = (void *)(uintptr_t)(at + filled),
                             .iov_len = n};
        if (process_vm_readv(child, &to, 1, &from, 1, 0) != (ssize_t)n) {
            return false;
        }
        if (memchr(text + filled, '\0', n) != NULL) {
            return true;
        }
        filled += n;
    }
    return false;
}

/** May it run as it is: a command of the script's folder, or a program that a
 *  name there stands for? */
static bool is_own(const me_place *place, const char *path)
{
    struct stat asked;
    struct stat own;
    const size_t n = strlen(place->bin);
    if (strncmp(path, place->bin, n) == 0 && path[n] == '/') {
        return true;
    }
    if (path[0] != '/' || stat(path, &asked) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < place->n_programs; i++) {
        if (stat(place->programs[i], &own) == 0 && own.st_dev == asked.st_dev &&
            own.st_ino == asked.st_ino) {
            return strstr(path, "/ld-linux") == NULL;
        }
    }
    return false;
}

/** The program that execve() is to start becomes memest. */
static void replace_program(const me_place *place, pid_t child)
{
    char path[PATH_MAX];
    struct user_regs_struct registers;
    struct iovec all = {.iov_base = &registers, .iov_len = sizeof registers};
    if (ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &all) != 0 ||
        (read_text(child, PATH_REGISTER(&registers), path) &&
         is_own(place, path))) {
        return;
    }
    const size_t length = strlen(place->other) + 1;
    const uint64_t at =
        (STACK_REGISTER(&registers) - RED_ZONE - length) & ~UINT64_C(15);
    struct iovec from = {.iov_base = place->other, .iov_len = length};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of another process
    struct iovec to = {.iov_base = (void *)(uintptr_t)at, .iov_len = length};
    if (process_vm_writev(child, &from, 1, &to, 1, 0) == (ssize_t)length) {
        PATH_REGISTER(&registers) = at;
        (void)ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &all);
    }
}
#endif

void me_trace_go_on(const me_place *place, pid_t child, int wait_status,
                    int *count)
{
    const int event = wait_status >> 16;
    int signal = WSTOPSIG(wait_status);
    if (event == PTRACE_EVENT_SECCOMP) {
#ifdef IS_KNOWN
        replace_program(place, child);
#else
        (void)place;
#endif
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
               event == PTRACE_EVENT_CLONE) {
        ++*count;
    }
    if (event != 0) {
        signal = 0;
    }
    (void)ptrace(PTRACE_CONT, child, 0, signal);
}
