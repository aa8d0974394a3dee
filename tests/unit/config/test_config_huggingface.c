/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "config_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_huggingface__llama(void **state)
{
    (void)state;
    me_config *config =
        job_of("{" LLAMA ", \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-5, "
               "\"torch_dtype\": \"bfloat16\", \"attention_bias\": false, "
               "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0},"
               "\"head_dim\": null, \"attention_dropout\": 0.0}");
    const me_model_config *m = &config->model;
    assert_int_equal(m->num_layers, 4);
    assert_int_equal(m->hidden_size, 256);
    assert_int_equal(m->ffn_hidden_size, 688);
    assert_int_equal(m->num_attention_heads, 8);
    assert_int_equal(m->num_query_groups, 2);
    assert_int_equal(m->vocab_size, 1000);
    assert_int_equal(m->max_position_embeddings, 512);
    assert_int_equal(m->normalization, ME_NORMALIZATION_RMS_NORM);
    assert_int_equal(m->activation, ME_ACTIVATION_SWIGLU);
    assert_int_equal(m->position_embedding, ME_POSITION_ROPE);
    assert_false(m->add_bias_linear || m->add_qkv_bias || m->qk_layernorm);
    assert_true(m->untie_embeddings_and_output_weights);
    assert_true(m->attention_dropout <= 0 && m->hidden_dropout <= 0);
    assert_int_equal(config->train.params_dtype, ME_DTYPE_BFLOAT16);
    assert_int_equal(config->not_modelled.count, 0);
    assert_true(list_has(&config->modelled, "hidden_size"));
    assert_true(list_has(&config->no_effect, "rms_norm_eps"));
    assert_true(list_has(&config->no_effect, "rope_scaling"));
    assert_true(list_has(&config->no_effect, "head_dim"));

    me_diag diag = {0};
    assert_int_equal(me_config_finish(config, 1, &diag), ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "model.seq_length is not given"));
    me_config_destroy(config);
}

static void test_huggingface__other_shapes_of_llama(void **state)
{
    (void)state;
    me_config *config = job_of("{\"model_type\": \"mistral\", " SIZES
                               ", \"sliding_window\": 64}");
    assert_true(list_has(&config->modelled, "sliding_window"));
    assert_true(config->model.window_attention);
    me_config_destroy(config);
    config = job_of("{\"model_type\": \"mistral\", " SIZES
                    ", \"sliding_window\": null}");
    assert_int_equal(config->not_modelled.count, 0);
    assert_false(config->model.window_attention);
    assert_false(config->model.add_qkv_bias);
    me_config_destroy(config);
    config = job_of("{\"model_type\": \"qwen2\", " SIZES
                    ", \"tie_word_embeddings\": true}");
    assert_true(config->model.add_qkv_bias);
    assert_false(config->model.add_bias_linear);
    assert_false(config->model.untie_embeddings_and_output_weights);
    me_config_destroy(config);
    config = job_of("{\"model_type\": \"qwen3\", " SIZES ", \"head_dim\": 64}");
    assert_true(config->model.qk_layernorm);
    assert_int_equal(config->model.kv_channels, 64);
    me_config_destroy(config);
}

static void test_huggingface__mixtral(void **state)
{
    (void)state;
    me_config *config = job_of(
        "{\"model_type\": \"mixtral\", " SIZES ", \"num_local_experts\": 8, "
        "\"num_experts_per_tok\": 2, \"router_aux_loss_coef\": 0.02, "
        "\"output_router_logits\": false, \"sliding_window\": null}");
    assert_int_equal(config->moe.num_experts, 8);
    assert_int_equal(config->moe.router_topk, 2);
    assert_true(config->moe.aux_loss_coeff > 0);
    assert_int_equal(config->moe.token_dispatcher, ME_DISPATCHER_ALL_TO_ALL);
    assert_int_equal(config->not_modelled.count, 0);
    me_config_destroy(config);
}

static void test_huggingface__gpt2(void **state)
{
    (void)state;
    me_config *config =
        job_of("{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 96, "
               "\"n_head\": 6, \"n_positions\": 64, \"n_inner\": null, "
               "\"vocab_size\": 200, \"resid_pdrop\": 0.2, \"embd_pdrop\": 0.2,"
               "\"attn_pdrop\": 0, \"activation_function\": \"gelu_new\"}");
    const me_model_config *m = &config->model;
    assert_int_equal(m->num_layers, 3);
    assert_int_equal(m->hidden_size, 96);
    assert_int_equal(m->num_attention_heads, 6);
    assert_int_equal(m->max_position_embeddings, 64);
    assert_int_equal(m->normalization, ME_NORMALIZATION_LAYER_NORM);
    assert_int_equal(m->activation, ME_ACTIVATION_GELU);
    assert_int_equal(m->position_embedding, ME_POSITION_LEARNED_ABSOLUTE);
    assert_true(m->add_bias_linear);
    assert_false(m->untie_embeddings_and_output_weights);
    assert_true(m->hidden_dropout > 0.19 && m->attention_dropout <= 0);
    assert_int_equal(config->not_modelled.count, 0);
    assert_int_equal(me_config_set(config, "model.seq_length", "64", NULL),
                     ME_OK);
    assert_int_equal(me_config_set(config, "train.micro_batch_size", "1", NULL),
                     ME_OK);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->model.ffn_hidden_size, 384);
    me_config_destroy(config);
}

/* More keys of a small Llama, the key looked at, and the list it is in. */
static const char *const list_cases[][3] = {
    {"\"sliding_window\": 128", "sliding_window", "no effect"},
    {"\"use_sliding_window\": true, \"sliding_window\": 128", "sliding_window",
     "modelled"},
    {"\"quantization_config\": {\"bits\": 4}", "quantization_config",
     "not modelled"},
    {"\"quantization_config\": null", "quantization_config", "no effect"},
    {"\"quantization_config\": {\"quant_method\": \"fp8\"}",
     "quantization_config", "no effect"},
    {"\"quantization_config\": {\"quant_method\": \"awq\"}",
     "quantization_config", "not modelled"},
    {"\"num_experts\": 0", "num_experts", "no effect"},
    {"\"num_local_experts\": null", "num_local_experts", "no effect"},
    {"\"rope_scaling\": {\"type\": \"yarn\"}", "rope_scaling", "not modelled"},
    {"\"rope_scaling\": 2", "rope_scaling", "not modelled"},
    {"\"rope_parameters\": {\"rope_theta\": 1e4}", "rope_parameters",
     "no effect"},
    {"\"layer_types\": [\"full_attention\"]", "layer_types", "no effect"},
    {"\"layer_types\": [\"full_attention\", \"sliding_attention\"]",
     "layer_types", "modelled"},
    {"\"layer_types\": [\"full_attention\", \"linear_attention\"]",
     "layer_types", "not modelled"},
    {"\"layer_types\": \"full_attention\"", "layer_types", "not modelled"},
    {"\"rope_parameters\": {\"partial_rotary_factor\": 0.25}",
     "partial_rotary_factor", "modelled"},
    {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}}",
     "rope_parameters", "no effect"},
    {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}}",
     "rope_parameters", "not modelled"},
    {"\"num_nextn_predict_layers\": 0", "num_nextn_predict_layers",
     "no effect"},
    {"\"num_nextn_predict_layers\": 1", "num_nextn_predict_layers",
     "no effect"},
    {"\"attention_bias\": true", "attention_bias", "not modelled"},
    {"\"mlp_bias\": true", "mlp_bias", "not modelled"},
    {"\"mlp_bias\": true, \"attention_bias\": true", "mlp_bias", "modelled"},
    {"\"torch_dtype\": \"auto\"", "torch_dtype", "no effect"},
    {"\"dtype\": \"float16\"", "dtype", "no effect"},
    {"\"brand_new\": 1", "brand_new", "not modelled"},
    {"\"tab\\tkey\": 1", "tab?key", "not modelled"},
    {"\"partial_rotary_factor\": 0.5", "partial_rotary_factor", "modelled"},
};

static void test_huggingface__lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(list_cases); i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "{" LLAMA ", %s}", list_cases[i][0]);
        me_config *config = job_of(text);
        const char *key = list_cases[i][1];
        const char *list = list_has(&config->modelled, key)    ? "modelled"
                           : list_has(&config->no_effect, key) ? "no effect"
                           : list_has(&config->not_modelled, key)
                               ? "not modelled"
                               : "no list";
        if (strcmp(list, list_cases[i][2]) != 0) {
            fail_msg("%s: in %s", list_cases[i][0], list);
        }
        me_config_destroy(config);
    }
}

/* How the checkpoint is stored is no type of training, and the report says what
 * is taken instead, unless the job says it. */
static void test_huggingface__type_of_training(void **state)
{
    static const struct {
        const char *key;
        const char *given; /* NULL: nothing */
        me_dtype dtype;
    } cases[] = {
        {"\"torch_dtype\": \"float16\"", NULL, ME_DTYPE_BFLOAT16},
        {"\"dtype\": \"float32\"", NULL, ME_DTYPE_BFLOAT16},
        {"\"head_dim\": null", NULL, ME_DTYPE_BFLOAT16},
        {"\"torch_dtype\": \"bfloat16\"", "float16", ME_DTYPE_FLOAT16},
        {"\"torch_dtype\": \"float16\"", "float32", ME_DTYPE_FLOAT32},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "{" LLAMA ", %s}", cases[i].key);
        me_config *config = job_of(text);
        const char *const settings[] = {"model.seq_length=64",
                                        "train.micro_batch_size=1"};
        for (size_t k = 0; k < COUNT_OF(settings); k++) {
            assert_int_equal(
                me_config_set_assignment(config, settings[k], NULL), ME_OK);
        }
        if (cases[i].given != NULL) {
            assert_int_equal(me_config_set(config, "train.params_dtype",
                                           cases[i].given, NULL),
                             ME_OK);
        }
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->train.params_dtype, cases[i].dtype);
        bool is_said = false;
        for (int32_t k = 0; k < config->assumptions.count; k++) {
            is_said =
                is_said || strstr(config->assumptions.flags[k].note,
                                  "parameters are bfloat16, since nothing");
        }
        assert_int_equal(is_said, cases[i].given == NULL);
        me_config_destroy(config);
    }
}

static const struct {
    const char *text;
    me_status status;
    int line;
    const char *part;
} wrong_files[] = {
    {"", ME_ERR_SYNTAX, 1, "column"},
    {"{\n\"a\": }", ME_ERR_SYNTAX, 2, "column"},
    {"{\n\"a\": 1,\n\"a\": 2}", ME_ERR_SYNTAX, 3, "duplicate object key"},
    {"{\"a\": \"\x01\"}", ME_ERR_SYNTAX, 1, "control character"},
    {"{\"a\": 99999999999999999999}", ME_ERR_SYNTAX, 1, "too big integer"},
    {"[1]", ME_ERR_CONFIG, 1, "is a list: must be an object"},
    {"{}", ME_ERR_CONFIG, 0, "neither 'architectures' nor 'model_type'"},
    {"{\"architectures\": []}", ME_ERR_CONFIG, 0, "neither 'architectures'"},
    {"{\n\"architectures\": [\"BertModel\"]}", ME_ERR_UNSUPPORTED, 2,
     "BertModel is not modelled: it has an encoder's layers and heads"},
    {"{\"model_type\": \"qwen3_next\"}", ME_ERR_UNSUPPORTED, 1,
     "qwen3_next is not modelled: it has layers of gated delta nets"},
    {"{\"model_type\": \"brand_new\",\n\"state_size\": 16}", ME_ERR_UNSUPPORTED,
     2,
     "brand_new is not modelled: it has state-space layers, as state_size says"},
    {"{\"architectures\": [\"NewForCausalLM\"], \"state_size\": null}",
     ME_ERR_UNSUPPORTED, 1,
     "NewForCausalLM is not modelled: what its layers are made of is not known; "
     "`memest list architectures` names what is read"},
    {"{\"model_type\": \"llama4\"}", ME_ERR_CONFIG, 0,
     "text_config must be an object: a Llama4ForConditionalGeneration has it"},
    {"{\"model_type\": \"gemma3\", \"vision_config\": {\"head_dim\": 1},\n"
     "\"text_config\": {" SIZES ",\n\"head_dim\": 0}}",
     ME_ERR_CONFIG, 6, "head_dim 0: must be a whole number from 1"},
    {"{\"model_type\": \"gpt2\"}", ME_ERR_CONFIG, 0,
     "n_layer is missing: a GPT2LMHeadModel has it"},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": "
     "null}",
     ME_ERR_CONFIG, 0, "hidden_size is missing"},
    {"{" LLAMA ",\n\"head_dim\": 0}", ME_ERR_CONFIG, 6,
     "head_dim 0: must be a whole number from 1"},
    {"{" LLAMA ",\n\"head_dim\": -8}", ME_ERR_CONFIG, 6, "head_dim -8"},
    {"{" LLAMA ",\n\"head_dim\": 8.5}", ME_ERR_CONFIG, 6,
     "head_dim is a decimal: must be a whole number from 1"},
    {"{" LLAMA ",\n\"head_dim\": \"8\"}", ME_ERR_CONFIG, 6,
     "head_dim is text: must be"},
    {"{" LLAMA ",\n\"attention_dropout\": 2}", ME_ERR_CONFIG, 6,
     "attention_dropout 2: must be a number from 0 to 1"},
    {"{" LLAMA ",\n\"hidden_act\": \"gelu\"}", ME_ERR_UNSUPPORTED, 6,
     "hidden_act gelu: of gated activations only silu is modelled"},
    {"{" LLAMA ",\n\"hidden_act\": \"a\\nb\"}", ME_ERR_UNSUPPORTED, 6,
     "hidden_act a?b: of gated"},
    {"{" LLAMA ",\n\"num_local_experts\": 8}", ME_ERR_UNSUPPORTED, 6,
     "num_local_experts 8: models of this class have no experts"},
    {"{" LLAMA ",\n\"num_nextn_predict_layers\": \"1\"}", ME_ERR_CONFIG, 6,
     "num_nextn_predict_layers is text: must be a whole number from 0"},
    {"{" QWEN_MOE ", \"mlp_only_layers\": [1,\n4]}", ME_ERR_CONFIG, 5,
     "mlp_only_layers: must be a list of layers from 0 to 3"},
    {"{" QWEN_MOE ",\n\"decoder_sparse_step\": -1}", ME_ERR_CONFIG, 6,
     "decoder_sparse_step -1: must be a whole number from 0"},
    {"{" QWEN_MOE ",\n\"decoder_sparse_step\": true}", ME_ERR_CONFIG, 6,
     "decoder_sparse_step is true or false: must be a whole number from 0"},
    {"{\"model_type\": \"deepseek_v3\", " DEEPSEEK_SIZES
     ", \"q_lora_rank\": 1}",
     ME_ERR_CONFIG, 0, "first_k_dense_replace is missing: a DeepseekV3"},
    {"{\"model_type\": \"deepseek_v3\", " DEEPSEEK_SIZES
     ", \"q_lora_rank\": 1,\n\"mlp_layer_types\": [\"dense\"]}",
     ME_ERR_CONFIG, 5, "mlp_layer_types: must be a list of 4 words, dense or"},
    {"{" DEEPSEEK "}", ME_ERR_CONFIG, 0,
     "q_lora_rank is missing: a DeepseekV2ForCausalLM has it"},
    {"{" LLAMA ",\n\"tie_word_embeddings\": 1}", ME_ERR_CONFIG, 6,
     "tie_word_embeddings is a whole number: must be true or false"},
    {"{" LLAMA ",\n\"mlp_bias\": \"no\"}", ME_ERR_CONFIG, 6,
     "mlp_bias is text: must be true or false"},
};

static void test_huggingface__errors_name_file_line_and_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong_files); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        const me_status status = read_json(config, wrong_files[i].text, &diag);
        if (strstr(diag.text, wrong_files[i].part) == NULL) {
            fail_msg("%s: %s", wrong_files[i].text, diag.text);
        }
        assert_int_equal(status, wrong_files[i].status);
        assert_string_equal(diag.where, "config.json");
        assert_int_equal(diag.line, wrong_files[i].line);
        assert_null(strchr(diag.text, '\n'));
        me_config_destroy(config);
    }
}

/* A file by its name, as --model takes it, and @include of one. */
static void test_huggingface__is_read_as_a_file(void **state)
{
    (void)state;
    char directory[] = "/tmp/memest-test-XXXXXX";
    assert_non_null(mkdtemp(directory));
    char json[64];
    char cfg[64];
    (void)snprintf(json, sizeof json, "%s/small.json", directory);
    (void)snprintf(cfg, sizeof cfg, "%s/job.cfg", directory);
    FILE *file = fopen(json, "w");
    assert_non_null(file);
    assert_true(fputs("{" LLAMA "}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    file = fopen(cfg, "w");
    assert_non_null(file);
    assert_true(fputs("@include \"small.json\"\n"
                      "model = { num_layers = 6; seq_length = 64; };\n"
                      "train = { micro_batch_size = 1; };\n",
                      file) >= 0);
    assert_int_equal(fclose(file), 0);

    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_int_equal(me_config_read_file(config, json, &diag), ME_OK);
    assert_int_equal(config->model.num_layers, 4);
    me_config_destroy(config);
    config = me_config_create();
    assert_int_equal(me_config_read_file(config, cfg, &diag), ME_OK);
    assert_int_equal(config->model.num_layers, 6);
    assert_int_equal(config->model.hidden_size, 256);
    assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
    me_config_destroy(config);
    config = me_config_create();
    assert_int_equal(me_config_read_file(config, "no-such.json", &diag),
                     ME_ERR_IO);
    assert_string_equal(diag.where, "no-such.json");
    assert_non_null(strstr(diag.text, "cannot open"));
    me_config_destroy(config);
    (void)unlink(json);
    (void)unlink(cfg);
    (void)rmdir(directory);
}

/* A folder that has one, and a name of the Hub's whose files are in its cache. */
static void test_huggingface__is_read_from_a_folder(void **state)
{
    (void)state;
    char directory[] = "/tmp/memest-test-XXXXXX";
    assert_non_null(mkdtemp(directory));
    static const char *const folders[] = {"/models--org--name",
                                          "/models--org--name/snapshots",
                                          "/models--org--name/snapshots/0123"};
    char path[128];
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        (void)snprintf(path, sizeof path, "%s%s", directory, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    char json[160];
    (void)snprintf(json, sizeof json, "%s/config.json", path);
    FILE *file = fopen(json, "w");
    assert_non_null(file);
    assert_true(fputs("{" LLAMA "}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(setenv("HF_HUB_CACHE", directory, 1), 0);
    const char *const models[] = {path, "org/name", "org/other", directory};
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        const me_status status = me_config_read_file(config, models[i], &diag);
        // A name that nobody knows is no file that is missing.
        assert_int_equal(status, i < 2    ? ME_OK
                                 : i == 2 ? ME_ERR_CONFIG
                                          : ME_ERR_IO);
        assert_int_equal(config->model.num_layers, i < 2 ? 4 : 0);
        me_config_destroy(config);
    }
    assert_int_equal(unsetenv("HF_HUB_CACHE"), 0);
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(path, sizeof path, "%s%s", directory, folders[1]);
    assert_int_equal(chdir(path), 0);
    me_config *config = me_config_create();
    assert_int_equal(me_config_read_file(config, "0123", NULL), ME_OK);
    assert_int_equal(config->model.num_layers, 4);
    me_config_destroy(config);
    assert_int_equal(chdir(here), 0);
    (void)unlink(json);
    for (size_t i = COUNT_OF(folders); i > 0; i--) {
        (void)snprintf(path, sizeof path, "%s%s", directory, folders[i - 1]);
        (void)rmdir(path);
    }
    (void)rmdir(directory);
}

static void test_huggingface__survives_without_memory(void **state)
{
    (void)state;
    bool is_done = false;
    for (uint64_t nth = 1; nth < 500 && !is_done; nth++) {
        me_config *config = me_config_create();
        assert_non_null(config);
        me_alloc_fail_at(nth);
        const me_status status = read_json(
            config, "{" LLAMA ", \"layer_types\": [\"full_attention\"]}", NULL);
        me_alloc_fail_at(0);
        is_done = status == ME_OK;
        assert_true(is_done || status == ME_ERR_NOMEM);
        me_config_destroy(config);
    }
    assert_true(is_done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_huggingface__llama),
        cmocka_unit_test(test_huggingface__other_shapes_of_llama),
        cmocka_unit_test(test_huggingface__mixtral),
        cmocka_unit_test(test_huggingface__gpt2),
        cmocka_unit_test(test_huggingface__lists),
        cmocka_unit_test(test_huggingface__type_of_training),
        cmocka_unit_test(test_huggingface__errors_name_file_line_and_key),
        cmocka_unit_test(test_huggingface__is_read_as_a_file),
        cmocka_unit_test(test_huggingface__is_read_from_a_folder),
        cmocka_unit_test(test_huggingface__survives_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
