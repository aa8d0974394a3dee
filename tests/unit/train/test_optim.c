/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/events.h"
#include "support/test.h"
#include "train/optim/optim.h"

/* A group of three shards of 1, 2 and 3 elements: 4, 8 and 12 bytes. */
static void step(me_test_events *events, me_optimizer_kind kind,
                 me_step_group *group)
{
    static me_parameter parameters[3];
    for (uint32_t i = 0; i < group->count; i++) {
        group->shards[i].parameter = &parameters[i];
        group->shards[i].numel = i + 1;
    }
    me_optim_step(events->e, kind, group);
}

static void let_go(me_test_events *events, me_step_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        me_clear(events->e, &group->shards[i].moments[0]);
        me_clear(events->e, &group->shards[i].moments[1]);
    }
    assert_int_equal(events->live, 0);
}

/* Both moments of each; then the roots of all second moments of the group,
 * which go last first. */
static void test_optim__adam(void **state)
{
    me_test_events *events = *state;
    me_shard_state shards[3] = {{.numel = 0}};
    me_step_group group = {.shards = shards, .count = 3, .is_first_step = true};

    step(events, ME_OPTIMIZER_ADAM, &group);
    EXPECT_EVENTS(events, "+4 +4 +8 +8 +12 +12 +4 +8 +12 -12 -8 -4");
    assert_int_equal(shards[0].moments[0]->storage->category,
                     ME_CATEGORY_OPTIMIZER_STATE);
    group.is_first_step = false;
    step(events, ME_OPTIMIZER_ADAM, &group);
    EXPECT_EVENTS(events, "+4 +8 +12 -12 -8 -4");
    let_go(events, &group);
}

/* Gradient plus decay of each; momentum on the first step; sums last first. */
static void test_optim__sgd(void **state)
{
    me_test_events *events = *state;
    me_shard_state shards[3] = {{.numel = 0}};
    me_step_group group = {.shards = shards,
                           .count = 3,
                           .is_first_step = true,
                           .is_decayed = true,
                           .has_momentum = true};

    step(events, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 +8 +12 +4 +8 +12 -12 -8 -4");
    group.is_first_step = false;
    step(events, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 +8 +12 -12 -8 -4");
    let_go(events, &group);
}

static void test_optim__sgd_without_decay(void **state)
{
    me_test_events *events = *state;
    me_shard_state shards[3] = {{.numel = 0}};
    me_step_group group = {.shards = shards,
                           .count = 3,
                           .is_first_step = true,
                           .has_momentum = true};

    step(events, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 +8 +12"); /* momentum alone */
    group.is_first_step = false;
    step(events, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "");
    let_go(events, &group);
}

static void test_optim__an_empty_group(void **state)
{
    me_test_events *events = *state;
    me_step_group group = {.shards = NULL, .count = 0, .is_first_step = true};

    step(events, ME_OPTIMIZER_ADAM, &group);
    step(events, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "");
    assert_true(me_engine_is_ok(events->e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_optim__adam),
        ENGINE_TEST(test_optim__sgd),
        ENGINE_TEST(test_optim__sgd_without_decay),
        ENGINE_TEST(test_optim__an_empty_group),
    };
    return cmocka_run_group_tests_name("optim", tests, NULL, NULL);
}
