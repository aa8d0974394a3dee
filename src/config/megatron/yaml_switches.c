/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/yaml_switches.h"

#include "config/config_private.h"
#include "config/megatron/leaf_variables.h"

#include <stdbool.h>
#include <string.h>

/** NeMo 1's, which are off where the job does not say them. */
static const char fp8[] = "fp8";
static const char sequence[] = "sequence_parallel";

/** Primus: primus/configs/modules/megatron, and who asks for the switch
 *  (primus/backends/megatron/patches, core/extensions/primus_turbo.py). */
static const struct {
    const char *name;
    const char *keys; /**< as me_leaf_is_named() takes them */
} switches[] = {
    {fp8, "fp8_e4m3|fp8_hybrid"},
    {"fsdp", "fsdp_sharding_strategy|fsdp_grad_reduce_dtype|"
             "fsdp_sharded_checkpoint|fsdp_use_orig_params"},
    {"cpu_offloading",
     "cpu_offloading_num_layers|cpu_offloading_activations|"
     "cpu_offloading_weights|cpu_offloading_double_buffering"},
    {sequence, "ub_tp_comm_overlap|ub_tp_comm_overlap_cfg"},
    {"patch_zero_bubble",
     "enable_zb_runtime|allow_padding_num_layers|interleave_group_size|"
     "enable_zero_bubble|zero_bubble_v_schedule|zero_bubble_v_schedule_mem_setup|"
     "zero_bubble_pipeline_timers_start_iter|"
     "zero_bubble_pipeline_timers_end_iter|zero_bubble_max_pending_backward|"
     "zero_bubble_adaptive_memory_limit_percentile|enable_1f1b_v|"
     "enable_optimizer_post_validation|enable_exactly_numeric_match|"
     "profile_memory_iter|offload_chunk_num|offload_time|auto_offload_time|"
     "offload_overlap_sr"},
    {"patch_primus_pipeline", "pp_algorithm|communication_method"},
    {"offload", "offload_ops"},
    {"enable_odc",
     "odc_phase|odc_grad_spike_threshold|odc_p2p_backend|odc_mori_init|"
     "odc_max_buffer_size|odc_gda_rs_blocks|odc_gda_pipe|odc_gda_defer_reduce|"
     "odc_gda_warmup_mode|odc_gda_stride_bytes"},
    {"weight_deosc",
     "weight_deosc_period|weight_deosc_ratio|weight_deosc_start_step|"
     "weight_deosc_log_freq"},
    {"torch_compile.enable", "torch_compile.backend|torch_compile.mode"},
    {"use_sink_attention", "sink_sliding_window|sink_window_even_layers_only"},
    {"use_turbo_deepep", "turbo_deepep_num_cu"},
    {"use_turbo_mega_moe", "turbo_mega_moe_precision"},
    {"moe_router_force_load_balancing", "moe_router_force_load_balancing_type"},
};

enum {
    SWITCHES = sizeof switches / sizeof switches[0]
};

/** What FlagScale's tuner tries one after the other; the job itself has none. */
static const char *const of_tuners[] = {"auto_tuner", NULL};

/** NeMo 1's files name a method of full recomputation beside the selective one,
 *  which has none: TransformerConfig takes both, and looks at none then. */
static me_status drop_method(me_config *config, me_yaml *yaml, me_diag *diag)
{
    static const char method[] = "activations_checkpoint_method";
    bool is_selective = false;
    size_t kept = 0;
    for (size_t i = 0; i < yaml->count; i++) {
        const me_yaml_leaf *leaf = &yaml->leaves[i];
        if (me_leaf_is_named(leaf, "activations_checkpoint_granularity")) {
            is_selective = leaf->n_values == 1 &&
                           strcmp(leaf->values[0], "selective") == 0;
        }
    }
    for (size_t i = 0; i < yaml->count; i++) {
        const me_yaml_leaf *leaf = &yaml->leaves[i];
        if (!is_selective || !me_leaf_is_named(leaf, method)) {
            yaml->leaves[kept++] = *leaf;
        }
    }
    const bool is_dropped = kept < yaml->count;
    yaml->count = kept;
    return is_dropped ? me_config_assume(config, diag,
                                         "%s has no effect with selective "
                                         "recomputation",
                                         method)
                      : ME_OK;
}

me_status me_yaml_switches_apply(me_config *config, me_yaml *yaml,
                                 me_diag *diag)
{
    bool is_off[SWITCHES] = {false};
    size_t kept = 0;
    for (size_t k = 0; k < SWITCHES; k++) {
        is_off[k] = switches[k].name == fp8 || switches[k].name == sequence;
        for (size_t i = 0; i < yaml->count; i++) {
            bool value = false;
            if (me_leaf_is_named(&yaml->leaves[i], switches[k].name) &&
                me_yaml_bool(&yaml->leaves[i], &value)) {
                is_off[k] = !value;
            }
        }
    }
    for (size_t i = 0; i < yaml->count; i++) {
        bool is_read = !me_leaf_has_part(yaml->leaves[i].path, of_tuners);
        for (size_t k = 0; k < SWITCHES && is_read; k++) {
            is_read = !is_off[k] ||
                      !me_leaf_is_named(&yaml->leaves[i], switches[k].keys);
        }
        if (is_read) {
            yaml->leaves[kept++] = yaml->leaves[i];
        }
    }
    yaml->count = kept;
    return drop_method(config, yaml, diag);
}
