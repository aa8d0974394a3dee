/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"
#include "job.h"

/* Walk over every flag of every table. */
static void test_flags__tables_are_sound(void **state)
{
    (void)state;
    size_t n_flags = 0;
    size_t n_of_forks = 0;
    size_t n_tables = 0;
    const me_flag_table *tables = me_flag_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++) {
        const me_flag_kind kind = tables[i].kind;
        const me_flag_rule *rule = tables[i].rules;
        for (; rule->flags != NULL; rule++) {
            const char *cursor = rule->flags;
            while (*cursor != '\0') {
                char name[96] = "";
                const size_t length = strcspn(cursor, ": ");
                assert_true(length < sizeof name);
                memcpy(name, cursor, length);
                me_flag flag;
                assert_true(me_flag_find(name, &flag));
                assert_ptr_equal(flag.rule, rule); /* so it is there once */
                n_flags++;
                n_of_forks += kind == ME_FLAG_REMOVED ||
                              tables[i].rules == me_flags_forks ||
                              tables[i].rules == me_flags_forks_no_effect ||
                              tables[i].rules == me_flags_forks_not_modelled;
                cursor += strcspn(cursor, " ");
                cursor += strspn(cursor, " ");
            }
            if (rule->option != NULL) {
                assert_non_null(me_option_find(rule->option));
            }
            if (kind == ME_FLAG_MODELLED) { /* each row says why */
                assert_true(rule->option != NULL || rule->note != NULL ||
                            rule->needs != NULL);
            } else {
                assert_non_null(rule->note);
            }
            if (kind == ME_FLAG_NOT_MODELLED) { /* somebody has thought of it */
                assert_int_not_equal(rule->effect.lower, ME_REACH_UNKNOWN);
                assert_int_not_equal(rule->effect.higher, ME_REACH_UNKNOWN);
            }
        }
    }
    assert_int_equal(n_flags - n_of_forks, 870); /* Megatron-LM's own */
    assert_true(n_of_forks > 100);
}

static void test_flags__find_the_nearest(void **state)
{
    (void)state;
    size_t length = 0;
    const char *found = me_flag_nearest("--num-layer", &length);
    assert_non_null(found);
    assert_int_equal(length, strlen("--num-layers"));
    assert_memory_equal(found, "--num-layers", length);
    assert_null(me_flag_nearest("--quite-another-thing", &length));
}

static void test_flags__words(void **state)
{
    (void)state;
    assert_true(me_words_have("a|bc|d", 6, "bc"));
    assert_true(me_words_have("a|bc|d", 6, "d"));
    assert_false(me_words_have("a|bc|d", 6, "b"));
    assert_false(me_words_have("a|bc|d", 6, ""));
    assert_false(me_words_have("a|bc|d", 4, "d"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags__tables_are_sound),
        cmocka_unit_test(test_flags__find_the_nearest),
        cmocka_unit_test(test_flags__words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
