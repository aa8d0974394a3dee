/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/rates_example.h"
#include "support/test.h"
#include "time/recorder.h"

static const me_launch copy = {
    .kind = ME_LAUNCH_KERNEL, .kernel = ME_KERNEL_COPY, .bytes = 1000000};

enum {
    HOST_NS = 17000,
    CARD_NS = 3500,
    MOST = 16
};

/** What a rank of two launches, in order, records. */
static me_time_recorder *record(const me_rates *rates,
                                const me_launch *launches, size_t count,
                                me_time_program *program)
{
    const me_time_place place = {
        .group =
            {[ME_GROUP_TENSOR] = {2, false}, [ME_GROUP_MODEL] = {4, false}},
        .spans_stages = {[ME_GROUP_MODEL] = true},
        .layout = {.world = 8, .gpus_per_node = 8},
        .loader_ns = 123};
    me_time_recorder *r = NULL;
    assert_int_equal(me_time_recorder_create(rates, &place, &r), ME_OK);
    const me_launch_listener l = me_time_recorder_listener(r, 1);
    for (size_t i = 0; i < count; i++) {
        l.on_launch(l.self, &launches[i]);
    }
    assert_int_equal(me_time_recorder_finish(r, NULL, program), ME_OK);
    return r;
}

/* h += a; d = max(h, d) + t, twice. */
static void test_recorder__kernels(void **state)
{
    (void)state;
    const me_rates rates = rates_example();
    me_time_program p;
    const me_launch launches[] = {copy, copy};
    me_time_recorder *r = record(&rates, launches, 2, &p);
    assert_int_equal(p.n_items, 1);
    const me_stretch *s = &p.stretches[0];
    assert_int_equal(s->after[ME_CLOCK_HOST][ME_CLOCK_HOST], 2 * HOST_NS);
    assert_int_equal(s->after[ME_CLOCK_COMPUTE][ME_CLOCK_HOST],
                     2 * HOST_NS + CARD_NS);
    assert_int_equal(s->after[ME_CLOCK_COMPUTE][ME_CLOCK_COMPUTE], 2 * CARD_NS);
    int64_t clocks[ME_CLOCKS] = {0, 100000, 0};
    me_stretch_run(s, clocks);
    assert_int_equal(clocks[ME_CLOCK_HOST], 34000);
    assert_int_equal(clocks[ME_CLOCK_COMPUTE], 107000);
    me_time_recorder_destroy(r);
}

/* c = max(h, d, c) + t: kernels after a collective wait for it or, if it is
 * asynchronous, do not. 115 us of the host, 10 us and 1 MB at 100 GB/s. */
static void test_recorder__collectives(void **state)
{
    (void)state;
    const me_rates rates = rates_example();
    me_launch reduce = {.kind = ME_LAUNCH_COLLECTIVE,
                        .collective = ME_COLLECTIVE_ALL_REDUCE,
                        .group = ME_GROUP_TENSOR,
                        .bytes = 100000000};
    for (int is_async = 0; is_async < 2; is_async++) {
        reduce.is_async = is_async == 1;
        me_time_program p;
        const me_launch launches[] = {reduce, copy};
        me_time_recorder *r = record(&rates, launches, 2, &p);
        int64_t clocks[ME_CLOCKS] = {0, 0, 0};
        me_stretch_run(&p.stretches[0], clocks);
        const int64_t done = 115000 + 10000 + 1000000;
        assert_int_equal(clocks[ME_CLOCK_COMMUNICATION], done);
        assert_int_equal(clocks[ME_CLOCK_COMPUTE],
                         (reduce.is_async ? 115000 + HOST_NS : done) + CARD_NS);
        assert_int_equal(p.stretches[0].exposed_ns,
                         reduce.is_async ? 0 : 1010000);
        me_time_recorder_destroy(r);
    }
}

/* What a side stream asks for begins while kernels run. */
static void test_recorder__ahead(void **state)
{
    (void)state;
    const me_rates rates = rates_example();
    for (int is_ahead = 0; is_ahead < 2; is_ahead++) {
        const me_launch gather = {.kind = ME_LAUNCH_COLLECTIVE,
                                  .collective = ME_COLLECTIVE_ALL_REDUCE,
                                  .group = ME_GROUP_TENSOR,
                                  .is_async = true,
                                  .is_ahead = is_ahead == 1,
                                  .bytes = 100000000};
        me_time_program p;
        me_time_recorder *r = record(&rates, &gather, 1, &p);
        int64_t clocks[ME_CLOCKS] = {0, 5000000, 0};
        me_stretch_run(&p.stretches[0], clocks);
        assert_int_equal(clocks[ME_CLOCK_COMMUNICATION],
                         (is_ahead == 1 ? 115000 : 5000000) + 1010000);
        assert_int_equal(clocks[ME_CLOCK_COMPUTE], 5000000);
        me_time_recorder_destroy(r);
    }
}

static void test_recorder__host(void **state)
{
    (void)state;
    const me_rates rates = rates_example();
    me_time_program p;
    const me_launch launches[] = {
        {.kind = ME_LAUNCH_HOST, .host = ME_HOST_LOADER},
        copy,
        {.kind = ME_LAUNCH_HOST_WAITS}};
    me_time_recorder *r = record(&rates, launches, 3, &p);
    int64_t clocks[ME_CLOCKS] = {0, 0, 0};
    me_stretch_run(&p.stretches[0], clocks);
    assert_int_equal(clocks[ME_CLOCK_HOST], 123 + HOST_NS + CARD_NS + 8000);
    me_time_recorder_destroy(r);
}

/** Equal actions are one stretch, also those that are told again; a group over
 *  stages ends one. */
static void test_recorder__items(void **state)
{
    (void)state;
    const me_rates rates = rates_example();
    me_time_program p;
    const me_launch launches[] = {
        {.kind = ME_LAUNCH_ACTION_BEGIN, .microbatch = 0},
        copy,
        {.kind = ME_LAUNCH_ACTION_END},
        {.kind = ME_LAUNCH_EXCHANGE, .transfers = ME_TRANSFER_TO_NEXT},
        {.kind = ME_LAUNCH_ACTION_BEGIN, .microbatch = 1},
        copy,
        {.kind = ME_LAUNCH_ACTION_END},
        {.kind = ME_LAUNCH_ACTION_REPEATED, .microbatch = 2},
        {.kind = ME_LAUNCH_ACTION_REPEATED, .is_backward = true},
        {.kind = ME_LAUNCH_OPTIMIZER},
        {.kind = ME_LAUNCH_COLLECTIVE, .group = ME_GROUP_MODEL}};
    me_time_recorder *r =
        record(&rates, launches, sizeof launches / sizeof launches[0], &p);
    static const uint8_t kinds[] = {ME_TIME_RUN, ME_TIME_RUN, ME_TIME_EXCHANGE,
                                    ME_TIME_RUN, ME_TIME_RUN, ME_TIME_RUN,
                                    ME_TIME_MEET};
    assert_int_equal(p.n_items, sizeof kinds);
    for (uint32_t i = 0; i < p.n_items; i++) {
        assert_int_equal(p.items[i].kind, kinds[i]);
    }
    assert_int_equal(p.items[0].part, ME_TIME_FORWARD);
    assert_int_equal(p.items[0].stretch, p.items[3].stretch);
    assert_int_equal(p.items[3].microbatch, 1);
    assert_int_equal(p.items[4].stretch, p.items[0].stretch);
    assert_int_equal(p.items[4].microbatch, 2); /* no backward was there */
    assert_int_equal(p.items[6].part, ME_TIME_OPTIMIZER);
    me_time_recorder_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorder__kernels),
        cmocka_unit_test(test_recorder__collectives),
        cmocka_unit_test(test_recorder__ahead),
        cmocka_unit_test(test_recorder__host),
        cmocka_unit_test(test_recorder__items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
