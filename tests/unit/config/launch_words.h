/**
 * @file
 * Launch commands as one text, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_CONFIG_LAUNCH_WORDS_H
#define MEMEST_TESTS_UNIT_CONFIG_LAUNCH_WORDS_H

#include "job.h"

#include <stdio.h>

enum {
    WORDS_MAX = 96
};

/* A command, split at blanks; words in it hold none. */
static inline me_status read_command(me_config *config, const char *command,
                                     me_diag *diag)
{
    const char *words[WORDS_MAX];
    char text[1024];
    assert_true((size_t)snprintf(text, sizeof text, "%s", command) <
                sizeof text);
    int count = 0;
    for (char *c = text; *c != '\0';) {
        assert_true(count < WORDS_MAX);
        words[count++] = c;
        c += strcspn(c, " ");
        if (*c == ' ') {
            *c++ = '\0';
        }
    }
    return me_config_read_launch(config, count, words, diag);
}

#endif /* MEMEST_TESTS_UNIT_CONFIG_LAUNCH_WORDS_H */
