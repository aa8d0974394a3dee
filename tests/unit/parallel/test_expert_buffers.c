/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/expert_buffers.h"
#include "support/test.h"

enum {
    TOKEN = 2048,                       /* bytes */
    PLACE = TOKEN + 8 + 128 * 12 + 512, /* with source, experts and scales */
    MIB = 1 << 20
};

/* Ten channels to four neighbours of 256 tokens each, five numbers beside them:
 * 40 x (256 x 4104 + 20) = 42,025,760 bytes, rounded up to 128: 42,025,856. Eight
 * signals of 20 bytes and 32 MiB of workspace. */
static void test_expert_buffers__deepep_within_a_node(void **state)
{
    (void)state;
    assert_int_equal(PLACE, 4104);
    assert_int_equal(me_deepep_bytes(4, 20, TOKEN), 42025856 + 160 + 32 * MIB);
    assert_true(me_deepep_bytes(8, 20, TOKEN) > me_deepep_bytes(4, 20, TOKEN));
}

/* Eight neighbours, two nodes: 80 x (288 x 4104 + 28) = 94,558,400, rounded up
 * to 128: 94,558,464; other nodes' 2 x 10 x 2 x (140 x 4120 + 72) = 23,074,880 in
 * a heap of 512 MiB. */
static void test_expert_buffers__deepep_over_nodes(void **state)
{
    (void)state;
    const uint64_t neighbours = 94558464;
    assert_int_equal(me_deepep_bytes(16, 20, TOKEN),
                     neighbours + 160 + 32 * MIB + 512 * MIB);
}

static void test_expert_buffers__numbers_that_deepep_knows(void **state)
{
    (void)state;
    assert_true(me_deepep_knows(2));
    assert_true(me_deepep_knows(160));
    assert_false(me_deepep_knows(1));
    assert_false(me_deepep_knows(12));
    assert_int_equal(me_deepep_bytes(12, 20, TOKEN), 0);
}

/* Four ranks of 100 tokens of 1024 elements, two experts each: a token takes 2048
 * bytes, 4 x 2 x 4 of weights and 8 scales: 400 x (2048 + 32 + 32). */
static void test_expert_buffers__hybridep(void **state)
{
    (void)state;
    me_hybridep shape = {
        .ranks = 4, .nodes = 1, .tokens = 100, .hidden = 1024, .experts = 2};
    assert_int_equal(me_hybridep_bytes(&shape), 400 * (2048 + 32 + 32));
    shape.ranks = 8;
    shape.nodes = 2;
    assert_int_equal(me_hybridep_bytes(&shape),
                     800 * (2048 + 32 + 32) + 100 * (2048 + 64 + 32) +
                         100 * (2048 + 32 + 32) + 200 * (2048 + 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expert_buffers__deepep_within_a_node),
        cmocka_unit_test(test_expert_buffers__deepep_over_nodes),
        cmocka_unit_test(test_expert_buffers__numbers_that_deepep_knows),
        cmocka_unit_test(test_expert_buffers__hybridep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
