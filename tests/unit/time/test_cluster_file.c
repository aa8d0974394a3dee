/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "time/cluster.h"

#include <stdio.h>
#include <string.h>

/** A file of configs/machines. */
static me_cluster load(const char *name)
{
    static char text[1 << 16];
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s.cfg", MACHINES, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const size_t length = fread(text, 1, sizeof text - 1, f);
    text[length] = '\0';
    assert_int_equal(fclose(f), 0);
    me_cluster c = {.gpus = 0};
    me_diag diag = {.status = ME_OK};
    if (me_cluster_read(text, path, &diag, &c) != ME_OK) {
        fail_msg("%s: %s", name, diag.text);
    }
    return c;
}

static void test_files__all_are_good(void **state)
{
    (void)state;
    static const char *const names[] = {"a100-pcie-bridged", "dgx-a100",
                                        "dgx-h100", "hgx-one-adapter",
                                        "pcie-gen4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const me_cluster c = load(names[i]);
        assert_int_equal(c.gpus, 8);
        for (int kind = 0; kind < ME_LINK_KINDS; kind++) {
            const me_cluster_link *link = &c.links[kind];
            assert_true(!link->is_there || link->source[0] != '\0');
            assert_true(!link->is_there || link->is_cards || link->bytes > 0);
        }
    }
}

static void test_files__bridged(void **state)
{
    (void)state;
    const me_cluster c = load("a100-pcie-bridged");
    assert_int_equal(c.pairs[0][1], ME_LINK_NVLINK);
    assert_int_equal(c.pairs[1][2], ME_LINK_HOST_BRIDGE);
    assert_int_equal(c.pairs[7][0], ME_LINK_SOCKET);
    assert_true(c.links[ME_LINK_NVLINK].bytes == 208e9);
    assert_false(c.links[ME_LINK_NVLINK].is_cards);
    assert_int_equal(c.links[ME_LINK_SOCKET].shared, 1);
    assert_false(c.links[ME_LINK_NETWORK].is_there);
    assert_int_equal(c.order[5], 5);
}

#define HEAD   "machine = \"m\"; gpus = 2; "
#define NVLINK "nvlink = { latency_us = 1; source = \"s\"; }; "
#define PAIRS  "pairs = ( { link = \"nvlink\"; gpus = ( [0, 1] ); } ); "

static void test_files__order_and_sheet(void **state)
{
    (void)state;
    me_cluster c;
    assert_int_equal(
        me_cluster_read(HEAD
                        "host_gib = 2048; collective_us = 3.5; "
                        "gpu_order = [1, 0]; links = { "
                        "nvlink = { sheet_gbs = 300; latency_us = 1; source = "
                        "\"s\"; }; }; " PAIRS,
                        "m.cfg", NULL, &c),
        ME_OK);
    assert_int_equal(c.order[0], 1);
    assert_int_equal(c.order[1], 0);
    assert_true(c.base_s == 3.5 * 1e-6);
    assert_int_equal(c.host_bytes, UINT64_C(2048) << 30);
    assert_true(c.links[ME_LINK_NVLINK].is_cards);
    assert_true(c.links[ME_LINK_NVLINK].bytes == 300e9);
}

/* Files and what is said of each. */
static const char *const bad[][2] = {
    {"gpus = 2;", "machine must be a string"},
    {"machine = \"\\x1b[2J\"; gpus = 2;", "printable ASCII"},
    {"machine = \"m\";", "gpus must be a number above 0"},
    {HEAD "host_gib = 0;", "host_gib must be a number above 0"},
    {"machine = \"m\"; gpus = 17;", "gpus = 17: must be a whole number"},
    {"machine = \"m\"; gpus = 1.5;", "gpus = 1.5: must be a whole number"},
    {HEAD "gpu = 3;", "gpu is no key of a machine"},
    {HEAD "links = 3;", "links must be a group"},
    {HEAD "gpu_order = [0, 0];", "each of the 2 GPUs once"},
    {HEAD "gpu_order = [0];", "each of the 2 GPUs once"},
    {HEAD "collective_us = 0;", "collective_us must be a number above 0"},
    {HEAD "links = { wire = { }; };", "links.wire is no kind of link"},
    {HEAD "links = { nvlink = 3; };", "links.nvlink is no kind of link"},
    {HEAD "links = { nvlink = { latency = 1; }; };",
     "links.nvlink.latency is no key"},
    {HEAD "links = { nvlink = { source = \"s\"; }; };",
     "links.nvlink.latency_us must be a number"},
    {HEAD "links = { nvlink = { latency_us = 1; }; };",
     "links.nvlink.source must be a string"},
    {HEAD "links = { nvlink = { latency_us = 1; source = \"s\"; shared = "
          "1; }; };",
     "links.nvlink.shared must be a whole number of links, of a kind with"},
    {HEAD "links = { socket = { latency_us = 1; source = \"s\"; }; };",
     "links.socket.gbs must be a number"},
    {HEAD "links = { socket = { gbs = -1; latency_us = 1; source = \"s\"; "
          "}; };",
     "links.socket.gbs must be a number"},
    {HEAD "links = { socket = { gbs = 1e-12; latency_us = 1; source = \"s\"; "
          "}; };",
     "links.socket.gbs = 1e-12: must be at least 0.001"},
    {HEAD "links = { socket = { sheet_gbs = 3; latency_us = 1; source = "
          "\"s\"; }; };",
     "sheet_gbs is for nvlink"},
    {HEAD "links = { socket = { gbs = 1; shared = 1.5; latency_us = 1; "
          "source = \"s\"; }; };",
     "shared must be a whole number"},
    {HEAD "links = { " NVLINK "};", "pairs must be a list"},
    {HEAD "links = { " NVLINK "}; pairs = 3;", "pairs must be a list"},
    {HEAD "links = { " NVLINK "}; pairs = ( );", "no link joins GPUs 0 and 1"},
    {HEAD "links = { " NVLINK "}; pairs = ( 3 );", "link '' is none"},
    {HEAD "links = { " NVLINK "}; pairs = ( { link = \"socket\"; gpus = ( "
          "[0, 1] ); } );",
     "link 'socket' is none"},
    {HEAD "links = { " NVLINK "}; pairs = ( { link = \"nvlink\"; } );",
     "gpus must be a list"},
    {HEAD "links = { " NVLINK "}; pairs = ( { link = \"nvlink\"; gpus = ( "
          "[0, 2] ); } );",
     "numbers from 0 to 1"},
    {HEAD "links = { " NVLINK "}; pairs = ( { link = \"nvlink\"; gpus = ( "
          "3 ); } );",
     "numbers from 0 to 1"},
    {HEAD "links = {", "syntax error"},
};

static void test_files__bad_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        me_cluster c;
        me_diag diag = {.status = ME_OK};
        assert_int_not_equal(me_cluster_read(bad[i][0], "m.cfg", &diag, &c),
                             ME_OK);
        if (strstr(diag.text, bad[i][1]) == NULL) {
            fail_msg("'%s': '%s' does not say '%s'", bad[i][0], diag.text,
                     bad[i][1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files__all_are_good),
        cmocka_unit_test(test_files__bridged),
        cmocka_unit_test(test_files__order_and_sheet),
        cmocka_unit_test(test_files__bad_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
