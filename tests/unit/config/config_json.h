/**
 * @file
 * Files of Hugging Face's for the tests of src/config/huggingface.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_CONFIG_CONFIG_JSON_H
#define MEMEST_TESTS_UNIT_CONFIG_CONFIG_JSON_H

#include "config/huggingface/huggingface.h"
#include "job.h"

#define LLAMA "\"architectures\": [\"LlamaForCausalLM\"],\n" SIZES
#define SIZES                                                                  \
    "\"num_hidden_layers\": 4,\n"                                              \
    "\"hidden_size\": 256, \"intermediate_size\": 688,\n"                      \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 2,\n"                \
    "\"vocab_size\": 1000, \"max_position_embeddings\": 512"

/* Line 5 is the last of these. */
#define QWEN_MOE                                                               \
    "\"model_type\": \"qwen3_moe\",\n" SIZES ", \"num_experts\": 8, "          \
    "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 64"
#define DEEPSEEK "\"model_type\": \"deepseek_v2\", " DEEPSEEK_SIZES
#define DEEPSEEK_SIZES                                                         \
    SIZES ", \"n_routed_experts\": 8, "                                        \
          "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 64, "        \
          "\"kv_lora_rank\": 32, \"qk_nope_head_dim\": 16, "                   \
          "\"qk_rope_head_dim\": 8, \"v_head_dim\": 24"

static inline me_status read_json(me_config *config, const char *text,
                                  me_diag *diag)
{
    return me_huggingface_read(config, "config.json", text, strlen(text), diag);
}

static inline me_config *job_of(const char *text)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_non_null(config);
    const me_status status = read_json(config, text, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    return config;
}

#endif /* MEMEST_TESTS_UNIT_CONFIG_CONFIG_JSON_H */
