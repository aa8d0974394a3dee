/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/mixer.h"
#include "nn/megatron/mlp.h"
#include "nn/megatron/transformer.h"
#include "support/model.h"

/* One layer at the sizes of golden tiny_dense and tiny_llama, whose NOTES.md
 * have the letters. The cuBLAS workspaces (1000) come with the first product
 * of each thread. */

static const char gpt_forward[] =
    "+48 +12 +12 "                     /* norm, mean, 1/std */
    "+144 +1000 +144 -144 "            /* QKV, with bias */
    "+36 +36 +72 +72 +36 -72 "         /* buffer, scores, softmax */
    "+18 +36 -36 +48 +48 -48 -36 "     /* dropout, context */
    "+48 +48 +24 +48 +48 -48 -48 -48 " /* projection, residual */
    "+48 +12 +12 "                     /* norm */
    "+120 +120 -120 +120 "             /* fc1, with bias, gelu */
    "+48 +48 +24 +48 +48 -48 -48 -48"; /* fc2, residual */

/* Norms keep their input. */
#define POST_NORM "+48 +12 +12 "

static const char gpt_forward_both_norms[] =
    "+48 +12 +12 +144 +1000 +144 -144 +36 +36 +72 +72 +36 -72 +18 +36 -36 +48 "
    "+48 -48 -36 +48 " POST_NORM "+48 +24 +48 +48 -48 -48 -48 "
    "+48 +12 +12 +120 +120 -120 +120 +48 " POST_NORM
    "+48 +24 +48 +48 -48 -48 -48";

static const char gpt_forward_post_norms[] =
    "+144 +1000 +144 -144 +36 +36 +72 +72 +36 -72 +18 +36 -36 +48 "
    "+48 -48 -36 +48 " POST_NORM "+48 +24 +48 +48 -48 -48 -48 "
    "+120 +120 -120 +120 +48 " POST_NORM "+48 +24 +48 +48 -48 -48 -48";

/* Queries of all heads are copied to be normed at once, and so are keys; the norms
 * keep these copies. */
static const char gpt_forward_norms_of_heads[] =
    "+48 +12 +12 +144 +1000 +144 -144 "
    "+48 +48 +48 +12 +12 +48 +12 +12 "
    "+36 +36 +72 +72 +36 -72 +18 +36 -36 +48 "
    "+48 -48 -36 +48 +48 +24 +48 +48 -48 -48 -48 "
    "+48 +12 +12 +120 +120 -120 +120 +48 +48 +24 +48 +48 -48 -48 -48";

/* Nothing has a bias. Both halves are views of fc1's output (240); gelu's result
 * (120), the other half plus 0, a copy, and their product. */
static const char gpt_forward_geglu[] =
    "+48 +12 +12 +144 +1000 +36 +36 +72 +72 +36 -72 +18 +36 -36 +48 "
    "+48 -48 -36 +48 +24 +48 +48 -48 -48 "
    "+48 +12 +12 +240 +120 +120 +120 +48 +24 +48 +48 -48 -48";

static const char gpt_backward[] =
    "+48 -24 +16 "                     /* dropout; bias of fc2 */
    "+120 +1000 +320 -48 -120 "        /* fc2 */
    "+120 -120 -120 +40 "              /* gelu; bias of fc1 */
    "+48 +320 -120 -48 "               /* fc1 */
    "+48 +16 +16 -48 -48 -12 -12 +48 " /* norm; the caller holds the sum's
                                             first gradient: a new one */
    "-48 "
    "+48 -24 +16 "                      /* dropout; bias of projection */
    "+48 +128 -48 -48 "                 /* projection */
    "+48 +36 -48 -36 +36 -36 -18 "      /* context product, dropout */
    "+72 -36 +72 +72 -72 -72 -72 "      /* cast, softmax */
    "+72 -72 -9 +36 -72 "               /* fill, cast */
    "+48 +48 -48 +48 +48 -48 -36 -144 " /* score product */
    "+144 -48 -48 -48 "                 /* concatenation of q, k, v */
    "+48 +384 +48 -144 -48 "            /* QKV with bias */
    "+48 +16 +16 -48 -12 -12 -48";      /* norm, added to the sum */

/** What a layer may have beside what GPT's has. */
typedef struct variant {
    me_norm_placement placement;
    bool has_norms_of_heads;
    bool is_geglu; /**< and no bias */
    const char *forward;
} variant;

static const variant gpt = {.forward = gpt_forward};

/** A block of one layer, before its weights are cast. */
static void make_block(test_model *m, const variant *v,
                       me_transformer_block *block)
{
    test_model_init(m, 1);
    me_config *c = &m->config;
    c->model.seq_length = c->model.rank_seq_length = 3;
    c->model.hidden_size = 8;
    c->model.num_attention_heads = c->model.num_query_groups = 2;
    c->model.kv_channels = 4;
    c->model.ffn_hidden_size = 20;
    c->model.normalization = ME_NORMALIZATION_LAYER_NORM;
    c->impl.core_attention = ME_CORE_ATTENTION_UNFUSED;
    c->model.add_bias_linear = c->model.add_qkv_bias = !v->is_geglu;
    c->model.activation =
        v->is_geglu ? ME_ACTIVATION_GEGLU : ME_ACTIVATION_GELU;
    c->model.norm_placement = v->placement;
    c->model.qk_layernorm = v->has_norms_of_heads;
    c->model.qk_layernorm_across_heads = v->has_norms_of_heads;
    c->model.attention_softmax_in_fp32 = true;
    c->model.attention_dropout = c->model.hidden_dropout = 0.1;
    *block = (me_transformer_block){.num_layers = 0};
    me_transformer_block_create(&m->nn, ME_NO_MODULE, 0, 1, false, block);
}

/** Norms of what mixers make stand before the residual step; those of queries and
 *  keys are of a head, or of all. */
static void test_layer__variants(void **state)
{
    static const variant cases[] = {
        {ME_NORMS_BOTH, false, false, gpt_forward_both_norms},
        {ME_NORMS_POST, false, false, gpt_forward_post_norms},
        {ME_NORMS_PRE, true, false, gpt_forward_norms_of_heads},
        {ME_NORMS_PRE, false, true, gpt_forward_geglu},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_model m;
        me_transformer_block block;
        make_block(&m, &cases[i], &block);
        me_parameters_to_device(&m.nn);
        me_parameters_to_half(&m.nn);
        me_tensor *x = me_test_leaf(m.nn.e, ME_SHAPE(3, 1, 8));
        me_tensor *mask =
            test_tensor(m.nn.e, ME_DTYPE_BOOL, ME_SHAPE(1, 1, 3, 3));
        (void)me_test_events_take(&m.events);
        (void)me_transformer_block_forward(&m.nn, &block, x, mask, NULL);
        EXPECT_EVENTS(&m.events, cases[i].forward);
        me_transformer_block_fini(m.nn.e, &block);
        test_model_fini(&m);
    }
}

static void test_layer__gpt(void **state)
{
    (void)state;
    test_model m;
    me_transformer_block block;
    make_block(&m, &gpt, &block);
    me_engine *e = m.nn.e;
    me_parameters_to_device(&m.nn);
    me_parameters_to_half(&m.nn);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(3, 1, 8));
    me_tensor *mask = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(1, 1, 3, 3));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_transformer_block_forward(&m.nn, &block, x, mask, NULL);
    EXPECT_EVENTS(&m.events, gpt_forward);
    me_drop(e, mask);
    assert_string_equal(test_backward(&m.events, y), gpt_backward);
    me_transformer_block_fini(e, &block);
    test_model_fini(&m);
}

/** Does layer @p number have its MLP run by Transformer Engine's operations? */
static bool has_fused_mlp(test_model *m, int32_t number)
{
    me_mlp mlp;
    me_mlp_mixer(&m->nn, number)->create(&m->nn, ME_NO_MODULE, number, &mlp);
    return mlp.is_fused;
}

/* Dense layers of a dense model: Megatron-LM tells neither those beside layers with
 * experts of the flag, nor those of multi-token prediction, the third here. */
static void test_layer__fused_mlps(void **state)
{
    (void)state;
    static const bool is_moe_layer[] = {false, true};
    test_model m;
    test_model_init(&m, 1);
    m.config.model.num_layers = 2;
    m.config.model.hidden_size = 8;
    m.config.model.ffn_hidden_size = 12;
    m.config.impl.transformer = ME_TRANSFORMER_ENGINE;
    m.nn.is_moe_layer = is_moe_layer;
    assert_false(has_fused_mlp(&m, 0));
    m.config.train.te_op_fuser = true;
    assert_true(has_fused_mlp(&m, 0));
    assert_true(has_fused_mlp(&m, 1));
    assert_false(has_fused_mlp(&m, 2));
    m.config.moe.num_experts = 4;
    assert_false(has_fused_mlp(&m, 0));
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer__gpt),
        cmocka_unit_test(test_layer__variants),
        cmocka_unit_test(test_layer__fused_mlps),
    };
    return cmocka_run_group_tests_name("layer", tests, NULL, NULL);
}
