/* SPDX-License-Identifier: BSD-3-Clause */
/* A candidate of which a rank dies by less than the estimate is sure of does not
 * fit, and its screen says so already. */
#include "config/file.h"
#include "config/options.h"
#include "search/search_run.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>

static me_transport *transport;

/** The one candidate of a search. @param bytes  of the card; 0: as its name says */
static me_candidate search_on_card(uint64_t bytes)
{
    static const char *const list[] = {"parallel.tensor=1",
                                       "parallel.sequence=false",
                                       "parallel.context=1",
                                       "parallel.pipeline=2",
                                       "parallel.virtual_pipeline=1",
                                       "train.micro_batch_size=1",
                                       "recompute=none",
                                       "data_parallel=ddp"};
    char text[32];
    const char *const sets[][2] = {{"device.name", "h100-80gb"},
                                   {"model.hidden_size", "16"},
                                   {"model.num_attention_heads", "2"},
                                   {"device.memory", text}};
    me_diag diag = {.status = ME_OK};
    me_config *job = me_config_create();
    assert_non_null(job);
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    assert_int_equal(
        me_config_read_file(job, GOLDEN "/compare/tiny.cfg", &diag), ME_OK);
    for (int i = 0; i < (bytes > 0 ? 4 : 3); i++) {
        assert_int_equal(me_config_set(job, sets[i][0], sets[i][1], &diag),
                         ME_OK);
    }
    const me_search_request request = {
        .space = {.spaces = list, .n_spaces = sizeof list / sizeof list[0]},
        .threads = 1};
    me_search_run *run = NULL;
    assert_int_equal(
        me_search_run_create(transport, &request, job, &diag, &run), ME_OK);
    const me_candidates *all = me_search_run_found(run)->candidates;
    assert_int_equal(all->count, 1);
    me_candidate candidate = all->items[0];
    candidate.assignments = NULL; // the run's, as what follows
    candidate.layout = NULL;
    candidate.choice = NULL;
    candidate.reason = NULL;
    me_search_run_destroy(run);
    me_config_destroy(job);
    return candidate;
}

static void test_search_over__dies_by_little(void **state)
{
    (void)state;

    enum {
        LITTLE = 32 << 20 // more than a segment, less than the band
    };

    const me_candidate wide = search_on_card(0);
    assert_int_equal(wide.end, ME_SEARCH_SIMULATED);
    assert_true(wide.result.fits);
    const uint64_t bytes = wide.result.worst_bytes;
    assert_int_equal(search_on_card(bytes).end, ME_SEARCH_SIMULATED);
    assert_int_equal(search_on_card(bytes - LITTLE).end, ME_SEARCH_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_over__dies_by_little),
    };
    if (me_transport_local_create(&transport) != ME_OK) {
        return 1;
    }
    const int failed =
        cmocka_run_group_tests_name("search_over", tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}
