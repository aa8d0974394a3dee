/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/tokenizer/tokenizer.h"

#include "base/input.h"
#include "base/parse.h"
#include "config/flags.h"
#include "config/hub_cache.h"
#include "config/tokenizer/token_files.h"

#include <stdlib.h>
#include <string.h>

enum {
    GPT2_TOKENS = 50257,
    LLAMA2_TOKENS = 32000,
    BERT_CASED_TOKENS = 28996,
    BERT_UNCASED_TOKENS = 30522,
    TIKTOKEN_TOKENS = 1 << 17, /* tiktoken_tokenizer.py: the default */
    USUAL_TOKENS = 1 << 17,    /* of models since 2024 */
    BERT_EXTRA_TOKENS = 100 /* build_tokenizer.py: <extra_id_0> … of cased */
};

/** A file by its name, and who reads it. */
typedef struct token_file {
    const char *name;
    me_token_reader *read;
} token_file;

/** What holds a folder's tokens: the first that is there. */
static const token_file main_files[] = {
    {"tokenizer.json", me_tokens_of_tokenizer_json},
    {"tekken.json", me_tokens_of_tekken},
    {"vocab.json", me_tokens_of_vocab_json},
    {"tokenizer.model", me_tokens_of_model},
    {"tiktoken.model", me_tokens_of_ranks},
    {"qwen.tiktoken", me_tokens_of_ranks},
    {"hy.tiktoken", me_tokens_of_ranks},
    {"spiece.model", me_tokens_of_sentencepiece},
    {"sentencepiece.bpe.model", me_tokens_of_sentencepiece},
    {"vocab.txt", me_tokens_of_lines},
};

/** What adds to them. */
static const token_file added_files[] = {
    {"added_tokens.json", me_tokens_of_vocab_json},
    {"tokenizer_config.json", me_tokens_of_tokenizer_config},
};

/** How Megatron-LM counts the tokens of a type. */
typedef struct tokenizer_type {
    const char *name;      /**< of forks' types several, `|` between them */
    me_token_reader *read; /**< NULL: by the name of the file */
    uint64_t usual;        /**< where nothing is known of its files */
    uint64_t extra;        /**< that the type adds */
    bool is_usual_known;   /**< practically everybody has the usual ones */
    bool has_vocab_file;   /**< `--vocab-file`, else `--tokenizer-model` */
    bool is_fixed;         /**< its size does not depend on the file */
    bool is_base;          /**< tokens that were added are not counted */
    bool is_padded;        /**< of a patched type, which others are not */
    uint64_t less;         /**< than `--extra-vocab-size` makes it */
} tokenizer_type;

static const tokenizer_type types[] = {
    {.name = "GPT2BPETokenizer",
     .read = me_tokens_of_vocab_json,
     .usual = GPT2_TOKENS,
     .is_usual_known = true,
     .has_vocab_file = true},
    {.name = "BertWordPieceLowerCase",
     .read = me_tokens_of_lines,
     .usual = BERT_UNCASED_TOKENS,
     .is_usual_known = true,
     .has_vocab_file = true},
    {.name = "BertWordPieceCase",
     .read = me_tokens_of_lines,
     .usual = BERT_CASED_TOKENS,
     .is_usual_known = true,
     .extra = BERT_EXTRA_TOKENS,
     .has_vocab_file = true},
    {.name = "Llama2Tokenizer",
     .read = me_tokens_of_sentencepiece,
     .usual = LLAMA2_TOKENS},
    {.name = "GPTSentencePieceTokenizer",
     .read = me_tokens_of_sentencepiece,
     .usual = USUAL_TOKENS},
    {.name = "SentencePieceTokenizer",
     .read = me_tokens_of_sentencepiece,
     .usual = USUAL_TOKENS},
    {.name = "HuggingFaceTokenizer", .usual = USUAL_TOKENS},
    {.name = "SFTTokenizer", .usual = USUAL_TOKENS},
    {.name = "MultimodalTokenizer", .usual = USUAL_TOKENS},
    {.name = "TikTokenizer",
     .usual = TIKTOKEN_TOKENS,
     .is_usual_known = true,
     .is_fixed = true},
    /* Forks: what they load is Hugging Face's AutoTokenizer, or SentencePiece. */
    {.name =
         "PretrainedFromHF|HFTokenizer|HFAutoTokenizer|TokenizerFromFile|"
         "Llama3Tokenizer|Llama4Tokenizer|MixtralTokenizer|BailingTokenizer|"
         "DeepSeekV2Tokenizer|DeepSeekV3Tokenizer|Qwen2Tokenizer|"
         "Qwen3Tokenizer|QwenTokenizerFS|Qwen2TokenizerFS|Llama3TokenizerFS|"
         "HFTokenizerFS|HFTokenizersTokenizerFS",
     .usual = USUAL_TOKENS},
    {.name = "AquilaTokenizerFS",
     .read = me_tokens_of_vocab_json,
     .usual = USUAL_TOKENS,
     .has_vocab_file = true},
    {.name = "OpenGPTX-SPTokenizer|YuanTokenizer",
     .read = me_tokens_of_sentencepiece,
     .usual = USUAL_TOKENS},
};

/** Pai-Megatron-Patch: megatron_patch/tokenizer/__init__.py. What stands behind
 *  `--load` has the files; `--extra-vocab-size` fills the model's rows up. */
static const tokenizer_type patched[] = {
    {.name = "Qwen2Tokenizer|Qwen3Tokenizer|Qwen2VLTokenizer",
     .usual = 151643, // of all from Qwen1.5 to Qwen3
     .is_usual_known = true,
     .is_base = true},
    {.name = "DeepSeekV2Tokenizer", .usual = 128815, .less = 2},
    {.name = "LLama3Tokenizer",
     .usual = 128000,
     .is_usual_known = true,
     .is_base = true},
    {.name =
         "QwenTokenizer|QwenVLTokenizer", // 208 special tokens of its code's
     .usual = 151851},
    {.name = "FalconTokenizer", .usual = 65024, .is_base = true},
    {.name = "BaichuanTokenizer|YiTokenizer", .usual = 64000, .is_base = true},
    {.name = "OPTTokenizer", .usual = 50265, .is_base = true},
    {.name = "BloomTokenizerFromHF",
     .usual = 250880,
     .is_usual_known = true,
     .is_fixed = true},
    {.name = "ChatGLMTokenizerFromHF",
     .usual = 130528,
     .is_usual_known = true,
     .is_fixed = true},
    {.name = "GLM10BZHTokenizerFromHF",
     .usual = 50048,
     .is_usual_known = true,
     .is_fixed = true},
    {.name = "IcetkGLM130BTokenizer",
     .usual = 150528,
     .is_usual_known = true,
     .is_fixed = true},
    {.name = "StarcoderTokenizerFromHF",
     .usual = 49152,
     .is_usual_known = true,
     .is_fixed = true},
    {.name = "VicunaTokenizerFromHF",
     .usual = LLAMA2_TOKENS,
     .is_usual_known = true,
     .is_fixed = true},
    {.name = "JiebaBPETokenizer|BloomTokenizerFromCustom",
     .usual = USUAL_TOKENS,
     .is_base = true,
     .is_padded = true},
    /* Llama's and Mistral's, and what another version may have. */
    {.name = NULL, .usual = LLAMA2_TOKENS, .is_base = true},
};

static const tokenizer_type *find_type(const me_tokenizer *t)
{
    const tokenizer_type *list = t->is_patched ? patched : types;
    const size_t count = t->is_patched ? sizeof patched / sizeof patched[0]
                                       : sizeof types / sizeof types[0];
    for (size_t i = 0; i < count; i++) {
        const char *name = list[i].name;
        if (name == NULL || me_words_have(name, strlen(name), t->type)) {
            return &list[i];
        }
    }
    return NULL;
}

/** Read @p file of @p folder if it is there. */
static me_status read_of(const char *folder, const token_file *file,
                         me_token_set *set, me_diag *diag, bool *found_out)
{
    me_str path = {0};
    me_str_printf(&path, "%s/%s", folder, file->name);
    me_status status = me_str_status(&path);
    *found_out = status == ME_OK && me_input_is_there(me_str_text(&path));
    if (*found_out) {
        status = file->read(set, me_str_text(&path), diag);
    } else if (status != ME_OK) {
        status = me_fail(diag, status, "%s: no memory for its name", folder);
    }
    me_str_fini(&path);
    return status;
}

static me_status read_folder(const char *folder, me_token_set *set,
                             me_diag *diag)
{
    bool is_found = false;
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && !is_found &&
                       i < sizeof main_files / sizeof main_files[0];
         i++) {
        status = read_of(folder, &main_files[i], set, diag, &is_found);
    }
    if (status == ME_OK && !is_found) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: holds no tokenizer: none of tokenizer.json, "
                       "tekken.json, vocab.json, tokenizer.model, "
                       "tiktoken.model, spiece.model and vocab.txt is in it",
                       folder);
    }
    for (size_t i = 0; status == ME_OK && !set->is_base &&
                       i < sizeof added_files / sizeof added_files[0];
         i++) {
        status = read_of(folder, &added_files[i], set, diag, &is_found);
    }
    return status;
}

/** One file, whose name says what it is where the type does not. */
static me_status read_file(const tokenizer_type *type, const char *path,
                           me_token_set *set, me_diag *diag)
{
    if (type->read != NULL) {
        return type->read(set, path, diag);
    }
    for (size_t i = 0; i < sizeof main_files / sizeof main_files[0]; i++) {
        if (me_ends_with(path, main_files[i].name)) {
            return main_files[i].read(set, path, diag);
        }
    }
    return me_ends_with(path, ".json")
               ? me_tokens_of_tokenizer_json(set, path, diag)
               : me_tokens_of_model(set, path, diag);
}

/** What is added to the tokens of the files. */
static uint64_t extra_of(const me_tokenizer *t, const tokenizer_type *type)
{
    const bool is_less = type->less > 0 && type->less <= t->extra;
    const uint64_t extra = t->extra - (is_less ? type->less : 0);
    return type->extra + (t->is_patched && !type->is_fixed ? extra : 0);
}

/** Files that are not here: what their name or the type tells. Rows of a model's
 *  embedding have what is added in them. */
static void take_usual(const me_tokenizer *t, const tokenizer_type *type,
                       const char *name, me_vocabulary *out)
{
    bool is_rows = false;
    const uint64_t known = name == NULL || type->is_fixed ? 0
                           : type->is_base
                               ? me_tokenizer_known_base(name, &is_rows)
                               : me_tokenizer_known(name, &is_rows);
    const bool has_extra = t->is_patched && is_rows && known > 0;
    out->source = known > 0 && is_rows                ? ME_VOCABULARY_ROWS
                  : known > 0 || type->is_usual_known ? ME_VOCABULARY_KNOWN
                                                      : ME_VOCABULARY_TAKEN;
    out->tokens =
        (known > 0 ? known : type->usual) + (has_extra ? 0 : extra_of(t, type));
}

static me_status count_files(const me_tokenizer *t, const tokenizer_type *type,
                             const char *path, me_diag *diag,
                             me_vocabulary *out)
{
    me_token_set set = {.is_base = type->is_base,
                        .specials = t->specials,
                        .n_specials = t->n_specials < ME_TOKEN_SPECIALS_MAX
                                          ? t->n_specials
                                          : ME_TOKEN_SPECIALS_MAX};
    const me_status status = me_input_is_folder(path)
                                 ? read_folder(path, &set, diag)
                                 : read_file(type, path, &set, diag);
    out->source = set.is_bare ? ME_VOCABULARY_BARE : ME_VOCABULARY_COUNTED;
    out->tokens = me_token_set_count(&set) + extra_of(t, type);
    me_token_set_fini(&set);
    return status;
}

/** Where the files of @p name are: there, in the cache, or, empty, not here. */
static void find_files(const me_tokenizer *t, const char *name, me_str *path)
{
    if (me_input_is_there(name)) {
        me_str_append(path, name);
        return;
    }
    const me_hub_environment environment = {t->variable, t->self};
    me_hub_cached(name, &environment, path);
}

me_status me_tokenizer_count(const me_tokenizer *t, me_diag *diag,
                             me_vocabulary *out)
{
    const tokenizer_type *type = find_type(t);
    if (type == NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--tokenizer-type %.60s: memest does not know how many "
                       "tokens it has",
                       t->type);
    }
    const char *name = type->has_vocab_file && t->vocab_file != NULL
                           ? t->vocab_file
                           : t->model;
    me_status status = ME_OK;
    me_str_append(&out->from,
                  name == NULL || type->is_usual_known ? t->type : name);
    out->is_whole = t->is_patched && !type->is_padded;
    me_str path = {0};
    if (name != NULL && !type->is_fixed) {
        find_files(t, name, &path);
    }
    if (type->is_fixed && !t->is_patched && name != NULL &&
        !me_ends_with(name, ".json")) {
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--tokenizer-type %s: Megatron-LM stops at %.100s, "
                         "since it reads a list of tokens in a file that ends "
                         "in .json",
                         t->type, name);
    } else if (path.length > 0) {
        status = count_files(t, type, me_str_text(&path), diag, out);
    } else {
        take_usual(t, type, name, out);
    }
    me_str_fini_piece(&path, &out->from);
    if (status == ME_OK && me_str_status(&out->from) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no memory for the tokenizer");
    }
    return status;
}
