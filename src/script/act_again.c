/* SPDX-License-Identifier: BSD-3-Clause */
/* A job that submits itself would be acted out without end. */
#include "base/str.h"
#include "script/act_private.h"
#include "script/inherit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The jobs around a command, `FILE-WORDS` and a blank each. */
#define JOBS "MEMEST_JOBS"

enum {
    DEPTH_MOST = 8, /**< of one file that submits itself with other words */
    ENTRY_DIGITS = 16
};

/** The hash FNV-1a. */
static uint64_t hash(uint64_t seed, const char *bytes, size_t length)
{
    uint64_t value = seed;
    for (size_t i = 0; i < length; i++) {
        value = (value ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    }
    return value;
}

uint64_t me_again_words(uint64_t seed, char **words)
{
    uint64_t value = seed;
    for (; *words != NULL; words++) {
        value = hash(value, *words, strlen(*words) + 1);
    }
    return value;
}

uint64_t me_again_file(const char *path)
{
    char bytes[4096];
    uint64_t value = ME_AGAIN_SEED;
    const int fd = me_inherit_open(path);
    ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
    while (n > 0) {
        value = hash(value, bytes, (size_t)n);
        n = read(fd, bytes, sizeof bytes);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return value;
}

/** A variable of the user's: none of the shell's, of Slurm's or of memest's. */
static bool is_own(const char *variable)
{
    static const char *const others[] = {
        "MEMEST_", "SLURM",  "SBATCH_", "LSB_",    "LS_",     "BASH_FUNC_",
        "_=",      "SHLVL=", "PWD=",    "OLDPWD=", "TMPDIR=", "PATH="};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strncmp(variable, others[i], strlen(others[i])) == 0) {
            return false;
        }
    }
    return true;
}

/** Hash the user's variables, in whatever order they stand. */
static uint64_t hash_variables(void)
{
    uint64_t sum = 0;
    for (char **at = environ; *at != NULL; at++) {
        sum += is_own(*at) ? hash(ME_AGAIN_SEED, *at, strlen(*at)) : 0;
    }
    return sum;
}

bool me_again(uint64_t file, uint64_t words)
{
    char entry[2 * ENTRY_DIGITS + 3];
    const uint64_t given = getenv(ME_GUISE_BY_ENVIRONMENT) == NULL
                               ? words
                               : words ^ hash_variables();
    const char *jobs = getenv(JOBS);
    int depth = 0;
    jobs = jobs == NULL ? "" : jobs;
    (void)snprintf(entry, sizeof entry, "%016" PRIx64 "-%016" PRIx64 " ", file,
                   given);
    for (const char *at = jobs; *at != '\0'; at += strcspn(at, " ") + 1) {
        depth += strncmp(at, entry, ENTRY_DIGITS + 1) == 0;
    }
    if (strstr(jobs, entry) != NULL || depth >= DEPTH_MOST) {
        return true;
    }
    me_str all = {0};
    me_str_printf(&all, "%s%s", jobs, entry);
    (void)setenv(JOBS, me_str_text(&all), 1);
    me_str_fini(&all);
    return false;
}
