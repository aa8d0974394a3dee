/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"
#include "config/huggingface_private.h"

#include <string.h>

/* clang-format off */
#define OPTION(key, option) {key, ME_HF_OPTION, option, NULL, NULL}

/* What every architecture may have. */
static const me_hf_rule common_rules[] = {
    OPTION("vocab_size", "model.vocab_size"),
    {"torch_dtype|dtype", ME_HF_NO_EFFECT, NULL, NULL,
     "of the stored checkpoint; train.params_dtype is that of training"},
    {"tie_word_embeddings", ME_HF_TIED,
     "model.untie_embeddings_and_output_weights", NULL, NULL},
    {"quantization_config|compression_config", ME_HF_UNMODELLED, NULL, NULL,
     "quantised weights; train.params_dtype is estimated"},
    {"num_experts|num_local_experts|n_routed_experts|num_experts_per_tok|"
     "moe_intermediate_size|moe_num_experts",
     ME_HF_REFUSED, NULL, "0", "of models with experts only Mixtral is "
     "read"},
    {"num_nextn_predict_layers", ME_HF_REFUSED, NULL, "0",
     "multi-token prediction is not modelled"},
    {"is_decoder", ME_HF_NO_EFFECT, NULL, NULL, NULL},
    {"is_encoder_decoder|add_cross_attention", ME_HF_REFUSED, NULL, "false",
     "cross-attention is not modelled"},
    {"gradient_checkpointing", ME_HF_UNMODELLED, NULL, "false",
     "give recompute.granularity"},
    {"chunk_size_feed_forward", ME_HF_UNMODELLED, NULL, "0",
     "the MLP in chunks"},
    {"architectures|model_type|transformers_version|_name_or_path|"
     "_attn_implementation|_attn_implementation_autoset|auto_map|"
     "bos_token_id|eos_token_id|pad_token_id|unk_token_id|sep_token_id|"
     "decoder_start_token_id|tokenizer_class|initializer_range|use_cache|"
     "output_attentions|output_hidden_states|return_dict|id2label|label2id|"
     "num_labels|task_specific_params|problem_type|torchscript|use_bfloat16|"
     "finetuning_task|prefix|do_sample|max_length|min_length|temperature|top_k|"
     "top_p|repetition_penalty|license|seed",
     ME_HF_NO_EFFECT, NULL, NULL, NULL},
    {.keys = NULL},
};

/* Llama and those that have its shape. */
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
    {"hidden_act", ME_HF_REFUSED, NULL, "silu|swish",
     "of gated activations only silu is modelled"},
    {"attention_bias|mlp_bias", ME_HF_BIAS, "model.add_bias_linear", NULL,
     NULL},
    {"rope_scaling|rope_parameters", ME_HF_ROPE, NULL,
     "default|linear|dynamic|llama3", "another rotary embedding"},
    {"sliding_window", ME_HF_WINDOW, NULL, NULL,
     "attention within a window; full attention is estimated"},
    {"layer_types", ME_HF_LAYER_TYPES, NULL, "full_attention",
     "layers of other kinds; full attention is estimated"},
    {"use_sliding_window|max_window_layers|rms_norm_eps|rope_theta|"
     "original_max_position_embeddings|pretraining_tp|rope_interleaved|"
     "use_mrope",
     ME_HF_NO_EFFECT, NULL, NULL, NULL},
    {.keys = NULL},
};

static const me_hf_rule mixtral_rules[] = {
    OPTION("num_local_experts", "moe.num_experts"),
    OPTION("num_experts_per_tok", "moe.router_topk"),
    OPTION("router_aux_loss_coef", "moe.aux_loss_coeff"),
    {"output_router_logits|router_jitter_noise",
     ME_HF_NO_EFFECT, NULL, NULL, NULL},
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
    {"embd_pdrop", ME_HF_DROPOUT, NULL, NULL,
     "another dropout for embeddings; resid_pdrop is estimated"},
    {"activation_function", ME_HF_REFUSED, NULL,
     "gelu|gelu_new|gelu_fast|gelu_pytorch_tanh", "only gelu is modelled"},
    {"reorder_and_upcast_attn", ME_HF_UNMODELLED, NULL, "false",
     "attention scores in float32: model.attention_softmax_in_fp32 is nearest"},
    {"n_ctx|layer_norm_epsilon|scale_attn_weights|"
     "scale_attn_by_inverse_layer_idx|summary_activation|"
     "summary_first_dropout|summary_proj_to_labels|summary_type|"
     "summary_use_proj",
     ME_HF_NO_EFFECT, NULL, NULL, NULL},
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

/* Where a class has a default of its own for a key, the key is required. */
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
