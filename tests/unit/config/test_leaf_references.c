/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"
#include "config/megatron/leaf_references.h"
#include "job.h"

#include <stdio.h>
#include <string.h>

/* What is written, and what the job reads. */
static const struct {
    const char *written;
    const char *value; /**< NULL: it is refused */
    const char *says;  /**< the message */
} cases[] = {
    {"512", "512", NULL},
    {"${model.heads}", "4", NULL},
    {"${heads}", "4", NULL},
    {"${.heads}", "4", NULL},
    {"${..top}", "7", NULL},
    {"${.sub.deep}", "3", NULL},
    {"${.sub.up}", "4", NULL}, /* of which `..heads` is meant from there */
    {"${multiply:4, ${.hidden}}", "512", NULL},
    {"${multiply:${multiply:2,2},${model.hidden}}", "512", NULL},
    {"${add:1,2,${..top}}", "10", NULL},
    {"${subtract:9,2}", "7", NULL},
    {"${divide:${.hidden},4}", "32", NULL},
    {"${divide_floor:${..top}, 2}", "3", NULL},
    {"${divide_ceil:${..top}, 2}", "4", NULL},
    {"${int_div:9,2}", "4", NULL},
    {"${multiply:2,${oc.env:MEMEST_TEST_NOT_SET,8}}", "16", NULL},
    {"${divide:9,2}", NULL, "${divide:...} makes no whole number"},
    {"${divide_ceil:9,0}", NULL, "makes no whole number"},
    {"${int_div:9,0}", NULL, "makes no whole number"},
    {"${subtract:1,2}", NULL, "makes no whole number"},
    {"${add:1,${subtract:1,2}}", NULL, "makes no whole number"},
    {"${multiply:4294967296,4294967296}", NULL, "makes no whole number"},
    {"${multiply:4}", NULL, "makes no whole number"},
    {"${multiply:1.5,2}", NULL, "makes no whole number"},
    {"${multiply:4,${.no_such}}", NULL, "makes no whole number"},
    {"${mystery:4,2}", NULL, "${mystery:...} is a function that memest"},
    {"${multiply:4,${eval:'2*2'}}", "16", NULL},
    {"${eval:'int(8/3*${.hidden})'}", "341", NULL},
    {"${eval:\\\"4*${model.heads}*${top}\\\"}", "112", NULL},
    {"${eval:8 // 3 + 7 % 4 - 2 ** 3}", "-3", NULL},
    {"${eval:'-7 // 2 + -7 % 3'}", "-2", NULL}, /* -4 and 2 */
    {"${eval:'-2 ** 2 ** 1'}", "-4", NULL},
    {"${eval:'2 ** -1'}", "0.5", NULL},
    {"${eval:'(1 + 2) * (3 - 1) / 2'}", "3.0", NULL},
    {"${eval:'1 / 3'}", "0.3333333333333333", NULL},
    {"${eval:'1e-5 * 2'}", "2e-05", NULL},
    {"${eval:'round(2.5) + round(3.5)'}", "6", NULL}, /* half to even */
    {"${eval:'max(1, min(9, 7.5), 2) + abs(-1)'}", "8.5", NULL},
    {"${eval:'float(2)'}", "2.0", NULL},
    {"${eval:'9007199254740992 * 2'}", NULL, "no number that memest works"},
    {"${eval:'1 / 0'}", NULL, "no number that memest works out"},
    {"${eval:'1 // 0'}", NULL, "no number that memest works out"},
    {"${eval:'1 if 2 else 3'}", NULL, "no number that memest works out"},
    {"${eval:'open(1)'}", NULL, "no number that memest works out"},
    {"${eval:'max(1)'}", NULL, "no number that memest works out"},
    {"${eval:'(1'}", NULL, "no number that memest works out"},
    {"${eval:''}", NULL, "no number that memest works out"},
    {"${eval:'2*${.no_such}'}", NULL, "refers to nothing"},
    {"4${.heads}/x${..top}", "44/x7", NULL},
    {"${.heads}${.heads}", "44", NULL},
    {"a ${.no_such}", NULL, "refers to nothing"},
    {"a ${.heads", NULL, "refers to nothing"},
    {"${training.model.hidden}", "128", NULL}, /* of training/job.yaml */
    {"${training.top}", "7", NULL},
    {"${training.no_such}", NULL, "refers to nothing"},
    {"${model.top}", NULL, "refers to nothing"}, /* its own section */
    {"${.no_such}", NULL, "refers to nothing"},
    {"${.top}", NULL, "refers to nothing"},
    {"${.width}", NULL, "refers to nothing"}, /* itself */
    {"${multiply:${.width},2}", NULL, "makes no whole number"},
    {"${.hidden", NULL, "refers to nothing"},
};

static const char nothing[] = "${.no_such}/llama/${top}.model";

/** Read @p written as a key of the section `model`. */
static me_status resolve(const char *written, bool is_text, me_arena *arena,
                         const char **value_out, me_diag *diag)
{
    char text[512];
    me_yaml yaml;
    const int n = snprintf(
        text, sizeof text,
        "top: 7\nmodel:\n  heads: 4\n  hidden: 128\n  sub:\n    deep: 3\n"
        "    up: ${..heads}\n  width: \"%s\"\n",
        written);
    assert_int_equal(me_yaml_parse("job", text, (size_t)n, arena, diag, &yaml),
                     ME_OK);
    return me_leaf_resolve(&yaml, &yaml.leaves[yaml.count - 1], is_text, arena,
                           value_out, diag);
}

static void test_leaf_resolve__cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_diag diag = {.status = ME_OK};
        const char *value = "";
        me_arena *arena = me_arena_create(64 << 20, "test");
        assert_non_null(arena);
        const me_status status =
            resolve(cases[i].written, false, arena, &value, &diag);
        const bool is_right =
            cases[i].value == NULL
                ? status == ME_ERR_CONFIG &&
                      strstr(diag.text, cases[i].says) != NULL
                : status == ME_OK && strcmp(value, cases[i].value) == 0;
        if (!is_right) {
            fail_msg("%s: %s%s", cases[i].written, value, diag.text);
        }
        me_arena_destroy(arena);
    }
}

/* A path whose folder the launcher knows alone stays what it is. */
static void test_leaf_resolve__texts(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    const char *value = "";
    me_arena *arena = me_arena_create(64 << 20, "test");
    assert_non_null(arena);
    assert_int_equal(resolve(nothing, true, arena, &value, &diag), ME_OK);
    assert_string_equal(value, nothing);
    me_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaf_resolve__cases),
        cmocka_unit_test(test_leaf_resolve__texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
