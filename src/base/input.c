/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/input.h"

#include "base/alloc.h"
#include "base/kept_text.h"
#include "base/log.h"
#include "base/stand_in.h"

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

static bool is_kind(const me_meaning *meaning, mode_t kind)
{
    struct stat about;
    return meaning->path[0] != '\0' && stat(meaning->path, &about) == 0 &&
           (about.st_mode & S_IFMT) == kind;
}

bool me_input_is_file(const char *path)
{
    me_meaning meaning;
    me_meaning_of(path, &meaning);
    return meaning.bytes != NULL || is_kind(&meaning, S_IFREG);
}

bool me_input_is_folder(const char *path)
{
    me_meaning meaning;
    me_meaning_of(path, &meaning);
    return meaning.is_above || is_kind(&meaning, S_IFDIR);
}

bool me_input_is_there(const char *path)
{
    struct stat about;
    me_meaning meaning;
    me_meaning_of(path, &meaning);
    return meaning.bytes != NULL || meaning.is_above ||
           (meaning.path[0] != '\0' && stat(meaning.path, &about) == 0);
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

/** Whoever names a file may be wrong about it; all else is the machine's. */
static bool is_about_file(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES ||
           error == EPERM || error == ELOOP || error == ENAMETOOLONG ||
           error == ENXIO || error == ENODEV || error == EINVAL;
}

static me_status fail_open(const char *path, me_diag *diag)
{
    if (!is_about_file(errno)) {
        me_alloc_lose_file();
    }
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

/** What Git leaves where it did not fetch a large file: three lines that name
 *  it. */
static bool is_lfs_pointer(FILE *file)
{
    static const char begins[] = "version https://git-lfs.github.com/spec/";
    char bytes[sizeof begins - 1];
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    rewind(file);
    return n == sizeof bytes && memcmp(bytes, begins, n) == 0;
}

me_status me_input_open(const char *path, me_diag *diag, FILE **file_out)
{
    int fd = -1;
    me_meaning meaning;
    me_meaning_of(path, &meaning);
    const bool is_read = meaning.bytes == NULL; // from a file
    const char *name = meaning.path[0] == '\0' ? path : meaning.path;
    const me_status status = is_read ? open_regular(name, diag, &fd) : ME_OK;
    if (status != ME_OK) {
        return status;
    }
    FILE *file = is_read ? fdopen(fd, "rb")
                         : fmemopen(meaning.bytes, meaning.length, "rb");
    if (file == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return me_fail_at(diag, ME_ERR_NOMEM, path, 0, "no memory to read it");
    }
    if (is_lfs_pointer(file)) {
        (void)fclose(file);
        return me_fail_at(diag, ME_ERR_IO, path, 0,
                          "is a Git LFS pointer, not the file: git lfs pull "
                          "fetches it");
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
        me_alloc_lose_file();
        return me_fail_at(diag, ME_ERR_IO, path, 0, "cannot read: %s",
                          strerror(errno));
    }
    if (me_str_status(text_out) != ME_OK) {
        return me_fail_at(diag, ME_ERR_NOMEM, path, 0, "no memory to read it");
    }
    return ME_OK;
}

/** Of the file itself; its text is kept. */
static me_status read_file(const char *path, const char *name, size_t max_bytes,
                           me_diag *diag, me_str *text_out)
{
    FILE *file = NULL;
    const size_t before = text_out->length;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    status = read_all(path, file, max_bytes, diag, text_out);
    (void)fclose(file);
    if (status == ME_OK) {
        status = me_input_check_text(path, me_str_text(text_out),
                                     text_out->length, diag);
    }
    if (status == ME_OK && name != NULL) {
        me_kept_text_add(name, me_str_text(text_out) + before,
                         text_out->length - before);
    }
    return status;
}

me_status me_input_read(const char *path, size_t max_bytes, me_diag *diag,
                        me_str *text_out)
{
    me_meaning meaning;
    me_meaning_of(path, &meaning);
    const bool is_file = meaning.bytes == NULL && meaning.path[0] != '\0';
    if (!is_file || !me_kept_text_find(meaning.path, text_out)) {
        return read_file(path, is_file ? meaning.path : NULL, max_bytes, diag,
                         text_out);
    }
    return me_str_status(text_out) == ME_OK
               ? ME_OK
               : me_fail_at(diag, ME_ERR_NOMEM, path, 0,
                            "no memory to read it");
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
