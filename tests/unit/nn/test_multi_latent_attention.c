/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/multi_latent_attention.h"
#include "support/model.h"

#include <stdio.h>

/* s = 4, b = 1, h = 6, a = 2, d = 3; latents Q = 4 and V = 3; heads c = 2,
 * r = 2 and u = 3. In bytes of bfloat16: hidden 2sbh = 48, query latent
 * 2sbQ = 32, the other with position 2sb(V+r) = 40, queries and keys
 * 2sba(c+r) = 64, keys and values projected 2sba(c+u) = 80, columns that turn
 * 2sbar = 32 of queries and 2sbr = 16 of the key, values and context
 * 2sbau = 48, scores 2bas² = 64. Angles 4sr = 32, cast 2sr = 16. */

static const char created[] =
    "+72 "                              /* the base class's projection */
    "+4 +4 -4 +4 +8 -8 -4 +4 +4 -4 -4 " /* frequencies, n = 1 */
    "+72 -72 "                          /* the projection 2hau */
    "+48 +64 +60 +60";                  /* down and up, twice */

static const char angle_factors[] = "+32 +32 -32 +16 -32 +32 +32 -32 +16 -32 ";

static const char backward[] =
    "+48 +1000 +72 -48 "           /* projection */
    "+48 +64 -48 -48 "             /* context product */
    "+64 +64 -64 -64 -64 "         /* softmax */
    "+64 -64 +64 +64 +64 -64 -64 " /* mask written to a view */
    "-64 "
    "+64 +64 -64 +64 +64 -64 -64 -64 -64 " /* score product */
    "+16 +16 -16 +8 +16 -16 -8 "   /* key: summed over heads, then turned back:
                                     sine and half, */
    "+16 -16 -16 "                 /* cosine, */
    "+16 +16 -16 -16 +16 -16 -16 " /* odd and even columns, and none */
    "+32 -16 +16 +32 -32 -16 +32 -16 -32 " /* query likewise */
    "+32 +32 -32 -32 +32 -32 "
    "+80 -64 -48 +64 -64 -32 " /* both splits into columns */
    "+24 +24 +60 -24 -80 -40 " /* up from the latent, whose rows have holes */
    "+32 +64 -64 -32 "
    "+40 -24 -16 " /* the latent's split */
    "+48 +60 -40 " /* down, and down: added in place */
    "+48 +48 -32 -48";

static void init(test_model *m, me_multi_latent_attention *attention)
{
    test_model_init(m, 1);
    me_config *c = &m->config;
    c->model.hidden_size = 6;
    c->model.num_attention_heads = c->model.num_query_groups = 2;
    c->model.kv_channels = 3;
    c->model.rotary_size = c->model.qk_pos_emb_head_dim = 2;
    c->model.multi_latent_attention = true;
    c->model.rope_type = ME_ROPE_TYPE_ROPE;
    c->model.q_lora_rank = 4;
    c->model.kv_lora_rank = c->model.v_head_dim = 3;
    c->model.qk_head_dim = 2;
    c->impl.core_attention = ME_CORE_ATTENTION_UNFUSED;
    me_multi_latent_attention_create(&m->nn, ME_NO_MODULE, 0, attention);
}

static void fini(test_model *m, me_multi_latent_attention *attention)
{
    me_multi_latent_attention_fini(m->nn.e, attention);
    test_model_fini(m);
}

static void test_latent__forward_and_backward(void **state)
{
    (void)state;
    test_model m;
    me_multi_latent_attention attention = {.module = 0};
    init(&m, &attention);
    me_engine *e = m.nn.e;
    EXPECT_EVENTS(&m.events, created);

    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 6));
    me_tensor *mask = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(1, 1, 4, 4));
    (void)me_test_events_take(&m.events);
    me_tensor *y =
        me_multi_latent_attention_forward(&m.nn, &attention, x, mask);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 6)));
    char forward[512];
    (void)snprintf(
        forward, sizeof forward, "%s%s%s%s%s%s%s",
        "+16 +16 -16 +16 -16 +32 -16 " /* the layer's own table */
        "+32 +1000 +40 +64 +80 +32 ",
        angle_factors, "+32 +16 +32 -16 +32 -32 +32 -32 -32 -32 +32 -32 +16 ",
        angle_factors, "+16 +8 +16 -8 +16 -16 +16 -16 -16 -16 +16 -16 ",
        "+64 +64 +48 -16 -64 -32 -80 ", /* query, key, value */
        "+64 +64 +64 +48 +48 -48 -64 +48");
    EXPECT_EVENTS(&m.events, forward);
    assert_string_equal(test_backward(&m.events, y), backward);
    fini(&m, &attention);
}

/* Norms of the latents are the layer's parameters, after all matrices. */
static void test_latent__norms_of_latents(void **state)
{
    (void)state;
    test_model m;
    me_multi_latent_attention attention = {.module = 0};
    init(&m, &attention);
    m.config.model.qk_layernorm = true;
    me_multi_latent_attention normed = {.module = 0};
    me_multi_latent_attention_create(&m.nn, ME_NO_MODULE, 0, &normed);
    assert_int_equal(normed.q_layernorm.weight->numel, 4);
    assert_int_equal(normed.kv_layernorm.weight->numel, 3);
    assert_int_equal(normed.kv_layernorm.weight->index, m.parameters.count - 1);
    assert_null(attention.kv_layernorm.weight);
    me_multi_latent_attention_fini(m.nn.e, &normed);
    fini(&m, &attention);
}

/* Yarn's kernels keep cosines and sines, 2sr = 16 each, turn queries in place,
 * and make keys, 64, and values, 48, of their projection, 80, whose gradient they
 * make with the position's, 2sbr = 16. */
static void test_latent__fused_rotary_kernels(void **state)
{
    (void)state;
    test_model m;
    me_multi_latent_attention attention = {.module = 0};
    init(&m, &attention);
    m.config.model.rope_type = ME_ROPE_TYPE_YARN;
    m.config.train.apply_rope_fusion = true;
    m.config.parallel.context = 1;
    me_multi_latent_attention fused = {.module = 0};
    me_engine *e = m.nn.e;
    me_multi_latent_attention_create(&m.nn, ME_NO_MODULE, 0, &fused);
    me_tensor *x = me_test_leaf(e, ME_SHAPE(4, 1, 6));
    me_tensor *mask = test_tensor(e, ME_DTYPE_BOOL, ME_SHAPE(1, 1, 4, 4));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_multi_latent_attention_forward(&m.nn, &fused, x, mask);
    EXPECT_EVENTS(&m.events,
                  "+4 +4 -4 +4 -4 +4 -4 +4 -4 +4 +4 -4 +4 +4 -4 -4 +16 +16 "
                  "-16 +16 +32 -4 -4 -16 -16 +32 +32 -32 +16 -32 -32768 "
                  "+32 +32 -32 +16 -32 -32768 +32 +1000 +40 +64 +80 +64 "
                  "+48 -80 +64 +64 +64 +48 +48 -48 -64 +48");
    assert_string_equal(
        test_backward(&m.events, y),
        "+48 +1000 +72 -48 +48 +64 -48 -48 +64 +64 -64 -64 -64 "
        "+64 -64 +64 +64 +64 -64 -64 -64 +64 +64 -64 +64 +64 -64 "
        "-64 -64 -64 +64 +48 +80 +16 -64 -48 -64 -48 +64 -64 +24 "
        "+24 +60 -24 -80 -40 +32 +64 -64 -32 +40 -24 -16 +48 +60 "
        "-40 +48 +48 -32 -48");
    me_multi_latent_attention_fini(e, &fused);
    fini(&m, &attention);
}

/* Without a query latent one projection, 2ha(c+r) = 96, takes its place. */
static void test_latent__no_query_latent(void **state)
{
    (void)state;
    test_model m;
    me_multi_latent_attention attention = {.module = 0};
    init(&m, &attention);
    m.config.model.q_lora_rank = 0;
    me_multi_latent_attention direct = {.module = 0};
    (void)me_test_events_take(&m.events);
    me_multi_latent_attention_create(&m.nn, ME_NO_MODULE, 0, &direct);
    EXPECT_EVENTS(&m.events, "+72 +4 +4 -4 +4 +8 -8 -4 +4 +4 -4 -4 "
                             "+72 -72 +96 +60 +60");
    assert_null(direct.linear_q_down_proj.weight);
    me_multi_latent_attention_fini(m.nn.e, &direct);
    fini(&m, &attention);
}

/* Transformer Engine's up projections have the norms of their latents, 2Q = 8
 * and 2V = 6, and one may project down to both, 2h(Q + V + r) = 108, with the
 * norm before it, 2h = 12. */
static void test_latent__layers_of_transformer_engine(void **state)
{
    (void)state;
    test_model m;
    me_multi_latent_attention attention = {.module = 0};
    init(&m, &attention);
    m.config.impl.transformer = ME_TRANSFORMER_ENGINE;
    m.config.model.qk_layernorm = true;
    me_multi_latent_attention normed = {.module = 0};
    (void)me_test_events_take(&m.events);
    me_multi_latent_attention_create(&m.nn, ME_NO_MODULE, 0, &normed);
    EXPECT_EVENTS(&m.events, "+72 +4 +4 -4 +4 +8 -8 -4 +4 +4 -4 -4 "
                             "+72 -72 +48 +8 +64 +60 +6 +60");
    m.config.model.mla_down_proj_fusion = true;
    me_multi_latent_attention fused = {.module = 0};
    me_multi_latent_attention_create(&m.nn, ME_NO_MODULE, 0, &fused);
    EXPECT_EVENTS(&m.events, "+72 +4 +4 -4 +4 +8 -8 -4 +4 +4 -4 -4 "
                             "+72 -72 +12 +108 +8 +64 +6 +60");
    assert_null(fused.linear_kv_down_proj.weight);
    me_multi_latent_attention_fini(m.nn.e, &fused);
    me_multi_latent_attention_fini(m.nn.e, &normed);
    fini(&m, &attention);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latent__forward_and_backward),
        cmocka_unit_test(test_latent__norms_of_latents),
        cmocka_unit_test(test_latent__fused_rotary_kernels),
        cmocka_unit_test(test_latent__no_query_latent),
        cmocka_unit_test(test_latent__layers_of_transformer_engine),
    };
    return cmocka_run_group_tests_name("multi_latent_attention", tests, NULL,
                                       NULL);
}
