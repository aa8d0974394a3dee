/**
 * @file
 * A layer of experts for tests of its modules, on the first of the ranks that share
 * them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_MOE_LAYER_H
#define MEMEST_TESTS_SUPPORT_MOE_LAYER_H

#include "nn/megatron/moe.h"
#include "support/model.h"

typedef struct test_layer {
    test_model m;
    me_tensor *leaf; /**< stands for what is before the layer */
    me_moe_state state;
    me_routing routing;
    me_moe_layer layer;
} test_layer;

static inline void test_layer_drop_grad(void *self, me_engine *e,
                                        me_tensor *parameter)
{
    (void)self;
    me_clear(e, &parameter->grad);
}

/**
 * Experts 5 wide in a model 8 wide, in iteration 0.
 *
 * @param ranks   over which experts are spread, and over which each is cut
 * @param counts  of the routing; NULL: all get the same
 */
static inline void test_layer_init(test_layer *t, uint64_t tokens,
                                   const me_moe_options *moe,
                                   const int32_t ranks[2], const char *counts)
{
    *t = (test_layer){.routing = {.imbalance = 1.0}};
    me_diag diag = {.status = ME_OK};
    test_model_init(&t->m, 1);
    const uint64_t local = moe->num_experts / (uint64_t)ranks[0];
    if (counts != NULL) {
        const uint32_t experts[] = {(uint32_t)local,
                                    (uint32_t)moe->num_experts};
        assert_int_equal(
            me_routing_read(counts, "counts", experts, &diag, &t->routing),
            ME_OK);
    }
    t->m.nn.moe = &t->state;
    t->m.config.model.seq_length = tokens;
    t->m.config.model.rank_seq_length = tokens;
    t->m.config.model.hidden_size = 8;
    t->m.config.model.activation = ME_ACTIVATION_SWIGLU;
    t->m.config.moe = *moe;
    t->m.nn.routing = &t->routing;
    t->m.config.model.num_layers = 1;
    t->m.config.parallel.expert = ranks[0];
    t->m.config.parallel.expert_tensor = ranks[1];
    t->m.comm.size[ME_GROUP_EXPERT] = ranks[0];
    t->m.comm.size[ME_GROUP_EXPERT_TENSOR] = ranks[1];
    t->m.comm.size[ME_GROUP_EXPERT_TENSOR_EXPERT] = ranks[0] * ranks[1];
    t->m.comm.expert_stride = 1;
    me_iteration(t->m.nn.e, 0);
    me_microbatch(t->m.nn.e, 0);
    me_moe_layer_create(&t->m.nn, ME_NO_MODULE, 0, &t->layer);
    me_parameters_to_device(&t->m.nn);
    me_parameters_to_half(&t->m.nn);
    me_tape_on_grad(t->m.nn.e, test_layer_drop_grad, NULL);
    t->leaf = me_test_leaf(t->m.nn.e, ME_SHAPE(tokens, 1, 8));
    t->leaf->parameter = (void *)t; /* only looked at */
}

static inline void test_layer_fini(test_layer *t)
{
    me_moe_layer_fini(t->m.nn.e, &t->layer);
    for (int i = 0; i < ME_ROUTER_LOSSES; i++) {
        me_clear(t->m.nn.e, &t->state.losses[i]);
    }
    me_routing_fini(&t->routing);
    test_model_fini(&t->m);
}

#endif /* MEMEST_TESTS_SUPPORT_MOE_LAYER_H */
