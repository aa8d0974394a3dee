/**
 * @file
 * Rows of the table in options.c that say what of a job is FP8 and what else
 * Transformer Engine is told, written in that table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_FP8_OPTIONS_H
#define MEMEST_CONFIG_FP8_OPTIONS_H

/* clang-format off */
#define ME_FP8_OPTIONS \
    ENUM("train.fp8", "none", me_fp8_format_choices, fp8.format, \
        "Transformer Engine's linear layers compute in FP8, of this format; their " \
        "weights are quantised once a step, their inputs and gradients each time."), \
    ENUM("train.fp8_recipe", "delayed", me_fp8_recipe_choices, fp8.recipe, \
        "How FP8 is scaled: one number a tensor, of earlier steps (delayed) or its own " \
        "(tensorwise), or one a block of 128 (blockwise) or 32 (mxfp8) elements."), \
    INT("train.fp8_amax_history_len", "1", 1, 1 << 20, "steps", NULL, fp8.amax_history_len, \
        "Largest values that delayed scaling keeps of each tensor."), \
    BOOL("train.fp8_param", "false", fp8.param, \
        "Weights are kept in FP8 and gathered so, with main parameters in the optimizer."), \
    BOOL("train.first_last_layers_bf16", "false", fp8.first_last_layers_bf16, \
        "Layers at both ends of the model compute in bf16."), \
    INT("train.num_layers_at_start_in_bf16", "1", 0, layers_max, "layers", NULL, \
        fp8.num_layers_at_start_in_bf16, "How many at the start, of first_last_layers_bf16."), \
    INT("train.num_layers_at_end_in_bf16", "1", 0, layers_max, "layers", NULL, \
        fp8.num_layers_at_end_in_bf16, "How many at the end, of first_last_layers_bf16."), \
    BOOL("train.te_op_fuser", "false", train.te_op_fuser, \
        "Transformer Engine runs a dense MLP with its norm as one function."), \
    BOOL("train.grouped_dense_mlp", "false", train.grouped_dense_mlp, \
        "That function has grouped products in MXFP8 where one tensor rank has the MLP."), \
    BOOL("train.use_te_activation_func", "false", train.use_te_activation_func, \
        "Activations are operations of Transformer Engine's, one kernel each."), \
    ENUM("train.cuda_graph_impl", "none", me_cuda_graph_choices, train.cuda_graph_impl, \
        "Layers, or forward and backward of an iteration, are captured as CUDA graphs and " \
        "replayed."), \
    INT("train.cuda_graph_warmup_steps", "3", 0, 64, "steps", NULL, \
        train.cuda_graph_warmup_steps, "Runs before a capture: of the captured layer, or " \
        "iterations of the job."), \
    STRING("train.cuda_graph_modules", "", train.cuda_graph_modules, \
        "Which parts of a layer Transformer Engine captures: attn, mlp or both; empty: all."),
/* clang-format on */

#endif /* MEMEST_CONFIG_FP8_OPTIONS_H */
