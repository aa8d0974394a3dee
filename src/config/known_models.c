/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/known_models.h"

#include "base/data_files.h"
#include "base/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 96
};

/** What an end of a name says of how it was trained, or of the file: the shapes are
 *  those of the name without it. */
static const char *const ends[] = {
    ".yaml",     ".yml",  ".json", "-config", "-pretrain",
    "-instruct", "-chat", "-base", "-hf",     "-it",
    "-thinking", "-2507", "-0324", "-v0.1",   "-instruct-v0.2",
    "-mg",       "-bf16", "-fp8",  "-4k",     "-128k",
    "-16e",      "-128e", "-17b",  "-nvidia", "-sft",
};

/** Names whose shapes those of another file are. */
static const struct {
    const char *name;
    const char *model;
} others[] = {
    {"llama2-7b", "llama-2-7b"},
    {"llama2-13b", "llama-2-13b"},
    {"llama2-70b", "llama-2-70b"},
    {"llama3-8b", "llama-3-8b"},
    {"llama3.1-8b", "llama-3-8b"},
    {"llama31-8b", "llama-3-8b"},
    {"llama-3.1-8b", "llama-3-8b"},
    {"llama3-70b", "llama-3-70b"},
    {"llama3.1-70b", "llama-3-70b"},
    {"llama3.3-70b", "llama-3-70b"},
    {"llama31-70b", "llama-3-70b"},
    {"llama-3.1-70b", "llama-3-70b"},
    {"llama-3.3-70b", "llama-3-70b"},
    {"llama3.1-405b", "llama-3-405b"},
    {"llama31-405b", "llama-3-405b"},
    {"llama-3.1-405b", "llama-3-405b"},
    {"llama32-1b", "llama-3.2-1b"},
    {"llama32-3b", "llama-3.2-3b"},
    {"llama3.2-1b", "llama-3.2-1b"},
    {"llama3.2-3b", "llama-3.2-3b"},
    {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
    {"mixtral-8x22b-v0.1", "mixtral-8x22b"},
    {"mixtral-8x7b", "mixtral-8x7b"},
    {"mistral-nemo-12b", "mistral-nemo-12b"},
    {"qwen2-0.5b", "qwen2.5-0.5b"},
    {"qwen2-1.5b", "qwen2.5-1.5b"},
    {"qwen2-7b", "qwen2.5-7b"},
    {"qwen2-72b", "qwen2.5-72b"},
    {"qwen25-7b", "qwen2.5-7b"},
    {"qwen25-14b", "qwen2.5-14b"},
    {"qwen25-32b", "qwen2.5-32b"},
    {"qwen25-72b", "qwen2.5-72b"},
    {"deepseek-r1", "deepseek-v3"},
    {"deepseek-v3.1", "deepseek-v3"},
    {"gemma2-2b", "gemma-2-2b"},
    {"gemma2-9b", "gemma-2-9b"},
    {"gemma2-27b", "gemma-2-27b"},
    {"gpt3-175b", "gpt-3-175b"},
    {"nemotron4-340b", "nemotron-4-340b"},
    {"falcon3-1b", "falcon-3-1b"},
    {"falcon3-7b", "falcon-3-7b"},
    {"falcon3-10b", "falcon-3-10b"},
};

/** The last part of a path, small letters, `-` for `_`, without `Meta-`. */
static bool fold(const char *name, char out[NAME_BYTES])
{
    const char *slash = strrchr(name, '/');
    const char *last = slash == NULL ? name : slash + 1;
    const size_t length = strlen(last);
    if (length == 0 || length >= NAME_BYTES) {
        return false;
    }
    static const char from[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char to[] = "abcdefghijklmnopqrstuvwxyz-";
    (void)snprintf(out, NAME_BYTES, "%s", last);
    for (size_t i = 0; i < length; i++) {
        const char *at = strchr(from, last[i]);
        if (at != NULL) {
            out[i] = to[at - from];
        }
    }
    const char before[] = "meta-llama-";
    if (strncmp(out, before, sizeof before - 1) == 0) {
        memmove(out, out + 5, length - 5 + 1);
    }
    return true;
}

static bool cut_end(char name[NAME_BYTES])
{
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t rest = strlen(name) - strlen(ends[i]);
        if (me_ends_with(name, ends[i]) && rest > 0) {
            name[rest] = '\0';
            return true;
        }
    }
    return false;
}

static bool is_it(void *self, const char *name, const char *path)
{
    (void)path;
    return strcmp(name, self) == 0;
}

static bool find(char name[NAME_BYTES], me_str *model_out)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i].name, name) == 0) {
            me_str_append(model_out, others[i].model);
            return true;
        }
    }
    bool is_there = false;
    const me_status status =
        me_data_visit(&me_data_models, is_it, name, &is_there);
    if (status != ME_OK && model_out->status == ME_OK) {
        model_out->status = status;
    }
    me_str_append(model_out, is_there ? name : "");
    return is_there || status != ME_OK;
}

/** `-vl` of a folded name, as a part of its own; NULL: it has none. */
static char *find_images(char *folded)
{
    static const char part[] = "-vl";
    char *at = strstr(folded, part);
    return at != NULL &&
                   (at[sizeof part - 1] == '-' || at[sizeof part - 1] == '\0')
               ? at
               : NULL;
}

bool me_known_model_sees_images(const char *name)
{
    char folded[NAME_BYTES];
    return fold(name, folded) && find_images(folded) != NULL;
}

bool me_known_model(const char *name, me_str *model_out)
{
    char folded[NAME_BYTES];
    if (!fold(name, folded)) {
        return false;
    }
    char *images = find_images(folded);
    if (images != NULL) { // Qwen's bear the name of their language model
        memmove(images, images + 3, strlen(images + 3) + 1);
    }
    do {
        if (find(folded, model_out)) {
            return true;
        }
    } while (cut_end(folded));
    return false;
}

/** Families by a part of their names, in small letters. */
static const struct {
    const char *part;
    const char *lacks;
} families[] = {
    {"qwen3-next", "layers of gated delta nets"},
    {"qwen3.5", "layers of gated delta nets"},
    {"nemotron-h", "Mamba-2 layers"},
    {"nemotron-nano-9b-v2", "Mamba-2 layers"},
    {"nemotron-3-nano", "Mamba-2 layers"},
    {"falcon-h1", "Mamba-2 beside attention"},
    {"granite-4.0-h", "Mamba-2 layers"},
    {"jamba", "state-space layers"},
    {"zamba", "state-space layers"},
    {"mamba", "state-space layers"},
    {"kimi-linear", "layers of linear attention"},
    {"minimax-text-01", "layers of linear attention"},
    {"lfm2", "layers of convolutions"},
    {"gemma-3n", "embeddings of each layer, and keys that layers share"},
    {"-vl", "an encoder of images, and a language model that is not known"},
    {"internvl", "an encoder of images beside the language model"},
    {"llava", "an encoder of images beside the language model"},
    {"-vision", "an encoder of images beside the language model"},
    {"pixtral", "an encoder of images beside the language model"},
    {"minicpm-v", "an encoder of images beside the language model"},
    {"glm-4v", "an encoder of images beside the language model"},
    {"glm-4.1v", "an encoder of images beside the language model"},
    {"glm-4.5v", "an encoder of images beside the language model"},
    {"-omni", "encoders of images and sounds beside the language model"},
};

/** The name behind the last slash, in small letters, with `-` between words. */
static void write_small(const char *name, char small_out[NAME_BYTES])
{
    const char *slash = strrchr(name, '/');
    (void)snprintf(small_out, NAME_BYTES, "%s",
                   slash == NULL ? name : slash + 1);
    for (char *c = small_out; *c != '\0'; c++) {
        const int letter = tolower((unsigned char)*c);
        *c = (char)(letter == '_' ? '-' : letter);
    }
}

const char *me_known_model_lacks(const char *name)
{
    char small[NAME_BYTES];
    write_small(name, small);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strstr(small, families[i].part) != NULL) {
            return families[i].lacks;
        }
    }
    return NULL;
}
