/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/huggingface/huggingface_keys.h"

#include "config/flags.h"

#include <string.h>

/* clang-format off */
#define RULE(keys, use, option, neutral, note) \
    {keys, use, option, neutral, note, ME_EITHER(NONE)}
#define UNMODELLED(keys, use, neutral, effect, note) \
    {keys, use, NULL, neutral, note, effect}
#define OPTION(keys, option) RULE(keys, ME_HF_OPTION, option, NULL, NULL)
#define DERIVED(keys) RULE(keys, ME_HF_DERIVED, NULL, NULL, NULL)
#define END {.keys = NULL}

/** What every architecture may have. */
static const me_hf_rule common_rules[] = {
    OPTION("vocab_size", "model.vocab_size"),
    RULE("torch_dtype|dtype", ME_HF_NO_EFFECT, NULL, NULL,
     "of the stored checkpoint; train.params_dtype is that of training"),
    RULE("tie_word_embeddings", ME_HF_INVERSE,
     "model.untie_embeddings_and_output_weights", NULL, NULL),
    UNMODELLED("quantization_config", ME_HF_QUANTIZED,
     "fp8|mxfp4|fbgemm_fp8|compressed-tensors",
     ME_EITHER(ANY), "quantised weights; train.params_dtype is estimated"),
    UNMODELLED("compression_config", ME_HF_UNMODELLED, NULL,
     ME_EITHER(ANY), "quantised weights; train.params_dtype is estimated"),
    RULE("num_experts|num_local_experts|n_routed_experts|num_experts_per_tok|"
     "moe_intermediate_size|moe_num_experts|n_shared_experts", ME_HF_REFUSED,
     NULL, "0", "models of this class have no experts"),
    UNMODELLED("num_nextn_predict_layers|num_mtp_layers", ME_HF_DEPTHS, NULL,
     ME_HIGHER(ANY), NULL),
    RULE("is_decoder", ME_HF_NO_EFFECT, NULL, NULL,
     "a causal model is one"),
    RULE("is_encoder_decoder|add_cross_attention", ME_HF_REFUSED,
     NULL, "false", "cross-attention is not modelled"),
    UNMODELLED("gradient_checkpointing", ME_HF_UNMODELLED, "false",
     ME_LOWER(ANY), "give recompute.granularity"),
    UNMODELLED("chunk_size_feed_forward", ME_HF_UNMODELLED, "0",
     ME_LOWER(SOME), "the MLP in chunks"),
    RULE("architectures|model_type|transformers_version|_name_or_path|"
     "_attn_implementation|_attn_implementation_autoset|attn_implementation|auto_map|"
     "bos_token_id|eos_token_id|pad_token_id|unk_token_id|sep_token_id|"
     "decoder_start_token_id|tokenizer_class|initializer_range|use_cache|"
     "output_attentions|output_hidden_states|return_dict|id2label|label2id|"
     "num_labels|task_specific_params|problem_type|torchscript|use_bfloat16|"
     "finetuning_task|prefix|do_sample|max_length|min_length|temperature|top_k|"
     "top_p|repetition_penalty|typical_p|length_penalty|diversity_penalty|"
     "exponential_decay_length_penalty|early_stopping|num_beams|num_beam_groups|"
     "num_return_sequences|no_repeat_ngram_size|encoder_no_repeat_ngram_size|"
     "bad_words_ids|suppress_tokens|begin_suppress_tokens|forced_bos_token_id|"
     "forced_eos_token_id|remove_invalid_values|output_scores|"
     "return_dict_in_generate|tie_encoder_decoder|cross_attention_hidden_size|"
     "pruned_heads|tf_legacy_loss|max_new_tokens|min_new_tokens|model_max_length|"
     "trust_remote_code|_commit_hash|unsloth_version|unsloth_fixed|"
     "license|seed|cache_implementation|"
     "attn_config|classifier_dropout", ME_HF_NO_EFFECT, NULL, NULL,
     "names, numbers of special tokens, how text is generated, what a forward "
     "returns"),
    END,
};

/** Beside the language model's part of a file. */
static const me_hf_rule outer_rules[] = {
    UNMODELLED("vision_config|audio_config", ME_HF_UNMODELLED, NULL, ME_HIGHER(ANY),
     "an encoder of images or sounds; the language model alone is estimated"),
    RULE("image_token_index|image_token_id|boi_token_index|boi_token_id|"
     "video_token_id|vision_start_token_id|vision_end_token_id|vision_token_id|"
     "eoi_token_index|eoi_token_id|mm_tokens_per_image|spatial_merge_size|"
     "vision_feature_layer|projector_hidden_act|multimodal_projector_bias|"
     "tie_word_embeddings|vocab_size", ME_HF_NO_EFFECT, NULL, NULL,
     "how images become tokens, and what the language model's part says"),
    END,
};

const me_hf_rule me_hf_llama_rules[] = {
    OPTION("num_hidden_layers", "model.num_layers"),
    OPTION("hidden_size", "model.hidden_size"),
    OPTION("intermediate_size", "model.ffn_hidden_size"),
    OPTION("num_attention_heads", "model.num_attention_heads"),
    OPTION("num_key_value_heads", "model.num_query_groups"),
    OPTION("head_dim", "model.kv_channels"),
    OPTION("max_position_embeddings", "model.max_position_embeddings"),
    OPTION("attention_dropout", "model.attention_dropout"),
    OPTION("partial_rotary_factor", "model.rotary_percent"),
    RULE("hidden_act", ME_HF_REFUSED,
     NULL, "silu|swish", "of gated activations only silu is modelled"),
    RULE("attention_bias|mlp_bias", ME_HF_BIAS,
     "model.add_bias_linear", NULL, NULL),
    UNMODELLED("rope_scaling|rope_parameters", ME_HF_ROPE, "default|linear|dynamic|llama3",
     ME_EITHER(SMALL), "another rotary embedding"),
    RULE("sliding_window", ME_HF_WINDOW, "model.window_attention", NULL, NULL),
    UNMODELLED("layer_types", ME_HF_LAYER_TYPES, "full_attention",
     ME_EITHER(ANY), "layers of other kinds; full attention is estimated"),
    RULE("use_sliding_window|max_window_layers|rms_norm_eps|rope_theta|"
     "original_max_position_embeddings|pretraining_tp|rope_interleaved|"
     "use_mrope|sliding_window_pattern|_sliding_window_pattern|sliding_window_size",
     ME_HF_NO_EFFECT, NULL, NULL,
     "what sliding_window decides; numbers that kernels use"),
    END,
};

const me_hf_rule me_hf_experts_rules[] = {
    OPTION("num_experts|num_local_experts|n_routed_experts", "moe.num_experts"),
    OPTION("num_experts_per_tok", "moe.router_topk"),
    OPTION("moe_intermediate_size", "moe.ffn_hidden_size"),
    OPTION("router_aux_loss_coef", "moe.aux_loss_coeff"),
    OPTION("scoring_func", "moe.router_score_function"),
    RULE("norm_topk_prob", ME_HF_INVERSE, "moe.router_pre_softmax", NULL, NULL),
    RULE("router_jitter_noise|input_jitter_noise", ME_HF_OPTION,
     "moe.input_jitter_eps", "0|0.0", NULL),
    RULE("output_router_logits|ep_size|experts_per_token",
     ME_HF_NO_EFFECT, NULL, NULL, "what a forward returns, a second name"),
    END,
};

const me_hf_rule me_hf_qwen_experts_rules[] = {
    OPTION("shared_expert_intermediate_size",
           "moe.shared_expert_intermediate_size"),
    OPTION("qkv_bias", "model.add_qkv_bias"),
    DERIVED("decoder_sparse_step|mlp_only_layers"),
    END,
};

const me_hf_rule me_hf_deepseek_experts_rules[] = {
    OPTION("aux_loss_alpha", "moe.aux_loss_coeff"),
    OPTION("routed_scaling_factor", "moe.router_topk_scaling_factor"),
    DERIVED("n_shared_experts|first_k_dense_replace|mlp_layer_types|"
     "moe_layer_freq|topk_method|"
     "n_group|topk_group|seq_aux"),
    END,
};

const me_hf_rule me_hf_latent_rules[] = {
    OPTION("q_lora_rank", "model.q_lora_rank"),
    OPTION("kv_lora_rank", "model.kv_lora_rank"),
    OPTION("qk_nope_head_dim", "model.qk_head_dim"),
    OPTION("qk_rope_head_dim", "model.qk_pos_emb_head_dim"),
    OPTION("v_head_dim", "model.v_head_dim"),
    UNMODELLED("rope_scaling|rope_parameters", ME_HF_LATENT_ROPE,
     "default|linear|dynamic|llama3", ME_EITHER(SMALL), "another rotary embedding"),
    RULE("num_key_value_heads|head_dim|qk_head_dim|rope_interleave",
     ME_HF_NO_EFFECT, NULL, NULL, "every head of keys comes from the latent"),
    END,
};

const me_hf_rule me_hf_gemma_rules[] = {
    RULE("hidden_act|hidden_activation", ME_HF_REFUSED,
     NULL, "gelu|gelu_new|gelu_fast|gelu_pytorch_tanh", "a Gemma's MLP has gated gelus"),
    UNMODELLED("attn_logit_softcapping", ME_HF_UNMODELLED, NULL, ME_HIGHER(MUCH),
     "soft cap of attention's scores, by kernels of its own; without is estimated"),
    UNMODELLED("final_logit_softcapping", ME_HF_UNMODELLED, NULL, ME_HIGHER(MUCH),
     "soft cap of the logits, of which one more is kept; without is estimated"),
    RULE("query_pre_attn_scalar|rope_local_base_freq", ME_HF_NO_EFFECT, NULL, NULL,
     "numbers that kernels use"),
    UNMODELLED("use_bidirectional_attention", ME_HF_UNMODELLED, "false",
     ME_EITHER(SOME), "attention to later tokens"),
    END,
};

const me_hf_rule me_hf_phi_rules[] = {
    OPTION("resid_pdrop", "model.hidden_dropout"),
    UNMODELLED("embd_pdrop", ME_HF_DROPOUT, NULL, ME_EITHER(SMALL),
     "another dropout for embeddings; resid_pdrop is estimated"),
    END,
};

const me_hf_rule me_hf_gpt_oss_rules[] = {
    RULE("attention_bias|swiglu_limit|swiglu_alpha|initial_context_length",
     ME_HF_NO_EFFECT, NULL, NULL, "as all models of the class have it"),
    UNMODELLED("rope_scaling|rope_parameters", ME_HF_YARN,
     "default|linear|dynamic|llama3", ME_EITHER(SMALL), "another rotary embedding"),
    END,
};

const me_hf_rule me_hf_glm_rules[] = {
    OPTION("attention_bias", "model.add_qkv_bias"),
    OPTION("use_qk_norm", "model.qk_layernorm"),
    RULE("attention_head_dim|eod_token_id|use_cla|cla_share_factor", ME_HF_NO_EFFECT,
     NULL, NULL, "a second name, a special token"),
    END,
};

const me_hf_rule me_hf_chatglm_rules[] = {
    OPTION("num_layers|num_hidden_layers", "model.num_layers"),
    OPTION("hidden_size", "model.hidden_size"),
    OPTION("ffn_hidden_size", "model.ffn_hidden_size"),
    OPTION("num_attention_heads", "model.num_attention_heads"),
    OPTION("kv_channels", "model.kv_channels"),
    OPTION("padded_vocab_size", "model.vocab_size"),
    OPTION("seq_length", "model.max_position_embeddings"),
    OPTION("add_bias_linear", "model.add_bias_linear"),
    OPTION("add_qkv_bias", "model.add_qkv_bias"),
    OPTION("attention_dropout", "model.attention_dropout"),
    OPTION("hidden_dropout", "model.hidden_dropout"),
    OPTION("fp32_residual_connection", "model.fp32_residual_connection"),
    DERIVED("multi_query_attention|multi_query_group_num"),
    RULE("rmsnorm|post_layer_norm", ME_HF_REFUSED, NULL, "true",
     "of ChatGLM's models only those with RMSNorm and a last norm are modelled"),
    RULE("vocab_size|bias_dropout_fusion|layernorm_epsilon|original_rope|"
     "rope_ratio|attention_softmax_in_fp32|apply_query_key_layer_scaling|"
     "apply_residual_connection_post_layernorm|interleaved_qkv|rope_theta",
     ME_HF_NO_EFFECT, NULL, NULL,
     "a second name of padded_vocab_size; numbers that kernels use"),
    END,
};

const me_hf_rule me_hf_starcoder2_rules[] = {
    RULE("hidden_act", ME_HF_REFUSED,
     NULL, "gelu|gelu_new|gelu_fast|gelu_pytorch_tanh", "only gelu is modelled"),
    OPTION("use_bias", "model.add_bias_linear"),
    OPTION("residual_dropout", "model.hidden_dropout"),
    UNMODELLED("embedding_dropout", ME_HF_DROPOUT, NULL, ME_EITHER(SMALL),
     "another dropout for embeddings; residual_dropout is estimated"),
    RULE("norm_epsilon|norm_type|mlp_type|layer_norm_epsilon", ME_HF_NO_EFFECT, NULL, NULL,
     "as all models of the class have it"),
    END,
};

const me_hf_rule me_hf_no_rope_rules[] = {
    RULE("no_rope_layers|no_rope_layer_interval", ME_HF_NO_EFFECT, NULL, NULL,
     "what is listed of all models of the class"),
    END,
};

const me_hf_rule me_hf_seed_rules[] = {
    OPTION("attention_bias", "model.add_qkv_bias"),
    OPTION("residual_dropout", "model.hidden_dropout"),
    UNMODELLED("attention_out_bias|mlp_bias", ME_HF_UNMODELLED, "false",
     ME_HIGHER(SMALL), "biases of linear layers; none is estimated"),
    END,
};

const me_hf_rule me_hf_ernie_rules[] = {
    OPTION("use_bias", "model.add_bias_linear"),
    OPTION("moe_num_experts", "moe.num_experts"),
    OPTION("moe_k", "moe.router_topk"),
    DERIVED("moe_num_shared_experts|mlp_layer_types|moe_layer_start_index|moe_layer_end_index|"
     "moe_layer_interval"),
    RULE("moe_norm_min|moe_use_aux_free|compression_ratio|freq_allocation",
     ME_HF_NO_EFFECT, NULL, NULL, "numbers that kernels use"),
    END,
};

const me_hf_rule me_hf_minimax_rules[] = {
    OPTION("intermediate_size", "moe.ffn_hidden_size"),
    DERIVED("rotary_dim"),
    RULE("use_qk_norm|qk_norm_type|use_routing_bias|shared_intermediate_size|"
     "shared_moe_mode|attn_type_list|mtp_transformer_layers|use_mtp|"
     "num_mtp_modules|layernorm_full_attention_beta|"
     "layernorm_linear_attention_beta|layernorm_mlp_beta|"
     "max_model_len|output_router_logits", ME_HF_NO_EFFECT, NULL, NULL,
     "as all models of the class have it"),
    END,
};

const me_hf_rule me_hf_scaled_rules[] = {
    UNMODELLED("scale_emb|scale_depth|dim_model_base|embedding_multiplier|"
     "logits_scaling|residual_multiplier", ME_HF_UNMODELLED, "1|1.0",
     ME_HIGHER(SOME), "outputs of embedding, sub-layers and model times a number"),
    RULE("mup_denominator|use_rope_scaling|attention_multiplier", ME_HF_NO_EFFECT, NULL, NULL,
     "numbers that kernels use"),
    END,
};

const me_hf_rule me_hf_internlm_first_rules[] = {
    OPTION("bias", "model.add_qkv_bias"),
    RULE("rotary", ME_HF_NO_EFFECT, NULL, NULL, "base of the rotary embedding"),
    END,
};

const me_hf_rule me_hf_internlm_rules[] = {
    OPTION("qkv_bias", "model.add_qkv_bias"),
    UNMODELLED("bias", ME_HF_UNMODELLED, "false", ME_HIGHER(SMALL),
     "biases of linear layers; none is estimated"),
    END,
};

const me_hf_rule me_hf_nemotron_rules[] = {
    RULE("hidden_act", ME_HF_REFUSED, NULL, "relu2",
     "a Nemotron's MLP has squared relus"),
    OPTION("rotary_percent", "model.rotary_percent"),
    RULE("norm_eps", ME_HF_NO_EFFECT, NULL, NULL, "numbers that kernels use"),
    END,
};

const me_hf_rule me_hf_olmo_rules[] = {
    UNMODELLED("clip_qkv", ME_HF_UNMODELLED, NULL, ME_HIGHER(SOME),
     "clamped queries, keys and values"),
    END,
};

const me_hf_rule me_hf_llama4_rules[] = {
    OPTION("intermediate_size_mlp", "model.ffn_hidden_size"),
    OPTION("intermediate_size", "moe.ffn_hidden_size"),
    DERIVED("interleave_moe_layer_step|moe_layers"),
    UNMODELLED("use_qk_norm", ME_HF_UNMODELLED, "false", ME_HIGHER(SOME),
     "norms of queries and keys without weights; none is estimated"),
    RULE("attention_chunk_size", ME_HF_WINDOW, "model.window_attention", NULL, NULL),
    RULE("no_rope_layers|no_rope_layer_interval|attn_temperature_tuning|"
     "floor_scale|attn_scale|for_llm_compressor", ME_HF_NO_EFFECT, NULL, NULL,
     "what is listed of all models of the class"),
    END,
};

const me_hf_rule me_hf_gpt2_rules[] = {
    OPTION("n_layer", "model.num_layers"),
    OPTION("n_embd", "model.hidden_size"),
    OPTION("n_head", "model.num_attention_heads"),
    OPTION("n_inner", "model.ffn_hidden_size"),
    OPTION("n_positions", "model.max_position_embeddings"),
    OPTION("attn_pdrop", "model.attention_dropout"),
    OPTION("resid_pdrop", "model.hidden_dropout"),
    UNMODELLED("embd_pdrop", ME_HF_DROPOUT, NULL,
     ME_EITHER(SMALL), "another dropout for embeddings; resid_pdrop is estimated"),
    RULE("activation_function", ME_HF_REFUSED,
     NULL, "gelu|gelu_new|gelu_fast|gelu_pytorch_tanh", "only gelu is modelled"),
    UNMODELLED("reorder_and_upcast_attn", ME_HF_UNMODELLED, "false",
     ME_HIGHER(SOME), "attention scores in float32: model.attention_softmax_in_fp32 is nearest"),
    UNMODELLED("scale_attn_by_inverse_layer_idx", ME_HF_UNMODELLED, "false",
     ME_HIGHER(SOME), "attention scores are divided once more"),
    RULE("n_ctx|layer_norm_epsilon|scale_attn_weights|summary_activation|"
     "summary_first_dropout|summary_proj_to_labels|summary_type|"
     "summary_use_proj", ME_HF_NO_EFFECT, NULL, NULL,
     "a second name of n_positions; numbers that kernels use; heads of other "
     "models"),
    END,
};

/* clang-format on */

static const me_hf_rule *find_in(const me_hf_rule *rules, const char *key)
{
    for (; rules->keys != NULL; rules++) {
        if (me_words_have(rules->keys, strlen(rules->keys), key)) {
            return rules;
        }
    }
    return NULL;
}

const me_hf_rule *me_hf_rule_find(const me_hf_architecture *architecture,
                                  const char *key)
{
    const me_hf_rule *rule = NULL;
    const me_hf_rule *const *lists = architecture->rules;
    for (int i = 0; i < ME_HF_RULES && lists[i] != NULL && rule == NULL; i++) {
        rule = find_in(lists[i], key);
    }
    rule = rule != NULL ? rule : find_in(common_rules, key);
    return rule == NULL && architecture->text != NULL
               ? me_hf_outer_rule_find(key) // of older files, in one object
               : rule;
}

const me_hf_rule *me_hf_outer_rule_find(const char *key)
{
    const me_hf_rule *rule = find_in(outer_rules, key);
    return rule != NULL ? rule : find_in(common_rules, key);
}
