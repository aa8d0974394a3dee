/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/faults.h"
#include "support/small_job.h"
#include "support/test.h"

#include <string.h>

static char *text_of(const memest_job *job)
{
    char *text = NULL;
    assert_int_equal(memest_job_text(job, &text, NULL), MEMEST_OK);
    return text;
}

/* What is derived of a job, written and read again, is the same job. */
static void test_api_job__text_reads_back(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    memest_job *again = memest_job_create();
    assert_non_null(job);
    assert_non_null(again);
    char *text = text_of(job);
    assert_non_null(strstr(text, "num_layers = 4"));
    assert_int_equal(
        memest_job_read_text(again, "again", text, strlen(text), NULL),
        MEMEST_OK);
    char *text_again = text_of(again);
    assert_string_equal(text, text_again);
    memest_text_destroy(text);
    memest_text_destroy(text_again);
    memest_job_destroy(again);
    memest_job_destroy(job);
}

static void test_api_job__failure_changes_nothing(void **state)
{
    (void)state;
    static const char broken[] =
        "model = {\n num_layers = 7;\n heads = 1; };\n";
    memest_error *error = memest_error_create();
    memest_job *job = me_small_job_create(error);
    assert_non_null(job);
    assert_int_equal(memest_error_status(error), MEMEST_OK);
    assert_string_equal(memest_error_text(error), "");
    char *before = text_of(job);

    assert_int_equal(memest_job_read_text(job, "broken.cfg", broken,
                                          sizeof broken - 1, error),
                     MEMEST_ERR_CONFIG);
    assert_string_equal(memest_error_file(error), "broken.cfg");
    assert_int_equal(memest_error_line(error), 3);
    assert_int_equal(memest_error_status(error), MEMEST_ERR_CONFIG);
    assert_int_equal(memest_job_set(job, "model.num_layers", "many", error),
                     MEMEST_ERR_CONFIG);
    assert_non_null(strstr(memest_error_text(error), "many"));
    assert_int_equal(memest_job_read_file(job, "no/such/file.cfg", error),
                     MEMEST_ERR_IO);

    char *after = text_of(job);
    assert_string_equal(before, after);
    memest_text_destroy(before);
    memest_text_destroy(after);
    memest_job_destroy(job);
    memest_error_destroy(error);
}

static void test_api_job__clones_are_independent(void **state)
{
    (void)state;
    memest_job *job = me_small_job_create(NULL);
    memest_job *copy = memest_job_clone(job);
    assert_non_null(copy);
    char *before = text_of(job);
    assert_int_equal(memest_job_set(copy, "model.num_layers", "8", NULL),
                     MEMEST_OK);
    char *after = text_of(job);
    char *changed = text_of(copy);
    assert_string_equal(before, after);
    assert_non_null(strstr(changed, "num_layers = 8"));
    memest_text_destroy(before);
    memest_text_destroy(after);
    memest_text_destroy(changed);
    memest_job_destroy(copy);
    memest_job_destroy(job);
}

static void test_api_job__reads_launch_commands(void **state)
{
    (void)state;
    static const char *const words[] = {"torchrun",
                                        "--nproc-per-node",
                                        "4",
                                        "pretrain_gpt.py",
                                        "--tensor-model-parallel-size",
                                        "4",
                                        "--no-such-flag-known"};
    memest_error *error = memest_error_create();
    memest_job *job = me_small_job_create(error);
    assert_int_equal(memest_job_set(job, "parallel.pipeline", "1", error),
                     MEMEST_OK);
    if (memest_job_read_launch(job, sizeof words / sizeof words[0], words,
                               error) != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    char *text = text_of(job);
    assert_non_null(strstr(text, "tensor = 4"));
    memest_text_destroy(text);
    memest_job_destroy(job);
    memest_error_destroy(error);
}

static void test_api_job__checks_the_whole(void **state)
{
    (void)state;
    memest_error *error = memest_error_create();
    memest_job *job = me_small_job_create(error);
    assert_int_equal(memest_job_check(job, error), MEMEST_OK);
    assert_int_equal(memest_job_set(job, "parallel.tensor", "3", error),
                     MEMEST_OK);
    assert_int_equal(memest_job_check(job, error), MEMEST_ERR_CONFIG);
    assert_non_null(strstr(memest_error_text(error), "3"));
    assert_int_equal(memest_job_check(job, NULL), MEMEST_ERR_CONFIG);
    memest_job_destroy(job);
    memest_error_destroy(error);
}

static void test_api_job__lists_options(void **state)
{
    (void)state;
    char *text = NULL;
    assert_int_equal(memest_options_text(&text, NULL), MEMEST_OK);
    assert_non_null(strstr(text, "parallel.tensor"));
    memest_text_destroy(text);
    memest_text_destroy(NULL);
    memest_job_destroy(NULL);
    memest_error_destroy(NULL);
}

static me_status read_and_print(void *context)
{
    (void)context;
    char *text = NULL;
    memest_error *error = memest_error_create();
    memest_job *job = error == NULL ? NULL : me_small_job_create(error);
    memest_status status =
        job == NULL ? MEMEST_ERR_NOMEM : memest_job_text(job, &text, error);
    memest_text_destroy(text);
    memest_job_destroy(job);
    memest_error_destroy(error);
    return (me_status)status;
}

static void test_api_job__survives_failing_memory(void **state)
{
    (void)state;
    me_sweep_faults(read_and_print, NULL, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_job__text_reads_back),
        cmocka_unit_test(test_api_job__failure_changes_nothing),
        cmocka_unit_test(test_api_job__clones_are_independent),
        cmocka_unit_test(test_api_job__reads_launch_commands),
        cmocka_unit_test(test_api_job__checks_the_whole),
        cmocka_unit_test(test_api_job__lists_options),
        cmocka_unit_test(test_api_job__survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
