/**
 * @file
 * A trainer of one linear layer of 3 by 4 without bias, 24 bytes in bfloat16,
 * and a norm of 3, for tests of what surrounds a model.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_TRAIN_TRAINER_H
#define MEMEST_TESTS_UNIT_TRAIN_TRAINER_H

#include "nn/megatron/linear.h"
#include "nn/megatron/norm.h"
#include "support/model.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/finalize.h"
#include "train/megatron/trainer.h"

typedef struct test_trainer {
    test_model model;
    me_config config;
    me_megatron_spec spec;
    me_ddp ddp;
    me_trainer t;
    me_linear fc;
    me_norm norm;
} test_trainer;

/** @param world  ranks, all of them data-parallel */
static inline void test_trainer_init(test_trainer *r, int32_t world)
{
    *r = (test_trainer){.t = {.e = NULL}};
    test_model_init(&r->model, 1);
    r->model.comm.size[ME_GROUP_WORLD] = world;
    r->model.comm.size[ME_GROUP_DATA_CONTEXT] = world;
    r->config = r->model.config;
    r->config.train.grad_dtype = ME_DTYPE_FLOAT32;
    r->spec = (me_megatron_spec){
        .config = &r->config,
        .n_chunks = 1,
        .pipeline = {.ranks = 1, .microbatches = 1, .chunks = 1},
    };
    r->t = (me_trainer){
        .e = r->model.nn.e,
        .config = &r->config,
        .spec = &r->spec,
        .comm = &r->model.comm,
        .wrapper = &me_distributed_data_parallel,
        .ddp = &r->ddp,
        .is_last_microbatch = true,
    };
    me_nn nn = r->model.nn;
    nn.parameters = &r->t.parameters;
    r->t.nn = nn;
    r->fc = me_column_linear_create(
        &r->t.nn, &(me_linear_spec){.name = "fc", .inputs = 3, .outputs = 4});
    r->norm = me_norm_create(&r->t.nn, ME_NO_MODULE, "norm", 3);
    me_parameters_to_device(&r->t.nn);
    me_parameters_to_half(&r->t.nn);
}

static inline void test_trainer_fini(test_trainer *r)
{
    me_ddp_destroy(&r->t, &r->ddp);
    me_clear(r->t.e, &r->t.barrier_byte);
    me_parameter_list_fini(r->t.e, &r->t.parameters);
    test_model_fini(&r->model);
}

#endif /* MEMEST_TESTS_UNIT_TRAIN_TRAINER_H */
