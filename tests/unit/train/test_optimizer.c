/* SPDX-License-Identifier: BSD-3-Clause */
/* Megatron-LM's optimizers with Transformer Engine's kernels, event by event:
 * as measured jobs have it. */
#include "program.h"
#include "trainer.h"

#include <stdio.h>

/** A rank of two of them: a matrix of 12 elements and a norm of 3. */
static void init(test_trainer *r, me_optimizer_kind kind)
{
    test_trainer_init(r, 1);
    r->config.optimizer.kind = kind;
    r->config.impl.optimizer = ME_OPTIMIZER_FUSED;
    r->config.optimizer.clip_grad = 1;
    r->config.optimizer.weight_decay = 0.1;
    r->config.optimizer.sgd_momentum = 0.9;
    me_ddp_create(&r->t, 0);
    (void)me_test_events_take(&r->model.events);
    me_optimizer_create(&r->t);
}

static void fini(test_trainer *r)
{
    me_optimizer_destroy(&r->t);
    me_clear(r->t.e, &r->t.grad_norm);
    test_trainer_fini(r);
}

/** The events after the gathering of parameter groups, which is one list of the
 *  reference's 4.4. */
#define GATHERED                                                               \
    "+46 +8 +8 +8 AllGather:1 -8 +46 +46 AllGather:46 -46 -46 -8 -46 -8"

/** zero, flag, blocks, norm; square, total: all but the total go. */
#define NORM "+4 +4 +1280 +4 -1280 +4 -4 AllReduce:1 +4 -4 -4 -4 "

/** norm + 1e-6, reciprocal, coefficient; the kernel's flag. */
#define CLIP "+4 +4 +4 -4 -4 +4 -4 -4"

/* The kernels' flag before the loss scale; both moments of a parameter before
 * those of the next; a later step makes nothing. */
static void test_optimizer__fused_adam(void **state)
{
    (void)state;
    test_trainer r;
    init(&r, ME_OPTIMIZER_ADAM);
    EXPECT_EVENTS(&r.model.events,
                  GATHERED " +4 +4 +24 +48 -24 +6 +12 -6 " GATHERED);
    assert_true(me_optimizer_step(&r.t));
    EXPECT_EVENTS(&r.model.events, NORM "+4 -4 " CLIP " +48 +48 +12 +12");
    r.t.is_last_microbatch = true;
    me_clear(r.t.e, &r.t.grad_norm);
    (void)me_test_events_take(&r.model.events);
    assert_true(me_optimizer_step(&r.t));
    EXPECT_EVENTS(&r.model.events, NORM CLIP);
    fini(&r);
}

/* FusedSGD has one momentum of each parameter, be it 0. */
static void test_optimizer__fused_sgd(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        test_trainer r;
        init(&r, ME_OPTIMIZER_SGD);
        r.config.optimizer.sgd_momentum = i == 0 ? 0.9 : 0;
        (void)me_test_events_take(&r.model.events);
        assert_true(me_optimizer_step(&r.t));
        EXPECT_EVENTS(&r.model.events, NORM "+4 -4 " CLIP " +48 +12");
        fini(&r);
    }
}

/* Without clipping there is a norm all the same. */
static void test_optimizer__without_clipping(void **state)
{
    (void)state;
    test_trainer r;
    init(&r, ME_OPTIMIZER_ADAM);
    r.config.optimizer.clip_grad = 0;
    (void)me_test_events_take(&r.model.events);
    assert_true(me_optimizer_step(&r.t));
    EXPECT_EVENTS(&r.model.events, NORM "+48 +48 +12 +12");
    fini(&r);
}

/* The norm stays on the device until the step's two statistics are shared. */
static void test_optimizer__norm_stays(void **state)
{
    (void)state;
    test_trainer r;
    init(&r, ME_OPTIMIZER_ADAM);
    assert_true(me_optimizer_step(&r.t));
    assert_non_null(r.t.grad_norm);
    (void)me_test_events_take(&r.model.events);
    static me_gpt_spec middle;
    r.spec.chunks = &middle;
    me_reduce_losses(&r.t);
    EXPECT_EVENTS(&r.model.events, "+4 -4 AllReduce:1 +4 -4 AllReduce:1 -4");
    assert_null(r.t.grad_norm);
    fini(&r);
}

/* A rank all of whose gradients are counted by another has a sum of zeros. */
static void test_optimizer__nothing_counts(void **state)
{
    (void)state;
    test_trainer r;
    init(&r, ME_OPTIMIZER_ADAM);
    r.model.comm.index[ME_GROUP_TENSOR] = 1;
    for (uint32_t i = 0; i < r.t.parameters.count; i++) {
        r.t.parameters.parameters[i]->is_tensor_sharded = false;
    }
    (void)me_test_events_take(&r.model.events);
    assert_true(me_optimizer_step(&r.t));
    EXPECT_EVENTS(&r.model.events,
                  "+4 AllReduce:1 +4 -4 +4 -4 " CLIP " +48 +48 +12 +12");
    fini(&r);
}

static bool takes_fused(const char *command)
{
    me_config *config = me_config_create();
    assert_non_null(config);
    read_command(config, command);
    const bool is_fused = config->impl.optimizer == ME_OPTIMIZER_FUSED;
    me_config_destroy(config);
    return is_fused;
}

/* Who can import Transformer Engine takes its optimizers: all launch commands
 * but those that ask for the local layers. */
static void test_optimizer__of_a_launch(void **state)
{
    (void)state;
    static const char job[] = "pretrain_gpt.py --num-layers 1 "
                              "--hidden-size 64 --num-attention-heads 1 ";

    static const struct {
        const char *flags;
        bool is_fused;
    } cases[] = {
        {"", true},
        {"--transformer-impl transformer_engine", true},
        {"--transformer-impl local", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[256];
        (void)snprintf(command, sizeof command, "%s%s", job, cases[i].flags);
        assert_int_equal(takes_fused(command), cases[i].is_fused);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer__fused_adam),
        cmocka_unit_test(test_optimizer__fused_sgd),
        cmocka_unit_test(test_optimizer__without_clipping),
        cmocka_unit_test(test_optimizer__norm_stays),
        cmocka_unit_test(test_optimizer__nothing_counts),
        cmocka_unit_test(test_optimizer__of_a_launch),
    };
    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
