/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "support/events.h"
#include "support/test.h"
#include "train/torch/grad_scaler.h"

/** A loop of one parameter of two float32 numbers, 8 bytes, with a gradient. */
typedef struct scaled {
    me_config config;
    me_layer_tree tree;
    me_parameter weight;
    me_parameter *weights[1];
    me_loop loop;
} scaled;

static me_tensor *two_numbers(me_engine *e)
{
    return me_keep(e, "numbers", ME_CATEGORY_OTHER, ME_DTYPE_FLOAT32,
                   ME_SHAPE(2));
}

static void init(scaled *s, me_engine *e, me_optimizer_impl impl)
{
    *s = (scaled){.weight = {.tensor = two_numbers(e)}};
    s->weight.tensor->grad = two_numbers(e);
    s->weights[0] = &s->weight;
    s->config = (me_config){.torch = {.grad_scaler = true},
                            .torch_job = {.tree = &s->tree},
                            .optimizer = {.kind = ME_OPTIMIZER_ADAMW},
                            .impl = {.optimizer = impl}};
    s->loop = (me_loop){.e = e,
                        .config = &s->config,
                        .parameters = {.parameters = s->weights, .count = 1}};
}

static void fini(scaled *s)
{
    me_loop *l = &s->loop;
    me_grad_scaler_fini(l);
    for (uint32_t i = 0; i < l->n_states; i++) {
        me_clear(l->e, &l->states[i].moments[0]);
        me_clear(l->e, &l->states[i].moments[1]);
        me_clear(l->e, &l->states[i].step);
    }
    me_free(l->states);
    me_clear(l->e, &s->weight.tensor->grad);
    me_clear(l->e, &s->weight.tensor);
}

/* The scale and its tracker come with the first loss that is scaled. */
static void test_grad_scaler__scale(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    scaled s;
    init(&s, e, ME_OPTIMIZER_TORCH_FOREACH);
    const me_frame frame = me_enter(e);
    me_tensor *loss = me_empty(e, "loss", ME_DTYPE_FLOAT32, ME_SCALAR);
    loss->requires_grad = true;
    (void)me_test_events_take(events);

    me_tensor *y = me_grad_scaler_scale(&s.loop, loss);
    EXPECT_EVENTS(events, "+4 +4 +4");
    assert_int_equal(s.loop.scaler.scale->storage->category,
                     ME_CATEGORY_OPTIMIZER_STATE);
    assert_true(y->requires_grad);
    (void)me_grad_scaler_scale(&s.loop, loss);
    EXPECT_EVENTS(events, "+4");
    me_leave(e, frame, NULL);
    fini(&s);
    assert_int_equal(events->live, 0);
}

/* The scale in float64, its reciprocal, that in float32; found_inf; a copy of
 * each for the device, of which that of found_inf stays until the update. */
#define UNSCALES "+8 +8 -8 +4 -8 +4 +4 +4 -4 -4 -4"

static void test_grad_scaler__step_unscales(void **state)
{
    me_test_events *events = *state;
    scaled s;
    init(&s, events->e, ME_OPTIMIZER_TORCH_FOREACH);
    (void)me_test_events_take(events);

    me_grad_scaler_step(&s.loop);
    EXPECT_EVENTS(events, UNSCALES " +8 +8 +8 -8");
    me_grad_scaler_update(&s.loop);
    EXPECT_EVENTS(events, "-4");
    /* once it has been done, not again before the update */
    me_grad_scaler_unscale(&s.loop);
    EXPECT_EVENTS(events, UNSCALES);
    me_grad_scaler_step(&s.loop);
    EXPECT_EVENTS(events, "+8 -8");
    me_grad_scaler_update(&s.loop);
    EXPECT_EVENTS(events, "-4");
    me_grad_scaler_step(&s.loop);
    EXPECT_EVENTS(events, UNSCALES " +8 -8");
    fini(&s);
    assert_int_equal(events->live, 0);
}

/* Fused kernels divide by the scale: it is checked with a factor of 1, and they
 * are handed the sum of all found_inf, and the scale. */
static void test_grad_scaler__fused_kernels_unscale(void **state)
{
    me_test_events *events = *state;
    scaled s;
    init(&s, events->e, ME_OPTIMIZER_TORCH_FUSED);
    (void)me_test_events_take(events);

    me_grad_scaler_step(&s.loop);
    EXPECT_EVENTS(events, "+4 +4 +4 +4 -4 -4 -4 +4 +4 +4 +8 +8 -4 -4");
    me_grad_scaler_update(&s.loop);
    EXPECT_EVENTS(events, "-4");
    /* unscaled before: the sum alone */
    me_grad_scaler_unscale(&s.loop);
    EXPECT_EVENTS(events, UNSCALES);
    me_grad_scaler_step(&s.loop);
    EXPECT_EVENTS(events, "+4 -4");
    fini(&s);
    assert_int_equal(events->live, 0);
}

/* A pipeline rank without a loss has the numbers nevertheless, once. */
static void test_grad_scaler__begins_without_a_loss(void **state)
{
    me_test_events *events = *state;
    scaled s;
    init(&s, events->e, ME_OPTIMIZER_TORCH_FOREACH);
    (void)me_test_events_take(events);

    me_grad_scaler_begin(&s.loop);
    EXPECT_EVENTS(events, "+4 +4");
    me_grad_scaler_begin(&s.loop);
    EXPECT_EVENTS(events, "");
    fini(&s);
    assert_int_equal(events->live, 0);
}

/* Of gradients on the host copies are there; what was found comes back for the
 * update, and for a fused step, which is handed a sum. */
static void test_grad_scaler__gradients_on_the_host(void **state)
{
    me_test_events *events = *state;
    const me_optimizer_impl impls[] = {ME_OPTIMIZER_TORCH_FOREACH,
                                       ME_OPTIMIZER_TORCH_FUSED};
    const char *const steps[] = {"+8 +8 -8 +4 -8 +4 -4 -4",
                                 "+4 +4 -4 -4 +4 +4 -4 +4 -4 -4"};
    for (int i = 0; i < 2; i++) {
        scaled s;
        init(&s, events->e, impls[i]);
        s.config.torch.cpu_offload = true;
        (void)me_test_events_take(events);
        me_grad_scaler_step(&s.loop);
        EXPECT_EVENTS(events, steps[i]);
        me_grad_scaler_update(&s.loop);
        EXPECT_EVENTS(events, "+4 -4");
        fini(&s);
        assert_int_equal(events->live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_grad_scaler__scale),
        ENGINE_TEST(test_grad_scaler__step_unscales),
        ENGINE_TEST(test_grad_scaler__fused_kernels_unscale),
        ENGINE_TEST(test_grad_scaler__begins_without_a_loss),
        ENGINE_TEST(test_grad_scaler__gradients_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
