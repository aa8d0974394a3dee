/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/grid.h"
#include "support/random.h"

#include <string.h>

enum {
    ME_TEST_WORLD = 4096 /**< ranks at most */
};

/** A random grid; false if the sizes don't fit together. */
static bool make_grid(me_random *random, me_grid *grid_out)
{
    const int32_t t = 1 << me_random_in(random, 0, 3);
    const int32_t c = me_random_in(random, 1, 3);
    const int32_t p = me_random_in(random, 1, 5);
    const int32_t d = me_random_in(random, 1, 8);
    const int32_t copies = me_random_in(random, 0, 2);
    const me_grid_sizes sizes = {
        .world = t * c * p * d,
        .tensor = t,
        .context = c,
        .pipeline = p,
        .expert = me_random_in(random, 1, 4),
        .expert_tensor = me_random_in(random, 0, 1),
        .instances = me_random_in(random, 0, 2),
        .data_replicate = copies > 0 && d % copies == 0 ? copies : 0,
        .pipeline_before_data = me_random_in(random, 0, 1) == 1,
        .embedding_copy = me_random_in(random, 0, p - 1),
    };
    return me_grid_init(&sizes, NULL, grid_out) == ME_OK;
}

static bool is_embedding_kind(me_group_kind kind)
{
    return kind == ME_GROUP_EMBEDDING || kind == ME_GROUP_POSITION_EMBEDDING;
}

/** Members see the same group, ascend, and know their places. */
static const char *check_group(const me_grid *grid, me_group_kind kind,
                               int32_t rank)
{
    const me_group group = me_grid_group(grid, kind, rank);
    if (group.size == 0) {
        return is_embedding_kind(kind) ? NULL : "a rank is in no group";
    }
    if (me_group_index(&group, rank) < 0) {
        return "a rank is not in its own group";
    }
    int32_t before = -1;
    for (int32_t i = 0; i < group.size; i++) {
        const int32_t member = me_group_member(&group, i);
        const me_group same = me_grid_group(grid, kind, member);
        if (member <= before || member >= grid->world) {
            return "members don't ascend within the world";
        }
        if (me_group_index(&group, member) != i) {
            return "a member's index is not its place";
        }
        if (same.size != group.size || same.base != group.base) {
            return "two members are in different groups";
        }
        before = member;
    }
    return NULL;
}

static const char *check_membership(me_random *random)
{
    me_grid grid;
    if (!make_grid(random, &grid)) {
        return NULL;
    }
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        for (int32_t rank = 0; rank < grid.world; rank++) {
            const char *wrong = check_group(&grid, (me_group_kind)kind, rank);
            if (wrong != NULL) {
                return wrong;
            }
        }
    }
    return NULL;
}

/** What is not a member has no index. */
static const char *check_strangers(me_random *random)
{
    me_grid grid;
    if (!make_grid(random, &grid)) {
        return NULL;
    }
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        const me_group group =
            me_grid_group(&grid, (me_group_kind)kind,
                          me_random_in(random, 0, grid.world - 1));
        int32_t members = 0;
        for (int32_t rank = 0; rank < grid.world; rank++) {
            members += me_group_index(&group, rank) >= 0;
        }
        if (members != group.size) {
            return "ranks with an index are not as many as members";
        }
    }
    return NULL;
}

static const char *check_coordinates(me_random *random)
{
    me_grid grid;
    if (!make_grid(random, &grid)) {
        return NULL;
    }
    for (int side = 0; side < ME_GRID_SIDE_COUNT; side++) {
        for (int32_t rank = 0; rank < grid.world; rank++) {
            const me_coordinates at =
                me_grid_coordinates(&grid, (me_grid_side)side, rank);
            if (me_grid_rank(&grid, (me_grid_side)side, &at) != rank) {
                return "coordinates don't lead back to the rank";
            }
        }
    }
    return NULL;
}

/**
 * The groups made at start-up cover the ranks once per kind, and are those
 * that their members say they are in.
 */
static const char *check_creation(me_random *random)
{
    me_grid grid;
    if (!make_grid(random, &grid)) {
        return NULL;
    }
    uint8_t seen[ME_GROUP_COUNT][ME_TEST_WORLD];
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < me_grid_created_count(&grid); i++) {
        const me_created_group made = me_grid_created(&grid, i);
        if (made.kind == ME_GROUP_COUNT) {
            continue;
        }
        for (int32_t j = 0; j < made.group.size; j++) {
            const int32_t rank = me_group_member(&made.group, j);
            const me_group own = me_grid_group(&grid, made.kind, rank);
            if (own.base != made.group.base || own.size != made.group.size) {
                return "a group was made that its member does not know";
            }
            seen[made.kind][rank]++;
        }
    }
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        for (int32_t rank = 0; rank < grid.world; rank++) {
            const bool is_member =
                me_grid_group(&grid, (me_group_kind)kind, rank).size > 0;
            // The world's group is not made; it is there. Copies of stages
            // are not Megatron-LM's, and parts of data-parallel and of
            // context-parallel groups are made where they are asked for, as
            // Transformer Engine makes those of its user buffers.
            const bool is_made = kind != ME_GROUP_WORLD &&
                                 kind != ME_GROUP_STAGE_COPIES &&
                                 kind != ME_GROUP_DATA_SHARD &&
                                 kind != ME_GROUP_DATA_REPLICATE &&
                                 kind != ME_GROUP_CONTEXT_HEADS &&
                                 kind != ME_GROUP_CONTEXT_RING &&
                                 kind != ME_GROUP_USER_BUFFERS &&
                                 kind != ME_GROUP_USER_BUFFERS_WORLD &&
                                 kind != ME_GROUP_PARTIAL_DATA_CONTEXT &&
                                 kind != ME_GROUP_PARTIAL_EXPERT_DATA &&
                                 kind != ME_GROUP_INTER_INSTANCE;
            if (is_made && seen[kind][rank] != is_member) {
                return "a rank is not in exactly one group of a kind";
            }
        }
    }
    return NULL;
}

static void test_grid_property__membership(void **state)
{
    (void)state;
    me_property_run(check_membership, 200);
}

static void test_grid_property__strangers(void **state)
{
    (void)state;
    me_property_run(check_strangers, 200);
}

static void test_grid_property__coordinates(void **state)
{
    (void)state;
    me_property_run(check_coordinates, 200);
}

static void test_grid_property__creation(void **state)
{
    (void)state;
    me_property_run(check_creation, 200);
}

/** A large world: tp 8, cp 2, pp 16, dp 64, ep 8; 16,384 ranks. */
static void test_grid_property__large_world(void **state)
{
    (void)state;
    const me_grid_sizes sizes = {.world = 16384,
                                 .tensor = 8,
                                 .context = 2,
                                 .pipeline = 16,
                                 .expert = 8,
                                 .expert_tensor = 1,
                                 .embedding_copy = 15};
    me_grid grid;
    assert_int_equal(me_grid_init(&sizes, NULL, &grid), ME_OK);
    assert_int_equal(me_grid_extent(&grid, ME_GRID_DENSE, ME_AXIS_DATA), 64);
    assert_int_equal(me_grid_extent(&grid, ME_GRID_EXPERT, ME_AXIS_DATA), 128);
    int64_t index_sum = 0;
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        for (int32_t rank = 0; rank < grid.world; rank++) {
            const me_group group =
                me_grid_group(&grid, (me_group_kind)kind, rank);
            if (group.size > 0) {
                const int32_t index = me_group_index(&group, rank);
                assert_int_equal(me_group_member(&group, index), rank);
                index_sum += index;
            }
        }
    }
    assert_true(index_sum > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_property__membership),
        cmocka_unit_test(test_grid_property__strangers),
        cmocka_unit_test(test_grid_property__coordinates),
        cmocka_unit_test(test_grid_property__creation),
        cmocka_unit_test(test_grid_property__large_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
