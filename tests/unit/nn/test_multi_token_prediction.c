/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/multi_token_prediction.h"
#include "support/model.h"

#include <stdio.h>
#include <string.h>

/* s = 4, b = 1, h = 6, v = 10: hidden 2sbh = 48, logits 2sbv = 80, tokens and
 * labels 8sb = 32, the loss and its mask 4sb = 16, flags sb = 4. */

static void init(test_model *m, int32_t depths)
{
    test_model_init(m, 1);
    me_config *c = &m->config;
    c->model.hidden_size = 6;
    c->model.num_attention_heads = c->model.num_query_groups = 2;
    c->model.kv_channels = 3;
    c->model.ffn_hidden_size = 5;
    c->model.padded_vocab_size = 10;
    c->model.mtp_num_layers = depths;
}

/** One depth's loss; what is there at the first micro-batch only stands
 *  between the two parts. */
static const char loss_before[] =
    "+80 +1000 "         /* logits */
    "+32 +8 -32 +16 +4 " /* labels and mask one further */
    "+160 +16 +32 -32 AllReduce:4 +4 +4 +4 -4 -4 +32 +32 -32 " /* cross entropy */
    "+32 +16 +16 -16 +16 -32 AllReduce:4 AllReduce:4 "
    "+16 +16 -16 -16 -16 -16 "
    "+16 -16 "                    /* times the mask */
    "+4 +1 +4 -1 +4 -4 +4 +4 -4 " /* for the log */
    "+32 +4 +4 +4 -4 +8 +32 -32 -4 +4 -8 +8 +32 -32 +4 -8 -32 -4 ";
static const char loss_after[] =
    "+4 +16 +16 -16 " /* times the factor, over the tokens */
    "-8 -32 -4 -80 -4 -16 -4 -4 -4 -4 -4";

static me_tensor *lose(test_model *m, me_mtp_block *block,
                       const me_mtp_head *head)
{
    me_tensor *hidden = me_test_leaf(m->nn.e, ME_SHAPE(8, 1, 6));
    (void)me_test_events_take(&m->events);
    return me_process_mtp_loss(&m->nn, block, head, hidden);
}

static void test_mtp__loss_of_one_depth(void **state)
{
    (void)state;
    test_model m;
    init(&m, 1);
    me_engine *e = m.nn.e;
    me_mtp_block block = {.module = 0};
    const me_linear output_layer =
        me_column_linear_create(&m.nn, &(me_linear_spec){.name = "output_layer",
                                                         .parent = ME_NO_MODULE,
                                                         .inputs = 6,
                                                         .outputs = 10});
    const me_mtp_head head = {
        .output_layer = &output_layer,
        .labels = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 4)),
        .loss_mask = test_tensor(e, ME_DTYPE_FLOAT32, ME_SHAPE(1, 4)),
    };
    char expected[512];
    me_tensor *y = lose(&m, &block, &head);
    (void)snprintf(expected, sizeof expected, "+32 +4 %s+4 +4 +4 %s",
                   loss_before, loss_after);
    EXPECT_EVENTS(&m.events, expected);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(4, 1, 6)));
    /* ones, scaled, ones go; the mean's and the product's gradients; the cross
     * entropy's; its cast, input and weight of the output layer; the pieces
     * without and with gradient are joined */
    assert_string_equal(test_backward(&m.events, y),
                        "+16 +16 -16 -16 +16 -16 -4 +16 -16 +16 -16 -16 "
                        "+32 +16 +16 -16 +16 -16 -32 -16 +80 -16 -160 -4 -32 "
                        "+48 +1000 +120 -80 +96 -48");
    (void)lose(&m, &block, &head); /* the vectors of the log are there */
    assert_null(strstr(me_test_events_take(&m.events), "-4 +4 +4 +4 +4 +16"));
    me_mtp_block_fini(e, &block);
    test_model_fini(&m);
}

/* Rolled tokens are the embedding's; positions and the last norm's output go
 * with the block's frame. */
static void test_mtp__depths_share_a_layer(void **state)
{
    (void)state;
    test_model m;
    init(&m, 2);
    me_engine *e = m.nn.e;
    m.config.model.mtp_use_repeated_layer = true;
    me_embedding_layer embedding = {.module = 0};
    me_embedding_create(&m.nn, ME_NO_MODULE, &embedding);
    me_mtp_block block;
    me_mtp_block_create(&m.nn, ME_NO_MODULE, &block);
    assert_int_equal(block.num_layers, 1);
    me_parameters_to_device(&m.nn);
    me_parameters_to_half(&m.nn);
    const me_mtp_inputs inputs = {
        .embedding = &embedding,
        .tokens = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 4)),
        .position_ids = test_tensor(e, ME_DTYPE_INT64, ME_SHAPE(1, 4)),
    };
    me_tensor *hidden = me_test_leaf(e, ME_SHAPE(4, 1, 6));
    (void)me_test_events_take(&m.events);
    me_tensor *y = me_mtp_block_forward(&m.nn, &block, &inputs, hidden);
    assert_true(me_shape_equal(&y->shape, &ME_SHAPE(12, 1, 6)));
    const char begin[] = "+32 +8 +32 +8 -8 +48 +2 -2 -8 " /* rolled, embedded */
                         "+48 +16 +48 +16 +96 -48 +48 +1000 -48 ";
    const char end[] = "+48 +16 -32 +144 -32 -48"; /* last norm; joined */
    const char *events = me_test_events_take(&m.events);
    assert_memory_equal(events, begin, sizeof begin - 1);
    assert_string_equal(events + strlen(events) - strlen(end), end);
    /* both depths' gradients of the one projection are summed */
    (void)test_backward(&m.events, y);
    assert_non_null(block.layers[0].eh_proj.weight->tensor->grad);
    me_mtp_block_fini(e, &block);
    test_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mtp__loss_of_one_depth),
        cmocka_unit_test(test_mtp__depths_share_a_layer),
    };
    return cmocka_run_group_tests_name("multi_token_prediction", tests, NULL,
                                       NULL);
}
