/**
 * @file
 * Rows of the table in options.c that say what a job's experts are, written in
 * that table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MOE_OPTIONS_H
#define MEMEST_CONFIG_MOE_OPTIONS_H

/* clang-format off */
#define ME_MOE_OPTIONS \
    COUNT("moe.num_experts", "0", 0, experts_max, "experts", NULL, \
        moe.num_experts, "Experts in place of the MLP; 0: none."), \
    COUNT("moe.router_topk", "2", 1, experts_max, "experts", NULL, moe.router_topk, \
        "Experts that each token goes to."), \
    COUNT("moe.ffn_hidden_size", "0", 1, width_max, "elements", \
        "model.ffn_hidden_size", moe.ffn_hidden_size, \
        "Width of an expert; of each half where it is gated."), \
    COUNT("moe.shared_expert_intermediate_size", "0", 1, width_max, "elements", \
        "none", moe.shared_expert_intermediate_size, \
        "Width of the shared experts, which all tokens go through."), \
    STRING("moe.layer_freq", "1", moe.layer_freq, \
        "Which layers have experts: every so many, or a list of 0 and 1 such as " \
        "([0]*1+[1]*26)."), \
    ENUM("moe.token_dispatcher", "allgather", me_token_dispatcher_choices, \
        moe.token_dispatcher, "How tokens come to the ranks of their experts."), \
    BOOL("moe.router_pre_softmax", "false", moe.router_pre_softmax, \
        "Softmax over all experts before the best are taken."), \
    ENUM("moe.router_load_balancing", "aux_loss", me_load_balancing_choices, \
        moe.load_balancing, "What keeps the experts' loads equal."), \
    DOUBLE("moe.aux_loss_coeff", "0", 0.0, 1e6, moe.aux_loss_coeff, \
        "Coefficient of the auxiliary loss; 0 leaves it out."), \
    DOUBLE("moe.imbalance", "1", 0.0, 1e6, moe.imbalance, \
        "Tokens that a rank's experts get, times what they would get if every rank " \
        "got the same: taken for each rank, layer and micro-batch, shared evenly " \
        "by the rank's experts. Routing is data; 1 is balanced."), \
    STRING("moe.tokens", "", moe.tokens, \
        "File of measured routing instead: a line for each iteration, layer, " \
        "micro-batch and rank, these four numbers from 0 and then the tokens of " \
        "each expert of the rank. A line `alone` says that they do not add up."), \
    BOOL("moe.grouped_gemm", "false", moe.grouped_gemm, \
        "One function for all experts of a rank, which Transformer Engine has."),
/* clang-format on */

#endif /* MEMEST_CONFIG_MOE_OPTIONS_H */
