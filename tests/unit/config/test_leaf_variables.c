/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables that a file sets for its job. */
#include "config/config_private.h"
#include "config/megatron/leaf_variables.h"
#include "job.h"

#include <stdio.h>
#include <string.h>

static me_yaml_leaf leaf_of(const char *path, const char *key,
                            const char *const *value)
{
    return (me_yaml_leaf){
        .path = path, .key = key, .values = value, .n_values = 1};
}

static void test_leaf_variables__where_they_stand(void **state)
{
    (void)state;
    static const char *const value[] = {"1"};
    static const char *const there[] = {"ENV.A", "experiment.envs.A",
                                        "launcher.env_vars.A"};
    static const char *const elsewhere[] = {"environ.A", "envs_vars.A", "A",
                                            "my_env_vars.A"};
    for (size_t i = 0; i < COUNT_OF(there); i++) {
        me_yaml_leaf leaf = leaf_of(there[i], "A", value);
        assert_true(me_leaf_is_variable(&leaf));
        leaf.is_list = true;
        assert_false(me_leaf_is_variable(&leaf));
    }
    for (size_t i = 0; i < COUNT_OF(elsewhere); i++) {
        const me_yaml_leaf leaf = leaf_of(elsewhere[i], "A", value);
        assert_false(me_leaf_is_variable(&leaf));
    }
}

/* The command's wins, and the shell's are not known. */
static void test_leaf_variables__values(void **state)
{
    (void)state;
    static const char *const one[] = {"1"};
    static const char *const shell[] = {"$HOME/x"};
    const me_yaml_leaf leaf = leaf_of("ENV.A", "A", one);
    const me_yaml_leaf other = leaf_of("ENV.B", "B", one);
    const me_yaml_leaf unknown = leaf_of("ENV.C", "C", shell);
    me_config *config = me_config_create();
    assert_non_null(config);
    assert_int_equal(me_config_keep_variable(config, "A", "2", NULL), ME_OK);
    assert_int_equal(me_leaf_take_variable(config, &leaf, NULL), ME_OK);
    assert_int_equal(me_leaf_take_variable(config, &other, NULL), ME_OK);
    assert_int_equal(me_leaf_take_variable(config, &unknown, NULL), ME_OK);
    assert_string_equal(me_config_variable(config, "A"), "2");
    assert_string_equal(me_config_variable(config, "B"), "1");
    assert_null(me_config_variable(config, "C"));
    assert_int_equal(config->environment.count, 3);
    me_config_destroy(config);
}

/* What Primus and OmegaConf write between the braces. */
static void test_leaf_variables__references(void **state)
{
    (void)state;

    static const struct {
        const char *inside, *name, *other;
    } cases[] = {
        {"FOO", "FOO", NULL},
        {"FOO:8b", "FOO", "8b"},
        {"FOO:a:b", "FOO", "a:b"},
        {"oc.env:foo", "foo", NULL},
        {"oc.env:FOO,256", "FOO", "256"},
        {"oc.env: FOO , 'a b'", "FOO", "a b"},
        {"oc.env:FOO,", "FOO", ""},
        {"mul:2,3", NULL, NULL},
        {"model.hidden_size", NULL, NULL},
        {"hidden_size", NULL, NULL},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char inside[32];
        const char *other = "";
        (void)snprintf(inside, sizeof inside, "%s", cases[i].inside);
        const bool is_one = me_leaf_names_variable(inside, &other);
        assert_int_equal(is_one, cases[i].name != NULL);
        assert_string_equal(inside, is_one ? cases[i].name : cases[i].inside);
        if (is_one && cases[i].other != NULL) {
            assert_non_null(other);
            assert_string_equal(other, cases[i].other);
        } else if (is_one) {
            assert_null(other);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaf_variables__where_they_stand),
        cmocka_unit_test(test_leaf_variables__values),
        cmocka_unit_test(test_leaf_variables__references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
