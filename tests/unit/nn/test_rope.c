/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/rope.h"
#include "support/model.h"

/* Ten rotary columns: n = 5 frequencies of float32, 20 bytes. */
static void test_rope__inverse_frequencies(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_rope rope = {.table = NULL};

    m.config.model.rotary_size = 10;
    me_rope_create(&m.nn, &rope);
    /* range, division; range goes; power; the base; division goes;
     * reciprocal, product (kept); reciprocal and power go */
    EXPECT_EVENTS(&m.events, "+20 +20 -20 +20 +8 -8 -20 +20 +20 -20 -20");
    assert_int_equal(m.events.live, 20);
    me_rope_fini(m.nn.e, &rope);
    test_model_fini(&m);
}

/* s = 4: positions 16 bytes, angles s·n in float32 80, the table twice that. */
static void test_rope__table_is_made_once(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_rope rope = {.table = NULL};

    m.config.model.rotary_size = 10;
    me_tensor *table = me_rope_table(&m.nn, &rope);
    EXPECT_EVENTS(&m.events, "+16 +16 -16 +80 -16 +160 -80");
    assert_ptr_equal(me_rope_table(&m.nn, &rope), table);
    EXPECT_EVENTS(&m.events, "");
    me_rope_fini(m.nn.e, &rope);
    test_model_fini(&m);
}

/* n = 5 of 20 bytes: the frequencies to extrapolate, those to interpolate with
 * one more product, rope's; then the angles of 4096 positions: a ramp and what
 * it mixes, positions 16384, products 81920, angles 163840, which the cosines
 * and sines have as well. Cast to bfloat16 later, each after the other. */
static void test_rope__yarn(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_rope rope = {.table = NULL};

    m.config.model.multi_latent_attention = true;
    m.config.model.rope_type = ME_ROPE_TYPE_YARN;
    m.config.model.rotary_size = 10;
    me_rope_create(&m.nn, &rope);
    EXPECT_EVENTS(&m.events,
                  "+20 +20 -20 +20 +8 -8 -20 +20 +20 -20 -20 "
                  "+20 +20 -20 +20 +8 -8 -20 +20 -20 +20 +20 -20 -20 "
                  "+20 +20 -20 +20 +8 -8 -20 +20 +20 -20 -20 "
                  "+20 +20 -20 +20 -20 +20 -20 " /* ramp */
                  "+20 -20 +20 +20 -20 +20 +20 -20 -20 "
                  "+16384 +16384 -16384 +81920 +163840 "
                  "-20 -20 -16384 -81920 "
                  "+163840 +163840 -163840 +163840 +163840 -163840 -163840");
    assert_int_equal(m.parameters.n_buffers, 2);
    assert_int_equal(m.events.live, 3 * 20 + 2 * 163840);
    me_rope_fini(m.nn.e, &rope);
    test_model_fini(&m);
}

/* The 33rd table pushes out the one used longest ago, which is not the first
 * here; that is made again. */
static void test_rope__tables_are_few(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);
    me_rope_cache cache = {.count = 0};
    me_rope ropes[ME_ROPE_CACHE_SIZE + 1] = {{.table = NULL}};

    m.nn.rope_cache = &cache;
    m.config.model.rotary_size = 10;
    for (int i = 0; i < ME_ROPE_CACHE_SIZE; i++) {
        (void)me_rope_table(&m.nn, &ropes[i]);
    }
    (void)me_rope_table(&m.nn, &ropes[0]);
    (void)me_test_events_take(&m.events);
    (void)me_rope_table(&m.nn, &ropes[ME_ROPE_CACHE_SIZE]);
    EXPECT_EVENTS(&m.events, "+16 +16 -16 +80 -16 +160 -80 -160");
    assert_null(ropes[1].table);
    (void)me_rope_table(&m.nn, &ropes[0]);
    EXPECT_EVENTS(&m.events, "");
    (void)me_rope_table(&m.nn, &ropes[1]);
    EXPECT_EVENTS(&m.events, "+16 +16 -16 +80 -16 +160 -80 -160");
    assert_null(ropes[2].table);
    for (int i = 0; i <= ME_ROPE_CACHE_SIZE; i++) {
        me_rope_fini(m.nn.e, &ropes[i]);
    }
    test_model_fini(&m);
}

/* (s, b, a, d) = (4, 1, 3, 4): 96 bytes, half of it 48; the angles' factors
 * 4·s·d = 64 in float32 and 32 cast. */
static void test_rope__apply(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    m.config.model.rotary_size = 4;
    me_tensor *t = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3, 4));
    me_tensor *angles =
        test_tensor(m.nn.e, ME_DTYPE_FLOAT32, ME_SHAPE(4, 1, 1, 4));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_apply_rotary(&m.nn, t, angles, false);
    EXPECT_EVENTS(&m.events,
                  "+64 +64 -64 +32 -64 +64 +64 -64 +32 -64 " /* cos, sin */
                  "+96 +48 +96 -48 " /* t cos; minus half, rotated */
                  "+96 -96 +96 -96 -96 +96 -96"); /* its sin; sum; cat */
    /* half's product, sine goes; minus; concatenation of the split; product
     * and minus go; straight product, cosine goes: added in place, goes; zeros
     * for the slice of all columns are none: the leaf takes what is there */
    assert_string_equal(test_backward(&m.events, y),
                        "+96 -32 +48 +96 -96 -48 +96 -32 -96 +96 -96");
    test_model_fini(&m);
}

/* The same with neighbours in place of halves: as much in the forward; each of
 * both slices has a gradient of the whole, which are summed in place. */
static void test_rope__apply_interleaved(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    m.config.model.rotary_size = 4;
    m.config.model.rotary_interleaved = true;
    me_tensor *t = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 3, 4));
    me_tensor *angles =
        test_tensor(m.nn.e, ME_DTYPE_FLOAT32, ME_SHAPE(4, 1, 1, 4));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_apply_rotary(&m.nn, t, angles, false);
    EXPECT_EVENTS(&m.events, "+64 +64 -64 +32 -64 +64 +64 -64 +32 -64 "
                             "+96 +48 +96 -48 +96 -96 +96 -96 -96 +96 -96");
    assert_string_equal(test_backward(&m.events, y),
                        "+96 -32 +48 +96 -48 +96 -96 -96 +96 -32 -96 +96 -96");
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rope__inverse_frequencies),
        cmocka_unit_test(test_rope__table_is_made_once),
        cmocka_unit_test(test_rope__yarn),
        cmocka_unit_test(test_rope__tables_are_few),
        cmocka_unit_test(test_rope__apply),
        cmocka_unit_test(test_rope__apply_interleaved),
    };
    return cmocka_run_group_tests_name("rope", tests, NULL, NULL);
}
