/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/overlay.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOUNTS_MAX_BYTES = 1 << 20,
    LAYER_MIB = 256,
    ENTRIES_MAX = 4096 /**< of a folder that has mounts below */
};

/** What mount_setattr() takes (Linux 5.12, mount_setattr(2)). */
typedef struct attributes {
    uint64_t set;
    uint64_t clear;
    uint64_t propagation;
    uint64_t user_namespace;
} attributes;

#ifndef __NR_mount_setattr
#    define __NR_mount_setattr 442
#endif

static bool write_file(const char *path, const char *text)
{
    const int fd = openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    const size_t length = strlen(text);
    const bool is_written =
        fd >= 0 && write(fd, text, length) == (ssize_t)length;
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_written;
}

bool me_layer_leave(void)
{
    char users[64];
    char groups[64];
    (void)snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
    (void)snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                   CLONE_NEWIPC) == 0 &&
           write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", users) &&
           write_file("/proc/self/gid_map", groups);
}

/** A path below another. @return false: it is too long */
static bool join(char to[PATH_MAX], const char *folder, const char *below)
{
    const int n = snprintf(to, PATH_MAX, "%s%s", folder, below);
    return n > 0 && n < PATH_MAX;
}

/** `\040` and the like of mountinfo, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; to++) {
        if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] != '\0' &&
            at[3] != '\0') {
            *to = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + at[3] - '0');
            at += 4;
        } else {
            *to = *at++;
        }
    }
    *to = '\0';
}

static bool read_only(const char *path)
{
    const attributes what = {.set = 1}; // MOUNT_ATTR_RDONLY
    return syscall(__NR_mount_setattr, AT_FDCWD, path, 0x8000, // AT_RECURSIVE
                   &what, sizeof what) == 0;
}

/** The machine's own there, to be read only. */
static bool show(const char *from, const char *to)
{
    return mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0 && read_only(to);
}

/** The n-th overlay, of what lies at @p from, at @p to. */
static bool overlay(const char *layer, int n, const char *from, const char *to)
{
    char upper[PATH_MAX];
    char work[PATH_MAX];
    me_str data = {0};
    (void)snprintf(upper, sizeof upper, "%s/%d.up", layer, n);
    (void)snprintf(work, sizeof work, "%s/%d.work", layer, n);
    me_str_printf(&data, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", from,
                  upper, work);
    const bool is_over = strpbrk(from, ",:\\") == NULL &&
                         mkdir(upper, 0755) == 0 && mkdir(work, 0755) == 0 &&
                         me_str_status(&data) == ME_OK &&
                         mount("memest", to, "overlay", MS_NOSUID | MS_NODEV,
                               me_str_text(&data)) == 0;
    me_str_fini(&data);
    return is_over;
}

/** Devices that keep nothing, and where processes see each other. */
static bool make_devices(const char *root)
{
    static const char *const names[] = {"null", "zero", "full", "random",
                                        "urandom"};
    static const char *const links[] = {
        "/dev/fd",     "/proc/self/fd",   "/dev/stdin",  "/proc/self/fd/0",
        "/dev/stdout", "/proc/self/fd/1", "/dev/stderr", "/proc/self/fd/2"};
    char path[PATH_MAX];
    char from[64];
    bool is_fine = join(path, root, "/dev") &&
                   mount("memest", path, "tmpfs", MS_NOSUID | MS_NOEXEC,
                         "mode=755,size=16m") == 0;
    for (size_t i = 0; is_fine && i < sizeof names / sizeof *names; i++) {
        (void)snprintf(from, sizeof from, "/dev/%s", names[i]);
        const int fd =
            !join(path, root, from)
                ? -1
                : openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        is_fine = fd >= 0 && mount(from, path, NULL, MS_BIND, NULL) == 0;
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    for (size_t i = 0; is_fine && i < sizeof links / sizeof *links; i += 2) {
        is_fine =
            join(path, root, links[i]) && symlink(links[i + 1], path) == 0;
    }
    return is_fine && join(path, root, "/dev/shm") && mkdir(path, 0777) == 0;
}

static bool make_processes(const char *root)
{
    char path[PATH_MAX];
    if (!join(path, root, "/proc")) {
        return false;
    }
    if (mount("memest", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ==
        0) {
        return read_only(path);
    }
    return show("/proc", path); // part of it is hidden, as in a container
}

/** What the walk over the machine's folders works with. */
typedef struct cover {
    const char *layer;
    const char *root;
    const char *ways[3]; /**< folders that scripts write to, or NULL */
    bool takes_overlays; /**< false: none is tried, for tests */
    const char *mounts;  /**< paths, a NUL behind each, one more at the end */
    int n_overlays;
} cover;

/** Does anything lie mounted below a folder? Then it takes no overlay itself:
 *  a user may not take mounts apart that root put together. */
static bool has_mounts(const cover *c, const char *folder)
{
    const size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    for (const char *path = c->mounts; *path != '\0';
         path += strlen(path) + 1) {
        if (strncmp(path, folder, n) == 0 && path[n] == '/' &&
            path[n + 1] != '\0') {
            return true;
        }
    }
    return false;
}

/** Is it such a folder, or does one lie below? */
static bool is_on_way(const cover *c, const char *folder)
{
    const size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    bool is_on = false;
    for (size_t i = 0; i < sizeof c->ways / sizeof *c->ways; i++) {
        const char *way = c->ways[i];
        is_on = is_on || (way != NULL && strncmp(way, folder, n) == 0 &&
                          (way[n] == '/' || way[n] == '\0'));
    }
    return is_on;
}

static bool cover_folder(cover *c, const char *from, mode_t mode);

/** A link is made again; a file can be read. */
static bool cover_file(const char *from, const char *to, mode_t mode)
{
    char target[PATH_MAX];
    if (S_ISLNK(mode)) {
        const ssize_t n = readlink(from, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = '\0';
        return n < 0 || symlink(target, to) == 0;
    }
    if (!S_ISREG(mode)) {
        return true; // sockets, pipes and devices are left out
    }
    const int fd = openat(AT_FDCWD, to, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0 && show(from, to);
}

/** A folder that takes no overlay is made again, and each of its entries
 *  covered. */
static bool cover_entries(cover *c, const char *from)
{
    DIR *folder = opendir(from);
    bool is_fine = true;
    int left = ENTRIES_MAX;
    for (struct dirent *e = NULL;
         folder != NULL && is_fine && (e = readdir(folder)) != NULL;) {
        char path[PATH_MAX];
        char to[PATH_MAX];
        struct stat info;
        const int n = snprintf(path, sizeof path, "%s/%s",
                               strcmp(from, "/") == 0 ? "" : from, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            n < 0 || !join(to, c->root, path) || lstat(path, &info) != 0) {
            continue;
        }
        is_fine = left-- > 0 &&
                  (S_ISDIR(info.st_mode) ? cover_folder(c, path, info.st_mode)
                                         : cover_file(path, to, info.st_mode));
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return is_fine;
}

/** @return false: what lies there could be written, so nothing may run */
static bool cover_folder(cover *c, const char *from, mode_t mode)
{
    char to[PATH_MAX];
    if (!join(to, c->root, from)) {
        return false;
    }
    if (strcmp(from, "/") != 0 && mkdir(to, mode & 07777) != 0) {
        return false;
    }
    if (strcmp(from, "/dev") == 0 || strcmp(from, "/proc") == 0) {
        return true; // they come last
    }
    if (strcmp(from, "/sys") == 0) {
        return show(from, to);
    }
    if (strcmp(from, c->ways[0]) == 0) {
        return true; // the script's own TMPDIR is empty
    }
    if (has_mounts(c, from)) {
        return cover_entries(c, from);
    }
    if (c->takes_overlays && overlay(c->layer, c->n_overlays++, from, to)) {
        return true;
    }
    // Lustre and others take none: new files can be made beside old ones.
    return is_on_way(c, from) ? cover_entries(c, from) : show(from, to);
}

/** The fifth words of mountinfo's lines, in place, one behind the other. */
static void keep_paths(char *mounts)
{
    char *to = mounts;
    for (char *line = mounts; *line != '\0';) {
        char *end = strchr(line, '\n');
        char *path = line;
        for (int i = 0; i < 4 && path != NULL; i++) {
            path = strchr(path, ' ');
            path = path == NULL ? NULL : path + 1;
        }
        if (end == NULL || path == NULL || path > end) {
            break;
        }
        path[strcspn(path, " ")] = '\0';
        unescape(path);
        const size_t n = strlen(path) + 1;
        memmove(to, path, n);
        to += n;
        line = end + 1;
    }
    *to = '\0';
}

static bool read_mounts(me_str *mounts)
{
    char bytes[4096];
    const int fd =
        openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && mounts->length < MOUNTS_MAX_BYTES) {
        n = read(fd, bytes, sizeof bytes);
        me_str_append_n(mounts, bytes, n > 0 ? (size_t)n : 0);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return n == 0 && mounts->length > 0 && me_str_status(mounts) == ME_OK;
}

/** Everything else goes out of sight. */
static bool enter(const char *root)
{
    char folder[PATH_MAX];
    if (getcwd(folder, sizeof folder) == NULL || chdir(root) != 0 ||
        syscall(__NR_pivot_root, ".", ".") != 0 ||
        umount2(".", MNT_DETACH) != 0) {
        return false;
    }
    return chdir("/") == 0 && chdir(folder) == 0;
}

static const char *put_over(const me_place *place, me_str *mounts)
{
    char root[PATH_MAX];
    char folder[PATH_MAX];
    char size[64];
    (void)snprintf(size, sizeof size, "mode=700,size=%dm,nr_inodes=16k",
                   LAYER_MIB);
    if (!join(root, place->layer, "/root") ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("memest", place->layer, "tmpfs", MS_NOSUID | MS_NODEV, size) !=
            0 ||
        mkdir(root, 0755) != 0 || mount(root, root, NULL, MS_BIND, NULL) != 0) {
        return "a file system in memory";
    }
    const char *without = getenv("MEMEST_SCRIPT_WITHOUT");
    cover c = {
        .layer = place->layer,
        .root = root,
        .ways = {place->tmp, getenv("HOME"), getcwd(folder, sizeof folder)},
        .takes_overlays = without == NULL || strstr(without, "overlay") == NULL,
        .mounts = mounts->text};
    keep_paths(mounts->text);
    if (!cover_folder(&c, "/", 0755)) {
        return "an overlay";
    }
    if (!make_devices(root)) {
        return "devices that keep nothing";
    }
    if (!make_processes(root)) {
        return "the table of processes";
    }
    return enter(root) ? NULL : "another root";
}

const char *me_layer_put_over(const me_place *place)
{
    me_str mounts = {0};
    const char *failed =
        read_mounts(&mounts) ? put_over(place, &mounts) : "the table of mounts";
    const int error = errno;
    me_str_fini(&mounts);
    errno = error;
    return failed;
}
