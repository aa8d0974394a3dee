/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"
#include "config/megatron/megatron_rules.h"

#include <string.h>

/* What user buffers ask of a job: validate_args() and
 * apply_determinism_to_args() of core_v0.19.0, initialize_ub(),
 * fill_userbuffers_buffer_for_all_gather() and WeightGradStore of Transformer
 * Engine; and what of them memest does not model. */

static bool is_fp8(const me_config *config)
{
    return config->fp8.format != ME_FP8_NONE;
}

static bool uses_te(const me_config *config)
{
    return config->impl.transformer == ME_TRANSFORMER_ENGINE;
}

/** Is one of the gradients of inputs scattered by other than a bulk overlap? */
static bool has_dgrad_method(const me_tp_overlap_config *o)
{
    return o->qkv_dgrad != ME_OVERLAP_BULK || o->fc1_dgrad != ME_OVERLAP_BULK;
}

/** "Tensor parallel communication/GEMM overlap can happen only when sequence
 *  parallelism is enabled", which one tensor rank turns off; the buffers are
 *  bfloat16, and what is copied into them must be. */
static me_status check_job(const me_config *config, me_diag *diag)
{
    const bool is_on = config->tp_overlap.is_on;
    const me_contradiction list[] = {
        {is_on && (!config->parallel.sequence || config->parallel.tensor == 1),
         "needs parallel.sequence = true and parallel.tensor over 1 "
         "(--sequence-parallel)"},
        {is_on && config->train.deterministic_mode,
         "does not go with train.deterministic_mode = true"},
        {is_on && uses_te(config) &&
             config->train.params_dtype != ME_DTYPE_BFLOAT16,
         "needs train.params_dtype = bfloat16 (--bf16): Transformer Engine's "
         "user buffers are of it"},
        {is_on && is_fp8(config) && config->fp8.recipe == ME_FP8_BLOCKWISE,
         "does not go with train.fp8_recipe = blockwise: Transformer Engine has "
         "no user buffers for its scales"},
        {is_on && config->tp_overlap.bulk_wgrad &&
             config->moe.delay_wgrad_compute,
         "with moe.delay_wgrad_compute = true needs "
         "parallel.tp_comm_bulk_wgrad = false (--no-tp-comm-bulk-wgrad)"},
    };
    return ME_REFUSE_FIRST(list, ME_ERR_CONFIG,
                           "parallel.tp_comm_overlap = true", diag);
}

/** initialize_ub() takes an entry out of its lists for each set of buffers,
 *  and it is there once. */
static me_status check_methods(const me_config *config, me_diag *diag)
{
    const me_tp_overlap_config *o = &config->tp_overlap;
    const me_contradiction forward[] = {
        {o->is_on && (o->proj_fprop == ME_OVERLAP_BULK ||
                      o->fc2_fprop == ME_OVERLAP_BULK),
         "must be pipeline or ring_exchange"},
    };
    const me_contradiction backward[] = {
        {o->is_on && has_dgrad_method(o) && is_fp8(config) &&
             config->fp8.first_last_layers_bf16,
         "other than bulk do not go with train.first_last_layers_bf16 = true: "
         "Transformer Engine stops at the second set of buffers"},
        {o->is_on && has_dgrad_method(o) && !o->scatters_input_gradients &&
             (o->bulk_dgrad || o->bulk_wgrad),
         "other than bulk need parallel.tp_comm_overlap_rs_dgrad = true "
         "(--tp-comm-overlap-rs-dgrad)"},
    };
    const me_contradiction fused[] = {
        {o->is_on && uses_te(config) && config->train.te_op_fuser &&
             config->moe.num_experts == 0 &&
             o->fc1_dgrad == ME_OVERLAP_RING_EXCHANGE,
         "= ring_exchange does not go with train.te_op_fuser = true "
         "(--use-transformer-engine-op-fuser), whose operations gather in that "
         "buffer at once"},
    };
    const me_status operations = ME_REFUSE_FIRST(
        fused, ME_ERR_CONFIG, "parallel.tp_comm_fc1_dgrad", diag);
    if (operations != ME_OK) {
        return operations;
    }
    const me_status status = ME_REFUSE_FIRST(
        forward, ME_ERR_CONFIG,
        "parallel.tp_comm_proj_fprop, parallel.tp_comm_fc2_fprop", diag);
    return status != ME_OK ? status
                           : ME_REFUSE_FIRST(backward, ME_ERR_CONFIG,
                                             "parallel.tp_comm_qkv_dgrad, "
                                             "parallel.tp_comm_fc1_dgrad",
                                             diag);
}

/** What Transformer Engine has and memest has not. */
static me_status check_modelled(const me_config *config, me_diag *diag)
{
    const me_tp_overlap_config *o = &config->tp_overlap;
    const bool is_on = o->is_on && uses_te(config);
    const me_contradiction list[] = {
        {is_on && is_fp8(config) && config->fp8.recipe == ME_FP8_MXFP8,
         "with train.fp8_recipe = mxfp8 is not modelled"},
        {is_on && !config->pipeline.is_own,
         "with an order of pipeline.schedule that is not Megatron-LM's own is "
         "not modelled"},
        {is_on && is_fp8(config) && o->scatters_input_gradients &&
             (o->qkv_dgrad == ME_OVERLAP_BULK ||
              o->fc1_dgrad == ME_OVERLAP_BULK),
         "with train.fp8 and parallel.tp_comm_overlap_rs_dgrad = true is "
         "modelled with parallel.tp_comm_qkv_dgrad and "
         "parallel.tp_comm_fc1_dgrad = pipeline or ring_exchange alone "
         "(--tp-comm-overlap-cfg)"},
    };
    return ME_REFUSE_FIRST(list, ME_ERR_UNSUPPORTED,
                           "parallel.tp_comm_overlap = true", diag);
}

me_rule *const me_tp_overlap_rules[] = {
    check_job,
    check_methods,
    check_modelled,
    NULL,
};

me_status me_config_assume_tp_overlap(me_config *config, me_diag *diag)
{
    if (!config->tp_overlap.is_on) {
        return ME_OK;
    }
    const char *skips = me_config_variable(config, "UB_SKIPMC");
    config->tp_overlap.has_multicast &=
        skips == NULL || strcmp(skips, "0") == 0;
    const me_status status =
        !config->tp_overlap.has_multicast
            ? ME_OK
            : me_config_assume(
                  config, diag,
                  "user buffers of --tp-comm-overlap: the cards reach each "
                  "other through CUDA multicast, without which Transformer "
                  "Engine needs UB_SKIPMC=1");
    return status == ME_OK
               ? me_config_assume(
                     config, diag,
                     "predicted time: what goes through user buffers takes no "
                     "longer than the product beside it")
               : status;
}
