/* SPDX-License-Identifier: BSD-3-Clause */
/* Four GPUs: two under a switch of the first package, one at a host bridge of
 * its own there, one on the second package. */
#include "device/topology.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static me_topology read_file(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", ME_FOLDER, name);
    me_topology t = {.n_gpus = 0};
    me_diag diag = {.status = ME_OK};
    const me_status status = me_topology_read(path, &diag, &t);
    if (status != ME_OK) {
        fail_msg("%s: %s", name, diag.text);
    }
    return t;
}

static void test_topology__what_gpus_share(void **state)
{
    (void)state;
    const me_topology t = read_file("pcie_gpus.xml");
    static const me_gpu_relation expected[4][4] = {
        {ME_GPUS_SHARE_SWITCH, ME_GPUS_SHARE_SWITCH, ME_GPUS_SHARE_NUMA,
         ME_GPUS_SHARE_MACHINE},
        {ME_GPUS_SHARE_SWITCH, ME_GPUS_SHARE_SWITCH, ME_GPUS_SHARE_NUMA,
         ME_GPUS_SHARE_MACHINE},
        {ME_GPUS_SHARE_NUMA, ME_GPUS_SHARE_NUMA, ME_GPUS_SHARE_SWITCH,
         ME_GPUS_SHARE_MACHINE},
        {ME_GPUS_SHARE_MACHINE, ME_GPUS_SHARE_MACHINE, ME_GPUS_SHARE_MACHINE,
         ME_GPUS_SHARE_SWITCH},
    };
    assert_int_equal(t.n_gpus, 4);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            assert_int_equal(t.relation[i][j], expected[i][j]);
            assert_true(t.nvlink_bytes[i][j] == 0);
        }
    }
    assert_true(t.pcie_bytes > 31.5e9 && t.pcie_bytes < 31.52e9);
    assert_int_equal(t.n_adapters, 1);
    assert_string_equal(t.cpu_vendor, "GenuineIntel");
    assert_string_equal(t.cpu_arch, "x86_64");
    assert_int_equal(t.cpu_family, 6);
    assert_int_equal(t.cpu_model, 143);
}

static void test_topology__nvlink_bridges(void **state)
{
    (void)state;
    const me_topology t = read_file("bridged_gpus.xml");
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            const double expected = i != j && i / 2 == j / 2 ? 300e9 : 0;
            assert_true(t.nvlink_bytes[i][j] == expected);
        }
    }
}

/* 225 GB/s to each of two NVSwitches are 450 between all GPUs. */
static void test_topology__nvswitch(void **state)
{
    (void)state;
    const me_topology t = read_file("nvswitch_gpus.xml");
    assert_int_equal(t.n_gpus, 4);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            assert_true(t.nvlink_bytes[i][j] == (i == j ? 0 : 450e9));
        }
    }
}

static void expect_refused(const char *path, me_status expected,
                           const char *said)
{
    me_topology t;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(me_topology_read(path, &diag, &t), expected);
    if (strstr(diag.text, said) == NULL) {
        fail_msg("'%s' does not say '%s'", diag.text, said);
    }
}

static void test_topology__bad_files(void **state)
{
    (void)state;
    expect_refused("/nowhere.xml", ME_ERR_IO, "cannot be read");
    expect_refused(ME_FOLDER "/no_card.xml", ME_ERR_CONFIG, "0 NVIDIA GPUs");
    expect_refused(ME_FOLDER "/test_topology.c", ME_ERR_CONFIG,
                   "no topology that hwloc can read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topology__what_gpus_share),
        cmocka_unit_test(test_topology__nvlink_bridges),
        cmocka_unit_test(test_topology__nvswitch),
        cmocka_unit_test(test_topology__bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
