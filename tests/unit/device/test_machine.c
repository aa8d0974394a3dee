/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc reads a description of a machine in place of the one it runs on. */
#include "device/machine_impl.h"
#include "support/test.h"

#include <stdlib.h>

static void test_machine__reads_cards_of_a_description(void **state)
{
    (void)state;
    assert_int_equal(setenv("HWLOC_XMLFILE", ME_FOLDER "/two_cards.xml", 1), 0);
    me_machine_card card = {.n_cards = 0};
    const char *reason = me_machine_hwloc(&card);
    if (reason != NULL) {
        print_error("%s\n", reason);
    }
    assert_null(reason);
    assert_int_equal(card.n_cards, 2);
    assert_string_equal(card.name, "NVIDIA H200");
    assert_int_equal(card.total_bytes, UINT64_C(146591680) << 10);
    assert_int_equal(card.multiprocessors, 132);
}

static void test_machine__says_why_there_is_none(void **state)
{
    (void)state;
    assert_int_equal(setenv("HWLOC_XMLFILE", ME_FOLDER "/no_card.xml", 1), 0);
    me_machine_card card = {.n_cards = 0};
    assert_string_equal(me_machine_hwloc(&card), "no CUDA or NVML device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine__reads_cards_of_a_description),
        cmocka_unit_test(test_machine__says_why_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
