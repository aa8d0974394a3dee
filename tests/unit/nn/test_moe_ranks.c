/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/elementwise.h"
#include "support/moe_layer.h"

#include <stdio.h>
#include <string.h>

/*
 * A layer of experts that are cut over tensor ranks, and one whose tape is off, as
 * in the first run of what is recomputed: T = 900 tokens, E = 4, K = 2 of a token,
 * h = 8, f = 5, gated, all experts with the same number of rows but where said. The
 * events follow from the names of Megatron-LM's functions and what PyTorch's
 * ProcessGroupNCCL makes of lists; recordings of two expert ranks by two tensor
 * ranks, and of top-1 with the softmax first, have the same order.
 */

/* E·T by two tensor ranks: R = 3600 rows, gathered of 1800. The gather of a list
 * of equal parts takes a flat copy of it, and the counts of all experts are those
 * that were gathered. */
static const char two_tensor_ranks_forward[] =
    "+7200 +3600 +14400 +7200 +7200 -7200 +3600 +7200 +7200 -7200 +7200 "
    "+14400 -7200 +14400 -14400 +3600 -14400 -3600 -3600 +14400 +14400 "
    "-14400 +7200 +14400 +7200 +14400 -7200 +14400 -14400 +3600 -14400 -7200 "
    "-14400 +32 +28800 -28800 +16 +16 +4 -16 +4 -4 -16 +4 -4 -3600 -7200 "
    "-7200 -3600 +32 +28800 -28800 +8 +64 AllGather:4 +16 +16 +32 -32 ~8 ~16 "
    "~16 ~64 ~32 -8 -16 -16 -64 -32 +3600 +3600 +28800 +28800 -28800 -3600 "
    "+14400 +7200 +3600 -7200 +28800 -3600 -14400 +57600 +57600 "
    "AllGather:14400 -57600 +7200 +7200 AllGather:1800 -7200 +57600 +7200 "
    "-57600 -7200 +9000 +3600 +3600 +3600 +3600 +14400 +9000 +3600 +3600 "
    "+3600 +3600 +14400 +9000 +3600 +3600 +3600 +3600 +14400 +9000 +3600 "
    "+3600 +3600 +3600 +14400 +57600 -14400 -14400 -14400 -14400 +57600 "
    "+28800 +57600 ReduceScatter:14400 -57600 -57600 -57600 +14400 -28800 "
    "-3600 -28800";

static const char two_tensor_ranks_backward[] =
    "+28800 +57600 +57600 AllGather:14400 -57600 -28800 +57600 -57600 +3600 "
    "+32 -3600 -32 +3600 +3600 +1800 -3600 -3600 -3600 +3600 +3600 -3600 "
    "-3600 -3600 +3600 -3600 -9000 +9000 -3600 -3600 +14400 +80 -9000 -80 "
    "+3600 +32 -3600 -32 +3600 +3600 +1800 -3600 -3600 -3600 +3600 +3600 "
    "-3600 -3600 -3600 +3600 -3600 -9000 +9000 -3600 -3600 +14400 +80 -9000 "
    "-80 +3600 +32 -3600 -32 +3600 +3600 +1800 -3600 -3600 -3600 +3600 +3600 "
    "-3600 -3600 -3600 +3600 -3600 -9000 +9000 -3600 -3600 +14400 +80 -9000 "
    "-80 +3600 +32 -57600 -3600 -32 +3600 +3600 +1800 -3600 -3600 -7200 "
    "-3600 +3600 +3600 -3600 -3600 -3600 +3600 -3600 -9000 +9000 -3600 -3600 "
    "+14400 +80 -9000 -57600 -80 +7200 -1800 -1800 -1800 -1800 +57600 -14400 "
    "-14400 -14400 -14400 +7200 -7200 +57600 -57600 +3600 +7200 "
    "ReduceScatter:1800 -7200 -7200 +28800 +57600 ReduceScatter:14400 -57600 "
    "-57600 +14400 -28800 +7200 +14400 +14400 -14400 +14400 +14400 +14400 +1 "
    "-1 -14400 -14400 -14400 -14400 -3600 -28800 +4 +4 -4 +4 -4 -4 +4 -4 +16 "
    "-4 -32 +14400 +14400 -14400 -16 -14400 +7200 -14400 +3600 -7200 +7200 "
    "-3600 +7200 +7200 -7200 -7200 -7200 +3600 -7200 +7200 -3600 -14400 "
    "-7200 +14400 +64 -7200 +14400 -14400 -14400 -64 +14400 -14400 -14400";

/* And by two expert ranks: what every rank counts and tells the others. */
static const char four_ranks_counts[] =
    "+32 +28800 -28800 +16 +128 AllGather:4 +64 +32 +16 +16 -32 -128 ~16 ~32 "
    "~16 ~64 ~16 -16 -32 -16 -64 -16";

/* With one local expert nobody keeps the counts of its own column. */
static const char one_local_counts[] =
    "+16 +14400 -14400 +16 +64 AllGather:2 +32 +32 +16 +8 -16 -64 -32 ~16 "
    "~32 ~16 ~8 -16 -32 -16 -8";

/* The tape is off: a name that is bound again lets go of what it had, be it the
 * fp32 weights of the router or what an expert is activated by. */
static const char softmax_first_off_tape[] =
    "+7200 +14400 +14400 -14400 +7200 +14400 +3600 -7200 +7200 +7200 -7200 "
    "+7200 +14400 -7200 +14400 -14400 +3600 -14400 -14400 -14400 -3600 -7200 "
    "-7200 -3600 +32 +28800 -28800 -32 +3600 +3600 +28800 +28800 -28800 "
    "-3600 +14400 +7200 +3600 -7200 +28800 -3600 -28800 -14400 +28800 +3600 "
    "+9000 +4500 +4500 +4500 -4500 -4500 -9000 +4500 -4500 +7200 -4500 +9000 "
    "+4500 +4500 +4500 -4500 -4500 -9000 +4500 -4500 +7200 -4500 +9000 +4500 "
    "+4500 +4500 -4500 -4500 -9000 +4500 -4500 +7200 -4500 +9000 +4500 +4500 "
    "+4500 -4500 -4500 -9000 +4500 -4500 +7200 -4500 +28800 -7200 -7200 "
    "-7200 -7200 +28800 -28800 -3600 -28800 +14400 -28800 -3600 -28800";

static const char all_gather_off_tape[] =
    "+7200 +3600 +14400 +7200 +7200 -7200 +3600 -7200 +7200 +7200 -7200 "
    "+7200 +14400 -7200 +14400 -14400 +3600 -14400 -3600 -14400 -3600 -7200 "
    "-3600 -3600 +32 +28800 -28800 -32 +3600 +3600 +28800 +28800 -28800 "
    "-3600 +14400 +28800 -3600 -28800 -14400 +7200 +3600 +4 +1 -1 "
    "+28800 +1023 -1023 -4 +3600 -28800 -7200 -3600 +9000 +4500 +4500 +4500 "
    "-4500 -4500 -9000 +4500 -4500 +7200 -4500 +9000 +4500 +4500 +4500 -4500 "
    "-4500 -9000 +4500 -4500 +7200 -4500 +9000 +4500 +4500 +4500 -4500 -4500 "
    "-9000 +4500 -4500 +7200 -4500 +9000 +4500 +4500 +4500 -4500 -4500 -9000 "
    "+4500 -4500 +7200 -4500 +28800 -7200 -7200 -7200 -7200 +14400 -28800 "
    "-28800 -7200";

static const me_moe_options top_2_of_4 = {
    .num_experts = 4,
    .router_topk = 2,
    .ffn_hidden_size = 5,
    .token_dispatcher = ME_DISPATCHER_ALL_TO_ALL,
    .has_loss = {[ME_LOAD_BALANCING_AUX_LOSS] = true},
};

static const int32_t one_rank[2] = {1, 1};
static const int32_t two_tensor_ranks[2] = {1, 2};
static const int32_t four_ranks[2] = {2, 2};

/** A forward on the tape or off it, and what it did; then the backward. */
static void run(test_layer *t, bool is_taped, char *forward_out,
                char *backward_out)
{
    me_engine *e = t->m.nn.e;
    const me_frame frame = me_enter(e);
    me_tensor *x = me_neg(e, t->leaf);
    (void)me_test_events_take(&t->m.events);
    const bool before = me_grad_enable(e, is_taped);
    me_tensor *y = me_moe_layer_forward(&t->m.nn, &t->layer, x);
    me_grad_enable(e, before);
    memcpy(forward_out, me_test_events_take(&t->m.events), TEST_EVENTS_TEXT);
    me_tensor *gradient = me_empty_like(e, "gradient", y);
    (void)me_test_events_take(&t->m.events);
    me_backward(e, y, gradient);
    memcpy(backward_out, me_test_events_take(&t->m.events), TEST_EVENTS_TEXT);
    me_leave(e, frame, NULL);
}

/** What the second forward and backward of a layer did: of the first, workspaces
 *  and the log's vector stay. */
static void run_twice(const me_moe_options *moe, const int32_t ranks[2],
                      const char *counts, bool is_taped, char *forward_out,
                      char *backward_out)
{
    test_layer t;
    test_layer_init(&t, 900, moe, ranks, counts);
    run(&t, true, forward_out, backward_out);
    run(&t, is_taped, forward_out, backward_out);
    test_layer_fini(&t);
}

static void test_moe_ranks__lists_of_equal_parts_are_flattened(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    run_twice(&top_2_of_4, two_tensor_ranks, NULL, true, forward, backward);
    assert_string_equal(forward, two_tensor_ranks_forward);
    assert_string_equal(backward, two_tensor_ranks_backward);
}

/* 1801 rows of an expert rank are 901 and 900 of its tensor ranks. */
static void test_moe_ranks__lists_of_unequal_parts_are_not(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    run_twice(&top_2_of_4, four_ranks, "0 0 0 0 700 1101\n0 0 0 1 700 900\n",
              true, forward, backward);
    assert_non_null(strstr(forward, "+28816 Broadcast:7208 Broadcast:7200 "
                                    "+3602 Broadcast:901 Broadcast:900 "
                                    "+28816 +3602 -28816 -3602"));
    assert_non_null(strstr(forward, "+28816 +14416 Reduce:7208 Reduce:7200 "
                                    "-28816 -28816"));
    assert_non_null(strstr(backward, "+28816 Broadcast:7208 Broadcast:7200 "
                                     "-14416"));
    assert_non_null(strstr(backward, "+14416 Reduce:7208 Reduce:7200 "
                                     "-28816"));
}

static void test_moe_ranks__what_ranks_tell_each_other(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    run_twice(&top_2_of_4, four_ranks, NULL, true, forward, backward);
    assert_non_null(strstr(forward, four_ranks_counts));
    me_moe_options moe = top_2_of_4;
    moe.num_experts = 2;
    run_twice(&moe, four_ranks, NULL, true, forward, backward);
    assert_non_null(strstr(forward, one_local_counts));
}

static void test_moe_ranks__names_off_the_tape(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    me_moe_options moe = top_2_of_4;
    moe.router_pre_softmax = true;
    run_twice(&moe, one_rank, NULL, false, forward, backward);
    assert_string_equal(forward, softmax_first_off_tape);
    moe = top_2_of_4;
    moe.token_dispatcher = ME_DISPATCHER_ALL_GATHER;
    run_twice(&moe, one_rank, NULL, false, forward, backward);
    assert_string_equal(forward, all_gather_off_tape);
}

/** The collectives, with their groups. */
typedef struct calls {
    char text[1024];
    size_t length;
} calls;

static void on_event(void *self, const me_event *event)
{
    calls *c = self;
    if (event->kind == ME_EVENT_COLLECTIVE) {
        const int n = snprintf(
            c->text + c->length, sizeof c->text - c->length, "%s %s %llu, ",
            me_group_kind_name((me_group_kind)event->group),
            me_collective_name((me_collective)event->collective),
            (unsigned long long)event->count);
        assert_true(n > 0 && (size_t)n < sizeof c->text - c->length);
        c->length += (size_t)n;
    }
}

/* Tokens are shared by tensor and context ranks, so that counts of all of theirs go
 * into the loss; to whom they go is a matter of the experts' ranks. */
static void test_moe_ranks__groups(void **state)
{
    (void)state;
    char text[TEST_EVENTS_TEXT];
    calls c = {.length = 0};
    test_layer t;
    test_layer_init(&t, 900, &top_2_of_4, four_ranks, NULL);
    t.m.comm.size[ME_GROUP_TENSOR_CONTEXT] = 2;
    me_engine_observe(t.m.nn.e,
                      (me_observer){.on_event = on_event, .self = &c});
    run(&t, true, text, text);
    assert_string_equal(c.text, "tensor_context AllReduce 4, "
                                "expert_tensor_expert AllGather 4, "
                                "expert AllToAll 7200, expert AllToAll 900, "
                                "expert_tensor AllGather 14400, "
                                "expert_tensor AllGather 1800, "
                                "expert_tensor ReduceScatter 14400, "
                                "expert AllToAll 7200, "
                                "expert AllToAll 7200, "
                                "expert_tensor AllGather 14400, "
                                "expert_tensor ReduceScatter 1800, "
                                "expert_tensor ReduceScatter 14400, "
                                "expert AllToAll 900, expert AllToAll 7200, ");
    test_layer_fini(&t);
}

/* Whose tokens each loss counts: those of the ranks that share a sequence, but the
 * global one those of all. */
static void test_moe_ranks__groups_of_losses(void **state)
{
    (void)state;
    static const char first[] = "tensor_context AllReduce 4, "
                                "tensor_context AllReduce 4, "
                                "tensor_data_context AllReduce 4, "
                                "expert_tensor_expert ";
    char text[TEST_EVENTS_TEXT];
    calls c = {.length = 0};
    test_layer t;
    me_moe_options moe = top_2_of_4;
    moe.has_loss[ME_LOAD_BALANCING_SEQ_AUX_LOSS] = true;
    moe.has_loss[ME_LOAD_BALANCING_GLOBAL_AUX_LOSS] = true;
    test_layer_init(&t, 900, &moe, four_ranks, NULL);
    t.m.comm.size[ME_GROUP_TENSOR_CONTEXT] = 2;
    t.m.comm.size[ME_GROUP_TENSOR_DATA_CONTEXT] = 4;
    me_engine_observe(t.m.nn.e,
                      (me_observer){.on_event = on_event, .self = &c});
    run(&t, true, text, text);
    assert_int_equal(strncmp(c.text, first, sizeof first - 1), 0);
    test_layer_fini(&t);
}

/* A float16 model's softmax reads float16: no wide copy of the logits, and its
 * gradient is float16 at once. */
static void test_moe_ranks__softmax_of_float16(void **state)
{
    (void)state;
    char forward[TEST_EVENTS_TEXT];
    char backward[TEST_EVENTS_TEXT];
    test_layer t;
    me_moe_options moe = top_2_of_4;
    moe.router_pre_softmax = true;
    moe.has_loss[ME_LOAD_BALANCING_AUX_LOSS] = false;
    test_layer_init(&t, 900, &moe, one_rank, NULL);
    t.leaf->dtype = ME_DTYPE_FLOAT16;
    t.layer.router->weight->tensor->dtype = ME_DTYPE_FLOAT16;
    run(&t, true, forward, backward);
    assert_non_null(strstr(forward, "+7200 +1000 +14400 +7200 +14400 "));
    assert_non_null(strstr(backward, "+7200 +14400 -14400 -14400 -14400 "
                                     "+14400"));
    test_layer_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moe_ranks__lists_of_equal_parts_are_flattened),
        cmocka_unit_test(test_moe_ranks__lists_of_unequal_parts_are_not),
        cmocka_unit_test(test_moe_ranks__what_ranks_tell_each_other),
        cmocka_unit_test(test_moe_ranks__names_off_the_tape),
        cmocka_unit_test(test_moe_ranks__groups),
        cmocka_unit_test(test_moe_ranks__groups_of_losses),
        cmocka_unit_test(test_moe_ranks__softmax_of_float16),
    };
    return cmocka_run_group_tests_name("moe_ranks", tests, NULL, NULL);
}
