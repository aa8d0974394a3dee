/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/outfile.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/outfile_guard.h"
#include "base/outfile_unnamed.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 1 << 16,
    ALL_READ_WRITE = 0666,
    LINKS_MAX = 40 /**< that Linux follows */
};

struct me_outfile {
    char *target;  /**< what the user named, links resolved */
    char *beside;  /**< what is written; NULL: the target itself */
    bool is_named; /**< there is a file of that name; else it is a template */
    FILE *stream;  /**< NULL once closed */
    uint64_t lost; /**< requests for memory, before it was made */
    size_t guard;  /**< of the file beside; see me_outfile_guard_make() */
};

/** The standard stream that goes to the regular file @p path, as it does to
 *  /dev/stdout then; -1: none. */
static int find_standard(const char *path)
{
    struct stat about;
    struct stat of_stream;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) {
        return -1;
    }
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        const int flags = fcntl(fd, F_GETFL);
        if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY &&
            fstat(fd, &of_stream) == 0 && of_stream.st_dev == about.st_dev &&
            of_stream.st_ino == about.st_ino) {
            return fd;
        }
    }
    return -1;
}

static int open_to_write(const char *path, bool appends)
{
    const int flags =
        O_WRONLY | O_NONBLOCK | (appends ? O_APPEND | O_CREAT : 0);
    const int descriptor = open(path, flags, ALL_READ_WRITE);
    if (descriptor >= 0) {
        const int now = fcntl(descriptor, F_GETFL);
        (void)fcntl(descriptor, F_SETFL, now & ~O_NONBLOCK);
    }
    return descriptor;
}

FILE *me_output_open(const char *path, bool appends)
{
    const int standard = find_standard(path);
    const int descriptor =
        standard >= 0 ? dup(standard) : open_to_write(path, appends);
    if (descriptor < 0) {
        return NULL;
    }
    FILE *stream = fdopen(descriptor, appends && standard < 0 ? "a" : "w");
    if (stream == NULL) {
        (void)close(descriptor);
    }
    return stream;
}

const char *me_output_reason(int error)
{
    return error == ENXIO ? "nobody reads this pipe" : strerror(error);
}

/** Where a link leads, though nothing is there yet: from its own folder. */
static char *follow(const char *path)
{
    char to[PATH_MAX];
    const ssize_t length = readlink(path, to, sizeof to);
    if (length <= 0 || (size_t)length == sizeof to) {
        return me_strdup(path, "outfile.target");
    }
    me_str target = {0};
    const char *slash = strrchr(path, '/');
    if (to[0] != '/' && slash != NULL) {
        me_str_append_n(&target, path, (size_t)(slash + 1 - path));
    }
    me_str_append_n(&target, to, (size_t)length);
    if (me_str_status(&target) != ME_OK) {
        me_str_fini(&target);
    }
    return target.text;
}

char *me_output_target(const char *path)
{
    struct stat about;
    char *real = realpath(path, NULL);
    char *target = me_strdup(real == NULL ? path : real, "outfile.target");
    // What is there though its links lead nowhere: /dev/stdout of a pipe.
    const bool is_there = real == NULL && stat(path, &about) == 0;
    for (int i = 0;
         real == NULL && !is_there && i < LINKS_MAX && target != NULL &&
         lstat(target, &about) == 0 && S_ISLNK(about.st_mode);
         i++) {
        char *next = follow(target);
        me_free(target);
        target = next;
    }
    me_free(real); // made by the C library
    return target;
}

static mode_t new_file_mode(void)
{
    const mode_t mask = umask(0);
    (void)umask(mask);
    return ALL_READ_WRITE & ~mask;
}

static me_status open_beside(me_outfile *file, mode_t mode, me_diag *diag)
{
    me_str name = {0};
    me_str_printf(&name, "%s.XXXXXX", file->target);
    if (me_str_status(&name) != ME_OK) {
        me_str_fini(&name);
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a file name");
    }
    int descriptor = me_outfile_unnamed(name.text);
    file->is_named = descriptor < 0;
    if (file->is_named) {
        descriptor = me_outfile_guard_make(name.text, -1, &file->guard);
    }
    if (descriptor < 0) {
        me_str_fini(&name);
        return me_fail(diag, ME_ERR_IO, "cannot write %s: %s", file->target,
                       strerror(errno));
    }
    file->beside = name.text;
    (void)fchmod(descriptor, mode);
    file->stream = fdopen(descriptor, "w");
    if (file->stream == NULL) {
        (void)close(descriptor);
        return me_fail(diag, ME_ERR_NOMEM, "no memory to write %s",
                       file->target);
    }
    return ME_OK;
}

static me_status open_stream(me_outfile *file, me_diag *diag)
{
    struct stat about;
    const bool exists = stat(file->target, &about) == 0;
    if (!exists &&
        errno != ENOENT) { // links in a circle, a path through a file
        return me_fail(diag, ME_ERR_IO, "cannot write %s: %s", file->target,
                       strerror(errno));
    }
    if (exists && S_ISDIR(about.st_mode)) {
        return me_fail(diag, ME_ERR_IO, "cannot write %s: it is a directory",
                       file->target);
    }
    if (exists &&
        (!S_ISREG(about.st_mode) || find_standard(file->target) >= 0)) {
        file->stream = me_output_open(file->target, false);
        return file->stream != NULL
                   ? ME_OK
                   : me_fail(diag, ME_ERR_IO, "cannot write %s: %s",
                             file->target, me_output_reason(errno));
    }
    return open_beside(file, exists ? about.st_mode & 07777 : new_file_mode(),
                       diag);
}

me_status me_outfile_create(const char *path, me_diag *diag,
                            me_outfile **file_out)
{
    me_outfile *file = me_alloc(1, sizeof *file, "outfile");
    if (file == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to write %s", path);
    }
    me_status status = me_input_check_output(path, diag);
    if (status != ME_OK) {
        goto out;
    }
    file->lost = me_alloc_lost();
    file->target = me_output_target(path);
    if (file->target == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no memory to write %s", path);
        goto out;
    }
    status = open_stream(file, diag);
    if (status != ME_OK) {
        goto out;
    }
    (void)setvbuf(file->stream, NULL, _IOFBF, BUFFER_BYTES);
    *file_out = file;
    file = NULL;
out:
    me_outfile_destroy(file);
    return status;
}

FILE *me_outfile_stream(me_outfile *file)
{
    return file->stream;
}

const char *me_stream_reason(FILE *stream, int error)
{
    if (error == 0) {
        errno = 0;
        error = write(fileno(stream), "\n", 1) < 0 ? errno : 0;
    }
    return error == 0 ? "a write failed" : strerror(error);
}

uint64_t me_stream_room(FILE *stream)
{
    struct stat about;
    struct statvfs disk;
    const int descriptor = fileno(stream);
    return fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
                   fstatvfs(descriptor, &disk) == 0
               ? (uint64_t)disk.f_bavail * disk.f_frsize
               : UINT64_MAX;
}

static me_status fail_write(const me_outfile *file, const char *reason,
                            me_diag *diag)
{
    return me_fail(diag, ME_ERR_IO, "cannot write %s: %s", file->target,
                   reason);
}

me_status me_outfile_truncate(me_outfile *file, uint64_t length, me_diag *diag)
{
    if (file->beside == NULL) {
        return me_fail(diag, ME_ERR_IO, "cannot take back text written to %s",
                       file->target);
    }
    errno = 0;
    if (fflush(file->stream) != 0 ||
        ftruncate(fileno(file->stream), (off_t)length) != 0 ||
        fseeko(file->stream, (off_t)length, SEEK_SET) != 0) {
        return fail_write(file, me_stream_reason(file->stream, errno), diag);
    }
    return ME_OK;
}

/** The file beside has its name from here on. @return false: errno says why not */
static bool name_beside(me_outfile *file)
{
    if (file->beside == NULL || file->is_named) {
        return true;
    }
    file->is_named = me_outfile_guard_make(file->beside, fileno(file->stream),
                                           &file->guard) >= 0;
    return file->is_named;
}

me_status me_outfile_commit(me_outfile *file, me_diag *diag)
{
    const me_status status = me_alloc_check(file->lost, ME_OK, diag);
    if (status != ME_OK) {
        return status;
    }
    errno = 0;
    const bool is_written =
        ferror(file->stream) == 0 && fflush(file->stream) == 0 &&
        (file->beside == NULL || fsync(fileno(file->stream)) == 0) &&
        name_beside(file);
    const char *reason =
        is_written ? NULL : me_stream_reason(file->stream, errno);
    errno = 0;
    const bool is_closed = fclose(file->stream) == 0;
    file->stream = NULL;
    if (!is_written || !is_closed) {
        return fail_write(file, is_written ? strerror(errno) : reason, diag);
    }
    if (file->beside == NULL) {
        return ME_OK;
    }
    if (rename(file->beside, file->target) != 0) {
        return fail_write(file, strerror(errno), diag);
    }
    me_outfile_guard_end(file->guard);
    me_free(file->beside);
    file->beside = NULL;
    return ME_OK;
}

void me_outfile_destroy(me_outfile *file)
{
    if (file == NULL) {
        return;
    }
    if (file->stream != NULL) {
        (void)fclose(file->stream);
    }
    if (file->beside != NULL && file->is_named) {
        (void)unlink(file->beside);
        me_outfile_guard_end(file->guard);
    }
    me_free(file->beside);
    me_free(file->target);
    me_free(file);
}
