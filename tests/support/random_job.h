/**
 * @file
 * Random jobs that are valid, for properties of whole simulations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_RANDOM_JOB_H
#define MEMEST_TESTS_SUPPORT_RANDOM_JOB_H

#include "support/random.h"
#include "support/simulate.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TEST_SETS_MAX = 50,
    TEST_SET_TEXT = 64
};

/** The options of a random job, as `--set` takes them. */
typedef struct test_sets {
    char text[TEST_SETS_MAX][TEST_SET_TEXT];
    const char *list[TEST_SETS_MAX + 1];
    int count;
} test_sets;

static inline void test_sets_add(test_sets *s, const char *key, int64_t value)
{
    assert_true(s->count < TEST_SETS_MAX);
    (void)snprintf(s->text[s->count], TEST_SET_TEXT, "%s=%" PRId64, key, value);
    s->list[s->count] = s->text[s->count];
    s->list[++s->count] = NULL;
}

static inline void test_sets_add_text(test_sets *s, const char *set)
{
    assert_true(s->count < TEST_SETS_MAX);
    s->list[s->count] = set;
    s->list[++s->count] = NULL;
}

static inline void test_sets_add_bool(test_sets *s, const char *key, bool value)
{
    assert_true(s->count < TEST_SETS_MAX);
    (void)snprintf(s->text[s->count], TEST_SET_TEXT, "%s=%s", key,
                   value ? "true" : "false");
    s->list[s->count] = s->text[s->count];
    s->list[++s->count] = NULL;
}

static inline bool test_coin(me_random *random)
{
    return me_random_in(random, 0, 1) == 1;
}

/** Latents and heads that 1, 2 and 4 tensor ranks divide. */
static inline void test_make_latents(me_random *random, test_sets *s)
{
    test_sets_add_text(s, "model.multi_latent_attention=true");
    test_sets_add_text(s, test_coin(random) ? "model.rope_type=yarn"
                                            : "model.rope_type=rope");
    test_sets_add_text(s, "train.apply_rope_fusion=false");
    if (test_coin(random)) {
        test_sets_add(s, "model.q_lora_rank",
                      4 * (int64_t)me_random_in(random, 1, 9));
    }
    test_sets_add(s, "model.kv_lora_rank",
                  4 * (int64_t)me_random_in(random, 1, 9));
    test_sets_add(s, "model.qk_head_dim", me_random_in(random, 1, 20));
    test_sets_add(s, "model.qk_pos_emb_head_dim",
                  4 * (int64_t)me_random_in(random, 1, 4));
    test_sets_add(s, "model.v_head_dim", me_random_in(random, 1, 20));
    test_sets_add_bool(s, "model.qk_layernorm", test_coin(random));
}

/** A model whose sizes 1, 2 and 4 tensor ranks divide. */
static inline void test_make_model(me_random *random, test_sets *s)
{
    static const char *const activations[] = {"model.activation=gelu",
                                              "model.activation=swiglu",
                                              "model.activation=squared_relu"};
    const int32_t heads = 4 * me_random_in(random, 1, 2);
    test_sets_add(s, "model.num_layers",
                  4 * (int64_t)me_random_in(random, 1, 2));
    test_sets_add(s, "model.hidden_size",
                  heads * 8 * (int64_t)me_random_in(random, 1, 3));
    test_sets_add(s, "model.num_attention_heads", heads);
    const bool is_latent = me_random_in(random, 0, 3) == 0;
    test_sets_add(s, "model.num_query_groups",
                  is_latent || test_coin(random) ? heads : 4);
    if (is_latent) {
        test_make_latents(random, s);
    }
    test_sets_add(s, "model.ffn_hidden_size",
                  16 * (int64_t)me_random_in(random, 1, 8));
    test_sets_add(s, "model.seq_length",
                  8 * (int64_t)me_random_in(random, 1, 9));
    test_sets_add(s, "model.vocab_size", me_random_in(random, 10, 900));
    test_sets_add(s, "model.make_vocab_size_divisible_by", 4);
    const int32_t activation = me_random_in(random, 0, 2);
    test_sets_add_text(s, activations[activation]);
    test_sets_add_bool(s, "train.bias_gelu_fusion",
                       activation == 0 && test_coin(random));
    test_sets_add_text(s, test_coin(random) ? "model.normalization=RMSNorm"
                                            : "model.normalization=LayerNorm");
    const bool has_rope = test_coin(random);
    test_sets_add_text(
        s, has_rope ? "model.position_embedding_type=rope"
                    : "model.position_embedding_type=learned_absolute");
    test_sets_add(s, "model.mtp_num_layers",
                  has_rope ? me_random_in(random, 0, 2) : 0);
    const bool is_flash = test_coin(random);
    test_sets_add_text(s, is_flash ? "impl.core_attention=sdpa_flash"
                                   : "impl.core_attention=unfused");
    test_sets_add_text(s, is_flash || test_coin(random)
                              ? "train.params_dtype=bfloat16"
                              : "train.params_dtype=float32");
    test_sets_add_bool(s, "model.add_bias_linear", test_coin(random));
    test_sets_add_bool(s, "model.untie_embeddings_and_output_weights",
                       test_coin(random));
    test_sets_add_bool(s, "model.attention_softmax_in_fp32", test_coin(random));
    if (test_coin(random)) {
        test_sets_add_text(s, "model.attention_dropout=0");
        test_sets_add_text(s, "model.hidden_dropout=0");
    }
}

static inline void test_make_training(me_random *random, test_sets *s,
                                      int32_t batches)
{
    const int32_t micro = me_random_in(random, 1, 2);
    test_sets_add(s, "train.micro_batch_size", micro);
    test_sets_add(s, "train.global_batch_size", micro * (int64_t)batches);
    test_sets_add_bool(s, "train.bias_dropout_fusion", test_coin(random));
    test_sets_add_bool(s, "train.bias_swiglu_fusion", test_coin(random));
    const bool is_adam = test_coin(random);
    test_sets_add_text(s,
                       is_adam ? "optimizer.kind=adam" : "optimizer.kind=sgd");
    test_sets_add_bool(s, "optimizer.distributed",
                       is_adam && test_coin(random));
}

/** Tensor, pipeline and data parallelism of at most 8 ranks. */
static inline void test_make_grid(me_random *random, test_sets *s)
{
    const int32_t tensor = 1 << me_random_in(random, 0, 2);
    const int32_t pipeline = 1 << me_random_in(random, 0, 1);
    const int32_t data = me_random_in(random, 1, 2);
    test_sets_add(s, "parallel.tensor", tensor);
    test_sets_add(s, "parallel.pipeline", pipeline);
    test_sets_add(s, "parallel.world_size", tensor * pipeline * (int64_t)data);
    test_sets_add_bool(s, "parallel.sequence", tensor > 1 && test_coin(random));
    if (pipeline > 1 && test_coin(random)) {
        test_sets_add(s, "parallel.virtual_pipeline", 2);
    }
    test_make_training(random, s, data * pipeline * me_random_in(random, 1, 3));
}

static inline void test_plan_sets(test_job *job, const test_sets *s)
{
    me_diag diag = {.status = ME_OK};
    *job = (test_job){.config = me_config_create()};
    assert_non_null(job->config);
    me_status status = test_job_set(job, s->list, &diag);
    if (status == ME_OK) {
        status = test_job_plan(job, &diag);
    }
    if (status != ME_OK) {
        fail_msg("%s", diag.text);
    }
}

#endif /* MEMEST_TESTS_SUPPORT_RANDOM_JOB_H */
