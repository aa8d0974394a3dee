/* SPDX-License-Identifier: BSD-3-Clause */
/* Who hears what of a program that stands for several ranks. */
#include "support/events.h"
#include "support/test.h"
#include "tensor/launch.h"
#include "tensor/strand.h"

enum {
    STRANDS = 2
};

static void count(void *self, const me_event *event)
{
    (void)event;
    ++*(int *)self;
}

static void count_launch(void *self, const me_launch *launch)
{
    (void)launch;
    ++*(int *)self;
}

/* An observer that was added for none hears all. */
static void test_strand__hears_its_own_part(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    int heard[STRANDS] = {0};
    for (int i = 0; i < STRANDS; i++) {
        me_strand_set(e, i);
        me_engine_observe(e,
                          (me_observer){.on_event = count, .self = &heard[i]});
    }
    me_strand_set(e, ME_STRANDS_ALL);
    me_point(e, "of all");
    me_strand_set(e, 1);
    me_tensor *own = me_retain(me_scratch(e, "own", 24));
    me_strand_set(e, 0);
    me_point(e, "of the first");
    me_point(e, "of the first");
    me_strand_set(e, ME_STRANDS_ALL);
    assert_int_equal(heard[0], 1 + 2);
    assert_int_equal(heard[1], 1 + 1);
    EXPECT_EVENTS(events, "+24");
    me_release(e, own);
}

static void test_strand__launches_of_the_first_are_told(void **state)
{
    me_engine *e = ((me_test_events *)*state)->e;
    int launches = 0;
    me_engine_listen(e, (me_launch_listener){.on_launch = count_launch,
                                             .self = &launches,
                                             .iteration = 0});
    me_iteration(e, 0);
    for (int strand = ME_STRANDS_ALL; strand < STRANDS; strand++) {
        me_strand_set(e, strand);
        me_launch_kernel(e, ME_KERNEL_CAST, 0, 8);
    }
    assert_int_equal(launches, 2);
    me_strand_set(e, ME_STRANDS_ALL);
}

static void test_strand__parts_where_nothing_is_open(void **state)
{
    me_engine *e = ((me_test_events *)*state)->e;
    assert_true(me_strands_can_part(e));
    const me_module_id layer = me_module_add(e, ME_NO_MODULE, "layer");
    me_module_switch(e, layer);
    assert_false(me_strands_can_part(e));
    me_module_switch(e, ME_NO_MODULE);
    assert_true(me_strands_can_part(e));
    const me_frame frame = me_enter(e);
    me_tensor *late = me_scratch(e, "late", 24);
    me_record_stream(late);
    me_drop(e, late);
    assert_false(me_strands_can_part(e));
    (void)me_scratch(e, "next", 8);
    me_leave(e, frame, NULL);
    assert_true(me_strands_can_part(e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_strand__hears_its_own_part),
        ENGINE_TEST(test_strand__launches_of_the_first_are_told),
        ENGINE_TEST(test_strand__parts_where_nothing_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
