/**
 * @file
 * A command line as one text, for tests that run whole commands.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_WORDS_H
#define MEMEST_TESTS_SUPPORT_WORDS_H

#include <stdio.h>
#include <string.h>

enum {
    ME_WORDS_MAX = 96,
    ME_WORDS_BYTES = 4096
};

/** The words of a command line, the program's name first. */
typedef struct me_words {
    char bytes[ME_WORDS_BYTES];
    char *argv[ME_WORDS_MAX];
    int argc;
} me_words;

/** Split @p text at its spaces; a word's leading '@' becomes @p root. */
static inline void me_words_split(me_words *words, const char *root,
                                  const char *text)
{
    size_t at = 0;
    words->argc = 0;
    text += strspn(text, " ");
    while (*text != '\0' && words->argc < ME_WORDS_MAX - 1) {
        words->argv[words->argc++] = words->bytes + at;
        for (; *text != '\0' && *text != ' '; text++) {
            const int n = *text == '@' && words->bytes + at ==
                                              words->argv[words->argc - 1]
                              ? snprintf(words->bytes + at,
                                         sizeof words->bytes - at, "%s/", root)
                              : snprintf(words->bytes + at,
                                         sizeof words->bytes - at, "%c", *text);
            at += (size_t)n;
        }
        words->bytes[at++] = '\0';
        text += strspn(text, " ");
    }
    words->argv[words->argc] = NULL;
}

#endif /* MEMEST_TESTS_SUPPORT_WORDS_H */
