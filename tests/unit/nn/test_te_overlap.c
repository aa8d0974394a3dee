/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/mlp.h"
#include "nn/megatron/te_linear.h"
#include "nn/megatron/te_state.h"
#include "support/model.h"

/* Two tensor ranks with sequence parallelism. A rank has 4 rows of 8 columns, 64
 * bytes in bfloat16, of all ranks 128. A column-parallel layer of 12 outputs has 6
 * of them: output (8, 1, 6), 96 bytes, weight (6, 8). A row-parallel one of 12
 * inputs makes of (8, 1, 6) a product (8, 1, 8), 128 bytes, and the rank's rows,
 * 64; weight (8, 6). A norm has 1/rms of 4 rows, 16 bytes, and a workspace of a
 * byte. cuBLAS's workspace has 32 MiB and 1 KiB, that of products beside
 * communication three times as much. */
#define WORKSPACE "+33555456"
#define OVERLAP   "+100666368"

typedef struct test_overlap {
    test_model m;
    me_te_state te;
} test_overlap;

static const me_tp_overlap_config all_on = {.is_on = true,
                                            .gathers = true,
                                            .scatters = true,
                                            .bulk_dgrad = true,
                                            .bulk_wgrad = true,
                                            .proj_fprop = ME_OVERLAP_PIPELINE,
                                            .fc2_fprop = ME_OVERLAP_PIPELINE};

static void init(test_overlap *t, const me_tp_overlap_config *overlap)
{
    test_model_init(&t->m, 2);
    t->te = (me_te_state){.entries = NULL};
    t->m.config.parallel.sequence = true;
    t->m.config.impl.transformer = ME_TRANSFORMER_ENGINE;
    t->m.config.train.gradient_accumulation_fusion = true;
    t->m.config.tp_overlap = *overlap;
    t->m.nn.te = &t->te;
}

static void fini(test_overlap *t)
{
    me_te_state_fini(t->m.nn.e, &t->te);
    test_model_fini(&t->m);
}

static me_linear column(test_overlap *t, const char *name, bool has_norm)
{
    return me_column_linear_create(&t->m.nn,
                                   &(me_linear_spec){.name = name,
                                                     .parent = ME_NO_MODULE,
                                                     .inputs = 8,
                                                     .outputs = 12,
                                                     .has_norm = has_norm});
}

static me_linear row(test_overlap *t, const char *name)
{
    return me_row_linear_create(&t->m.nn,
                                &(me_linear_spec){.name = name,
                                                  .parent = ME_NO_MODULE,
                                                  .inputs = 12,
                                                  .outputs = 8,
                                                  .skip_bias_add = true});
}

/** Forward and backward of a layer with a norm before it. */
static void expect_norm_linear(const me_tp_overlap_config *overlap,
                               const char *forward, const char *backward)
{
    test_overlap t;
    init(&t, overlap);
    const me_linear qkv = column(&t, "linear_qkv", true);
    me_tensor *x = me_test_leaf(t.m.nn.e, ME_SHAPE(4, 1, 8));
    (void)me_test_events_take(&t.m.events);
    me_tensor *y = me_te_layer_norm_linear(&t.m.nn, &qkv, x);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(8, 1, 6)));
    EXPECT_EVENTS(&t.m.events, forward);
    assert_string_equal(test_backward(&t.m.events, y), backward);
    fini(&t);
}

/* What is gathered, and the gradient of that, are in buffers; the gradient of this
 * rank's rows, 64, is copied out once the norm's output, 64, has gone. Then the
 * norm's backward and the dummy of a weight's gradient, 96. */
static void test_overlap__bulk(void **state)
{
    (void)state;
    expect_norm_linear(&all_on, "+16 +64 +1 -1 " OVERLAP " +96",
                       "-64 +64 +64 +16 +32 -32 -64 -16 +96");
}

/* Without the bulk ones NCCL gathers and scatters, and the input gradient's product
 * has the other workspace. */
static void test_overlap__without_bulk(void **state)
{
    (void)state;
    me_tp_overlap_config overlap = all_on;
    overlap.bulk_dgrad = false;
    overlap.bulk_wgrad = false;
    expect_norm_linear(&overlap, "+16 +64 +1 -1 " OVERLAP " +96",
                       "+128 AllGather:32 " WORKSPACE " +128 +64 "
                       "ReduceScatter:32 -64 -128 +64 +16 +32 -32 -64 -16 +96 "
                       "-128");
}

/* In pieces: the rank's rows have their place before the product, which has one of
 * its own beside the buffer that it is made in. */
static void test_overlap__scattered_in_pieces(void **state)
{
    (void)state;
    me_tp_overlap_config overlap = all_on;
    overlap.scatters_input_gradients = true;
    overlap.qkv_dgrad = ME_OVERLAP_PIPELINE;
    expect_norm_linear(&overlap, "+16 +64 +1 -1 " OVERLAP " +96",
                       "+128 AllGather:32 +64 +128 " WORKSPACE
                       " -64 -128 +64 +16 +32 -32 -64 -16 +96 -128");
}

/* The output's rows have their place before the product; the gradient's are
 * gathered in a buffer, and the weight gradient's product has nothing beside it. */
static void test_overlap__row(void **state)
{
    (void)state;
    test_overlap t;
    init(&t, &all_on);
    const me_linear proj = row(&t, "linear_proj");
    me_tensor *x = me_test_leaf(t.m.nn.e, ME_SHAPE(8, 1, 6));
    (void)me_test_events_take(&t.m.events);
    me_tensor *y = me_te_linear(&t.m.nn, &proj, x);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 8)));
    EXPECT_EVENTS(&t.m.events, "+64 " OVERLAP " +128 -128");
    assert_string_equal(test_backward(&t.m.events, y), "+96 " WORKSPACE " +96");
    fini(&t);
}

/* Another name turns the overlap off for what is built from then on; what has none
 * does not. */
static void test_overlap__other_names(void **state)
{
    (void)state;
    test_overlap t;
    init(&t, &all_on);
    assert_true(row(&t, "linear_proj").overlap.scatters_output);
    assert_false(column(&t, "fc1_latent_proj", false).overlap.gathers_input);
    assert_true(column(&t, "linear_fc1", false).overlap.gathers_input);
    assert_false(column(&t, "linear_fc1", false).overlap.bulk_dgrad);
    assert_false(column(&t, "linear_q_proj", false).overlap.gathers_input);
    assert_false(row(&t, "linear_fc2").overlap.scatters_output);
    assert_false(column(&t, "linear_qkv", true).overlap.bulk_wgrad);
    fini(&t);
}

/** Forward and backward of an MLP of 12 columns as one function of Transformer
 *  Engine's operations. */
static void expect_fused_mlp(test_overlap *t, const char *forward,
                             const char *backward)
{
    me_mlp mlp;
    t->m.config.model.hidden_size = 8;
    t->m.config.model.activation = ME_ACTIVATION_GELU;
    me_mlp_create(&t->m.nn, ME_NO_MODULE,
                  &(me_mlp_spec){.ffn_hidden_size = 12,
                                 .has_norm = true,
                                 .is_fused = true},
                  &mlp);
    me_tensor *x = me_test_leaf(t->m.nn.e, ME_SHAPE(4, 1, 8));
    (void)me_test_events_take(&t->m.events);
    me_tensor *y = me_mlp_forward(&t->m.nn, &mlp, x, NULL);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 8)));
    EXPECT_EVENTS(&t->m.events, forward);
    assert_string_equal(test_backward(&t->m.events, y), backward);
}

/* The operations have user buffers for all of it, whatever the flags of single
 * ones say: fc1's output, 96, and the activation, 96, then fc2's rows before its
 * product. Back through fc2: the activation's gradient, the workspace of a product
 * without communication, the dummy, 96; through the activation; through fc1, whose
 * input's gradient is copied out, 64, and whose norm's output stays. */
static void test_overlap__operations(void **state)
{
    (void)state;
    me_tp_overlap_config overlap = all_on;
    overlap.bulk_wgrad = false;
    overlap.gathers = false;
    overlap.scatters = false;
    test_overlap t;
    init(&t, &overlap);
    expect_fused_mlp(&t, "+16 +64 +1 -1 " OVERLAP " +96 +96 +64 +128 -128",
                     "+96 " WORKSPACE " -96 +96 +96 -96 -96 +64 +96 -96 +64 "
                     "+16 +32 -32 -16 -64 -64");
    fini(&t);
}

/* A layer of another name that is built after it turns them off, too, since they
 * ask as they run. */
static void test_overlap__operations_ask_late(void **state)
{
    (void)state;
    test_overlap t;
    init(&t, &all_on);
    t.te.stops_overlap = true;
    expect_fused_mlp(
        &t,
        "+16 +64 +1 -1 +128 AllGather:32 " WORKSPACE
        " +96 -128 +96 +128 +64 ReduceScatter:32 -128",
        "+128 AllGather:32 +96 -96 +96 -128 +96 -96 -96 +128 AllGather:32 +128 "
        "+64 ReduceScatter:32 -128 -128 +96 -96 +64 +16 +32 -32 -16 -64 -64");
    fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap__bulk),
        cmocka_unit_test(test_overlap__without_bulk),
        cmocka_unit_test(test_overlap__scattered_in_pieces),
        cmocka_unit_test(test_overlap__row),
        cmocka_unit_test(test_overlap__other_names),
        cmocka_unit_test(test_overlap__operations),
        cmocka_unit_test(test_overlap__operations_ask_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
