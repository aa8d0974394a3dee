/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on the input of one: `sbatch <<EOF`, `ssh HOST <<EOF`. */
#include "script/act_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** All of the input in a file of its own. @return open; -1: it cannot be done */
static int copy_input(char path[PATH_MAX])
{
    char bytes[4096];
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, PATH_MAX, "%s/sbatch-XXXXXX",
                   folder == NULL ? "/tmp" : folder);
    const int fd = mkstemp(path);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0) {
        n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n > 0 && write(fd, bytes, (size_t)n) != n) {
            n = -1;
        }
    }
    if (n < 0 && fd >= 0) {
        (void)close(fd);
    }
    return n == 0 ? fd : -1;
}

bool me_guise_keep_input(char path[PATH_MAX])
{
    const int fd = copy_input(path);
    return fd >= 0 && close(fd) == 0;
}

bool me_guise_has_input(void)
{
    char path[PATH_MAX];
    const int fd = copy_input(path);
    if (fd < 0) {
        return false;
    }
    (void)unlink(path);
    const bool is_there = lseek(fd, 0, SEEK_END) > 0 &&
                          lseek(fd, 0, SEEK_SET) == 0 &&
                          dup2(fd, STDIN_FILENO) == STDIN_FILENO;
    (void)close(fd);
    return is_there;
}

char **me_guise_input_shell(void)
{
    static char bash[] = "bash";
    static char *words[] = {bash, NULL};
    return words;
}
