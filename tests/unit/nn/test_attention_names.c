/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/attention.h"
#include "support/model.h"

#include <stdio.h>
#include <string.h>

/*
 * Attention whose tape is off, as in the first run of what is recomputed: names
 * that are bound again let go of what they had, and those that are left at the
 * end of a function go in their order. s = 6, b = 2, a = 4, d = 4.
 */

static void init(test_model *m, uint64_t query_groups)
{
    test_model_init(m, 1);
    me_config *c = &m->config;
    c->model.seq_length = c->model.rank_seq_length = 6;
    c->train.micro_batch_size = 2;
    c->model.hidden_size = 16;
    c->model.num_attention_heads = 4;
    c->model.num_query_groups = query_groups;
    c->model.kv_channels = 4;
    c->impl.core_attention = ME_CORE_ATTENTION_UNFUSED;
}

static me_tensor *heads(const test_model *m, uint64_t count)
{
    return test_tensor(m->nn.e, ME_DTYPE_BFLOAT16, ME_SHAPE(6, 2, count, 4));
}

/** Core attention without a mask, off the tape. */
static const char *run_core(test_model *m, me_tensor *const qkv[3])
{
    me_engine *e = m->nn.e;
    me_core_attention core = {.module = ME_NO_MODULE};
    me_core_attention_create(&m->nn, ME_NO_MODULE, 0, &core);
    const me_frame frame = me_enter(e);
    const bool grad = me_grad_enable(e, false);
    for (int i = 0; i < 2; i++) { /* the first run makes what stays */
        (void)me_test_events_take(&m->events);
        me_drop(e, me_core_attention_forward(&m->nn, &core, qkv[0], qkv[1],
                                             qkv[2], NULL));
    }
    me_grad_enable(e, grad);
    me_leave(e, frame, NULL);
    return me_test_events_take(&m->events);
}

/* Scores 576 and 1152 bytes, the mask's ones 144 and flags 36, context 192.
 * Behind softmax and cast go the softmax, whose name the cast takes; the mask,
 * an argument; the wide scores, whose last name is mask_output. */
static void test_attention_names__mask_that_is_made(void **state)
{
    (void)state;
    test_model m;
    init(&m, 4);
    m.config.model.attention_softmax_in_fp32 = true;
    me_tensor *const qkv[3] = {heads(&m, 4), heads(&m, 4), heads(&m, 4)};
    assert_string_equal(run_core(&m, qkv), "+576 +1152 +144 +144 -144 +36 -144 "
                                           "+1152 +576 -1152 -36 -1152 "
                                           "+384 +384 -384 -576 -576 -384");
    test_model_fini(&m);
}

/* A query that its rank has only some of the heads of is copied for the product
 * (384); keys and values are repeated before. Arguments go in their order. */
static void test_attention_names__arguments(void **state)
{
    (void)state;
    test_model m;
    init(&m, 2);
    me_engine *e = m.nn.e;
    me_tensor *all = heads(&m, 8);
    me_shape shape = all->shape;
    shape.dim[2] = 4;
    me_tensor *const qkv[3] = {me_alias(e, all, shape, all->strides),
                               heads(&m, 1), heads(&m, 1)};
    const char *events = run_core(&m, qkv);
    /* key and value repeated, query; product; mask; softmax, mask; context; then
     * query, key, value, scores, softmax */
    assert_string_equal(events, "+384 +384 +384 +576 "
                                "+144 +144 -144 +36 -144 +576 -36 "
                                "+384 +384 -384 -384 -384 -384 -576 -576 -384");
    test_model_fini(&m);
}

/* The fused kernel takes the scores and makes probabilities of their size, for as
 * many heads and samples, rows and columns as its blocks divide. */
static void test_attention_names__fused_softmax(void **state)
{
    (void)state;

    static const struct {
        uint64_t s, b, a;
        bool is_fused;
    } cases[] = {
        {20, 2, 4, true}, /* at most 128 columns: eight at a time */
        {20, 1, 4, false},  {132, 1, 4, true},  /* more: four */
        {132, 1, 2, false}, {130, 1, 4, false}, /* rows and columns by four */
        {16, 2, 4, false},                      /* more than 16 columns */
        {4096, 1, 4, true}, {4100, 1, 4, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_model m;
        init(&m, 4);
        m.config.train.masked_softmax_fusion = true;
        const me_shape shape = ME_SHAPE(cases[i].s, cases[i].b, cases[i].a, 4);
        me_engine *e = m.nn.e;
        me_tensor *const qkv[3] = {test_tensor(e, ME_DTYPE_BFLOAT16, shape),
                                   test_tensor(e, ME_DTYPE_BFLOAT16, shape),
                                   test_tensor(e, ME_DTYPE_BFLOAT16, shape)};
        const unsigned long long scores =
            2 * cases[i].s * cases[i].s * cases[i].b * cases[i].a;
        const unsigned long long heads =
            2 * cases[i].s * cases[i].b * cases[i].a * 4;
        char fused[256];
        (void)snprintf(fused, sizeof fused,
                       "+%llu +%llu +%llu +%llu -%llu -%llu -%llu -%llu",
                       scores, scores, heads, heads, heads, scores, scores,
                       heads);
        assert_int_equal(strcmp(run_core(&m, qkv), fused) == 0,
                         cases[i].is_fused);
        test_model_fini(&m);
    }
}

/* Local layers rotate queries and keys by Transformer Engine's kernel: one new
 * tensor each (192), where PyTorch's operations make several. */
static void test_attention_names__fused_rotary(void **state)
{
    (void)state;
    test_model m;
    init(&m, 4);
    me_engine *e = m.nn.e;
    m.config.train.apply_rope_fusion = true;
    m.config.impl.core_attention = ME_CORE_ATTENTION_SDPA_FLASH;
    me_attention attention = {.module = ME_NO_MODULE};
    me_attention_create(&m.nn, ME_NO_MODULE, 0, &attention);
    me_parameters_to_device(&m.nn);
    me_parameters_to_half(&m.nn);
    me_tensor *x = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(6, 2, 16));
    me_tensor *angles = test_tensor(e, ME_DTYPE_FLOAT32, ME_SHAPE(6, 1, 1, 4));
    const me_frame frame = me_enter(e);
    me_grad_enable(e, false);
    me_drop(e, me_attention_forward(&m.nn, &attention, x, NULL, angles));
    (void)me_test_events_take(&m.events);
    me_drop(e, me_attention_forward(&m.nn, &attention, x, NULL, angles));
    const char *events = me_test_events_take(&m.events);
    static const char expected[] = "+1152 +384 +384 +384 "; /* qkv, q, k, out */
    assert_memory_equal(events, expected, sizeof expected - 1);
    me_leave(e, frame, NULL);
    test_model_fini(&m);
}

/* Queries and keys have a norm; of grouped heads the query is a copy (384), which
 * goes when the norm's output takes its name. */
static void test_attention_names__norms_of_queries_and_keys(void **state)
{
    (void)state;
    test_model m;
    init(&m, 2);
    me_engine *e = m.nn.e;
    m.config.model.qk_layernorm = true;
    m.config.impl.core_attention = ME_CORE_ATTENTION_SDPA_FLASH;
    me_attention attention = {.module = ME_NO_MODULE};
    me_attention_create(&m.nn, ME_NO_MODULE, 0, &attention);
    me_parameters_to_device(&m.nn);
    me_parameters_to_half(&m.nn);
    me_tensor *x = test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(6, 2, 16));
    const me_frame frame = me_enter(e);
    me_grad_enable(e, false);
    me_drop(e, me_attention_forward(&m.nn, &attention, x, NULL, NULL));
    (void)me_test_events_take(&m.events);
    me_drop(e, me_attention_forward(&m.nn, &attention, x, NULL, NULL));
    const char *events = me_test_events_take(&m.events);
    static const char expected[] =
        "+768 +384 "               /* mixed, query */
        "+384 +192 -192 -384 "     /* its norm and 1/rms; the query before */
        "+192 +192 +96 -192 -96 "; /* the key's, of rows that are copied */
    assert_memory_equal(events, expected, sizeof expected - 1);
    me_leave(e, frame, NULL);
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_names__mask_that_is_made),
        cmocka_unit_test(test_attention_names__arguments),
        cmocka_unit_test(test_attention_names__fused_softmax),
        cmocka_unit_test(test_attention_names__fused_rotary),
        cmocka_unit_test(test_attention_names__norms_of_queries_and_keys),
    };
    return cmocka_run_group_tests_name("attention_names", tests, NULL, NULL);
}
