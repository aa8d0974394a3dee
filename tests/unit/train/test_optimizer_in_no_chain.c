/* SPDX-License-Identifier: BSD-3-Clause */
/* A step of an optimizer that no ChainedOptimizer holds, as Megatron-FSDP's is:
 * MixedPrecisionOptimizer.step(). */
#include "program.h"
#include "trainer.h"

/** zero, flag, blocks, norm; square, total: all but the total go. */
#define NORM          "+4 +4 +1280 +4 -1280 +4 -4 AllReduce:1 +4 -4 -4 -4 "
/** No rank has gradients with a norm apart. */
#define AGREED        "+4 AllReduce:1 -4 "
/** norm + 1e-6, reciprocal, coefficient; the kernel's flag. */
#define CLIP          "+4 +4 +4 -4 -4 +4 -4 -4 "
/** Both moments of 12 elements, and of 3. */
#define STEP          "+48 +48 +12 +12"
/** Of a timer that starts; each barrier's byte goes at the next. */
#define FIRST_BARRIER "+1 AllReduce:1 +4 -4 "
#define LAST_BARRIER  "+1 AllReduce:1 -1 +4 -4"
#define BARRIER       LAST_BARRIER " "

/** A step's events, which the wrapper of @p is_alone decides. */
static void expect_step(bool is_alone, double clip_grad, int32_t timing_level,
                        const char *expected)
{
    test_trainer r;
    test_trainer_init(&r, 1);
    me_model_wrapper wrapper = *r.t.wrapper;
    wrapper.has_one_optimizer = is_alone;
    r.t.wrapper = &wrapper;
    r.config.optimizer.kind = ME_OPTIMIZER_ADAM;
    r.config.impl.optimizer = ME_OPTIMIZER_FUSED;
    r.config.optimizer.clip_grad = clip_grad;
    me_ddp_create(&r.t, 0);
    me_optimizer_create(&r.t);
    r.config.train.timing_log_level = timing_level;
    r.config.train.barrier_with_level_1_timing = true;
    (void)me_test_events_take(&r.model.events);
    assert_true(me_optimizer_step(&r.t));
    EXPECT_EVENTS(&r.model.events, expected);
    me_optimizer_destroy(&r.t);
    me_clear(r.t.e, &r.t.grad_norm);
    me_clear(r.t.e, &r.t.barrier_byte);
    test_trainer_fini(&r);
}

/* There is a norm only where gradients are clipped by it; a chain always has
 * one. */
static void test_optimizer_in_no_chain__norm(void **state)
{
    (void)state;
    expect_step(true, 1, 0, NORM AGREED CLIP STEP);
    expect_step(true, 0, 0, STEP);
    expect_step(false, 0, 0, NORM STEP);
}

/* Copying to main gradients, in no chain clipping and counting of zeros, the inner
 * step, copying from main parameters. */
static void test_optimizer_in_no_chain__timers(void **state)
{
    (void)state;
    expect_step(true, 0, 1,
                FIRST_BARRIER BARRIER BARRIER BARRIER STEP " " LAST_BARRIER);
    expect_step(true, 1, 1,
                FIRST_BARRIER BARRIER NORM AGREED CLIP BARRIER BARRIER STEP
                " " LAST_BARRIER);
    expect_step(false, 0, 1, FIRST_BARRIER NORM BARRIER STEP " " LAST_BARRIER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer_in_no_chain__norm),
        cmocka_unit_test(test_optimizer_in_no_chain__timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
