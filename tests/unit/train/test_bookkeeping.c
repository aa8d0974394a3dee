/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer.h"

/* A barrier's byte lives until the next barrier's has been made. */
static void test_bookkeeping__barriers(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);

    (void)me_test_events_take(&r.model.events);
    me_barriers(&r.t, 2);
    EXPECT_EVENTS(&r.model.events,
                  "+1 AllReduce:1 +4 -4 +1 AllReduce:1 -1 +4 -4");
    test_trainer_fini(&r);
}

/* What the reference lists for the start (4.1), for W = 2 ranks: a scalar, the
 * start time that stays, two barriers, one more, 40 W, two more. */
static void test_bookkeeping__start_up(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 2);

    (void)me_test_events_take(&r.model.events);
    const uint64_t before = r.model.events.live;
    me_start_up(&r.t);
    assert_int_equal(r.model.events.live - before, 8 + 1);
    me_clear(r.t.e, &r.t.start_time);
    test_trainer_fini(&r);
}

/* 4.4's gathering of groups gives back what it took, for any world and objects of
 * other lengths. */
static void test_bookkeeping__gathering_is_balanced(void **state)
{
    (void)state;
    for (int32_t world = 1; world <= 4; world++) {
        test_trainer r;
        test_trainer_init(&r, world);
        const uint64_t before = r.model.events.live;
        me_gather_object(&r.t, 46, 46);
        me_gather_object(&r.t, 19, 50);
        me_before_training(&r.t);
        assert_int_equal(r.model.events.live - before, 1); /* a barrier's */
        test_trainer_fini(&r);
    }
}

static void test_bookkeeping__scalars(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);

    (void)me_test_events_take(&r.model.events);
    me_temporary(r.t.e, "temporary", 7);
    me_tensor *kept = me_keep_scalar(r.t.e, "kept", 5);
    EXPECT_EVENTS(&r.model.events, "+7 -7 +5");
    me_release(r.t.e, kept);
    EXPECT_EVENTS(&r.model.events, "-5");
    test_trainer_fini(&r);
}

/* Replicated gradients are flattened, all-reduced and given back: norms under
 * sequence parallelism (3 elements of float32). */
static void test_bookkeeping__partial_gradients(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);

    r.norm.weight->is_sequence_parallel = true;
    r.config.parallel.sequence = true;
    r.config.parallel.tensor = 2;
    r.config.model.untie_embeddings_and_output_weights = true;
    me_ddp_create(&r.t, 0);
    (void)me_test_events_take(&r.model.events);
    me_finalize_model_grads(&r.t);
    EXPECT_EVENTS(&r.model.events, "AllReduce:15 +12 AllReduce:3 -12");
    test_trainer_fini(&r);
}

/* The last stage's number of tokens goes to all stages, is summed, and divides the
 * gradients in place: a clamp, its reciprocal, and that times one. */
static void test_bookkeeping__loss_per_token(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);

    r.config.train.calculate_per_token_loss = true;
    r.config.model.untie_embeddings_and_output_weights = true;
    me_ddp_create(&r.t, 0);
    (void)me_test_events_take(&r.model.events);
    me_finalize_model_grads(&r.t);
    EXPECT_EVENTS(&r.model.events,
                  "AllReduce:15 Broadcast:1 AllReduce:1 +4 +4 +4 -4 -4 -4");
    test_trainer_fini(&r);
}

/* Numbers of 4 bytes: the norm of the dense parameters by the kernel, with its
 * 320 sums of blocks, and its square; zeros of seven kinds that there are none
 * of; 3, 1 and 2 sums, of which the last of each stays to the end. */
static void test_bookkeeping__params_norm(void **state)
{
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);
    r.config.train.log_params_norm = true;
    (void)me_parameter_create(&r.model.nn,
                              &(me_parameter_spec){.name = "weight",
                                                   .module = ME_NO_MODULE,
                                                   .shape = ME_SHAPE(3)});
    (void)me_test_events_take(&r.model.events);
    me_log_params_norm(&r.t);
    EXPECT_EVENTS(&r.model.events,
                  "+4 +1280 +4 -1280 +4 -4 -4 +4 +4 +4 +4 +4 +4 +4 "
                  "AllReduce:1 AllReduce:1 AllReduce:1 AllReduce:1 "
                  "+4 +4 -4 +4 -4 +4 +4 +4 -4 AllReduce:1 "
                  "-4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4");
    test_trainer_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bookkeeping__barriers),
        cmocka_unit_test(test_bookkeeping__start_up),
        cmocka_unit_test(test_bookkeeping__gathering_is_balanced),
        cmocka_unit_test(test_bookkeeping__scalars),
        cmocka_unit_test(test_bookkeeping__partial_gradients),
        cmocka_unit_test(test_bookkeeping__loss_per_token),
        cmocka_unit_test(test_bookkeeping__params_norm),
    };
    return cmocka_run_group_tests_name("bookkeeping", tests, NULL, NULL);
}
