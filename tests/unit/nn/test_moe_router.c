/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "parallel/expert_rows.h"
#include "support/moe_layer.h"

#include <stdio.h>

/*
 * Routers: T = 10 tokens, E = 12 experts, K = 4 of a token, h = 8, bfloat16. So
 * logits are 2TE = 240, a float32 of each expert 4TE = 480, flags TE = 120; of the
 * taken ones 2TK = 80, 4TK = 160 and indices 8TK = 320.
 */

/** What a forward and its backward allocate and free. */
typedef struct expectation {
    const char *forward;
    const char *backward;
} expectation;

static void check(const me_moe_options *moe, const expectation *expected)
{
    static const int32_t one_rank[2] = {1, 1};
    test_layer t;
    test_layer_init(&t, 10, moe, one_rank, NULL);
    me_engine *e = t.m.nn.e;
    char forward[TEST_EVENTS_TEXT] = "";
    for (int i = 0; i < 2; i++) { // the first one makes what stays
        const me_frame frame = me_enter(e);
        me_tensor *map = NULL;
        me_tensor *x = me_neg(e, t.leaf);
        (void)me_test_events_take(&t.m.events);
        me_tensor *y = me_router_forward(&t.m.nn, t.layer.router, x, &map);
        (void)snprintf(forward, sizeof forward, "%s",
                       me_test_events_take(&t.m.events));
        me_tensor *gradient = me_empty_like(e, "gradient", y);
        (void)me_test_events_take(&t.m.events);
        me_backward(e, y, gradient);
        if (i == 1) {
            assert_string_equal(forward, expected->forward);
            assert_string_equal(me_test_events_take(&t.m.events),
                                expected->backward);
        }
        me_leave(e, frame, NULL);
    }
    test_layer_fini(&t);
}

static const me_moe_options top_4_of_12 = {
    .num_experts = 12,
    .router_topk = 4,
    .ffn_hidden_size = 5,
    .token_dispatcher = ME_DISPATCHER_ALL_TO_ALL,
};

/* Four groups of three, the best two by the sums of their best two; sigmoid,
 * biases, a factor, and weights in float32. */
static void test_router__groups(void **state)
{
    (void)state;
    me_moe_options moe = top_4_of_12;
    moe.router_score_function = ME_SCORE_SIGMOID;
    moe.router_dtype = ME_ROUTER_DTYPE_FP32;
    moe.router_num_groups = 4;
    moe.router_group_topk = 2;
    moe.router_topk_scaling_factor = 2.5;
    moe.router_enable_expert_bias = true;
    check(&moe,
          &(expectation){
              "+320 +384 +480 -320 -384 +480 +480 +320 +640 +160 -320 +80 "
              "+160 -80 +160 +480 +120 +120 -120 +480 +160 +320 -640 -160 "
              "-160 -160 -480 -480 +160 +40 +40 -40 +160 +160 -160 +480 "
              "+480 -480 +480 +480 -480 +480 -480 +120 -480 -160 -480 "
              "-120 -160 +96 -96 -480",
              "+160 +160 -160 +160 +160 +160 +160 -160 -160 -160 +160 +40 "
              "-160 -160 -40 -160 -40 +480 -160 -320 +480 -480 -480 +384 "
              "+320 -384 +160 -320 +320 +384 -320 +192 -384 -480 -192 "
              "+160 -160 -160"});
}

/* The z-loss of the logits, in their type. */
static void test_router__z_loss(void **state)
{
    (void)state;
    me_moe_options moe = top_4_of_12;
    moe.has_loss[ME_ROUTER_Z_LOSS] = true;
    check(&moe, &(expectation){
                    "+240 +20 +20 +10 -10 -20 +240 +20 -240 -20 +20 +2 +2 -2 "
                    "-20 +2 -2 +80 +320 +160 +160 -160 +80 +240 +240 -240 +240 "
                    "+480 -240 +480 -480 +120 -480 -80 -80",
                    "+80 +160 -80 +160 +160 -160 -160 -160 +80 -160 +240 -80 "
                    "-320 +2 +4 -2 +4 -4 +2 -4 -2 +2 -2 +20 -2 +20 +20 +20 -20 "
                    "-20 -20 +240 +240 +240 -240 -240 -20 -240 -20 -240 +160 "
                    "+192 -240 -192 +160 -160 -160"});
}

/* Random logits and a bias of each expert, which is made anew; below 0 it stays
 * from the first time. */
static void test_router__forced_bias(void **state)
{
    (void)state;
    me_moe_options moe = top_4_of_12;
    moe.router_force_biased = 0.5;
    check(
        &moe,
        &(expectation){
            "+240 +240 +24 +240 -24 -240 -240 +80 +320 +160 +160 -160 +80 +240 +240 -240 +240 +480 -240 +480 -480 +120 -480 -80 -80 -240",
            "+80 +160 -80 +160 +160 -160 -160 -160 +80 -160 +240 -80 -320 +160 +192 -240 -192 +160 -160 -160"});
    moe.router_force_biased = -0.5;
    check(
        &moe,
        &(expectation){
            "+240 +240 +240 -240 -240 +80 +320 +160 +160 -160 +80 +240 +240 -240 +240 +480 -240 +480 -480 +120 -480 -80 -80 -240",
            "+80 +160 -80 +160 +160 -160 -160 -160 +80 -160 +240 -80 -320 +160 +192 -240 -192 +160 -160 -160"});
}

/* Transformer Engine's kernels: what they make, and what they keep. */
static void test_router__fused(void **state)
{
    (void)state;
    me_moe_options moe = top_4_of_12;
    moe.router_fusion = true;
    moe.has_loss[ME_LOAD_BALANCING_AUX_LOSS] = true;
    check(&moe, &(expectation){
                    "+240 +240 +120 +480 +480 +120 +480 +96 +960 -960 +4 +8 +4 "
                    "-4 -120 -480 -240",
                    "+4 +4 -4 +4 -4 -4 +480 -4 -8 -96 +120 +240 -120 -480 -480 "
                    "+120 +240 -120 -480 -240 +160 +192 -240 -192 +160 -160 "
                    "-160"});
}

/* Half of what an expert would get, C = 2 tokens, and those by position. */
static void test_router__dropped_tokens(void **state)
{
    (void)state;
    me_moe_options moe = top_4_of_12;
    moe.has_capacity = true;
    moe.capacity_factor = 0.5;
    moe.drop_policy = ME_DROP_POSITION;
    check(&moe,
          &(expectation){
              "+240 +80 +320 +160 +160 -160 +80 +240 +240 -240 +240 +480 "
              "-240 +480 -480 +120 -480 -80 -80 +480 +96 +192 -480 +240 "
              "+240 -240 +120 -240 +120 +240 -120 -96 -192 -240 -120 -240",
              "+240 +80 -240 +160 -80 +160 +160 -160 -160 -160 +80 -160 "
              "+240 -80 -320 +160 +192 -240 -192 +160 -160 -160"});
}

/* With room for just the tokens that there are, C = T = 10, they are still
 * sorted, as 240 bytes of values and 960 of places; with more room none is
 * dropped. */
static void test_router__as_many_as_there_are(void **state)
{
    (void)state;
    me_moe_options moe = top_4_of_12;
    moe.has_capacity = true;
    moe.capacity_factor = 3.0;
    check(&moe, &(expectation){
                    "+240 +80 +320 +160 +160 -160 +80 +240 +240 -240 +240 +480 "
                    "-240 +480 -480 +120 -480 -80 -80 +240 +960 +240 +240 -240 "
                    "+120 -240 +120 +240 -120 -240 -960 -240 -120 -240",
                    "+240 +80 -240 +160 -80 +160 +160 -160 -160 -160 +80 -160 "
                    "+240 -80 -320 +160 +192 -240 -192 +160 -160 -160"});
    moe.capacity_factor = 3.1;
    check(&moe, &(expectation){
                    "+240 +80 +320 +160 +160 -160 +80 +240 +240 -240 +240 +480 "
                    "-240 +480 -480 +120 -480 -80 -80 +240 +120 -240 +120 +240 "
                    "-120 -240 -120 -240",
                    "+240 +80 -240 +160 -80 +160 +160 -160 -160 -160 +80 -160 "
                    "+240 -80 -320 +160 +192 -240 -192 +160 -160 -160"});
}

static void test_router__capacity(void **state)
{
    (void)state;
    me_config config = {.moe = top_4_of_12};
    assert_int_equal(me_expert_capacity(&config, 10), 10);
    config.moe.has_capacity = true;
    config.moe.capacity_factor = 1.25; // 10 · 4 / 12 · 1.25 = 4.17
    assert_int_equal(me_expert_capacity(&config, 10), 5);
    config.moe.capacity_factor = 1.2;
    assert_int_equal(me_expert_capacity(&config, 10), 4);
}

/* Dropped beyond the capacity of 40 · 4 / 12 · 2 = 26.67, and then up to a
 * multiple by other tokens, of which there are 40 together. */
static void test_router__rows_sent(void **state)
{
    (void)state;
    me_config config = {.moe = top_4_of_12};
    assert_int_equal(me_expert_rows_sent(&config, 40, 33), 33);
    config.moe.router_padding_for_quantization = true;
    assert_int_equal(me_expert_rows_sent(&config, 40, 0), 0);
    assert_int_equal(me_expert_rows_sent(&config, 40, 17), 32);
    assert_int_equal(me_expert_rows_sent(&config, 40, 33), 40);
    config.fp8.recipe = ME_FP8_MXFP8;
    assert_int_equal(me_expert_rows_sent(&config, 40, 7), 32);
    config.moe.has_capacity = true;
    config.moe.capacity_factor = 2;
    config.moe.router_padding_for_quantization = false;
    assert_int_equal(me_expert_rows_sent(&config, 40, 26), 26);
    assert_int_equal(me_expert_rows_sent(&config, 40, 40), 27);
}

/* Weights in float32 make no float32 of what experts hand on, whose
 * activation is not a fused one: `.to(original_dtype)`. */
static void test_router__wide_weights_and_experts(void **state)
{
    (void)state;
    static const int32_t one_rank[2] = {1, 1};
    me_moe_options moe = top_4_of_12;
    moe.router_dtype = ME_ROUTER_DTYPE_FP32;
    test_layer t;
    test_layer_init(&t, 10, &moe, one_rank, NULL);
    t.m.config.model.activation = ME_ACTIVATION_GELU;
    me_engine *e = t.m.nn.e;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, t.leaf);
    me_tensor *y = me_moe_layer_forward(&t.m.nn, &t.layer, x);
    assert_int_equal(y->dtype, x->dtype);
    me_leave(e, frame, NULL);
    test_layer_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_router__groups),
        cmocka_unit_test(test_router__z_loss),
        cmocka_unit_test(test_router__forced_bias),
        cmocka_unit_test(test_router__fused),
        cmocka_unit_test(test_router__dropped_tokens),
        cmocka_unit_test(test_router__as_many_as_there_are),
        cmocka_unit_test(test_router__capacity),
        cmocka_unit_test(test_router__rows_sent),
        cmocka_unit_test(test_router__wide_weights_and_experts),
    };
    return cmocka_run_group_tests_name("moe_router", tests, NULL, NULL);
}
