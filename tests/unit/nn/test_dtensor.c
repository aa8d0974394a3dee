/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/distribute.h"
#include "nn/torch/dtensor.h"
#include "nn/torch/loss_parallel.h"
#include "ops/elementwise.h"
#include "support/model.h"

#include <string.h>

/** A model on two tensor ranks of which this is the one at @p index. */
static test_model *on_two_ranks(int32_t index)
{
    static test_model model;
    test_model_init(&model, 2);
    model.comm.index[ME_GROUP_TENSOR] = index;
    return &model;
}

static int on_first(void **state)
{
    *state = on_two_ranks(0);
    return 0;
}

static int on_second(void **state)
{
    *state = on_two_ranks(1);
    return 0;
}

static int take_down(void **state)
{
    test_model_fini(*state);
    return 0;
}

/** The test's state is the model; what it did must not have failed. */
#define FIRST_RANK(test)                                                       \
    cmocka_unit_test_setup_teardown(test, on_first, take_down)
#define SECOND_RANK(test)                                                      \
    cmocka_unit_test_setup_teardown(test, on_second, take_down)

/* 4 rows of 6 classes on this rank: 96 bytes in float32; a float32 of each row
 * 16, an int64 32, a byte 4. */

static const char loss_forward[] =
    "+16 +16 AllReduce:4 -16 "      /* maxima */
    "+96 +96 +16 -96 "              /* shifted, exponentials, sum */
    "+16 AllReduce:4 -16 +16 "      /* of all ranks; its logarithm */
    "+96 -96 -16 -16 -16 "          /* logarithms of probabilities */
    "+4 +8 +32 -8 -4 "              /* targets that count, a 0 */
    "+4 +4 +4 -4 -4 +32 +32 -32 "   /* others' mask, own targets */
    "+16 -4 +16 AllReduce:4 +16 "   /* picked; of all ranks; negated */
    "+4 +4 +16 -4 -4 -16 "          /* of rows that count */
    "+4 +8 +32 -32 -4 +4 -8 "       /* how many */
    "+4 +4 -4 -16 -32 -32 -16 -16"; /* sum, mean */

static const char loss_backward[] =
    "+4 +4 +8 +32 -8 -4 +96 "        /* mean's; targets; zeros */
    "+4 +4 +4 -4 -4 +32 +32 -32 "    /* mask, own targets */
    "+16 +16 -16 +32 "               /* -1 or 0 of each row; rows */
    "+4 +4 +16 -4 -4 -4 "            /* gradient of each row */
    "+96 +96 -96 +96 -96 -16 "       /* probabilities less one, times it */
    "-32 -96 -4 -32 -16 -32 -4 -96"; /* locals; count; logarithms */

static void test_dtensor__kinds(void **state)
{
    test_model *m = *state;
    me_engine *e = m->nn.e;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(4));
    me_tensor *y = me_empty(e, "y", ME_DTYPE_FLOAT32, ME_SHAPE(6));
    assert_null(x->kind);
    me_lay(e, x, ME_DLAYOUT_SHARD_0);
    me_lay_uneven(e, y, ME_DLAYOUT_SHARD_0, 10);
    assert_ptr_not_equal(x->kind, y->kind);
    me_lay_uneven(e, y, ME_DLAYOUT_SHARD_0, 0);
    assert_ptr_equal(x->kind, y->kind); // what lies alike has one kind
    assert_true(me_is_distributed(x));
    me_lay(e, x, ME_DLAYOUT_NONE);
    assert_null(x->kind);
    me_leave(e, frame, NULL);
    (void)me_test_events_take(&m->events);
}

static void test_dtensor__loss_parallel(void **state)
{
    test_model *m = *state;
    me_engine *e = m->nn.e;

    me_tensor *logits = test_tensor(e, ME_DTYPE_FLOAT32, ME_SHAPE(2, 2, 6));
    logits->requires_grad = true;
    me_lay(e, logits, me_dlayout_of(ME_DLAYOUT_SHARD_LAST, 3));
    me_tensor *target = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(2, 2));
    (void)me_test_events_take(&m->events);
    me_tensor *loss = me_loss_parallel(&m->nn, logits, target);
    EXPECT_EVENTS(&m->events, loss_forward);
    assert_int_equal(me_layout_of(loss), ME_DLAYOUT_REPLICATE);
    assert_string_equal(test_backward(&m->events, loss), loss_backward);
    assert_int_equal(me_numel(logits->grad), 24);
}

/* What is worked out in float32 (96) of bfloat16 logits is cast back (48). */
static void test_dtensor__loss_parallel_of_bfloat16(void **state)
{
    test_model *m = *state;
    me_engine *e = m->nn.e;

    me_tensor *logits = me_test_leaf(e, ME_SHAPE(4, 6));
    me_lay(e, logits, me_dlayout_of(ME_DLAYOUT_SHARD_LAST, 2));
    me_tensor *target = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(4));
    (void)me_test_events_take(&m->events);
    me_tensor *loss = me_loss_parallel(&m->nn, logits, target);
    static const char begin[] = "+96 +16 +16 AllReduce:4 -16 +96 +96 +16 -96 "
                                "+16 AllReduce:4 -16 +16 +96 +48 -96 -96 -96 ";
    assert_memory_equal(me_test_events_take(&m->events), begin,
                        sizeof begin - 1);
    assert_int_equal(loss->dtype, ME_DTYPE_BFLOAT16);
}

/* The first cast back of a gradient takes 4 bytes for a moment, later ones do
 * not: 4 bfloat16 numbers are 8 bytes. */
static void test_dtensor__first_cast_backward(void **state)
{
    test_model *m = *state;
    me_engine *e = m->nn.e;
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4));
    me_lay(e, x, ME_DLAYOUT_REPLICATE);
    me_tensor *y = me_cast(e, x, ME_DTYPE_FLOAT32);
    assert_string_equal(test_backward(&m->events, y), "+4 -4 +8");
    me_clear(e, &x->grad);
    me_tensor *z = me_cast(e, x, ME_DTYPE_FLOAT32);
    assert_string_equal(test_backward(&m->events, z), "+8");
}

/* Two gradients of a cut leaf: this rank's part of the whole one (12 of 20
 * bytes) is copied, and their sum is a third. */
static void test_dtensor__gradients_meet_as_parts(void **state)
{
    test_model *m = *state;
    me_engine *e = m->nn.e;
    me_tensor *x = me_test_leaf(e, ME_SHAPE(6));
    me_lay_uneven(e, x, ME_DLAYOUT_SHARD_0, 10);
    me_node *leaf = me_leaf_accumulator(e, x);
    me_tensor *part = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(6));
    me_tensor *whole = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(10));
    me_tensor *sum = NULL;
    (void)me_test_events_take(&m->events);
    me_autograd_grad(
        e, &(me_grad_request){.n_roots = 2,
                              .roots = (me_edge[]){{leaf, 0}, {leaf, 0}},
                              .gradients = (me_tensor *[]){part, whole},
                              .n_inputs = 1,
                              .inputs = (me_node *[]){leaf},
                              .gradients_out = &sum});
    EXPECT_EVENTS(&m->events, "+12 +12 -12");
    assert_int_equal(me_numel(sum), 6);
    me_release(e, sum);
    me_node_release(e, leaf);
}

static void test_dtensor__targets_must_fit(void **state)
{
    (void)state;
    me_test_events events;
    me_test_events_init(&events);
    const me_nn nn = {.e = events.e};
    me_tensor *logits = test_tensor(events.e, ME_DTYPE_FLOAT32, ME_SHAPE(4, 6));
    me_tensor *target = test_tensor(events.e, ME_DTYPE_INT64, ME_SHAPE(3));
    (void)me_loss_parallel(&nn, logits, target);
    me_diag diag = {.status = ME_OK};
    assert_int_equal(me_engine_status(events.e, &diag), ME_ERR_CONFIG);
    assert_non_null(
        strstr(diag.text, "4 rows need as many int64 targets, not 3"));
    me_test_events_fini(&events);
}

/* As torch.chunk() cuts: 7 over 2 ranks are 4 and 3, 5 over 4 are 2, 2, 1 and
 * nothing. */
static void test_dtensor__parts(void **state)
{
    (void)state;
    me_communicators comm = {.size = {[ME_GROUP_TENSOR] = 2}};
    const me_nn nn = {.comm = &comm};
    assert_int_equal(me_padded_part(&nn, 7), 4);
    assert_int_equal(me_part_of(&nn, 7), 4);
    comm.index[ME_GROUP_TENSOR] = 1;
    assert_int_equal(me_part_of(&nn, 7), 3);
    comm.size[ME_GROUP_TENSOR] = 4;
    assert_int_equal(me_part_of(&nn, 5), 2);
    comm.index[ME_GROUP_TENSOR] = 2;
    assert_int_equal(me_part_of(&nn, 5), 1);
    comm.index[ME_GROUP_TENSOR] = 3;
    assert_int_equal(me_part_of(&nn, 5), 0);
}

/* 2 x 3 of 2 x 7 bfloat16 numbers (12 bytes) are padded to 2 x 4 (16) and
 * gathered (32), then put together (32), of which 2 x 7 are seen. Back, this
 * rank takes its part. */
static void test_dtensor__gather_of_uneven_parts(void **state)
{
    test_model *m = *state;
    me_engine *e = m->nn.e;
    const me_dlayout columns = me_dlayout_of(ME_DLAYOUT_SHARD_LAST, 2);

    me_tensor *x = me_test_leaf(e, ME_SHAPE(2, 3));
    me_lay_uneven(e, x, columns, 7);
    (void)me_test_events_take(&m->events);
    me_tensor *y =
        me_redistribute(&m->nn, x, ME_DLAYOUT_REPLICATE, ME_DLAYOUT_REPLICATE);
    EXPECT_EVENTS(&m->events, "+16 +32 AllGather:8 +32 -32 -16");
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(2, 7)));
    assert_int_equal(y->strides[0], 8);
    assert_int_equal(me_dtensor_of(y)->whole_extent, 0);
    assert_string_equal(test_backward(&m->events, y), "+12");
    assert_true(me_shape_equal(&x->grad->shape, &ME_SHAPE(2, 3)));
}

/* A whole one is cut: what comes back has this rank's part, and is gathered
 * with what others have. */
static void test_dtensor__cut_into_uneven_parts(void **state)
{
    test_model *m = *state;
    me_engine *e = m->nn.e;

    me_tensor *x = me_test_leaf(e, ME_SHAPE(7, 2));
    me_lay(e, x, ME_DLAYOUT_REPLICATE);
    (void)me_test_events_take(&m->events);
    me_tensor *y =
        me_redistribute(&m->nn, x, ME_DLAYOUT_SHARD_0, ME_DLAYOUT_SHARD_0);
    EXPECT_EVENTS(&m->events, "+12");
    assert_int_equal(me_dtensor_of(y)->whole_extent, 7);
    assert_string_equal(test_backward(&m->events, y),
                        "+16 +32 AllGather:8 -16");
    assert_true(me_shape_equal(&x->grad->shape, &ME_SHAPE(7, 2)));
}

/* What is a sum over ranks must divide where it is scattered. */
static void test_dtensor__sums_must_divide(void **state)
{
    (void)state;
    test_model *m = on_two_ranks(0);
    me_tensor *x = test_tensor(m->nn.e, ME_DTYPE_FLOAT32, ME_SHAPE(7, 2));
    (void)me_redistribute_local(&m->nn, x, ME_DLAYOUT_PARTIAL,
                                ME_DLAYOUT_SHARD_0, false);
    me_diag diag = {.status = ME_OK};
    assert_int_equal(me_engine_status(m->nn.e, &diag), ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "cuts dimension 0 of a sum over ranks, "
                                      "which 2 ranks do not divide"));
    me_test_events_fini(&m->events);
}

static me_parameter *weight(test_model *m, me_shape shape)
{
    me_parameter *p = me_parameter_create_as(
        &m->nn,
        &(me_parameter_spec){
            .name = "weight", .module = ME_NO_MODULE, .shape = shape},
        ME_DTYPE_FLOAT32);
    (void)me_test_events_take(&m->events);
    return p;
}

/* 7 x 2 float32 numbers (56 bytes): the last rank's 3 rows are padded to 4 (32)
 * where they are sent and where they lie. */
static void test_dtensor__distribute_uneven_rows(void **state)
{
    test_model *m = *state;

    me_parameter *p = weight(m, ME_SHAPE(7, 2));
    me_tensor *whole =
        me_distribute(&m->nn, p, ME_DLAYOUT_SHARD_0, ME_DLAYOUT_SHARD_0, true);
    EXPECT_EVENTS(&m->events, "+32 +32 Recv:8 -32");
    me_release(m->nn.e, whole);
    EXPECT_EVENTS(&m->events, "-56");
    assert_int_equal(p->numel, 6);
    assert_true(me_dparameter_of(p)->is_uneven);
    assert_int_equal(me_numel(p->tensor), 6);
}

/* 2 x 7: each piece is a copy, the padded one too (2 x 4, 32), and the last
 * rank's 3 columns are copied out (24). */
static void test_dtensor__distribute_uneven_columns(void **state)
{
    test_model *m = *state;

    me_parameter *p = weight(m, ME_SHAPE(2, 7));
    me_tensor *whole =
        me_distribute(&m->nn, p, (me_dlayout)(ME_DLAYOUT_SHARD_0 + 1),
                      (me_dlayout)(ME_DLAYOUT_SHARD_0 + 1), true);
    EXPECT_EVENTS(&m->events, "+32 +32 +32 Recv:8 +24 -32 -32 -32");
    me_release(m->nn.e, whole);
}

/* Two modules have a weight of 4 x 2 (32 bytes): the first one's part (16)
 * leaves the whole one alone, the second one's lets it go, and tying them again
 * lets one part go. */
static void test_dtensor__tied_weights(void **state)
{
    test_model *m = *state;
    const me_dlayout rows = ME_DLAYOUT_SHARD_0;

    me_parameter *p = weight(m, ME_SHAPE(4, 2));
    p->is_tied = true;
    assert_null(me_distribute(&m->nn, p, rows, ME_DLAYOUT_REPLICATE, true));
    EXPECT_EVENTS(&m->events, "+16 Send:4");
    const me_tensor *part = p->tensor;
    assert_null(me_distribute(&m->nn, p, rows, rows, false));
    EXPECT_EVENTS(&m->events, "+16 Send:4 -32");
    me_distribute_end(&m->nn);
    EXPECT_EVENTS(&m->events, "-16");
    assert_ptr_equal(p->tensor, part);
    assert_int_equal(me_dparameter_of(p)->gradient, rows);
}

/* The module that has the other's weight may come first: its part goes. */
static void test_dtensor__tied_weights_the_other_way(void **state)
{
    test_model *m = *state;
    const me_dlayout rows = ME_DLAYOUT_SHARD_0;

    me_parameter *p = weight(m, ME_SHAPE(4, 2));
    p->is_tied = true;
    assert_null(me_distribute(&m->nn, p, rows, rows, false));
    const me_tensor *part = p->tensor;
    assert_null(me_distribute(&m->nn, p, rows, ME_DLAYOUT_REPLICATE, true));
    assert_ptr_equal(p->spare, part);
    me_distribute_end(&m->nn);
    assert_true(p->tensor->requires_grad);
    assert_int_equal(me_layout_of(p->tensor), rows);
    assert_ptr_equal(p->tensor->parameter, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIRST_RANK(test_dtensor__kinds),
        FIRST_RANK(test_dtensor__loss_parallel),
        SECOND_RANK(test_dtensor__loss_parallel_of_bfloat16),
        FIRST_RANK(test_dtensor__first_cast_backward),
        FIRST_RANK(test_dtensor__gradients_meet_as_parts),
        cmocka_unit_test(test_dtensor__targets_must_fit),
        cmocka_unit_test(test_dtensor__parts),
        SECOND_RANK(test_dtensor__gather_of_uneven_parts),
        SECOND_RANK(test_dtensor__cut_into_uneven_parts),
        cmocka_unit_test(test_dtensor__sums_must_divide),
        SECOND_RANK(test_dtensor__distribute_uneven_rows),
        SECOND_RANK(test_dtensor__distribute_uneven_columns),
        FIRST_RANK(test_dtensor__tied_weights),
        FIRST_RANK(test_dtensor__tied_weights_the_other_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
