/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "support/test.h"
#include "tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_MAX = 128
};

/** "6 2 1": strides of as many dimensions as @p shape has. */
static const char *text_of(const me_shape *shape, const uint64_t *strides)
{
    static char text[TEXT_MAX];
    size_t length = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < shape->ndim; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%s%" PRIu64, i == 0 ? "" : " ", strides[i]);
    }
    return text;
}

static void test_shape__numel(void **state)
{
    (void)state;

    assert_int_equal(me_shape_numel(&ME_SCALAR), 1);
    assert_int_equal(me_shape_numel(&ME_SHAPE(7)), 7);
    assert_int_equal(me_shape_numel(&ME_SHAPE(2, 3, 4)), 24);
    assert_int_equal(me_shape_numel(&ME_SHAPE(2, 0, 4)), 0);
    assert_true(me_shape_numel(&ME_SHAPE(
                    UINT64_C(1) << 32, UINT64_C(1) << 32)) == ME_SIZE_INVALID);
}

static void test_shape__equal_looks_at_used_dimensions(void **state)
{
    (void)state;

    me_shape a = ME_SHAPE(2, 3);
    const me_shape b = ME_SHAPE(2, 3);
    a.dim[4] = 99;
    assert_true(me_shape_equal(&a, &b));
    assert_false(me_shape_equal(&a, &ME_SHAPE(2, 4)));
    assert_false(me_shape_equal(&a, &ME_SHAPE(2, 3, 1)));
}

static void test_shape__row_major_strides(void **state)
{
    (void)state;

    uint64_t strides[ME_MAX_DIMS] = {0};
    me_strides_contiguous(&ME_SHAPE(2, 3, 4), strides);
    assert_string_equal(text_of(&ME_SHAPE(2, 3, 4), strides), "12 4 1");
    me_strides_contiguous(&ME_SHAPE(2, 0, 4), strides);
    assert_string_equal(text_of(&ME_SHAPE(2, 0, 4), strides), "4 4 1");
}

/* What empty_like gives: the order of the strides, without holes. */
static void test_shape__strides_like(void **state)
{
    (void)state;

    static const struct {
        me_shape shape;
        uint64_t strides[ME_MAX_DIMS];
        const char *like;
    } cases[] = {
        {{3, {2, 3, 4}}, {12, 4, 1}, "12 4 1"},
        {{3, {2, 3, 4}}, {4, 8, 1}, "4 8 1"},     /* transposed: kept */
        {{2, {3, 2}}, {10, 1}, "2 1"},            /* holes go */
        {{3, {2, 3, 4}}, {100, 1, 10}, "12 1 3"}, /* order stays */
        {{3, {2, 3, 4}}, {0, 0, 0}, "12 4 1"},    /* expanded: row-major */
        {{2, {3, 4}}, {0, 1}, "4 1"},             /* and of rows alone */
        {{2, {3, 4}}, {1, 1}, "1 3"}, /* equal: the longer is outer */
        {{4, {1, 2, 4, 8}}, {64, 8, 16, 1}, "64 8 16 1"}, /* (b,a,s,d) */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t strides[ME_MAX_DIMS] = {0};
        me_strides_like(&cases[i].shape, cases[i].strides, strides);
        assert_string_equal(text_of(&cases[i].shape, strides), cases[i].like);
    }
}

static void test_shape__contiguous_and_dense(void **state)
{
    (void)state;

    static const struct {
        me_shape shape;
        uint64_t strides[ME_MAX_DIMS];
        bool is_contiguous;
        bool is_dense;
    } cases[] = {
        {{2, {2, 3}}, {3, 1}, true, true},
        {{2, {3, 2}}, {1, 3}, false, true},  /* transposed */
        {{2, {2, 3}}, {6, 1}, false, false}, /* every other row */
        {{2, {2, 3}}, {0, 1}, false, false}, /* one row, expanded */
        {{2, {1, 3}}, {77, 1}, true, true},  /* extents of 1 do not count */
        {{2, {3, 1}}, {1, 77}, true, true},
        {{0, {0}}, {0}, true, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(me_is_contiguous(&cases[i].shape, cases[i].strides),
                         cases[i].is_contiguous);
        assert_int_equal(me_is_dense(&cases[i].shape, cases[i].strides),
                         cases[i].is_dense);
    }
}

/* A reshape copies exactly when no strides show the same memory. */
static void test_shape__reshape_is_a_view_or_a_copy(void **state)
{
    (void)state;

    static const struct {
        const char *what;
        me_shape from;
        uint64_t strides[ME_MAX_DIMS];
        me_shape to;
        const char *view; /* NULL: a copy */
    } cases[] = {
        {"flatten", {2, {2, 3}}, {3, 1}, {1, {6}}, "1"},
        {"split a dimension", {2, {4, 6}}, {6, 1}, {3, {4, 2, 3}}, "6 3 1"},
        {"merge transposed", {2, {3, 2}}, {1, 3}, {1, {6}}, NULL},
        {"(s,b,a,d) of (b,a,s,d) memory, merge heads",
         {4, {4, 1, 2, 8}},
         {16, 64, 8, 1},
         {3, {4, 1, 16}},
         "16 16 1"},
        {"the same with b = 2 and heads outermost",
         {4, {4, 2, 2, 8}},
         {8, 64, 32, 1},
         {3, {4, 2, 16}},
         NULL},
        {"merge (g, a/g) of the query slice of mixed QKV",
         {5, {4, 1, 2, 2, 8}},
         {64, 64, 32, 8, 1},
         {4, {4, 1, 4, 8}},
         NULL},
        {"a slice whose heads are alone in their group",
         {5, {4, 1, 4, 1, 8}},
         {96, 96, 24, 8, 1},
         {4, {4, 1, 4, 8}},
         "96 96 24 1"},
        {"split what has holes between rows",
         {2, {3, 4}},
         {10, 1},
         {3, {3, 2, 2}},
         "10 2 1"},
        {"merge what has holes between rows",
         {2, {3, 4}},
         {10, 1},
         {1, {12}},
         NULL},
        {"a new extent of 1", {1, {5}}, {1}, {2, {1, 5}}, "5 1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t strides[ME_MAX_DIMS] = {0};
        const bool is_view = me_strides_reshape(
            &cases[i].from, cases[i].strides, &cases[i].to, strides);
        if (is_view != (cases[i].view != NULL)) {
            fail_msg("%s: is a view: %d", cases[i].what, is_view);
        }
        if (is_view) {
            assert_string_equal(text_of(&cases[i].to, strides), cases[i].view);
        }
    }
}

static void test_shape__broadcast(void **state)
{
    static const struct {
        me_shape a, b;
        const char *shape; /* NULL: they do not go together */
    } cases[] = {
        {{2, {8, 64}}, {1, {64}}, "(8, 64)"},
        {{2, {8, 1}}, {2, {1, 6}}, "(8, 6)"},
        {{1, {6}}, {2, {1, 1}}, "(1, 6)"},
        {{0, {0}}, {1, {3}}, "(3,)"},
        {{0, {0}}, {0, {0}}, "()"},
        {{3, {2, 16, 64}}, {3, {2, 16, 32}}, NULL},
        {{2, {8, 64}}, {1, {63}}, NULL},
        {{2, {8, 64}}, {1, {8}}, NULL},
        {{1, {0}}, {1, {1}}, "(0,)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[ME_SHAPE_TEXT] = "";
        me_shape shape = ME_SCALAR;
        const bool is_right =
            me_shape_broadcast(&cases[i].a, &cases[i].b, &shape);
        assert_int_equal(is_right, cases[i].shape != NULL);
        if (is_right) {
            me_shape_text(&shape, text);
            assert_string_equal(text, cases[i].shape);
        }
    }
}

/* As PyTorch 2.11 gave them: `(a + b).stride()`. */
static void test_shape__strides_of_two_operands(void **state)
{
    static const struct {
        me_shape a;
        uint64_t a_strides[ME_MAX_DIMS];
        me_shape b;
        uint64_t b_strides[ME_MAX_DIMS];
        const char *strides;
    } cases[] = {
        {{3, {6, 1, 4}}, {1, 6, 6}, {1, {4}}, {1}, "1 6 6"},
        {{2, {8, 1}}, {1, 1}, {2, {1, 6}}, {6, 1}, "6 1"},
        {{2, {6, 5}}, {1, 6}, {3, {3, 6, 5}}, {30, 5, 1}, "30 1 6"},
        {{3, {3, 6, 5}}, {30, 5, 1}, {2, {6, 5}}, {1, 6}, "30 5 1"},
        {{3, {3, 6, 5}}, {30, 1, 6}, {2, {6, 5}}, {5, 1}, "30 1 6"},
        {{3, {6, 5, 3}}, {1, 6, 30}, {3, {6, 5, 3}}, {15, 3, 1}, "1 6 30"},
        {{3, {6, 5, 3}}, {15, 3, 1}, {3, {6, 5, 3}}, {1, 6, 30}, "15 3 1"},
        {{3, {5, 3, 6}}, {0, 0, 0}, {3, {5, 3, 6}}, {6, 30, 1}, "6 30 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_shape shape = ME_SCALAR;
        uint64_t strides[ME_MAX_DIMS] = {0};
        assert_true(me_shape_broadcast(&cases[i].a, &cases[i].b, &shape));
        me_strides_broadcast(
            &shape, &(me_extents){&cases[i].a, cases[i].a_strides},
            &(me_extents){&cases[i].b, cases[i].b_strides}, strides);
        assert_string_equal(text_of(&shape, strides), cases[i].strides);
    }
}

static void test_shape__infers_one_extent(void **state)
{
    (void)state;

    static const struct {
        int64_t sizes[ME_MAX_DIMS];
        uint32_t n;
        uint64_t numel;
        const char *shape; /**< NULL: the elements do not fill it */
    } cases[] = {
        {{-1, 73728}, 2, 9437184, "128 73728"},
        {{6, -1, 2}, 3, 24, "6 2 2"},
        {{-1}, 1, 7, "7"},
        {{2, 3}, 2, 6, "2 3"},
        {{4, -1}, 2, 0, "4 0"},
        {{2, 3}, 2, 7, NULL},
        {{-1, 5}, 2, 7, NULL},
        {{-1, 8}, 2, 4, NULL},
        {{INT64_MAX, INT64_MAX}, 2, 4, NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_shape shape;
        const bool is_filled =
            me_shape_infer(cases[i].sizes, cases[i].n, cases[i].numel, &shape);
        assert_int_equal(is_filled, cases[i].shape != NULL);
        if (is_filled) {
            assert_string_equal(text_of(&shape, shape.dim), cases[i].shape);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape__numel),
        cmocka_unit_test(test_shape__equal_looks_at_used_dimensions),
        cmocka_unit_test(test_shape__row_major_strides),
        cmocka_unit_test(test_shape__strides_like),
        cmocka_unit_test(test_shape__contiguous_and_dense),
        cmocka_unit_test(test_shape__reshape_is_a_view_or_a_copy),
        cmocka_unit_test(test_shape__infers_one_extent),
        cmocka_unit_test(test_shape__broadcast),
        cmocka_unit_test(test_shape__strides_of_two_operands),
    };
    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
