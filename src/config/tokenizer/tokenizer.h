/**
 * @file
 * The vocabulary of a job whose launch command names a tokenizer: counted in
 * the tokenizer's files, as Megatron-LM core_v0.19.0 counts it
 * (core/tokenizers/utils/build_tokenizer.py, text/libraries/).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TOKENIZER_TOKENIZER_H
#define MEMEST_CONFIG_TOKENIZER_TOKENIZER_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a launch command says of its tokenizer; all texts are borrowed. */
typedef struct me_tokenizer {
    const char *type;       /**< `--tokenizer-type` */
    bool is_patched;        /**< `type` is Pai-Megatron-Patch's
                                 `--patch-tokenizer-type`, all of which are known
                                 in some way */
    uint64_t extra;         /**< `--extra-vocab-size`, of such a type alone */
    const char *model;      /**< `--tokenizer-model`: a file, a folder or a name
                                 on Hugging Face's Hub; NULL: not given */
    const char *vocab_file; /**< `--vocab-file`; NULL: not given */
    const char *const *specials; /**< `--tokenizer-special-tokens`; or NULL */
    size_t n_specials;
    /** A variable of the job's environment, borrowed; NULL: not set. */
    const char *(*variable)(const void *self, const char *name);
    const void *self;
} me_tokenizer;

/** Where a vocabulary comes from. */
typedef enum me_vocabulary_source {
    ME_VOCABULARY_COUNTED, /**< in files that are here */
    ME_VOCABULARY_BARE,    /**< … but for special tokens, which code adds */
    ME_VOCABULARY_KNOWN,   /**< the files are not here, the name is known */
    ME_VOCABULARY_ROWS,    /**< … and of it the model's `vocab_size` alone */
    ME_VOCABULARY_TAKEN    /**< neither: a usual size of the type */
} me_vocabulary_source;

/** A tokenizer's vocabulary, before it is padded. */
typedef struct me_vocabulary {
    uint64_t tokens;
    me_vocabulary_source source;
    bool is_whole; /**< the embedding has these rows: nothing is padded */
    me_str from;   /**< file or name that was read; to be given back */
} me_vocabulary;

/**
 * The tokens of a tokenizer. Reads files, reaches no network. Local.
 *
 * @param vocabulary_out  all zero before; its text is the caller's, also on
 *                        failure
 * @return ME_OK; ME_ERR_CONFIG for a model that the type needs and the command
 *         does not name; ME_ERR_SYNTAX for a file that is none of a tokenizer;
 *         ME_ERR_IO; ME_ERR_NOMEM
 */
me_status me_tokenizer_count(const me_tokenizer *tokenizer, me_diag *diag,
                             me_vocabulary *vocabulary_out) ME_MUST_CHECK;

/**
 * The tokens of a tokenizer that is well known by its model's name, which is the
 * last part of a path or of a name on the Hub. Local.
 *
 * @param is_rows_out  they are the rows of the model's embedding, `vocab_size` of
 *                     its config.json, of which a tokenizer may leave some unused
 * @return 0 if nobody knows it
 */
uint64_t me_tokenizer_known(const char *name, bool *is_rows_out);

/**
 * The same without the tokens that were added to a vocabulary: Hugging Face's
 * `tokenizer.vocab_size`. Local.
 */
uint64_t me_tokenizer_known_base(const char *name, bool *is_rows_out);

#endif /* MEMEST_CONFIG_TOKENIZER_TOKENIZER_H */
