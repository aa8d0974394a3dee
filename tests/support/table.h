/**
 * @file
 * A table of tests/golden, a line at a time: fields with tabs between them,
 * without what is commented.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_TABLE_H
#define MEMEST_TESTS_SUPPORT_TABLE_H

#include "support/test.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    TEST_TABLE_LINE = 8192,
    TEST_TABLE_FIELDS = 24
};

typedef struct test_table {
    FILE *file;
    char line[TEST_TABLE_LINE];
    const char *fields[TEST_TABLE_FIELDS]; /**< of the line, until the next */
    uint32_t n_fields;
} test_table;

/** @return a table whose first line test_table_next() reads */
static inline test_table test_table_open(const char *path)
{
    test_table t = {.file = fopen(path, "r")};
    if (t.file == NULL) {
        fail_msg("%s: cannot be read", path);
    }
    return t;
}

/** Read a line. @return false: there is none left, and the file is closed */
static inline bool test_table_next(test_table *t)
{
    do {
        if (fgets(t->line, sizeof t->line, t->file) == NULL) {
            (void)fclose(t->file);
            t->file = NULL;
            return false;
        }
    } while (t->line[0] == '#' || t->line[0] == '\n');
    assert_non_null(strchr(t->line, '\n'));
    t->line[strcspn(t->line, "\n")] = '\0';
    t->n_fields = 0;
    for (char *at = t->line; at != NULL;) {
        assert_in_range(t->n_fields, 0, TEST_TABLE_FIELDS - 1);
        t->fields[t->n_fields++] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return true;
}

#endif /* MEMEST_TESTS_SUPPORT_TABLE_H */
