/**
 * @file
 * Rows of the table in options.c that say what PyTorch's FSDP2 or Megatron-LM's own
 * FSDP shards of a job, written in that table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_FSDP_OPTIONS_H
#define MEMEST_CONFIG_FSDP_OPTIONS_H

/* clang-format off */
#define ME_FSDP_OPTIONS \
    BOOL("parallel.torch_fsdp2", "false", parallel.torch_fsdp2, \
        "Shard parameters, gradients and optimizer over the data-parallel ranks " \
        "with PyTorch's FSDP2, in place of DDP."), \
    BOOL("parallel.megatron_fsdp", "false", parallel.megatron_fsdp, \
        "Megatron-LM's own FSDP, in place of DDP."), \
    ENUM("parallel.sharding_strategy", "optim_grads_params", \
        me_sharding_strategy_choices, parallel.sharding_strategy, \
        "What data-parallel ranks own parts of under Megatron-LM's own FSDP."), \
    ENUM("parallel.outer_sharding_strategy", "no_shard", \
        me_outer_sharding_choices, parallel.outer_sharding_strategy, \
        "What instances of the distributed optimizer share then: nothing, or optimizers."), \
    ENUM("parallel.fsdp_main_params_dtype", "fp32", me_fsdp_dtype_choices, \
        parallel.fsdp_main_params_dtype, \
        "Type of the main parameters under Megatron-LM's own FSDP; auto: none."), \
    ENUM("parallel.fsdp_main_grads_dtype", "auto", me_fsdp_dtype_choices, \
        parallel.fsdp_main_grads_dtype, \
        "Type of its main gradients; auto: the parameters'."), \
    ENUM("parallel.fsdp_grad_comm_dtype", "auto", me_fsdp_dtype_choices, \
        parallel.fsdp_grad_comm_dtype, \
        "Type in which it reduces gradients; auto: the main gradients'."), \
    COUNT("parallel.suggested_communication_unit_size", "0", 1, width_max * 1024, \
        "elements", "two layers, at least 1,000,000,000", \
        parallel.suggested_communication_unit_size, \
        "What Megatron-LM's own FSDP reduces at once; half of it is gathered ahead."), \
    BOOL("parallel.fsdp_double_buffer", "false", parallel.fsdp_double_buffer, \
        "Megatron-LM's own FSDP has two buffers for like layers, which stay."), \
    BOOL("parallel.fsdp_db_use_persist_buf_on_alloc_fail", "false", \
        parallel.fsdp_db_use_persist_buf_on_alloc_fail, \
        "What has none of the two stays as well once it was gathered or reduced."), \
    BOOL("parallel.fsdp_keep_fp8_columns", "false", \
        parallel.fsdp_keep_fp8_columns, \
        "Its parameters in FP8 keep their transposes."), \
    BOOL("parallel.init_model_with_meta_device", "false", \
        parallel.init_model_with_meta_device, \
        "Megatron-LM's own FSDP gives a module memory when it is cut."), \
    BOOL("parallel.torch_fsdp2_reshard_after_forward", "true", \
        parallel.torch_fsdp2_reshard_after_forward, \
        "FSDP2 frees gathered parameters after each forward."),
/* clang-format on */

#endif /* MEMEST_CONFIG_FSDP_OPTIONS_H */
