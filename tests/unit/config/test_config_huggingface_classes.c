/* SPDX-License-Identifier: BSD-3-Clause */
#include "config_json.h"

#include <stdio.h>

#define ERNIE                                                                  \
    "\"model_type\": \"ernie4_5_moe\", " SIZES ", \"moe_num_experts\": 8, "    \
    "\"moe_k\": 2, \"moe_intermediate_size\": 64"

/* Which layers have experts, as the classes' keys say it. */
static void test_huggingface__layers_with_experts(void **state)
{
    static const struct {
        const char *text;
        const char *layers;
    } cases[] = {
        {QWEN_MOE, "1"},
        {QWEN_MOE ", \"decoder_sparse_step\": 2", "([0]*1+[1]*1)*2"},
        {QWEN_MOE ", \"mlp_only_layers\": [0, 3]", "([0]*1+[1]*2+[0]*1)"},
        {QWEN_MOE ", \"mlp_only_layers\": [0, 1, 2, 3]", "([0]*1)*4"},
        {QWEN_MOE ", \"decoder_sparse_step\": 0", "([0]*1)*4"},
        {DEEPSEEK ", \"q_lora_rank\": null", "1"},
        {DEEPSEEK ", \"q_lora_rank\": 16, \"first_k_dense_replace\": 1",
         "([0]*1+[1]*3)"},
        {DEEPSEEK ", \"q_lora_rank\": 16, \"first_k_dense_replace\": 1, "
                  "\"moe_layer_freq\": 2",
         "([0]*2+[1]*1+[0]*1)"},
        {"\"model_type\": \"llama4_text\", " SIZES
         ", \"intermediate_size_mlp\": 96, \"num_local_experts\": 4, "
         "\"num_experts_per_tok\": 1, \"interleave_moe_layer_step\": 2",
         "([0]*1+[1]*1)*2"},
        {"\"model_type\": \"llama4_text\", " SIZES
         ", \"intermediate_size_mlp\": 96, \"num_local_experts\": 4, "
         "\"num_experts_per_tok\": 1, \"moe_layers\": [2]",
         "([0]*2+[1]*1+[0]*1)"},
        {"\"model_type\": \"deepseek_v3\", " DEEPSEEK_SIZES
         ", \"q_lora_rank\": 16, \"mlp_layer_types\": "
         "[\"dense\", \"sparse\", \"sparse\", \"dense\"]",
         "([0]*1+[1]*2+[0]*1)"},
        {ERNIE, "([0]*1+[1]*3)"},
        {ERNIE ", \"moe_layer_start_index\": 0, \"moe_layer_end_index\": 2",
         "([1]*3+[0]*1)"},
        {ERNIE ", \"moe_layer_end_index\": -1, \"moe_layer_interval\": 2",
         "([0]*1+[1]*1)*2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "{%s}", cases[i].text);
        me_config *config = job_of(text);
        assert_string_equal(config->moe.layer_freq, cases[i].layers);
        me_config_destroy(config);
    }
}

/* How experts are chosen. */
static void test_huggingface__routing(void **state)
{
    (void)state;
    me_config *config =
        job_of("{" DEEPSEEK
               ", \"q_lora_rank\": null, \"n_group\": 4, \"topk_group\": 2, "
               "\"topk_method\": \"noaux_tc\", \"scoring_func\": \"sigmoid\", "
               "\"seq_aux\": true, \"routed_scaling_factor\": 2.5}");
    assert_int_equal(config->moe.router_num_groups, 4);
    assert_int_equal(config->moe.router_group_topk, 2);
    assert_true(config->moe.router_enable_expert_bias);
    assert_int_equal(config->moe.router_score_function, ME_SCORE_SIGMOID);
    assert_string_equal(config->moe.load_balancing, "seq_aux_loss");
    assert_true(config->moe.router_topk_scaling_factor > 2.4);
    assert_int_equal(config->not_modelled.count, 0);
    me_config_destroy(config);
    config = job_of("{" DEEPSEEK ", \"q_lora_rank\": null, \"n_group\": 4, "
                    "\"topk_group\": 2, \"topk_method\": \"greedy\"}");
    assert_int_equal(config->moe.router_num_groups, 0);
    assert_false(config->moe.router_enable_expert_bias);
    me_config_destroy(config);
    config = job_of("{\"model_type\": \"mixtral\", " SIZES
                    ", \"num_local_experts\": 8, \"num_experts_per_tok\": 2, "
                    "\"router_jitter_noise\": 0.0}");
    assert_true(config->moe.input_jitter_eps < 0);
    me_config_destroy(config);
    config = job_of("{\"model_type\": \"mixtral\", " SIZES
                    ", \"num_local_experts\": 8, \"num_experts_per_tok\": 2, "
                    "\"router_jitter_noise\": 0.1}");
    assert_true(config->moe.input_jitter_eps > 0);
    me_config_destroy(config);
    config = job_of("{\"model_type\": \"minimax_m2\", " SIZES
                    ", \"num_local_experts\": 8, \"num_experts_per_tok\": 2, "
                    "\"rotary_dim\": 64}");
    assert_true(config->model.qk_layernorm_across_heads);
    assert_true(config->model.rotary_percent < 0.6);
    assert_int_equal(config->moe.ffn_hidden_size, 688);
    me_config_destroy(config);
}

static void test_huggingface__latent_attention(void **state)
{
    (void)state;
    me_config *config = job_of(
        "{" DEEPSEEK ", \"q_lora_rank\": null, \"n_shared_experts\": 2}");
    const me_model_config *m = &config->model;
    assert_true(m->multi_latent_attention && m->qk_layernorm);
    assert_int_equal(m->q_lora_rank, 0);
    assert_int_equal(m->kv_lora_rank, 32);
    assert_int_equal(m->qk_head_dim, 16);
    assert_int_equal(m->qk_pos_emb_head_dim, 8);
    assert_int_equal(m->v_head_dim, 24);
    assert_int_equal(m->rope_type, ME_ROPE_TYPE_ROPE);
    assert_false(config->train.apply_rope_fusion);
    assert_int_equal(m->num_query_groups,
                     0); /* its keys' heads are no groups */
    assert_int_equal(config->moe.shared_expert_intermediate_size, 128);
    me_config_destroy(config);
    config = job_of("{" DEEPSEEK ", \"q_lora_rank\": 16, "
                    "\"rope_scaling\": {\"type\": \"yarn\"}}");
    assert_int_equal(config->model.rope_type, ME_ROPE_TYPE_YARN);
    assert_false(config->train.apply_rope_fusion); /* as Megatron-Bridge */
    assert_true(list_has(&config->modelled, "rope_scaling"));
    me_config_destroy(config);
}

/* What stands beside the language model's part is read, and named. */
static void test_huggingface__models_of_images(void **state)
{
    (void)state;
    me_config *config = job_of(
        "{\"model_type\": \"gemma3\", \"vision_config\": {\"hidden_size\": 9},"
        "\"image_token_index\": 7, \"brand_new\": 1, \"text_config\": {" SIZES
        "}}");
    assert_int_equal(config->model.hidden_size, 256);
    assert_int_equal(config->model.norm_placement, ME_NORMS_BOTH);
    assert_int_equal(config->model.activation, ME_ACTIVATION_GEGLU);
    assert_false(config->model.untie_embeddings_and_output_weights);
    assert_true(list_has(&config->not_modelled, "vision_config"));
    assert_true(list_has(&config->not_modelled, "brand_new"));
    assert_true(list_has(&config->no_effect, "image_token_index"));
    assert_true(
        list_has(&config->not_modelled, "Gemma3ForConditionalGeneration"));
    me_config_destroy(config);
}

static void test_huggingface__chatglm(void **state)
{
    (void)state;
    me_config *config = job_of(
        "{\"architectures\": [\"ChatGLMForConditionalGeneration\"], "
        "\"num_layers\": 4, \"hidden_size\": 256, \"ffn_hidden_size\": 688, "
        "\"num_attention_heads\": 8, \"kv_channels\": 32, "
        "\"padded_vocab_size\": 1000, \"multi_query_attention\": true, "
        "\"multi_query_group_num\": 2, \"rmsnorm\": true}");
    assert_int_equal(config->model.num_query_groups, 2);
    assert_int_equal(config->model.vocab_size, 1000);
    assert_true(config->model.add_qkv_bias);
    assert_int_equal(config->not_modelled.count, 0);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_huggingface__layers_with_experts),
        cmocka_unit_test(test_huggingface__routing),
        cmocka_unit_test(test_huggingface__latent_attention),
        cmocka_unit_test(test_huggingface__models_of_images),
        cmocka_unit_test(test_huggingface__chatglm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
