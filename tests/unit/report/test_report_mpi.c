/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/job_report.h"
#include "support/test.h"
#include "tiny.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXT_MAX = 1 << 16
};

static const me_terminal no_terminal = {.width = 0};

static size_t read_file(const char *path, char *text)
{
    FILE *stream = fopen(path, "r");
    if (stream == NULL) {
        return 0;
    }
    const size_t length = fread(text, 1, TEXT_MAX, stream);
    (void)fclose(stream);
    return length;
}

/** Whether the report prints as the file that one process is held to. */
static bool is_expected(const me_report *report, me_format format,
                        const char *expected_path)
{
    static char text[TEXT_MAX];
    static char expected[TEXT_MAX];
    char name[] = "/tmp/memest-test-XXXXXX";
    const int descriptor = mkstemp(name);
    if (descriptor < 0) {
        return false;
    }
    (void)close(descriptor);
    const me_status status =
        me_report_write(report, format, name, &no_terminal, NULL);
    const size_t length = read_file(name, text);
    const size_t expected_length = read_file(expected_path, expected);
    (void)unlink(name);
    return status == ME_OK && length > 0 && length == expected_length &&
           memcmp(text, expected, length) == 0;
}

/* No assertion between collectives: a process that jumps out hangs the rest. */
int main(int argc, char **argv)
{
    me_transport *transport = NULL;
    me_diag diag = {0};
    if (me_transport_mpi_create(&argc, &argv, &diag, &transport) != ME_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
        return EXIT_FAILURE;
    }
    const me_config config = me_tiny_config();
    bool is_good = true;
    for (int is_folded = 0; is_folded <= 1; is_folded++) {
        me_report *report = NULL;
        const me_status status =
            me_tiny_gather(transport, &config, is_folded == 1, &diag, &report);
        is_good = is_good && status == ME_OK;
        if (report != NULL) {
            is_good =
                is_good &&
                is_expected(report, ME_FORMAT_TEXT, ME_EXPECTED "/tiny.txt") &&
                is_expected(report, ME_FORMAT_JSON, ME_EXPECTED "/tiny.json") &&
                is_expected(report, ME_FORMAT_CSV, ME_EXPECTED "/tiny.csv");
        }
        is_good =
            is_good && (report != NULL) == (me_transport_rank(transport) == 0);
        me_report_destroy(report);
    }
    me_transport_destroy(transport);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
