/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/outfile_unnamed.h"

#include "base/outfile_guard.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum {
    OWNER_READ_WRITE = 0600
};

#ifdef O_TMPFILE
static int open_unnamed(const char *folder)
{
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, OWNER_READ_WRITE);
}
#else
static int open_unnamed(const char *folder)
{
    (void)folder;
    return -1;
}
#endif

/** A file can be given a name once: another one tries it, before hours of work
 *  depend on it. */
static bool can_be_named(const char *folder, char *beside)
{
    size_t guard = 0;
    const int tried = open_unnamed(folder);
    const bool can =
        tried >= 0 && me_outfile_guard_make(beside, tried, &guard) >= 0;
    if (can) {
        (void)unlink(beside);
        me_outfile_guard_end(guard);
    }
    if (tried >= 0) {
        (void)close(tried);
    }
    return can;
}

int me_outfile_unnamed(const char *beside)
{
    me_str name = {0};
    me_str folder = {0};
    const char *slash = strrchr(beside, '/');
    me_str_append(&name, beside);
    me_str_append_n(&folder, slash == NULL ? "." : beside,
                    slash == NULL ? 1 : (size_t)(slash + 1 - beside));
    int descriptor = -1;
    if (me_str_status(&name) == ME_OK && me_str_status(&folder) == ME_OK &&
        can_be_named(folder.text, name.text)) {
        descriptor = open_unnamed(folder.text);
    }
    me_str_fini(&name);
    me_str_fini(&folder);
    return descriptor;
}
