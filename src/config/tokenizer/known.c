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
} family;

static const family families[] = {
    {"gpt2", 50257},
    {"gpt-neox-20b", 50277},
    {"pythia-", 50277},
    {"opt-", 50265},
    {"bloom", 250680},
    {"falcon-7b", 65024},
    {"falcon-40b", 65024},
    {"falcon-180b", 65024},
    {"llama-2-", 32000},
    {"llama2-", 32000},
    {"llama-7b", 32000},
    {"llama-13b", 32000},
    {"llama-30b", 32000},
    {"llama-65b", 32000},
    {"codellama-", 32016},
    {"meta-llama-3", 128256},
    {"llama-3", 128256},
    {"llama3", 128256},
    {"mistral-7b-v0.1", 32000},
    {"mistral-7b-instruct-v0.1", 32000},
    {"mistral-7b-instruct-v0.2", 32000},
    {"mistral-7b-v0.3", 32768},
    {"mistral-7b-instruct-v0.3", 32768},
    {"mixtral-8x7b", 32000},
    {"mixtral-8x22b", 32768},
    {"qwen1.5-", 151646},
    {"qwen2.5-", 151665},
    {"qwen2-", 151646},
    {"qwen3-", 151669},
    {"deepseek-v3", 128815},
    {"deepseek-r1", 128815},
    {"gemma-2-", 256000},
    {"gemma-2b", 256000},
    {"gemma-7b", 256000},
    {"starcoder", 49152},
    {"yi-6b", 64000},
    {"yi-9b", 64000},
    {"yi-34b", 64000},
    {"tinyllama", 32000},
};

uint64_t me_tokenizer_known(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash == NULL ? name : slash + 1;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const char *begins = families[i].begins;
        if (strncasecmp(last, begins, strlen(begins)) == 0) {
            return families[i].tokens;
        }
    }
    return 0;
}
