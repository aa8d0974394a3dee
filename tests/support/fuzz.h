/**
 * @file
 * What fuzz targets have in common: an input as a text or as a file, and what
 * an error must look like.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_FUZZ_H
#define MEMEST_TESTS_SUPPORT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** The input as text that ends with a NUL, to be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = calloc(size + 1, 1);
    if (text == NULL) {
        abort();
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    return text;
}

/** Write the input to a file of this process, whose name ends with @p end.
 *  @return its path, static; the caller removes it */
static inline const char *fuzz_file(const char *end, const uint8_t *data,
                                    size_t size)
{
    static char path[64];
    (void)snprintf(path, sizeof path, "/tmp/memest-fuzz-%ld%s", (long)getpid(),
                   end);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size ||
        fclose(file) != 0) {
        abort();
    }
    return path;
}

/** An error is one line that can be printed. */
static inline void fuzz_check_line(const char *text)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == '\177') {
            abort();
        }
    }
    if (length == 0) {
        abort();
    }
}

#endif /* MEMEST_TESTS_SUPPORT_FUZZ_H */
