/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/tokenizer/tokenizer.h"

#include <string.h>
#include <strings.h>

/** A family of models that share a tokenizer: how their names begin, and
 *  `len(tokenizer)`, which may be less than `vocab_size` of config.json, since
 *  that is padded. The longer beginning stands first. */
typedef struct family {
    const char *begins;
    uint64_t tokens;
    bool is_rows; /**< they are `vocab_size` of config.json */
} family;

/** Who says so, where it is not the model's own config.json: litgpt's config.py
 *  (vocab_size), Megatron-Bridge's recipes and tests, the model's card. */
static const family families[] = {
    {"gpt2", 50257, false},
    {"gpt-neox-20b", 50277, false},
    {"gpt-oss-", 201088, true},
    {"pythia-", 50277, false},
    {"opt-", 50265, false},
    {"bloom", 250680, false},
    {"falcon-7b", 65024, false},
    {"falcon-40b", 65024, false},
    {"falcon-180b", 65024, false},
    {"falcon3-", 131072, true},
    {"falcon-h1-1.5b", 65537, true},
    {"falcon-h1-7b", 130048, true},
    {"llama-2-", 32000, false},
    {"llama2-", 32000, false},
    {"llama-7b", 32000, false},
    {"llama-13b", 32000, false},
    {"llama-30b", 32000, false},
    {"llama-65b", 32000, false},
    {"codellama-7b-python", 32000, true},  // litgpt
    {"codellama-13b-python", 32000, true}, // litgpt
    {"codellama-34b", 32000, true},        // litgpt: it infills nothing
    {"codellama-", 32016, false},          // litgpt
    {"meta-llama-3", 128256, false},
    {"llama-3", 128256, false},
    {"llama3", 128256, false},
    {"llama-4-", 202048, true},
    {"mistral-7b-v0.1", 32000, false},
    {"mistral-7b-instruct-v0.1", 32000, false},
    {"mistral-7b-instruct-v0.2", 32000, false},
    {"mistral-7b-v0.3", 32768, false},
    {"mistral-7b-instruct-v0.3", 32768, false},
    {"mistral-large-instruct-2407", 32768, false}, // litgpt
    {"mistral-large-instruct-2411", 32768, false}, // litgpt
    {"mistral-nemo-", 131072, false},
    {"mistral-small-24b-", 131072, false}, // its card: Tekken, 131k
    {"mistral-small-3", 131072, false},    // its card, of 3.1 and 3.2
    {"ministral-8b-", 131072, true},       // its card
    {"ministral-3-", 131072, true},        // Megatron-Bridge
    {"magistral-small-", 131072, true},    // made of Mistral Small 3.1
    {"devstral-small-", 131072, true},     // its card; 2 as well
    {"mixtral-8x7b", 32000, false},
    {"mixtral-8x22b", 32768, false},
    {"qwen1.5-", 151646, false}, // its makers, QwenLM/Qwen2 issue 147
    {"qwen2.5-", 151665, false}, // vocabulary of 151643, 22 added
    {"qwen2-", 151646, false},   // vocabulary of 151643, 3 added
    {"qwen3-", 151669, false},   // Megatron-Bridge; 26 added
    {"deepseek-v2", 102400, true},
    {"deepseek-v3", 128815, false},
    {"deepseek-r1", 128815, false},
    {"gemma-2-", 256000, false},
    {"gemma-2b", 256000, false},
    {"gemma-7b", 256000, false},
    {"gemma-3-", 262145, false},
    {"glm-4-", 151552, true},
    {"glm-4.5", 151552, true},
    {"glm-4.6", 151552, true},
    {"granite-3.3-", 49159, true},
    {"granite-3.", 49155, true},
    {"granite-4.0-", 100352, true}, // of Micro and H-Tiny
    {"ernie-4.5-", 103424, true},
    {"exaone-4.0-", 102400, true},
    {"hunyuan-a13b", 128167, true},
    {"hunyuan-7b", 128167, true},
    {"internlm2-", 92544, true},
    {"internlm2_5-", 92544, true},
    {"internlm3-", 128512, true},
    {"kimi-k2", 163840, false},           // 163584 ranks, 256 reserved
    {"moonlight-16b-a3b", 163842, false}, // Megatron-Bridge, when finetuned
    {"minicpm-2b", 122753, true},
    {"minicpm3-", 73448, true},
    {"minicpm4", 73448, true},
    {"minimax-m2", 200064, true},
    {"nemotron-4-", 256000, true},
    {"nvidia-nemotron-nano-", 131072, true}, // of Nemotron-H
    {"nvidia-nemotron-3-", 131072, true},    // Megatron-Bridge
    {"nemotron-h-", 131072, true},           // Megatron-Bridge
    {"olmo-2-", 100278, false},              // litgpt; 100352 rows
    {"olmo-3-", 100278, false},              // the same, dolma2-tokenizer
    {"phi-3-", 32064, true},
    {"phi-3.5-mini", 32064, true},
    {"phi-4-m", 200064, true},
    {"phi-4", 100352, true},
    {"ling-mini-2.0", 157184, true},
    {"ring-mini-2.0", 157184, true},
    {"ling-flash-2.0", 157184, true},
    {"seed-oss-", 155136, true},
    {"smollm3-", 128256, true},
    {"smollm-", 49152, false},
    {"smollm2-", 49152, false}, // litgpt
    {"starcoder", 49152, false},
    {"yi-6b", 64000, false},
    {"yi-9b", 64000, false},
    {"yi-34b", 64000, false},
    {"yi-1.5-", 64000, true},
    {"tinyllama", 32000, false},
};

/** Vocabularies that have tokens added to them. */
static const family bases[] = {
    {"qwen1.5-", 151643, false},    {"qwen2.5-", 151643, false},
    {"qwen2-", 151643, false},      {"qwen3-", 151643, false},
    {"qwq-", 151643, false},        {"meta-llama-3", 128000, false},
    {"llama-3", 128000, false},     {"llama3", 128000, false},
    {"deepseek-v3", 128000, false}, {"deepseek-r1", 128000, false},
};

static uint64_t find(const family *list, size_t count, const char *name,
                     bool *is_rows_out)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash == NULL ? name : slash + 1;
    for (size_t i = 0; i < count; i++) {
        const char *begins = list[i].begins;
        if (strncasecmp(last, begins, strlen(begins)) == 0) {
            *is_rows_out = list[i].is_rows;
            return list[i].tokens;
        }
    }
    return 0;
}

uint64_t me_tokenizer_known(const char *name, bool *is_rows_out)
{
    return find(families, sizeof families / sizeof families[0], name,
                is_rows_out);
}

uint64_t me_tokenizer_known_base(const char *name, bool *is_rows_out)
{
    const uint64_t tokens =
        find(bases, sizeof bases / sizeof bases[0], name, is_rows_out);
    return tokens != 0 ? tokens : me_tokenizer_known(name, is_rows_out);
}
