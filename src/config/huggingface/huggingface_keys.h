/**
 * @file
 * Lists of rules that architectures have in common or alone, for
 * huggingface_architectures.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_KEYS_H
#define MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_KEYS_H

#include "config/huggingface/huggingface_private.h"

extern const me_hf_rule me_hf_llama_rules[]; /**< and those of its shape */
extern const me_hf_rule me_hf_experts_rules[];
extern const me_hf_rule me_hf_qwen_experts_rules[];
extern const me_hf_rule me_hf_deepseek_experts_rules[];
extern const me_hf_rule me_hf_latent_rules[]; /**< multi-latent attention */
extern const me_hf_rule me_hf_scaled_rules[]; /**< MiniCPM's multipliers */
extern const me_hf_rule me_hf_no_rope_rules[];
extern const me_hf_rule me_hf_seed_rules[];
extern const me_hf_rule me_hf_ernie_rules[];
extern const me_hf_rule me_hf_minimax_rules[];
extern const me_hf_rule me_hf_gemma_rules[];
extern const me_hf_rule me_hf_phi_rules[];
extern const me_hf_rule me_hf_gpt_oss_rules[];
extern const me_hf_rule me_hf_glm_rules[];
extern const me_hf_rule me_hf_chatglm_rules[];
extern const me_hf_rule me_hf_starcoder2_rules[];
extern const me_hf_rule me_hf_internlm_first_rules[];
extern const me_hf_rule me_hf_internlm_rules[]; /**< the second's and third's */
extern const me_hf_rule me_hf_nemotron_rules[];
extern const me_hf_rule me_hf_olmo_rules[];
extern const me_hf_rule me_hf_llama4_rules[];
extern const me_hf_rule me_hf_gpt2_rules[];

#endif /* MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_KEYS_H */
