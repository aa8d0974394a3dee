/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/dtensor.h"
#include "support/events.h"
#include "support/test.h"
#include "tensor/hooks.h"
#include "train/torch/grad_scaler.h"
#include "train/torch/loop.h"

/** A loop of two parameters with gradients of 4 and 8 bytes, under a plan. */
typedef struct clipped {
    me_config config;
    me_layer_tree tree;
    me_communicators comm;
    me_parameter parameters[2];
    me_parameter *list[2];
    me_loop loop;
} clipped;

static const me_dparameter kinds[] = {
    {.tensor = {.kind = {.is_distributed = true},
                .layout = ME_DLAYOUT_REPLICATE},
     .gradient = ME_DLAYOUT_PARTIAL},
    {.tensor = {.kind = {.is_distributed = true}, .layout = ME_DLAYOUT_SHARD_0},
     .gradient = ME_DLAYOUT_SHARD_0},
};

static void init(clipped *c, me_engine *e, me_data_parallel data_parallel)
{
    *c = (clipped){.tree = {.n_styles = 1}};
    for (int i = 0; i < ME_GROUP_COUNT; i++) {
        c->comm.size[i] = 1;
    }
    c->comm.size[ME_GROUP_TENSOR] = 2;
    c->comm.size[ME_GROUP_WORLD] = 4;
    c->comm.size[ME_GROUP_DATA_SHARD] = 2;
    for (uint64_t i = 0; i < 2; i++) {
        me_tensor *weight = me_keep(e, "weight", ME_CATEGORY_PARAMETER,
                                    ME_DTYPE_FLOAT32, ME_SHAPE(i + 1));
        weight->grad = me_keep(e, "grad", ME_CATEGORY_GRADIENT,
                               ME_DTYPE_FLOAT32, ME_SHAPE(i + 1));
        c->parameters[i] =
            (me_parameter){.tensor = weight, .kind = &kinds[i].tensor.kind};
        c->list[i] = &c->parameters[i];
    }
    c->config = (me_config){.torch = {.data_parallel = data_parallel},
                            .torch_job = {.tree = &c->tree}};
    c->loop = (me_loop){.e = e,
                        .config = &c->config,
                        .comm = &c->comm,
                        .nn = {.e = e, .comm = &c->comm},
                        .parameters = {.parameters = c->list, .count = 2}};
}

static void fini(clipped *c, me_test_events *events)
{
    me_grad_scaler_fini(&c->loop);
    for (int i = 0; i < 2; i++) {
        me_clear(events->e, &c->parameters[i].tensor->grad);
        me_clear(events->e, &c->parameters[i].tensor);
    }
    assert_int_equal(events->live, 0);
}

/* Squares of the norms, their sum over the ranks, its root. */
#define SUMS        "+8 +8 AllReduce:2 +8 -8 -8 "
/* The coefficient: sum, reciprocal, product, and what it is clamped to. */
#define COEFFICIENT "+4 +4 +4 -4 -4 +4 "

/* The summand is summed for its norm and once more to be multiplied; its norm,
 * which is whole, is divided to stand beside that of a part. */
static void test_clip__tensor_parallel(void **state)
{
    me_test_events *events = *state;
    clipped c;
    init(&c, events->e, ME_DATA_PARALLEL_NONE);
    (void)me_test_events_take(events);
    me_loop_clip_gradients(&c.loop);
    EXPECT_EVENTS(events,
                  "+4 AllReduce:1 +8 +4 +4 -4 -8 +4 +8 -4 " SUMS
                  "+4 -8 -8 -4 -4 " COEFFICIENT "+4 AllReduce:1 -4 -4 -4 -4");
    fini(&c, events);
}

/* fully_shard() has summed the summand; norms are summed over both dimensions
 * of the mesh, and the first sum goes after the second. */
static void test_clip__fully_shard(void **state)
{
    me_test_events *events = *state;
    clipped c;
    init(&c, events->e, ME_DATA_PARALLEL_FULLY_SHARD);
    (void)me_test_events_take(events);
    me_loop_clip_gradients(&c.loop);
    EXPECT_EVENTS(events, "+8 +4 +4 -8 +4 +8 -4 " SUMS SUMS
                          "-8 +4 -8 -8 -4 -4 " COEFFICIENT "-4 -4 -4");
    fini(&c, events);
}

static void count_collective(void *self, const me_collective_op *collective)
{
    int *told = self;
    told[collective->group]++;
}

/* Gradients of the host are clipped there; watchers are told what is summed over
 * shards, and over tensor ranks of as little as one part. */
static void test_clip__offloaded(void **state)
{
    me_test_events *events = *state;
    clipped c;
    init(&c, events->e, ME_DATA_PARALLEL_FULLY_SHARD);
    int told[ME_GROUP_COUNT] = {0};
    me_engine_hook(events->e,
                   (me_hooks){.collective = count_collective, .self = told});
    c.config.torch.cpu_offload = true;
    (void)me_test_events_take(events);
    me_loop_clip_gradients(&c.loop);
    EXPECT_EVENTS(events, "");
    assert_int_equal(told[ME_GROUP_DATA_SHARD], 1);
    assert_int_equal(told[ME_GROUP_TENSOR], 1);
    fini(&c, events);
}

static void test_clip__mixed_gradients_are_refused(void **state)
{
    me_test_events *events = *state;
    clipped c;
    init(&c, events->e, ME_DATA_PARALLEL_NONE);
    c.parameters[1].kind = NULL;
    me_loop_clip_gradients(&c.loop);
    assert_int_equal(me_engine_status(events->e, NULL), ME_ERR_CONFIG);
    fini(&c, events);
}

/* found_inf is the maximum over each dimension on which the first gradient is
 * not whole: here the shards alone, and without fully_shard() the summands. */
static void test_clip__found_inf(void **state)
{
    me_test_events *events = *state;
    const me_data_parallel wrappers[] = {ME_DATA_PARALLEL_FULLY_SHARD,
                                         ME_DATA_PARALLEL_NONE};
    for (int i = 0; i < 2; i++) {
        clipped c;
        init(&c, events->e, wrappers[i]);
        (void)me_test_events_take(events);
        me_grad_scaler_unscale(&c.loop);
        EXPECT_EVENTS(events, "+8 +8 -8 +4 -8 +4 +4 +4 "
                              "+4 AllReduce:1 -4 -4 -4 -4");
        fini(&c, events);
    }
}

/* DistributedDataParallel around a plan: what was a DTensor is clipped by nobody,
 * and found_inf is the rank's own, of local tensors. */
static void test_clip__ddp_around_a_plan(void **state)
{
    me_test_events *events = *state;
    clipped c;
    init(&c, events->e, ME_DATA_PARALLEL_DDP);
    (void)me_test_events_take(events);
    me_loop_clip_gradients(&c.loop);
    EXPECT_EVENTS(events, "");
    c.parameters[1].kind = NULL;
    me_loop_clip_gradients(&c.loop);
    EXPECT_EVENTS(events, "+4 +4 -4 +4 +4 -4 -4 " COEFFICIENT "-4 -4 -4");
    me_grad_scaler_unscale(&c.loop);
    EXPECT_EVENTS(events, "+8 +8 -8 +4 -8 +4 +4 +4 -4 -4 -4");
    fini(&c, events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_clip__tensor_parallel),
        ENGINE_TEST(test_clip__fully_shard),
        ENGINE_TEST(test_clip__offloaded),
        ENGINE_TEST(test_clip__mixed_gradients_are_refused),
        ENGINE_TEST(test_clip__found_inf),
        ENGINE_TEST(test_clip__ddp_around_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
