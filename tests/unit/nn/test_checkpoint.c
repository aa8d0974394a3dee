/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/checkpoint.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "support/model.h"
#include "tensor/hooks.h"
#include "tensor/region.h"

/** Two operations, the second of which saves what the first made. */
static me_tensor *two(const me_section *section, me_tensor *const *inputs)
{
    me_engine *e = section->nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *a = me_neg(e, inputs[0]);
    return me_leave(e, frame, me_silu(e, a));
}

/* (4, 3) in bfloat16: 24 bytes. */
static void test_checkpoint__runs_again_in_the_backward(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 3));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_checkpoint(&m.nn, &section,
                                 (me_tensor *[ME_CHECKPOINT_INPUTS]){x}, false);
    EXPECT_EVENTS(&m.events, "+24 +24 -24"); /* nothing but y */
    /* both again; silu's gradient, its input goes; neg's, silu's goes; then
     * the section's output goes with the function's frame */
    assert_string_equal(test_backward(&m.events, y),
                        "+24 +24 +24 -24 +24 -24 -24");
    assert_non_null(x->grad);
    test_model_fini(&m);
}

/** A module without children. */
static me_tensor *nothing(const me_section *section, me_tensor *const *inputs)
{
    (void)section;
    return inputs[0];
}

/* What is handed on is a view, so that its node does not wait for itself; the
 * gradient of the second run's leaf is a copy (24) of the output's. */
static void test_checkpoint__of_nothing(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_section section = {.nn = &m.nn, .run = nothing};
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 3));
    me_tensor *a = me_neg(m.nn.e, x);
    me_tensor *y = me_checkpoint(&m.nn, &section,
                                 (me_tensor *[ME_CHECKPOINT_INPUTS]){a}, false);
    assert_ptr_not_equal(y, a);
    assert_ptr_equal(y->storage, a->storage);
    (void)me_test_events_take(&m.events);
    /* the copy, neg's gradient; the copy goes */
    assert_string_equal(test_backward(&m.events, y), "+24 +24 -24");
    assert_non_null(x->grad);
    test_model_fini(&m);
}

static void test_checkpoint__off_the_tape(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *x = test_tensor(m.nn.e, ME_DTYPE_BFLOAT16, ME_SHAPE(4, 3));
    me_tensor *y = me_checkpoint(&m.nn, &section,
                                 (me_tensor *[ME_CHECKPOINT_INPUTS]){x}, false);
    assert_null(y->grad_fn);
    test_model_fini(&m);
}

/* Two tensor ranks keep half of the input each (12 bytes), and gather it
 * before they run the section again. */
static void test_checkpoint__distributed_input(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 2);
    me_engine *e = m.nn.e;

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *leaf = me_test_leaf(e, ME_SHAPE(4, 3));
    me_tensor *x = me_neg(e, leaf);
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_checkpoint(&m.nn, &section,
                                 (me_tensor *[ME_CHECKPOINT_INPUTS]){x}, true);
    EXPECT_EVENTS(&m.events, "+24 +24 -24 +12 -24");
    me_drop(e, x);
    /* whole input, its half goes; the section as above, where the input is
     * held until the node lets go of it; then neg's */
    assert_string_equal(test_backward(&m.events, y),
                        "+24 AllGather:6 -12 "
                        "+24 +24 +24 -24 +24 -24 -24 -24 +24 -24");
    test_model_fini(&m);
}

/** (4, 3) in bfloat16, 24 bytes, to float32. */
static me_tensor *widen(const me_section *section, me_tensor *const *inputs)
{
    me_engine *e = section->nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *a = me_silu(e, inputs[0]);
    return me_leave(e, frame, me_cast(e, a, ME_DTYPE_FLOAT32));
}

/** A section in a region. */
static me_tensor *run_around(void *self, me_engine *e, me_tensor *x)
{
    const me_section *section = self;
    const me_frame frame = me_enter(e);
    me_tensor *a = me_neg(e, x);
    me_tensor *y = me_checkpoint(section->nn, section,
                                 (me_tensor *[ME_CHECKPOINT_INPUTS]){a}, false);
    return me_leave(e, frame, y);
}

/* The region saves the section's input, and nothing else. */
static void test_checkpoint__in_a_region(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_engine *e = m.nn.e;

    me_section section = {.nn = &m.nn, .run = widen};
    const me_region_function function = {.run = run_around, .self = &section};
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_region_forward(e, &function, x);
    EXPECT_EVENTS(&m.events, "+24 +24 +48 -24 -24");
    assert_string_equal(
        test_backward(&m.events, y),
        /* The region runs again, and in it the section without the tape, until
         * the section's input is saved: after it has run. */
        "+24 +24 +48 -24 -48 "
        "+24 +48 -24 " /* the section with the tape, which saves its input */
        "+24 "         /* backward: the cast's */
        "+24 -24 "     /* silu's; what came in goes */
        "-24 -48 "     /* the input, then the output */
        "+24 -24");    /* neg's */
    test_model_fini(&m);
}

static void count_end(void *self)
{
    int *ends = self;
    (*ends)++;
}

/* A section runs backward inside of a backward, which has one end. */
static void test_checkpoint__one_end_of_the_backward(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    int ends = 0;
    me_engine_hook(m.nn.e,
                   (me_hooks){.end_backward = count_end, .self = &ends});

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 3));
    me_tensor *y = me_checkpoint(&m.nn, &section,
                                 (me_tensor *[ME_CHECKPOINT_INPUTS]){x}, false);
    (void)test_backward(&m.events, y);
    assert_int_equal(ends, 1);
    test_model_fini(&m);
}

/* Events of the second run say that they are of a recomputation. */
static void note_phase(void *self, const me_event *event)
{
    unsigned *seen = self;
    if (event->kind == ME_EVENT_ALLOC) {
        *seen |= 1U << event->phase;
    }
}

static void test_checkpoint__phases(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    unsigned seen = 0;

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(4, 3));
    me_tensor *y = me_checkpoint(&m.nn, &section,
                                 (me_tensor *[ME_CHECKPOINT_INPUTS]){x}, false);
    me_tensor *gradient = me_empty_like(m.nn.e, "g", y);
    me_engine_observe(m.nn.e,
                      (me_observer){.on_event = note_phase, .self = &seen});
    me_backward(m.nn.e, y, gradient);
    assert_int_equal(seen, 1U << ME_PHASE_BACKWARD | 1U << ME_PHASE_RECOMPUTE);
    test_model_fini(&m);
}

/* What is discarded once it is saved comes back before it is needed. */
static void test_checkpoint__output_is_discarded(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_engine *e = m.nn.e;

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    (void)me_test_events_take(&m.events);
    me_output_checkpoint *checkpoint = NULL;
    me_tensor *n = me_checkpoint_output(&m.nn, &section, x, &checkpoint);
    me_tensor *y = me_silu(e, n); /* saves n */
    EXPECT_EVENTS(&m.events, "+24 +24 -24 +24");
    me_checkpoint_discard(checkpoint, y);
    me_drop(e, n);
    EXPECT_EVENTS(&m.events, "-24"); /* n's */
    /* both again, the second is n; silu's gradient; n is held by the section's
     * second run alone: its silu's gradient, its input goes; neg's, silu's
     * goes; then n, and the gradient of n */
    assert_string_equal(test_backward(&m.events, y),
                        "+24 +24 +24 +24 -24 +24 -24 -24 -24");
    assert_non_null(x->grad);
    test_model_fini(&m);
}

static void test_checkpoint__output_off_the_tape(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *x = test_tensor(m.nn.e, ME_DTYPE_BFLOAT16, ME_SHAPE(4, 3));
    me_output_checkpoint *checkpoint = NULL;
    me_tensor *n = me_checkpoint_output(&m.nn, &section, x, &checkpoint);
    assert_null(n->grad_fn);
    assert_null(checkpoint);
    test_model_fini(&m);
}

/** Each input negated, twice; the second time it is what others save. */
static void both(const me_section *section, me_tensor *const *inputs,
                 me_tensor **outputs)
{
    me_engine *e = section->nn->e;
    const me_frame frame = me_enter(e);
    for (int i = 0; i < 2; i++) {
        outputs[i] = me_neg(e, me_neg(e, inputs[i]));
    }
    me_leave_with(e, frame, 2, outputs);
}

/* (4, 3) and (2, 3) in bfloat16: 24 and 12 bytes. What has saved the outputs
 * finds them again; the function's tuple of outputs goes last item first. */
static void test_checkpoint__discards_several_outputs(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_engine *e = m.nn.e;
    const me_section section = {.nn = &m.nn, .run_many = both};
    me_tensor *const inputs[2] = {me_test_leaf(e, ME_SHAPE(4, 3)),
                                  me_test_leaf(e, ME_SHAPE(2, 3))};
    (void)me_test_events_take(&m.events);
    me_output_checkpoint *checkpoint = NULL;
    me_tensor *y[2] = {NULL, NULL};
    const me_section_call call = {
        .n_inputs = 2, .n_outputs = 2, .inputs = inputs};
    me_checkpoint_outputs(&m.nn, &section, &call, y, &checkpoint);
    EXPECT_EVENTS(&m.events, "+24 +24 +12 +12 -24 -12");
    me_tensor *used[2] = {me_silu(e, y[0]), me_silu(e, y[1])};
    me_tensor *joined = me_cat_first(e, 2, used);
    EXPECT_EVENTS(&m.events, "+24 +12 +36");
    me_checkpoint_discard(checkpoint, joined);
    EXPECT_EVENTS(&m.events, "-24 -12");
    for (int i = 0; i < 2; i++) {
        me_drop(e, used[i]);
        me_drop(e, y[i]);
    }
    EXPECT_EVENTS(&m.events, "-24 -12"); /* what silu made */
    assert_string_equal(test_backward(&m.events, joined),
                        "+24 +24 +12 +12 -24 -12 " /* both again */
                        "+12 +24 "                 /* silu, twice */
                        "+12 +12 -12 +24 +24 -24 " /* and neg, four times */
                        "-12 -24 -24 -12"); /* outputs, and their gradients */
    test_model_fini(&m);
}

/* One expert's last product has two of them: of the activation before it, and of
 * the norm before the experts. Both come back, in the order they were asked for. */
static void test_checkpoint__two_outputs_come_back_at_one_tensor(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_engine *e = m.nn.e;

    const me_section section = {.nn = &m.nn, .run = two};
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 3));
    me_output_checkpoint *norm = NULL;
    me_output_checkpoint *activation = NULL;
    me_tensor *n = me_checkpoint_output(&m.nn, &section, x, &norm);
    me_tensor *h = me_silu(e, n); /* saves n */
    me_tensor *a = me_checkpoint_output(&m.nn, &section, h, &activation);
    me_tensor *y = me_silu(e, a); /* saves a */
    (void)me_test_events_take(&m.events);
    me_checkpoint_discard(activation, y);
    me_checkpoint_discard(norm, y);
    EXPECT_EVENTS(&m.events, "-24 -24");
    me_drop(e, n);
    me_drop(e, h);
    me_drop(e, a);
    assert_string_equal(test_backward(&m.events, y),
                        "+24 +24 +24 +24 " /* a again, and n */
                        "+24 "             /* gradient of a */
                        "+24 -24 +24 -24 " /* of h, as above; */
                        "-24 -24 -24 "     /* a, its gradient and h go */
                        "+24 -24 "         /* of n; that of h goes */
                        "+24 -24 +24 -24 " /* of x */
                        "-24 -24");        /* n and its gradient go */
    assert_non_null(x->grad);
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint__runs_again_in_the_backward),
        cmocka_unit_test(test_checkpoint__of_nothing),
        cmocka_unit_test(test_checkpoint__off_the_tape),
        cmocka_unit_test(test_checkpoint__distributed_input),
        cmocka_unit_test(test_checkpoint__in_a_region),
        cmocka_unit_test(test_checkpoint__one_end_of_the_backward),
        cmocka_unit_test(test_checkpoint__phases),
        cmocka_unit_test(test_checkpoint__output_is_discarded),
        cmocka_unit_test(test_checkpoint__output_off_the_tape),
        cmocka_unit_test(test_checkpoint__discards_several_outputs),
        cmocka_unit_test(test_checkpoint__two_outputs_come_back_at_one_tensor),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
