/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"
#include "config/flags.h"
#include "config/torchtitan/torchtitan_private.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define SET(table, key, versions, type, field) \
    {table, key, versions, ME_TITAN_SETS, ME_TOML_##type, field, NULL, NULL, \
     ME_EITHER(NONE)}
#define NO_EFFECT(table, keys, versions, note) \
    {table, keys, versions, ME_TITAN_NO_EFFECT, ME_TOML_TEXT, \
     ME_TITAN_NOTHING, NULL, note, ME_EITHER(NONE)}
#define UNMODELLED(table, keys, versions, neutral, effect, note) \
    {table, keys, versions, ME_TITAN_UNMODELLED, ME_TOML_TEXT, \
     ME_TITAN_NOTHING, neutral, note, effect}
#define REFUSED(table, keys, versions, neutral, note) \
    {table, keys, versions, ME_TITAN_REFUSED, ME_TOML_TEXT, \
     ME_TITAN_NOTHING, neutral, note, ME_EITHER(NONE)}

#define OLD ME_TITAN_2024
#define NEW ME_TITAN_0_2
#define ALL ME_TITAN_ALL

static const me_titan_rule rules[] = {
NO_EFFECT("job", "config_file|dump_folder|description", ALL, "files"),
NO_EFFECT("job", "print_args|use_for_integration_test", OLD, "what is printed"),
NO_EFFECT("job", "print_config|save_config_file", NEW,
    "what is printed or written"),
UNMODELLED("job", "custom_config_module", NEW, "",
    ME_EITHER(ANY), "code of the job's own"),
UNMODELLED("profiling", "enable_profiling", ALL, "false",
    ME_HIGHER(SMALL), "profilers take device memory"),
NO_EFFECT("profiling",
    "save_traces_folder|profile_freq|enable_memory_snapshot|"
    "save_memory_snapshot_folder", ALL,
    "files, and when traces are taken"),
NO_EFFECT("profiling", "profiler_active|profiler_warmup", NEW,
    "when traces are taken"),
NO_EFFECT("metrics",
    "log_freq|enable_tensorboard|disable_color_printing|save_tb_folder|"
    "enable_wandb", ALL,
    "logs of the host"),
NO_EFFECT("metrics", "rank_0_only", OLD, "who logs"),
NO_EFFECT("metrics", "save_for_all_ranks", NEW, "who logs"),

SET("model", "name", ALL, TEXT, ME_TITAN_MODEL),
SET("model", "flavor", ALL, TEXT, ME_TITAN_FLAVOR),
SET("model", "tokenizer_path", ALL, TEXT, ME_TITAN_TOKENIZER),
NO_EFFECT("model", "hf_assets_path|print_after_conversion", NEW,
    "files of the tokenizer; what is printed"),
UNMODELLED("model", "norm_type", OLD, "rmsnorm",
    ME_EITHER(SOME), "another norm; rmsnorm is estimated"),
UNMODELLED("model", "converters", NEW, "",
    ME_EITHER(ANY), "converted layers; bfloat16 ones are estimated"),

SET("optimizer", "name", ALL, TEXT, ME_TITAN_OPTIMIZER),
SET("optimizer", "fused", OLD, BOOL, ME_TITAN_FUSED),
SET("optimizer", "implementation", NEW, TEXT, ME_TITAN_IMPLEMENTATION),
NO_EFFECT("optimizer", "lr", ALL, "a number that the optimizer uses"),
NO_EFFECT("optimizer", "beta1|beta2|eps|weight_decay", NEW,
    "numbers that the optimizer uses"),
REFUSED("optimizer", "early_step_in_backward", ALL, "false",
    "steps inside of the backward are not modelled"),
NO_EFFECT("lr_scheduler",
    "warmup_steps|total_steps|decay_ratio|decay_type|min_lr_factor", NEW,
    "the learning rate, a number"),

SET("training", "batch_size", OLD, WHOLE, ME_TITAN_BATCH_SIZE),
SET("training", "local_batch_size", NEW, WHOLE, ME_TITAN_BATCH_SIZE),
SET("training", "global_batch_size", NEW, WHOLE, ME_TITAN_GLOBAL_BATCH_SIZE),
SET("training", "seq_len", ALL, WHOLE, ME_TITAN_SEQ_LEN),
SET("training", "max_norm", ALL, DECIMAL, ME_TITAN_MAX_NORM),
SET("training", "mixed_precision_param", ALL, TEXT, ME_TITAN_PARAM_DTYPE),
REFUSED("training", "mixed_precision_reduce", ALL, "float32",
    "torchtitan reduces in float32 alone"),
REFUSED("training", "dtype", NEW, "float32",
    "parameters are modelled in float32 alone"),
SET("training", "enable_cpu_offload", ALL, BOOL, ME_TITAN_CPU_OFFLOAD),
UNMODELLED("training", "compile", OLD, "false",
    ME_EITHER(SOME),
    "compiled blocks; eager ones are estimated, which take more"),
UNMODELLED("training", "deterministic", OLD, "false",
    ME_EITHER(SMALL), "deterministic kernels may take other scratch memory"),
NO_EFFECT("training", "dataset|dataset_path|steps|gc_freq", ALL,
    "data and length of the run; collections of the host"),
NO_EFFECT("training", "warmup_steps|seed", OLD,
    "numbers of the learning rate and of random state"),
NO_EFFECT("training", "gc_debug", NEW, "what the host prints of cycles"),
NO_EFFECT("training.dataloader",
    "num_workers|persistent_workers|pin_memory|prefetch_factor", NEW,
    "of validation only"),

SET("training", "data_parallel_replicate_degree", OLD, WHOLE,
    ME_TITAN_REPLICATE),
SET("training", "data_parallel_shard_degree", OLD, WHOLE, ME_TITAN_SHARD),
SET("training", "tensor_parallel_degree", OLD, WHOLE, ME_TITAN_TENSOR),
SET("training", "disable_loss_parallel", OLD, BOOL, ME_TITAN_NO_LOSS_PARALLEL),
SET("parallelism", "data_parallel_replicate_degree", NEW, WHOLE,
    ME_TITAN_REPLICATE),
SET("parallelism", "data_parallel_shard_degree", NEW, WHOLE, ME_TITAN_SHARD),
SET("parallelism", "fsdp_reshard_after_forward", NEW, TEXT, ME_TITAN_RESHARD),
SET("parallelism", "tensor_parallel_degree", NEW, WHOLE, ME_TITAN_TENSOR),
SET("parallelism", "disable_loss_parallel", NEW, BOOL,
    ME_TITAN_NO_LOSS_PARALLEL),
UNMODELLED("parallelism", "enable_async_tensor_parallel", NEW, "false",
    ME_HIGHER(SOME), "asynchronous tensor parallelism"),
SET("parallelism", "pipeline_parallel_degree", NEW, WHOLE, ME_TITAN_PIPELINE),
SET("parallelism", "pipeline_parallel_schedule", NEW, TEXT, ME_TITAN_SCHEDULE),
SET("parallelism", "pipeline_parallel_microbatch_size", NEW, WHOLE,
    ME_TITAN_MICROBATCH_SIZE),
SET("parallelism", "pipeline_parallel_first_stage_less_layers", NEW, WHOLE,
    ME_TITAN_FIRST_STAGE_LESS),
SET("parallelism", "pipeline_parallel_last_stage_less_layers", NEW, WHOLE,
    ME_TITAN_LAST_STAGE_LESS),
SET("parallelism", "pipeline_parallel_layers_per_stage", NEW, WHOLE,
    ME_TITAN_LAYERS_PER_STAGE),
REFUSED("parallelism", "module_fqns_per_model_part", NEW, "",
    "stages of named modules are not modelled; those that torchtitan spreads "
    "are"),
SET("parallelism", "pipeline_parallel_schedule_csv", NEW, TEXT,
    ME_TITAN_SCHEDULE_CSV),
NO_EFFECT("parallelism", "pipeline_parallel_expert_parallel_overlap", NEW,
    "of models with experts only"),
REFUSED("parallelism", "context_parallel_degree", NEW, "1",
    "context parallelism is not modelled"),
NO_EFFECT("parallelism",
    "context_parallel_load_balancer|context_parallel_rotate_method", NEW,
    "of context parallelism only"),
REFUSED("parallelism", "expert_parallel_degree|expert_tensor_parallel_degree",
    NEW, "1", "models with experts are not modelled"),
NO_EFFECT("parallelism", "expert_parallel_comm_backend", NEW,
    "of models with experts only"),

REFUSED("experimental", "context_parallel_degree", OLD, "1",
    "context parallelism is not modelled"),
NO_EFFECT("experimental", "context_parallel_rotate_method", OLD,
    "of context parallelism only"),
SET("experimental", "pipeline_parallel_degree", OLD, WHOLE, ME_TITAN_PIPELINE),
SET("experimental", "pipeline_parallel_split_points", OLD, LIST,
    ME_TITAN_SPLIT_POINTS),
SET("experimental", "pipeline_parallel_schedule", OLD, TEXT,
    ME_TITAN_SCHEDULE),
REFUSED("experimental", "pipeline_parallel_schedule_csv", OLD, "",
    "an order from a file is modelled of releases 0.2 alone"),
SET("experimental", "pipeline_parallel_microbatches", OLD, WHOLE,
    ME_TITAN_MICROBATCHES),
UNMODELLED("experimental", "enable_async_tensor_parallel", OLD, "false",
    ME_HIGHER(SOME), "asynchronous tensor parallelism"),
UNMODELLED("experimental", "enable_compiled_autograd", OLD, "false",
    ME_EITHER(SOME), "a compiled backward; the eager one is estimated"),
UNMODELLED("experimental", "custom_import|custom_args_module", NEW, "",
    ME_EITHER(ANY), "code of the job's own"),

NO_EFFECT("checkpoint",
    "folder|interval|async_mode|keep_latest_k|load_step", ALL,
    "tensors go to the host one by one, as they are"),
UNMODELLED("checkpoint", "export_dtype", ALL, "float32",
    ME_HIGHER(SOME), "the last checkpoint is cast on the GPU"),
NO_EFFECT("checkpoint",
    "enable_checkpoint|interval_type|model_weights_only", OLD,
    "when a checkpoint is written, and of what"),
NO_EFFECT("checkpoint",
    "enable|enable_ft_dataloader_checkpoints|initial_load_path|"
    "initial_load_model_only|last_save_model_only|exclude_from_loading|"
    "enable_first_step_checkpoint|load_only", NEW,
    "what is read and written of checkpoints, in place"),
UNMODELLED("checkpoint",
    "initial_load_in_hf|initial_load_in_hf_quantized|last_save_in_hf", NEW, "false",
    ME_HIGHER(SOME), "weights are turned on the GPU for Hugging Face's order"),
REFUSED("checkpoint", "create_seed_checkpoint", ALL, "false",
    "such a job does not train"),

SET("activation_checkpoint", "mode", ALL, TEXT, ME_TITAN_CHECKPOINT),
SET("activation_checkpoint", "selective_ac_option", ALL, TEXT,
    ME_TITAN_CHECKPOINT_OPTION),
SET("activation_checkpoint", "early_stop", NEW, BOOL, ME_TITAN_EARLY_STOP),
UNMODELLED("activation_checkpoint",
    "per_op_sac_force_recompute_mm_shapes_by_fqns", NEW, "|moe.router.gate",
    ME_EITHER(SOME),
    "products that are made again; those of the policy are estimated"),
NO_EFFECT("activation_checkpoint",
    "memory_budget|visualize_memory_budget_pareto|preserve_rng_state|"
    "determinism_check|debug", NEW,
    "of compiled checkpoints only; random state of the host"),

UNMODELLED("compile", "enable", NEW, "false",
    ME_EITHER(SOME),
    "compiled blocks and loss; eager ones are estimated, which take more"),
NO_EFFECT("compile", "components|backend", NEW, "of compiled jobs only"),
UNMODELLED("float8",
    "enable_float8_linear|enable_fsdp_float8_all_gather|"
    "precompute_float8_dynamic_scale_for_fsdp", OLD, "false",
    ME_EITHER(SOME), "float8 layers; bfloat16 ones are estimated"),
NO_EFFECT("float8",
    "scaling_type_input|scaling_type_weight|scaling_type_grad_output", OLD,
    "of float8 layers only"),
NO_EFFECT("quantize.linear.float8",
    "enable_fsdp_float8_all_gather|precompute_float8_dynamic_scale_for_fsdp|"
    "recipe_name|filter_fqns|emulate", NEW,
    "of converted layers only"),
NO_EFFECT("quantize.linear.mx",
    "mxfp8_dim1_cast_kernel_choice|recipe_name|filter_fqns", NEW,
    "of converted layers only"),
NO_EFFECT("quantize.grouped_mm.float8", "fqns", NEW,
    "of converted layers only"),
NO_EFFECT("quantize.grouped_mm.mx", "recipe_name|fqns", NEW,
    "of converted layers only"),

NO_EFFECT("comm",
    "init_timeout_seconds|train_timeout_seconds|trace_buf_size", ALL,
    "timeouts, and records of the host"),
NO_EFFECT("comm", "save_traces_folder|save_traces_file_prefix", NEW, "files"),
REFUSED("comm", "mode", NEW, "default", "such a job does not train"),
NO_EFFECT("memory_estimation", "disable_fake_mode", ALL,
    "of a script that does not train"),
NO_EFFECT("memory_estimation", "enabled", OLD,
    "of a script that does not train"),
NO_EFFECT("memory_estimation", "enable", NEW,
    "of a script that does not train"),
UNMODELLED("fault_tolerance", "enable", NEW, "false",
    ME_EITHER(SOME), "fault tolerance"),
NO_EFFECT("fault_tolerance",
    "process_group|process_group_timeout_ms|replica_id|group_size|"
    "min_replica_size|semi_sync_method", NEW,
    "of fault tolerance only"),
UNMODELLED("validation", "enable", NEW, "false",
    ME_HIGHER(SOME), "forwards between the steps"),
NO_EFFECT("validation",
    "dataset|dataset_path|local_batch_size|seq_len|freq|steps", NEW,
    "of validation only"),
NO_EFFECT("validation.dataloader",
    "num_workers|persistent_workers|pin_memory|prefetch_factor", NEW,
    "of validation only"),
UNMODELLED("debug", "deterministic", NEW, "false",
    ME_EITHER(SMALL), "deterministic kernels may take other scratch memory"),
NO_EFFECT("debug", "seed|deterministic_warn_only|moe_force_load_balance", NEW,
    "random numbers, and where a warning stands"),
};

/* clang-format on */

const me_titan_rule *me_titan_rule_find(const char *table, const char *key)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].table, table) == 0 &&
            me_words_have(rules[i].keys, strlen(rules[i].keys), key)) {
            return &rules[i];
        }
    }
    return NULL;
}

bool me_titan_table_is_known(const char *table)
{
    const size_t length = strlen(table);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const char *known = rules[i].table;
        if (strncmp(known, table, length) == 0 &&
            (known[length] == '\0' || known[length] == '.')) {
            return true;
        }
    }
    return false;
}

const char *me_titan_nearest_table(const char *table)
{
    me_nearest nearest = me_nearest_begin(table);
    const char *best = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (me_nearest_offer(&nearest, rules[i].table)) {
            best = rules[i].table;
        }
    }
    return best;
}

bool me_titan_nearest(const char *table, const char *key, me_str *name_out)
{
    char written[160];
    char best[160] = "";
    (void)snprintf(written, sizeof written, "%.79s.%.79s", table, key);
    me_nearest nearest = me_nearest_begin(written);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        for (const char *k = rules[i].keys; *k != '\0';) {
            const size_t length = strcspn(k, "|");
            char known[160];
            (void)snprintf(known, sizeof known, "%.79s.%.*s", rules[i].table,
                           (int)length, k);
            if (me_nearest_offer(&nearest, known)) {
                memcpy(best, known, sizeof best);
            }
            k += length + (k[length] == '|');
        }
    }
    me_str_append(name_out, best);
    return best[0] != '\0';
}
