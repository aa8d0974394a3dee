/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/foreign_yaml.h"

#include <stdbool.h>
#include <string.h>

static const char trainer[] = "Hugging Face's Trainer";
static const char deepspeed[] = "DeepSpeed's engine";

/** A trainer by keys that no other has. */
static const struct {
    const char *key;  /**< the beginning of a path, or, behind a dot, its end */
    const char *also; /**< another key; NULL: one is enough */
    const char *name;
    const char *lacks; /**< what is not modelled */
} rows[] = {
    {"base_model", "sequence_len", "axolotl", trainer},
    {"base_model", "datasets", "axolotl", trainer},
    {"finetuning_type", NULL, "LLaMA-Factory", trainer},
    {"model_name_or_path", NULL, "TRL", trainer},
    {"compute_environment", NULL, "accelerate",
     "its trainer (this is accelerate's configuration, which goes behind "
     "--config_file)"},
    {"distributed_type", NULL, "accelerate",
     "its trainer (this is accelerate's configuration, which goes behind "
     "--config_file)"},
    {"pipe-parallel-size", NULL, "GPT-NeoX", deepspeed},
    {"pipe_parallel_size", NULL, "GPT-NeoX", deepspeed},
    {"zero_optimization", NULL, "DeepSpeed", deepspeed},
    {"deepspeed_config.zero_stage", NULL, "DeepSpeed", deepspeed},
    {"model.d_model", NULL, "OLMo or llm-foundry", "their layers under FSDP"},
    {"device_train_microbatch_size", NULL, "OLMo or llm-foundry",
     "their layers under FSDP"},
    {"model.model_config", "parallelism", "nanotron",
     "nanotron's layers and its ZeRO"},
    {"._component_", NULL, "torchtune", "torchtune's recipes under FSDP2"},
    {"actor_train", NULL, "ROLL", "its trainer of Megatron-LM's core"},
    {"policy.megatron_cfg", NULL, "NeMo-RL", "its trainer of Megatron-Bridge"},
    {"policy.dtensor_cfg", NULL, "NeMo-RL", "its trainer of DTensors"},
    {"checkpoint_dir", "devices", "litgpt", "litgpt's layers under FSDP"},
    {"distributed.fsdp_type", NULL, "lingua", "lingua's layers under FSDP"},
    {"transformer_architecture", NULL, "Aleph Alpha's scaling",
     "its layers and its ZeRO"},
    {"topology.model_parallel_size", NULL, "Aleph Alpha's scaling",
     "its layers and its ZeRO"},
    {"hf_model_name_or_path", "shard_degree", "SageMaker HyperPod",
     "its recipes under FSDP"},
    {"runtime.parallel.galvatron_config_path", NULL, "Hetu-Galvatron",
     "its layers and its plan of each"},
    {"use_smp_model", NULL, "SageMaker HyperPod",
     "SageMaker's model parallel library"},
    {"model.use_smp_model", NULL, "SageMaker HyperPod",
     "SageMaker's model parallel library"},
};

static bool is_of(const char *path, const char *key)
{
    const size_t n = strlen(key);
    const size_t length = strlen(path);
    if (key[0] == '.') {
        return length >= n && strcmp(path + length - n, key) == 0;
    }
    return strncmp(path, key, n) == 0 && (path[n] == '\0' || path[n] == '.');
}

static const me_yaml_leaf *find(const me_yaml *yaml, const char *key)
{
    for (size_t i = 0; key != NULL && i < yaml->count; i++) {
        if (is_of(yaml->leaves[i].path, key)) {
            return &yaml->leaves[i];
        }
    }
    return NULL;
}

me_status me_foreign_yaml_check(const char *where, const me_yaml *yaml,
                                me_diag *diag)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const me_yaml_leaf *leaf = find(yaml, rows[i].key);
        if (leaf != NULL &&
            (rows[i].also == NULL || find(yaml, rows[i].also) != NULL)) {
            return me_fail_at(diag, ME_ERR_UNSUPPORTED, where, leaf->line,
                              "%.60s is a key of %s: memest does not model "
                              "%s; it reads files of Megatron-LM, FlagScale, "
                              "Primus, NeMo and Megatron-Bridge",
                              leaf->path, rows[i].name, rows[i].lacks);
        }
    }
    return ME_OK;
}
