/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/flash_attn_4.h"
#include "support/backward.h"
#include "support/events.h"
#include "support/test.h"

/** Forward and backward of queries, keys and values on a card. */
typedef struct flash_case {
    uint32_t capability;
    bool is_deterministic;
    me_te_mask mask;
    me_shape shapes[3]; /**< (s, b, a, d), (s, b, g, d), (s, b, g, u) */
    const char *forward;
    const char *backward;
} flash_case;

static void expect(const flash_case *c)
{
    me_test_events events;
    me_test_events_init_on(&events, c->capability);
    me_engine *e = events.e;
    me_deterministic_set(e, c->is_deterministic);
    me_tensor *const qkv[3] = {me_test_leaf(e, c->shapes[0]),
                               me_test_leaf(e, c->shapes[1]),
                               me_test_leaf(e, c->shapes[2])};
    (void)me_test_events_take(&events);
    me_tensor *y = me_flash_attn_4(e, qkv, c->mask);
    assert_int_equal(me_dim(y, 3), me_dim(qkv[2], 3));
    EXPECT_EVENTS(&events, c->forward);
    assert_string_equal(test_backward(&events, y), c->backward);
    me_test_events_fini(&events);
}

/* Output 2 · 2 · 2 · 3 · 5 = 120, log-sum-exps 4 · 2 · 3 · 2 = 48. On the way back
 * three gradients; sums of the queries' 4 · 2 · 3 · 128 · 32 = 98,304, row sums and
 * statistics 3,072 each, sums of the one head of keys and of values
 * 4 · 2 · 128 · 32 = 32,768. In an order a count for each of 2 · 3 tiles, 24, and
 * two for each of two samples' keys and values, 16. */
static void test_flash_attn_4__on_hopper(void **state)
{
    (void)state;
    flash_case c = {
        .capability = 90,
        .mask = ME_TE_MASK_CAUSAL,
        .shapes = {{4, {2, 2, 3, 5}}, {4, {2, 2, 1, 5}}, {4, {2, 2, 1, 5}}},
        .forward = "+120 +48",
        .backward = "+120 +40 +40 +98304 +3072 +3072 +32768 +32768 "
                    "-98304 -3072 -3072 -32768 -32768 -48"};
    expect(&c);
    c.is_deterministic = true;
    c.mask = ME_TE_MASK_WINDOW;
    c.backward = "+120 +40 +40 +98304 +3072 +3072 +32768 +32768 +24 +16 +16 "
                 "-98304 -3072 -3072 -32768 -32768 -24 -16 -16 -48";
    expect(&c);
}

/* Heads of 192 columns of queries and 128 of values, none shared: tiles of 64
 * queries, 4 · 2 · 64 · 192 = 98,304 and 4 · 2 · 64 = 512 twice. */
static void test_flash_attn_4__of_latent_heads(void **state)
{
    (void)state;
    const flash_case c = {
        .capability = 90,
        .mask = ME_TE_MASK_CAUSAL,
        .shapes = {{4, {2, 1, 2, 192}},
                   {4, {2, 1, 2, 192}},
                   {4, {2, 1, 2, 128}}},
        .forward = "+1024 +16",
        .backward = "+1536 +1536 +1024 +98304 +512 +512 -98304 -512 -512 -16"};
    expect(&c);
}

/* Two SMs share tiles of 128 columns, so that keys are rounded up to two tiles:
 * 4 · 256 · 128 = 131,072, as sums of two heads of 128 rows are; a count for each
 * SM of two heads, 16, and two for each of two tiles of keys and values, 16. Heads
 * of 256 columns are summed up without memory of the caller's. */
static void test_flash_attn_4__on_blackwell(void **state)
{
    (void)state;
    flash_case c = {.capability = 103,
                    .is_deterministic = true,
                    .mask = ME_TE_MASK_CAUSAL,
                    .shapes = {{4, {2, 1, 2, 128}},
                               {4, {2, 1, 1, 128}},
                               {4, {2, 1, 1, 128}}},
                    .forward = "+1024 +16",
                    .backward =
                        "+1024 +512 +512 +131072 +1024 +1024 +131072 +131072 "
                        "+16 +16 +16 "
                        "-131072 -1024 -1024 -131072 -131072 -16 -16 -16 -16"};
    expect(&c);
    c = (flash_case){.capability = 100,
                     .mask = ME_TE_MASK_CAUSAL,
                     .shapes = {{4, {2, 1, 2, 256}},
                                {4, {2, 1, 1, 256}},
                                {4, {2, 1, 1, 256}}},
                     .forward = "+2048 +16",
                     .backward =
                         "+2048 +1024 +1024 +1024 +1024 -1024 -1024 -16"};
    expect(&c);
}

/* Tiles of 64: 4 · 2 · 64 · 96 = 49,152 of queries, 4 · 64 · 96 = 24,576 of keys,
 * of values with 64 columns 16,384. */
static void test_flash_attn_4__on_consumer_cards(void **state)
{
    (void)state;
    const flash_case c = {
        .capability = 120,
        .mask = ME_TE_MASK_CAUSAL,
        .shapes = {{4, {2, 1, 2, 96}}, {4, {2, 1, 1, 96}}, {4, {2, 1, 1, 64}}},
        .forward = "+512 +16",
        .backward = "+768 +384 +256 +49152 +512 +512 +24576 +16384 "
                    "-49152 -512 -512 -24576 -16384 -16"};
    expect(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flash_attn_4__on_hopper),
        cmocka_unit_test(test_flash_attn_4__of_latent_heads),
        cmocka_unit_test(test_flash_attn_4__on_blackwell),
        cmocka_unit_test(test_flash_attn_4__on_consumer_cards),
    };
    return cmocka_run_group_tests_name("flash_attn_4", tests, NULL, NULL);
}
