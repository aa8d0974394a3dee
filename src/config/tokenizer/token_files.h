/**
 * @file
 * The files of tokenizers, and how many tokens are in them. Only numbers and
 * names of tokens are read; nothing is tokenized.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TOKENIZER_TOKEN_FILES_H
#define MEMEST_CONFIG_TOKENIZER_TOKEN_FILES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ME_TOKEN_ID_MAX = 1 << 26,  /**< of a token; more is no vocabulary */
    ME_TOKEN_SPECIALS_MAX = 512 /**< tokens that a launch command adds */
};

/** Tokens by their numbers, and those that a command wants to add. All zero is
 *  an empty one. */
typedef struct me_token_set {
    uint64_t *bits; /**< owned: bit i of word i / 64 is token i's */
    size_t n_words;
    uint64_t n_tokens;           /**< different ones */
    const char *const *specials; /**< borrowed; NULL: none */
    size_t n_specials;
    bool has_special[ME_TOKEN_SPECIALS_MAX]; /**< that the files have already */
    bool is_base; /**< of tokenizer.json without its `added_tokens` */
    bool is_bare; /**< of tiktoken, whose special tokens nobody knows */
} me_token_set;

/** Give back what the set has of its own. */
void me_token_set_fini(me_token_set *set);

/** The tokens of the files and of the command together. Local. */
uint64_t me_token_set_count(const me_token_set *set);

/** There is a token of this number, which another file may have as well. Local.
 *
 *  @return ME_OK; ME_ERR_SYNTAX naming @p path where no token has such a number;
 *          ME_ERR_NOMEM */
me_status me_token_set_add(me_token_set *set, const char *path, uint64_t id,
                           me_diag *diag) ME_MUST_CHECK;

/** A token has this text, of @p length bytes: is it one that the command adds?
 *  Local. */
void me_token_set_see(me_token_set *set, const char *text, size_t length);

/** Adds the tokens of one file to a set.
 *
 *  @return ME_OK; ME_ERR_SYNTAX naming file and place; ME_ERR_IO; ME_ERR_NOMEM */
typedef me_status me_token_reader(me_token_set *set, const char *path,
                                  me_diag *diag);

/** `tokenizer.json` of Hugging Face's tokenizers library: `model.vocab`, an
 *  object or a list, and `added_tokens`. */
me_token_reader me_tokens_of_tokenizer_json;
/** An object of tokens and their numbers: `vocab.json`, `added_tokens.json`. */
me_token_reader me_tokens_of_vocab_json;
/** `added_tokens_decoder` of `tokenizer_config.json`: numbers are its keys. */
me_token_reader me_tokens_of_tokenizer_config;
/** A token a line: BERT's `vocab.txt`. */
me_token_reader me_tokens_of_lines;
/** tiktoken's: a token's bytes in base64 and its rank on each line. Special
 *  tokens stand in the code of who reads it, behind them: of Llama 3 and 4, Qwen
 *  and Kimi, whose files are known by the number of their ranks, they are
 *  counted. */
me_token_reader me_tokens_of_ranks;
/** Mistral's `tekken.json`: `config.default_vocab_size`, its special tokens among
 *  them. */
me_token_reader me_tokens_of_tekken;
/** A SentencePiece model: a protocol buffer (sentencepiece_model.proto) whose
 *  field 1, repeated, is a piece; of a piece field 1 is its text. */
me_token_reader me_tokens_of_sentencepiece;
/** `tokenizer.model`, which is SentencePiece's or, as of Llama 3, tiktoken's. */
me_token_reader me_tokens_of_model;

#endif /* MEMEST_CONFIG_TOKENIZER_TOKEN_FILES_H */
