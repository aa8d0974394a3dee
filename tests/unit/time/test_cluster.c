/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/faults.h"
#include "support/rates_example.h"
#include "support/test.h"
#include "time/cluster.h"

#include <string.h>

/** Eight GPUs bridged in pairs, four to a socket; @p world ranks, 8 a node.
 *  Links of 100, 20, 16 and 10 GB/s; steps of 1, 2, 3 and 10 us. */
static me_cluster pairs_of_bridges(int32_t world)
{
    me_cluster c = {
        .gpus = 8,
        .base_s = 5e-6,
        .links = {[ME_LINK_NVLINK] = {true, false, 1, 1e-6, 100e9, 0, ""},
                  [ME_LINK_HOST_BRIDGE] = {true, false, 1, 2e-6, 20e9, 0, ""},
                  [ME_LINK_SOCKET] = {true, false, 1, 3e-6, 16e9, 1, ""},
                  [ME_LINK_NETWORK] = {true, false, 1, 10e-6, 10e9, 8, ""}},
        .layout = {.world = world, .gpus_per_node = 8},
    };
    for (int i = 0; i < 8; i++) {
        c.order[i] = (uint8_t)i;
        for (int j = 0; j < 8; j++) {
            c.pairs[i][j] = i / 2 == j / 2   ? ME_LINK_NVLINK
                            : i / 4 == j / 4 ? ME_LINK_HOST_BRIDGE
                                             : ME_LINK_SOCKET;
        }
    }
    return c;
}

/** @p size ranks from @p first on, @p stride apart. */
static me_link_path path_of(const me_cluster *c, int32_t first, int32_t stride,
                            int32_t size)
{
    int32_t members[32];
    for (int32_t i = 0; i < size; i++) {
        members[i] = first + i * stride;
    }
    me_link_path path;
    assert_int_equal(me_link_path_find(c, members, size, &path), ME_OK);
    return path;
}

static void test_path__rings_of_a_node(void **state)
{
    (void)state;
    const me_cluster c = pairs_of_bridges(8);

    static const struct {
        int32_t first, stride, size;
        int32_t links[ME_LINK_KINDS];
        me_link_kind slowest;
    } rings[] = {
        {0, 1, 2, {2, 0, 0, 0, 0}, ME_LINK_NVLINK},
        {1, 1, 2, {0, 0, 2, 0, 0}, ME_LINK_HOST_BRIDGE},
        {3, 1, 2, {0, 0, 0, 2, 0}, ME_LINK_SOCKET},
        {0, 1, 4, {2, 0, 2, 0, 0}, ME_LINK_HOST_BRIDGE},
        {0, 2, 4, {0, 0, 2, 2, 0}, ME_LINK_SOCKET},
        {0, 1, 8, {4, 0, 2, 2, 0}, ME_LINK_SOCKET},
    };

    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        const me_link_path p =
            path_of(&c, rings[i].first, rings[i].stride, rings[i].size);
        assert_memory_equal(p.links, rings[i].links, sizeof p.links);
        assert_int_equal(me_link_path_slowest(&p), rings[i].slowest);
        assert_int_equal(p.nodes, 1);
        assert_int_equal(p.local, rings[i].size);
    }
    assert_int_equal(path_of(&c, 0, 1, 1).nodes, 0);
}

/* A square of NVLinks whose diagonals have none: in the order of its ranks a
 * ring crosses both diagonals, but there is one that crosses none. */
static void test_path__finds_the_ring(void **state)
{
    (void)state;
    me_cluster c = pairs_of_bridges(4);
    static const uint8_t square[4][4] = {
        {ME_LINK_NVLINK, ME_LINK_SOCKET, ME_LINK_NVLINK, ME_LINK_NVLINK},
        {ME_LINK_SOCKET, ME_LINK_NVLINK, ME_LINK_NVLINK, ME_LINK_NVLINK},
        {ME_LINK_NVLINK, ME_LINK_NVLINK, ME_LINK_NVLINK, ME_LINK_SOCKET},
        {ME_LINK_NVLINK, ME_LINK_NVLINK, ME_LINK_SOCKET, ME_LINK_NVLINK},
    };
    c.gpus = 4;
    for (int i = 0; i < 4; i++) {
        memcpy(c.pairs[i], square[i], sizeof square[i]);
    }
    const me_link_path p = path_of(&c, 0, 1, 4);
    assert_int_equal(p.links[ME_LINK_NVLINK], 4);
    assert_int_equal(p.links[ME_LINK_SOCKET], 0);
    assert_int_equal(p.peers[ME_LINK_NVLINK], 2);
    assert_int_equal(p.peers[ME_LINK_SOCKET], 1);
}

/* Between nodes each node is a way through, with a link less than a ring. */
static void test_path__over_nodes(void **state)
{
    (void)state;
    const me_cluster c = pairs_of_bridges(24);
    const me_link_path all = path_of(&c, 0, 1, 16);
    const int32_t links[ME_LINK_KINDS] = {8, 0, 4, 2, 2};
    assert_memory_equal(all.links, links, sizeof links);
    assert_int_equal(all.nodes, 2);
    assert_int_equal(all.local, 8);
    assert_int_equal(all.peers[ME_LINK_NETWORK], 8);
    const me_link_path one_each = path_of(&c, 3, 8, 3);
    assert_int_equal(one_each.links[ME_LINK_NETWORK], 3);
    assert_int_equal(one_each.nodes, 3);
    assert_int_equal(one_each.local, 1);
    assert_int_equal(one_each.peers[ME_LINK_NETWORK], 2);
    const me_link_path uneven = path_of(&c, 6, 1, 3); /* two here, one there */
    assert_int_equal(uneven.local, 1);
    assert_int_equal(uneven.links[ME_LINK_NVLINK], 1);
}

static void test_path__placement(void **state)
{
    (void)state;
    me_cluster c = pairs_of_bridges(16);
    assert_int_equal(me_cluster_between(&c, 7, 8), ME_LINK_NETWORK);
    assert_int_equal(me_cluster_between(&c, 0, 1), ME_LINK_NVLINK);
    c.layout.is_cyclic = true;
    assert_int_equal(me_cluster_between(&c, 0, 1), ME_LINK_NETWORK);
    assert_int_equal(me_cluster_between(&c, 0, 2), ME_LINK_NVLINK);
    c.layout.is_cyclic = false;
    const uint8_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    memcpy(c.order, order, sizeof order);
    assert_int_equal(me_cluster_between(&c, 0, 1), ME_LINK_SOCKET);
    assert_int_equal(me_cluster_between(&c, 0, 2), ME_LINK_NVLINK);
}

/* What nodes share is dealt out by the ranks that a group has there. */
static void test_time__shares(void **state)
{
    (void)state;
    const me_cluster c = pairs_of_bridges(16);
    assert_true(me_cluster_rate(&c, ME_LINK_HOST_BRIDGE, 2) == 20e9);
    assert_true(me_cluster_rate(&c, ME_LINK_SOCKET, 8) == 16e9);
    assert_true(me_cluster_rate(&c, ME_LINK_SOCKET, 2) == 4e9);
    assert_true(me_cluster_rate(&c, ME_LINK_NETWORK, 4) == 40e9);
    const me_cluster few = pairs_of_bridges(4); /* ranks fill half a node */
    assert_true(me_cluster_rate(&few, ME_LINK_SOCKET, 2) == 8e9);
}

static void test_time__ring(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    const me_cluster c = pairs_of_bridges(8);
    const me_link_path four = path_of(&c, 0, 1, 4);
    me_launch l = {.collective = ME_COLLECTIVE_ALL_GATHER, .bytes = 4000000};
    /* 5 + 3 steps of 2 us; three quarters of the buffer at 20 GB/s */
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &four),
                     5000 + 6000 + 150000);
    l.collective = ME_COLLECTIVE_ALL_REDUCE;
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &four),
                     5000 + 12000 + 300000);
    /* over sockets, a quarter of the link for each of four groups of two */
    const me_link_path two = path_of(&c, 0, 4, 2);
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &two),
                     5000 + 6000 + 1000000);
    /* each rank has one peer by NVLink and two at 20 GB/s */
    l.collective = ME_COLLECTIVE_ALL_TO_ALL;
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &four),
                     5000 + 2000 + 100000);
}

/* A large all-reduce over nodes is a ring, a small one a tree. */
static void test_time__tree(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    const me_cluster c = pairs_of_bridges(64);
    const me_link_path eight = path_of(&c, 0, 8, 8);
    me_launch l = {.collective = ME_COLLECTIVE_ALL_REDUCE, .bytes = 80000000};
    /* 14 steps of 10 us, 14/8 of the buffer at 10 GB/s */
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &eight),
                     5000 + 140000 + 14000000);
    l.bytes = 92000;
    /* up and down 3 levels of 10 us, twice the buffer at 9.2 GB/s */
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &eight),
                     5000 + 60000 + 20000);
    const me_link_path six = path_of(&c, 0, 8, 6); /* 2 levels, as of 4 */
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &six),
                     5000 + 40000 + 20000);
}

static void test_time__transfers(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    me_cluster c = pairs_of_bridges(16);
    const me_link_path two = path_of(&c, 3, 1, 2);
    const me_link_path node = path_of(&c, 0, 1, 8);
    const me_link_path far = path_of(&c, 0, 8, 2);
    const int32_t transfers[ME_LINK_KINDS] = {4, 0, 2, 1, 0};
    assert_memory_equal(node.transfers, transfers, sizeof transfers);
    assert_int_equal(
        me_cluster_transfer_ns(&r, &c, 1000000, ME_LINK_NVLINK, &two),
        1000 + 10000);
    /* four pipelines of two cross the sockets at once, or one of eight does */
    assert_int_equal(
        me_cluster_transfer_ns(&r, &c, 1000000, ME_LINK_SOCKET, &two),
        3000 + 250000);
    assert_int_equal(
        me_cluster_transfer_ns(&r, &c, 1000000, ME_LINK_SOCKET, &node),
        3000 + 62500);
    /* one transfer has one adapter, however many there are; dealt in turn, a
     * pipeline of 16 has eight transfers from each node */
    assert_int_equal(
        me_cluster_transfer_ns(&r, &c, 1000000, ME_LINK_NETWORK, &far),
        10000 + 100000);
    const me_link_path twice = path_of(&c, 0, 4, 4); /* two ranks of a node */
    assert_int_equal(
        me_cluster_transfer_ns(&r, &c, 1000000, ME_LINK_NETWORK, &twice),
        10000 + 100000);
    c.layout.is_cyclic = true;
    c.links[ME_LINK_NETWORK].shared = 1;
    const me_link_path all = path_of(&c, 0, 1, 16);
    assert_int_equal(all.transfers[ME_LINK_NETWORK], 15);
    assert_int_equal(
        me_cluster_transfer_ns(&r, &c, 1000000, ME_LINK_NETWORK, &all),
        10000 + 800000);
}

/* NVLink at the card's rates is what it is without a machine; half as wide it
 * takes twice the bytes' time. */
static void test_time__the_cards_own_links(void **state)
{
    (void)state;
    const me_rates r = rates_example();
    me_cluster c = pairs_of_bridges(8);
    c.links[ME_LINK_NVLINK] = (me_cluster_link){
        .is_there = true, .is_cards = true, .scale = 1, .step_s = 1e-6};
    memset(c.pairs, ME_LINK_NVLINK, sizeof c.pairs);
    const me_launch l = {.collective = ME_COLLECTIVE_ALL_REDUCE,
                         .bytes = 1000000};
    for (int32_t size = 1; size <= 8; size++) {
        const me_link_path path = path_of(&c, 0, 1, size);
        const me_time_group group = {size, false};
        assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &path),
                         me_collective_ns(&r, &l, &group));
    }
    c.links[ME_LINK_NVLINK].scale = 0.5;
    const me_link_path pair = path_of(&c, 0, 1, 2);
    assert_int_equal(
        me_cluster_transfer_ns(&r, &c, 1000000, ME_LINK_NVLINK, &pair),
        me_transfer_ns(&r, 2000000, false));
    assert_int_equal(me_cluster_collective_ns(&r, &c, &l, &pair),
                     10000 + 20000);
}

static me_status find_path(void *context)
{
    const int32_t members[] = {0, 1, 8};
    me_link_path path;
    return me_link_path_find(context, members, 3, &path);
}

static void test_path__without_memory(void **state)
{
    (void)state;
    me_cluster c = pairs_of_bridges(16);
    me_sweep_faults(find_path, &c, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path__rings_of_a_node),
        cmocka_unit_test(test_path__finds_the_ring),
        cmocka_unit_test(test_path__over_nodes),
        cmocka_unit_test(test_path__placement),
        cmocka_unit_test(test_path__without_memory),
        cmocka_unit_test(test_time__shares),
        cmocka_unit_test(test_time__ring),
        cmocka_unit_test(test_time__tree),
        cmocka_unit_test(test_time__transfers),
        cmocka_unit_test(test_time__the_cards_own_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
