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

/** Before the first clipping: no rank has gradients with a norm apart. */
#define AGREED "+4 AllReduce:1 -4 "

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
    EXPECT_EVENTS(&r.model.events, NORM AGREED CLIP " +48 +48 +12 +12");
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
        EXPECT_EVENTS(&r.model.events, NORM AGREED CLIP " +48 +12");
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

/* Of each gradient a mask, its sum, and what is left; the total takes the name of
 * the one before. Shared as the norm is (from the source). */
static void test_optimizer__zeros(void **state)
{
    (void)state;
    test_trainer r;
    init(&r, ME_OPTIMIZER_ADAM);
    r.config.optimizer.log_num_zeros_in_grad = true;
    (void)me_test_events_take(&r.model.events);
    assert_true(me_optimizer_step(&r.t));
    EXPECT_EVENTS(&r.model.events, NORM AGREED CLIP
                  " +8 +12 +8 +96 -96 -12 +8 -8 +8 -8 "
                  "+3 +8 +24 -24 -3 +8 -8 -8 +8 -8 AllReduce:1 -8 -8 "
                  "+48 +48 +12 +12");
    static me_gpt_spec middle;
    r.spec.chunks = &middle;
    me_reduce_losses(&r.t);
    EXPECT_EVENTS(&r.model.events, "+4 -4 AllReduce:1 +4 -4 AllReduce:1 -4 "
                                   "+4 -4 AllReduce:1");
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
                  "+4 AllReduce:1 +4 -4 " AGREED CLIP " +48 +48 +12 +12");
    fini(&r);
}

/* A rank without experts in a job that spreads them, as a pipeline's rank may be:
 * its keys are fewer than those of others, it has an optimizer of nothing whose
 * norm is that of its group and whose gradients are not clipped. */
static void test_optimizer__no_experts_here(void **state)
{
    static const bool is_moe_layer[] = {false, true};
    (void)state;
    test_trainer r;
    test_trainer_init(&r, 1);
    r.config.optimizer.clip_grad = 1;
    r.config.model.num_layers = 2;
    r.config.moe.num_experts = 4;
    r.config.parallel.expert = 2;
    r.spec.is_moe_layer = is_moe_layer;
    me_ddp_create(&r.t, 0);
    (void)me_test_events_take(&r.model.events);
    me_optimizer_create(&r.t);
#define GATHERED_FEWER                                                         \
    "+46 +8 +8 +8 AllGather:1 -8 +50 -46 +50 +50 AllGather:50 -50 -50 -8 -50 " \
    "-8"
    EXPECT_EVENTS(&r.model.events, GATHERED_FEWER
                  " +4 +24 +48 -24 +6 +12 -6 " GATHERED_FEWER " +4");
    assert_true(me_optimizer_step(&r.t));
    const char *events = me_test_events_take(&r.model.events);
    assert_non_null(strstr(events, "AllReduce:1"));
    assert_non_null(strstr(strstr(events, "AllReduce:1") + 1, "AllReduce:1"));
    fini(&r);
}

/** A rank whose optimizer is precision-aware, after the first step. The matrix
 *  is stepped before the norm. */
static void init_aware(test_trainer *r, me_dtype params_dtype,
                       const me_dtype dtypes[ME_ADAM_STATES])
{
    init(r, ME_OPTIMIZER_ADAM);
    me_optimizer_destroy(&r->t);
    r->config.train.params_dtype = params_dtype;
    r->config.train.has_loss_scale = params_dtype == ME_DTYPE_FLOAT16;
    me_optimizer_config *o = &r->config.optimizer;
    o->precision_aware = true;
    o->exp_avg_dtype = dtypes[ME_ADAM_EXP_AVG];
    o->exp_avg_sq_dtype = dtypes[ME_ADAM_EXP_AVG_SQ];
    o->main_params_dtype = dtypes[ME_ADAM_MASTER];
    (void)me_test_events_take(&r->model.events);
    me_optimizer_create(&r->t);
}

/** Extremes, their absolute maximum; the inverse of FP8's scale. */
#define EXTREMES   "+4 +4 +4 +4 -4 "
#define SCALED_FP8 EXTREMES "+4 +4 -4 -4 -4 -4 -4 "

/** As where(scale > 0, 1 / scale, 0) makes it for float16. */
#define SCALED_FP16 EXTREMES "+1 +4 +4 +4 -4 -1 -4 -4 -4 -4 -4 "

/** A moment in FP8 of 12, and of 3 elements. */
#define FP8_OF_12 "+12 +4 +4 +4 +12 +12 +48 -48 +4 -12 "
#define FP8_OF_3  "+3 +4 +4 +4 +3 +3 +12 -12 +4 -3 "

/* What one step and the next one make: states, each with its scale; copies of
 * what the kernel cannot read, which go when the next group's are there, second
 * moments first. */
static const struct {
    me_dtype params_dtype;
    me_dtype dtypes[ME_ADAM_STATES];
    const char *first;
    const char *next;
} aware_cases[] = {
    {ME_DTYPE_BFLOAT16,
     {ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32},
     "+48 +48 +24 +12 +12 +6",
     ""},
    {ME_DTYPE_BFLOAT16,
     {ME_DTYPE_BFLOAT16, ME_DTYPE_BFLOAT16, ME_DTYPE_FLOAT32},
     "+24 +4 +24 +4 +24 +6 +4 +6 +4 +6",
     ""},
    {ME_DTYPE_BFLOAT16,
     {ME_DTYPE_UINT8, ME_DTYPE_UINT8, ME_DTYPE_FLOAT32},
     FP8_OF_12 FP8_OF_12
     "+24 +48 +48 +4 " SCALED_FP8 "+4 -4 " SCALED_FP8 FP8_OF_3 FP8_OF_3
     "+6 +12 +12 -48 -48 +4 -4 " SCALED_FP8 "+4 -4 " SCALED_FP8 "-12 -12",
     "+48 +48 +4 -4 " SCALED_FP8 "+4 -4 " SCALED_FP8
     "+12 +12 -48 -48 +4 -4 " SCALED_FP8 "+4 -4 " SCALED_FP8 "-12 -12"},
    {ME_DTYPE_BFLOAT16, /* from the source, as those below */
     {ME_DTYPE_BFLOAT16, ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32},
     "+24 +4 +48 +24 +48 +24 -24 +6 +4 +12 +6 +12 -48 +6 -6 -12",
     "+48 +24 -24 +12 -48 +6 -6 -12"},
    {ME_DTYPE_BFLOAT16,
     {ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT16},
     "+48 +48 +24 +4 +24 +48 -24 +4 " SCALED_FP16 "-48 +48 " SCALED_FP16
     "+12 +12 +6 +4 +6 +12 -6 " SCALED_FP16 "-12 +12 -48 " SCALED_FP16 "-12",
     "+48 " SCALED_FP16 "+12 -48 " SCALED_FP16 "-12"},
    {ME_DTYPE_FLOAT16,
     {ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32},
     "+48 +48 +48 +24 +48 -24 -48 +12 +12 +12 +6 +12 -6 -12",
     ""},
};

static void test_optimizer__precision_aware(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof aware_cases / sizeof aware_cases[0]; i++) {
        test_trainer r;
        init_aware(&r, aware_cases[i].params_dtype, aware_cases[i].dtypes);
        const int n_constants =
            aware_cases[i].params_dtype == ME_DTYPE_FLOAT16 ? 3 : 1;
        EXPECT_EVENTS(&r.model.events, n_constants == 1
                                           ? GATHERED " +4 +4 " GATHERED
                                           : GATHERED " +4 +4 +4 +4 " GATHERED);
        const me_frame frame = me_enter(r.t.e);
        me_optimizer *o = &r.t.optimizers[0];
        for (int step = 0; step < 2; step++) {
            const me_step_group groups[2] = {
                {.shards = o->shards,
                 .count = 1,
                 .impl = ME_OPTIMIZER_FUSED,
                 .is_first_step = step == 0,
                 .aware = &o->aware},
                {.shards = o->shards + 1,
                 .count = 1,
                 .impl = ME_OPTIMIZER_FUSED,
                 .is_first_step = step == 0,
                 .aware = &o->aware},
            };
            me_optim_step(r.t.e, ME_OPTIMIZER_ADAM, &groups[0]);
            me_optim_step(r.t.e, ME_OPTIMIZER_ADAM, &groups[1]);
            me_precision_aware_end(r.t.e, &o->aware);
            EXPECT_EVENTS(&r.model.events, step == 0 ? aware_cases[i].first
                                                     : aware_cases[i].next);
        }
        me_leave(r.t.e, frame, NULL);
        fini(&r);
    }
}

/* Its gradients are clipped as they are. */
static void test_optimizer__precision_aware_gradients(void **state)
{
    static const me_dtype dtypes[ME_ADAM_STATES] = {
        ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32};

    (void)state;
    test_trainer r;
    init_aware(&r, ME_DTYPE_BFLOAT16, dtypes);
    r.config.train.grad_dtype = ME_DTYPE_BFLOAT16;
    (void)me_test_events_take(&r.model.events);
    assert_true(me_optimizer_step(&r.t));
    EXPECT_EVENTS(&r.model.events, NORM AGREED CLIP " +48 +48 +24 +12 +12 +6");
    assert_int_equal(me_step_grad_dtype(&r.t), ME_DTYPE_BFLOAT16);
    fini(&r);
}

/* The host steps the matrix, which alone is more than half of all elements: its
 * parameter goes there and comes back by way of float32. The device has a main
 * parameter of the norm and its moments. Whole parameters are prepared before
 * the rank's shards are. */
static void test_optimizer__on_the_host(void **state)
{
    static const struct {
        double fraction;
        me_dtype grad_dtype;
        const char *whole;
        const char *shards;
        const char *first;
        const char *next;
    } cases[] = {
        {1.0, ME_DTYPE_FLOAT32, " +24 -24 +6 -6 ", "+24 -24 +6 -6 ",
         "+48 -48 +12 -12", "+48 -48 +12 -12"},
        {0.5, ME_DTYPE_FLOAT32, " +24 -24 +6 +12 -6 +4 ",
         "+24 -24 +6 +12 -6 +4 ", "-12 -4 +12 +12 +48 -48", "+48 -48"},
        {0.5, ME_DTYPE_BFLOAT16, " +24 -24 +6 +12 -6 +4 ",
         "+24 -24 +6 +12 -6 +4 ", "-12 -4 +12 +48 -48 +12 +12 +48 -48",
         "+12 -12 +48 -48 +48 -48"},
        {0.0, ME_DTYPE_FLOAT32, " +24 +48 -24 +6 +12 -6 +4 ",
         "+24 +48 -24 +6 +12 -6 +4 ", "-12 -48 -4 +48 +48 +12 +12", ""},
    };

    static const me_dtype dtypes[ME_ADAM_STATES] = {
        ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32, ME_DTYPE_FLOAT32};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_trainer r;
        init_aware(&r, ME_DTYPE_BFLOAT16, dtypes);
        me_optimizer_destroy(&r.t);
        r.config.optimizer.cpu_offload = true;
        r.config.optimizer.offload_fraction = cases[i].fraction;
        r.config.train.grad_dtype = cases[i].grad_dtype;
        (void)me_test_events_take(&r.model.events);
        me_optimizer_create(&r.t);
        char expected[1024];
        (void)snprintf(expected, sizeof expected, GATHERED "%s+4 %s" GATHERED,
                       cases[i].whole, cases[i].shards);
        EXPECT_EVENTS(&r.model.events, expected);
        r.config.optimizer.clip_grad = 0;
        for (int step = 0; step < 2; step++) {
            me_clear(r.t.e, &r.t.grad_norm);
            (void)me_test_events_take(&r.model.events);
            assert_true(me_optimizer_step(&r.t));
            (void)snprintf(expected, sizeof expected, NORM "%s",
                           step == 0 ? cases[i].first : cases[i].next);
            expected[strlen(expected) -
                     (expected[strlen(expected) - 1] == ' ')] = '\0';
            EXPECT_EVENTS(&r.model.events, expected);
        }
        fini(&r);
    }
}

/** What the matrix, a word embedding, and the norm, one of queries, come to. */
typedef struct grouped {
    bool has_decoupled_lr;
    bool has_decoupled_min_lr;
    bool decays_qk_norm;
    bool is_expert; /**< the norm */
    const char *gathered;
    const char *stepped;
} grouped;

#define GATHERED_LONGER(own, all)                                              \
    "+" own " +8 +8 +8 AllGather:1 -8 +" all " -" own " +" all " +" all        \
    " AllGather:" all " -" all " -" all " -8 -" all " -8"

/* In FP8 FusedAdam does if the host steps or main parameters have 16 bits. */
static void test_optimizer__who_holds_main_parameters(void **state)
{
    static const struct {
        me_dtype main_params_dtype;
        bool is_on_host;
        bool is_held;
    } cases[] = {
        {ME_DTYPE_FLOAT32, false, false},
        {ME_DTYPE_FLOAT32, true, true},
        {ME_DTYPE_FLOAT16, false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_config *config = me_config_create();
        assert_non_null(config);
        config->fp8.format = ME_FP8_HYBRID;
        config->fp8.recipe = ME_FP8_TENSORWISE;
        config->optimizer.precision_aware = true;
        config->optimizer.main_params_dtype = cases[i].main_params_dtype;
        config->optimizer.cpu_offload = cases[i].is_on_host;
        assert_int_equal(me_adam_holds_main_parameters(config),
                         cases[i].is_held);
        me_config_destroy(config);
    }
}

/* Word embeddings and output layer come after the other matrices where they have
 * a learning rate of their own, and before vectors. Keys of groups are pickled:
 * [((("max_lr", 5e-4), ("min_lr", 5e-5)), False), ((("wd_mult", 0.0),), False)]
 * takes 87 bytes, and of experts' vectors 18 beside others'. A rank that has
 * fewer than another makes room for its. */
static void test_optimizer__groups(void **state)
{
    static const grouped cases[] = {
        {true, true, false, false, GATHERED_LONGER("87", "91"),
         "+48 +48 +12 +12"},
        {true, false, false, false, GATHERED_LONGER("67", "71"),
         "+48 +48 +12 +12"},
        {true, true, true, false, GATHERED_LONGER("65", "91"),
         "+12 +12 +48 +48"},
        {false, false, false, true, GATHERED_LONGER("46", "64"), NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_trainer r;
        init(&r, ME_OPTIMIZER_ADAM);
        me_optimizer_destroy(&r.t);
        r.config.optimizer.decoupled_lr = cases[i].has_decoupled_lr;
        r.config.optimizer.decoupled_min_lr = cases[i].has_decoupled_min_lr;
        r.config.optimizer.apply_wd_to_qk_layernorm = cases[i].decays_qk_norm;
        r.config.optimizer.clip_grad = 0;
        r.norm.weight->is_qk_norm = true;
        r.norm.weight->is_expert = cases[i].is_expert;
        r.fc.weight->is_embedding_or_output = true;
        (void)me_test_events_take(&r.model.events);
        me_optimizer_create(&r.t);
        const char *events = me_test_events_take(&r.model.events);
        assert_memory_equal(events, cases[i].gathered,
                            strlen(cases[i].gathered));
        if (cases[i].stepped != NULL) {
            char expected[256];
            (void)snprintf(expected, sizeof expected, NORM "%s",
                           cases[i].stepped);
            assert_true(me_optimizer_step(&r.t));
            EXPECT_EVENTS(&r.model.events, expected);
        }
        fini(&r);
    }
}

/* Maximal update parametrisation: Adam steps matrices of layers with a rate and an
 * eps of their own, behind what else has weight decay, SGD vectors and embeddings.
 * [((("eps", 1e-8), ("max_lr", 2.5e-5), ("min_lr", 1e-6)), False), ((("wd_mult",
 * 0.0),), False)] takes 104 bytes. */
static void test_optimizer__groups_of_widths(void **state)
{
    static const struct {
        me_optimizer_kind kind;
        bool is_embedding;
        uint64_t base_hidden_size;
        const char *gathered;
    } cases[] = {
        {ME_OPTIMIZER_ADAM, false, 1, GATHERED_LONGER("104", "108")},
        {ME_OPTIMIZER_ADAM, true, 1, GATHERED_LONGER("46", "108")},
        {ME_OPTIMIZER_SGD, false, 1, GATHERED_LONGER("86", "117")},
        {ME_OPTIMIZER_SGD, true, 1, GATHERED_LONGER("113", "117")},
        {ME_OPTIMIZER_ADAM, false, 0, "+46 +8 +8 +8 AllGather:1 -8 +46 +46"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_trainer r;
        init(&r, cases[i].kind);
        me_optimizer_destroy(&r.t);
        r.config.model.use_mup = true;
        r.config.model.mup_base_hidden_size = cases[i].base_hidden_size;
        r.fc.weight->is_embedding_or_output = cases[i].is_embedding;
        (void)me_test_events_take(&r.model.events);
        me_optimizer_create(&r.t);
        const char *events = me_test_events_take(&r.model.events);
        assert_memory_equal(events, cases[i].gathered,
                            strlen(cases[i].gathered));
        fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer__fused_adam),
        cmocka_unit_test(test_optimizer__fused_sgd),
        cmocka_unit_test(test_optimizer__without_clipping),
        cmocka_unit_test(test_optimizer__norm_stays),
        cmocka_unit_test(test_optimizer__zeros),
        cmocka_unit_test(test_optimizer__nothing_counts),
        cmocka_unit_test(test_optimizer__no_experts_here),
        cmocka_unit_test(test_optimizer__precision_aware),
        cmocka_unit_test(test_optimizer__precision_aware_gradients),
        cmocka_unit_test(test_optimizer__on_the_host),
        cmocka_unit_test(test_optimizer__who_holds_main_parameters),
        cmocka_unit_test(test_optimizer__groups),
        cmocka_unit_test(test_optimizer__groups_of_widths),
    };
    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
