/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/moe_utils.h"
#include "nn/megatron/quantization_padding.h"
#include "nn/megatron/te_fp8.h"
#include "nn/megatron/te_fp8_linear.h"
#include "nn/megatron/te_fp8_state.h"
#include "nn/megatron/te_fp8_weight.h"
#include "nn/megatron/te_state.h"
#include "support/model.h"

#include <string.h>

/* A tensor of 160 rows and 256 columns in bfloat16: 81,920 bytes, 40,960 in
 * FP8. Scales of blocks of 128 by rows: ⌈256/128⌉ times 160, 1,280 bytes; by
 * columns ⌈160/128⌉ times 256, 2,048. Of a weight 2 x up(2, 4) both ways,
 * 32. MXFP8: 256 rows by 8 blocks, 2,048; by columns up(160/32, 4) = 8 by
 * 256, 2,048. */

typedef struct test_fp8 {
    test_model m;
    me_te_state te;
    me_tensor *x;
} test_fp8;

static void init(test_fp8 *t, me_fp8_recipe recipe, int32_t tensor)
{
    test_model_init(&t->m, tensor);
    t->te = (me_te_state){.entries = NULL};
    t->m.config.fp8 = (me_fp8_config){
        .format = ME_FP8_HYBRID, .recipe = recipe, .amax_history_len = 10};
    t->m.nn.te = &t->te;
    t->x = me_test_leaf(t->m.nn.e, ME_SHAPE(160, 1, 256));
    (void)me_test_events_take(&t->m.events);
}

static void fini(test_fp8 *t)
{
    me_te_state_fini(t->m.nn.e, &t->te);
    test_model_fini(&t->m);
}

/* Rows of experts are padded where FP8 is, once: by them, unless the router or
 * HybridEP's dispatcher has done so. */
static void test_fp8__who_pads(void **state)
{
    (void)state;

    static const struct {
        me_moe_options moe;
        me_fp8_format format;
        bool pads;
    } cases[] = {
        {{.token_dispatcher = ME_DISPATCHER_ALL_TO_ALL}, ME_FP8_HYBRID, true},
        {{.token_dispatcher = ME_DISPATCHER_ALL_TO_ALL}, ME_FP8_NONE, false},
        {{.token_dispatcher = ME_DISPATCHER_ALL_TO_ALL,
          .flex_backend = ME_FLEX_HYBRIDEP},
         ME_FP8_HYBRID,
         true},
        {{.token_dispatcher = ME_DISPATCHER_FLEX,
          .flex_backend = ME_FLEX_DEEPEP},
         ME_FP8_HYBRID,
         true},
        {{.token_dispatcher = ME_DISPATCHER_FLEX,
          .flex_backend = ME_FLEX_HYBRIDEP},
         ME_FP8_HYBRID,
         false},
        {{.token_dispatcher = ME_DISPATCHER_ALL_TO_ALL,
          .router_padding_for_quantization = true},
         ME_FP8_HYBRID,
         false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_config config = {.moe = cases[i].moe,
                                  .fp8 = {.format = cases[i].format}};
        const me_nn nn = {.config = &config};
        assert_int_equal(me_experts_pad(&nn), cases[i].pads);
    }
}

static void test_fp8__quantize(void **state)
{
    (void)state;

    static const struct {
        me_fp8_recipe recipe;
        const char *whole;
        const char *rows;
        const char *dropped;
    } cases[] = {
        {ME_FP8_DELAYED, "+4 +40960 +40960", "+4 +40960", "-40960 -4 -40960"},
        {ME_FP8_TENSORWISE, "+40960 +40960 +4 +8 -8", "+40960 +4 +8 -8",
         "-40960 -4 -40960"},
        {ME_FP8_BLOCKWISE, "+40960 +1280 +40960 +2048", "+40960 +1280",
         "-40960 -40960 -1280 -2048"},
        {ME_FP8_MXFP8, "+40960 +2048 +40960 +2048", "+40960 +2048",
         "-40960 -40960 -2048 -2048"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_fp8 t;
        init(&t, cases[i].recipe, 1);
        me_nn *nn = &t.m.nn;
        (void)me_fp8_quantize(nn, t.x, (me_usage){true, false});
        EXPECT_EVENTS(&t.m.events, cases[i].rows);
        me_quantized q = me_fp8_quantize(nn, t.x, (me_usage){true, true});
        EXPECT_EVENTS(&t.m.events, cases[i].whole);
        me_fp8_drop(nn, &q);
        EXPECT_EVENTS(&t.m.events, cases[i].dropped);
        fini(&t);
    }
}

/* A norm writes FP8, or the model's type, of which delayed scaling alone needs none
 * and tensorwise also the largest value and the scale. */
static void test_fp8__normalize(void **state)
{
    (void)state;

    static const struct {
        me_fp8_recipe recipe;
        const char *events;
    } cases[] = {
        {ME_FP8_DELAYED, "+640 +4 +40960 +40960 +1 -1"},
        {ME_FP8_TENSORWISE, "+640 +40960 +40960 +4 +4 +81920 +1 +4 -4 -1 -4 "
                            "-81920"},
        {ME_FP8_BLOCKWISE, "+640 +40960 +1280 +40960 +2048 +81920 +1 -1 "
                           "-81920"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_fp8 t;
        init(&t, cases[i].recipe, 1);
        me_te_statistics statistics;
        (void)me_fp8_normalize(&t.m.nn, t.x, false, (me_usage){true, true},
                               &statistics);
        EXPECT_EVENTS(&t.m.events, cases[i].events);
        fini(&t);
    }
}

/* Of one scale the part's is taken; blocks' scales arrive out of order.
 * Twice as many rows: scales of 2 x 320 numbers, 2,560 bytes, by columns 3 x
 * 256, 3,072. */
static void test_fp8__gather(void **state)
{
    (void)state;
    test_fp8 t;
    init(&t, ME_FP8_DELAYED, 2);
    (void)me_fp8_quantize_and_gather(&t.m.nn, t.x);
    EXPECT_EVENTS(&t.m.events, "+4 +40960 +4 +81920 +81920 -4 "
                               "AllGather:40960 -40960");
    fini(&t);
    init(&t, ME_FP8_BLOCKWISE, 2);
    (void)me_fp8_quantize_and_gather(&t.m.nn, t.x);
    EXPECT_EVENTS(&t.m.events,
                  "+40960 +1280 +40960 +2048 +81920 +2560 +81920 +3072 "
                  "+2560 AllGather:320 AllGather:40960 "
                  "+81920 AllGather:512 AllGather:40960 "
                  "-40960 -40960 -1280 -2048 -2560 -81920");
    fini(&t);
}

/* What cards multiply in any order needs no columns with one scale. */
static void test_fp8__card_of_any_order(void **state)
{
    (void)state;
    test_fp8 t;
    init(&t, ME_FP8_DELAYED, 1);
    me_card card = *me_engine_card(t.m.nn.e);
    card.has_any_order_fp8 = true;
    me_engine *e = NULL;
    assert_int_equal(me_engine_create(&card, &e), ME_OK);
    me_nn nn = t.m.nn;
    nn.e = e;
    const me_quantized q = me_fp8_quantize(&nn, t.x, (me_usage){true, true});
    assert_non_null(q.rows);
    assert_null(q.columns);
    me_engine_destroy(e);
    fini(&t);
}

/* A weight of 160 x 256 is quantised once a step: in its place, but that a cache
 * without columns is made anew where they are wanted; blocks drop them instead and
 * make them in the backward. */
static void test_fp8__weight_cache(void **state)
{
    (void)state;
    test_fp8 t;
    init(&t, ME_FP8_TENSORWISE, 1);
    me_nn *nn = &t.m.nn;
    me_fp8_module *module = me_fp8_module_create(nn, 1);
    const me_parameter p = {.tensor = t.x};
    me_quantized made;
    me_fp8_prepare_weight(nn, module, &p, false, &made);
    me_fp8_keep_weight(nn, module, false, &made);
    EXPECT_EVENTS(&t.m.events, "+40960 +4 +8 -8");
    me_fp8_prepare_weight(nn, module, &p, true, &made);
    me_fp8_keep_weight(nn, module, true, &made);
    EXPECT_EVENTS(&t.m.events, "+40960 +40960 +4 +8 -8 -40960 -4");
    me_fp8_prepare_weight(nn, module, &p, true, &made);
    EXPECT_EVENTS(&t.m.events, "");
    me_iteration(nn->e, 1);
    me_fp8_prepare_weight(nn, module, &p, false, &made);
    EXPECT_EVENTS(&t.m.events, "+8 -8");
    fini(&t);
    init(&t, ME_FP8_BLOCKWISE, 1);
    module = me_fp8_module_create(nn, 1);
    const me_parameter q = {.tensor = t.x};
    me_fp8_prepare_weight(nn, module, &q, false, &made);
    me_fp8_keep_weight(nn, module, false, &made);
    EXPECT_EVENTS(&t.m.events, "+40960 +32");
    me_fp8_prepare_weight_columns(nn, module, &q);
    EXPECT_EVENTS(&t.m.events, "+40960 +32");
    me_iteration(nn->e, 1);
    me_fp8_prepare_weight(nn, module, &q, false, &made);
    EXPECT_EVENTS(&t.m.events, "-40960 -32");
    fini(&t);
}

/* FSDP2 gathers a weight for each pass, which is quantised for each product: by
 * rows, and both ways in the backward, where columns go with the product. */
static void test_fp8__weight_under_fsdp2(void **state)
{
    (void)state;
    test_fp8 t;
    init(&t, ME_FP8_TENSORWISE, 1);
    t.m.config.parallel.torch_fsdp2 = true;
    me_nn *nn = &t.m.nn;
    me_parameter p = {.tensor = t.x};
    const me_linear linear = {
        .nn = nn, .weight = &p, .fp8 = me_fp8_module_create(nn, 1)};
    for (int i = 0; i < 2; i++) {
        me_quantized made;
        me_fp8_linear_weight(nn, &linear, false, &made);
        EXPECT_EVENTS(&t.m.events, "+40960 +4 +8 -8");
        me_fp8_linear_drop(nn, &made);
        me_fp8_linear_keep(nn, &linear, NULL, false, &made);
        EXPECT_EVENTS(&t.m.events, "-40960 -4");
    }
    me_fp8_linear_weight_columns(nn, &linear);
    EXPECT_EVENTS(&t.m.events, "+40960 +40960 +4 +8 -8");
    me_fp8_linear_clear_columns(nn, &linear);
    EXPECT_EVENTS(&t.m.events, "-40960");
    me_fp8_linear_drop(nn, &linear.fp8->weight);
    EXPECT_EVENTS(&t.m.events, "-40960 -4");
    fini(&t);
}

/** A layer of 64 rows, 16 inputs and 48 outputs that runs in FP8, its weight's
 *  gradient made into a main gradient. */
static me_linear running_linear(test_fp8 *t, me_fp8_recipe recipe,
                                bool has_norm)
{
    init(t, recipe, 1);
    t->m.config.impl.transformer = ME_TRANSFORMER_ENGINE;
    t->m.config.train.gradient_accumulation_fusion = true;
    (void)me_fp8_enter(&t->m.nn, ME_FP8_CONTEXT_ANY, 0);
    me_drop(t->m.nn.e, t->x);
    t->x = me_test_leaf(t->m.nn.e, ME_SHAPE(64, 1, 16));
    return me_column_linear_create(&t->m.nn,
                                   &(me_linear_spec){.name = "linear",
                                                     .parent = ME_NO_MODULE,
                                                     .inputs = 16,
                                                     .outputs = 48,
                                                     .has_norm = has_norm});
}

static me_tensor *run_linear(test_fp8 *t, const me_linear *linear)
{
    return linear->norm_weight == NULL
               ? me_te_fp8_linear(&t->m.nn, linear, t->x)
               : me_te_fp8_norm_linear(&t->m.nn, linear, t->x);
}

/** Does the backward of @p y begin with zeros of the weight, 2 x 48 x 16 bytes, and
 *  let go of them last of what it made? */
static void expect_zeros(test_fp8 *t, me_tensor *y, bool are_there)
{
    (void)me_test_events_take(&t->m.events);
    const char *events = test_backward(&t->m.events, y);
    assert_int_equal(strncmp(events, "+1536 ", 6) == 0, are_there);
    assert_int_equal(strstr(events, "-1536") != NULL, are_there);
}

/* The forward that quantises the weight returns it as well, and autograd makes the
 * gradient that nobody has: in the first micro-batch of the first step alone. */
static void test_fp8__zeros_of_first_forward(void **state)
{
    (void)state;
    static const me_fp8_recipe recipes[] = {ME_FP8_DELAYED, ME_FP8_TENSORWISE,
                                            ME_FP8_BLOCKWISE};

    for (size_t i = 0; i < 6; i++) {
        test_fp8 t;
        const me_linear linear = running_linear(&t, recipes[i / 2], i % 2 != 0);
        me_tensor *first = run_linear(&t, &linear);
        me_tensor *second = run_linear(&t, &linear);
        expect_zeros(&t, first, true);
        expect_zeros(&t, second, false);
        me_iteration(t.m.nn.e, 1);
        expect_zeros(&t, run_linear(&t, &linear), false);
        fini(&t);
    }
}

/* A section that is run again quantises first without a tape, whose function
 * returns to nobody: what is run again makes anew what lacks columns, which a layer
 * without a norm has made at once under delayed scaling, and blocks do not need. */
static void test_fp8__zeros_of_recomputation(void **state)
{
    (void)state;

    static const struct {
        me_fp8_recipe recipe;
        bool has_norm;
        bool is_delayed;
        bool has_zeros;
    } cases[] = {
        {ME_FP8_DELAYED, false, true, false},
        {ME_FP8_DELAYED, true, true, true},
        {ME_FP8_TENSORWISE, false, false, true},
        {ME_FP8_TENSORWISE, true, false, true},
        {ME_FP8_BLOCKWISE, false, false, false},
        {ME_FP8_BLOCKWISE, true, false, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_fp8 t;
        const me_linear linear =
            running_linear(&t, cases[i].recipe, cases[i].has_norm);
        me_nn *nn = &t.m.nn;
        (void)me_grad_enable(nn->e, false);
        t.te.fp8.is_recompute = cases[i].is_delayed;
        me_drop(nn->e, run_linear(&t, &linear));
        (void)me_grad_enable(nn->e, true);
        t.te.fp8.is_second = cases[i].is_delayed;
        expect_zeros(&t, run_linear(&t, &linear), cases[i].has_zeros);
        fini(&t);
    }
}

/* Histories of ten steps: 120 and 80 bytes with scales of 12 and 8. A
 * section leaves copies, and the second run sets the present ones aside
 * before it lets go of them. */
/* Scales and histories of ten of two experts' six tensors in the forward and four
 * in the backward, as they are made if weights are quantised then. */
static void test_fp8__metadata_of_grouped(void **state)
{
    (void)state;
    test_fp8 t;
    init(&t, ME_FP8_DELAYED, 1);
    me_nn *nn = &t.m.nn;
    me_fp8_module *module = me_fp8_module_create(nn, 2);
    (void)me_test_events_take(&t.m.events);
    me_fp8_init_meta(nn, module);
    EXPECT_EVENTS(&t.m.events, "");
    t.m.config.fp8.param = true;
    (void)me_fp8_init_enter(nn, 0);
    me_fp8_init_meta(nn, module);
    EXPECT_EVENTS(&t.m.events, "+24 +240 +16 +160");
    fini(&t);
}

static void test_fp8__recomputation(void **state)
{
    (void)state;
    test_fp8 t;
    init(&t, ME_FP8_DELAYED, 1);
    me_nn *nn = &t.m.nn;
    me_fp8_module *module = me_fp8_module_create(nn, 1);
    const me_fp8_state outer = me_fp8_enter(nn, ME_FP8_CONTEXT_OUTER, -1);
    me_grad_enable(nn->e, false);
    const me_fp8_state first = me_fp8_checkpoint_enter(nn, true);
    me_fp8_prepare_forward(nn, module);
    me_fp8_checkpoint_exit(nn, &first);
    me_grad_enable(nn->e, true);
    EXPECT_EVENTS(&t.m.events, "+12 +120 +8 +80 +120 +12");
    me_fp8_exit(nn, &outer);
    EXPECT_EVENTS(&t.m.events, "+12 -12");
    for (int i = 0; i < 2; i++) {
        const me_fp8_state second = me_fp8_checkpoint_enter(nn, true);
        me_fp8_prepare_forward(nn, module);
        assert_true(me_fp8_takes_first(nn, true));
        assert_true(me_fp8_takes_first(nn, true));
        me_fp8_checkpoint_exit(nn, &second);
        EXPECT_EVENTS(&t.m.events, i == 0 ? "+120 +12 -12 -120 +12 -12"
                                          : "+120 -120 +12 -12 +12 -12");
    }
    fini(&t);
}

/* Parts of 64 and 96 rows. With scales of blocks all parts' copies one way are
 * one piece, data first: by rows 40,960 and 4·2·64 + 4·2·96 of scales, by
 * columns 40,960 and 4·1·256 of each, and 256 to align it. */
static void test_fp8__split_quantize(void **state)
{
    (void)state;

    static const struct {
        me_fp8_recipe recipe;
        const char *events;
    } cases[] = {
        {ME_FP8_DELAYED, "+4 +16384 +16384 +4 +24576 +24576"},
        {ME_FP8_TENSORWISE, "+16384 +16384 +4 +24576 +24576 +4 +8 -8 +8 -8"},
        {ME_FP8_BLOCKWISE, "+42496 +43264"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_fp8 t;
        init(&t, cases[i].recipe, 1);
        me_quantized parts[2];
        me_fp8_split_quantize(&t.m.nn, t.x, 2, (uint64_t[]){64, 96},
                              (me_usage){true, true}, parts);
        EXPECT_EVENTS(&t.m.events, cases[i].events);
        fini(&t);
    }
}

/* 32 tokens of 4 experts: numbers of the experts, and flags of all. */
static void test_fp8__pad_routing_map(void **state)
{
    (void)state;
    test_fp8 t;
    init(&t, ME_FP8_DELAYED, 1);
    me_engine *e = t.m.nn.e;
    me_tensor *map = me_empty(e, "map", ME_DTYPE_BOOL, ME_SHAPE(32, 4));
    (void)me_test_events_take(&t.m.events);
    me_pad_routing_map(e, map);
    EXPECT_EVENTS(&t.m.events,
                  "+32 +1024 -1024 +32 +32 -32 +128 +512 +1024 +1024 +1024 "
                  "-1024 -1024 -512 +128 -32 -32 -128 -1024 -128");
    fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp8__who_pads),
        cmocka_unit_test(test_fp8__quantize),
        cmocka_unit_test(test_fp8__normalize),
        cmocka_unit_test(test_fp8__gather),
        cmocka_unit_test(test_fp8__card_of_any_order),
        cmocka_unit_test(test_fp8__weight_cache),
        cmocka_unit_test(test_fp8__weight_under_fsdp2),
        cmocka_unit_test(test_fp8__zeros_of_first_forward),
        cmocka_unit_test(test_fp8__zeros_of_recomputation),
        cmocka_unit_test(test_fp8__metadata_of_grouped),
        cmocka_unit_test(test_fp8__recomputation),
        cmocka_unit_test(test_fp8__split_quantize),
        cmocka_unit_test(test_fp8__pad_routing_map),
    };
    return cmocka_run_group_tests_name("te_fp8", tests, NULL, NULL);
}
