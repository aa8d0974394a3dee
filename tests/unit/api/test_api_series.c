/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "support/tracked.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_same(const memest_series *a, const memest_series *b)
{
    const size_t n = memest_series_n_operations(a);
    assert_int_equal(memest_series_n_operations(b), n);
    for (size_t i = 0; i < n; i++) {
        memest_operation x = MEMEST_INIT(memest_operation);
        memest_operation y = MEMEST_INIT(memest_operation);
        assert_true(memest_series_operation(a, i, &x));
        assert_true(memest_series_operation(b, i, &y));
        assert_string_equal(x.name, y.name);
        assert_true(x.allocated_bytes == y.allocated_bytes &&
                    x.active_bytes == y.active_bytes &&
                    x.reserved_bytes == y.reserved_bytes);
    }
}

/** Save a series to a file and load that. */
static memest_series *save_and_load(const memest_series *series)
{
    char path[] = "memest_series_XXXXXX";
    char *text = NULL;
    memest_series *loaded = NULL;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(
        memest_series_text(series, MEMEST_SERIES_JSON, 0, &text, NULL),
        MEMEST_OK);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
    memest_text_destroy(text);
    assert_int_equal(memest_series_load(path, &loaded, NULL), MEMEST_OK);
    assert_int_equal(unlink(path), 0);
    return loaded;
}

/* Operations, markers, the largest ones; saved and loaded it is the same. */
static void test_api_series__of_a_run(void **state)
{
    (void)state;
    memest_tracker *t = me_tracked_create(MEMEST_TOOL_MEMORY, false);
    assert_null(memest_tracker_series(t));
    me_tracked_run("memory_tracker", t, NULL);
    const memest_series *series = memest_tracker_series(t);
    assert_non_null(series);
    const size_t n = memest_series_n_operations(series);
    assert_true(n > 20);

    memest_marker marker = MEMEST_INIT(memest_marker);
    assert_int_equal(memest_series_n_markers(series), 2);
    assert_true(memest_series_marker(series, 0, &marker));
    assert_string_equal(marker.name, "fw_start");
    assert_true(memest_series_marker(series, 1, &marker));
    assert_string_equal(marker.name, "fw_bw_boundary");
    assert_true(marker.at > 0 && marker.at < n);
    assert_int_equal(memest_series_num_alloc_retries(series), 0);

    memest_growth first = MEMEST_INIT(memest_growth);
    memest_growth next = MEMEST_INIT(memest_growth);
    memest_operation at = MEMEST_INIT(memest_operation);
    memest_operation before = MEMEST_INIT(memest_operation);
    assert_true(memest_series_top(series, 0, &first));
    assert_true(memest_series_top(series, 1, &next));
    assert_string_equal(first.name, "0.1.forward.cudnn_batch_norm.default_0");
    assert_true(first.bytes >= next.bytes && first.operation > 0);
    assert_true(memest_series_operation(series, first.operation, &at));
    assert_true(memest_series_operation(series, first.operation - 1, &before));
    assert_true(at.allocated_bytes - before.allocated_bytes ==
                (uint64_t)first.bytes);
    assert_false(memest_series_top(series, n - 1, &next));

    memest_series *loaded = save_and_load(series);
    check_same(series, loaded);
    memest_tracker_destroy(t);
    char *text = NULL;
    assert_int_equal(
        memest_series_text(loaded, MEMEST_SERIES_SUMMARY, 1, &text, NULL),
        MEMEST_OK);
    assert_non_null(strstr(text, "Top 1 ops"));
    memest_text_destroy(text);
    memest_series_destroy(loaded);
    memest_series_destroy(NULL);
}

static void test_api_series__refuses(void **state)
{
    (void)state;
    memest_series *series = NULL;
    memest_error *error = memest_error_create();
    assert_int_equal(memest_series_load("/nowhere", &series, error),
                     MEMEST_ERR_IO);
    assert_int_equal(
        memest_series_load(SOURCE_DIR "/docs/api.md", &series, error),
        MEMEST_ERR_SYNTAX);
    assert_null(series);
    memest_error_destroy(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_series__of_a_run),
        cmocka_unit_test(test_api_series__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
