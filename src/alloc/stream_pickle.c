/* SPDX-License-Identifier: BSD-3-Clause */
/* A memory snapshot as Python wrote it: the same as JSON, which is read. */
#include "alloc/stream_internal.h"
#include "base/pickle.h"

#include <errno.h>
#include <string.h>

/** What is read of a snapshot, see snapshot.c. */
static const char *const keys[] = {
    "segments", "device_traces",  "action", "addr",    "size",  "stream",
    "blocks",   "requested_size", "state",  "address", "device"};

/** A copy of all that the source has; NULL, with errno, if there can be none. */
static FILE *copy_all(snapshot_source source)
{
    FILE *copy = tmpfile();
    char buffer[BUFSIZ];
    const char *from = source.head;
    size_t n = source.head_length;
    bool is_whole = copy != NULL;
    while (is_whole && n > 0) {
        is_whole = fwrite(from, 1, n, copy) == n;
        from = buffer;
        n = is_whole ? fread(buffer, 1, sizeof buffer, source.file) : 0;
    }
    if (copy != NULL &&
        (!is_whole || ferror(source.file) || fseek(copy, 0, SEEK_SET) != 0)) {
        const int reason = errno;
        (void)fclose(copy);
        errno = reason;
        copy = NULL;
    }
    return copy;
}

me_status me_stream_unpickle(snapshot_source source, const char *name,
                             me_diag *diag, FILE **json_out)
{
    FILE *copy = NULL;
    FILE *file = source.file;
    if (fseek(file, -(long)source.head_length, SEEK_CUR) != 0) {
        copy = copy_all(source);
        if (copy == NULL) {
            return me_fail(diag, ME_ERR_IO,
                           "%s cannot be copied to a temporary file: %s", name,
                           strerror(errno));
        }
        file = copy;
    }
    const me_pickle_wanted wanted = {.keys = keys,
                                     .n_keys = sizeof keys / sizeof keys[0],
                                     .part = source.part};
    const me_status status =
        me_pickle_to_json(file, name, &wanted, diag, json_out);
    if (copy != NULL) {
        (void)fclose(copy);
    }
    return status;
}
