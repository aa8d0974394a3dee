/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/core_attention.h"
#include "nn/megatron/te_attention.h"
#include "nn/megatron/te_context.h"
#include "support/model.h"

#include <stdio.h>
#include <string.h>

/* Four rows of three heads on each rank: queries 5 wide, 120 bytes; one head of
 * keys, 40, and of values, 4 wide, 32; outputs 96 and statistics 48, of half
 * the rows 48 and 24. What a kernel needs besides: 16 and, for a moment, 256.
 */

static void begin(test_model *m)
{
    test_model_init(m, 1);
    m->config.impl.core_attention = ME_CORE_ATTENTION_TE_FUSED;
}

static me_tensor *run(test_model *m, me_cp_comm_type type, int32_t size,
                      int32_t rank)
{
    begin(m);
    m->comm.size[ME_GROUP_CONTEXT] = size;
    m->comm.index[ME_GROUP_CONTEXT] = rank;
    me_engine *e = m->nn.e;
    me_compile_cache_set(e, true);
    me_tensor *const qkv[3] = {me_test_leaf(e, ME_SHAPE(4, 1, 3, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 1, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 1, 4))};
    (void)me_test_events_take(&m->events);
    return me_te_context_attention(&m->nn, type, qkv, NULL);
}

/* The middle rank of an odd ring has a step of each kind. The second buffer of the
 * way back is the one that holds the gradients, and the first one goes. */
static void test_context__ring_of_three(void **state)
{
    (void)state;
    test_model m;
    me_tensor *y = run(&m, ME_CP_COMM_P2P, 3, 1);
    EXPECT_EVENTS(&m.events, "+72 " /* joined */
                             "+72 Recv:36 Send:36 "
                             "+96 +16 +256 +48 -256 " /* own keys */
                             "+72 Recv:36 Send:36 "
                             "+96 +16 +256 +48 -256 "       /* of rank 0 */
                             "+48 "                         /* statistics */
                             "+48 +16 +256 +24 -256 "       /* of rank 2 */
                             "+96 -48 -96 -96 -24 -48 -48 " /* corrected */
                             "-72 -72");
    assert_string_equal(test_backward(&m.events, y),
                        "+24 +120 +144 +144 "
                        "Recv:36 Send:36 " /* keys and values */
                        "+60 +40 +32 +664 -664 -60 -40 -32 " /* of rank 2 */
                        "Recv:72 Send:72 "                   /* and gradients */
                        "+120 +20 +16 +800 -800 -120 -20 -16 " /* of rank 0 */
                        "Recv:36 Send:36 "                     /* gradients */
                        "+120 +40 +32 +800 -800 -120 -40 -32 " /* own */
                        "-24 -144 -72 -48 -16 -16 -16");
    test_model_fini(&m);
}

/* Statistics of all rows and of half of them, then the outputs, in float32. */
static void test_context__ring_op_by_op(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    m.config.train.torch_compile = false;
    m.comm.size[ME_GROUP_CONTEXT] = 3;
    m.comm.index[ME_GROUP_CONTEXT] = 1;
    me_engine *e = m.nn.e;
    me_tensor *const qkv[3] = {me_test_leaf(e, ME_SHAPE(4, 1, 3, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 1, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 1, 4))};
    (void)me_test_events_take(&m.events);
    me_te_context_attention(&m.nn, ME_CP_COMM_P2P, qkv, NULL);
    EXPECT_EVENTS(&m.events, "+72 "
                             "+72 Recv:36 Send:36 +96 +16 +256 +48 -256 "
                             "+72 Recv:36 Send:36 +96 +16 +256 +48 -256 "
                             "+48 " /* the first step's statistics */
                             "+48 +16 +256 +24 -256 "
                             "+48 +48 +48 +48 -48 +48 -48 +48 -48 -48 -48 -48 "
                             "+24 +24 +24 +24 -24 +24 -24 +24 -24 -24 -24 -24 "
                             "+48 +48 -48 +192 +96 -48 -192 "
                             "+48 +48 -48 +192 -48 -192 "
                             "+24 +24 -24 +96 -24 -96 "
                             "-48 -96 -96 -24 -48 -48 -72 -72");
    test_model_fini(&m);
}

static void count_lone(void *self, const me_event *event)
{
    *(int *)self += event->is_lone ? 1 : 0;
}

/** Sends and receives of a ring of @p size that are no batch. */
static int lone_exchanges(int32_t size, const me_card *card)
{
    test_model m;
    begin(&m);
    m.comm.size[ME_GROUP_CONTEXT] = size;
    m.comm.index[ME_GROUP_CONTEXT] = 1;
    me_engine *e = NULL;
    assert_int_equal(me_engine_create(card, &e), ME_OK);
    me_nn nn = m.nn;
    nn.e = e;
    int count = 0;
    me_engine_observe(e, (me_observer){.on_event = count_lone, .self = &count});
    me_tensor *const qkv[3] = {me_test_leaf(e, ME_SHAPE(4, 1, 3, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 1, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 1, 4))};
    me_te_context_attention(&nn, ME_CP_COMM_P2P, qkv, NULL);
    assert_true(me_engine_is_ok(e));
    me_engine_destroy(e);
    test_model_fini(&m);
    return count;
}

/* Rings of two batch them, but on cards from compute capability 10 on; others do
 * where NVTE_BATCH_MHA_P2P_COMM says so. */
static void test_context__batched_exchanges(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    me_card card = *me_engine_card(m.nn.e);
    test_model_fini(&m);
    assert_int_equal(lone_exchanges(2, &card), 0);
    assert_int_equal(lone_exchanges(3, &card), 4);
    card.has_lone_pairs = true;
    assert_int_equal(lone_exchanges(2, &card), 2);
    card.te.batches_exchanges = true;
    assert_int_equal(lone_exchanges(2, &card), 0);
    assert_int_equal(lone_exchanges(3, &card), 0);
}

typedef struct timings {
    int copies[ME_STREAMS]; /**< of what timed kernels write to */
} timings;

static void count_copies(void *self, const me_event *event)
{
    timings *seen = self;
    if (event->kind == ME_EVENT_ALLOC &&
        strcmp(event->op, "autotune.clone") == 0) {
        seen->copies[event->stream]++;
    }
}

/* Of three ranks the middle one corrects the statistics of step 1 on the second
 * stream and those of step 2, half of the rows, on the first: each function is
 * timed where it is first called. Outputs are joined on the first. */
static void test_context__timed_on_the_steps_stream(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    m.comm.size[ME_GROUP_CONTEXT] = 3;
    m.comm.index[ME_GROUP_CONTEXT] = 1;
    me_engine *e = m.nn.e;
    timings seen = {.copies = {0}};
    me_engine_observe(e,
                      (me_observer){.on_event = count_copies, .self = &seen});
    for (int i = 0; i < 2; i++) {
        me_tensor *const qkv[3] = {me_test_leaf(e, ME_SHAPE(4, 1, 3, 5)),
                                   me_test_leaf(e, ME_SHAPE(4, 1, 1, 5)),
                                   me_test_leaf(e, ME_SHAPE(4, 1, 1, 4))};
        me_te_context_attention(&m.nn, ME_CP_COMM_P2P, qkv, NULL);
    }
    assert_int_equal(seen.copies[ME_STREAM_CONTEXT], 4);
    assert_int_equal(seen.copies[ME_STREAM_DEFAULT], 4 + 4 + 4);
    test_model_fini(&m);
}

/* The first of two ranks: its first half sees one chunk of 2 rows, its second half
 * all four. */
static void test_context__gather(void **state)
{
    (void)state;
    test_model m;
    me_tensor *y = run(&m, ME_CP_COMM_ALL_GATHER, 2, 0);
    EXPECT_EVENTS(&m.events, "+8 +80 AllGather:20 +64 AllGather:16 "
                             "+80 -80 +64 -64 +96 "
                             "+48 +16 +256 +24 -256 "
                             "+48 +16 +256 +24 -256 "
                             "-48 -48 -80 -64");
    assert_string_equal(test_backward(&m.events, y),
                        "+120 +80 +64 +80 AllGather:20 +64 AllGather:16 "
                        "+80 -80 +64 -64 "
                        "+60 +20 +16 +664 -664 "
                        "+60 +80 +64 +920 -920 "
                        "+80 -80 +64 -64 +40 ReduceScatter:20 -80 "
                        "+32 ReduceScatter:16 -64 "
                        "-60 -60 -80 -20 -64 -16 -80 -64 "
                        "-8 -24 -24 -16 -16");
    test_model_fini(&m);
}

/* Two ranks with four heads of eight rows each, and an offset of the softmax: each
 * exchanged tensor is there three times; the rank has two of the offset's four. */
static void test_context__heads_with_an_offset(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    m.comm.size[ME_GROUP_CONTEXT] = 2;
    me_engine *e = m.nn.e;
    me_tensor *const qkv[3] = {me_test_leaf(e, ME_SHAPE(4, 1, 4, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 4, 5)),
                               me_test_leaf(e, ME_SHAPE(4, 1, 4, 4))};
    me_tensor *offset = me_empty(e, "offset", ME_DTYPE_FLOAT32, ME_SHAPE(4));
    offset->requires_grad = true;
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_te_context_attention(&m.nn, ME_CP_COMM_A2A, qkv, offset);
    EXPECT_EVENTS(&m.events, "+160 +160 AllToAll:40 +160 +160 AllToAll:40 +160 "
                             "+128 +128 AllToAll:32 +160 +128 "
                             "-128 -160 -160 -128 -160 -160 "
                             "+8 +128 +16 +256 +64 -256 "
                             "+128 +128 AllToAll:32 +128 -128 -128");
    assert_string_equal(test_backward(&m.events, y),
                        "+128 +128 AllToAll:32 +128 -128 -128 "
                        "+160 +160 +128 +8 +640 -640 "
                        "+160 +160 AllToAll:40 +160 +160 AllToAll:40 "
                        "+128 +160 +128 AllToAll:32 +160 +128 "
                        "-128 -160 -160 -128 -160 -160 -160 -160 -128 "
                        "+16 AllGather:2 -128 -8 "
                        "-160 -160 -128 -128 -64 -16 -8");
    test_model_fini(&m);
}

/* A hierarchy whose one level is one rank has the other level alone. */
static void test_context__one_level(void **state)
{
    (void)state;

    static const struct {
        int32_t heads, ring;
        me_cp_comm_type way;
    } cases[] = {
        {2, 1, ME_CP_COMM_A2A},
        {1, 2, ME_CP_COMM_P2P},
        {2, 2, ME_CP_COMM_A2A_P2P},
    };

    test_model m;
    begin(&m);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        m.comm.size[ME_GROUP_CONTEXT_HEADS] = cases[i].heads;
        m.comm.size[ME_GROUP_CONTEXT_RING] = cases[i].ring;
        assert_int_equal(me_te_context_way(&m.nn, ME_CP_COMM_A2A_P2P),
                         cases[i].way);
    }
    test_model_fini(&m);
}

/* A layer of multi-token prediction, behind the two of the model, has the number of
 * the first. */
static void test_context__a_way_for_each_layer(void **state)
{
    (void)state;
    static const me_cp_comm_type ways[] = {ME_CP_COMM_A2A, ME_CP_COMM_P2P,
                                           ME_CP_COMM_A2A};
    test_model m;
    begin(&m);
    m.config.model.num_layers = 2;
    m.config.parallel.cp_comm_type = ME_CP_COMM_ALL_GATHER;
    (void)snprintf(m.config.parallel.cp_comm_layers,
                   sizeof m.config.parallel.cp_comm_layers, "a2a p2p");
    for (int32_t i = 0; i < 3; i++) {
        me_core_attention core = {.module = ME_NO_MODULE};
        me_core_attention_create(&m.nn, ME_NO_MODULE, i, &core);
        assert_int_equal(core.cp_comm_type, ways[i]);
        me_core_attention_fini(m.nn.e, &core);
    }
    test_model_fini(&m);
}

/* Of two samples flash-attn takes the rows of the first before those of the second:
 * queries of 120 bytes, keys and values of 40, output of 120, each once more;
 * log-sum-exps 4 · 2 · 3 · 2 = 48, random state 16. The way back: three
 * gradients, row sums 4 · 2 · 3 · 128 = 3,072, sums of the queries' gradients
 * 4 · 2 · 128 · 3 · 32 = 98,304, and those of keys and values of every head,
 * 120. Leaves copy gradients whose rows are in another order. */
static void test_context__flash_attn(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    me_engine *e = m.nn.e;
    me_tensor *const qkv[3] = {me_test_leaf(e, ME_SHAPE(2, 2, 3, 5)),
                               me_test_leaf(e, ME_SHAPE(2, 2, 1, 5)),
                               me_test_leaf(e, ME_SHAPE(2, 2, 1, 5))};
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_te_attention_flash(&m.nn, ME_CP_COMM_P2P, qkv);
    EXPECT_EVENTS(&m.events, "+120 +40 +40 +120 +48 +16 +120");
    assert_string_equal(test_backward(&m.events, y),
                        "+120 +40 +40 +3072 +98304 +120 +120 -120 -120 -98304 "
                        "-3072 -120 -40 -40 -120 -48 -16 "
                        "+40 -40 +40 -40 +120 -120");
    test_model_fini(&m);
}

/* Of one sample nothing is copied; heads of 8 columns of queries and 4 of values,
 * which are padded to 64 bytes and cut to 32 again. */
static void test_context__flash_attn_pads_values(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    me_engine *e = m.nn.e;
    const me_frame frame = me_enter(e);
    const bool grad = me_grad_enable(e, false);
    me_tensor *const qkv[3] = {
        test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(2, 1, 2, 8)),
        test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(2, 1, 2, 8)),
        test_tensor(e, ME_DTYPE_BFLOAT16, ME_SHAPE(2, 1, 2, 4))};
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_te_attention_flash(&m.nn, ME_CP_COMM_P2P, qkv);
    EXPECT_EVENTS(&m.events, "+64 +64 +16 +16 -16 -16 +32 -64 -64");
    assert_int_equal(me_dim(y, 2), 8);
    me_grad_enable(e, grad);
    me_leave(e, frame, NULL);
    test_model_fini(&m);
}

/** Shapes are of queries, keys and values. */
static me_tensor *run_flash_3(test_model *m, bool is_windowed,
                              const me_shape shapes[3])
{
    me_engine *e = m->nn.e;
    m->config.impl.core_attention = ME_CORE_ATTENTION_TE_FLASH_3;
    me_tensor *const qkv[3] = {me_test_leaf(e, shapes[0]),
                               me_test_leaf(e, shapes[1]),
                               me_test_leaf(e, shapes[2])};
    (void)me_test_events_take(&m->events);
    return me_te_attention_flash_3(&m->nn, ME_CP_COMM_P2P, is_windowed, qkv);
}

static const me_shape shared_heads[3] = {
    {4, {2, 2, 3, 5}},
    {4, {2, 2, 1, 5}},
    {4, {2, 2, 1, 5}},
};

/* As with version 2, without a random state and copies of keys and values: for a
 * moment 2 · 4 + 1 counts of the scheduler, 36. The way back: row sums and
 * statistics 4 · 2 · 3 · 128 = 3,072 each; sums of the queries' gradients
 * 3,072 · 64 = 196,608, those of the one head of keys and of values
 * 4 · 2 · 128 · 64 = 65,536; one tile for each of 2 · 3, 24. */
static void test_context__flash_attn_3(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    me_tensor *y = run_flash_3(&m, false, shared_heads);
    EXPECT_EVENTS(&m.events, "+120 +40 +40 +120 +48 +36 -36 +120");
    assert_string_equal(test_backward(&m.events, y),
                        "+120 +40 +40 +3072 +3072 +196608 +65536 +65536 +24 "
                        "-24 -65536 -65536 -196608 -3072 -3072 "
                        "-120 -40 -40 -120 -48 +40 -40 +40 -40 +120 -120");
    test_model_fini(&m);
}

/* Sums of shared keys in an order: one tile for each of two samples, 8. A window's
 * scheduler counts 4 + 1, 20. */
static void test_context__flash_attn_3_in_order(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    me_deterministic_set(m.nn.e, true);
    me_tensor *y = run_flash_3(&m, true, shared_heads);
    EXPECT_EVENTS(&m.events, "+120 +40 +40 +120 +48 +20 -20 +120");
    assert_string_equal(
        test_backward(&m.events, y),
        "+120 +40 +40 +3072 +3072 +196608 +65536 +65536 +24 +8 +8 "
        "-8 -8 -24 -65536 -65536 -196608 -3072 -3072 "
        "-120 -40 -40 -120 -48 +40 -40 +40 -40 +120 -120");
    test_model_fini(&m);
}

/* Heads of 192 columns of queries, 1,536 bytes, and 128 of values, 1,024, are not
 * padded, and the output is as wide as these; statistics 4 · 2 · 2 = 16. Tiles of
 * 64 queries of 192 columns: 4 · 2 · 64 = 512 twice, 512 · 192 = 98,304; 8. */
static void test_context__flash_attn_3_of_latent_heads(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    const me_shape heads[3] = {
        {4, {2, 1, 2, 192}}, {4, {2, 1, 2, 192}}, {4, {2, 1, 2, 128}}};
    me_tensor *y = run_flash_3(&m, false, heads);
    assert_int_equal(me_dim(y, 2), 256);
    EXPECT_EVENTS(&m.events, "+1024 +16 +36 -36");
    assert_string_equal(test_backward(&m.events, y),
                        "+1536 +1536 +1024 +512 +512 +98304 +8 "
                        "-8 -98304 -512 -512 -16");
    test_model_fini(&m);
}

/* The middle rank of three, as with cuDNN's kernel without its workspace and random
 * states: its own rows are seen causally, others whole, without a scheduler. On the
 * way back row sums and statistics 4 · 3 · 128 = 1,536 each, sums
 * 1,536 · 64 = 98,304 of queries, 4 · 128 · 64 = 32,768 of keys and of values;
 * one tile for each of three heads, 12. */
#define MADE "+1536 +1536 +98304 +32768 +32768 +12 "
#define GONE "-12 -32768 -32768 -98304 -1536 -1536 "

static void test_context__flash_attn_3_in_a_ring(void **state)
{
    (void)state;
    test_model m;
    begin(&m);
    m.comm.size[ME_GROUP_CONTEXT] = 3;
    m.comm.index[ME_GROUP_CONTEXT] = 1;
    me_compile_cache_set(m.nn.e, true);
    const me_shape heads[3] = {
        {4, {4, 1, 3, 5}}, {4, {4, 1, 1, 5}}, {4, {4, 1, 1, 4}}};
    me_tensor *y = run_flash_3(&m, false, heads);
    EXPECT_EVENTS(&m.events, "+72 " /* joined */
                             "+72 Recv:36 Send:36 +96 +48 +36 -36 "
                             "+72 Recv:36 Send:36 +96 +48 "
                             "+48 +48 +24 "
                             "+96 -48 -96 -96 -24 -48 -48 -72 -72");
    assert_string_equal(test_backward(&m.events, y),
                        "+24 +120 +144 +144 Recv:36 Send:36 "
                        "+60 +40 +32 " MADE GONE "-60 -40 -32 Recv:72 Send:72 "
                        "+120 +20 +16 " MADE GONE
                        "-120 -20 -16 Recv:36 Send:36 "
                        "+120 +40 +32 " MADE GONE "-120 -40 -32 "
                        "-24 -144 -72 -48");
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context__ring_of_three),
        cmocka_unit_test(test_context__ring_op_by_op),
        cmocka_unit_test(test_context__batched_exchanges),
        cmocka_unit_test(test_context__timed_on_the_steps_stream),
        cmocka_unit_test(test_context__gather),
        cmocka_unit_test(test_context__a_way_for_each_layer),
        cmocka_unit_test(test_context__heads_with_an_offset),
        cmocka_unit_test(test_context__one_level),
        cmocka_unit_test(test_context__flash_attn),
        cmocka_unit_test(test_context__flash_attn_pads_values),
        cmocka_unit_test(test_context__flash_attn_3),
        cmocka_unit_test(test_context__flash_attn_3_in_order),
        cmocka_unit_test(test_context__flash_attn_3_of_latent_heads),
        cmocka_unit_test(test_context__flash_attn_3_in_a_ring),
    };
    return cmocka_run_group_tests_name("te_context", tests, NULL, NULL);
}
