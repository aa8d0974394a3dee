/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that has no room is refused before anything of it is written. */
#include "app/trace_size.h"
#include "base/log.h"
#include "base/outfile.h"
#include "support/test.h"

#include <string.h>

static const char smaller[] = "--rank R writes one";

static void test_trace_size__no_room(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    FILE *stream = tmpfile();
    assert_non_null(stream);
    const uint64_t room = me_stream_room(stream);
    assert_true(room < UINT64_MAX);
    // More than the disk may change by meanwhile.
    assert_int_equal(me_trace_size_tell("perfetto", 3 * room + (1U << 30U),
                                        smaller, stream, &diag),
                     ME_ERR_IO);
    assert_non_null(strstr(diag.text, smaller));
    assert_int_equal(ftell(stream), 0);
    assert_int_equal(me_trace_size_tell("perfetto", 1, smaller, stream, &diag),
                     ME_OK);
    (void)fclose(stream);
}

/* Nobody knows what a pipe's reader has room for. */
static void test_trace_size__pipe(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    FILE *stream = popen("cat > /dev/null", "w");
    assert_non_null(stream);
    assert_true(me_stream_room(stream) == UINT64_MAX);
    me_log_set_level(ME_LOG_ERROR);
    assert_int_equal(
        me_trace_size_tell("perfetto", UINT64_MAX / 4, smaller, stream, &diag),
        ME_OK);
    (void)pclose(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_size__no_room),
        cmocka_unit_test(test_trace_size__pipe),
    };
    return cmocka_run_group_tests_name("trace_size", tests, NULL, NULL);
}
