/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"
#include "sac/stats.h"
#include "support/test.h"

#include <string.h>

static void test_stats__know_operations_by_name(void **state)
{
    (void)state;
    assert_true(me_sac_is_view_like("t"));
    assert_true(me_sac_is_view_like("_unsafe_view"));
    assert_true(me_sac_is_view_like("t_"));
    assert_false(me_sac_is_view_like("relu_"));
    assert_false(me_sac_is_view_like("split_with_sizes_copy"));
    assert_true(me_sac_is_in_place("relu_"));
    assert_true(me_sac_is_in_place("__iadd__"));
    assert_true(me_sac_is_in_place("__ilshift__"));
    assert_false(me_sac_is_in_place("__and__"));
    assert_false(me_sac_is_in_place("add"));
    assert_true(me_sac_is_in_place("_foreach_add_"));
    assert_true(me_sac_is_in_place("__x_")); /* no dunder */
    assert_true(me_sac_is_skipped("clone"));
    assert_true(me_sac_is_skipped("sym_size"));
    assert_false(me_sac_is_skipped("view"));
}

/* linear, relu_, and cos_ and sin_ on its result: addmm is the last one that is
 * neither view nor in place. */
static void test_stats__of_foo(void **state)
{
    (void)state;
    me_sac_op ops[] = {
        {.name = "t", .is_view_like = true, .in_place_of = -1},
        {.name = "detach", .is_view_like = true, .in_place_of = -1},
        {.name = "addmm", .bytes = 512, .in_place_of = -1},
        {.name = "relu_", .bytes = 512, .in_place_of = 2},
        {.name = "clone", .bytes = 512, .in_place_of = -1},
        {.name = "cos_", .bytes = 512, .in_place_of = 2},
        {.name = "zero_", .bytes = 512, .in_place_of = 6}};
    me_sac_stats stats = {.fqn = "Foo", .ops = ops, .n_ops = 7};

    static const struct {
        const char *name;
        uint64_t bytes;
        int32_t in_place_of;
    } expected[] = {{"t", 0, -1},
                    {"addmm", 0, -1},
                    {"relu_", 512, 1},
                    {"cos_", 512, 1},
                    {"zero_", 512, 4}};

    assert_int_equal(me_sac_stats_finish(&stats, NULL), ME_OK);
    assert_int_equal(stats.n_ops, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(ops[i].name, expected[i].name);
        assert_int_equal(ops[i].bytes, expected[i].bytes);
        assert_int_equal(ops[i].in_place_of, expected[i].in_place_of);
    }
    assert_int_equal(me_sac_stats_bytes(&stats), 1536);
}

/* The tables hold what was left; the last product's memory is given back and
 * skipped operations are put between. */
static void finish_module(const char *module, const char *last)
{
    static sac_case c;
    static me_sac_op ops[2 * CASE_OPS];
    me_sac_case_of_module(module, &c);
    me_sac_stats stats = {.fqn = module, .ops = ops};
    uint32_t at = c.stats.n_ops;
    while (strcmp(c.ops[at - 1].name, last) != 0) {
        at--;
    }
    assert_int_equal(c.ops[at - 1].bytes, 0);
    for (uint32_t i = 0; i < c.stats.n_ops; i++) {
        ops[stats.n_ops] = c.ops[i];
        ops[stats.n_ops++].bytes += i + 1 == at ? 4096 : 0;
        if (i % 3 == 0) {
            ops[stats.n_ops++] =
                (me_sac_op){.name = "detach", .bytes = 7, .in_place_of = -1};
        }
    }
    assert_int_equal(me_sac_stats_finish(&stats, NULL), ME_OK);
    assert_int_equal(stats.n_ops, c.stats.n_ops);
    for (uint32_t i = 0; i < stats.n_ops; i++) {
        assert_string_equal(ops[i].name, c.ops[i].name);
        assert_int_equal(ops[i].bytes, c.ops[i].bytes);
        assert_int_equal(me_sac_is_view_like(ops[i].name), ops[i].is_view_like);
    }
}

static void test_stats__of_the_transformer(void **state)
{
    (void)state;
    finish_module("Transformer", "mm");
    finish_module("Transformer.layers.0", "add");
    finish_module("Transformer.layers.0.attention", "native_dropout");
    finish_module("Transformer.layers.0.feed_forward", "native_dropout");
}

/* Python's index -1 is the last one. */
static void test_stats__of_views_alone(void **state)
{
    (void)state;
    me_sac_op ops[] = {{.name = "t", .is_view_like = true, .in_place_of = -1},
                       {.name = "relu_", .bytes = 512, .in_place_of = 0},
                       {.name = "cos_", .bytes = 512, .in_place_of = 0}};
    me_sac_stats stats = {.fqn = "m", .ops = ops, .n_ops = 3};
    assert_int_equal(me_sac_stats_finish(&stats, NULL), ME_OK);
    assert_int_equal(ops[1].bytes, 512);
    assert_int_equal(ops[2].bytes, 0);
}

static void test_stats__of_one(void **state)
{
    (void)state;
    me_sac_op op = {.name = "mm", .bytes = 512, .in_place_of = -1};
    me_sac_stats stats = {.fqn = "m", .ops = &op, .n_ops = 1};
    assert_int_equal(me_sac_stats_finish(&stats, NULL), ME_OK);
    assert_int_equal(stats.n_ops, 1);
    assert_int_equal(op.bytes, 0);
}

static void test_stats__refuse_what_pytorch_refuses(void **state)
{
    (void)state;
    me_sac_op ops[] = {{.name = "clone", .in_place_of = -1},
                       {.name = "relu_", .in_place_of = 0}};
    me_sac_stats stats = {.fqn = "a.b", .ops = ops, .n_ops = 2};
    me_diag diag = {.line = 0};
    assert_int_equal(me_sac_stats_finish(&stats, &diag), ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "a.b: relu_ works in place on the result of clone: "
                        "PyTorch's SACEstimator, which leaves clone out, "
                        "raises ValueError");
    stats.n_ops = 1;
    assert_int_equal(me_sac_stats_finish(&stats, &diag), ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "a.b: its forward has no operation that counts: "
                        "PyTorch's SACEstimator raises ValueError");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats__know_operations_by_name),
        cmocka_unit_test(test_stats__of_foo),
        cmocka_unit_test(test_stats__of_the_transformer),
        cmocka_unit_test(test_stats__of_views_alone),
        cmocka_unit_test(test_stats__of_one),
        cmocka_unit_test(test_stats__refuse_what_pytorch_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
