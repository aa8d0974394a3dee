/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_trainers.h"

#include <stddef.h>
#include <string.h>

/** Commands of trainers that are not read, and what is in their place. */
static const struct {
    const char *name;
    const char *instead;
} trainers[] = {
    {"swift",
     "of ms-swift's commands `megatron sft`, `pt` and `rlhf` train with "
     "Megatron-LM's core"},
    {"megatron",
     "of ms-swift's commands `megatron sft`, `pt` and `rlhf` train"},
    {"llamafactory-cli", "LLaMA-Factory trains with Hugging Face's Trainer, "
                         "which is not modelled"},
    {"axolotl", "axolotl trains with Hugging Face's Trainer, which is not "
                "modelled"},
    {"tune", "torchtune's recipes under FSDP2 are not modelled"},
    {"litgpt", "litgpt's layers under FSDP are not modelled"},
    {"colossalai", "ColossalAI's plugins are not modelled"},
    {"composer", "Composer's trainer under FSDP is not modelled"},
    {"horovodrun", "Horovod's all-reduce is not modelled"},
    {"lightning", "Lightning's trainer is not modelled"},
    {"xtuner", "XTuner's trainer is not modelled"},
    {"primus-cli", "give --model the YAML that its --config names"},
    {"nemo", "of its commands `nemo llm pretrain` and `nemo llm finetune` are"},
};

const char *me_trainer_instead(const char *word)
{
    const char *slash = strrchr(word, '/');
    const char *name = slash == NULL ? word : slash + 1;
    for (size_t i = 0; i < sizeof trainers / sizeof trainers[0]; i++) {
        if (strcmp(trainers[i].name, name) == 0) {
            return trainers[i].instead;
        }
    }
    return NULL;
}
