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
    STRING("moe.router_load_balancing", "aux_loss", moe.load_balancing, \
        "What keeps the experts' loads equal: aux_loss, seq_aux_loss, " \
        "global_aux_loss or several of them, sinkhorn or none."), \
    INT("moe.sinkhorn_rounds", "4", 1, 1000, "rounds", NULL, moe.sinkhorn_rounds, \
        "Rounds until sinkhorn's scores change no more, which the data decides: 3 to 5 " \
        "were measured. Peaks do not depend on it."), \
    DOUBLE("moe.aux_loss_coeff", "0", 0.0, ME_OPTION_REAL_MAX, moe.aux_loss_coeff, \
        "Coefficient of the auxiliary loss; 0 leaves it out."), \
    STRING("moe.aux_loss_coeffs", "", moe.aux_loss_coeffs, \
        "Those of several losses, in their order."), \
    DOUBLE("moe.imbalance", "1", 0.0, 1e6, moe.imbalance, \
        "Tokens that a rank's experts get, times what they would get if every rank " \
        "got the same: taken for each rank, layer and micro-batch, shared evenly " \
        "by the rank's experts. Routing is data; 1 is balanced."), \
    STRING("moe.tokens", "", moe.tokens, \
        "File of measured routing instead: a line for each iteration, layer, " \
        "micro-batch and rank, these four numbers from 0 and then the tokens of " \
        "each expert of the rank. A line `alone` says that they do not add up, a " \
        "line `routed` that they are a rank's own tokens for each of all experts."), \
    BOOL("moe.grouped_gemm", "false", moe.grouped_gemm, \
        "One function for all experts of a rank, which Transformer Engine has."), \
    BOOL("moe.router_padding_for_quantization", "false", \
        moe.router_padding_for_quantization, \
        "Experts get so many tokens as quantised products ask for: a multiple of " \
        "16, with MXFP8 32."), \
    ENUM("moe.router_score_function", "softmax", me_score_function_choices, \
        moe.router_score_function, "What becomes of the router's logits."), \
    ENUM("moe.router_dtype", "none", me_router_dtype_choices, moe.router_dtype, \
        "Type of logits and routing weights; none: the model's."), \
    COUNT("moe.router_num_groups", "0", 0, experts_max, "groups", NULL, \
        moe.router_num_groups, \
        "Groups of experts, of which a token goes to some; 0: none."), \
    COUNT("moe.router_group_topk", "0", 0, experts_max, "groups", NULL, \
        moe.router_group_topk, "Groups that each token goes to; 0: all."), \
    DOUBLE("moe.router_topk_scaling_factor", "0", 0.0, ME_OPTION_REAL_MAX, \
        moe.router_topk_scaling_factor, \
        "Factor of the routing weights; 0: none."), \
    BOOL("moe.router_enable_expert_bias", "false", \
        moe.router_enable_expert_bias, \
        "Biases of the scores, moved by the experts' loads of each batch."), \
    BOOL("moe.router_fusion", "false", moe.router_fusion, \
        "Transformer Engine's fused kernels of the router."), \
    BOOL("moe.router_force_load_balancing", "false", \
        moe.router_force_load_balancing, \
        "Random logits, as benchmarks take them."), \
    DOUBLE("moe.router_force_biased", "0", -ME_OPTION_REAL_MAX, ME_OPTION_REAL_MAX, \
        moe.router_force_biased, \
        "Deviation of random biases that all ranks add to logits; below 0 a layer " \
        "makes them once; 0: none."), \
    DOUBLE("moe.z_loss_coeff", "-1", -1.0, ME_OPTION_REAL_MAX, moe.z_loss_coeff, \
        "Coefficient of the router's z-loss; -1 leaves it out."), \
    DOUBLE("moe.input_jitter_eps", "-1", -1.0, ME_OPTION_REAL_MAX, moe.input_jitter_eps, \
        "Noise that the router's input is multiplied by; -1: none."), \
    DOUBLE("moe.capacity_factor", "-1", -1e6, 1e6, moe.capacity_factor, \
        "Tokens that an expert takes, times its equal share; those beyond are " \
        "dropped; below 0: all are taken."), \
    BOOL("moe.pad_to_capacity", "false", moe.pad_to_capacity, \
        "Experts with fewer tokens get padding."), \
    ENUM("moe.drop_policy", "probs", me_drop_policy_choices, moe.drop_policy, \
        "Which tokens are dropped: those with the least weights, or the last."), \
    BOOL("moe.per_layer_logging", "false", moe.per_layer_logging, \
        "The routers' losses are logged for each layer."), \
    ENUM("moe.flex_backend", "deepep", me_flex_backend_choices, \
        moe.flex_backend, "Whose kernels the flex dispatcher runs."), \
    STRING("moe.routing", "", moe.routing, \
        "Who gets how many tokens: balanced; skewed:x, some experts more than " \
        "others after Zipf's law with exponent x; measured, as moe.tokens says " \
        "(docs/experts.md). Empty: measured if there is a file, else balanced."), \
    COUNT("moe.routing_seed", "0", 0, 4294967295.0, "", NULL, moe.routing_seed, \
        "Which order of experts a skewed routing draws."), \
    BOOL("moe.shared_expert_gate", "false", moe.shared_expert_gate, \
        "What shared experts make is weighted by a sigmoid of their input."), \
    BOOL("moe.shared_expert_overlap", "false", moe.shared_expert_overlap, \
        "Shared experts run in a stream of their own while tokens travel."), \
    COUNT("moe.latent_size", "0", 1, width_max, "elements", "none", \
        moe.latent_size, "Width that tokens are projected to for the experts."), \
    COUNT("moe.glu_interleave_size", "0", 1, width_max, "elements", "all", \
        moe.glu_interleave_size, \
        "In grouped experts so many columns of a gate stand beside as many of " \
        "what it gates, and are sorted before the activation."), \
    BOOL("moe.apply_probs_on_input", "false", moe.apply_probs_on_input, \
        "Routing weights are multiplied with what experts are given, not with " \
        "what they make."), \
    BOOL("moe.permute_fusion", "false", moe.permute_fusion, \
        "Transformer Engine's kernels sort tokens by their experts and back."), \
    BOOL("moe.overlap_expert_comm", "false", moe.overlap_expert_comm, \
        "Forwards and backwards of two micro-batches run in turns, layer by " \
        "layer, so that one's exchanges of tokens run beside the other's " \
        "products."), \
    BOOL("moe.delay_wgrad_compute", "false", moe.delay_wgrad_compute, \
        "Weight gradients of a layer wait for the other micro-batch's exchange."), \
    BOOL("moe.overlap_early_attention", "false", moe.overlap_early_attention, \
        "Attention's backward runs before the other micro-batch's experts."),
/* clang-format on */

#endif /* MEMEST_CONFIG_MOE_OPTIONS_H */
