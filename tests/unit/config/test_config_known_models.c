/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/known_models.h"
#include "support/test.h"

#include <unistd.h>

static void check(const char *name, const char *wanted)
{
    me_str model = {0};
    const bool is_known = me_known_model(name, &model);
    assert_int_equal(is_known, wanted != NULL);
    assert_string_equal(me_str_text(&model), wanted == NULL ? "" : wanted);
    me_str_fini(&model);
}

static void test_known_models__names_of_others(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"Qwen/Qwen3-8B-Base", "qwen3-8b"},
        {"Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b"},
        {"Qwen/Qwen2-7B-Instruct", "qwen2.5-7b"},
        {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
        {"/data/models/Llama-3.1-70B-Instruct", "llama-3-70b"},
        {"llama31_405b", "llama-3-405b"},
        {"llama3.1_8B.yaml", "llama-3-8b"},
        {"llama3_70b_pretrain_config", "llama-3-70b"},
        {"mixtral_8x7B_v0.1.yaml", "mixtral-8x7b"},
        {"mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b"},
        {"deepseek-ai/DeepSeek-R1", "deepseek-v3"},
        {"nemotron4_340b", "nemotron-4-340b"},
        {"gpt-3-175b", "gpt-3-175b"},
        {"moonshotai/Moonlight-16B-A3B-Instruct", "moonlight-16b-a3b"},
        {"deepseek-ai/deepseek-llm-7b-base", "deepseek-llm-7b"},
        {"Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-7b"},
        {"Qwen/Qwen3-VL-30B-A3B-Thinking", "qwen3-30b-a3b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(rows[i][0], rows[i][1]);
    }
}

/* Versions with another vocabulary, other sizes, ends alone. */
static void test_known_models__unknown(void **state)
{
    (void)state;
    static const char *const names[] = {
        "mistralai/Mistral-7B-v0.3",
        "team/own-3b",
        "Qwen/Qwen3-VL-2B-Instruct",
        "Qwen/Qwen3-VLX-8B",
        "Qwen/Qwen3",
        "8b",
        "-instruct",
        ".yaml",
        "",
        "/",
        "llama-3-8b/",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check(names[i], NULL);
    }
}

/* Families that are refused for what their layers are; no others. */
static void test_known_models__what_is_not_modelled(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"Qwen/Qwen3-Next-80B-A3B-Instruct", "layers of gated delta nets"},
        {"qwen3_next_80b", "layers of gated delta nets"},
        {"nvidia/Nemotron-H-8B-Base-8K", "Mamba-2 layers"},
        {"state-spaces/mamba-2.8b", "state-space layers"},
        {"moonshotai/Kimi-Linear-48B-A3B", "layers of linear attention"},
        {"OpenGVLab/InternVL3-8B",
         "an encoder of images beside the language model"},
        {"Qwen/Qwen3-VL-2B-Instruct",
         "an encoder of images, and a language model that is not known"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *lacks = me_known_model_lacks(rows[i][0]);
        assert_non_null(lacks);
        assert_string_equal(lacks, rows[i][1]);
    }
    assert_null(me_known_model_lacks("Qwen/Qwen3-8B"));
    assert_null(me_known_model_lacks("mamba-org/llama-3-8b"));
    assert_true(me_known_model_sees_images("Qwen/Qwen2.5-VL-7B-Instruct"));
    assert_false(me_known_model_sees_images("Qwen/Qwen2.5-7B-Instruct"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_models__names_of_others),
        cmocka_unit_test(test_known_models__unknown),
        cmocka_unit_test(test_known_models__what_is_not_modelled),
    };
    return chdir(SOURCE_DIR) == 0 ? cmocka_run_group_tests(tests, NULL, NULL)
                                  : 1;
}
