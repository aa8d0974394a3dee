/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/stand_in.h"

#include "base/alloc.h"
#include "base/input.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Bytes, or a file, that are read in place of a file. */
typedef struct stand_in {
    char *path; /**< absolute, see spell_out() */
    char *bytes;
    size_t length;
    bool is_link; /**< the bytes are the path of what is read */
} stand_in;

/** What a launch's names mean. */
typedef struct stand_ins {
    stand_in files[ME_INPUT_STAND_INS_MAX];
    size_t count;
    char *folder; /**< of relative names; NULL: that of this process */
    char *strays[ME_INPUT_STRAYS_MAX]; /**< read elsewhere than there */
    size_t n_strays;
} stand_ins;

/** Writable at file scope: a job's launch is read with them, and they are dropped
 * behind it. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): above
static stand_ins written_by_script;

/** Without its last name. */
static size_t cut_name(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    return length == 0 ? 0 : length - 1;
}

/** Append the names of @p path, of which `.` says nothing and `..` takes one
 *  back. @return the length; 0: too long */
static size_t append(char to[PATH_MAX], size_t length, const char *path)
{
    for (;;) {
        path += strspn(path, "/");
        const size_t n = strcspn(path, "/");
        if (n == 0) {
            to[length] = '\0';
            return length;
        }
        if (n == 2 && path[0] == '.' && path[1] == '.') {
            length = cut_name(to, length);
        } else if (n != 1 || path[0] != '.') {
            if (length + n + 2 > PATH_MAX) {
                return 0;
            }
            to[length] = '/';
            memcpy(to + length + 1, path, n);
            length += n + 1;
        }
        path += n;
    }
}

/** A name as it is meant in a folder, which is this process's where it is NULL.
 *  @return false: it is too long, or none */
static bool spell_out(const char *folder, const char *path, char to[PATH_MAX])
{
    char here[PATH_MAX] = "";
    size_t length = 0;
    if (path[0] == '\0') {
        return false;
    }
    if (path[0] != '/') {
        if (folder == NULL && getcwd(here, sizeof here) == NULL) {
            return false;
        }
        length = append(to, 0, folder == NULL ? here : folder);
    }
    return append(to, length, path) > 0;
}

static const stand_in *find(const char *path)
{
    for (size_t i = 0; i < written_by_script.count; i++) {
        if (strcmp(path, written_by_script.files[i].path) == 0) {
            return &written_by_script.files[i];
        }
    }
    return NULL;
}

/** Does something stand in for a file below a folder? */
static bool is_above(const char *path)
{
    const size_t length = strlen(path);
    bool is_one = false;
    for (size_t i = 0; !is_one && i < written_by_script.count; i++) {
        const char *file = written_by_script.files[i].path;
        is_one = strncmp(file, path, length) == 0 && file[length] == '/';
    }
    return is_one;
}

/** What a name in a folder is, if there is anything. */
static bool look(const char *folder, const char *path, me_meaning *out)
{
    char whole[PATH_MAX] = "";
    struct stat about;
    const size_t length = strlen(path);
    if (!spell_out(folder, path, whole)) {
        return false;
    }
    const bool is_file = path[length - 1] != '/';
    const stand_in *in = is_file ? find(whole) : NULL;
    out->is_above = is_above(whole);
    if (in != NULL && in->is_link) {
        (void)snprintf(out->path, sizeof out->path, "%s", in->bytes);
    } else if (in != NULL) {
        out->bytes = in->bytes;
        out->length = in->length;
    } else if (folder != NULL && path[0] != '/') {
        const int n = snprintf(whole, sizeof whole, "%s/%s", folder, path);
        memcpy(out->path, whole, sizeof whole);
        return out->is_above ||
               (n > 0 && (size_t)n < sizeof whole && stat(whole, &about) == 0);
    }
    return true;
}

/** A name that is not in the launch's folder, but where memest was started. */
static void keep_stray(const char *path)
{
    stand_ins *all = &written_by_script;
    for (size_t i = 0; i < all->n_strays; i++) {
        if (strcmp(all->strays[i], path) == 0) {
            return;
        }
    }
    if (all->n_strays < ME_INPUT_STRAYS_MAX) {
        char *copy = me_strdup(path, "a script's file");
        all->strays[all->n_strays] = copy;
        all->n_strays += copy != NULL;
    }
}

void me_meaning_of(const char *path, me_meaning *out)
{
    struct stat about;
    const char *folder = written_by_script.folder;
    *out = (me_meaning){.path = ""};
    if (strlen(path) >= sizeof out->path) {
        return;
    }
    memcpy(out->path, path, strlen(path) + 1);
    if (written_by_script.count == 0 && folder == NULL) {
        return;
    }
    if (look(folder, path, out) || path[0] == '/') {
        return;
    }
    *out = (me_meaning){.path = ""};
    memcpy(out->path, path, strlen(path) + 1);
    (void)look(NULL, path, out);
    if (path[0] != '\0' &&
        (out->bytes != NULL || out->is_above || stat(out->path, &about) == 0)) {
        keep_stray(path);
    }
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

static me_status add(const char *path, const char *bytes, size_t length,
                     bool is_link, me_diag *diag)
{
    stand_ins *all = &written_by_script;
    char whole[PATH_MAX];
    if (!spell_out(all->folder, path, whole) || find(whole) != NULL) {
        return ME_OK;
    }
    if (all->count == ME_INPUT_STAND_INS_MAX) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "a launch that names more than %d files which its "
                       "script writes",
                       ME_INPUT_STAND_INS_MAX);
    }
    const stand_in file = {.path = copy_bytes(whole, strlen(whole)),
                           .bytes = copy_bytes(bytes, length),
                           .length = length,
                           .is_link = is_link};
    if (file.path == NULL || file.bytes == NULL) {
        me_free(file.path);
        me_free(file.bytes);
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a script's files");
    }
    all->files[all->count++] = file;
    return ME_OK;
}

me_status me_input_stand_in(const char *path, const char *bytes, size_t length,
                            me_diag *diag)
{
    return add(path, bytes, length, false, diag);
}

me_status me_input_link(const char *path, const char *to, me_diag *diag)
{
    return add(path, to, strlen(to), true, diag);
}

me_status me_input_enter(const char *folder, me_diag *diag)
{
    me_free(written_by_script.folder);
    written_by_script.folder = copy_bytes(folder, strlen(folder));
    return written_by_script.folder != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no memory for a folder's name");
}

const char *me_input_stray(size_t index)
{
    return index < written_by_script.n_strays ? written_by_script.strays[index]
                                              : NULL;
}

void me_input_stand_ins_end(void)
{
    stand_ins *all = &written_by_script;
    me_free(all->folder);
    all->folder = NULL;
    for (size_t i = 0; i < all->count; i++) {
        me_free(all->files[i].path);
        me_free(all->files[i].bytes);
    }
    for (size_t i = 0; i < all->n_strays; i++) {
        me_free(all->strays[i]);
    }
    all->count = 0;
    all->n_strays = 0;
}
