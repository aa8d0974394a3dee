/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/landlock.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __NR_landlock_create_ruleset
#    define __NR_landlock_create_ruleset 444
#    define __NR_landlock_add_rule       445
#    define __NR_landlock_restrict_self  446
#endif

/** As Linux's landlock(7) has them; older systems lack the header. */
enum {
    ASKS_VERSION = 1,
    BENEATH = 1 /* the rule's type */
};

enum {
    RUN = 1 << 0,
    WRITE_FILE = 1 << 1,
    REMOVE_DIR = 1 << 4, /* as bits 5 to 12: remove and make */
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,         /* since version 2 */
    TRUNCATE = 1 << 14,      /* since version 3 */
    SCOPES = 1 << 0 | 1 << 1 /* abstract sockets, signals: since version 6 */
};

typedef struct ruleset {
    uint64_t files;
    uint64_t net;
    uint64_t scoped;
} ruleset;

typedef struct beneath {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed)) beneath;

int me_landlock_version(void)
{
    const long version =
        syscall(__NR_landlock_create_ruleset, NULL, 0, ASKS_VERSION);
    return version < 0 ? 0 : (int)version;
}

/** All that changes files, of a version. */
static uint64_t writing(int version)
{
    uint64_t rights = WRITE_FILE;
    for (uint64_t right = REMOVE_DIR; right <= MAKE_SYM; right <<= 1) {
        rights |= right;
    }
    rights |= version >= 2 ? REFER : 0;
    return rights | (version >= 3 ? TRUNCATE : 0);
}

static bool allow(int rules, const char *path, uint64_t rights)
{
    const int fd = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return true; // not there: nothing to allow
    }
    const beneath rule = {.allowed = rights, .folder = fd};
    const bool is_added =
        syscall(__NR_landlock_add_rule, rules, BENEATH, &rule, 0) == 0;
    (void)close(fd);
    return is_added;
}

static bool add_rules(int rules, const me_place *place, uint64_t writes,
                      bool runs_python)
{
    static const char *const forget[] = {"/dev/null", "/dev/zero", "/dev/full"};
    const uint64_t of_file = writes & (uint64_t)(WRITE_FILE | TRUNCATE);
    bool is_fine = true;
    for (uint32_t i = 0; is_fine && i < place->n_programs; i++) {
        is_fine = allow(rules, place->programs[i], RUN);
    }
    if (is_fine && runs_python && place->python != NULL) {
        is_fine = allow(rules, place->python, RUN);
    }
    if (is_fine && writes != 0) {
        is_fine = allow(rules, place->tmp, writes);
        for (size_t i = 0; is_fine && i < sizeof forget / sizeof *forget; i++) {
            is_fine = allow(rules, forget[i], of_file);
        }
    }
    return is_fine;
}

bool me_landlock_put_on(const me_place *place, bool writes, bool runs_python)
{
    const int version = me_landlock_version();
    const uint64_t write_rights = writes ? writing(version) : 0;
    const ruleset what = {.files = RUN | write_rights,
                          .scoped = version >= 6 ? SCOPES : 0};
    const size_t size = version >= 6   ? sizeof what
                        : version >= 4 ? 2 * sizeof(uint64_t)
                                       : sizeof(uint64_t);
    const int rules =
        (int)syscall(__NR_landlock_create_ruleset, &what, size, 0);
    if (rules < 0) {
        return false;
    }
    const bool is_on = add_rules(rules, place, write_rights, runs_python) &&
                       syscall(__NR_landlock_restrict_self, rules, 0) == 0;
    (void)close(rules);
    return is_on;
}
