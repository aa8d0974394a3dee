/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/compiled.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "support/test.h"
#include "tensor/autograd.h"

#include <string.h>

enum {
    L2_CACHE = 1000
};

/** What was allocated, and how much of it at once. */
typedef struct seen {
    int flushes;
    int copies;
    uint64_t live;
    uint64_t peak;
    uint64_t at_flush; /* live beside the last flush buffer */
} seen;

static void on_event(void *self, const me_event *event)
{
    seen *s = self;
    if (event->kind == ME_EVENT_ALLOC) {
        if (strcmp(event->op, "autotune.flush") == 0) {
            s->flushes++;
            s->at_flush = s->live;
        }
        s->copies += strcmp(event->op, "autotune.clone") == 0 ? 1 : 0;
        s->live += event->bytes;
        s->peak = s->live > s->peak ? s->live : s->peak;
    } else if (event->kind == ME_EVENT_FREE_COMPLETED) {
        s->live -= event->bytes;
    }
}

static me_engine *make_engine(seen *s)
{
    const me_card card = {.l2_cache_bytes = L2_CACHE};
    me_engine *e = NULL;
    assert_int_equal(me_engine_create(&card, &e), ME_OK);
    me_engine_observe(e, (me_observer){.on_event = on_event, .self = s});
    return e;
}

static void test_compiled__is_timed_once(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    for (int i = 0; i < 3; i++) {
        me_compiled_run(e, ME_COMPILED_SWIGLU, NULL);
    }
    assert_int_equal(s.flushes, 2);
    assert_int_equal(s.live, 0);
    assert_int_equal(s.peak, L2_CACHE);
    me_compiled_run(e, ME_COMPILED_SWIGLU_BACKWARD, NULL);
    assert_int_equal(s.flushes, 4);
    me_engine_destroy(e);
}

/* A ring's first output and its statistics lie along unlike dimensions. */
static void test_compiled__tiles_have_six_configurations(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    for (int i = 0; i < 2; i++) {
        me_compiled_run(e, ME_COMPILED_RING_OUTPUT_INIT, NULL);
    }
    assert_int_equal(s.flushes, 6);
    me_compiled_run(e, ME_COMPILED_CHUNKS_BEFORE, NULL);
    assert_int_equal(s.flushes, 8);
    me_engine_destroy(e);
}

static void test_compiled__timings_that_are_cached(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    me_compile_cache_set(e, true);
    me_compiled_run(e, ME_COMPILED_SWIGLU, NULL);
    assert_int_equal(s.flushes, 0);
    me_engine_destroy(e);
}

static void test_compiled__other_strides_once_more(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_BFLOAT16, ME_SHAPE(1, 8, 4));
    me_tensor *turned = me_transpose(e, x, 0, 1);
    me_tensor *y = me_empty(e, "y", ME_DTYPE_BFLOAT16, ME_SHAPE(8, 1, 4));
    me_tensor *z = me_empty(e, "z", ME_DTYPE_BFLOAT16, ME_SHAPE(2, 2, 8));
    me_tensor *const inputs[] = {turned, turned, y, y, turned, z};
    const int flushes[] = {2, 2, 4, 4, 4, 4};
    for (int i = 0; i < 6; i++) {
        me_compiled_run(e, ME_COMPILED_BIAS_DROPOUT_ADD, inputs[i]);
        assert_int_equal(s.flushes, flushes[i]);
    }
    me_leave(e, frame, NULL);
    me_engine_destroy(e);
}

static void test_compiled__in_place_gets_copies(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(100));
    for (int i = 0; i < 2; i++) {
        me_compiled_run_in_place(e, ME_COMPILED_LOSS_PROBABILITIES, x);
    }
    assert_int_equal(s.flushes, 2);
    assert_int_equal(s.copies, 4);
    assert_int_equal(s.live, 400);
    assert_int_equal(s.peak, 400 + L2_CACHE + 400);
    me_leave(e, frame, NULL);
    me_engine_destroy(e);
}

/* Copies of what is read and of what is written, which are one tensor. */
static void test_compiled__updating_gets_two_copies(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(10, 10));
    for (int i = 0; i < 2; i++) {
        me_compiled_run_updating(e, ME_COMPILED_ADD_IN_PLACE, x, x);
    }
    assert_int_equal(s.flushes, 2);
    assert_int_equal(s.copies, 8);
    assert_int_equal(s.live, 400);
    assert_int_equal(s.peak, 400 + L2_CACHE + 2 * 400);
    me_leave(e, frame, NULL);
    me_engine_destroy(e);
}

/* A row that is new makes rows any, then so do columns; the second step makes the
 * step any, and nothing is new from then on. Of the three tensors that are written
 * two times a timing there are copies. */
static void test_compiled__numbers_that_change(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(1));
    const uint64_t numbers[][ME_COMPILED_NUMBERS] = {
        {4, 4, 0}, {4, 4, 0}, {6, 4, 0}, {8, 4, 0}, {4, 7, 0},
        {6, 4, 0}, {4, 4, 1}, {9, 9, 1}, {4, 4, 2},
    };
    const int flushes[] = {2, 2, 4, 4, 6, 6, 8, 8, 8};
    for (size_t i = 0; i < sizeof flushes / sizeof flushes[0]; i++) {
        me_compiled_run_numbers(e, ME_COMPILED_ADAM_UPDATE, numbers[i], x, 3);
        assert_int_equal(s.flushes, flushes[i]);
        assert_int_equal(s.copies, 6 * flushes[i]);
    }
    assert_int_equal(s.peak, 4 + L2_CACHE + 3 * 4);
    me_leave(e, frame, NULL);
    me_engine_destroy(e);
}

static void note_partial_sums(void *self, const me_event *event)
{
    uint64_t *bytes = self;
    if (event->kind == ME_EVENT_ALLOC &&
        strcmp(event->op, "partial_sums") == 0) {
        *bytes = event->bytes;
    }
}

/** Bytes of the partial sums of a bias's gradient on two multiprocessors. */
static uint64_t partial_sums(uint64_t rows, uint64_t columns)
{
    const me_card card = {.multiprocessors = 2};
    me_engine *e = NULL;
    uint64_t bytes = 0;
    assert_int_equal(me_engine_create(&card, &e), ME_OK);
    me_engine_observe(
        e, (me_observer){.on_event = note_partial_sums, .self = &bytes});
    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(rows, columns));
    me_tensor *bias = me_empty(e, "bias", ME_DTYPE_FLOAT32, ME_SHAPE(columns));
    if (me_engine_is_ok(e)) {
        x->requires_grad = true;
        bias->requires_grad = true;
    }
    me_tensor *y = me_fused_bias_dropout_add(e, x, bias, x, 0.1);
    me_backward(e, y, me_empty_like(e, "gradient", y));
    me_leave(e, frame, NULL);
    assert_true(me_engine_is_ok(e));
    me_engine_destroy(e);
    return bytes;
}

/* From 64 columns a multiprocessor on rows are summed at once. Below that 1,152
 * rows would be 16 a sum, of which a block takes four, but it takes 32 at least:
 * nine sums of each column. */
static void test_compiled__sums_bias_gradients_in_parts(void **state)
{
    (void)state;
    assert_int_equal(partial_sums(1152, 120), 9 * 120 * 4);
    assert_int_equal(partial_sums(1152, 127), 9 * 127 * 4);
    assert_int_equal(partial_sums(1152, 128), 0);
    assert_int_equal(partial_sums(1102, 120), 9 * 120 * 4); /* 19, so 32 */
}

/* Of 3 rows of 8 columns the input's gradient, 48 bytes, is there as its kernel is
 * timed, and the weights', 6 bytes, not yet: that kernel runs behind it. */
static void test_compiled__weights_come_after_the_timing(void **state)
{
    (void)state;
    seen s = {0};
    me_engine *e = make_engine(&s);
    const me_frame frame = me_enter(e);
    me_tensor *x = me_empty(e, "x", ME_DTYPE_BFLOAT16, ME_SHAPE(3, 8));
    me_tensor *weights = me_empty(e, "w", ME_DTYPE_BFLOAT16, ME_SHAPE(3, 1));
    x->requires_grad = true;
    weights->requires_grad = true;
    me_tensor *y = me_fused_weighted_swiglu(e, x, weights, true);
    me_tensor *gradient = me_empty_like(e, "gradient", y);
    const uint64_t before = s.live;
    assert_int_equal(s.flushes, 2);
    me_backward(e, y, gradient);
    assert_int_equal(s.flushes, 4);
    assert_int_equal(s.at_flush, before + 48);
    assert_int_equal(s.live, before + 48 + 6);
    me_leave(e, frame, NULL);
    me_engine_destroy(e);
}

/* Of heads of 4 columns in rows of 12; the card has one multiprocessor, so that 64
 * rows are many. The first has 16 heads, the second 8: any number from then on. */
static void test_compiled__norms_of_parts(void **state)
{
    static const struct {
        uint64_t tokens;
        uint64_t heads;
        bool is_part;
        int flushes;
    } calls[] = {
        {4, 16, false, 0}, {3, 16, true, 0}, {4, 16, true, 3},
        {4, 16, true, 3},  {8, 8, true, 6},  {8, 9, true, 6},
    };

    (void)state;
    seen s = {0};
    const me_card card = {.l2_cache_bytes = L2_CACHE, .multiprocessors = 1};
    me_engine *e = NULL;
    assert_int_equal(me_engine_create(&card, &e), ME_OK);
    me_engine_observe(e, (me_observer){.on_event = on_event, .self = &s});
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const me_frame frame = me_enter(e);
        const uint64_t width = calls[i].is_part ? 12 : 4;
        me_tensor *mixed =
            me_empty(e, "mixed", ME_DTYPE_BFLOAT16,
                     ME_SHAPE(calls[i].tokens, 1, calls[i].heads, width));
        (void)me_fused_l2_norm(e, me_slice(e, mixed, -1, 0, 4));
        me_leave(e, frame, NULL);
        assert_int_equal(s.flushes, calls[i].flushes);
        assert_int_equal(s.copies, 2 * calls[i].flushes); /* of the factor */
    }
    me_engine_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiled__timings_that_are_cached),
        cmocka_unit_test(test_compiled__is_timed_once),
        cmocka_unit_test(test_compiled__tiles_have_six_configurations),
        cmocka_unit_test(test_compiled__other_strides_once_more),
        cmocka_unit_test(test_compiled__in_place_gets_copies),
        cmocka_unit_test(test_compiled__updating_gets_two_copies),
        cmocka_unit_test(test_compiled__numbers_that_change),
        cmocka_unit_test(test_compiled__weights_come_after_the_timing),
        cmocka_unit_test(test_compiled__norms_of_parts),
        cmocka_unit_test(test_compiled__sums_bias_gradients_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
