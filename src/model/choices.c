/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/choices.h"

#include "base/assert.h"
#include "model/dtype.h"
#include "model/impl_choices.h"
#include "model/optimizer_config.h"

#include <stddef.h>

#define ROW(constant, word, title) {word, title, constant},
#define ROWS(enumeration, LIST)                                                \
    const me_choice enumeration##_choices[] = {LIST(ROW){NULL, NULL, 0}};

ROWS(me_framework, ME_FRAMEWORK_LIST)
ROWS(me_normalization, ME_NORMALIZATION_LIST)
ROWS(me_norm_placement, ME_NORM_PLACEMENT_LIST)
ROWS(me_activation, ME_ACTIVATION_LIST)
ROWS(me_position_embedding, ME_POSITION_EMBEDDING_LIST)
ROWS(me_rope_type, ME_ROPE_TYPE_LIST)
ROWS(me_token_dispatcher, ME_TOKEN_DISPATCHER_LIST)
ROWS(me_load_balancing, ME_LOAD_BALANCING_LIST)
ROWS(me_flex_backend, ME_FLEX_BACKEND_LIST)
ROWS(me_score_function, ME_SCORE_FUNCTION_LIST)
ROWS(me_drop_policy, ME_DROP_POLICY_LIST)
ROWS(me_router_dtype, ME_ROUTER_DTYPE_LIST)
ROWS(me_optimizer_kind, ME_OPTIMIZER_KIND_LIST)
ROWS(me_muon_tp_mode, ME_MUON_TP_MODE_LIST)
ROWS(me_matmul_precision, ME_MATMUL_PRECISION_LIST)
ROWS(me_recompute, ME_RECOMPUTE_LIST)
ROWS(me_recompute_method, ME_RECOMPUTE_METHOD_LIST)
ROWS(me_transformer_impl, ME_TRANSFORMER_IMPL_LIST)
ROWS(me_importable, ME_IMPORTABLE_LIST)
ROWS(me_core_attention_kind, ME_CORE_ATTENTION_KIND_LIST)
ROWS(me_flash_attn, ME_FLASH_ATTN_LIST)
ROWS(me_attention_backend, ME_ATTENTION_BACKEND_LIST)
ROWS(me_cross_entropy_impl, ME_CROSS_ENTROPY_IMPL_LIST)
ROWS(me_softmax_type, ME_SOFTMAX_TYPE_LIST)
ROWS(me_fp8_format, ME_FP8_FORMAT_LIST)
ROWS(me_fp8_recipe, ME_FP8_RECIPE_LIST)
ROWS(me_cuda_graph, ME_CUDA_GRAPH_LIST)
ROWS(me_overlap_method, ME_OVERLAP_METHOD_LIST)
ROWS(me_bootstrap, ME_BOOTSTRAP_LIST)
ROWS(me_checkpoint_load, ME_CHECKPOINT_LOAD_LIST)
ROWS(me_cp_comm_type, ME_CP_COMM_TYPE_LIST)
ROWS(me_sharding_strategy, ME_SHARDING_STRATEGY_LIST)
ROWS(me_norm_impl, ME_NORM_IMPL_LIST)
ROWS(me_optimizer_impl, ME_OPTIMIZER_IMPL_LIST)
ROWS(me_data_parallel, ME_DATA_PARALLEL_LIST)
ROWS(me_sdpa_backend, ME_SDPA_BACKEND_LIST)
ROWS(me_torch_target, ME_TORCH_TARGET_LIST)
ROWS(me_rank_placement, ME_RANK_PLACEMENT_LIST)
ROWS(me_loader, ME_LOADER_LIST)

#define DTYPE(name, constant)                                                  \
    {                                                                          \
        name, name, constant                                                   \
    }
#define HALVES                                                                 \
    DTYPE("bfloat16", ME_DTYPE_BFLOAT16), DTYPE("float16", ME_DTYPE_FLOAT16)
#define FLOATS DTYPE("float32", ME_DTYPE_FLOAT32), HALVES

const me_choice me_params_dtype_choices[] = {FLOATS, {NULL, NULL, 0}};
const me_choice me_input_dtype_choices[] = {
    FLOATS, DTYPE("int64", ME_DTYPE_INT64), {NULL, NULL, 0}};
const me_choice me_policy_dtype_choices[] = {
    DTYPE("none", -1), FLOATS, {NULL, NULL, 0}};
const me_choice me_scalar_optimizer_choices[] = {
    {"adam", "Adam", ME_OPTIMIZER_ADAM},
    {"lion", "Lion", ME_OPTIMIZER_LION},
    {NULL, NULL, 0}};
const me_choice me_outer_sharding_choices[] = {
    {"no_shard", "no_shard", ME_SHARDING_NO_SHARD},
    {"optim", "optim", ME_SHARDING_OPTIM},
    {NULL, NULL, 0}};
const me_choice me_fsdp_dtype_choices[] = {DTYPE("auto", -1),
                                           {"fp32", "fp32", ME_DTYPE_FLOAT32},
                                           {"bf16", "bf16", ME_DTYPE_BFLOAT16},
                                           {"fp16", "fp16", ME_DTYPE_FLOAT16},
                                           {NULL, NULL, 0}};
const me_choice me_autocast_dtype_choices[] = {
    DTYPE("none", -1), HALVES, {NULL, NULL, 0}};

const me_choice me_state_dtype_choices[] = {{"fp32", "fp32", ME_DTYPE_FLOAT32},
                                            {"fp16", "fp16", ME_DTYPE_FLOAT16},
                                            {"bf16", "bf16", ME_DTYPE_BFLOAT16},
                                            {"fp8", "fp8", ME_DTYPE_UINT8},
                                            {NULL, NULL, 0}};

static const me_choice *find(const me_choice *choices, int value)
{
    const me_choice *choice = choices;
    while (choice->value != value && choice->word != NULL) {
        choice++;
    }
    ME_ASSERT(choice->word != NULL);
    return choice;
}

const char *me_choice_word(const me_choice *choices, int value)
{
    return find(choices, value)->word;
}

const char *me_choice_title(const me_choice *choices, int value)
{
    return find(choices, value)->title;
}

bool me_is_muon(me_optimizer_kind kind)
{
    return kind == ME_OPTIMIZER_MUON || kind == ME_OPTIMIZER_ADAPTIVE_MUON;
}

bool me_is_emerging_optimizer(me_optimizer_kind kind)
{
    return me_is_muon(kind) || kind == ME_OPTIMIZER_LION ||
           kind == ME_OPTIMIZER_SOAP;
}

bool me_is_gated_activation(me_activation activation)
{
    switch (activation) {
    case ME_ACTIVATION_SWIGLU:
    case ME_ACTIVATION_QUICK_GEGLU:
    case ME_ACTIVATION_GEGLU: return true;
    case ME_ACTIVATION_GELU:
    case ME_ACTIVATION_SQUARED_RELU: break;
    }
    return false;
}
