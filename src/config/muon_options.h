/**
 * @file
 * Rows of the table in options.c that say how optimizers step, emerging ones
 * matrices, written in that table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MUON_OPTIONS_H
#define MEMEST_CONFIG_MUON_OPTIONS_H

/* clang-format off */
#define ME_STEP_OPTIONS \
    DOUBLE("optimizer.weight_decay", "0.01", 0.0, ME_OPTION_REAL_MAX, optimizer.weight_decay, \
        "Weight decay; Megatron-LM's biases and norms have none, and plain " \
        "PyTorch's default is 0 for adam and sgd."), \
    DOUBLE("optimizer.sgd_momentum", "0.9", 0.0, ME_OPTION_REAL_MAX, optimizer.sgd_momentum, \
        "Momentum of sgd; 0 has no state, and is plain PyTorch's default."), \
    BOOL("optimizer.muon_nesterov", "false", optimizer.muon_nesterov, \
        "Muon: what it orthogonalises is between gradient and momentum."), \
    BOOL("optimizer.muon_split_qkv", "true", optimizer.muon_split_qkv, \
        "Muon: queries, keys and values of one weight are matrices of their own."), \
    INT("optimizer.muon_num_ns_steps", "5", 1, 1000, "steps", NULL, \
        optimizer.muon_num_ns_steps, "Muon: steps of its Newton-Schulz iteration."), \
    ENUM("optimizer.muon_fp32_matmul_prec", "medium", me_matmul_precision_choices, \
        optimizer.muon_fp32_matmul_prec, \
        "Muon: precision of the iteration's products; medium is bfloat16."), \
    ENUM("optimizer.muon_tp_mode", "blockwise", me_muon_tp_mode_choices, \
        optimizer.muon_tp_mode, \
        "Muon: what of a weight that tensor ranks share is one matrix."), \
    ENUM("optimizer.muon_scalar_optimizer", "adam", me_scalar_optimizer_choices, \
        optimizer.muon_scalar_optimizer, \
        "Muon: what steps embeddings, biases and norms."),
/* clang-format on */

#endif /* MEMEST_CONFIG_MUON_OPTIONS_H */
