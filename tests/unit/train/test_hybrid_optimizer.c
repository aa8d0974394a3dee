/* SPDX-License-Identifier: BSD-3-Clause */
/* An optimizer of which the host steps a part: what its memory holds. */
#include "program.h"
#include "trainer.h"

/** A rank of a matrix of 12 elements and a norm of 3, all of which the host
 *  steps. */
static void init(test_trainer *r)
{
    test_trainer_init(r, 1);
    r->config.optimizer.kind = ME_OPTIMIZER_ADAM;
    r->config.impl.optimizer = ME_OPTIMIZER_FUSED;
    r->config.train.params_dtype = ME_DTYPE_BFLOAT16;
    me_optimizer_config *o = &r->config.optimizer;
    o->precision_aware = true;
    o->exp_avg_dtype = ME_DTYPE_FLOAT32;
    o->exp_avg_sq_dtype = ME_DTYPE_FLOAT32;
    o->main_params_dtype = ME_DTYPE_FLOAT32;
    o->cpu_offload = true;
    o->offload_fraction = 1;
    o->pin_cpu_grads = true;
    me_ddp_create(&r->t, 0);
    me_optimizer_create(&r->t);
}

static void fini(test_trainer *r)
{
    me_optimizer_destroy(&r->t);
    me_clear(r->t.e, &r->t.grad_norm);
    test_trainer_fini(r);
}

/* Each parameter passes through a pinned copy in bfloat16, 24 and 6 bytes in
 * blocks of 32 and 8, which serve the second build as well; what stays is in
 * float32, 60 bytes of whole parameters and 60 of shards, the former until they
 * are collected. */
static void test_hybrid_optimizer__builds(void **state)
{
    (void)state;
    test_trainer r;
    init(&r);
    const me_host_memory *host = me_engine_host(r.t.e);
    assert_int_equal(host->bytes[ME_HOST_PARAMETERS], 120);
    assert_int_equal(host->bytes[ME_HOST_GRADIENTS], 0);
    assert_int_equal(host->pinned_bytes, 40);
    assert_int_equal(host->peak_bytes, 160);
    fini(&r);
}

/* Gradients are pinned, 48 bytes in a block of 64 and 12 in one of 16; moments
 * and counters, 128 bytes, are not. Whole parameters have gone by then. The next
 * step makes nothing. */
static void test_hybrid_optimizer__steps(void **state)
{
    (void)state;
    for (int pins = 0; pins < 2; pins++) {
        test_trainer r;
        init(&r);
        r.config.optimizer.clip_grad = 0;
        r.config.optimizer.pin_cpu_grads = pins == 1;
        for (int step = 0; step < 2; step++) {
            me_clear(r.t.e, &r.t.grad_norm);
            assert_true(me_optimizer_step(&r.t));
            const me_host_memory *host = me_engine_host(r.t.e);
            assert_int_equal(host->bytes[ME_HOST_PARAMETERS], 120);
            assert_int_equal(host->bytes[ME_HOST_GRADIENTS], 60);
            assert_int_equal(host->bytes[ME_HOST_OPTIMIZER_STATE], 128);
            assert_int_equal(host->pinned_bytes, pins == 1 ? 40 + 80 : 40);
            assert_int_equal(host->peak_bytes,
                             60 + 128 + (pins == 1 ? 40 + 80 : 40 + 60));
        }
        fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hybrid_optimizer__builds),
        cmocka_unit_test(test_hybrid_optimizer__steps),
    };
    return cmocka_run_group_tests_name("hybrid_optimizer", tests, NULL, NULL);
}
