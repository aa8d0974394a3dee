/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/loss.h"
#include "support/model.h"

/* s = 4, b = 1, v = 6: logits 48 bytes in bfloat16, 96 in float32; a float32
 * of each token 16, an int64 32, a byte 4. */

static const char forward[] =
    /* float32 logits; maxima, their indices */
    "+96 +16 +32 -32 AllReduce:4 "
    /* below, above, either; target's clone, masked target */
    "+4 +4 +4 -4 -4 +32 +32 -32 "
    /* range, picked, its clone; sum of exponentials */
    "+32 +16 +16 -16 +16 -32 AllReduce:4 AllReduce:4 "
    /* log, loss; log, maxima, picked and sum go */
    "+16 +16 -16 -16 -16 -16";

static void test_loss__unfused(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    me_tensor *logits = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 6));
    me_tensor *target = test_tensor(m.nn.e, ME_DTYPE_INT64, ME_SHAPE(4, 1));
    (void)me_test_events_take(&m.events);
    me_tensor *loss = me_vocab_parallel_cross_entropy(&m.nn, logits, target);
    EXPECT_EVENTS(&m.events, forward);
    assert_int_equal(loss->dtype, ME_DTYPE_FLOAT32);
    /* range, ones, update; picked gradient; the probabilities are the
     * gradient, cast to the logits' type (48) while they live; they, mask and
     * masked target go */
    assert_string_equal(test_backward(&m.events, loss),
                        "+32 +16 +16 -16 +16 -16 -32 -16 +48 -96 -4 -32");
    test_model_fini(&m);
}

/* A wide row is read by several blocks, which leave what they have found in
 * global memory: a maximum is a value and its index, 16 bytes, a sum 4. */
static void test_loss__wide_rows(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    me_tensor *logits = me_test_leaf(m.nn.e, ME_SHAPE(1, 1, 1 << 20));
    me_tensor *target = test_tensor(m.nn.e, ME_DTYPE_INT64, ME_SHAPE(1, 1));
    (void)me_test_events_take(&m.events);
    (void)me_vocab_parallel_cross_entropy(&m.nn, logits, target);
    EXPECT_EVENTS(&m.events,
                  "+4194304 +4 +8 +2048 +4 -4 -2048 -8 AllReduce:1 "
                  "+1 +1 +1 -1 -1 +8 +8 -8 "
                  "+8 +4 +4 -4 +4 +512 +4 -4 -512 -8 AllReduce:1 AllReduce:1 "
                  "+4 +4 -4 -4 -4 -4");
    test_model_fini(&m);
}

/* float32 logits are worked on in place: no copy and no cast. */
static void test_loss__float32(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    me_tensor *logits =
        test_tensor(m.nn.e, ME_DTYPE_FLOAT32, ME_SHAPE(4, 1, 6));
    logits->requires_grad = true;
    me_tensor *target = test_tensor(m.nn.e, ME_DTYPE_INT64, ME_SHAPE(4, 1));
    (void)me_test_events_take(&m.events);
    me_tensor *loss = me_vocab_parallel_cross_entropy(&m.nn, logits, target);
    assert_string_equal(me_test_events_take(&m.events),
                        forward + sizeof "+96 " - 1);
    assert_string_equal(test_backward(&m.events, loss),
                        "+32 +16 +16 -16 +16 -16 -32 -16 -4 -32");
    test_model_fini(&m);
}

static void test_loss__fused(void **state)
{
    (void)state;
    test_model m;
    test_model_init(&m, 1);

    m.config.train.cross_entropy_loss_fusion = true;
    me_tensor *logits = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 6));
    me_tensor *target = test_tensor(m.nn.e, ME_DTYPE_INT64, ME_SHAPE(4, 1));
    me_tensor *first = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 6));
    me_tensor *loss = me_vocab_parallel_cross_entropy(&m.nn, first, target);
    (void)test_backward(&m.events, loss); /* the first run compiles */
    (void)me_test_events_take(&m.events);
    loss = me_vocab_parallel_cross_entropy(&m.nn, logits, target);
    /* float32 logits, maxima; mask, masked target; picked, sums, both joined
     * (32); a copy of the exponentials that goes; the loss */
    EXPECT_EVENTS(&m.events, "+96 +16 AllReduce:4 +4 +32 +16 +16 +32 -16 -16 "
                             "AllReduce:8 +96 -96 +16 -16 -32");
    assert_string_equal(test_backward(&m.events, loss),
                        "+96 +48 -96 -96 -4 -32");
    test_model_fini(&m);
}

/** The second run of the fused one on logits of @p dtype. */
static void run_fused(test_model *m, me_dtype dtype, const char *expected,
                      const char *expected_backward)
{
    m->config.train.cross_entropy_loss_fusion = true;
    for (int i = 0; i < 2; i++) { /* the first run compiles */
        me_tensor *logits = test_tensor(m->nn.e, dtype, ME_SHAPE(4, 1, 6));
        logits->requires_grad = true;
        me_tensor *target =
            test_tensor(m->nn.e, ME_DTYPE_INT64, ME_SHAPE(4, 1));
        (void)me_test_events_take(&m->events);
        me_tensor *loss =
            me_vocab_parallel_cross_entropy(&m->nn, logits, target);
        const char *events = me_test_events_take(&m->events);
        if (i == 1) {
            assert_string_equal(events, expected);
        }
        events = test_backward(&m->events, loss);
        if (i == 1) {
            assert_string_equal(events, expected_backward);
        }
    }
}

/* The gradient is bfloat16 whatever the logits are, and cast to their type then. */
static void test_loss__fused_of_other_types(void **state)
{
    (void)state;
    static const char after_logits[] =
        "+16 AllReduce:4 +4 +32 +16 +16 +32 -16 -16 AllReduce:8 +96 -96 +16 "
        "-16 -32";
    static const char with_logits[] =
        "+96 +16 AllReduce:4 +4 +32 +16 +16 +32 -16 -16 AllReduce:8 +96 -96 "
        "+16 -16 -32";
    test_model m;
    test_model_init(&m, 1);
    run_fused(&m, ME_DTYPE_FLOAT16, with_logits,
              "+96 +48 -96 +48 -48 -96 -4 -32");
    run_fused(&m, ME_DTYPE_FLOAT32, after_logits, "+96 +48 -96 +96 -48 -4 -32");
    test_model_fini(&m);
}

/* Transformer Engine's: loss 16, three numbers of each token 48, which two ranks
 * gather, tokens that count 8 and at least one of them. The logits are gradient
 * from then on: the backward asks whether it is multiplied by 1, and hands them
 * on. */
static void test_loss__transformer_engine(void **state)
{
    (void)state;
    static const char *const expected[2] = {
        "+16 +48 +8 +8 -8 -8 -48",
        "+16 +48 +8 +8 -8 +96 AllGather:12 -48 -8 -96",
    };
    for (int32_t ranks = 1; ranks <= 2; ranks++) {
        test_model m;
        test_model_init(&m, ranks);
        m.config.parallel.tensor = ranks;
        m.config.train.cross_entropy_loss_fusion = true;
        m.config.train.cross_entropy_fusion_impl = ME_CROSS_ENTROPY_TE;
        m.config.impl.transformer = ME_TRANSFORMER_ENGINE;
        me_tensor *logits = me_test_leaf(m.nn.e, ME_SHAPE(4, 1, 6));
        me_tensor *target = test_tensor(m.nn.e, ME_DTYPE_INT64, ME_SHAPE(4, 1));
        (void)me_test_events_take(&m.events);
        me_tensor *loss =
            me_vocab_parallel_cross_entropy(&m.nn, logits, target);
        EXPECT_EVENTS(&m.events, expected[ranks - 1]);
        assert_string_equal(test_backward(&m.events, loss), "+4 -4");
        test_model_fini(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss__unfused),
        cmocka_unit_test(test_loss__wide_rows),
        cmocka_unit_test(test_loss__float32),
        cmocka_unit_test(test_loss__fused),
        cmocka_unit_test(test_loss__fused_of_other_types),
        cmocka_unit_test(test_loss__transformer_engine),
    };
    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
