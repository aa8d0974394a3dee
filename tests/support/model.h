/**
 * @file
 * What modules of a model are built with in tests: an engine that writes its
 * events down, one rank of a small model, and tensor ranks that answer at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_MODEL_H
#define MEMEST_TESTS_SUPPORT_MODEL_H

#include "nn/nn.h"
#include "support/backward.h"
#include "support/test.h"

typedef struct test_model {
    me_test_events events;
    me_config config;
    me_communicators comm;
    me_parameter_list parameters;
    me_nn nn;
} test_model;

/** A model in bfloat16 without biases and dropout on @p tensor ranks. */
static inline void test_model_init(test_model *m, int32_t tensor)
{
    *m = (test_model){
        .config =
            {
                .model =
                    {
                        .seq_length = 4,
                        .rank_seq_length = 4,
                        .normalization = ME_NORMALIZATION_RMS_NORM,
                        .activation = ME_ACTIVATION_GELU,
                        .position_embedding = ME_POSITION_NONE,
                    },
                .parallel = {.tensor = tensor},
                .train = {.micro_batch_size = 1,
                          .torch_compile = true,
                          .params_dtype = ME_DTYPE_BFLOAT16},
                .impl = {.core_attention = ME_CORE_ATTENTION_SDPA_FLASH},
            },
    };
    for (int i = 0; i < ME_GROUP_COUNT; i++) {
        m->comm.size[i] = 1;
    }
    m->comm.size[ME_GROUP_TENSOR] = tensor;
    me_test_events_init(&m->events);
    m->nn = (me_nn){
        .e = m->events.e,
        .config = &m->config,
        .comm = &m->comm,
        .parameters = &m->parameters,
    };
}

static inline void test_model_fini(test_model *m)
{
    assert_true(me_engine_is_ok(m->events.e));
    me_parameter_list_fini(m->events.e, &m->parameters);
    me_test_events_fini(&m->events);
}

#endif /* MEMEST_TESTS_SUPPORT_MODEL_H */
