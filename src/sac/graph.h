/**
 * @file
 * What PyTorch's tools know of each module of a model, as the integer programme of
 * torch/distributed/_tools/sac_ilp.py reads it (ModStats, Graph and the baseline of
 * ilp_utils.py). Who measures it is no matter here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_GRAPH_H
#define MEMEST_SAC_GRAPH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_SAC_SEGMENTS = 2 /**< lines of a trade-off, at most */
};

/** One module's share of an iteration (ModStats). */
typedef struct me_sac_module {
    const char *fqn; /**< borrowed; the root's name is the beginning of all */
    uint64_t param_bytes;
    uint64_t grad_bytes;
    uint64_t grad_total_bytes; /**< gradients before its backward */
    uint64_t act_fw_bytes;     /**< IA: what its forward leaves behind, without
                                    its output */
    uint64_t act_bw_bytes;     /**< activations at the peak of its backward */
    int64_t act_grad_bytes;    /**< AG: what temporary memory grows by from the
                                    start of its backward to the peak there */
    uint64_t act_total_bytes;  /**< TA: all activations after its forward */
    uint64_t input_bytes;
    uint64_t output_bytes;
    double fw_ms;
    double bw_ms;
    bool is_leaf;        /**< it has no trade-off, and all below is zero */
    double sac_ms;       /**< ACT: its operations' time */
    uint64_t sac_bytes;  /**< ACM: its operations' memory */
    uint32_t n_segments; /**< the share of the time that making a share r of the
                              memory again takes is slope r + intercept, of the
                              line where that is most, and 0 at least */
    double slopes[ME_SAC_SEGMENTS];
    double intercepts[ME_SAC_SEGMENTS];
    uint32_t fw_pre_order;  /**< how many modules' forward begins before */
    uint32_t fw_post_order; /**< how many modules' forward ends before */
} me_sac_module;

/** The modules of a model and who lies in whom (Graph). */
typedef struct me_sac_graph {
    uint32_t n_modules;
    me_sac_module *modules; /**< in the order of model.modules(): PyTorch sorts
                                 by forward, and then does not use that */
    uint32_t *last;         /**< modules[i + 1 … last[i]] lie in modules[i] */
} me_sac_graph;

/**
 * A graph of @p modules, which are copied, in the order of model.modules(): the
 * root first. Local.
 *
 * @param graph_out  to be destroyed by the caller
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_CONFIG without modules; ME_ERR_INTERNAL
 *         where positions are no order, as PyTorch asserts
 */
me_status me_sac_graph_create(const me_sac_module *modules, uint32_t n_modules,
                              me_diag *diag,
                              me_sac_graph **graph_out) ME_MUST_CHECK;

/** Give back the graph; NULL is allowed. Local. */
void me_sac_graph_destroy(me_sac_graph *graph);

/** Does the module @p inner lie in @p outer, and is not it? As PyTorch asks: by
 *  their names, and anywhere in them (is_submodule()). Local. */
bool me_sac_is_submodule(const char *inner, const char *outer);

/** Without selective checkpoints and FSDP. */
typedef struct me_sac_baseline {
    int64_t peak_bytes; /**< parameters, gradients and activations */
    double compute_ms;  /**< forward and backward */
} me_sac_baseline;

/** The baseline of @p graph (get_peak_memory_runtime_baseline()). Local. */
me_sac_baseline me_sac_graph_baseline(const me_sac_graph *graph);

#endif /* MEMEST_SAC_GRAPH_H */
