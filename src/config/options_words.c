/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/options_words.h"

const me_option_word me_normalization_words[] = {
    {"LayerNorm", ME_NORMALIZATION_LAYER_NORM},
    {"RMSNorm", ME_NORMALIZATION_RMS_NORM},
    {NULL, 0},
};

const me_option_word me_activation_words[] = {
    {"gelu", ME_ACTIVATION_GELU},
    {"swiglu", ME_ACTIVATION_SWIGLU},
    {"quick_geglu", ME_ACTIVATION_QUICK_GEGLU},
    {"squared_relu", ME_ACTIVATION_SQUARED_RELU},
    {NULL, 0},
};

const me_option_word me_position_words[] = {
    {"learned_absolute", ME_POSITION_LEARNED_ABSOLUTE},
    {"rope", ME_POSITION_ROPE},
    {"none", ME_POSITION_NONE},
    {NULL, 0},
};

const me_option_word me_rope_type_words[] = {
    {"rope", ME_ROPE_TYPE_ROPE},
    {"yarn", ME_ROPE_TYPE_YARN},
    {NULL, 0},
};

const me_option_word me_dispatcher_words[] = {
    {"allgather", ME_DISPATCHER_ALL_GATHER},
    {"alltoall", ME_DISPATCHER_ALL_TO_ALL},
    {NULL, 0},
};

const me_option_word me_load_balancing_words[] = {
    {"aux_loss", ME_LOAD_BALANCING_AUX_LOSS},
    {"none", ME_LOAD_BALANCING_NONE},
    {NULL, 0},
};

const me_option_word me_dtype_words[] = {
    {"float32", ME_DTYPE_FLOAT32},
    {"bfloat16", ME_DTYPE_BFLOAT16},
    {"float16", ME_DTYPE_FLOAT16},
    {NULL, 0},
};

const me_option_word me_optimizer_words[] = {
    {"adam", ME_OPTIMIZER_ADAM},
    {"adamw", ME_OPTIMIZER_ADAMW},
    {"sgd", ME_OPTIMIZER_SGD},
    {NULL, 0},
};

const me_option_word me_granularity_words[] = {
    {"none", ME_RECOMPUTE_NONE},
    {"selective", ME_RECOMPUTE_SELECTIVE},
    {"full", ME_RECOMPUTE_FULL},
    {NULL, 0},
};

const me_option_word me_method_words[] = {
    {"uniform", ME_RECOMPUTE_UNIFORM},
    {"block", ME_RECOMPUTE_BLOCK},
    {NULL, 0},
};

const me_option_word me_norm_words[] = {
    {"torch", ME_NORM_IMPL_TORCH},
    {NULL, 0},
};

const me_option_word me_framework_words[] = {
    {"megatron", ME_FRAMEWORK_MEGATRON},
    {"torch", ME_FRAMEWORK_TORCH},
    {NULL, 0},
};

const me_option_word me_placement_words[] = {
    {"block", ME_RANKS_BLOCK},
    {"cyclic", ME_RANKS_CYCLIC},
    {NULL, 0},
};

const me_option_word me_loader_words[] = {
    {"none", ME_LOADER_NONE},
    {"mock_gpt", ME_LOADER_MOCK_GPT},
    {NULL, 0},
};

const me_option_word me_torch_input_dtype_words[] = {
    {"float32", ME_DTYPE_FLOAT32},
    {"bfloat16", ME_DTYPE_BFLOAT16},
    {"float16", ME_DTYPE_FLOAT16},
    {"int64", ME_DTYPE_INT64},
    {NULL, 0},
};

const me_option_word me_torch_policy_words[] = {
    {"none", -1},
    {"float32", ME_DTYPE_FLOAT32},
    {"bfloat16", ME_DTYPE_BFLOAT16},
    {"float16", ME_DTYPE_FLOAT16},
    {NULL, 0},
};

const me_option_word me_torch_autocast_words[] = {
    {"none", -1},
    {"bfloat16", ME_DTYPE_BFLOAT16},
    {"float16", ME_DTYPE_FLOAT16},
    {NULL, 0},
};

const me_option_word me_torch_data_parallel_words[] = {
    {"none", ME_DATA_PARALLEL_NONE},
    {"ddp", ME_DATA_PARALLEL_DDP},
    {"fully_shard", ME_DATA_PARALLEL_FULLY_SHARD},
    {NULL, 0},
};

const me_option_word me_torch_target_words[] = {
    {"output", ME_TORCH_TARGET_OUTPUT},
    {"labels", ME_TORCH_TARGET_LABELS},
    {"classes", ME_TORCH_TARGET_CLASSES},
    {NULL, 0},
};

const me_option_word me_torch_sdpa_words[] = {
    {"cudnn", ME_SDPA_CUDNN},
    {"flash", ME_SDPA_FLASH},
    {NULL, 0},
};

const me_option_word me_core_attention_words[] = {
    {"unfused", ME_CORE_ATTENTION_UNFUSED},
    {"sdpa_flash", ME_CORE_ATTENTION_SDPA_FLASH},
    {NULL, 0},
};

const me_option_word me_state_words[] = {
    {"fp32", ME_DTYPE_FLOAT32},
    {"fp16", ME_DTYPE_FLOAT16},
    {"bf16", ME_DTYPE_BFLOAT16},
    {"fp8", ME_DTYPE_UINT8},
    {NULL, 0},
};

const me_option_word me_optimizer_impl_words[] = {
    {"torch_foreach", ME_OPTIMIZER_TORCH_FOREACH},
    {"torch_fused", ME_OPTIMIZER_TORCH_FUSED},
    {"torch_for_loop", ME_OPTIMIZER_TORCH_FOR_LOOP},
    {"fused", ME_OPTIMIZER_FUSED},
    {NULL, 0},
};
