/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_permutation.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "support/model.h"

/* Four tokens 5 wide, of three experts, six rows: tokens take 40 bytes, rows 60,
 * weights of rows 12, those of tokens 24, the row map of permute 4·(2·3 + 1)·4 =
 * 112 by way of 3 counts, that of a sort of chunks 24. */

#define FLUSH                                                                  \
    "+268435456 -268435456 +268435456 -268435456 +268435456 -268435456 "       \
    "+268435456 -268435456 +268435456 -268435456 +268435456 -268435456 "       \
    "+268435456 -268435456"

enum {
    TOKENS = 4,
    EXPERTS = 3,
    WIDTH = 5,
    ROWS = 6
};

/** Kernels that were timed before, or none. */
static void set_up(test_model *m, me_moe_state *moe, bool is_tuned)
{
    test_model_init(m, 1);
    *moe = (me_moe_state){.has_routed = true};
    m->nn.moe = moe;
    for (int i = 0; i < ME_TE_PERMUTATIONS; i++) {
        m->nn.moe->is_tuned[i][0] = is_tuned;
        m->nn.moe->is_tuned[i][1] = is_tuned;
    }
}

static void test_permutation__with_weights(void **state)
{
    (void)state;
    test_model m;
    me_moe_state moe;
    set_up(&m, &moe, true);
    me_engine *e = m.nn.e;
    me_tensor *x = me_test_leaf(e, ME_SHAPE(TOKENS, WIDTH));
    me_tensor *weights = me_test_leaf(e, ME_SHAPE(TOKENS, EXPERTS));
    me_tensor *map =
        me_empty(e, "map", ME_DTYPE_BOOL, ME_SHAPE(TOKENS, EXPERTS));
    (void)me_test_events_take(&m.events);
    const me_permuted p = me_te_permute(&m.nn, x, map, weights, ROWS);
    EXPECT_EVENTS(&m.events, "+112 +12 -12 +60 +12");
    const me_permuted sorted = me_te_sort_chunks(&m.nn, p.tokens, p.probs);
    EXPECT_EVENTS(&m.events, "+24 +60 +12");
    me_tensor *column = me_view(e, sorted.probs, ME_SHAPE(ROWS, 1));
    me_tensor *scaled = me_mul(e, sorted.tokens, column);
    me_tensor *y = me_te_unpermute(&m.nn, scaled, p.row_numbers);
    EXPECT_EVENTS(&m.events, "+60 +40");
    assert_string_equal(test_backward(&m.events, y),
                        "+60 "                 /* rows */
                        "+60 +60 +12 -60 -60 " /* times weights */
                        "+24 +60 +12 -24 "     /* sorted back */
                        "-60 -12 -24 "         /* and its map */
                        "+112 +40 +24 -112 -60 -12");
    test_model_fini(&m);
}

/* A kernel is timed at its first call alone. */
static void test_permutation__times_a_kernel_once(void **state)
{
    (void)state;
    test_model m;
    me_moe_state moe;
    set_up(&m, &moe, false);
    me_engine *e = m.nn.e;
    me_tensor *rows = me_test_leaf(e, ME_SHAPE(ROWS, WIDTH));
    (void)me_test_events_take(&m.events);
    (void)me_te_sort_chunks(&m.nn, rows, NULL);
    EXPECT_EVENTS(&m.events, "+24 +60 " FLUSH);
    (void)me_te_sort_chunks(&m.nn, rows, NULL);
    EXPECT_EVENTS(&m.events, "+24 +60");
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutation__with_weights),
        cmocka_unit_test(test_permutation__times_a_kernel_once),
    };
    return cmocka_run_group_tests_name("te_permutation", tests, NULL, NULL);
}
