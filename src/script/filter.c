/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/filter.h"

#include "script/keep.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#    define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#    define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#    define ARCHITECTURE 0U
#endif

enum {
    /** Numbers from here on are x86-64's second, 32-bit table. */
    SECOND_TABLE = 0x40000000,
    ROWS_MAX = 512
};

/** Refused: what reaches out of the process, or would take the fences down. */
static const uint32_t refused[] = {
    __NR_socket,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
    __NR_sendto,
    __NR_sendmsg,
    __NR_sendmmsg,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_unshare,
    __NR_setns,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_adjtimex,
    __NR_clock_adjtime,
    __NR_acct,
    __NR_quotactl,
    __NR_syslog,
    __NR_open_by_handle_at,
    __NR_userfaultfd,
    __NR_memfd_create,
    __NR_fanotify_init,
    __NR_kcmp,
    __NR_migrate_pages,
    __NR_move_pages,
    __NR_shmget,
    __NR_semget,
    __NR_msgget,
    __NR_mq_open,
    __NR_vhangup,
    __NR_personality,
    __NR_setpriority,
    __NR_sched_setaffinity,
    __NR_sched_setscheduler,
    __NR_sched_setparam,
    __NR_sched_setattr,
    __NR_ioprio_set,
    __NR_mknodat,
    __NR_truncate,
#ifdef __NR_mknod
    __NR_mknod,
#endif
#ifdef __NR_pidfd_open
    __NR_pidfd_open,
    __NR_pidfd_send_signal,
    __NR_open_tree,
    __NR_move_mount,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
#endif
#ifdef __NR_pidfd_getfd
    __NR_pidfd_getfd,
#endif
#ifdef __NR_process_madvise
    __NR_process_madvise,
#endif
#ifdef __NR_mount_setattr
    __NR_mount_setattr,
#endif
#ifdef __NR_kexec_file_load
    __NR_kexec_file_load,
#endif
};

/** Not there: a library then takes what this filter can look into. */
static const uint32_t absent[] = {
#ifdef __NR_clone3
    __NR_clone3,
#endif
#ifdef __NR_io_uring_setup
    __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register,
#endif
    __NR_execveat,
};

/** Nothing happens, with success: scripts do it to their own files and jobs. A
 *  process that cannot leave its group dies with it. */
static const uint32_t nothing[] = {
    __NR_kill,
#ifdef __NR_setrlimit
    __NR_setrlimit, // glibc's is prlimit64()
#endif
    __NR_tkill,
    __NR_tgkill,
    __NR_rt_sigqueueinfo,
    __NR_rt_tgsigqueueinfo,
    __NR_setpgid,
    __NR_setsid,
    __NR_fchmod,
    __NR_fchmodat,
    __NR_fchown,
    __NR_fchownat,
    __NR_utimensat,
    __NR_setxattr,
    __NR_lsetxattr,
    __NR_fsetxattr,
    __NR_removexattr,
    __NR_lremovexattr,
    __NR_fremovexattr,
#ifdef __NR_chmod
    __NR_chmod,
    __NR_chown,
    __NR_lchown,
    __NR_utime,
    __NR_utimes,
    __NR_futimesat,
#endif
#ifdef __NR_fchmodat2
    __NR_fchmodat2,
#endif
};

typedef struct filter {
    struct sock_filter rows[ROWS_MAX];
    uint16_t count;
} filter;

static void add(filter *f, struct sock_filter row)
{
    if (f->count < ROWS_MAX) {
        f->rows[f->count++] = row;
    }
}

static void load(filter *f, size_t at)
{
    add(f,
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at));
}

static void answer(filter *f, uint32_t action)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/** Each of the calls ends in @p action. */
static void rule(filter *f, const uint32_t *calls, size_t count,
                 uint32_t action)
{
    for (size_t i = 0; i < count; i++) {
        add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
                                            0, 1));
        answer(f, action);
    }
}

static uint32_t fails_with(int error)
{
    return SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA);
}

enum {
    /** The half of an argument that holds a small number: little-endian. */
    FIRST_ARGUMENT = offsetof(struct seccomp_data, args),
    SECOND_ARGUMENT = FIRST_ARGUMENT + 8,
    THIRD_ARGUMENT = FIRST_ARGUMENT + 16
};

/** Whose low word of argument has one of these values fails. */
static void refuse_values(filter *f, uint32_t call, size_t argument,
                          const uint32_t *values, uint8_t count)
{
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0,
                                        (uint8_t)(3 + count)));
    load(f, argument);
    for (uint8_t i = 0; i < count; i++) {
        add(f,
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, values[i],
                                         (uint8_t)(count - i), 0));
    }
    answer(f, SECCOMP_RET_ALLOW);
    answer(f, fails_with(EPERM));
}

/** Limits of other processes are not touched. Of its own a script may read all
 *  and set none, with success, as it would on its machine: a raise is beyond what
 *  memest may have here, or beyond its fence. Set is what holds Python: its time,
 *  and its memory where the script's own is not limited. */
static void look_into_limits(filter *f)
{
    const uint32_t other = ME_SCRIPT_LIMITS_MEMORY ? RLIMIT_CPU : RLIMIT_DATA;
    const struct sock_filter rows[] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_prlimit64, 0, 12),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIRST_ARGUMENT), // the process
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, fails_with(EPERM)),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, THIRD_ARGUMENT), // what is set
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, THIRD_ARGUMENT + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SECOND_ARGUMENT), // which
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_CPU, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, fails_with(0)),
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        add(f, rows[i]);
    }
}

/** clone() with new namespaces fails; what puts characters into a terminal, and
 *  what has the kernel send a signal to others, as well. */
static void look_into_arguments(filter *f)
{
    static const uint32_t controls[] = {TIOCSTI, TIOCLINUX, FIOSETOWN,
                                        SIOCSPGRP};
    static const uint32_t owners[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};
    const uint32_t spaces = CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID |
                            CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                            CLONE_NEWCGROUP | CLONE_UNTRACED;
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone,
                                        0, 4));
    load(f, FIRST_ARGUMENT);
    add(f,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, spaces, 0, 1));
    answer(f, fails_with(EPERM));
    answer(f, SECCOMP_RET_ALLOW);
    refuse_values(f, __NR_ioctl, SECOND_ARGUMENT, controls,
                  sizeof controls / sizeof *controls);
    refuse_values(f, __NR_fcntl, SECOND_ARGUMENT, owners,
                  sizeof owners / sizeof *owners);
}

static void build(filter *f, bool traces_exec)
{
    static const uint32_t starts[] = {__NR_execve};
    load(f, offsetof(struct seccomp_data, arch));
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE,
                                        1, 0));
    answer(f, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr));
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SECOND_TABLE,
                                        0, 1));
    answer(f, fails_with(ENOSYS));
    rule(f, refused, sizeof refused / sizeof *refused, fails_with(EACCES));
    rule(f, absent, sizeof absent / sizeof *absent, fails_with(ENOSYS));
    rule(f, nothing, sizeof nothing / sizeof *nothing, fails_with(0));
    rule(f, starts, traces_exec ? 1 : 0, SECCOMP_RET_TRACE);
    look_into_arguments(f);
    look_into_limits(f);
    answer(f, SECCOMP_RET_ALLOW);
}

bool me_filter_works(void)
{
    const uint32_t action = SECCOMP_RET_KILL_PROCESS;
    return ARCHITECTURE != 0U &&
           syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool me_filter_put_on(bool traces_exec)
{
    filter f = {.count = 0};
    build(&f, traces_exec);
    const struct sock_fprog program = {.len = f.count, .filter = f.rows};
    return f.count < ROWS_MAX &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
