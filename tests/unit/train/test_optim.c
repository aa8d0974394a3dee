/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/layer.h"
#include "nn/torch/dtensor.h"
#include "support/events.h"
#include "support/test.h"
#include "tensor/hooks.h"
#include "train/optim/optim.h"

#include <stdio.h>

/* A group of three shards of 1, 2 and 3 elements: 4, 8 and 12 bytes. */
static void step_of(me_test_events *events, me_optimizer_kind kind,
                    me_step_group *group, me_tensor *tensor)
{
    static me_parameter parameters[3];
    for (uint32_t i = 0; i < group->count; i++) {
        parameters[i].tensor = tensor;
        group->shards[i].parameter = &parameters[i];
        group->shards[i].numel = i + 1;
    }
    me_optim_step(events->e, kind, group);
}

static void step(me_test_events *events, me_optimizer_kind kind,
                 me_step_group *group)
{
    step_of(events, kind, group, NULL);
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

/* Adam's decay goes on copies of the gradients, until the moments are made of
 * them: of all together, or of one until the next (torch/optim/adam.py). */
static void test_optim__adam_adds_decay(void **state)
{
    static const struct {
        me_optimizer_impl impl;
        const char *events;
    } cases[] = {
        {ME_OPTIMIZER_TORCH_FOREACH, "+4 +8 +12 -12 -8 -4 +4 +8 +12 -12 -8 -4"},
        {ME_OPTIMIZER_TORCH_FUSED, ""},
        {ME_OPTIMIZER_TORCH_FOR_LOOP, "+4 +4 +4 -4 -4 +8 +8 +8 -8 -4 "
                                      "-8 +12 +12 +12 -12 -8 -12 -12"},
    };

    me_test_events *events = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_shard_state shards[3] = {{.numel = 0}};
        me_step_group group = {.shards = shards,
                               .count = 3,
                               .impl = cases[i].impl,
                               .is_first_step = true,
                               .is_decayed = true,
                               .adds_decay = true};
        step(events, ME_OPTIMIZER_ADAM, &group);
        (void)me_test_events_take(events);
        group.is_first_step = false;
        step(events, ME_OPTIMIZER_ADAM, &group);
        EXPECT_EVENTS(events, cases[i].events);
        for (uint32_t k = 0; k < group.count; k++) {
            me_clear(events->e, &shards[k].step);
        }
        let_go(events, &group);
        (void)me_test_events_take(events);
    }
}

/* Fused it needs no memory but momentum; as a loop the decayed gradient of one
 * parameter, until momentum takes its name or the next gradient does
 * (torch/optim/sgd.py). */
static void test_optim__sgd_implementations(void **state)
{
    static const struct {
        me_optimizer_impl impl;
        bool has_momentum;
        const char *first;
        const char *next;
    } cases[] = {
        {ME_OPTIMIZER_TORCH_FUSED, false, "", ""},
        {ME_OPTIMIZER_TORCH_FUSED, true, "+4 +8 +12", ""},
        {ME_OPTIMIZER_TORCH_FOR_LOOP, false, "+4 -4 +8 -8 +12 -12",
         "+4 -4 +8 -8 +12 -12"},
        {ME_OPTIMIZER_TORCH_FOR_LOOP, true, "+4 +4 -4 +8 +8 -8 +12 +12 -12",
         "+4 -4 +8 -8 +12 -12"},
    };

    me_test_events *events = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_shard_state shards[3] = {{.numel = 0}};
        me_step_group group = {.shards = shards,
                               .count = 3,
                               .impl = cases[i].impl,
                               .is_first_step = true,
                               .is_decayed = true,
                               .has_momentum = cases[i].has_momentum};
        step(events, ME_OPTIMIZER_SGD, &group);
        EXPECT_EVENTS(events, cases[i].first);
        group.is_first_step = false;
        step(events, ME_OPTIMIZER_SGD, &group);
        EXPECT_EVENTS(events, cases[i].next);
        let_go(events, &group);
        (void)me_test_events_take(events);
    }
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

/** Two parameters that are DTensors on two ranks. */
typedef struct distributed {
    me_communicators comm;
    me_nn nn;
    me_tensor *tensors[2];
    me_parameter parameters[2];
    me_shard_state shards[2];
} distributed;

static const me_dparameter kinds[] = {
    {.tensor = {.kind = {.is_distributed = true},
                .layout = ME_DLAYOUT_REPLICATE},
     .gradient = ME_DLAYOUT_PARTIAL},
    {.tensor = {.kind = {.is_distributed = true}, .layout = ME_DLAYOUT_SHARD_0},
     .gradient = ME_DLAYOUT_REPLICATE},
};

/* A whole parameter whose gradient is a summand (4 bytes), and one that is cut
 * (8) whose gradient is whole (16). */
static void distributed_init(distributed *d, me_engine *e)
{
    *d = (distributed){.comm = {.size = {[ME_GROUP_TENSOR] = 2}}};
    d->nn = (me_nn){.e = e, .comm = &d->comm};
    for (uint64_t i = 0; i < 2; i++) {
        d->tensors[i] = me_empty(e, "p", ME_DTYPE_FLOAT32, ME_SHAPE(i + 1));
        d->tensors[i]->grad = me_keep(e, "grad", ME_CATEGORY_GRADIENT,
                                      ME_DTYPE_FLOAT32, ME_SHAPE(3 * i + 1));
        d->parameters[i] = (me_parameter){.tensor = d->tensors[i],
                                          .kind = &kinds[i].tensor.kind};
        d->shards[i] =
            (me_shard_state){.parameter = &d->parameters[i], .numel = i + 1};
    }
}

static void distributed_fini(distributed *d, me_test_events *events)
{
    for (int i = 0; i < 2; i++) {
        me_clear(events->e, &d->shards[i].moments[0]);
        me_clear(events->e, &d->tensors[i]->grad);
        me_drop(events->e, d->tensors[i]);
    }
    assert_int_equal(events->live, 0);
}

/* Of a list the summand is summed, and the parameter that is cut gathered (16):
 * both sums, and the momentum that takes their place, are whole. */
static void test_optim__decay_of_dtensors(void **state)
{
    me_test_events *events = *state;
    distributed d;
    distributed_init(&d, events->e);
    me_step_group group = {.shards = d.shards,
                           .count = 2,
                           .nn = &d.nn,
                           .is_first_step = true,
                           .is_decayed = true,
                           .has_momentum = true};

    (void)me_test_events_take(events);
    me_optim_step(events->e, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 AllReduce:1 +16 AllGather:2 +4 +16 -16 -4 "
                          "+4 +16 -16 -4 +8 -8");
    group.is_first_step = false;
    me_optim_step(events->e, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 AllReduce:1 +16 AllGather:2 +4 +16 -16 -4 "
                          "-16 -4 +8 -8");
    distributed_fini(&d, events);
}

/* Of one tensor the sum lies as the operand that is cut, else as the gradient:
 * a whole parameter is divided into summands (4), and a whole gradient cut
 * (8). */
static void test_optim__decay_of_one_dtensor(void **state)
{
    me_test_events *events = *state;
    distributed d;
    distributed_init(&d, events->e);
    me_step_group group = {.shards = d.shards,
                           .count = 2,
                           .nn = &d.nn,
                           .impl = ME_OPTIMIZER_TORCH_FOR_LOOP,
                           .is_first_step = true,
                           .is_decayed = true,
                           .has_momentum = true};

    (void)me_test_events_take(events);
    me_optim_step(events->e, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 +4 -4 +4 -4 +4 AllReduce:1 -4 "
                          "+8 +8 -8 +8 -8");
    distributed_fini(&d, events);
}

/* Momentum lies as gradients do: summands are all-reduced for each operation
 * that takes them, a whole one is cut where it meets its parameter. */
static void test_optim__sgd_of_dtensors(void **state)
{
    me_test_events *events = *state;
    distributed d;
    distributed_init(&d, events->e);
    me_step_group group = {.shards = d.shards,
                           .count = 2,
                           .nn = &d.nn,
                           .is_first_step = true,
                           .has_momentum = true};

    (void)me_test_events_take(events);
    me_optim_step(events->e, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 +16 +4 AllReduce:1 +8 -8 -4");
    group.is_first_step = false;
    me_optim_step(events->e, ME_OPTIMIZER_SGD, &group);
    EXPECT_EVENTS(events, "+4 AllReduce:1 -4 "
                          "+4 AllReduce:1 +4 AllReduce:1 -4 -4 "
                          "+4 AllReduce:1 +8 -8 -4");
    distributed_fini(&d, events);
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

/** Names of operations, with spaces between them. */
typedef struct told {
    char text[512];
    size_t length;
} told;

static void hear(void *self, const me_operation *operation)
{
    told *t = self;
    const int n = snprintf(t->text + t->length, sizeof t->text - t->length,
                           "%s%s", t->length == 0 ? "" : " ", operation->name);
    t->length += (size_t)n;
}

/* What the dispatcher of PyTorch 2.11 sees of SGD with decay and momentum, by a
 * TorchDispatchMode around its first and its second step. */
static void test_optim__tells_operations_of_sgd(void **state)
{
    static const struct {
        me_optimizer_impl impl;
        const char *first;
        const char *second;
    } cases[] = {
        {ME_OPTIMIZER_TORCH_FOR_LOOP,
         "add.Tensor clone.default add_.Tensor add.Tensor clone.default "
         "add_.Tensor",
         "add.Tensor mul_.Tensor add_.Tensor add_.Tensor add.Tensor "
         "mul_.Tensor add_.Tensor add_.Tensor"},
        {ME_OPTIMIZER_TORCH_FUSED,
         "empty_like.default empty_like.default _fused_sgd_.default",
         "_fused_sgd_.default"},
    };

    me_test_events *events = *state;
    told t = {.length = 0};
    me_engine_hook(events->e, (me_hooks){.operation = hear, .self = &t});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_shard_state shards[2] = {{.numel = 0}};
        me_step_group group = {.shards = shards,
                               .count = 2,
                               .impl = cases[i].impl,
                               .is_first_step = true,
                               .is_decayed = true,
                               .has_momentum = true};
        t.length = 0;
        step(events, ME_OPTIMIZER_SGD, &group);
        assert_string_equal(t.text, cases[i].first);
        group.is_first_step = false;
        t.length = 0;
        step(events, ME_OPTIMIZER_SGD, &group);
        assert_string_equal(t.text, cases[i].second);
        let_go(events, &group);
    }
}

static void count_query(void *self, const me_tensor *x)
{
    (void)x;
    ++*(uint32_t *)self;
}

/** The parameter twice, its gradient, and each state that is there; foreach Adam
 *  once more for a counter. As PyTorch's modes see it of fake tensors. */
static void test_optim__asks_devices_to_make_groups(void **state)
{
    static const struct {
        me_optimizer_kind kind;
        me_optimizer_impl impl;
        uint32_t first;
        uint32_t next;
    } cases[] = {
        {ME_OPTIMIZER_ADAM, ME_OPTIMIZER_TORCH_FOREACH, 3 * 6 + 1, 3 * 6 + 1},
        {ME_OPTIMIZER_ADAM, ME_OPTIMIZER_TORCH_FUSED, 3 * 6, 3 * 6},
        {ME_OPTIMIZER_ADAM, ME_OPTIMIZER_TORCH_FOR_LOOP, 0, 0},
        {ME_OPTIMIZER_SGD, ME_OPTIMIZER_TORCH_FOREACH, 3 * 3, 3 * 4},
        {ME_OPTIMIZER_SGD, ME_OPTIMIZER_TORCH_FOR_LOOP, 0, 0},
    };

    me_test_events *events = *state;
    uint32_t n = 0;
    me_engine_hook(events->e,
                   (me_hooks){.device_query = count_query, .self = &n});
    me_tensor gradient = {.dtype = ME_DTYPE_FLOAT32};
    me_tensor tensor = {.dtype = ME_DTYPE_FLOAT32, .grad = &gradient};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_shard_state shards[3] = {{.numel = 0}};
        me_step_group group = {.shards = shards,
                               .count = 3,
                               .impl = cases[i].impl,
                               .has_plain_tensors = true,
                               .is_first_step = true,
                               .has_momentum = true};
        n = 0;
        step_of(events, cases[i].kind, &group, &tensor);
        assert_int_equal(n, cases[i].first);
        group.is_first_step = false;
        n = 0;
        step_of(events, cases[i].kind, &group, &tensor);
        assert_int_equal(n, cases[i].next);
        for (uint32_t k = 0; k < group.count; k++) {
            me_clear(events->e, &shards[k].step);
        }
        let_go(events, &group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_optim__adam),
        ENGINE_TEST(test_optim__sgd),
        ENGINE_TEST(test_optim__adam_adds_decay),
        ENGINE_TEST(test_optim__sgd_implementations),
        ENGINE_TEST(test_optim__sgd_without_decay),
        ENGINE_TEST(test_optim__decay_of_dtensors),
        ENGINE_TEST(test_optim__decay_of_one_dtensor),
        ENGINE_TEST(test_optim__sgd_of_dtensors),
        ENGINE_TEST(test_optim__tells_operations_of_sgd),
        ENGINE_TEST(test_optim__asks_devices_to_make_groups),
        ENGINE_TEST(test_optim__an_empty_group),
    };
    return cmocka_run_group_tests_name("optim", tests, NULL, NULL);
}
