/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/input.h"

#include "base/alloc.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MARK_BYTES = 3
};

/** Files that are written, and so not read. */
typedef struct written {
    const char *flag[ME_INPUT_APART_MAX];
    const char *path[ME_INPUT_APART_MAX];
    bool is_refused[ME_INPUT_APART_MAX]; /**< to a reader, so far */
    size_t count;
} written;

/** Writable at file scope: what a process writes is the process's, and no
 * result depends on it. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): above
static written apart;

void me_input_keep_apart(const char *const *flags, const char *const *paths,
                         size_t n)
{
    apart.count = n < ME_INPUT_APART_MAX ? n : ME_INPUT_APART_MAX;
    for (size_t i = 0; i < apart.count; i++) {
        apart.flag[i] = flags[i];
        apart.path[i] = paths[i];
        apart.is_refused[i] = false;
    }
}

/** Bytes that are read in place of a file. */
typedef struct stand_in {
    char *path;
    char *bytes;
    size_t length;
} stand_in;

typedef struct stand_ins {
    stand_in files[ME_INPUT_STAND_INS_MAX];
    size_t count;
    char *folder; /**< of relative names; NULL: that of this process */
} stand_ins;

/** As above: a job's launch is read with them, and they are dropped behind it. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): above
static stand_ins written_by_script;

/** Behind what says nothing in a path: `./`, and slashes but one. */
static const char *skip_nothing(const char *path, bool is_begin)
{
    for (;;) {
        const bool is_slash = path[0] == '/' && path[1] == '/';
        const bool is_dot = path[0] == '.' && path[1] == '/' && is_begin;
        const bool is_inner =
            path[0] == '/' && path[1] == '.' && path[2] == '/';
        if (!is_slash && !is_dot && !is_inner) {
            return path;
        }
        path += is_slash ? 1 : 2;
    }
}

/** What is left of @p path behind the names that it shares with @p of, which are
 *  all of @p of's; NULL: it leads elsewhere. */
static const char *rest_of(const char *path, const char *of)
{
    path = skip_nothing(path, true);
    of = skip_nothing(of, true);
    while (*of != '\0' && *path == *of) {
        path = skip_nothing(path + 1, false);
        of = skip_nothing(of + 1, false);
    }
    return *of == '\0' ? path : NULL;
}

static const stand_in *find_stand_in(const char *path)
{
    for (size_t i = 0; i < written_by_script.count; i++) {
        const char *rest = rest_of(path, written_by_script.files[i].path);
        if (rest != NULL && *rest == '\0') {
            return &written_by_script.files[i];
        }
    }
    return NULL;
}

/** Does something stand in for a file below a folder? */
static bool has_stand_in(const char *path)
{
    bool is_folder = false;
    for (size_t i = 0; !is_folder && i < written_by_script.count; i++) {
        const char *rest = rest_of(written_by_script.files[i].path, path);
        is_folder = path[0] != '\0' && rest != NULL && rest[0] != '\0' &&
                    (rest[0] == '/' || path[strlen(path) - 1] == '/');
    }
    return is_folder;
}

/** A name as it is in the folder of me_input_enter(). @return false: there is
 *  none, or nothing of that name */
static bool find_entered(const char *path, char joined[PATH_MAX])
{
    struct stat about;
    const char *folder = written_by_script.folder;
    if (folder == NULL || path[0] == '/' || path[0] == '\0') {
        return false;
    }
    const int n = snprintf(joined, PATH_MAX, "%s/%s", folder, path);
    return n > 0 && n < PATH_MAX &&
           (find_stand_in(joined) != NULL || has_stand_in(joined) ||
            stat(joined, &about) == 0);
}

/** Where a name is read: what stands in for it comes before the folder. */
static const char *where(const char *path, bool has_stand_in_of_it,
                         char joined[PATH_MAX])
{
    return !has_stand_in_of_it && find_entered(path, joined) ? joined : path;
}

static char *copy_bytes(const char *bytes, size_t length)
{
    char *copy = me_alloc(length + 1, 1, "a script's file");
    if (copy != NULL) {
        memcpy(copy, bytes, length);
        copy[length] = '\0';
    }
    return copy;
}

me_status me_input_stand_in(const char *path, const char *bytes, size_t length,
                            me_diag *diag)
{
    stand_ins *all = &written_by_script;
    if (find_stand_in(path) != NULL) {
        return ME_OK;
    }
    if (all->count == ME_INPUT_STAND_INS_MAX) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "a launch that names more than %d files which its "
                       "script writes",
                       ME_INPUT_STAND_INS_MAX);
    }
    const stand_in file = {.path = copy_bytes(path, strlen(path)),
                           .bytes = copy_bytes(bytes, length),
                           .length = length};
    if (file.path == NULL || file.bytes == NULL) {
        me_free(file.path);
        me_free(file.bytes);
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a script's files");
    }
    all->files[all->count++] = file;
    return ME_OK;
}

me_status me_input_enter(const char *folder, me_diag *diag)
{
    me_free(written_by_script.folder);
    written_by_script.folder = copy_bytes(folder, strlen(folder));
    return written_by_script.folder != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no memory for a folder's name");
}

void me_input_stand_ins_end(void)
{
    me_free(written_by_script.folder);
    written_by_script.folder = NULL;
    for (size_t i = 0; i < written_by_script.count; i++) {
        me_free(written_by_script.files[i].path);
        me_free(written_by_script.files[i].bytes);
    }
    written_by_script.count = 0;
}

bool me_input_is_file(const char *path)
{
    struct stat about;
    char joined[PATH_MAX];
    path = where(path, find_stand_in(path) != NULL, joined);
    return find_stand_in(path) != NULL ||
           (stat(path, &about) == 0 && S_ISREG(about.st_mode));
}

bool me_input_is_folder(const char *path)
{
    struct stat about;
    char joined[PATH_MAX];
    path = where(path, has_stand_in(path), joined);
    return has_stand_in(path) ||
           (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

bool me_input_is_there(const char *path)
{
    struct stat about;
    return me_input_is_file(path) || me_input_is_folder(path) ||
           stat(path, &about) == 0;
}

static bool is_file(const char *path, const struct stat *about)
{
    struct stat other;
    return stat(path, &other) == 0 && about->st_dev == other.st_dev &&
           about->st_ino == other.st_ino;
}

static me_status refuse(const char *path, const char *flag, me_diag *diag)
{
    return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                      "is what %s would write over: give another file", flag);
}

/** The other file may have been made since: it is looked at each time. */
static me_status check_apart(const char *path, const struct stat *about,
                             me_diag *diag)
{
    for (size_t i = 0; i < apart.count; i++) {
        if (is_file(apart.path[i], about)) {
            apart.is_refused[i] = true;
            me_log_close(); // which may be that file
            return refuse(path, apart.flag[i], diag);
        }
    }
    return ME_OK;
}

me_status me_input_check_output(const char *path, me_diag *diag)
{
    struct stat about;
    const bool is_there = stat(path, &about) == 0;
    for (size_t i = 0; is_there && i < apart.count; i++) {
        if (apart.is_refused[i] && is_file(apart.path[i], &about)) {
            return refuse(path, apart.flag[i], diag);
        }
    }
    return ME_OK;
}

static me_status fail_open(const char *path, me_diag *diag)
{
    return me_fail_at(diag, ME_ERR_IO, path, 0, "cannot open: %s",
                      strerror(errno));
}

static me_status check_kind(const char *path, const struct stat *about,
                            me_diag *diag)
{
    if (S_ISREG(about->st_mode)) {
        return ME_OK;
    }
    return me_fail_at(diag, ME_ERR_IO, path, 0,
                      S_ISDIR(about->st_mode)
                          ? "is a directory, not a regular file"
                          : "is not a regular file");
}

/** A device may do something when it is opened, and a pipe waits for its
 * writer; what takes the file's place in between is seen behind the open. */
static me_status open_regular(const char *path, me_diag *diag, int *fd_out)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        return fail_open(path, diag);
    }
    me_status status = check_kind(path, &about, diag);
    if (status != ME_OK) {
        return status;
    }
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0) {
        status = fail_open(path, diag);
    } else {
        status = check_kind(path, &about, diag);
    }
    if (status == ME_OK) {
        status = check_apart(path, &about, diag);
    }
    if (status == ME_OK) {
        *fd_out = fd;
    } else if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

me_status me_input_open(const char *path, me_diag *diag, FILE **file_out)
{
    int fd = -1;
    char joined[PATH_MAX];
    path = where(path, find_stand_in(path) != NULL, joined);
    const stand_in *in = find_stand_in(path);
    const me_status status = in == NULL ? open_regular(path, diag, &fd) : ME_OK;
    if (status != ME_OK) {
        return status;
    }
    FILE *file =
        in == NULL ? fdopen(fd, "rb") : fmemopen(in->bytes, in->length, "rb");
    if (file == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return me_fail_at(diag, ME_ERR_NOMEM, path, 0, "no memory to read it");
    }
    *file_out = file;
    return ME_OK;
}

static me_status read_all(const char *path, FILE *file, size_t max_bytes,
                          me_diag *diag, me_str *text_out)
{
    char block[4096];
    size_t n = 0;
    size_t sum = 0;
    while ((n = fread(block, 1, sizeof block, file)) > 0) {
        const size_t skipped = sum == 0 ? me_input_mark_bytes(block, n) : 0;
        me_str_append_n(text_out, block + skipped, n - skipped);
        sum += n;
        if (sum > max_bytes) {
            return me_fail_at(diag, ME_ERR_IO, path, 0,
                              "is over %zu MiB, which no file of its kind is",
                              max_bytes >> 20);
        }
    }
    if (ferror(file)) {
        return me_fail_at(diag, ME_ERR_IO, path, 0, "cannot read: %s",
                          strerror(errno));
    }
    if (me_str_status(text_out) != ME_OK) {
        return me_fail_at(diag, ME_ERR_NOMEM, path, 0, "no memory to read it");
    }
    return ME_OK;
}

me_status me_input_read(const char *path, size_t max_bytes, me_diag *diag,
                        me_str *text_out)
{
    FILE *file = NULL;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    status = read_all(path, file, max_bytes, diag, text_out);
    (void)fclose(file);
    return status == ME_OK ? me_input_check_text(path, me_str_text(text_out),
                                                 text_out->length, diag)
                           : status;
}

size_t me_input_mark_bytes(const char *text, size_t length)
{
    return length >= MARK_BYTES && memcmp(text, "\xEF\xBB\xBF", MARK_BYTES) == 0
               ? MARK_BYTES
               : 0;
}

me_status me_input_check_text(const char *where, const char *text,
                              size_t length, me_diag *diag)
{
    int line = 1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\0') {
            return me_fail_at(diag, ME_ERR_SYNTAX, where, line,
                              "binary file: it has a NUL byte");
        }
        line += text[i] == '\n';
    }
    return ME_OK;
}
