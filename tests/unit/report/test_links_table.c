/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/links_table.h"
#include "support/test.h"

/* A ring crosses the network between its ends; a pipeline sends from each rank
 * to the next one alone, and is as slow as the slowest of those. */
static void test_links_table__slowest(void **state)
{
    (void)state;
    me_link_use use = {
        .group = ME_GROUP_DATA,
        .path = {.links = {[ME_LINK_NVLINK] = 6, [ME_LINK_NETWORK] = 2},
                 .transfers = {[ME_LINK_NVLINK] = 6, [ME_LINK_SOCKET] = 1}}};
    assert_int_equal(me_link_use_slowest(&use), ME_LINK_NETWORK);
    use.group = ME_GROUP_PIPELINE;
    assert_int_equal(me_link_use_slowest(&use), ME_LINK_SOCKET);
    use.path.transfers[ME_LINK_SOCKET] = 0;
    assert_int_equal(me_link_use_slowest(&use), ME_LINK_NVLINK);
    use.path.transfers[ME_LINK_NVLINK] = 0;
    assert_int_equal(me_link_use_slowest(&use), ME_LINK_NVLINK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links_table__slowest),
    };
    return cmocka_run_group_tests_name("links_table", tests, NULL, NULL);
}
