/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's XML, changed here and there: how fast its links are. */
#include "run/machine_xml.h"
#include "support/rates_example.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGED "test_machine_hwloc.xml"

/** Write the node with every @p from as @p to, of the same length or not. */
static void write_changed(const char *from, const char *to)
{
    FILE *in = fopen(FOLDER "/pcie_gpus.xml", "r");
    FILE *out = fopen(CHANGED, "w");
    assert_non_null(in);
    assert_non_null(out);
    char line[1024];
    while (fgets(line, sizeof line, in) != NULL) {
        const char *at = line;
        for (const char *next = strstr(at, from); next != NULL;
             next = strstr(at, from)) {
            assert_true(fprintf(out, "%.*s%s", (int)(next - at), at, to) >= 0);
            at = next + strlen(from);
        }
        assert_true(fputs(at, out) >= 0);
    }
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

static me_status read_changed(const char *from, const char *to, me_diag *diag,
                              me_cluster *c)
{
    const me_rates rates = rates_example();
    write_changed(from, to);
    const me_status status = me_machine_read_hwloc(CHANGED, &rates, diag, c);
    (void)remove(CHANGED);
    return status;
}

static double gbs_of(const me_cluster *c, me_link_kind kind)
{
    assert_true(c->links[kind].is_there);
    return round(c->links[kind].bytes * 1e-8) / 10;
}

/* Gen4 x16 is 24 GB/s to NCCL, 20 through an Intel CPU; between sockets what it
 * counts of the CPU, or of PCIe if that is less. */
static void test_machine__links_of_intel(void **state)
{
    (void)state;

    static const struct {
        const char *model; /* CPUModelNumber; 143 in the file */
        double socket;
    } cpus[] = {{"79", 5}, {"85", 8.3}, {"143", 18.3}, {"207", 20}};

    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        me_cluster c;
        char model[64];
        (void)snprintf(model, sizeof model, "\"CPUModelNumber\" value=\"%s\"",
                       cpus[i].model);
        assert_int_equal(
            read_changed("\"CPUModelNumber\" value=\"143\"", model, NULL, &c),
            ME_OK);
        assert_true(gbs_of(&c, ME_LINK_PCIE_SWITCH) == 24);
        assert_true(gbs_of(&c, ME_LINK_HOST_BRIDGE) == 20);
        assert_true(gbs_of(&c, ME_LINK_SOCKET) == cpus[i].socket);
        assert_int_equal(c.links[ME_LINK_SOCKET].shared, 1);
        assert_int_equal(c.pairs[0][1], ME_LINK_PCIE_SWITCH);
        assert_int_equal(c.pairs[0][2], ME_LINK_HOST_BRIDGE);
        assert_int_equal(c.pairs[3][0], ME_LINK_SOCKET);
        assert_false(c.links[ME_LINK_NVLINK].is_there);
    }
}

static void test_machine__links_of_amd(void **state)
{
    (void)state;
    me_cluster c;
    assert_int_equal(read_changed("GenuineIntel", "AuthenticAMD", NULL, &c),
                     ME_OK);
    assert_true(gbs_of(&c, ME_LINK_HOST_BRIDGE) == 24);
    assert_true(gbs_of(&c, ME_LINK_SOCKET) == 16);
    /* the network is the card's, through the one adapter that is there */
    assert_true(gbs_of(&c, ME_LINK_NETWORK) == 5);
    assert_int_equal(c.links[ME_LINK_NETWORK].shared, 1);
}

static void test_machine__speeds_that_nobody_tells(void **state)
{
    (void)state;
    me_cluster c;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(read_changed("GenuineIntel", "Acme", &diag, &c),
                     ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "socket, whose speed cannot be told"));
    assert_non_null(strstr(diag.text, "'Acme'"));
    assert_int_equal(read_changed("31.507692", "0.000000", &diag, &c),
                     ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "PCIe link 0.0 GB/s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine__links_of_intel),
        cmocka_unit_test(test_machine__links_of_amd),
        cmocka_unit_test(test_machine__speeds_that_nobody_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
