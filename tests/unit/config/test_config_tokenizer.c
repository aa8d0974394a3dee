/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"
#include "config/file.h"
#include "config/launch_command.h"
#include "config/options.h"
#include "config/tokenizer/tokenizer.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES SOURCE_DIR "/tests/unit/config/tokenizers"

static const char *cache(const void *self, const char *name)
{
    return strcmp(name, "HF_HUB_CACHE") == 0 ? self : NULL;
}

/** A tokenizer of files, and what it must have. */
typedef struct counted {
    const char *type;
    const char *model;
    const char *vocab_file;
    size_t n_specials;
    uint64_t tokens;
    me_vocabulary_source source;
} counted;

static void check_count(const counted *c)
{
    static const char *const specials[] = {"<x>", "<y>"};
    const me_tokenizer tokenizer = {.type = c->type,
                                    .model = c->model,
                                    .vocab_file = c->vocab_file,
                                    .specials = specials,
                                    .n_specials = c->n_specials,
                                    .variable = cache,
                                    .self = FILES "/hub"};
    me_vocabulary vocabulary = {0};
    me_diag diag = {.status = ME_OK};
    const me_status status = me_tokenizer_count(&tokenizer, &diag, &vocabulary);
    if (status != ME_OK || vocabulary.tokens != c->tokens ||
        vocabulary.source != c->source) {
        fail_msg("%s of %s: %s, %lu tokens", c->type,
                 c->model == NULL ? "" : c->model, diag.text,
                 (unsigned long)vocabulary.tokens);
    }
    me_str_fini(&vocabulary.from);
}

/* What each kind of file says: the JSON files have numbers 0 to 4, 5 beside,
 * 6 in the second file alone; the model five pieces. */
static void test_tokenizer__counts_files(void **state)
{
    (void)state;
    static const counted cases[] = {
        {"HuggingFaceTokenizer", FILES "/hf", NULL, 0, 7,
         ME_VOCABULARY_COUNTED},
        {"HuggingFaceTokenizer", FILES "/hf", NULL, 2, 8,
         ME_VOCABULARY_COUNTED},
        {"HuggingFaceTokenizer", FILES "/hf/tokenizer.json", NULL, 0, 6,
         ME_VOCABULARY_COUNTED},
        {"HuggingFaceTokenizer", FILES "/slow", NULL, 0, 6,
         ME_VOCABULARY_COUNTED}, // of five pieces three are named again
        {"SFTTokenizer", FILES "/unigram", NULL, 0, 3, ME_VOCABULARY_COUNTED},
        {"HuggingFaceTokenizer", "org/name", NULL, 0, 3, ME_VOCABULARY_COUNTED},
        {"Llama2Tokenizer", FILES "/five.model", NULL, 0, 5,
         ME_VOCABULARY_COUNTED},
        {"GPTSentencePieceTokenizer", FILES "/five.model", NULL, 2, 7,
         ME_VOCABULARY_COUNTED},
        {"GPTSentencePieceTokenizer", FILES "/bare.model", NULL, 2, 2,
         ME_VOCABULARY_COUNTED}, // "<x>", with neither score nor kind
        {"HuggingFaceTokenizer", FILES "/spiece", NULL, 0, 5,
         ME_VOCABULARY_COUNTED},
        {"HuggingFaceTokenizer", FILES "/tekken", NULL, 0, 9,
         ME_VOCABULARY_COUNTED},
        {"HuggingFaceTokenizer", FILES "/ranks", NULL, 0, 5,
         ME_VOCABULARY_COUNTED},
        {"Llama3Tokenizer", FILES "/ranks/tokenizer.model", NULL, 0, 3,
         ME_VOCABULARY_BARE},
        {"HuggingFaceTokenizer", FILES "/three.tiktoken", NULL, 1, 4,
         ME_VOCABULARY_BARE},
        {"GPT2BPETokenizer", NULL, FILES "/vocab.json", 0, 3,
         ME_VOCABULARY_COUNTED},
        {"BertWordPieceLowerCase", NULL, FILES "/vocab.txt", 0, 4,
         ME_VOCABULARY_COUNTED},
        {"BertWordPieceCase", NULL, FILES "/vocab.txt", 0, 104,
         ME_VOCABULARY_COUNTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_count(&cases[i]);
    }
}

static void
test_tokenizer__knows_names_of_files_that_are_elsewhere(void **state)
{
    (void)state;
    static const counted cases[] = {
        {"HuggingFaceTokenizer", "Qwen/Qwen2.5-7B", NULL, 0, 151665,
         ME_VOCABULARY_KNOWN},
        {"HuggingFaceTokenizer", "/nowhere/Meta-Llama-3-8B", NULL, 0, 128256,
         ME_VOCABULARY_KNOWN},
        {"HuggingFaceTokenizer", "zai-org/GLM-4.5-Air", NULL, 0, 151552,
         ME_VOCABULARY_ROWS},
        {"HuggingFaceTokenizer", "google/gemma-3-27b-it", NULL, 0, 262145,
         ME_VOCABULARY_KNOWN},
        {"HuggingFaceTokenizer", "codellama/CodeLlama-34b-hf", NULL, 0, 32000,
         ME_VOCABULARY_ROWS},
        {"HuggingFaceTokenizer", "codellama/CodeLlama-7b-hf", NULL, 0, 32016,
         ME_VOCABULARY_KNOWN},
        {"HuggingFaceTokenizer", "moonshotai/Moonlight-16B-A3B", NULL, 0,
         163842, ME_VOCABULARY_KNOWN},
        {"TikTokenizer", "/nowhere/x.json", NULL, 0, 131072,
         ME_VOCABULARY_KNOWN},
        {"GPT2BPETokenizer", NULL, "/nowhere/v.json", 0, 50257,
         ME_VOCABULARY_KNOWN},
        {"Llama2Tokenizer", "/nowhere/tokenizer.model", NULL, 0, 32000,
         ME_VOCABULARY_TAKEN},
        {"HuggingFaceTokenizer", "org/other", NULL, 0, 131072,
         ME_VOCABULARY_TAKEN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_count(&cases[i]);
    }
}

/* Special tokens of Llama 3 stand in Meta's code: 256 of them behind 128000
 * ranks. */
static void test_tokenizer__adds_what_llama_3_adds(void **state)
{
    (void)state;
    char path[] = "/tmp/memest-ranks-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (int i = 0; i < 128000; i++) {
        (void)fprintf(file, "QUJD %d\n", i);
    }
    (void)fclose(file);
    check_count(&(counted){"HuggingFaceTokenizer", path, NULL, 0, 128256,
                           ME_VOCABULARY_COUNTED});
    (void)remove(path);
}

static void test_tokenizer__refuses_what_is_none(void **state)
{
    (void)state;

    static const struct {
        const char *type;
        const char *model;
        const char *says;
    } cases[] = {
        {"Llama2Tokenizer", FILES "/vocab.json", "no SentencePiece model"},
        {"HuggingFaceTokenizer", FILES "/hf/tokenizer_config.json",
         "no \"model\""},
        {"HuggingFaceTokenizer", FILES "/hub", "holds no tokenizer"},
        {"HuggingFaceTokenizer", FILES "/pointer.model", "git lfs pull"},
        {"HuggingFaceTokenizer", FILES "/cut.tiktoken", "no line of tiktoken"},
        {"Llama2Tokenizer", FILES "/three.tiktoken", "no SentencePiece model"},
        {"TikTokenizer", FILES "/three.tiktoken", "ends in .json"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_tokenizer tokenizer = {.type = cases[i].type,
                                        .model = cases[i].model,
                                        .variable = cache,
                                        .self = FILES "/hub"};
        me_vocabulary vocabulary = {0};
        me_diag diag = {.status = ME_OK};
        const me_status status =
            me_tokenizer_count(&tokenizer, &diag, &vocabulary);
        me_str_fini(&vocabulary.from);
        assert_int_not_equal(status, ME_OK);
        assert_non_null(strstr(diag.text, cases[i].says));
    }
}

/** The job of a launch with these words behind it. */
static me_config *job(const char *const *more, int n_more, me_status wanted)
{
    const char *words[40] = {"python",
                             "pretrain_gpt.py",
                             "--num-layers",
                             "2",
                             "--hidden-size",
                             "64",
                             "--seq-length",
                             "32",
                             "--num-attention-heads",
                             "4",
                             "--micro-batch-size",
                             "1",
                             "--max-position-embeddings",
                             "32"};
    int n = 14;
    for (int i = 0; i < n_more; i++) {
        words[n++] = more[i];
    }
    me_config *config = me_config_create();
    assert_non_null(config);
    assert_int_equal(me_config_read_launch(config, n, words, NULL), wanted);
    return config;
}

static const char patch[] = "--patch-tokenizer-type";
static const char own[] = "--tokenizer-type";
static const char hf[] = FILES "/hf";

/* Of forks' tokenizers; what has no model bears its size in its type. */
static const struct {
    const char *flag;
    const char *type;
    const char *model;
    const char *extra;
    uint64_t rows; /**< of four tensor ranks together */
    int n_not_modelled;
} patches[] = {
    // 151643 + 293, as Pai-Megatron-Patch's script says
    {patch, "Qwen3Tokenizer", NULL, "293", 151936, 0},
    {patch, "Qwen2Tokenizer", "/nowhere/Qwen2.5-72B", "421", 152064, 0},
    // 128815 + 467 - 2, the vocab_size of its config.json
    {patch, "DeepSeekV2Tokenizer", "/nowhere/DeepSeek-V3", "467", 129280, 0},
    {own, "DeepSeekV2Tokenizer", "/nowhere/DeepSeek-V3", "467", 129280, 0},
    {patch, "LLama3Tokenizer", NULL, "256", 128256, 0},
    {patch, "QwenTokenizer", NULL, "85", 151936, 1},
    {patch, "LLamaTokenizer", "/nowhere/x", "0", 32000, 1},
    // which does not look at it
    {patch, "BloomTokenizerFromHF", NULL, "7", 250880, 0},
    // five of its seven tokens stand in the vocabulary
    {patch, "Qwen2Tokenizer", hf, "3", 8, 0},
    // 151665, which is padded to 512; the flag is another's
    {own, "HuggingFaceTokenizer", "Qwen/Qwen2.5-7B", "421", 152064, 1},
    {patch, "GPT2BPETokenizer", NULL, "0", 50688, 0},
};

/* Pai-Megatron-Patch's tokenizers are behind --load, and their vocabulary fills an
 * embedding's rows, which nothing pads; HYGON's fork has two of them. */
static void test_tokenizer__of_a_patch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
        const char *words[] = {patches[i].flag,
                               patches[i].type,
                               "--extra-vocab-size",
                               patches[i].extra,
                               patches[i].flag == patch ? "--load"
                                                        : "--tokenizer-model",
                               patches[i].model};
        me_config *config = job(words, patches[i].model == NULL ? 4 : 6, ME_OK);
        assert_int_equal(me_config_set(config, "parallel.tensor", "4", NULL),
                         ME_OK);
        assert_int_equal(me_config_finish(config, 4, NULL), ME_OK);
        if (config->model.padded_vocab_size != patches[i].rows ||
            config->not_modelled.count != patches[i].n_not_modelled) {
            fail_msg("%s: %lu rows, %d not modelled", patches[i].type,
                     (unsigned long)config->model.padded_vocab_size,
                     config->not_modelled.count);
        }
        me_config_destroy(config);
    }
}

static const char five[] = FILES "/five.model";

/* As in Megatron-LM the file counts, not --vocab-size; --set counts more. */
static void test_tokenizer__its_file_decides(void **state)
{
    (void)state;
    static const char *const words[] = {"--tokenizer-type",  "Llama2Tokenizer",
                                        "--tokenizer-model", five,
                                        "--vocab-size",      "99"};
    me_config *config = job(words, 6, ME_OK);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->model.vocab_size, 5);
    assert_int_equal(config->model.padded_vocab_size, 128);
    me_config_destroy(config);

    config = job(words, 6, ME_OK);
    assert_int_equal(me_config_set(config, "model.vocab_size", "300", NULL),
                     ME_OK);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->model.padded_vocab_size, 384);
    me_config_destroy(config);
}

/* pretrain_gpt.py's own type, given or not; files that are elsewhere do not
 * matter to it. */
static void test_tokenizer__gpt2_has_a_known_size(void **state)
{
    (void)state;
    static const char *const words[] = {"--vocab-file", "/nowhere/vocab.json",
                                        "--tokenizer-type", "GPT2BPETokenizer"};
    for (int n = 0; n <= 4; n += 2) {
        me_config *config = job(words, n, ME_OK);
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->model.vocab_size, 50257);
        assert_int_equal(config->not_modelled.count, 0);
        me_config_destroy(config);
    }
}

/* build_tokenizer() hands --vocab-size to TikTokenizer and those without files
 * alone: of a tokenizer that is known it changes nothing. */
static void test_tokenizer__known_tokens_go_before_a_flag(void **state)
{
    (void)state;

    static const struct {
        const char *type;
        const char *model;
        uint64_t tokens;
    } known[] = {
        {"HuggingFaceTokenizer", "meta-llama/Llama-3.1-8B", 128256},
        {"HuggingFaceTokenizer", "Qwen/Qwen2.5-7B", 151665},
        {"HuggingFaceTokenizer", "nobody/knows-this", 4000},
        {"GPT2BPETokenizer", "x", 50257},
        {"NullTokenizer", "x", 4000},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *const words[] = {"--tokenizer-type",  known[i].type,
                                     "--tokenizer-model", known[i].model,
                                     "--vocab-size",      "4000"};
        me_config *config = job(words, 6, ME_OK);
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->model.vocab_size, known[i].tokens);
        me_config_destroy(config);
        config = job(words, 6, ME_OK);
        assert_int_equal(me_config_set(config, "model.vocab_size", "300", NULL),
                         ME_OK);
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->model.vocab_size, 300);
        me_config_destroy(config);
    }
}

/* A size that nothing tells is not modelled, until somebody gives it; a copy of
 * the job knows as much. */
static void test_tokenizer__a_size_that_is_taken_is_said(void **state)
{
    (void)state;
    static const char *const words[] = {"--tokenizer-type", "Llama2Tokenizer",
                                        "--tokenizer-model",
                                        "/nowhere/t.model"};
    for (int is_given = 0; is_given < 2; is_given++) {
        me_config *read = job(words, 4, ME_OK);
        me_config *config = me_config_clone(read);
        me_config_destroy(read);
        assert_non_null(config);
        if (is_given) {
            assert_int_equal(
                me_config_set(config, "model.vocab_size", "32000", NULL),
                ME_OK);
        }
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->model.vocab_size, 32000);
        assert_int_equal(config->not_modelled.count, is_given ? 0 : 1);
        me_config_destroy(config);
    }
}

/** What a list says of the vocabulary; NULL: nothing. */
static const char *find_vocabulary(const me_flag_list *list)
{
    const char *found = NULL;
    for (int32_t i = 0; found == NULL && i < list->count; i++) {
        const me_flag_note *note = &list->flags[i];
        found = strstr(note->flag, "vocabulary") != NULL ? note->flag : NULL;
        found = found == NULL && note->note != NULL &&
                        strstr(note->note, "vocabulary") != NULL
                    ? note->note
                    : found;
    }
    return found;
}

/** What a job that is read from another's dump says of its vocabulary.
 *  @param given  to set beside the dump; NULL: nothing */
static void check_dumped(const char *type, const char *model, const char *given,
                         bool is_said)
{
    const char *const words[] = {"--tokenizer-type", type, "--tokenizer-model",
                                 model};
    me_config *config = job(words, 4, ME_OK);
    me_str text = {0};
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    me_config_dump(config, &text);
    me_config *back = me_config_create();
    assert_non_null(back);
    assert_int_equal(me_config_read_text(back, "dump", me_str_text(&text),
                                         text.length, NULL),
                     ME_OK);
    if (given != NULL) {
        assert_int_equal(me_config_set(back, "model.vocab_size", given, NULL),
                         ME_OK);
    }
    assert_int_equal(me_config_finish(back, 1, NULL), ME_OK);
    const me_flag_list *lists[] = {&config->assumptions, &config->not_modelled};
    const me_flag_list *again[] = {&back->assumptions, &back->not_modelled};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(find_vocabulary(again[i]) != NULL,
                         is_said && find_vocabulary(lists[i]) != NULL);
    }
    assert_true(find_vocabulary(lists[0]) != NULL ||
                find_vocabulary(lists[1]) != NULL);
    me_str second = {0};
    me_config_dump(back, &second);
    if (is_said) {
        assert_string_equal(me_str_text(&text), me_str_text(&second));
    }
    me_str_fini(&second);
    me_str_fini(&text);
    me_config_destroy(back);
    me_config_destroy(config);
}

/* What a tokenizer said lives on in a dump, until somebody says a size. */
static void test_tokenizer__what_it_said_is_dumped(void **state)
{
    (void)state;
    check_dumped("HuggingFaceTokenizer", "meta-llama/Llama-3.1-8B", NULL, true);
    check_dumped("HuggingFaceTokenizer", "nobody/knows-this", NULL, true);
    check_dumped("GPT2BPETokenizer", "x", NULL, true);
    check_dumped("Llama2Tokenizer", FILES "/five.model", NULL, true);
    check_dumped("Llama3Tokenizer", FILES "/ranks/tokenizer.model", NULL, true);
    check_dumped("GPT2BPETokenizer", "x", "50257", false);
    check_dumped("HuggingFaceTokenizer", "nobody/knows-this", "7", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer__counts_files),
        cmocka_unit_test(test_tokenizer__of_a_patch),
        cmocka_unit_test(
            test_tokenizer__knows_names_of_files_that_are_elsewhere),
        cmocka_unit_test(test_tokenizer__adds_what_llama_3_adds),
        cmocka_unit_test(test_tokenizer__refuses_what_is_none),
        cmocka_unit_test(test_tokenizer__its_file_decides),
        cmocka_unit_test(test_tokenizer__gpt2_has_a_known_size),
        cmocka_unit_test(test_tokenizer__known_tokens_go_before_a_flag),
        cmocka_unit_test(test_tokenizer__a_size_that_is_taken_is_said),
        cmocka_unit_test(test_tokenizer__what_it_said_is_dumped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
