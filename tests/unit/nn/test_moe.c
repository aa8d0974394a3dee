/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "support/moe_layer.h"
#include "tensor/launch.h"

#include <string.h>

/*
 * A layer of experts on one of two ranks and on one of one, in a later
 * iteration, against the order of measured jobs worked out by hand: T = 1200
 * tokens (1600 with all-gather), E = 4 (3) experts, K = 3 of a token, h = 8,
 * f = 5, gated, of two local experts with 700 and 3100 rows (700, 2800, 1300).
 * Sizes are 2·T·E for routing weights, T·E for the map, 8·T·K for token numbers,
 * 12·n·f for an expert, and so on; docs/accounting.md has the list.
 */

static const char all_to_all_forward[] =
    "+9600 +7200 +28800 +14400 +14400 -14400 +7200 +9600 +9600 -9600 "
    "+9600 +19200 -9600 +19200 -19200 +4800 -19200 -7200 -7200 +19200 "
    "+19200 -19200 +14400 +28800 +9600 +19200 -9600 +19200 -19200 +4800 "
    "-19200 -14400 -28800 +32 +38400 -38400 +16 +16 +4 -16 +4 -4 -16 +4 "
    "-4 -4800 -9600 -9600 -4800 +32 +38400 -38400 +16 +64 +32 +16 +8 +16 "
    "-32 -64 ~16 ~16 ~8 ~32 ~16 -16 -16 -8 -32 -16 +4800 +4800 +38400 "
    "+38400 +4607 -4607 -38400 -4800 +28800 +9600 +7200 -9600 +57600 "
    "-4800 -28800 +60800 +7600 -7200 +60800 +7600 +14000 +7000 +7000 "
    "+7000 +7000 +11200 +62000 +31000 +31000 +31000 +31000 +49600 +60800 "
    "-49600 -11200 +60800 -60800 +57600 -60800 +19200 -57600 -57600 "
    "-7600 -60800";

static const char all_to_all_backward[] =
    "+57600 +60800 -57600 +60800 -60800 +31000 +80 -31000 -80 +31000 "
    "+31000 +6200 -31000 -31000 -31000 +31000 +31000 -31000 -31000 "
    "-31000 +31000 -31000 -62000 +62000 -31000 -31000 +49600 +160 -62000 "
    "-160 +7000 +80 -60800 -7000 -80 +7000 +7000 +1400 -7000 -7000 -7600 "
    "-7000 +7000 +7000 -7000 -7000 -7000 +7000 -7000 -14000 +14000 -7000 "
    "-7000 +11200 +160 -14000 -60800 -160 +7600 -1400 -6200 +60800 "
    "-11200 -49600 +7600 -7600 +60800 -60800 +7200 -7600 +57600 -60800 "
    "+19200 -57600 +9600 +28800 +28800 -28800 +28800 +28800 +28800 "
    "+63487 -63487 -28800 -28800 -28800 -28800 -7200 -38400 +4 +4 -4 +4 "
    "-4 -4 +4 -4 +16 -4 -32 +19200 +19200 -19200 -16 -19200 +9600 -19200 "
    "+7200 -9600 +14400 -7200 +14400 +14400 -14400 -14400 -14400 +7200 "
    "-14400 +9600 -7200 -28800 -9600 +19200 +64 -9600 -19200 +19200 "
    "-19200 -19200 -64 +19200 -19200 -19200";

static const char all_gather_forward[] =
    "+9600 +9600 +38400 +19200 +19200 -19200 +9600 +9600 +9600 -9600 "
    "+9600 +19200 -9600 +19200 -19200 +4800 -19200 -9600 -9600 +19200 "
    "+19200 -19200 +19200 +38400 +9600 +19200 -9600 +19200 -19200 +4800 "
    "-19200 -19200 -38400 +24 +38400 -38400 +12 +12 +4 -12 +4 -4 -12 +4 "
    "-4 -4800 -9600 -4800 -9600 +24 +38400 -38400 -24 +4800 +4800 +38400 "
    "+38400 +4607 -4607 -38400 -4800 +38400 +76800 -4800 -38400 -38400 "
    "+9600 +4800 +4 +21503 -21503 +76800 +1023 -1023 -4 +9600 -76800 "
    "+14000 +7000 +7000 +7000 +7000 +11200 +56000 +28000 +28000 +28000 "
    "+28000 +44800 +26000 +13000 +13000 +13000 +13000 +20800 +76800 "
    "-20800 -44800 -11200 +25600 -76800 -9600";

static const char all_gather_backward[] =
    "+76800 +13000 +80 -13000 -80 +13000 +13000 +2600 -13000 -13000 "
    "-13000 +13000 +13000 -13000 -13000 -13000 +13000 -13000 -26000 "
    "+26000 -13000 -13000 +20800 +160 -26000 -160 +28000 +80 -28000 -80 "
    "+28000 +28000 +5600 -28000 -28000 -28000 +28000 +28000 -28000 "
    "-28000 -28000 +28000 -28000 -56000 +56000 -28000 -28000 +44800 +160 "
    "-56000 -160 +7000 +80 -76800 -7000 -80 +7000 +7000 +1400 -7000 "
    "-7000 -7000 +7000 +7000 -7000 -7000 -7000 +7000 -7000 -14000 +14000 "
    "-7000 -7000 +11200 +160 -14000 -76800 -160 +9600 -1400 -5600 -2600 "
    "+76800 -11200 -44800 -20800 +9600 +38400 +1279 -1279 -38400 -9600 "
    "-4800 -9600 +25600 -76800 +4 +4 -4 +4 -4 -4 +4 -4 +12 -4 -24 +19200 "
    "+19200 -19200 -12 -19200 +9600 -19200 +9600 -9600 +19200 -9600 "
    "+19200 +19200 -19200 -19200 -19200 +9600 -19200 +9600 -9600 -38400 "
    "-9600 +25600 +48 -9600 -25600 +25600 -25600 -25600 -48 +25600 "
    "-25600 -25600";

/** What happened since the last look; collectives, which stand with a colon,
 *  are left out. */
static void take(me_test_events *events, const char *expected)
{
    static char text[TEST_EVENTS_TEXT];
    size_t length = 0;
    for (const char *at = me_test_events_take(events); *at != '\0';) {
        const size_t n = strcspn(at, " ");
        if (memchr(at, ':', n) == NULL) {
            if (length > 0) {
                text[length++] = ' ';
            }
            memcpy(text + length, at, n);
            length += n;
        }
        at += n + (at[n] == ' ');
    }
    text[length] = '\0';
    assert_string_equal(text, expected);
}

/** A forward and a backward; what they did is compared, unless NULL. */
static void run(test_layer *t, const char *forward, const char *backward)
{
    me_engine *e = t->m.nn.e;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, t->leaf);
    (void)me_test_events_take(&t->m.events);
    me_tensor *y = me_moe_layer_forward(&t->m.nn, &t->layer, x);
    if (forward != NULL) {
        take(&t->m.events, forward);
    }
    me_drop(e, x);
    me_tensor *gradient = me_empty_like(e, "gradient", y);
    (void)me_test_events_take(&t->m.events);
    me_backward(e, y, gradient);
    if (backward != NULL) {
        take(&t->m.events, backward);
    }
    me_leave(e, frame, NULL);
}

static const me_moe_options top_3_of_4 = {
    .num_experts = 4,
    .router_topk = 3,
    .ffn_hidden_size = 5,
    .token_dispatcher = ME_DISPATCHER_ALL_TO_ALL,
    .has_loss = {[ME_LOAD_BALANCING_AUX_LOSS] = true},
};

static void test_moe__all_to_all(void **state)
{
    (void)state;
    test_layer t;
    test_layer_init(&t, 1200, &top_3_of_4, (int32_t[]){2, 1},
                    "0 0 0 0 700 3100\n0 0 0 1 2000 1400\n");
    run(&t, NULL, NULL);
    run(&t, all_to_all_forward, all_to_all_backward);
    test_layer_fini(&t);
}

/* Where CUDA graphs are of whole layers, captured or not, the host learns the
 * counts behind the first permutation, before rows (57600 bytes) leave the rank. */
static void test_moe__late_counts(void **state)
{
    (void)state;
    test_layer t;
    test_layer_init(&t, 1200, &top_3_of_4, (int32_t[]){2, 1},
                    "0 0 0 0 700 3100\n0 0 0 1 2000 1400\n");
    t.m.config.train.cuda_graph_late_counts = true;
    me_engine *e = t.m.nn.e;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, t.leaf);
    (void)me_test_events_take(&t.m.events);
    me_moe_layer_forward(&t.m.nn, &t.layer, x);
    assert_non_null(strstr(me_test_events_take(&t.m.events),
                           "+57600 -4800 ~16 ~16 ~8 ~32 ~16 -16 -16 -8 -32 "
                           "-16 +60800 Send"));
    me_leave(e, frame, NULL);
    test_layer_fini(&t);
}

static void test_moe__all_gather(void **state)
{
    (void)state;
    test_layer t;
    me_moe_options moe = top_3_of_4;
    moe.num_experts = 3;
    moe.token_dispatcher = ME_DISPATCHER_ALL_GATHER;
    test_layer_init(&t, 1600, &moe, (int32_t[]){1, 1},
                    "0 0 0 0 700 2800 1300\n");
    run(&t, NULL, NULL);
    run(&t, all_gather_forward, all_gather_backward);
    test_layer_fini(&t);
}

/** Bytes that a forward leaves, its output not counted. */
static uint64_t saved_bytes(test_layer *t)
{
    me_engine *e = t->m.nn.e;
    run(t, NULL, NULL); /* what the dispatcher keeps is there */
    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, t->leaf);
    const uint64_t before = t->m.events.live - me_bytes(x);
    me_tensor *y = me_moe_layer_forward(&t->m.nn, &t->layer, x);
    me_drop(e, x);
    const uint64_t after = t->m.events.live - me_bytes(y);
    me_backward(e, y, me_empty_like(e, "gradient", y));
    me_leave(e, frame, NULL);
    return after - before;
}

/* M = 2Th + 12TK + 4TE + 8E + 4 + 8TE + 2Rh + 2R + 12Rf. */
static void test_moe__saves_what_the_closed_form_says(void **state)
{
    (void)state;
    test_layer t;
    test_layer_init(&t, 1200, &top_3_of_4, (int32_t[]){2, 1},
                    "0 0 0 0 700 3100\n0 0 0 1 2000 1400\n");
    assert_int_equal(saved_bytes(&t),
                     19200 + 43200 + 57600 + 32 + 4 + 60800 + 7600 + 228000);
    test_layer_fini(&t);
}

/* The compiled activation saves 6Rf. Both experts' weights begin at a multiple
 * of 16 bytes: 700 is one of 4 but not of 8, so the second is copied. */
static void
test_moe__compiled_activation_copies_what_is_not_aligned(void **state)
{
    (void)state;
    test_layer t;
    test_layer_init(&t, 1200, &top_3_of_4, (int32_t[]){2, 1},
                    "0 0 0 0 700 3100\n0 0 0 1 2000 1400\n");
    t.m.config.train.bias_activation_fusion = true;
    assert_int_equal(saved_bytes(&t),
                     19200 + 43200 + 57600 + 32 + 4 + 60800 + 7600 + 114000);
    const me_frame frame = me_enter(t.m.nn.e);
    me_tensor *x = me_neg(t.m.nn.e, t.leaf);
    (void)me_test_events_take(&t.m.events);
    me_moe_layer_forward(&t.m.nn, &t.layer, x);
    const char *text = me_test_events_take(&t.m.events);
    assert_non_null(strstr(text,
                           "+14000 +7000 +11200 +62000 +6200 +31000 -6200 "
                           "+49600"));
    me_leave(t.m.nn.e, frame, NULL);
    test_layer_fini(&t);
}

/** Calls of the host's own work, by phase (forward, backward); and waits. */
typedef struct host_calls {
    int work[2][ME_HOST_COUNT];
    int waits;
} host_calls;

static void count_launch(void *self, const me_launch *launch)
{
    host_calls *calls = self;
    if (launch->kind == ME_LAUNCH_HOST) {
        calls->work[launch->phase == ME_PHASE_BACKWARD][launch->host]++;
    }
    calls->waits += launch->kind == ME_LAUNCH_HOST_WAITS ? 1 : 0;
}

/* The host works for a layer both ways, and for each of its experts; for the
 * counts of tokens it waits for its card, once. */
static void test_moe__what_the_host_does(void **state)
{
    (void)state;
    test_layer t;
    test_layer_init(&t, 1200, &top_3_of_4, (int32_t[]){2, 1},
                    "0 0 0 0 700 3100\n0 0 0 1 2000 1400\n");
    host_calls calls = {.waits = 0};
    me_engine_listen(t.m.nn.e, (me_launch_listener){count_launch, &calls, 0});
    run(&t, NULL, NULL);
    static const me_host_work both_ways[] = {ME_HOST_ROUTER, ME_HOST_AUX_LOSS,
                                             ME_HOST_ALL_TO_ALL_DISPATCHER,
                                             ME_HOST_EXPERT_RANKS};
    for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++) {
        assert_int_equal(
            calls.work[0][both_ways[i]] + calls.work[1][both_ways[i]], 2);
    }
    const int experts =
        calls.work[0][ME_HOST_EXPERT] + calls.work[1][ME_HOST_EXPERT];
    assert_int_equal(experts, 2);
    assert_int_equal(calls.waits, 1);
    test_layer_fini(&t);
}

/* An expert without tokens allocates its two weight gradients and nothing
 * else. */
static void test_moe__an_expert_without_tokens(void **state)
{
    (void)state;
    test_layer t;
    test_layer_init(&t, 1200, &top_3_of_4, (int32_t[]){2, 1},
                    "0 0 0 0 0 3800\n0 0 0 1 2000 1400\n");
    assert_int_equal(saved_bytes(&t),
                     19200 + 43200 + 57600 + 32 + 4 + 60800 + 7600 + 228000);
    test_layer_fini(&t);
}

/* Shared experts are an MLP of 10·T·f bytes beside, whose output goes. */
static void test_moe__shared_experts(void **state)
{
    (void)state;
    test_layer t;
    me_moe_options moe = top_3_of_4;
    moe.shared_expert_intermediate_size = 6;
    test_layer_init(&t, 1200, &moe, (int32_t[]){2, 1},
                    "0 0 0 0 700 3100\n0 0 0 1 2000 1400\n");
    assert_int_equal(saved_bytes(&t), 19200 + 43200 + 57600 + 32 + 4 + 60800 +
                                          7600 + 228000 + 10 * 1200 * 6);
    test_layer_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moe__all_to_all),
        cmocka_unit_test(test_moe__late_counts),
        cmocka_unit_test(test_moe__all_gather),
        cmocka_unit_test(test_moe__saves_what_the_closed_form_says),
        cmocka_unit_test(
            test_moe__compiled_activation_copies_what_is_not_aligned),
        cmocka_unit_test(test_moe__what_the_host_does),
        cmocka_unit_test(test_moe__an_expert_without_tokens),
        cmocka_unit_test(test_moe__shared_experts),
    };
    return cmocka_run_group_tests_name("moe", tests, NULL, NULL);
}
