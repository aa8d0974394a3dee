/* SPDX-License-Identifier: BSD-3-Clause */
/* Each word of each option that has words runs in one of these jobs at least, and
 * is refused with a message in the others: a word stands for a row of some
 * table, and none is missing. */
#include "config/file.h"
#include "support/simulate.h"
#include "support/test.h"

#include <string.h>

#define SMALL                                                                  \
    "model: { num_layers = 2; hidden_size = 32; num_attention_heads = 4; "     \
    "seq_length = 16; vocab_size = 16; add_bias_linear = false; "
#define TRAIN                                                                  \
    "}; train: { micro_batch_size = 1; params_dtype = \"bfloat16\"; };\n"
#define LOCAL "impl: { transformer = \"local\"; };\n"
#define LINEAR(name)                                                           \
    name ": { class = \"Linear\"; in_features = 8; out_features = 8; };\n"
#define TREE(options, tree)                                                    \
    "framework = \"torch\";\n"                                                 \
    "torch: { input_shape = \"(4, 4, 8)\"; " options "};\n"                    \
    "module: { " tree                                                          \
    "forward = \"return scaled_dot_product_attention(q(x), k(x), "             \
    "v(x), n_heads=2)\";\n" LINEAR("q") LINEAR("k") LINEAR("v") "};\n"

/** They differ in which choices mean something. */
static const char *const jobs[] = {
    SMALL TRAIN,
    SMALL TRAIN LOCAL,
    SMALL "}; train: { micro_batch_size = 1; params_dtype = \"bfloat16\"; "
          "gradient_accumulation_fusion = false; };\n" LOCAL,
    SMALL "}; train: { micro_batch_size = 1; params_dtype = \"bfloat16\"; "
          "check_for_nan_in_loss_and_grad = false; };\n",
    SMALL TRAIN LOCAL "moe: { num_experts = 2; };\n",
    SMALL "multi_latent_attention = true; position_embedding_type = \"rope\"; "
          "normalization = \"RMSNorm\"; " TRAIN LOCAL,
    SMALL TRAIN "parallel: { world_size = 4; context = 4; "
                "context_heads = 2; cp_comm_type = \"a2a+p2p\"; };\n",
    SMALL "attention_dropout = 0.0; " TRAIN,
    SMALL "attention_dropout = 0.0; " TRAIN
          "parallel: { world_size = 4; context = 4; };\n",
    SMALL TRAIN "parallel: { world_size = 2; };\n"
                "optimizer: { distributed = true; precision_aware = true; };\n"
                "impl: { optimizer = \"fused\"; };\n",
    SMALL TRAIN "recompute: { granularity = \"full\"; num_layers = 1; };\n",
    TREE("", ""),
    TREE("input_dtype = \"bfloat16\"; ", "to = \"bfloat16\"; "),
    TREE("input_dtype = \"float16\"; ", "to = \"float16\"; "),
    TREE("data_parallel = \"fully_shard\"; ",
         "") "parallel: { world_size = 2; };\n",
    "framework = \"torch\";\n"
    "torch: { input_shape = \"(4, 8)\"; input_dtype = \"int64\"; };\n"
    "module: { class = \"Embedding\"; num_embeddings = 16; "
    "embedding_dim = 16; };\n",
};

/** @return does the job run with that setting? If not, a line says why. */
static bool runs(const char *text, const me_option *option, const char *word)
{
    test_job j = {.config = me_config_create()};
    me_rank_result *result = NULL;
    me_diag diag = {.status = ME_OK};
    char line[ME_DIAG_LINE] = "";
    assert_non_null(j.config);
    me_status status =
        me_config_read_text(j.config, "job.cfg", text, strlen(text), &diag);
    assert_int_equal(status, ME_OK);
    status = me_config_set(j.config, option->name, word, &diag);
    if (status == ME_OK) {
        status = test_job_plan(&j, &diag);
    }
    if (status == ME_OK) {
        status = test_job_run(&j, 0, &diag, &result);
    }
    me_diag_line(&diag, line);
    assert_true(status == ME_OK || status == ME_ERR_CONFIG ||
                status == ME_ERR_UNSUPPORTED);
    assert_int_equal(status == ME_OK, line[0] == '\0');
    me_rank_result_destroy(result);
    test_job_fini(&j);
    return status == ME_OK;
}

/** Words of a list that several options share, of which these take fewer. */
static const char *const refused[][2] = {
    {"optimizer.main_grads_dtype", "fp16"},
    {"optimizer.main_grads_dtype", "fp8"},
    {"optimizer.main_params_dtype", "bf16"},
    {"optimizer.main_params_dtype", "fp8"},
};

static bool may_run(const char *option, const char *word)
{
    bool may = true;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        may = may && (strcmp(refused[i][0], option) != 0 ||
                      strcmp(refused[i][1], word) != 0);
    }
    return may;
}

static void check_word(const me_option *option, const char *word)
{
    int n_runs = 0;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        n_runs += runs(jobs[i], option, word) ? 1 : 0;
    }
    if ((n_runs > 0) != may_run(option->name, word)) {
        fail_msg("%s = %s runs in %d jobs", option->name, word, n_runs);
    }
}

static void test_choices__each_runs(void **state)
{
    (void)state;
    size_t n_options = 0;
    const me_option *options = me_options(&n_options);
    for (size_t i = 0; i < n_options; i++) {
        const me_choice *choice = options[i].words;
        for (; choice != NULL && choice->word != NULL; choice++) {
            check_word(&options[i], choice->word);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices__each_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
