/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks have equal rows of every parameter under fully_shard(). */
#include "plan/torch_shards.h"
#include "support/test.h"

enum {
    RANKS = 4
};

/** Classes of four data-parallel ranks, of a model of one layer. */
static void number(const me_layer_spec *layer, int32_t tensor,
                   int32_t *class_out)
{
    me_layer_spec child = *layer;
    me_layer_tree tree = {.root = {.kind = ME_LAYER_SEQUENTIAL,
                                   .children = &child,
                                   .n_children = 1}};
    me_config config = {.parallel = {.tensor = tensor},
                        .torch_job = {.tree = &tree}};
    me_plan plan = {.config = &config};
    const me_grid_sizes sizes = {.world = RANKS * tensor,
                                 .tensor = tensor,
                                 .context = 1,
                                 .pipeline = 1,
                                 .expert = 1,
                                 .expert_tensor = tensor};
    me_diag diag = {.status = ME_OK};
    if (me_grid_init(&sizes, &diag, &plan.grid) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(me_torch_shard_classes(&plan, 0, class_out), ME_OK);
}

static void assert_classes(const me_layer_spec *layer, int32_t tensor,
                           const int32_t *want)
{
    int32_t have[RANKS] = {0};
    number(layer, tensor, have);
    for (int32_t i = 0; i < RANKS; i++) {
        assert_int_equal(have[i], want[i]);
    }
}

/* Weights of linear layers and convolutions are cut along what they give, a
 * table or a norm along what it takes. */
static void test_torch_shards__cuts_outputs(void **state)
{
    (void)state;
    static const int32_t even[RANKS] = {0, 0, 0, 0};
    static const int32_t six[RANKS] = {0, 0, 0, 1}; /* 2, 2, 2 and 0 rows */
    me_layer_spec layer = {.kind = ME_LAYER_LINEAR, .inputs = 8, .outputs = 6};
    assert_classes(&layer, 1, six);
    layer.kind = ME_LAYER_CONV2D;
    assert_classes(&layer, 1, six);
    layer.kind = ME_LAYER_EMBEDDING;
    assert_classes(&layer, 1, even);
}

/* 12 rows are 3 for each of four ranks; of the 6 that a tensor-parallel rank
 * has, the last gets none. */
static void test_torch_shards__cuts_a_tensor_part(void **state)
{
    (void)state;
    static const int32_t even[RANKS] = {0, 0, 0, 0};
    static const int32_t six[RANKS] = {0, 0, 0, 1};
    const me_layer_spec layer = {
        .kind = ME_LAYER_LINEAR, .inputs = 8, .outputs = 12};
    assert_classes(&layer, 1, even);
    assert_classes(&layer, 2, six);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_shards__cuts_outputs),
        cmocka_unit_test(test_torch_shards__cuts_a_tensor_part),
    };
    return cmocka_run_group_tests_name("torch_shards", tests, NULL, NULL);
}
