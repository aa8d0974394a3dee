/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/options_torch.h"

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

const me_option_word me_optimizer_impl_words[] = {
    {"torch_foreach", ME_OPTIMIZER_TORCH_FOREACH},
    {"torch_fused", ME_OPTIMIZER_TORCH_FUSED},
    {"torch_for_loop", ME_OPTIMIZER_TORCH_FOR_LOOP},
    {NULL, 0},
};
