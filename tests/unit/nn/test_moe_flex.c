/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "support/moe_layer.h"

#include <stdio.h>
#include <string.h>

/*
 * The flex dispatcher over two ranks: T = 900 tokens, E = 4, K = 2 of a token, two
 * experts a rank, h = 8, bfloat16; R = 1800 rows of a rank. A token has none of two
 * experts of four with 2/4 · 1/3, so N = 1800 · 5/6 = 1500 tokens come.
 */

/* Experts of a token 8TK and their weights 4TK; the layout's counts 4 (2 + 4 + 1)
 * and 2T flags; what comes: tokens 2Nh, the handle 4 (2·2 + 2·2·10 + N + 2T),
 * experts 8NK and weights 4NK. */
static const char deepep_exchange[] =
    "+7200 +28 +1800 +24000 +13376 +24000 +12000 AllToAll:6000 -28 ";

/* Flags 8N·2 and weights 4N·2 of the local experts, which are taken NK, R of them
 * by 8R and 8R; their map N·2. */
static const char deepep_multihot[] =
    "+24000 +12000 +3000 +14400 +12000 -12000 +14400 +7200 -7200 +3000 ";

/* The rows come back to the tokens of N, which go home. */
static const char deepep_combine[] = "+24000 -28800 AllToAll:6000 +14400 ";

static const char deepep_backward[] = "+24000 AllToAll:6000 +28800 -24000 ";

/* Everyone's map 2TE, the handle 4·2T + 5·2T·2 + 2T, R rows and their weights. */
static const char hybridep_exchange[] =
    "+7200 +27000 -7200 +28800 +7200 AllToAll:6000 ";

static const char hybridep_backward[] = "+28800 AllToAll:6000 ";

static const me_moe_options top_2_of_4 = {
    .num_experts = 4,
    .router_topk = 2,
    .ffn_hidden_size = 5,
    .token_dispatcher = ME_DISPATCHER_FLEX,
};

static const int32_t two_ranks[2] = {2, 1};

/** A forward of a layer on the tape and its backward, each after the first. */
static void run(const me_moe_options *moe, char *forward_out,
                char *backward_out)
{
    test_layer t;
    test_layer_init(&t, 900, moe, two_ranks, NULL);
    me_engine *e = t.m.nn.e;
    for (int i = 0; i < 2; i++) {
        const me_frame frame = me_enter(e);
        me_tensor *x = me_neg(e, t.leaf);
        (void)me_test_events_take(&t.m.events);
        me_tensor *y = me_moe_layer_forward(&t.m.nn, &t.layer, x);
        memcpy(forward_out, me_test_events_take(&t.m.events), TEST_EVENTS_TEXT);
        me_tensor *gradient = me_empty_like(e, "gradient", y);
        (void)me_test_events_take(&t.m.events);
        me_backward(e, y, gradient);
        memcpy(backward_out, me_test_events_take(&t.m.events),
               TEST_EVENTS_TEXT);
        me_leave(e, frame, NULL);
    }
    test_layer_fini(&t);
}

static void test_moe_flex__deepep(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    run(&top_2_of_4, forward, backward);
    assert_non_null(strstr(forward, deepep_exchange));
    assert_non_null(strstr(forward, deepep_multihot));
    assert_non_null(strstr(forward, deepep_combine));
    assert_non_null(strstr(backward, deepep_backward));
}

static void test_moe_flex__hybridep(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    me_moe_options moe = top_2_of_4;
    moe.flex_backend = ME_FLEX_HYBRIDEP;
    run(&moe, forward, backward);
    assert_non_null(strstr(forward, hybridep_exchange));
    assert_non_null(strstr(backward, hybridep_backward));
}

/* Shared experts, 3 wide, beside the exchange: of this rank's T tokens
 * activations 2·3·2T, which the backward wants, and 3·2T; when tokens are back,
 * their output h·2T, which is added in place. */
static void test_moe_flex__shared_experts_overlap(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    char wanted[TEST_EVENTS_TEXT];
    me_moe_options moe = top_2_of_4;
    moe.shared_expert_intermediate_size = 3;
    moe.shared_expert_overlap = true;
    run(&moe, forward, backward);
    (void)snprintf(wanted, sizeof wanted, "%s+10800 +5400 ", deepep_exchange);
    assert_non_null(strstr(forward, wanted));
    moe.flex_backend = ME_FLEX_HYBRIDEP;
    run(&moe, forward, backward);
    (void)snprintf(wanted, sizeof wanted, "%s+10800 +5400 ", hybridep_exchange);
    assert_non_null(strstr(forward, wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moe_flex__deepep),
        cmocka_unit_test(test_moe_flex__hybridep),
        cmocka_unit_test(test_moe_flex__shared_experts_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
