/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/oom_text.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static const char shared[] =
    "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "
    "capacity of 80.00 GiB. GPU 0 is not meant twice";
static const char third[] =
    "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 3 has a total "
    "capacity of 80.00 GiB. GPU 0 is not meant twice";

static void expect_text(const char *message, int32_t index,
                        const char *expected)
{
    me_str text = {0};
    me_oom_text_append(message, index, &text);
    assert_int_equal(me_str_status(&text), ME_OK);
    assert_string_equal(me_str_text(&text), expected);
    me_str_fini(&text);
    FILE *stream = tmpfile();
    assert_non_null(stream);
    me_oom_text_print(message, index, stream);
    rewind(stream);
    char printed[512] = "";
    const size_t length = fread(printed, 1, sizeof printed - 1, stream);
    printed[length] = '\0';
    assert_string_equal(printed, expected);
    (void)fclose(stream);
}

static void test_oom_text__names_the_device(void **state)
{
    (void)state;
    expect_text(shared, 3, third);
    expect_text(shared, 0, shared);
    expect_text("{\"module\": \"a. GPU 0\"}", 3, "{\"module\": \"a. GPU 0\"}");
    expect_text("CUDA out of memory. Tried to allocate more than 1EB memory.",
                3,
                "CUDA out of memory. Tried to allocate more than 1EB memory.");
}

/* A process numbers the devices of its node. */
static void test_oom_text__is_of_the_node(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    assert_non_null(config);
    config->device.gpus_per_node = 4;
    const me_report report = {.config = config, .world_size = 16};
    assert_int_equal(me_report_device_index(&report, 0), 0);
    assert_int_equal(me_report_device_index(&report, 3), 3);
    assert_int_equal(me_report_device_index(&report, 10), 2);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oom_text__names_the_device),
        cmocka_unit_test(test_oom_text__is_of_the_node),
    };
    return cmocka_run_group_tests_name("oom_text", tests, NULL, NULL);
}
