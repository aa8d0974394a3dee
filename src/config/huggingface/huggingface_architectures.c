/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"
#include "config/huggingface/huggingface.h"
#include "config/huggingface/huggingface_keys.h"

#include <string.h>

/* clang-format off */
#define LLAMA_REQUIRED \
    "num_hidden_layers|hidden_size|intermediate_size|num_attention_heads|" \
    "vocab_size"
#define GROUPED_REQUIRED LLAMA_REQUIRED "|num_key_value_heads"
#define LATENT_REQUIRED LLAMA_REQUIRED \
    "|kv_lora_rank|qk_nope_head_dim|qk_rope_head_dim|v_head_dim"
#define PLAIN_SETTINGS \
    "model.add_bias_linear=false model.position_embedding_type=rope " \
    "model.attention_dropout=0 model.hidden_dropout=0 "
#define UNTIED "model.untie_embeddings_and_output_weights=true "
#define LLAMA_SETTINGS \
    PLAIN_SETTINGS UNTIED "model.normalization=RMSNorm model.activation=swiglu "
#define GEMMA_SETTINGS \
    PLAIN_SETTINGS "model.normalization=RMSNorm model.activation=geglu " \
    "model.kv_channels=256 "
#define EXPERTS_SETTINGS \
    "moe.token_dispatcher=alltoall moe.grouped_gemm=true "
#define SCORES_SETTINGS \
    "moe.router_score_function=sigmoid moe.router_enable_expert_bias=true " \
    "moe.router_dtype=fp32 "
#define LATENT_SETTINGS \
    LLAMA_SETTINGS "model.multi_latent_attention=true model.qk_layernorm=true " \
    "model.rope_type=rope train.apply_rope_fusion=false "
#define OLMO_SETTINGS \
    LLAMA_SETTINGS "model.qk_layernorm=true model.qk_layernorm_across_heads=true "

static const me_hf_lack output_bias_lacks[] = {
    {"a bias of attention's output (model.hidden_size parameters a layer)",
     ME_HIGHER(SMALL)},
    {NULL, ME_EITHER(NONE)},
};

static const me_hf_lack no_rope_lacks[] = {
    {"layers without rotary embedding; all with it are estimated",
     ME_LOWER(SOME)},
    {NULL, ME_EITHER(NONE)},
};

static const me_hf_lack biased_lacks[] = {
    {"biases by which experts are chosen", ME_EITHER(SMALL)},
    {NULL, ME_EITHER(NONE)},
};

static const me_hf_lack gemma_lacks[] = {
    {"embeddings are multiplied by a number, one more of their size",
     ME_HIGHER(SMALL)},
    {NULL, ME_EITHER(NONE)},
};

/** Defaults that a class has for sizes are not here: without them a file is no
 *  model's. */
static const me_hf_architecture architectures[] = {
    {.name = "LlamaForCausalLM", .model_type = "llama",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS, .rules = {me_hf_llama_rules}},
    {.name = "Llama4ForCausalLM", .model_type = "llama4_text",
     .required = GROUPED_REQUIRED
                 "|intermediate_size_mlp|num_local_experts|num_experts_per_tok",
     .settings = LLAMA_SETTINGS EXPERTS_SETTINGS
                 "model.kv_channels=128 moe.router_score_function=sigmoid "
                 "moe.apply_probs_on_input=true",
     .rules = {me_hf_llama4_rules, me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_llama4_experts, .lacks = no_rope_lacks,
     .is_windowed = true},
    {.name = "Llama4ForConditionalGeneration", .model_type = "llama4",
     .text = "text_config",
     .required = GROUPED_REQUIRED
                 "|intermediate_size_mlp|num_local_experts|num_experts_per_tok",
     .settings = LLAMA_SETTINGS EXPERTS_SETTINGS
                 "model.kv_channels=128 moe.router_score_function=sigmoid "
                 "moe.apply_probs_on_input=true",
     .rules = {me_hf_llama4_rules, me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_llama4_experts, .lacks = no_rope_lacks,
     .is_windowed = true},
    {.name = "MistralForCausalLM", .model_type = "mistral",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS, .rules = {me_hf_llama_rules},
     .is_windowed = true},
    {.name = "Mistral3ForConditionalGeneration", .model_type = "mistral3",
     .text = "text_config", .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS, .rules = {me_hf_llama_rules},
     .is_windowed = true},
    {.name = "MixtralForCausalLM", .model_type = "mixtral",
     .required = GROUPED_REQUIRED "|num_local_experts|num_experts_per_tok",
     .settings = LLAMA_SETTINGS EXPERTS_SETTINGS,
     .rules = {me_hf_experts_rules, me_hf_llama_rules}, .is_windowed = true},
    {.name = "Qwen2ForCausalLM", .model_type = "qwen2",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true",
     .rules = {me_hf_llama_rules}},
    {.name = "Qwen2MoeForCausalLM", .model_type = "qwen2_moe",
     .required = GROUPED_REQUIRED
                 "|num_experts|num_experts_per_tok|moe_intermediate_size|"
                 "shared_expert_intermediate_size",
     .settings = LLAMA_SETTINGS EXPERTS_SETTINGS
                 "model.add_qkv_bias=true moe.router_pre_softmax=true "
                 "moe.shared_expert_gate=true",
     .rules = {me_hf_qwen_experts_rules, me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_qwen_experts},
    {.name = "Qwen3ForCausalLM", .model_type = "qwen3",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.qk_layernorm=true model.kv_channels=128",
     .rules = {me_hf_llama_rules}},
    {.name = "Qwen3MoeForCausalLM", .model_type = "qwen3_moe",
     .required = GROUPED_REQUIRED
                 "|num_experts|num_experts_per_tok|moe_intermediate_size",
     .settings = LLAMA_SETTINGS EXPERTS_SETTINGS
                 "model.qk_layernorm=true moe.router_pre_softmax=true",
     .rules = {me_hf_qwen_experts_rules, me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_qwen_experts},
    {.name = "Qwen2_5_VLForConditionalGeneration",
     .others = "Qwen2VLForConditionalGeneration",
     .model_type = "qwen2_5_vl|qwen2_vl", .text = "text_config",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true",
     .rules = {me_hf_llama_rules}},
    {.name = "Qwen3VLForConditionalGeneration", .model_type = "qwen3_vl",
     .text = "text_config", .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.qk_layernorm=true model.kv_channels=128",
     .rules = {me_hf_llama_rules}},
    {.name = "Qwen3VLMoeForConditionalGeneration",
     .model_type = "qwen3_vl_moe", .text = "text_config",
     .required = GROUPED_REQUIRED
                 "|num_experts|num_experts_per_tok|moe_intermediate_size",
     .settings = LLAMA_SETTINGS EXPERTS_SETTINGS
                 "model.qk_layernorm=true moe.router_pre_softmax=true",
     .rules = {me_hf_qwen_experts_rules, me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_qwen_experts},
    {.name = "GemmaForCausalLM", .model_type = "gemma",
     .required = GROUPED_REQUIRED,
     .settings = GEMMA_SETTINGS, .rules = {me_hf_gemma_rules, me_hf_llama_rules},
     .lacks = gemma_lacks},
    {.name = "Gemma2ForCausalLM", .model_type = "gemma2",
     .required = GROUPED_REQUIRED,
     .settings = GEMMA_SETTINGS "model.norm_placement=both",
     .rules = {me_hf_gemma_rules, me_hf_llama_rules},
     .lacks = gemma_lacks, .is_windowed = true},
    {.name = "Gemma3ForCausalLM", .model_type = "gemma3_text",
     .required = GROUPED_REQUIRED,
     .settings = GEMMA_SETTINGS
                 "model.norm_placement=both model.qk_layernorm=true",
     .rules = {me_hf_gemma_rules, me_hf_llama_rules},
     .lacks = gemma_lacks, .is_windowed = true},
    {.name = "Gemma3ForConditionalGeneration", .model_type = "gemma3",
     .text = "text_config", .required = GROUPED_REQUIRED,
     .settings = GEMMA_SETTINGS
                 "model.norm_placement=both model.qk_layernorm=true",
     .rules = {me_hf_gemma_rules, me_hf_llama_rules},
     .lacks = gemma_lacks, .is_windowed = true},
    {.name = "Phi3ForCausalLM", .model_type = "phi3",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS,
     .rules = {me_hf_phi_rules, me_hf_llama_rules}, .is_windowed = true},
    {.name = "DeepseekV2ForCausalLM", .model_type = "deepseek_v2",
     .required = LATENT_REQUIRED "|q_lora_rank|n_routed_experts",
     .settings = LATENT_SETTINGS EXPERTS_SETTINGS
                 "moe.router_pre_softmax=true moe.router_dtype=fp32",
     .rules = {me_hf_latent_rules, me_hf_deepseek_experts_rules,
               me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_deepseek_experts},
    {.name = "DeepseekV3ForCausalLM", .model_type = "deepseek_v3|kimi_k2",
     .required = LATENT_REQUIRED
                 "|q_lora_rank|n_routed_experts|"
                 "first_k_dense_replace/mlp_layer_types",
     .settings = LATENT_SETTINGS EXPERTS_SETTINGS SCORES_SETTINGS,
     .rules = {me_hf_latent_rules, me_hf_deepseek_experts_rules,
               me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_deepseek_experts},
    {.name = "KimiK25ForConditionalGeneration", .model_type = "kimi_k25",
     .text = "text_config",
     .required = LATENT_REQUIRED
                 "|q_lora_rank|n_routed_experts|"
                 "first_k_dense_replace/mlp_layer_types",
     .settings = LATENT_SETTINGS EXPERTS_SETTINGS SCORES_SETTINGS,
     .rules = {me_hf_latent_rules, me_hf_deepseek_experts_rules,
               me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_deepseek_experts},
    {.name = "GptOssForCausalLM", .model_type = "gpt_oss",
     .required = GROUPED_REQUIRED "|num_local_experts",
     .settings = PLAIN_SETTINGS UNTIED EXPERTS_SETTINGS
                 "model.normalization=RMSNorm model.activation=quick_geglu "
                 "model.add_bias_linear=true model.kv_channels=64 "
                 "train.bias_dropout_fusion=false "
                 "model.activation_clamp_value=7 "
                 "model.softmax_type=learnable moe.router_topk=4 "
                 "moe.router_load_balancing=none",
     .rules = {me_hf_gpt_oss_rules, me_hf_experts_rules, me_hf_llama_rules},
     .is_windowed = true},
    {.name = "GlmForCausalLM", .model_type = "glm",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true model.kv_channels=128 "
                 "model.rotary_percent=0.5",
     .rules = {me_hf_glm_rules, me_hf_llama_rules}},
    {.name = "Glm4ForCausalLM", .model_type = "glm4",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true model.kv_channels=128 "
                 "model.rotary_percent=0.5 model.norm_placement=both",
     .rules = {me_hf_glm_rules, me_hf_llama_rules}},
    {.name = "Glm4MoeForCausalLM", .model_type = "glm4_moe",
     .required = GROUPED_REQUIRED
                 "|n_routed_experts|num_experts_per_tok|moe_intermediate_size|"
                 "first_k_dense_replace/mlp_layer_types",
     .settings = LLAMA_SETTINGS EXPERTS_SETTINGS SCORES_SETTINGS
                 "model.kv_channels=128 model.rotary_percent=0.5",
     .rules = {me_hf_glm_rules, me_hf_deepseek_experts_rules,
               me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_deepseek_experts},
    {.name = "ChatGLMModel", .others = "ChatGLMForConditionalGeneration",
     .model_type = "chatglm",
     .required = "hidden_size|ffn_hidden_size|num_attention_heads|"
                 "kv_channels|padded_vocab_size",
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true "
                 "model.rotary_percent=0.5",
     .rules = {me_hf_chatglm_rules}, .derive = me_hf_derive_chatglm},
    {.name = "Olmo2ForCausalLM", .model_type = "olmo2",
     .required = LLAMA_REQUIRED,
     .settings = OLMO_SETTINGS "model.norm_placement=post",
     .rules = {me_hf_llama_rules}},
    {.name = "Olmo3ForCausalLM", .model_type = "olmo3",
     .required = LLAMA_REQUIRED,
     .settings = OLMO_SETTINGS "model.norm_placement=post",
     .rules = {me_hf_llama_rules}, .is_windowed = true},
    {.name = "OlmoeForCausalLM", .model_type = "olmoe",
     .required = LLAMA_REQUIRED "|num_experts|num_experts_per_tok",
     .settings = OLMO_SETTINGS EXPERTS_SETTINGS "moe.router_pre_softmax=true",
     .rules = {me_hf_olmo_rules, me_hf_experts_rules, me_hf_llama_rules}},
    {.name = "Starcoder2ForCausalLM", .model_type = "starcoder2",
     .required = GROUPED_REQUIRED,
     .settings = PLAIN_SETTINGS "model.normalization=LayerNorm "
                 "model.activation=gelu model.add_bias_linear=true",
     .rules = {me_hf_starcoder2_rules, me_hf_llama_rules},
     .is_windowed = true},
    {.name = "InternLMForCausalLM", .model_type = "internlm",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true",
     .rules = {me_hf_internlm_first_rules, me_hf_llama_rules},
     .lacks = output_bias_lacks},
    {.name = "InternLM2ForCausalLM", .model_type = "internlm2",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS,
     .rules = {me_hf_internlm_rules, me_hf_llama_rules}},
    {.name = "InternLM3ForCausalLM", .model_type = "internlm3",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS,
     .rules = {me_hf_internlm_rules, me_hf_llama_rules}},
    {.name = "MiniCPMForCausalLM", .model_type = "minicpm",
     .required = LLAMA_REQUIRED,
     .settings = PLAIN_SETTINGS "model.normalization=RMSNorm "
                 "model.activation=swiglu",
     .rules = {me_hf_scaled_rules, me_hf_llama_rules}},
    {.name = "MiniCPM3ForCausalLM", .model_type = "minicpm3",
     .required = LLAMA_REQUIRED
                 "|q_lora_rank|kv_lora_rank|qk_nope_head_dim|qk_rope_head_dim",
     .settings = LATENT_SETTINGS "model.v_head_dim=64 "
                 "model.untie_embeddings_and_output_weights=false",
     .rules = {me_hf_scaled_rules, me_hf_latent_rules, me_hf_llama_rules}},
    {.name = "NemotronForCausalLM", .model_type = "nemotron",
     .required = GROUPED_REQUIRED,
     .settings = PLAIN_SETTINGS UNTIED "model.normalization=LayerNorm "
                 "model.activation=squared_relu model.rotary_percent=0.5",
     .rules = {me_hf_nemotron_rules, me_hf_llama_rules}},
    {.name = "Exaone4ForCausalLM", .model_type = "exaone4",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS
                 "model.qk_layernorm=true model.norm_placement=post",
     .rules = {me_hf_llama_rules}, .is_windowed = true},
    {.name = "SmolLM3ForCausalLM", .model_type = "smollm3",
     .required = GROUPED_REQUIRED,
     .settings = PLAIN_SETTINGS "model.normalization=RMSNorm "
                 "model.activation=swiglu",
     .rules = {me_hf_no_rope_rules, me_hf_llama_rules},
     .lacks = no_rope_lacks},
    {.name = "SeedOssForCausalLM", .model_type = "seed_oss",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true model.kv_channels=128 "
                 "model.attention_dropout=0.1 model.hidden_dropout=0.1",
     .rules = {me_hf_seed_rules, me_hf_llama_rules}},
    {.name = "GraniteForCausalLM", .model_type = "granite",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS,
     .rules = {me_hf_scaled_rules, me_hf_llama_rules}},
    {.name = "HunYuanDenseV1ForCausalLM", .model_type = "hunyuan_v1_dense",
     .required = LLAMA_REQUIRED,
     .settings = LLAMA_SETTINGS "model.qk_layernorm=true",
     .rules = {me_hf_glm_rules, me_hf_llama_rules}},
    {.name = "MiMoForCausalLM", .model_type = "mimo",
     .required = GROUPED_REQUIRED,
     .settings = LLAMA_SETTINGS "model.add_qkv_bias=true",
     .rules = {me_hf_glm_rules, me_hf_llama_rules}},
    {.name = "Ernie4_5ForCausalLM", .model_type = "ernie4_5",
     .required = GROUPED_REQUIRED,
     .settings = PLAIN_SETTINGS "model.normalization=RMSNorm "
                 "model.activation=swiglu model.kv_channels=128",
     .rules = {me_hf_ernie_rules, me_hf_llama_rules}},
    {.name = "Ernie4_5_MoeForCausalLM", .model_type = "ernie4_5_moe",
     .required = GROUPED_REQUIRED "|moe_num_experts|moe_k|moe_intermediate_size",
     .settings = PLAIN_SETTINGS EXPERTS_SETTINGS SCORES_SETTINGS
                 "model.normalization=RMSNorm model.activation=swiglu "
                 "moe.router_score_function=softmax "
                 "moe.router_enable_expert_bias=false",
     .rules = {me_hf_ernie_rules, me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_ernie_experts, .lacks = biased_lacks},
    {.name = "MiniMaxM2ForCausalLM", .model_type = "minimax_m2",
     .required = GROUPED_REQUIRED "|num_local_experts|num_experts_per_tok",
     .settings = OLMO_SETTINGS EXPERTS_SETTINGS SCORES_SETTINGS
                 "model.kv_channels=128",
     .rules = {me_hf_minimax_rules, me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_minimax},
    {.name = "Glm4MoeLiteForCausalLM", .model_type = "glm4_moe_lite",
     .required = LATENT_REQUIRED
                 "|q_lora_rank|n_routed_experts|num_experts_per_tok|"
                 "moe_intermediate_size|first_k_dense_replace/mlp_layer_types",
     .settings = LATENT_SETTINGS EXPERTS_SETTINGS SCORES_SETTINGS,
     .rules = {me_hf_latent_rules, me_hf_deepseek_experts_rules,
               me_hf_experts_rules, me_hf_llama_rules},
     .derive = me_hf_derive_deepseek_experts},
    {.name = "GPT2LMHeadModel", .model_type = "gpt2",
     .required = "n_layer|n_embd|n_head|n_positions|vocab_size",
     .settings = "model.normalization=LayerNorm model.activation=gelu "
                 "model.position_embedding_type=learned_absolute",
     .rules = {me_hf_gpt2_rules}},
    {.name = "Qwen3NextForCausalLM", .model_type = "qwen3_next",
     .missing = "layers of gated delta nets"},
    {.name = "Qwen3_5ForCausalLM",
     .others = "Qwen3_5MoeForCausalLM|Qwen3_5ForConditionalGeneration|"
               "Qwen3_5MoeForConditionalGeneration",
     .model_type = "qwen3_5|qwen3_5_moe|qwen3_5_text|qwen3_5_moe_text",
     .missing = "layers of gated delta nets"},
    {.name = "NemotronHForCausalLM",
     .others = "GraniteMoeHybridForCausalLM",
     .model_type = "nemotron_h|granitemoehybrid",
     .missing = "Mamba-2 layers"},
    {.name = "FalconH1ForCausalLM", .model_type = "falcon_h1",
     .missing = "Mamba-2 beside attention"},
    {.name = "Mamba2ForCausalLM",
     .others = "MambaForCausalLM|FalconMambaForCausalLM|JambaForCausalLM|"
               "BambaForCausalLM|Zamba2ForCausalLM",
     .model_type = "mamba|mamba2|falcon_mamba|jamba|bamba|zamba2",
     .missing = "state-space layers"},
    {.name = "Lfm2ForCausalLM", .others = "Lfm2MoeForCausalLM",
     .model_type = "lfm2|lfm2_moe", .missing = "layers of convolutions"},
    {.name = "KimiLinearForCausalLM",
     .others = "MiniMaxText01ForCausalLM|MiniMaxForCausalLM|"
               "BailingMoeLinearForCausalLM",
     .model_type = "kimi_linear|minimax_text_01|minimax",
     .missing = "layers of linear attention"},
    {.name = "Gemma3nForConditionalGeneration",
     .others = "Gemma3nForCausalLM|Gemma4ForConditionalGeneration|"
               "Gemma4ForCausalLM",
     .model_type = "gemma3n|gemma3n_text|gemma4|gemma4_text",
     .missing = "embeddings of each layer, and keys that layers share"},
    {.name = "DeciLMForCausalLM", .model_type = "nemotron-nas|deci",
     .missing = "layers with heads and widths of their own"},
    {.name = "DeepseekV32ForCausalLM",
     .others = "GlmMoeDsaForCausalLM|DeepseekV4ForCausalLM",
     .model_type = "deepseek_v32|glm_moe_dsa|deepseek_v4",
     .missing = "sparse attention, for which an indexer chooses tokens"},
    {.name = "FalconForCausalLM",
     .others = "PhiForCausalLM|GPTNeoXForCausalLM|GPTJForCausalLM|"
               "CohereForCausalLM|Cohere2ForCausalLM",
     .model_type = "falcon|phi|gpt_neox|gptj|cohere|cohere2",
     .missing = "attention and MLP side by side"},
    {.name = "PhimoeForCausalLM", .model_type = "phimoe",
     .missing = "biases of attention and output layer beside experts without"},
    {.name = "BloomForCausalLM", .others = "MptForCausalLM",
     .model_type = "bloom|mpt", .missing = "ALiBi"},
    {.name = "T5ForConditionalGeneration", .model_type = "t5|mt5|umt5",
     .missing = "an encoder, and attention to it"},
    {.name = "BertModel",
     .others = "BertForMaskedLM|BertForPreTraining|RobertaForMaskedLM",
     .model_type = "bert|roberta", .missing = "an encoder's layers and heads"},
};

/* clang-format on */

enum {
    N_ARCHITECTURES = sizeof architectures / sizeof architectures[0]
};

static bool is_among(const char *words, const char *word)
{
    return words != NULL && me_words_have(words, strlen(words), word);
}

const me_hf_architecture *me_hf_architecture_find(const char *name,
                                                  const char *model_type)
{
    for (size_t i = 0; i < N_ARCHITECTURES; i++) {
        const me_hf_architecture *a = &architectures[i];
        if (name != NULL
                ? strcmp(name, a->name) == 0 || is_among(a->others, name)
                : is_among(a->model_type, model_type)) {
            return a;
        }
    }
    return NULL;
}

bool me_huggingface_class(size_t index, me_hf_class *class_out,
                          me_str *left_out)
{
    if (index >= N_ARCHITECTURES) {
        return false;
    }
    const me_hf_architecture *a = &architectures[index];
    *class_out = (me_hf_class){a->name, a->others, a->missing};
    for (int i = 0; a->lacks != NULL && a->lacks[i].note != NULL; i++) {
        me_str_printf(left_out, "%s%s", i == 0 ? "" : "; ", a->lacks[i].note);
    }
    return true;
}

const char *me_hf_telltale(const json_t *root, const char **key_out)
{
    static const struct {
        const char *key;
        const char *what;
    } tales[] = {
        {"mamba_d_state", "state-space layers"},
        {"mamba_d_ssm", "state-space layers"},
        {"ssm_cfg", "state-space layers"},
        {"ssm_state_size", "state-space layers"},
        {"state_size", "state-space layers"},
        {"linear_num_value_heads", "layers of linear attention"},
        {"full_attention_interval", "layers of linear attention"},
        {"index_topk", "sparse attention, for which an indexer chooses tokens"},
        {"block_configs", "layers with heads and widths of their own"},
        {"num_heads_per_layer", "layers with heads and widths of their own"},
        {"parallel_attn", "attention and MLP side by side"},
        {"use_parallel_residual", "attention and MLP side by side"},
        {"alibi", "ALiBi"},
        {"encoder_layers", "an encoder, and attention to it"},
        {"vision_config", "an encoder of images"},
        {"audio_config", "an encoder of sounds"},
    };

    for (size_t i = 0; i < sizeof tales / sizeof tales[0]; i++) {
        const json_t *value = json_object_get(root, tales[i].key);
        if (value != NULL && !json_is_null(value) && !json_is_false(value)) {
            *key_out = tales[i].key;
            return tales[i].what;
        }
    }
    return NULL;
}
