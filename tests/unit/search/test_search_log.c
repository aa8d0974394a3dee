/* SPDX-License-Identifier: BSD-3-Clause */
/* A log that somebody has edited. */
#include "config/file.h"
#include "search/search_run.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static me_transport *transport;

/** The log once more, with another value behind the first @p key. */
static void copy_log(const char *from, const char *to, const char *key,
                     const char *value)
{
    static char text[1 << 16];
    FILE *in = fopen(from, "r");
    FILE *out = fopen(to, "w");
    assert_non_null(in);
    assert_non_null(out);
    const size_t n = fread(text, 1, sizeof text - 1, in);
    text[n] = '\0';
    char *at = strstr(text, key);
    assert_non_null(at);
    at += strlen(key);
    const char *rest = at + strcspn(at, ",}");
    assert_true(fprintf(out, "%.*s%s%s", (int)(at - text), text, value, rest) >
                0);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* Numbers of a log that no search writes are refused with their line. */
static void test_search_log__reads_no_nonsense(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"worst_bytes\":", "-1"},
        {"\"requested_bytes\":", "1.5"},
        {"\"worst_rank\":", "4294967296"},
        {"\"fits\":", "2"},
        {"\"step_ns\":", "null"},
        {"\"risk\":", "99"},
        {"\"basis\":", "3"},
        {"\"worst_rank\":", "4"},
    };
    const char *const list[] = {"parallel.pipeline=1,2"};
    char good[] = "/tmp/memest-search-XXXXXX";
    char bad[] = "/tmp/memest-search-XXXXXX";
    me_diag diag = {.status = ME_OK};
    me_config *job = me_config_create();
    me_search_request request = {
        .space = {.spaces = list, .n_spaces = 1, .gpus = "4"},
        .log_path = good};
    me_search_run *run = NULL;
    assert_non_null(job);
    assert_int_equal(
        me_config_read_file(job, GOLDEN "/compare/tiny.cfg", &diag), ME_OK);
    assert_true(close(mkstemp(good)) == 0 && close(mkstemp(bad)) == 0);
    assert_int_equal(
        me_search_run_create(transport, &request, job, &diag, &run), ME_OK);
    me_search_run_destroy(run);
    request.log_path = bad;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        copy_log(good, bad, changes[i][0], changes[i][1]);
        run = NULL;
        assert_int_equal(
            me_search_run_create(transport, &request, job, &diag, &run),
            ME_ERR_SYNTAX);
        if (strstr(diag.text, "no candidate of a search") == NULL) {
            fail_msg("%s: %s", changes[i][0], diag.text);
        }
        me_search_run_destroy(run);
    }
    assert_int_equal(unlink(good), 0);
    assert_int_equal(unlink(bad), 0);
    me_config_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_log__reads_no_nonsense),
    };
    if (me_transport_local_create(&transport) != ME_OK) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}
