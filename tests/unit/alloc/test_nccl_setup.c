/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL's variables change, MiB as NCCL's source and public reports give
 * them; and communicators over several nodes. */
#include "alloc/nccl_setup.h"
#include "support/test.h"

#include <stdio.h>

#define MIB (UINT64_C(1) << 20)

static me_nccl_costs costs_on(const char *card_name)
{
    char path[256];
    me_device_card card;
    (void)snprintf(path, sizeof path, "%s/%s.cfg", ME_CARDS_FOLDER, card_name);
    me_diag diag = {0};
    if (me_device_card_load(path, &diag, &card) != ME_OK) {
        print_error("%s\n", diag.text);
        fail();
    }
    return (me_nccl_costs){.card = card.nccl, .setup = me_nccl_setup_default()};
}

static const me_group_shape one = {1, 1};
static const me_group_shape pair = {2, 2};
static const me_group_shape eight = {8, 8};
static const me_group_shape over_nodes = {16, 8};

static uint64_t base(const me_nccl_costs *c, me_group_shape shape)
{
    return me_nccl_base_bytes(c, shape) / MIB - 1; /* the driver's own */
}

static uint64_t ring(const me_nccl_costs *c, me_group_shape shape)
{
    return me_nccl_ring_bytes(c, shape) / MIB;
}

static uint64_t both_ways(const me_nccl_costs *c, me_group_shape shape)
{
    return (me_nccl_peer_bytes(c, shape, true) +
            me_nccl_peer_bytes(c, shape, false)) /
           MIB;
}

static void set(me_nccl_costs *c, const char *name, const char *value)
{
    assert_int_equal(me_nccl_setup_set(&c->setup, name, value), ME_OK);
}

static void test_nccl__costs_by_default(void **state)
{
    (void)state;
    const me_nccl_costs c = costs_on("h200-141gb");
    assert_int_equal(base(&c, one), 388);
    assert_int_equal(base(&c, pair), 196);
    assert_int_equal(base(&c, eight), 196);
    assert_int_equal(ring(&c, one), 0);
    assert_int_equal(ring(&c, eight), 288);
    assert_int_equal(both_ways(&c, pair), 384);
    assert_int_equal(me_nccl_peer_bytes(&c, pair, true) / MIB, 64);
    const me_nccl_costs a100 = costs_on("a100-80gb"); /* reads from its peer */
    assert_int_equal(ring(&a100, pair), 288);
    assert_int_equal(me_nccl_peer_bytes(&a100, pair, true) / MIB, 192);
    const me_nccl_costs rtx = costs_on("rtx4090-24gb"); /* shared memory */
    assert_int_equal(ring(&rtx, pair), 0);
}

static void test_nccl__fewer_channels(void **state)
{
    (void)state;
    me_nccl_costs c = costs_on("h200-141gb");
    set(&c, "NCCL_MAX_NCHANNELS", "8");
    assert_int_equal(base(&c, pair), 52);
    assert_int_equal(ring(&c, pair), 96);
    assert_int_equal(both_ways(&c, pair), 96);
    assert_int_equal(base(&c, one), 52);
    c = costs_on("h200-141gb");
    set(&c, "NCCL_MAX_P2P_NCHANNELS", "16");
    assert_int_equal(base(&c, pair), 148);
    assert_int_equal(both_ways(&c, pair), 192);
    assert_int_equal(base(&c, one), 388);
}

/* NCCL's switches are 0, 1, and of some 2: what it chooses itself. */
static void test_nccl__switches(void **state)
{
    (void)state;
    me_nccl_setup setup = {.uses_nvls = false};
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_NVLS_ENABLE", "2"), ME_OK);
    assert_true(setup.uses_nvls);
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_NVLS_ENABLE", "3"),
                     ME_ERR_CONFIG);
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_NVLS_ENABLE", "0"), ME_OK);
    assert_false(setup.uses_nvls);
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_NO_SUCH", "0"),
                     ME_ERR_UNSUPPORTED);
}

static void test_nccl__buffer_size(void **state)
{
    (void)state;

    static const struct {
        const char *bytes;
        uint64_t receive; /**< MiB, of one channel */
    } cases[] = {
        {"1048576", 8}, {"2097152", 8}, {"4194304", 10}, {"8388608", 14}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_nccl_costs c = costs_on("h200-141gb");
        set(&c, "NCCL_BUFFSIZE", cases[i].bytes);
        assert_int_equal(ring(&c, pair), 24 * (2 + cases[i].receive));
    }
}

/* nccl#964 (A100, pairs and more), nccl#2363 (size one): connected at once. */
static void test_nccl__connects_at_init(void **state)
{
    (void)state;
    me_nccl_costs c = costs_on("a100-80gb");
    set(&c, "NCCL_CUMEM_ENABLE", "0");
    assert_int_equal(base(&c, pair), 2 + 544);
    assert_int_equal(base(&c, (me_group_shape){4, 4}), 2 + 688);
    assert_int_equal(base(&c, one), 2 + 512);
    c = costs_on("h200-141gb");
    set(&c, "NCCL_RUNTIME_CONNECT", "0");
    assert_int_equal(base(&c, pair), 196 + 544);
}

static void test_nccl__nvls(void **state)
{
    (void)state;
    me_nccl_costs c = costs_on("h200-141gb");
    assert_int_equal(me_nccl_nvls_bytes(&c, eight, true, 4 * MIB), 0);
    set(&c, "NCCL_NVLS_ENABLE", "2");
    assert_int_equal(base(&c, pair), 196 + 34);
    assert_int_equal(base(&c, one), 388);
    assert_int_equal(me_nccl_nvls_bytes(&c, eight, true, 4 * MIB), 256 * MIB);
    assert_int_equal(me_nccl_nvls_bytes(&c, eight, true, MIB), 0);
    assert_int_equal(me_nccl_nvls_bytes(&c, eight, false, 4 * MIB), 0);
    assert_int_equal(me_nccl_nvls_bytes(&c, pair, true, 4 * MIB), 0);
}

static void test_nccl__over_nodes(void **state)
{
    (void)state;
    const me_nccl_costs c = costs_on("h200-141gb");
    assert_int_equal(base(&c, over_nodes), 100);
    assert_int_equal(ring(&c, over_nodes), 16 * 12 + 2 * 8);
    assert_int_equal(both_ways(&c, over_nodes), 24);
    assert_int_equal(me_nccl_net_pool_bytes(&c), 32 * MIB);
}

/* ncclLoadParam() reads with strtoll() and base 0. */
static void test_nccl__numbers_of_other_bases(void **state)
{
    (void)state;
    me_nccl_setup setup = me_nccl_setup_default();
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_BUFFSIZE", "0x200000"),
                     ME_OK);
    assert_int_equal(setup.simple_bytes, 2 * MIB);
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_MAX_NCHANNELS", "010"),
                     ME_OK);
    assert_int_equal(setup.max_channels, 8);
}

static void test_nccl__refuses(void **state)
{
    (void)state;
    me_nccl_setup setup = me_nccl_setup_default();
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_ALGO", "Tree"),
                     ME_ERR_UNSUPPORTED);
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_BUFFSIZE", "4MB"),
                     ME_ERR_CONFIG);
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_MAX_NCHANNELS", "0"),
                     ME_ERR_CONFIG);
    assert_int_equal(me_nccl_setup_set(&setup, "NCCL_NVLS_ENABLE", "yes"),
                     ME_ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl__costs_by_default),
        cmocka_unit_test(test_nccl__fewer_channels),
        cmocka_unit_test(test_nccl__switches),
        cmocka_unit_test(test_nccl__buffer_size),
        cmocka_unit_test(test_nccl__connects_at_init),
        cmocka_unit_test(test_nccl__nvls),
        cmocka_unit_test(test_nccl__over_nodes),
        cmocka_unit_test(test_nccl__numbers_of_other_bases),
        cmocka_unit_test(test_nccl__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
