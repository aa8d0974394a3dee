/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_state.h"
#include "trainer.h"

#include <stdio.h>
#include <string.h>

/* The weight has 12 elements, the norm 3. */

/* The norm is made on the host, moved as float32, then cast. */
static void test_ddp__parameters_reach_the_device(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);

    EXPECT_EVENTS(&r.model.events, "+24 +12 +6 -12");
    test_trainer_fini(&r);
}

/* One float32 buffer without padding, on the side stream. */
static void test_ddp__gradient_buffer(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);

    (void)me_test_events_take(&r.model.events);
    me_ddp_create(&r.t, 0);
    EXPECT_EVENTS(&r.model.events, "+60");
    assert_int_equal(
        r.ddp.buffers[ME_SHARING_DENSE].grad_buffer->storage->stream,
        ME_STREAM_SIDE);
    assert_int_equal(
        r.ddp.buffers[ME_SHARING_DENSE].grad_buffer->storage->category,
        ME_CATEGORY_GRADIENT);
    test_trainer_fini(&r);
}

/* Distributed over two ranks: starts at multiples of 64 elements, the end at
 * one of 128: norm at 0, weight at 64, 128 in all; parameter buffer 256 and
 * gradient buffer 512; the old storages go in reverse order of registration. */
static void test_ddp__distributed_optimizer_moves_parameters(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 2);

    (void)me_test_events_take(&r.model.events);
    r.config.optimizer.distributed = true;
    me_ddp_create(&r.t, 0);
    EXPECT_EVENTS(&r.model.events, "+256 +512 -6 -24");
    assert_ptr_equal(r.fc.weight->tensor->storage,
                     r.ddp.buffers[ME_SHARING_DENSE].param_buffer->storage);
    test_trainer_fini(&r);
}

/* The hook adds a gradient to the buffer and drops it. It was marked as used
 * by the side stream, so its free comes with the next allocation. */
static void test_ddp__hook_drops_gradients_late(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);
    me_engine *e = r.t.e;

    me_ddp_create(&r.t, 0);
    me_ddp_zero_grad(&r.t);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 3));
    me_tensor *y = me_column_linear(&r.t.nn, &r.fc,
                                    me_norm_forward(&r.t.nn, &r.norm, x), NULL);
    /* dgrad, workspace, wgrad, which goes late; the norm's gradients, where
     * the wgrad is gone at last; its input's goes; 1/rms; its weight's */
    assert_string_equal(test_backward(&r.model.events, y),
                        "+24 +1000 +24 ~24 -24 +24 +6 -24 -16 ~6");
    assert_null(r.fc.weight->tensor->grad);
    assert_int_equal(r.model.events.late, 6);
    test_trainer_fini(&r);
}

static void count_accumulated(void *self, const me_launch *launch)
{
    uint64_t *bytes = self;
    if (launch->kind == ME_LAUNCH_KERNEL &&
        launch->kernel == ME_KERNEL_ACCUMULATE) {
        *bytes += launch->bytes;
    }
}

/* A hook reads a gradient and adds to float32: 30 bytes for the norm, 120 for the
 * weight, unless the product of its gradient has added it already. */
static void test_ddp__hook_adds_what_no_product_has(void **state)
{
    (void)state;
    for (int fused = 0; fused <= 1; fused++) {
        test_trainer r;
        test_trainer_init(&r, 1);
        me_engine *e = r.t.e;
        me_te_state te = {.entries = NULL};
        uint64_t bytes = 0;

        r.t.nn.te = &te;
        r.model.config.impl.transformer = ME_TRANSFORMER_ENGINE;
        r.model.config.train.gradient_accumulation_fusion = fused == 1;
        me_ddp_create(&r.t, 0);
        me_ddp_zero_grad(&r.t);
        me_iteration(e, 0);
        me_engine_listen(e, (me_launch_listener){count_accumulated, &bytes, 0});
        me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 3));
        me_tensor *y = me_column_linear(
            &r.t.nn, &r.fc, me_norm_forward(&r.t.nn, &r.norm, x), NULL);
        (void)test_backward(&r.model.events, y);
        assert_int_equal(bytes, fused == 1 ? 30 : 30 + 120);
        me_te_state_fini(e, &te);
        test_trainer_fini(&r);
    }
}

/* Two ranks and 15 elements: all-reduced, or each its half of 128. */
static void test_ddp__reduction(void **state)
{
    (void)state;
    for (int distributed = 0; distributed <= 1; distributed++) {
        test_trainer r;
        test_trainer_init(&r, 2);
        r.config.optimizer.distributed = distributed == 1;
        me_ddp_create(&r.t, 0);
        (void)me_test_events_take(&r.model.events);
        me_ddp_reduce(&r.t, 0);
        EXPECT_EVENTS(&r.model.events,
                      distributed == 1 ? "ReduceScatter:64" : "AllReduce:15");
        test_trainer_fini(&r);
    }
}

/* The buffer's norm; from iteration 1 on it is looked at: is it NaN, and its
 * magnitude infinite? */
static void test_ddp__checks_for_nan(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);

    r.config.train.check_for_nan_in_loss_and_grad = true;
    me_ddp_create(&r.t, 0);
    (void)me_test_events_take(&r.model.events);
    me_ddp_reduce(&r.t, 0);
    EXPECT_EVENTS(&r.model.events, "+4 -4 AllReduce:15");
    r.t.iteration = 1;
    me_ddp_zero_grad(&r.t);
    me_ddp_reduce(&r.t, 0);
    EXPECT_EVENTS(&r.model.events, "+4 +1 -1 +4 +1 -4 -1 -4 AllReduce:15");
    test_trainer_fini(&r);
}

/* Overlapped: the bucket is reduced in the hook of the last gradient that becomes
 * ready, before that one is dropped; how many come the first iteration counts. */
static void test_ddp__overlapped_reduction(void **state)
{
    (void)state;
    static const char *const events[] = {
        "+24 +1000 +24 ~24 -24 +24 +6 -24 -16 ~6",
        "+24 +24 ~24 -24 +24 +6 -24 -16 AllReduce:15 ~6"};
    test_trainer r;
    test_trainer_init(&r, 1);
    me_engine *e = r.t.e;

    r.config.optimizer.overlap_grad_reduce = true;
    me_ddp_create(&r.t, 0);
    for (int32_t i = 0; i < 2; i++) {
        r.t.iteration = i;
        me_ddp_zero_grad(&r.t);
        me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 3));
        me_tensor *y = me_column_linear(
            &r.t.nn, &r.fc, me_norm_forward(&r.t.nn, &r.norm, x), NULL);
        assert_string_equal(test_backward(&r.model.events, y), events[i]);
    }
    test_trainer_fini(&r);
}

/** Norms of buckets, by the stream that they are made on. */
static void count_norms(void *self, const me_event *event)
{
    int *norms = self;
    if (event->kind == ME_EVENT_ALLOC &&
        strcmp(event->op, "linalg_vector_norm") == 0) {
        norms[event->stream]++;
    }
}

static void hand_over(test_trainer *r, const me_parameter *p)
{
    me_engine *e = r->t.e;
    const me_frame frame = me_enter(e);
    me_tensor *gradient = me_retain(me_empty_like(e, "g", p->tensor));
    me_leave(e, frame, NULL);
    me_hand_over_grad(e, p->tensor, &gradient);
}

/* The hook of an AccumulateGrad runs on the stream that DDP made it on; what a
 * module's backward_dw() calls, on the stream of that. */
static void test_ddp__reduces_on_the_stream_of_the_hook(void **state)
{
    (void)state;
    int norms[ME_STREAMS] = {0};
    test_trainer r;
    test_trainer_init(&r, 1);
    me_engine *e = r.t.e;

    r.config.optimizer.overlap_grad_reduce = true;
    r.config.train.check_for_nan_in_loss_and_grad = true;
    me_ddp_create(&r.t, 0);
    me_engine_observe(e, (me_observer){.on_event = count_norms, .self = norms});
    for (int32_t i = 0; i < 2; i++) {
        r.t.iteration = i;
        me_ddp_zero_grad(&r.t);
        me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 3));
        me_tensor *y = me_column_linear(
            &r.t.nn, &r.fc, me_norm_forward(&r.t.nn, &r.norm, x), NULL);
        (void)test_backward(&r.model.events, y);
    }
    assert_int_equal(norms[ME_STREAM_SIDE], 1);
    assert_int_equal(norms[ME_STREAM_DEFAULT], 0);

    me_ddp_zero_grad(&r.t);
    hand_over(&r, r.fc.weight);
    hand_over(&r, r.norm.weight);
    assert_int_equal(norms[ME_STREAM_SIDE], 1);
    assert_int_equal(norms[ME_STREAM_DEFAULT], 1);
    test_trainer_fini(&r);
}

/* Sums in float32: the bucket, 128 elements of two bytes, goes by all-to-all into
 * one as large; then the sum of the rank's part, here all of it, of four. */
static void test_ddp__sums_in_float32(void **state)
{
    (void)state;
    for (int overlapped = 0; overlapped < 2; overlapped++) {
        test_trainer r;
        test_trainer_init(&r, 1);
        r.config.train.grad_dtype = ME_DTYPE_BFLOAT16;
        r.config.optimizer.distributed = true;
        r.config.optimizer.ddp_reduce_scatter_with_fp32_accumulation = true;
        r.config.optimizer.overlap_grad_reduce = overlapped == 1;
        me_ddp_create(&r.t, 0);
        (void)me_test_events_take(&r.model.events);
        me_ddp_reduce(&r.t, 0);
        EXPECT_EVENTS(&r.model.events,
                      overlapped == 1 ? "+256 AllToAll:128"
                                      : "+256 AllToAll:128 +512 -512 -256");
        me_distributed_data_parallel.finish_grad_sync(&r.t, 0);
        EXPECT_EVENTS(&r.model.events, overlapped == 1 ? "+512 -512 -256" : "");
        test_trainer_fini(&r);
    }
}

/* Main parameters: a clone and a float32 copy of each, the clone goes;
 * matrices first, then vectors. Around them the groups are gathered. */
static void test_ddp__optimizer_is_built(void **state)
{
    static const char gather[] = "+46 +8 +8 +8 -8 AllGather:1 +46 +46 -46 -46 "
                                 "AllGather:46 -8 -46 -8";
    (void)state;
    test_trainer r;
    char expected[512] = "";
    test_trainer_init(&r, 1);

    me_ddp_create(&r.t, 0);
    (void)me_test_events_take(&r.model.events);
    me_gather_object(&r.t, 46, 46);
    const char *first = me_test_events_take(&r.model.events);
    (void)snprintf(expected, sizeof expected, "%s +4 +24 +48 -24 +6 +12 -6 %s",
                   first, first);
    me_optimizer_create(&r.t);
    EXPECT_EVENTS(&r.model.events, expected);
    assert_int_equal(strncmp(expected, gather, 11), 0);
    me_optimizer_destroy(&r.t);
    test_trainer_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ddp__parameters_reach_the_device),
        cmocka_unit_test(test_ddp__gradient_buffer),
        cmocka_unit_test(test_ddp__distributed_optimizer_moves_parameters),
        cmocka_unit_test(test_ddp__hook_drops_gradients_late),
        cmocka_unit_test(test_ddp__hook_adds_what_no_product_has),
        cmocka_unit_test(test_ddp__reduction),
        cmocka_unit_test(test_ddp__checks_for_nan),
        cmocka_unit_test(test_ddp__overlapped_reduction),
        cmocka_unit_test(test_ddp__reduces_on_the_stream_of_the_hook),
        cmocka_unit_test(test_ddp__sums_in_float32),
        cmocka_unit_test(test_ddp__optimizer_is_built),
    };
    return cmocka_run_group_tests_name("ddp", tests, NULL, NULL);
}
