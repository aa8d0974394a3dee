/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"
#include "config/huggingface/huggingface_private.h"

#include <string.h>

/* clang-format off */
#define RULE(keys, use, option, neutral, note) \
    {keys, use, option, neutral, note, ME_EITHER(NONE)}
#define UNMODELLED(keys, use, neutral, effect, note) \
    {keys, use, NULL, neutral, note, effect}
#define OPTION(key, option) RULE(key, ME_HF_OPTION, option, NULL, NULL)

/** What every architecture may have. */
static const me_hf_rule common_rules[] = {
    OPTION("vocab_size", "model.vocab_size"),
    RULE("torch_dtype|dtype", ME_HF_NO_EFFECT, NULL, NULL,
     "of the stored checkpoint; train.params_dtype is that of training"),
    RULE("tie_word_embeddings", ME_HF_TIED,
     "model.untie_embeddings_and_output_weights", NULL, NULL),
    UNMODELLED("quantization_config|compression_config", ME_HF_UNMODELLED, NULL,
     ME_EITHER(ANY), "quantised weights; train.params_dtype is estimated"),
    RULE("num_experts|num_local_experts|n_routed_experts|num_experts_per_tok|"
     "moe_intermediate_size|moe_num_experts", ME_HF_REFUSED,
     NULL, "0", "of models with experts only Mixtral is "
     "read"),
    RULE("num_nextn_predict_layers", ME_HF_REFUSED,
     NULL, "0", "multi-token prediction is not modelled"),
    RULE("is_decoder", ME_HF_NO_EFFECT, NULL, NULL,
     "a causal model is one"),
    RULE("is_encoder_decoder|add_cross_attention", ME_HF_REFUSED,
     NULL, "false", "cross-attention is not modelled"),
    UNMODELLED("gradient_checkpointing", ME_HF_UNMODELLED, "false",
     ME_LOWER(ANY), "give recompute.granularity"),
    UNMODELLED("chunk_size_feed_forward", ME_HF_UNMODELLED, "0",
     ME_LOWER(SOME), "the MLP in chunks"),
    RULE("architectures|model_type|transformers_version|_name_or_path|"
     "_attn_implementation|_attn_implementation_autoset|auto_map|"
     "bos_token_id|eos_token_id|pad_token_id|unk_token_id|sep_token_id|"
     "decoder_start_token_id|tokenizer_class|initializer_range|use_cache|"
     "output_attentions|output_hidden_states|return_dict|id2label|label2id|"
     "num_labels|task_specific_params|problem_type|torchscript|use_bfloat16|"
     "finetuning_task|prefix|do_sample|max_length|min_length|temperature|top_k|"
     "top_p|repetition_penalty|license|seed", ME_HF_NO_EFFECT, NULL, NULL,
     "names, numbers of special tokens, how text is generated, what a forward "
     "returns"),
    {.keys = NULL},
};

/** Llama and those that have its shape. */
static const me_hf_rule llama_rules[] = {
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
    UNMODELLED("sliding_window", ME_HF_WINDOW, NULL,
     ME_EITHER(SOME), "attention within a window; full attention is estimated"),
    UNMODELLED("layer_types", ME_HF_LAYER_TYPES, "full_attention",
     ME_EITHER(SOME), "layers of other kinds; full attention is estimated"),
    RULE("use_sliding_window|max_window_layers|rms_norm_eps|rope_theta|"
     "original_max_position_embeddings|pretraining_tp|rope_interleaved|"
     "use_mrope", ME_HF_NO_EFFECT, NULL, NULL,
     "what sliding_window decides; numbers that kernels use"),
    {.keys = NULL},
};

static const me_hf_rule mixtral_rules[] = {
    OPTION("num_local_experts", "moe.num_experts"),
    OPTION("num_experts_per_tok", "moe.router_topk"),
    OPTION("router_aux_loss_coef", "moe.aux_loss_coeff"),
    UNMODELLED("router_jitter_noise", ME_HF_UNMODELLED, "0|0.0",
     ME_HIGHER(SOME), "noise on what the router is given"),
    RULE("output_router_logits", ME_HF_NO_EFFECT, NULL, NULL,
     "what a forward returns"),
    {.keys = NULL},
};

static const me_hf_rule gpt2_rules[] = {
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
    {.keys = NULL},
};

#define LLAMA_REQUIRED \
    "num_hidden_layers|hidden_size|intermediate_size|num_attention_heads|" \
    "vocab_size"
#define LLAMA_SETTINGS \
    "model.normalization=RMSNorm model.activation=swiglu " \
    "model.add_bias_linear=false model.position_embedding_type=rope " \
    "model.attention_dropout=0 model.hidden_dropout=0 " \
    "model.untie_embeddings_and_output_weights=true"

/** Where a class has a default of its own for a key, the key is required. */
static const me_hf_architecture architectures[] = {
    {.name = "LlamaForCausalLM", .model_type = "llama",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS, .rules = llama_rules},
    {.name = "MistralForCausalLM", .model_type = "mistral",
     .required = LLAMA_REQUIRED "|num_key_value_heads",
     .settings = LLAMA_SETTINGS, .rules = llama_rules, .is_windowed = true},
    {.name = "MixtralForCausalLM", .model_type = "mixtral",
     .required = LLAMA_REQUIRED
                 "|num_key_value_heads|num_local_experts|num_experts_per_tok",
     .settings = LLAMA_SETTINGS " moe.token_dispatcher=alltoall",
     .own = mixtral_rules, .rules = llama_rules, .is_windowed = true},
    {.name = "Qwen2ForCausalLM", .model_type = "qwen2",
     .required = LLAMA_REQUIRED "|num_key_value_heads",
     .settings = LLAMA_SETTINGS " model.add_qkv_bias=true",
     .rules = llama_rules},
    {.name = "Qwen3ForCausalLM", .model_type = "qwen3",
     .required = LLAMA_REQUIRED "|num_key_value_heads|head_dim",
     .settings = LLAMA_SETTINGS " model.qk_layernorm=true",
     .rules = llama_rules},
    {.name = "GPT2LMHeadModel", .model_type = "gpt2",
     .required = "n_layer|n_embd|n_head|n_positions|vocab_size",
     .settings = "model.normalization=LayerNorm model.activation=gelu "
                 "model.position_embedding_type=learned_absolute",
     .rules = gpt2_rules},
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
    const me_hf_rule *rule =
        architecture->own == NULL ? NULL : find_in(architecture->own, key);
    rule = rule != NULL ? rule : find_in(architecture->rules, key);
    return rule != NULL ? rule : find_in(common_rules, key);
}

const me_hf_architecture *me_hf_architecture_find(const char *name,
                                                  const char *model_type)
{
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0];
         i++) {
        const me_hf_architecture *a = &architectures[i];
        if ((name != NULL && strcmp(name, a->name) == 0) ||
            (name == NULL && model_type != NULL &&
             strcmp(model_type, a->model_type) == 0)) {
            return a;
        }
    }
    return NULL;
}
