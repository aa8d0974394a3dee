/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/grid.h"
#include "support/test.h"

#include <string.h>

enum {
    ME_TEST_RANKS = 8 /**< that a list in these tests has at most */
};

/** A grid of sizes that are known to be right. */
static me_grid make_grid(const me_grid_sizes *sizes)
{
    me_grid grid;
    me_diag diag = {0};
    assert_int_equal(me_grid_init(sizes, &diag, &grid), ME_OK);
    return grid;
}

/** World 8, t = p = d = 2. */
static me_grid make_cube(bool is_tied)
{
    return make_grid(&(me_grid_sizes){.world = 8,
                                      .tensor = 2,
                                      .context = 1,
                                      .pipeline = 2,
                                      .expert = 1,
                                      .embedding_copy = is_tied});
}

static void check_members(const me_group *group, const int32_t *expected)
{
    for (int32_t i = 0; i < group->size; i++) {
        assert_int_equal(me_group_member(group, i), expected[i]);
        assert_int_equal(me_group_index(group, expected[i]), i);
    }
}

/** One kind of a world: lists of @p size ranks that cover it. */
typedef struct group_case {
    me_group_kind kind;
    int32_t size;
    int32_t lists[ME_TEST_RANKS]; /**< one list after another */
} group_case;

static void check_groups(const me_grid *grid, const group_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        for (int32_t at = 0; at < grid->world; at++) {
            const me_group group =
                me_grid_group(grid, cases[i].kind, cases[i].lists[at]);
            assert_int_equal(group.size, cases[i].size);
            const int32_t first = at / group.size * group.size;
            check_members(&group, &cases[i].lists[first]);
        }
    }
}

/** Lists of the reference: t = p = d = 2. */
static void test_grid__groups_of_a_cube(void **state)
{
    (void)state;
    static const group_case cases[] = {
        {ME_GROUP_WORLD, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_TENSOR, 2, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_PIPELINE, 2, {0, 4, 1, 5, 2, 6, 3, 7}},
        {ME_GROUP_DATA, 2, {0, 2, 1, 3, 4, 6, 5, 7}},
        {ME_GROUP_DATA_CONTEXT, 2, {0, 2, 1, 3, 4, 6, 5, 7}},
        {ME_GROUP_CONTEXT, 1, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_MODEL, 4, {0, 1, 4, 5, 2, 3, 6, 7}},
        {ME_GROUP_OPTIMIZER_INSTANCE, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_EXPERT, 1, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_EXPERT_TENSOR, 2, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_EXPERT_DATA, 2, {0, 2, 1, 3, 4, 6, 5, 7}},
        {ME_GROUP_EXPERT_MODEL, 4, {0, 1, 4, 5, 2, 3, 6, 7}},
        {ME_GROUP_TENSOR_CONTEXT, 2, {0, 1, 2, 3, 4, 5, 6, 7}},
    };
    const me_grid grid = make_cube(false);
    check_groups(&grid, cases, sizeof cases / sizeof cases[0]);
}

/** Two instances of the distributed optimizer over t = 2, p = 1, d = 4, as
 *  parallel_state.py cuts its lists of data-parallel ranks. */
static void test_grid__groups_of_instances(void **state)
{
    (void)state;
    static const group_case cases[] = {
        {ME_GROUP_DATA_CONTEXT, 4, {0, 2, 4, 6, 1, 3, 5, 7}},
        {ME_GROUP_PARTIAL_DATA_CONTEXT, 2, {0, 2, 4, 6, 1, 3, 5, 7}},
        {ME_GROUP_INTER_INSTANCE, 2, {0, 4, 2, 6, 1, 5, 3, 7}},
        {ME_GROUP_OPTIMIZER_INSTANCE, 4, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_EXPERT_DATA, 4, {0, 2, 4, 6, 1, 3, 5, 7}},
        {ME_GROUP_WORLD, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
    };
    const me_grid grid = make_grid(&(me_grid_sizes){.world = 8,
                                                    .tensor = 2,
                                                    .context = 1,
                                                    .pipeline = 1,
                                                    .expert = 1,
                                                    .instances = 2});
    check_groups(&grid, cases, sizeof cases / sizeof cases[0]);
    for (int32_t rank = 0; rank < 8; rank++) {
        const me_coordinates c =
            me_grid_coordinates(&grid, ME_GRID_DENSE, rank);
        assert_int_equal(me_grid_data_rank(&grid, ME_GRID_DENSE, &c), rank / 2);
    }
}

/** The same of experts: their data-parallel lists are cut, and the ranks of one
 *  place are those of dense weights. */
static void test_grid__expert_groups_of_instances(void **state)
{
    (void)state;
    static const group_case cases[] = {
        {ME_GROUP_EXPERT, 2, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_EXPERT_DATA, 4, {0, 2, 4, 6, 1, 3, 5, 7}},
        {ME_GROUP_PARTIAL_EXPERT_DATA, 2, {0, 2, 4, 6, 1, 3, 5, 7}},
        {ME_GROUP_PARTIAL_DATA_CONTEXT, 4, {0, 1, 2, 3, 4, 5, 6, 7}},
        {ME_GROUP_INTER_INSTANCE, 2, {0, 4, 1, 5, 2, 6, 3, 7}},
        {ME_GROUP_OPTIMIZER_INSTANCE, 4, {0, 1, 2, 3, 4, 5, 6, 7}},
    };
    for (int32_t context = 1; context <= 2; context++) {
        const me_grid grid = make_grid(&(me_grid_sizes){.world = 8,
                                                        .tensor = 1,
                                                        .context = context,
                                                        .pipeline = 1,
                                                        .expert = 2,
                                                        .instances = 2});
        check_groups(&grid, cases, sizeof cases / sizeof cases[0]);
    }
}

/** Lists of the reference: world 4, p = d = ep = 2. */
static void test_grid__groups_with_experts(void **state)
{
    (void)state;
    static const group_case cases[] = {
        {ME_GROUP_DATA, 2, {0, 1, 2, 3}},
        {ME_GROUP_EXPERT, 2, {0, 1, 2, 3}},
        {ME_GROUP_EXPERT_DATA, 1, {0, 1, 2, 3}},
        {ME_GROUP_PIPELINE, 2, {0, 2, 1, 3}},
        {ME_GROUP_EXPERT_MODEL, 4, {0, 1, 2, 3}},
    };
    const me_grid grid = make_grid(&(me_grid_sizes){
        .world = 4, .tensor = 1, .context = 1, .pipeline = 2, .expert = 2});
    check_groups(&grid, cases, sizeof cases / sizeof cases[0]);
}

static void test_grid__context_is_inside_data(void **state)
{
    (void)state;
    static const group_case cases[] = {
        {ME_GROUP_CONTEXT, 2, {0, 2, 1, 3, 4, 6, 5, 7}},
        {ME_GROUP_DATA, 2, {0, 4, 1, 5, 2, 6, 3, 7}},
        {ME_GROUP_DATA_CONTEXT, 4, {0, 2, 4, 6, 1, 3, 5, 7}},
        {ME_GROUP_TENSOR_CONTEXT, 4, {0, 1, 2, 3, 4, 5, 6, 7}},
    };
    const me_grid grid = make_grid(&(me_grid_sizes){
        .world = 8, .tensor = 2, .context = 2, .pipeline = 1, .expert = 1});
    check_groups(&grid, cases, sizeof cases / sizeof cases[0]);
}

static void test_grid__pipeline_before_data(void **state)
{
    (void)state;
    static const group_case cases[] = {
        {ME_GROUP_PIPELINE, 2, {0, 2, 1, 3, 4, 6, 5, 7}},
        {ME_GROUP_DATA, 2, {0, 4, 1, 5, 2, 6, 3, 7}},
        {ME_GROUP_MODEL, 4, {0, 1, 2, 3, 4, 5, 6, 7}},
    };
    const me_grid grid =
        make_grid(&(me_grid_sizes){.world = 8,
                                   .tensor = 2,
                                   .context = 1,
                                   .pipeline = 2,
                                   .expert = 1,
                                   .pipeline_before_data = true});
    check_groups(&grid, cases, sizeof cases / sizeof cases[0]);
}

static void test_grid__embedding_groups(void **state)
{
    (void)state;
    const me_grid untied = make_cube(false);
    const me_grid tied = make_cube(true);
    me_group group = me_grid_group(&untied, ME_GROUP_EMBEDDING, 1);
    assert_int_equal(group.size, 1);
    check_members(&group, (const int32_t[]){1});
    assert_int_equal(me_grid_group(&untied, ME_GROUP_EMBEDDING, 5).size, 0);
    group = me_grid_group(&tied, ME_GROUP_EMBEDDING, 5);
    assert_int_equal(group.size, 2);
    check_members(&group, (const int32_t[]){1, 5});
    group = me_grid_group(&tied, ME_GROUP_POSITION_EMBEDDING, 3);
    assert_int_equal(group.size, 1);
    check_members(&group, (const int32_t[]){3});
    assert_int_equal(me_grid_group(&tied, ME_GROUP_POSITION_EMBEDDING, 7).size,
                     0);
}

static void test_grid__middle_stages_have_no_embedding(void **state)
{
    (void)state;
    const me_grid grid = make_grid(&(me_grid_sizes){.world = 4,
                                                    .tensor = 1,
                                                    .context = 1,
                                                    .pipeline = 4,
                                                    .expert = 1,
                                                    .embedding_copy = 3});
    const me_group group = me_grid_group(&grid, ME_GROUP_EMBEDDING, 3);
    assert_int_equal(group.size, 2);
    check_members(&group, (const int32_t[]){0, 3});
    assert_int_equal(me_grid_group(&grid, ME_GROUP_EMBEDDING, 1).size, 0);
    assert_int_equal(me_group_index(&group, 2), -1);
}

/** Pipeline rank r with p - 1 - r, each data rank for itself; of an odd number
 *  the middle one is alone. */
static void test_grid__stage_copies(void **state)
{
    (void)state;
    const me_grid even = make_grid(&(me_grid_sizes){
        .world = 8, .tensor = 1, .context = 1, .pipeline = 4, .expert = 1});
    me_group group = me_grid_group(&even, ME_GROUP_STAGE_COPIES, 5);
    assert_int_equal(group.size, 2);
    check_members(&group, (const int32_t[]){3, 5});
    group = me_grid_group(&even, ME_GROUP_STAGE_COPIES, 0);
    check_members(&group, (const int32_t[]){0, 6});
    const me_grid odd = make_grid(&(me_grid_sizes){
        .world = 3, .tensor = 1, .context = 1, .pipeline = 3, .expert = 1});
    group = me_grid_group(&odd, ME_GROUP_STAGE_COPIES, 1);
    assert_int_equal(group.size, 1);
    check_members(&group, (const int32_t[]){1});
}

/** World 8, t = 2, 2 copies of 2 shards: along the data axis shards are next to
 *  each other, copies are not. */
static void test_grid__shards_and_their_copies(void **state)
{
    (void)state;
    const me_grid grid = make_grid(&(me_grid_sizes){.world = 8,
                                                    .tensor = 2,
                                                    .context = 1,
                                                    .pipeline = 1,
                                                    .expert = 1,
                                                    .data_replicate = 2});
    me_group group = me_grid_group(&grid, ME_GROUP_DATA_SHARD, 7);
    assert_int_equal(group.size, 2);
    check_members(&group, (const int32_t[]){5, 7});
    assert_int_equal(me_group_index(&group, 7), 1);
    group = me_grid_group(&grid, ME_GROUP_DATA_REPLICATE, 7);
    check_members(&group, (const int32_t[]){3, 7});
    group = me_grid_group(&grid, ME_GROUP_DATA_SHARD, 0);
    check_members(&group, (const int32_t[]){0, 2});
    me_grid none = {0};
    me_diag diag = {0};
    assert_int_equal(me_grid_init(&(me_grid_sizes){.world = 6,
                                                   .tensor = 1,
                                                   .context = 1,
                                                   .pipeline = 1,
                                                   .expert = 1,
                                                   .data_replicate = 4},
                                  &diag, &none),
                     ME_ERR_CONFIG);
    assert_non_null(
        strstr(diag.text, "data size 6 is not a multiple of its 4"));
}

/** Eight ranks of one sequence, in neighbourhoods of two: pairs, and rings of four
 *  that each take one of every pair; tensor ranks lie within. */
static void test_grid__levels_of_context(void **state)
{
    (void)state;
    const me_grid grid = make_grid(&(me_grid_sizes){.world = 16,
                                                    .tensor = 2,
                                                    .context = 8,
                                                    .pipeline = 1,
                                                    .expert = 1,
                                                    .context_heads = 2});
    me_group group = me_grid_group(&grid, ME_GROUP_CONTEXT_HEADS, 7);
    assert_int_equal(group.size, 2);
    check_members(&group, (const int32_t[]){5, 7});
    group = me_grid_group(&grid, ME_GROUP_CONTEXT_RING, 7);
    assert_int_equal(group.size, 4);
    check_members(&group, (const int32_t[]){3, 7, 11, 15});
    assert_int_equal(me_group_index(&group, 7), 1);
    me_grid none = {0};
    me_diag diag = {0};
    assert_int_equal(me_grid_init(&(me_grid_sizes){.world = 4,
                                                   .tensor = 1,
                                                   .context = 4,
                                                   .pipeline = 1,
                                                   .expert = 1,
                                                   .context_heads = 3},
                                  &diag, &none),
                     ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "context size 4 is not a multiple of"));
}

/** World 4, p = d = ep = 2, tied: all groups in the order of creation. */
static const struct {
    const char *name;
    int32_t size;
    int32_t ranks[4];
    bool has_host_twin;
} created[] = {
    {"weight_remat", 1, {0}, false},
    {"weight_remat", 1, {1}, false},
    {"weight_remat", 1, {2}, false},
    {"weight_remat", 1, {3}, false},
    {"data_context", 2, {0, 1}, true},
    {"data_context", 2, {2, 3}, true},
    {"data", 2, {0, 1}, true},
    {"data", 2, {2, 3}, true},
    {"context", 1, {0}, false},
    {"context", 1, {1}, false},
    {"context", 1, {2}, false},
    {"context", 1, {3}, false},
    {"model", 2, {0, 2}, false},
    {"model", 2, {1, 3}, false},
    {"tensor", 1, {0}, false},
    {"tensor", 1, {1}, false},
    {"tensor", 1, {2}, false},
    {"tensor", 1, {3}, false},
    {"pipeline", 2, {0, 2}, false},
    {"embedding", 2, {0, 2}, false},
    {"position_embedding", 1, {0}, false},
    {"pipeline", 2, {1, 3}, false},
    {"embedding", 2, {1, 3}, false},
    {"position_embedding", 1, {1}, false},
    {"tensor_data_context", 2, {0, 1}, false},
    {"tensor_data_context", 2, {2, 3}, false},
    {"tensor_data", 2, {0, 1}, false},
    {"tensor_data", 2, {2, 3}, false},
    {"tensor_context", 1, {0}, false},
    {"tensor_context", 1, {1}, false},
    {"tensor_context", 1, {2}, false},
    {"tensor_context", 1, {3}, false},
    {"expert_weight_remat", 1, {0}, false},
    {"expert_weight_remat", 1, {1}, false},
    {"expert_weight_remat", 1, {2}, false},
    {"expert_weight_remat", 1, {3}, false},
    {"expert", 2, {0, 1}, false},
    {"expert", 2, {2, 3}, false},
    {"expert_tensor", 1, {0}, false},
    {"expert_tensor", 1, {1}, false},
    {"expert_tensor", 1, {2}, false},
    {"expert_tensor", 1, {3}, false},
    {"expert_tensor_expert", 2, {0, 1}, false},
    {"expert_tensor_expert", 2, {2, 3}, false},
    {"expert_model", 4, {0, 1, 2, 3}, false},
    {"expert_model_weight_remat", 4, {0, 1, 2, 3}, false},
    {"expert_data", 1, {0}, true},
    {"expert_data", 1, {1}, true},
    {"expert_data", 1, {2}, true},
    {"expert_data", 1, {3}, true},
    {"optimizer_instance", 4, {0, 1, 2, 3}, false},
};

static void test_grid__creation_order(void **state)
{
    (void)state;
    const me_grid grid = make_grid(&(me_grid_sizes){.world = 4,
                                                    .tensor = 1,
                                                    .context = 1,
                                                    .pipeline = 2,
                                                    .expert = 2,
                                                    .embedding_copy = 1});
    const int64_t n = sizeof created / sizeof created[0];
    assert_int_equal(me_grid_created_count(&grid), n);
    for (int64_t i = 0; i < n; i++) {
        const me_created_group made = me_grid_created(&grid, i);
        assert_string_equal(made.name, created[i].name);
        assert_int_equal(made.group.size, created[i].size);
        assert_int_equal(made.has_host_twin, created[i].has_host_twin);
        check_members(&made.group, created[i].ranks);
    }
}

static void test_grid__names_what_does_not_fit(void **state)
{
    (void)state;

    static const struct {
        me_grid_sizes sizes;
        const char *text;
    } cases[] = {
        {{.world = 6, .tensor = 4, .context = 1, .pipeline = 1, .expert = 1},
         "world size 6 is not a multiple of tensor 4 x context 1 x pipeline 1"},
        {{.world = 8, .tensor = 1, .context = 1, .pipeline = 1, .expert = 3},
         "world size 8 is not a multiple of expert tensor 1 x expert 3 x "
         "pipeline 1"},
        {{.world = 8, .tensor = 0, .context = 1, .pipeline = 1, .expert = 1},
         "tensor parallel size = 0 must be at least 1"},
        {{.world = 8,
          .tensor = 65536,
          .context = 65536,
          .pipeline = 65536,
          .expert = 1},
         "world size 8 is not a multiple of tensor 65536 x context 65536 x "
         "pipeline 65536"},
        {{.world = 8,
          .tensor = 1,
          .context = 1,
          .pipeline = 2,
          .expert = 2,
          .pipeline_before_data = true},
         "with pipeline before data in the order of ranks, data size 4 must "
         "equal expert data size 2"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_grid grid;
        me_diag diag = {0};
        assert_int_equal(me_grid_init(&cases[i].sizes, &diag, &grid),
                         ME_ERR_CONFIG);
        assert_string_equal(diag.text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid__groups_of_a_cube),
        cmocka_unit_test(test_grid__levels_of_context),
        cmocka_unit_test(test_grid__groups_of_instances),
        cmocka_unit_test(test_grid__expert_groups_of_instances),
        cmocka_unit_test(test_grid__groups_with_experts),
        cmocka_unit_test(test_grid__context_is_inside_data),
        cmocka_unit_test(test_grid__pipeline_before_data),
        cmocka_unit_test(test_grid__embedding_groups),
        cmocka_unit_test(test_grid__middle_stages_have_no_embedding),
        cmocka_unit_test(test_grid__stage_copies),
        cmocka_unit_test(test_grid__shards_and_their_copies),
        cmocka_unit_test(test_grid__creation_order),
        cmocka_unit_test(test_grid__names_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
