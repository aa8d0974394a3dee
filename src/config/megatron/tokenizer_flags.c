/* SPDX-License-Identifier: BSD-3-Clause */
/* The vocabulary, as Megatron-LM's tokenizers say it (core_v0.19.0,
 * core/tokenizers/utils/build_tokenizer.py), or a fork's. */
#include "base/parse.h"
#include "config/flags.h"
#include "config/hub_cache.h"
#include "config/megatron/megatron_arguments.h"
#include "config/megatron/megatron_rules.h"
#include "config/said_vocabulary.h"
#include "config/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** pretrain_gpt.py, args_defaults. */
static const char default_type[] = "GPT2BPETokenizer";

static const char *value_of(const me_flag_uses *uses, const char *flag)
{
    const me_flag_use *use = me_flag_use_find(uses, flag);
    return use == NULL || use->n_values == 0 ? NULL : use->values[0];
}

/** Where the tokenizer is: forks have flags of their own. */
static const char *model_of(const me_flag_uses *uses)
{
    static const char *const flags[] = {
        "--tokenizer-model", "--tokenizer-name-or-path",
        "--tokenizer-model-path", "--hf_autotokenizer_model",
        "--tokenizer-file"};
    const char *model = NULL;
    for (size_t i = 0; model == NULL && i < sizeof flags / sizeof *flags; i++) {
        model = value_of(uses, flags[i]);
    }
    return model;
}

static me_status keep(me_config *config, const char *type,
                      const me_vocabulary *vocabulary, me_diag *diag)
{
    me_vocabulary_said *said = &config->own->vocabulary;
    *said = (me_vocabulary_said){
        .tokens = vocabulary->tokens,
        .source = vocabulary->source,
        .type = me_arena_strdup(config->own->text, type),
        .from =
            me_arena_strdup(config->own->text, me_str_text(&vocabulary->from)),
    };
    if (said->type == NULL || said->from == NULL) {
        said->tokens = 0;
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the tokenizer");
    }
    return ME_OK;
}

static bool is_counted(me_vocabulary_source source)
{
    return source == ME_VOCABULARY_COUNTED || source == ME_VOCABULARY_BARE;
}

/** Is --vocab-size not what the tokenizer has? build_tokenizer() gives it to
 *  TikTokenizer and to those without files alone; where nobody knows the
 *  tokenizer, it is the better guess. */
static bool goes_before_flag(const char *type, me_vocabulary_source source)
{
    return is_counted(source) ||
           (source != ME_VOCABULARY_TAKEN && strcmp(type, "TikTokenizer") != 0);
}

/** The tokenizer's tokens are the job's, whatever the flag says. */
static me_status set_tokens(me_config *config, const char *type,
                            const me_vocabulary *vocabulary, me_diag *diag)
{
    char number[24];
    const uint64_t said = config->model.vocab_size;
    (void)snprintf(number, sizeof number, "%" PRIu64, vocabulary->tokens);
    const me_status status =
        me_config_set(config, "model.vocab_size", number, diag);
    config->own->vocabulary.is_decided = true;
    return status != ME_OK || said == 0 || said == vocabulary->tokens
               ? status
               : me_config_assume(config, diag,
                                  "--vocab-size %" PRIu64 " has no effect "
                                  "beside %s: Megatron-LM takes the "
                                  "tokenizer's own; model.vocab_size (--set) "
                                  "has one",
                                  said, type);
}

/** Counted tokens are the job's, known ones in most cases; of others a flag knows
 *  better. */
static me_status decide(me_config *config, const char *type,
                        const me_vocabulary *vocabulary, me_diag *diag)
{
    const bool has_flag = config->model.vocab_size != 0;
    const bool is_first = goes_before_flag(type, vocabulary->source);
    if (!has_flag || is_first) {
        const me_status status = keep(config, type, vocabulary, diag);
        return status == ME_OK && (is_counted(vocabulary->source) || has_flag)
                   ? set_tokens(config, type, vocabulary, diag)
                   : status;
    }
    return me_config_assume(config, diag,
                            "the vocabulary of %s has %" PRIu64 " tokens", type,
                            config->model.vocab_size);
}

/** Pai-Megatron-Patch's tokenizer, which a model has instead of Megatron-LM's, and
 *  those that HYGON's fork took over under Megatron-LM's flag. */
static me_status take_patched(me_config *config, const me_flag_uses *uses,
                              me_tokenizer *tokenizer, me_diag *diag)
{
    static const char both[] = "DeepSeekV2Tokenizer|Qwen2VLTokenizer";
    const char *type = value_of(uses, "--patch-tokenizer-type");
    const char *extra = value_of(uses, "--extra-vocab-size");
    const bool is_patch = type != NULL && strcmp(type, default_type) != 0;
    if (is_patch) {
        tokenizer->type = type;
        tokenizer->model = value_of(uses, "--load");
    }
    tokenizer->is_patched =
        is_patch || (extra != NULL &&
                     me_words_have(both, sizeof both - 1, tokenizer->type));
    if (extra == NULL || me_parse_u64(extra, &tokenizer->extra) != ME_OK ||
        tokenizer->extra == 0 || tokenizer->is_patched) {
        return ME_OK;
    }
    tokenizer->extra = 0;
    const me_effect effect = ME_EITHER(SOME);
    return me_config_add_not_modelled(config, "--extra-vocab-size",
                                      "a fork's vocabulary", effect, diag);
}

me_status me_vocabulary_settle(me_config *config, const me_flag_uses *uses,
                               me_diag *diag)
{
    const me_flag_use *specials =
        me_flag_use_find(uses, "--tokenizer-special-tokens");
    const char *given = value_of(uses, "--tokenizer-type");
    const me_hub_environment environment = me_hub_environment_of(config);
    me_tokenizer tokenizer = {
        .type = given == NULL ? default_type : given,
        .model = model_of(uses),
        .vocab_file = value_of(uses, "--vocab-file"),
        .specials = specials == NULL ? NULL : specials->values,
        .n_specials = specials == NULL ? 0 : (size_t)specials->n_values,
        .variable = environment.variable,
        .self = environment.self,
    };
    me_status status = take_patched(config, uses, &tokenizer, diag);
    if (status != ME_OK || strncmp(tokenizer.type, "Null", 4) == 0 ||
        config->model.padded_vocab_size != 0 ||
        (given == NULL && !tokenizer.is_patched &&
         config->model.vocab_size != 0)) {
        return status;
    }
    me_vocabulary vocabulary = {0};
    status = me_tokenizer_count(&tokenizer, diag, &vocabulary);
    if (status == ME_OK && vocabulary.is_whole) {
        status = me_config_set(config, "model.make_vocab_size_divisible_by",
                               "1", diag);
    }
    if (status == ME_OK) {
        status = decide(config, tokenizer.type, &vocabulary, diag);
    }
    me_str_fini(&vocabulary.from);
    return status;
}

me_status me_vocabulary_note(me_config *config, me_diag *diag)
{
    const me_vocabulary_said *said = &config->own->vocabulary;
    char note[256];
    if (!me_said_vocabulary_holds(config)) {
        return ME_OK; // somebody knows better
    }
    switch (said->source) {
    case ME_VOCABULARY_COUNTED:
        return me_config_assume(config, diag,
                                "the vocabulary has %" PRIu64
                                " tokens, counted in %s",
                                said->tokens, said->from);
    case ME_VOCABULARY_BARE:
        return me_config_assume(config, diag,
                                "the vocabulary has %" PRIu64
                                " tokens, counted in %s, without special "
                                "tokens that the tokenizer's code adds",
                                said->tokens, said->from);
    case ME_VOCABULARY_ROWS:
        return me_config_assume(config, diag,
                                "the vocabulary of %s has %" PRIu64
                                " tokens, as its model's config.json says; "
                                "the tokenizer may have some less",
                                said->from, said->tokens);
    case ME_VOCABULARY_KNOWN:
        return me_config_assume(config, diag,
                                "the vocabulary of %s has %" PRIu64 " tokens",
                                said->from, said->tokens);
    case ME_VOCABULARY_TAKEN: break;
    }
    (void)snprintf(note, sizeof note,
                   "%.100s is not on this machine: %" PRIu64
                   " tokens are taken, as is usual of %s; "
                   "--set model.vocab_size=N says how many there are",
                   said->from, said->tokens, said->type);
    const me_effect effect = ME_EITHER(ANY);
    return me_config_add_not_modelled(config, "the tokenizer's vocabulary",
                                      note, effect, diag);
}
