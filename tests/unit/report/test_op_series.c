/* SPDX-License-Identifier: BSD-3-Clause */
/* A series of operations: its summary, and saved and loaded again. */
#include "report/op_series_report.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t MB = 1048576;

/** PyTorch's own test: a convolution, then two operations of a MB each. */
static void fill(me_op_series *s)
{
    static const char *const names[] = {".forward.aten::conv2d_0",
                                        ".forward.aten::relu_0",
                                        ".forward.aten::linear_0"};
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(
            me_op_series_append(s, names[i],
                                &(me_op_memory){i * MB, i * MB, 2 * i * MB}),
            ME_OK);
    }
    assert_int_equal(me_op_series_mark(s, "fw_start", 0), ME_OK);
    assert_int_equal(me_op_series_mark(s, "fw_bw_boundary", 1), ME_OK);
    assert_int_equal(me_op_series_mark(s, "fw_bw_boundary", 2), ME_OK);
    s->num_alloc_retries = 2;
}

static const char summary[] =
    "------------------------------------------------\n"
    "The number of alloc retries are: 2\n"
    "Top 20 ops that generates memory are:\n"
    ".forward.aten::relu_0: 1.0MB\n"
    ".forward.aten::linear_0: 1.0MB\n"
    "------------------------------------------------\n";

static void test_save_load(void **state)
{
    (void)state;
    me_op_series s = {.rows = NULL};
    me_op_series loaded = {.rows = NULL};
    me_str text = {0};
    me_diag diag = {.status = ME_OK};
    char path[] = "/tmp/memest_series_XXXXXX";
    fill(&s);
    assert_int_equal(me_op_series_summary(&text, &s, 20), ME_OK);
    assert_string_equal(me_str_text(&text), summary);
    me_str_fini(&text);
    assert_int_equal(me_op_series_save(&text, &s), ME_OK);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    const size_t bytes = strlen(me_str_text(&text));
    assert_int_equal(write(fd, me_str_text(&text), bytes), bytes);
    (void)close(fd);
    me_str_fini(&text);
    assert_int_equal(me_op_series_load(path, &diag, &loaded), ME_OK);
    (void)remove(path);
    assert_int_equal(loaded.n_rows, 3);
    assert_int_equal(loaded.rows[2].memory.reserved, 4 * MB);
    assert_int_equal(loaded.n_markers, 2);
    assert_int_equal(loaded.markers[1].at, 2);
    assert_int_equal(me_op_series_summary(&text, &loaded, 20), ME_OK);
    assert_string_equal(me_str_text(&text), summary);
    me_str_fini(&text);
    me_op_series_fini(&s);
    me_op_series_fini(&loaded);
}

static void check_float(uint64_t from, uint64_t to, const char *printed)
{
    me_op_series s = {.rows = NULL};
    me_str text = {0};
    assert_int_equal(
        me_op_series_append(&s, "a_0", &(me_op_memory){.allocated = from}),
        ME_OK);
    assert_int_equal(
        me_op_series_append(&s, "b_0", &(me_op_memory){.allocated = to}),
        ME_OK);
    assert_int_equal(me_op_series_summary(&text, &s, 1), ME_OK);
    const char *at = strstr(me_str_text(&text), "b_0: ");
    assert_non_null(at);
    assert_memory_equal(at + 5, printed, strlen(printed));
    me_str_fini(&text);
    me_op_series_fini(&s);
}

/** As Python prints floats. */
static void test_floats(void **state)
{
    (void)state;
    check_float(0, 512, "0.00048828125MB");
    check_float(512, 0, "-0.00048828125MB");
    check_float(0, 100 * MB, "100.0MB");
    check_float(0, 33 * MB + 512, "33.00048828125MB");
    check_float(0, 1, "9.5367431640625e-07MB");
    check_float(7, 7, "0.0MB");
}

static void test_nothing(void **state)
{
    (void)state;
    const me_op_series s = {.rows = NULL};
    me_str text = {0};
    assert_int_equal(me_op_series_summary(&text, &s, 20), ME_OK);
    assert_null(strstr(me_str_text(&text), "MB"));
    me_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save_load),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
