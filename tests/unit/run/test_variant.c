/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/options.h"
#include "run/variant.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static void test_variant__splits_at_keys_only(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *name;
        const char *sets[3];
    } cases[] = {
        {"a.b=1", "a.b=1", {"a.b=1"}},
        {"x:a.b=1,c=2", "x", {"a.b=1", "c=2"}},
        {"a.b=1,c=2", "a.b=1,c=2", {"a.b=1", "c=2"}},
        {"a=u:1,v:2,b=3", "a=u:1,v:2,b=3", {"a=u:1,v:2", "b=3"}},
        {"two words:a=1,", "two words", {"a=1,"}},
        {"n:a=b=c", "n", {"a=b=c"}},
        {"n:a=", "n", {"a="}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_variant v;
        me_diag diag = {0};
        assert_int_equal(me_variant_parse(cases[i].text, &diag, &v), ME_OK);
        assert_string_equal(v.name, cases[i].name);
        int32_t n = 0;
        for (; n < 3 && cases[i].sets[n] != NULL; n++) {
            assert_true(n < v.n_sets);
            assert_string_equal(v.sets[n], cases[i].sets[n]);
        }
        assert_int_equal(v.n_sets, n);
        me_variant_fini(&v);
    }
}

static void test_variant__refuses_what_sets_nothing(void **state)
{
    (void)state;
    const char *const cases[] = {"",   "name",  "name:",  ":a=1",
                                 "=1", "a b=1", "name:=1"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_variant v;
        me_diag diag = {0};
        assert_int_equal(me_variant_parse(cases[i], &diag, &v), ME_ERR_CONFIG);
        assert_true(diag.text[0] != '\0');
        me_variant_fini(&v);
    }
}

static void test_variant__refuses_what_does_not_fit(void **state)
{
    (void)state;
    char text[4096] = "n:a=1";
    for (size_t i = 0; i < ME_VARIANT_MAX_SETS; i++) {
        memcpy(text + 5 + 4 * i, ",a=1", 5);
    }
    me_variant v;
    me_diag diag = {0};
    assert_int_equal(me_variant_parse(text, &diag, &v), ME_ERR_CONFIG);
    me_variant_fini(&v);
    memset(text, 'x', 300);
    memcpy(text + 300, ":a=1", 5);
    assert_int_equal(me_variant_parse(text, &diag, &v), ME_ERR_CONFIG);
    me_variant_fini(&v);
}

/* What a search for what fits offers is longer than a name at times. */
static void test_variant__long_assignments_are_a_name(void **state)
{
    (void)state;
    char text[ME_VARIANT_NAME + 20];
    char others[2][ME_VARIANT_NAME];
    for (size_t i = 0; i < 2; i++) {
        me_variant v;
        me_diag diag = {0};
        memset(text, 'x', sizeof text);
        text[0] = 'a';
        text[1] = '=';
        (void)snprintf(text + ME_VARIANT_NAME, 20, "%zu", i);
        assert_int_equal(me_variant_parse(text, &diag, &v), ME_OK);
        assert_string_equal(v.sets[0], text);
        assert_int_equal(strlen(v.name), ME_VARIANT_NAME - 1);
        memcpy(others[i], v.name, sizeof others[i]);
        me_variant_fini(&v);
    }
    assert_memory_equal(others[0], others[1], ME_VARIANT_NAME - 9);
    assert_string_not_equal(others[0], others[1]);
}

/* Of 255 bytes, and of 256 that would end within a character. */
static void test_variant__names_end_between_characters(void **state)
{
    (void)state;
    for (size_t before = 240; before < 256; before++) {
        char text[300];
        me_variant v;
        me_diag diag = {0};
        memset(text, 'x', sizeof text);
        text[0] = 'a';
        text[1] = '=';
        (void)snprintf(text + before, sizeof text - before,
                       "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                       "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
        assert_int_equal(me_variant_parse(text, &diag, &v), ME_OK);
        assert_null(strchr(v.name, '?'));
        assert_true(strlen(v.name) < ME_VARIANT_NAME);
        me_variant_fini(&v);
    }
}

static void test_variant__reads_schedules(void **state)
{
    (void)state;
    me_schedule_choice choice;
    me_diag diag = {0};
    assert_int_equal(me_schedule_choice_parse("INTERLEAVED:4", &diag, &choice),
                     ME_OK);
    assert_int_equal(choice.chunks, 4);
    assert_int_equal(me_schedule_choice_parse("1F1B", &diag, &choice), ME_OK);
    assert_string_equal(choice.name, "1f1b");
    assert_int_equal(choice.chunks, 0);
    const char *const wrong[] = {"",        ":2",  "1f1b:",           "1f1b:0",
                                 "1f1b:-1", "1f1", "1f1b:99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(me_schedule_choice_parse(wrong[i], &diag, &choice),
                         ME_ERR_CONFIG);
    }
}

static void test_variant__sets_what_a_schedule_needs(void **state)
{
    (void)state;

    static const struct {
        const char *schedule;
        const char *given; /**< parallel.virtual_pipeline of the job */
        int32_t chunks;
    } cases[] = {
        {"1f1b", "1", 1},          {"1f1b", "3", 1},
        {"interleaved", "1", 2},   {"interleaved", "3", 3},
        {"interleaved:5", "3", 5}, {"gpipe", "3", 1},
        {"looped_bfs", "1", 2},    {"zbv", "3", 2},
        {"dualpipe", "3", 1},      {"interleaved_zb:4", "1", 4},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_config *config = me_config_create();
        assert_non_null(config);
        me_diag diag = {0};
        me_schedule_choice choice;
        assert_int_equal(me_config_set(config, "parallel.pipeline", "4", &diag),
                         ME_OK);
        assert_int_equal(me_config_set(config, "parallel.virtual_pipeline",
                                       cases[i].given, &diag),
                         ME_OK);
        assert_int_equal(
            me_schedule_choice_parse(cases[i].schedule, &diag, &choice), ME_OK);
        assert_int_equal(me_schedule_choice_apply(&choice, config, &diag),
                         ME_OK);
        assert_int_equal(config->parallel.virtual_pipeline, cases[i].chunks);
        assert_string_equal(config->pipeline.name, choice.schedule->name);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variant__splits_at_keys_only),
        cmocka_unit_test(test_variant__refuses_what_sets_nothing),
        cmocka_unit_test(test_variant__refuses_what_does_not_fit),
        cmocka_unit_test(test_variant__long_assignments_are_a_name),
        cmocka_unit_test(test_variant__names_end_between_characters),
        cmocka_unit_test(test_variant__reads_schedules),
        cmocka_unit_test(test_variant__sets_what_a_schedule_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
