/* SPDX-License-Identifier: BSD-3-Clause */
/* ms-swift's Megatron-SWIFT: swift/megatron/arguments/megatron_args.py, with its
 * defaults, and swift/cli/main.py for its files and ranks. */
#include "base/input.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/trainers.h"
#include "config/rank_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_BYTES = 128
};

/** clang-format off */
static const me_yaml_field fields[] = {
    {"recompute_granularity", "none", .flags = ""},
    {"recompute_modules", NULL, .flags = "--recompute-modules"},
    {"moe_router_dtype", "none", .flags = ""},
    {"tuner_type|train_type", "full", .flags = ""},
    {"tuner_type|train_type", "lora|lora_llm", .flags = "",
     .note = "adapters alone are trained", .effect = ME_LOWER(ANY)},
    {"padding_free|packing|mlp_padding_free", NULL, .flags = ""},
    {"freeze_parameters|freeze_parameters_regex|freeze_parameters_ratio|"
     "freeze_llm",
     "false|0|0.|0.0", .flags = ""},
    {"freeze_parameters|freeze_parameters_regex|freeze_parameters_ratio|"
     "freeze_llm",
     NULL, .flags = "", .note = "parameters that are not trained",
     .effect = ME_LOWER(ANY)},
    {"rlhf_type", NULL, .flags = "",
     .note = "losses of preference or reinforcement learning, and a reference "
             "or teacher model beside the one that is trained",
     .effect = ME_HIGHER(ANY)},
    {"use_vllm|vllm_mode", "false|server", .flags = ""},
    {"use_vllm|vllm_mode", NULL, .flags = "",
     .note = "a rollout engine on the same cards", .effect = ME_HIGHER(ANY)},
    {"offload_optimizer|offload_model|offload_bridge|sleep_level", NULL,
     .flags = ""},
    {"megatron_extra_kwargs", NULL, .flags = "",
     .note = "fields of the configuration in JSON", .effect = ME_EITHER(ANY)},
    {"task_type", "causal_lm", .flags = ""},
    {"task_type", NULL, .flags = "",
     .note = "another head than a language model's", .effect = ME_EITHER(ANY)},
    {"virtual_pipeline_model_parallel_size", "1", .flags = ""},
    {"bf16|fp16", "false", .flags = ""},
    {"torch_dtype", "bfloat16", .flags = "--bf16"},
    {"torch_dtype", "float16|float32", .flags = "--fp16"},
    {"bias_activation_fusion", "false",
     .flags = "--no-bias-gelu-fusion --no-bias-swiglu-fusion"},
    {"loss_scale|max_length|packing_length|finetune|model_type|lora_rank|lora_alpha|"
     "lora_dropout|target_modules",
     NULL, .flags = ""},
    {.key = NULL},
};

/** Data, checkpoints, logs and numbers of schedules. */
static const char *const quiet[] = {
    "model",
    "dataset",
    "val_dataset",
    "cached_dataset",
    "cached_val_dataset",
    "split_dataset_ratio",
    "load_from_cache_file",
    "load_safetensors",
    "save_safetensors",
    "num_train_epochs",
    "output_dir",
    "eval_steps",
    "save_steps",
    "save_strategy",
    "save_total_limit",
    "dataloader_num_workers",
    "dataset_num_proc",
    "dataset_shuffle",
    "train_dataloader_shuffle",
    "dataloader_pin_memory",
    "dataloader_persistent_workers",
    "dataloader_prefetch_factor",
    "data_sharding",
    "group_by_length",
    "use_hf",
    "hub_token",
    "merge_lora",
    "max_shard_size",
    "truncation_strategy",
    "lazy_tokenize",
    "streaming",
    "system",
    "template",
    "agent_template",
    "model_author",
    "model_name",
    "add_non_thinking_prefix",
    "add_version",
    "create_checkpoint_symlink",
    "logging_steps",
    "report_to",
    "mcore_model",
    "mcore_adapter",
    "adapters",
    "lora_rank",
    "lora_alpha",
    "lora_dropout",
    "lora_bias",
    "lora_dtype",
    "use_rslora",
    "target_modules",
    "target_regex",
    "modules_to_save",
    "freeze_vit",
    "freeze_aligner",
    "wandb_exp_name",
    "columns",
    "attn_impl",
    "check_model",
    "bridge_backend",
    "strict",
    "seed",
    "remove_unused_columns",
    "enable_thinking",
    "response_prefix",
    "max_epochs",
    "callbacks",
    "metric_for_best_model",
    "greater_is_better",
    "use_chat_template",
    "nccl_comm_warmup",
    "align_grad_reduce",
    "align_param_gather",
    "vit_gradient_checkpointing",
    "vit_lr",
    "aligner_lr",
    "beta",
    "loss_type",
    "rpo_alpha",
    "label_smoothing",
    "reward_funcs",
    "reward_weights",
    "num_generations",
    "temperature",
    "top_k",
    "top_p",
    "max_completion_length",
    "generation_batch_size",
    "steps_per_generation",
    "importance_sampling_level",
    "epsilon",
    "epsilon_high",
    "dynamic_sample",
    "max_resample_times",
    "overlong_filter",
    "advantage_estimator",
    "log_completions",
    "vllm_gpu_memory_utilization",
    "vllm_tensor_parallel_size",
    "vllm_max_model_len",
    "vllm_server_host",
    "vllm_server_port",
    "ref_model",
    "mcore_ref_model",
    "ref_adapters",
    "num_iterations",
    "soft_cache_length",
    "soft_max_length",
    "scale_rewards",
    "ddp_timeout",
    "overlap_p2p_comm",
    "batch_p2p_comm",
    "model_revision",
    "save_missing_weights",
    "language_model_only",
    NULL,
};

/** Where they differ from Megatron-LM's. */
static const me_leaf_default defaults[] = {
    {"micro_batch_size", "1", .only = NULL},
    {"global_batch_size", "16", .only = NULL},
    {"recompute_granularity", "selective", .only = NULL},
    {"use_distributed_optimizer", "true", .only = NULL},
    {"bf16", "true", .unless = "fp16|torch_dtype"},
    {"accumulate_allreduce_grads_in_fp32", "true",
     .unless = "main_grads_dtype"},
    {"fp8_amax_history_len", "1024", .only = "fp8_format"},
    {"apply_rope_fusion", "false", .only = NULL},
    {"cross_entropy_loss_fusion", "true", .only = NULL},
    {"attention_backend", "flash", .only = NULL},
    {"attention_softmax_in_fp32", "true", .only = NULL},
    {"calculate_per_token_loss", "true", .unless = "rlhf_type"},
    {"expert_tensor_parallel_size", "1", .only = "num_experts"},
    {"moe_aux_loss_coeff", "0", .only = "num_experts"},
    {"moe_grouped_gemm", "true", .only = "num_experts"},
    {"moe_router_dtype", "fp32", .only = "num_experts"},
    {"moe_token_dispatcher_type", "alltoall", .only = "num_experts"},
    {"create_attention_mask_in_dataloader", "false", .only = NULL},
    {.key = NULL},
};
/* clang-format on */

static const me_trainer trainer = {
    .fields = fields,
    .quiet = quiet,
    .defaults = defaults,
};

static const char where[] = "ms-swift's arguments";

/** Letters that stand for a switch (HfArgumentParser's string_to_bool()). */
static const char *spelled(const char *value)
{
    static const char *const on[] = {"t", "T", "y", "Y"};
    static const char *const off[] = {"f", "F", "n", "N"};
    const size_t length = strlen(value);
    return me_is_one_of(value, length, on, sizeof on / sizeof *on) ? "true"
           : me_is_one_of(value, length, off, sizeof off / sizeof *off)
               ? "false"
               : value;
}

/** A word alone means true, as Hugging Face's parser has it. */
static me_status add_words(me_leaf_list *list, int argc,
                           const char *const *argv, me_diag *diag)
{
    static const char *const yes[] = {"true"};
    me_status status = ME_OK;
    for (int at = 0; status == ME_OK && at < argc;) {
        char key[KEY_BYTES];
        const char *word = argv[at];
        const char *joined = strchr(word, '=');
        const size_t length = strcspn(word, "=");
        if (strncmp(word, "--", 2) != 0 || length >= sizeof key) {
            return me_fail(diag, ME_ERR_SYNTAX,
                           "'%.80s' belongs to no argument of ms-swift's",
                           word);
        }
        (void)snprintf(key, sizeof key, "%.*s", (int)length - 2, word + 2);
        for (char *c = strchr(key, '-'); c != NULL; c = strchr(c, '-')) {
            *c = '_';
        }
        at++;
        const char *value = joined == NULL ? NULL : spelled(joined + 1);
        int n = 0;
        while (joined == NULL && at + n < argc &&
               strncmp(argv[at + n], "--", 2) != 0) {
            n++;
        }
        if (n == 1) {
            value = spelled(argv[at]);
        }
        status =
            value != NULL ? me_leaf_list_add(list, key, &value, 1, where, diag)
            : n == 0      ? me_leaf_list_add(list, key, yes, 1, where, diag)
                     : me_leaf_list_add(list, key, argv + at, n, where, diag);
        at += n;
    }
    return status;
}

/** `megatron sft job.yaml`: its keys are arguments. */
static me_status add_file(me_leaf_list *list, const char *path, me_diag *diag)
{
    me_str bytes = {0};
    me_yaml yaml = {0};
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, diag, &bytes);
    if (status == ME_OK) {
        status = me_yaml_parse(path, me_str_text(&bytes), bytes.length,
                               list->arena, diag, &yaml);
    }
    if (status == ME_OK) {
        list->yaml = yaml;
    }
    me_str_fini(&bytes);
    return status;
}

static bool is_true(const me_leaf_list *list, const char *key)
{
    const me_yaml_leaf *leaf = me_leaf_list_find(list, key);
    bool value = false;
    return leaf != NULL && me_yaml_bool(leaf, &value) && value;
}

static bool has_value(const me_leaf_list *list, const char *key,
                      const char *value)
{
    const me_yaml_leaf *leaf = me_leaf_list_find(list, key);
    return leaf != NULL && leaf->n_values == 1 &&
           strcmp(leaf->values[0], value) == 0;
}

/** What ms-swift sets whatever its arguments say: megatron_args.py, _check_muon();
 *  model_config.py, get_mcore_model_config(); megatron_lm_utils.py, of
 *  checkpoints. */
static me_status add_rules(me_leaf_list *list, const me_config *config,
                           me_diag *diag)
{
    const me_yaml_leaf *optimizer = me_leaf_list_find(list, "optimizer");

    const me_leaf_setting rows[] = {
        {optimizer != NULL && optimizer->n_values == 1 &&
             strstr(optimizer->values[0], "muon") != NULL,
         "use_distributed_optimizer", "false", .gives_way = false},
        {config->moe.num_experts == 0 &&
             me_leaf_list_find(list, "num_experts") == NULL,
         "expert_model_parallel_size", "1", .gives_way = false},
        {is_true(list, "use_megatron_fsdp"), "ckpt_format", "fsdp_dtensor",
         .gives_way = false},
    };
    return me_leaf_list_settle(list, rows, sizeof rows / sizeof *rows, where,
                               diag);
}

/** A row's tokens are a multiple of this: utils.py, get_padding_to(), and of
 *  context parallelism both halves of a card's: template/base.py. */
static uint64_t unit_of(const me_leaf_list *list)
{
    const uint64_t tensor =
        me_leaf_list_number(list, "tensor_model_parallel_size", 1);
    const uint64_t context =
        me_leaf_list_number(list, "context_parallel_size", 1);
    const uint64_t cut = (is_true(list, "sequence_parallel") ? tensor : 1) *
                         (context > 1 ? 2 * context : 1);
    const uint64_t blocks =
        has_value(list, "fp8_recipe", "blockwise") ? 128
        : has_value(list, "fp8_recipe", "mxfp8")   ? 32
        : me_leaf_list_find(list, "fp8_format") != NULL ||
                me_leaf_list_find(list, "fp4_format") != NULL
            ? 16
            : 1;
    const uint64_t fused =
        has_value(list, "attention_backend", "fused") ? 64 : 1;
    const uint64_t unit = cut * (blocks > fused ? blocks : fused);
    return unit == 0 ? 1 : unit;
}

/** Samples as long as they may be: without max_length as long as the model's. A
 *  file of configs/models does not say how long that is. */
static me_status add_length(me_leaf_list *list, me_config *config,
                            bool has_limit, me_diag *diag)
{
    const uint64_t limit = config->model.max_position_embeddings;
    const uint64_t longest =
        me_leaf_list_number(list, "max_length", has_limit ? limit : 0);
    const uint64_t unit = unit_of(list);
    const uint64_t most = me_leaf_list_number(list, "packing_length", longest);
    const uint64_t row = (most + unit - 1) / unit * unit;
    if (row == 0) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "--max_length is not given, and the model's config.json, "
            "which would say how long samples may be, is not here");
    }
    me_status status =
        me_leaf_list_add_number(list, "seq_length", row, where, diag);
    if (status == ME_OK) {
        status =
            me_leaf_list_add_number(list, "max_position_embeddings",
                                    row > limit ? row : limit, where, diag);
    }
    return status != ME_OK
               ? status
               : me_config_assume(
                     config, diag,
                     "a sample, or a row of packed ones, has %" PRIu64
                     " tokens%s; shorter ones take less, and those of a "
                     "micro-batch in one row (padding_free) what they take side "
                     "by side",
                     row,
                     me_leaf_list_find(list, "max_length") == NULL
                         ? ", the model's most, since --max_length is not given"
                         : "");
}

/** NPROC_PER_NODE and NNODES are what ms-swift hands to torchrun. */
static me_status set_ranks(me_config *config, me_diag *diag)
{
    const char *per_node = me_config_variable(config, "NPROC_PER_NODE");
    const char *nodes = me_config_variable(config, "NNODES");
    uint64_t n_nodes = 1;
    uint64_t n_ranks = 1;
    if (per_node == NULL && nodes == NULL) {
        return ME_OK;
    }
    if ((nodes != NULL && nodes[0] == '\0') ||
        (per_node != NULL && per_node[0] == '\0')) {
        return me_config_leave_world_open(
            config, diag,
            "%s is empty: ms-swift hands it to torchrun, which stops: give it "
            "a number, or memest's --world-size",
            nodes != NULL && nodes[0] == '\0' ? "NNODES" : "NPROC_PER_NODE");
    }
    if ((nodes != NULL && me_parse_u64(nodes, &n_nodes) != ME_OK) ||
        (per_node != NULL && me_parse_u64(per_node, &n_ranks) != ME_OK) ||
        n_nodes == 0 || n_nodes > 1 << 20 || n_ranks == 0 ||
        n_ranks > 1 << 20) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "NNODES=%.40s NPROC_PER_NODE=%.40s: must be numbers of "
                       "nodes and of processes of a node",
                       nodes == NULL ? "1" : nodes,
                       per_node == NULL ? "1" : per_node);
    }
    return me_trainer_set_ranks(config, n_nodes, n_ranks, diag);
}

/** What its own modules and losses do beside Megatron-LM's. */
static me_status note(me_config *config, me_diag *diag)
{
    const me_effect effect = ME_EITHER(SOME);
    return me_config_add_not_modelled(
        config, "ms-swift's trainer",
        "its loss and the rows of packed samples; the step is estimated as "
        "pretrain_gpt.py's",
        effect, diag);
}

static me_status read_list(me_leaf_list *list, me_config *config, me_diag *diag)
{
    const me_yaml_leaf *model = me_leaf_list_find(list, "model");
    bool has_limit = me_config_is_set(config, "model.max_position_embeddings");
    static const char *const numbers[] = {"max_length", "packing_length",
                                          "tensor_model_parallel_size",
                                          "context_parallel_size", NULL};
    me_status status = me_leaf_list_check_numbers(list, numbers, diag);
    if (status != ME_OK) {
        return status;
    }
    if (model != NULL && model->n_values == 1) {
        status = me_trainer_read_model(config, "--model", model->values[0],
                                       diag, &has_limit);
    } else if (!me_config_is_set(config, "model.num_layers")) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "ms-swift's --model is not given: what its checkpoint "
                         "says of the model is not read");
    }
    if (status == ME_OK) {
        status = me_leaf_list_add_model(list, config, where, diag);
    }
    if (status == ME_OK) {
        status = add_rules(list, config, diag);
    }
    if (status == ME_OK) {
        status = add_length(list, config, has_limit, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_read_leaves(config, where, &list->yaml, &trainer,
                                         list->arena, diag);
    }
    if (status == ME_OK) {
        status = set_ranks(config, diag);
    }
    return status == ME_OK ? note(config, diag) : status;
}

me_status me_swift_read(me_config *config, int argc, const char *const *argv,
                        me_diag *diag)
{
    me_leaf_list list;
    me_status status = me_leaf_list_init(&list, diag);
    const bool has_command = argc > 0 && argv[0][0] != '-';
    const bool is_rlhf = has_command && strcmp(argv[0], "rlhf") == 0;
    int at = has_command;
    if (status == ME_OK && argc > at && argv[at][0] != '-') {
        status = add_file(&list, argv[at++], diag);
    }
    if (status == ME_OK) {
        status = add_words(&list, argc - at, argv + at, diag);
    }
    if (status == ME_OK) {
        const me_leaf_setting rlhf = {is_rlhf, "rlhf_type", "dpo",
                                      .gives_way = true};
        status = me_leaf_list_settle(&list, &rlhf, 1, where, diag);
    }
    if (status == ME_OK) {
        status = read_list(&list, config, diag);
    }
    me_arena_destroy(list.arena);
    return status;
}
