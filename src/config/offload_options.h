/**
 * @file
 * Rows of the table in options.c that say which activations wait for the
 * backward in the host's memory, written in that table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_OFFLOAD_OPTIONS_H
#define MEMEST_CONFIG_OFFLOAD_OPTIONS_H

/* clang-format off */
#define ME_OFFLOAD_OPTIONS \
    INT("offload.num_layers", "0", 0, layers_max, "layers", NULL, offload.num_layers, \
        "The first layers, whose activations wait for the backward in the host's memory."), \
    BOOL("offload.fine_grained", "false", offload.fine_grained, \
        "What the modules below save waits in the host's memory."), \
    BOOL("offload.attn_norm", "false", offload.attn_norm, \
        "fine_grained: the norm before attention, where it is a module of its own."), \
    BOOL("offload.qkv_linear", "false", offload.qkv_linear, \
        "fine_grained: what makes queries, keys and values."), \
    BOOL("offload.core_attn", "false", offload.core_attn, \
        "fine_grained: the core attention."), \
    BOOL("offload.attn_proj", "false", offload.attn_proj, \
        "fine_grained: the projection of what attention makes; with core_attn."), \
    BOOL("offload.mlp_norm", "false", offload.mlp_norm, \
        "fine_grained: the norm before the MLP, where it is a module of its own."), \
    BOOL("offload.expert_fc1", "false", offload.expert_fc1, \
        "fine_grained: the first layer of grouped experts."), \
    BOOL("offload.moe_act", "false", offload.moe_act, \
        "fine_grained: the activation of grouped experts."), \
    COUNT("offload.min_tensor_size", "1048576", 0, 1LL << 40, "elements", NULL, \
        offload.min_tensor_size, "Smaller tensors stay where they are."), \
    COUNT("offload.delta_bytes", "0", 0, 1LL << 40, "bytes", NULL, offload.delta_bytes, \
        "So many bytes more than the stage before it each pipeline stage keeps."), \
    DOUBLE("offload.fraction", "1.0", 0.0, 1.0, offload.fraction, \
        "That part of what a micro-batch could offload, the first groups."),
/* clang-format on */

#endif /* MEMEST_CONFIG_OFFLOAD_OPTIONS_H */
