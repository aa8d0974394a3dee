/**
 * @file
 * Rows of the table in options.c that say which communication over tensor ranks
 * goes through Transformer Engine's user buffers, written in that table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TP_OVERLAP_OPTIONS_H
#define MEMEST_CONFIG_TP_OVERLAP_OPTIONS_H

/* clang-format off */
#define ME_TP_OVERLAP_OPTIONS \
    BOOL("parallel.tp_comm_overlap", "false", tp_overlap.is_on, \
        "Transformer Engine communicates over tensor ranks beside its products, in user " \
        "buffers outside of PyTorch's allocator."), \
    BOOL("parallel.tp_comm_overlap_ag", "true", tp_overlap.gathers, \
        "What column-parallel layers are given, and gradients of row-parallel ones, are " \
        "gathered in user buffers."), \
    BOOL("parallel.tp_comm_overlap_rs", "true", tp_overlap.scatters, \
        "What row-parallel layers make is scattered out of user buffers."), \
    BOOL("parallel.tp_comm_overlap_rs_dgrad", "false", tp_overlap.scatters_input_gradients, \
        "Gradients of inputs are scattered in pieces, in place of the bulk overlaps."), \
    BOOL("parallel.tp_comm_bulk_dgrad", "true", tp_overlap.bulk_dgrad, \
        "A layer's input is gathered again in a user buffer beside its input's gradient."), \
    BOOL("parallel.tp_comm_bulk_wgrad", "true", tp_overlap.bulk_wgrad, \
        "Gradients of inputs are scattered in a user buffer beside the weight's gradient."), \
    ENUM("parallel.tp_comm_bootstrap_backend", "nccl", me_bootstrap_choices, \
        tp_overlap.bootstrap, "Through whom ranks tell each other of their user buffers."), \
    BOOL("parallel.tp_comm_multicast", "true", tp_overlap.has_multicast, \
        "Cards reach each other's user buffers through CUDA multicast; UB_SKIPMC=1: not."), \
    ENUM("parallel.tp_comm_qkv_dgrad", "bulk", me_overlap_method_choices, \
        tp_overlap.qkv_dgrad, "Method of a --tp-comm-overlap-cfg file's entry qkv_dgrad."), \
    ENUM("parallel.tp_comm_fc1_dgrad", "bulk", me_overlap_method_choices, \
        tp_overlap.fc1_dgrad, "Method of its entry fc1_dgrad."), \
    ENUM("parallel.tp_comm_proj_fprop", "pipeline", me_overlap_method_choices, \
        tp_overlap.proj_fprop, "Method of its entry proj_fprop."), \
    ENUM("parallel.tp_comm_fc2_fprop", "pipeline", me_overlap_method_choices, \
        tp_overlap.fc2_fprop, "Method of its entry fc2_fprop."),
/* clang-format on */

#endif /* MEMEST_CONFIG_TP_OVERLAP_OPTIONS_H */
