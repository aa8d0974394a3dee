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
    expect_refused("/nowhere.xml", ME_ERR_IO, "cannot open");
    expect_refused(ME_FOLDER "/no_card.xml", ME_ERR_CONFIG, "0 NVIDIA GPUs");
    expect_refused(ME_FOLDER "/test_topology.c", ME_ERR_SYNTAX, "not XML");
}

/** The node with the first @p from as @p to. */
static void expect_changed_refused(const char *from, const char *to,
                                   const char *said)
{
    static const char path[] = "test_topology.xml";
    static char text[1 << 16];
    FILE *in = fopen(ME_FOLDER "/nvswitch_gpus.xml", "r");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    (void)fclose(in);
    const char *at = strstr(text, from);
    assert_non_null(at);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fprintf(out, "%.*s%s%s", (int)(at - text), text, to,
                        at + strlen(from)) > 0);
    assert_int_equal(fclose(out), 0);
    me_topology t;
    me_diag diag = {.status = ME_OK};
    if (me_topology_read(path, &diag, &t) == ME_OK ||
        strstr(diag.text, said) == NULL || diag.line == 0) {
        fail_msg("%d: '%s' does not say '%s'", diag.line, diag.text, said);
    }
    (void)remove(path);
}

/* At several of these hwloc 2.9 crashes, or stops at an assertion. */
static void test_topology__what_hwloc_refuses(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {" complete_cpuset=\"0x00000003\"", "", "no complete_cpuset"},
        {" complete_cpuset=\"0x00000001\"", "", "no complete_cpuset"},
        {" nodeset=\"0x00000003\"", "", "no nodeset"},
        {"gp_index=\"6\"", "", "gp_index = '': must be a number"},
        {"type=\"Package\"", "type=\"OSDev\"", "a device has a cpuset"},
        {"type=\"Machine\"", "type=\"Bridge\"", "may not lie"},
        {"gp_index=\"3\" local_memory=\"1073741824\">",
         "gp_index=\"3\"><object type=\"Core\" os_index=\"0\" "
         "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
         "complete_nodeset=\"0x1\" gp_index=\"90\"/>",
         "may not lie"},
        {"type=\"Core\"", "type=\"Heart\"", "'Heart': is no type"},
        {"<object type=\"Core\"", "<object", "is no type of hwloc's"},
        {"bridge_type=\"0-1\"", "bridge_type=\"7-1\"", "must be 0-1 or 1-1"},
        {"0000:12:00.0", "12", "pci_busid = '12'"},
        {"0302 [10de:2330]", "0302 10de", "pci_type = '0302 10de [10de:16c1"},
        {"pci_link_speed=\"31.5", "pci_link_speed=\"x", "must be GB/s"},
        {"osdev_type=\"1\"", "osdev_type=\"GPU\"", "osdev_type = 'GPU'"},
        {"nbobjs=\"6\"", "nbobjs=\"4294967295\"", "nbobjs = '4294967295'"},
        {"nbobjs=\"6\"", "nbobjs=\"7\"", "7 objects has 6 indexes"},
        {"nbobjs=\"6\"", "nbobjs=\"5\"", "more than a matrix of 5"},
        {"1000000 0", "many 0", "no number"},
        {"version=\"2.0\"", "version=\"3.0\"", "version = '3'"},
        {"<topology", "<topography", "'topography' is no topology"},
        {"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">",
         "<!DOCTYPE topology [<!ENTITY a \"b\">]>", "declares its own type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_changed_refused(cases[i][0], cases[i][1], cases[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topology__what_gpus_share),
        cmocka_unit_test(test_topology__nvlink_bridges),
        cmocka_unit_test(test_topology__nvswitch),
        cmocka_unit_test(test_topology__bad_files),
        cmocka_unit_test(test_topology__what_hwloc_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
