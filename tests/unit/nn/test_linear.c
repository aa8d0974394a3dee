/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/linear.h"
#include "nn/megatron/te_state.h"
#include "ops/view.h"
#include "support/model.h"

/* 3 inputs, 4 outputs, x of 4 rows: (4, 1, 3), 24 bytes in bfloat16; output
 * (4, 1, 4) 32, weight 24. cuBLAS's workspace is 1000 bytes a thread. */

static me_linear column(test_model *m, bool has_bias, bool skips)
{
    return me_column_linear_create(&m->nn,
                                   &(me_linear_spec){.name = "fc",
                                                     .parent = ME_NO_MODULE,
                                                     .inputs = 3,
                                                     .outputs = 4,
                                                     .has_bias = has_bias,
                                                     .skip_bias_add = skips});
}

static void test_linear__column(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_linear fc = column(&m, false, false);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    EXPECT_EVENTS(&m.events, "+24 +24");
    me_tensor *y = me_column_linear(&m.nn, &fc, x, NULL);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 4)));
    EXPECT_EVENTS(&m.events, "+32 +1000");
    /* input's gradient, the autograd thread's workspace, weight's gradient */
    assert_string_equal(test_backward(&m.events, y), "+24 +1000 +24");
    test_model_fini(&m);
}

/* Apex's kernel adds the weight's gradient to the main gradient: what autograd gets
 * is one tensor of the weight's shape, made for the first layer of that shape and
 * kept. */
static void test_linear__fused_weight_gradient(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_te_state te = {.count = 0};
    m.nn.te = &te;
    m.config.train.gradient_accumulation_fusion = true;

    const me_linear fc = column(&m, false, false);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    (void)me_test_events_take(&m.events);
    for (int i = 0; i < 2; i++) {
        me_tensor *y = me_column_linear(&m.nn, &fc, x, NULL);
        (void)me_test_events_take(&m.events);
        const char *events = test_backward(&m.events, y);
        assert_string_equal(events, i == 0 ? "+24 +1000 +24" : "+24 -24");
        me_drop(m.nn.e, y);
        (void)me_test_events_take(&m.events);
    }
    me_te_state_fini(m.nn.e, &te);
    test_model_fini(&m);
}

/* A bias that is not skipped makes a second output, and the product goes. */
static void test_linear__bias(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_linear fc = column(&m, true, false);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    EXPECT_EVENTS(&m.events, "+24 +8 +24");
    me_tensor *y = me_column_linear(&m.nn, &fc, x, NULL);
    EXPECT_EVENTS(&m.events, "+32 +1000 +32 -32");
    assert_string_equal(test_backward(&m.events, y), "+24 +1000 +24 +8");
    test_model_fini(&m);
}

static void test_linear__skipped_bias_is_the_callers(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_linear fc = column(&m, true, true);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    (void)me_test_events_take(&m.events);
    me_column_linear(&m.nn, &fc, x, NULL);
    EXPECT_EVENTS(&m.events, "+32 +1000");
    test_model_fini(&m);
}

/* Two tensor ranks: half of the outputs; the input's gradient is summed over
 * the ranks in place. */
static void test_linear__column_on_two_ranks(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 2);

    const me_linear fc = column(&m, false, false);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    EXPECT_EVENTS(&m.events, "+12 +24");
    me_tensor *y = me_column_linear(&m.nn, &fc, x, NULL);
    EXPECT_EVENTS(&m.events, "+16 +1000");
    assert_string_equal(test_backward(&m.events, y),
                        "+24 +1000 AllReduce:12 +12");
    test_model_fini(&m);
}

/* Sequence parallelism: rows are gathered into the shared buffer (24) before
 * the product; backward gathers again, reduce-scatters the input's gradient to
 * its own rows (12), and the whole one goes when the function returns. */
static void test_linear__column_under_sequence_parallelism(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 2);

    m.config.parallel.sequence = true;
    const me_linear fc = column(&m, false, false);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(2, 1, 3));
    EXPECT_EVENTS(&m.events, "+12 +12");
    me_tensor *y = me_column_linear(&m.nn, &fc, x, NULL);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 2)));
    EXPECT_EVENTS(&m.events, "+24 AllGather:6 +16 +1000");
    assert_string_equal(test_backward(&m.events, y),
                        "AllGather:6 +24 +1000 +12 ReduceScatter:6 +12 -24");
    test_model_fini(&m);
}

static me_linear row(test_model *m)
{
    return me_row_linear_create(
        &m->nn,
        &(me_linear_spec){
            .name = "proj", .parent = ME_NO_MODULE, .inputs = 6, .outputs = 4});
}

static void test_linear__row_on_two_ranks(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 2);

    const me_linear proj = row(&m);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    EXPECT_EVENTS(&m.events, "+24 +24");
    me_tensor *y = me_row_linear(&m.nn, &proj, x);
    EXPECT_EVENTS(&m.events, "+32 +1000 AllReduce:16");
    assert_string_equal(test_backward(&m.events, y), "+24 +1000 +24");
    test_model_fini(&m);
}

/* The whole output goes once its rows are scattered; backward gathers them. */
static void test_linear__row_under_sequence_parallelism(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 2);

    m.config.parallel.sequence = true;
    const me_linear proj = row(&m);
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_row_linear(&m.nn, &proj, x);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(2, 1, 4)));
    EXPECT_EVENTS(&m.events, "+32 +1000 +16 ReduceScatter:8 -32");
    assert_string_equal(test_backward(&m.events, y),
                        "+32 AllGather:8 +24 +1000 +24 -32");
    test_model_fini(&m);
}

/* The buffer grows and is never given back. */
static void test_linear__shared_buffer_grows(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    me_global_buffer(&m.nn, ME_DTYPE_BFLOAT16, ME_SHAPE(2, 3));
    me_global_buffer(&m.nn, ME_DTYPE_BFLOAT16, ME_SHAPE(6));
    me_global_buffer(&m.nn, ME_DTYPE_BFLOAT16, ME_SHAPE(5));
    me_global_buffer(&m.nn, ME_DTYPE_BFLOAT16, ME_SHAPE(7));
    me_global_buffer(&m.nn, ME_DTYPE_FLOAT32, ME_SHAPE(1));
    EXPECT_EVENTS(&m.events, "+12 +14 -12 +4");
    test_model_fini(&m);
}

/* A parameter that is used twice has one accumulator: the second gradient is
 * added to the first when both have come. */
static void test_linear__a_weight_used_twice(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_linear fc = me_column_linear_create(
        &m.nn, &(me_linear_spec){.name = "fc", .inputs = 3, .outputs = 3});
    me_tensor *x = test_tensor(m.nn.e, ME_DTYPE_BFLOAT16, ME_SHAPE(4, 1, 3));
    me_tensor *y = me_column_linear(&m.nn, &fc, x, NULL);
    me_tensor *z = me_column_linear(&m.nn, &fc, y, NULL);
    /* later one: input's gradient 24, workspace, weight's 18; earlier one:
     * both again, the sum in place; its output's gradient, and at its end what
     * it made in order: what the input needs not, what was added */
    assert_string_equal(test_backward(&m.events, z),
                        "+24 +1000 +18 +24 +18 -24 -24 -18");
    assert_non_null(fc.weight->tensor->grad);
    test_model_fini(&m);
}

/* x is three of five columns: input's gradient 24, workspace, a dense copy of
 * the input for the weight's 24; then the slice's gradient of all columns. */
static void test_linear__an_input_with_holes(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_linear fc = column(&m, false, false);
    me_tensor *all = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 5));
    me_tensor *x = me_slice(m.nn.e, all, -1, 0, 3);
    me_tensor *y = me_column_linear(&m.nn, &fc, x, NULL);
    assert_string_equal(test_backward(&m.events, y),
                        "+24 +1000 +24 +24 -24 +40 -24");
    test_model_fini(&m);
}

/* (4, 1, 3) of each of two ranks beside each other: rows of both, 48 bytes,
 * then their columns joined; backward this rank's 24. */
static void test_linear__gathered_columns(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 2);

    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_gather_from_tensor_region(m.nn.e, &m.comm, x);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 6)));
    EXPECT_EVENTS(&m.events, "+48 AllGather:12 +48 -48");
    assert_string_equal(test_backward(&m.events, y), "+24");
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear__column),
        cmocka_unit_test(test_linear__fused_weight_gradient),
        cmocka_unit_test(test_linear__bias),
        cmocka_unit_test(test_linear__skipped_bias_is_the_callers),
        cmocka_unit_test(test_linear__column_on_two_ranks),
        cmocka_unit_test(test_linear__column_under_sequence_parallelism),
        cmocka_unit_test(test_linear__row_on_two_ranks),
        cmocka_unit_test(test_linear__row_under_sequence_parallelism),
        cmocka_unit_test(test_linear__shared_buffer_grows),
        cmocka_unit_test(test_linear__a_weight_used_twice),
        cmocka_unit_test(test_linear__an_input_with_holes),
        cmocka_unit_test(test_linear__gathered_columns),
    };
    return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
