/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_job.h"
#include "config/config_private.h"
#include "config/framework.h"
#include "config/options.h"

/** What core_v0.19.0 stops at and a fork or an earlier version need not, and takes
 *  no memory: the sign of one that a job has, "" is none. */
static const struct {
    const char *added;
    const char *variable;
    const char *taken;
    const char *sign;
    const char *stops;
} cases[] = {
    {"--save x", "", "", "--use-mpi",
     "--save needs --save-interval or --persistent-save-interval"},
    {"--data-path a --train-data-path b", "", "--mock-data",
     "--dataset LLama-Pretrain-Raw",
     "--data-path and --train-data-path exclude each other: give one"},
    {"--train-samples 100 --lr 1e-4", "", "", "--normalization rmsnorm",
     "--train-iters and --train-samples exclude each other: give one"},
    {"--lr 1e-5 --min-lr 1e-4", "", "", "--use-mpi",
     "--min-lr 1e-4: must be at most --lr, 1e-05"},
    {"--tensor-model-parallel-size 2", "CUDA_DEVICE_MAX_CONNECTIONS=8", "",
     "--enable-zb-runtime",
     "CUDA_DEVICE_MAX_CONNECTIONS=8 must be 1 with parallel.tensor"},
};

/** The texts of what is assumed, one behind the other. */
static bool assumes(const me_config *config, const char *text)
{
    bool is_there = false;
    for (int i = 0; i < config->assumptions.count; i++) {
        is_there =
            is_there || strstr(config->assumptions.flags[i].note, text) != NULL;
    }
    return is_there;
}

/** A card is chosen after a job is finished. */
static me_status check_card(me_config *config, me_diag *diag)
{
    return me_framework_traits_of(config)->check_card(config, 90, diag);
}

static void test_fork_signs__passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int has_sign = 0; has_sign < 2; has_sign++) {
            char added[256];
            me_diag diag = {0};
            me_config *config = NULL;
            (void)snprintf(added, sizeof added, "%s %s", cases[i].added,
                           has_sign ? cases[i].sign : "");
            me_status status = make_job(added, cases[i].variable,
                                        cases[i].taken, &diag, &config);
            if (status == ME_OK) {
                status = check_card(config, &diag);
            }
            assert_int_equal(status, has_sign ? ME_OK : ME_ERR_CONFIG);
            if (has_sign) {
                assert_true(assumes(config, cases[i].stops));
            } else {
                assert_non_null(strstr(diag.text, cases[i].stops));
                assert_non_null(strstr(diag.text, "--unknown warn"));
            }
            me_config_destroy(config);
        }
    }
}

/** What a fork cannot mean stays refused. */
static void test_fork_signs__refuses(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "--use-mpi --fp16",
        "--use-mpi --swiglu --squared-relu",
        "--use-mpi --tensor-model-parallel-size 3",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(read_job(wrong[i], "", "", NULL), ME_ERR_CONFIG);
    }
}

/** Before core_v0.11.0 the variables alone chose an attention. */
static void test_fork_signs__attention(void **state)
{
    (void)state;
    me_config *config = NULL;
    assert_int_equal(
        make_job("--use-mpi", "NVTE_FUSED_ATTN=0", "", NULL, &config), ME_OK);
    assert_int_equal(config->impl.attention_backend,
                     ME_ATTENTION_BACKEND_FLASH);
    assert_true(assumes(config, "attention is flash"));
    me_config_destroy(config);
}

/** A folder on the way to the script, a name of its own, what was asked for. */
static void test_fork_signs__folders(void **state)
{
    (void)state;

    static const struct {
        const char *script;
        const char *sign;
    } scripts[] = {
        {"pretrain_gpt.py", NULL},
        {"/opt/Megatron-LM/pretrain_gpt.py", NULL},
        {"/opt/Megatron-LM-core_v0.19.0/pretrain_gpt.py", NULL},
        {"/opt/megatron-core_r0.8.0/pretrain_gpt.py", "megatron-core_r0.8.0"},
        {"/w/Megatron-LM-240405/pretrain_gpt.py", "Megatron-LM-240405"},
        {"/w/LLM-jp-v3/pretrain_gpt.py", "LLM-jp-v3"},
        {"../Megatron-DeepSpeed/pretrain_gpt.py", "Megatron-DeepSpeed"},
        {"/w/pretrain_llama.py", "pretrain_llama.py"},
    };

    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        const char *words[] = {scripts[i].script, "--num-layers", "2",
                               "--hidden-size", "64"};
        me_config *config = me_config_create();
        assert_int_equal(
            me_config_read_launch(config, COUNT_OF(words), words, NULL), ME_OK);
        if (scripts[i].sign == NULL) {
            assert_null(config->own->fork_sign);
        } else {
            assert_string_equal(config->own->fork_sign, scripts[i].sign);
        }
        me_config_destroy(config);
    }
    me_config *config = me_config_create();
    me_config_take_unknown(config);
    const char *words[] = {"pretrain_gpt.py", "--num-layers", "2"};
    assert_int_equal(
        me_config_read_launch(config, COUNT_OF(words), words, NULL), ME_OK);
    assert_string_equal(config->own->fork_sign, "--unknown warn");
    me_config_destroy(config);
}

/** A dump of such a job is one as well. */
static void test_fork_signs__dump(void **state)
{
    (void)state;
    me_config *config = NULL;
    me_str text = {0};
    assert_int_equal(make_job("--use-mpi --tensor-model-parallel-size 2",
                              "CUDA_DEVICE_MAX_CONNECTIONS=8", "", NULL,
                              &config),
                     ME_OK);
    me_config *copy = me_config_clone(config);
    assert_string_equal(copy->own->fork_sign, "--use-mpi");
    me_config_dump(copy, &text);
    assert_non_null(strstr(me_str_text(&text), "fork = \"--use-mpi\";"));
    me_config_destroy(copy);
    me_config_destroy(config);
    config = me_config_create();
    assert_int_equal(me_config_read_text(config, "dump", me_str_text(&text),
                                         text.length, NULL),
                     ME_OK);
    assert_int_equal(me_config_finish(config, 8, NULL), ME_OK);
    assert_int_equal(check_card(config, NULL), ME_OK);
    me_str_fini(&text);
    me_config_destroy(config);
}

/** FlagScale: int(int(4 x 1024 x 2 / 3) x 1.3) = 3549, up to a multiple of 256; its
 *  own width goes first, and the factor needs the multiple. */
static void test_forks__width(void **state)
{
    (void)state;

    static const struct {
        const char *added;
        uint64_t width;
    } widths[] = {
        {"--swiglu --multiple-of 256 --hidden-dim-multiplier 1.3", 3584},
        {"--swiglu --multiple-of 256", 2816},
        {"--swiglu --multiple-of 1", 2730},
        {"--swiglu --hidden-dim-multiplier 1.3", 2688},
        {"--multiple-of 256", 4096},
        {"--swiglu --multiple-of 256 --ffn-hidden-size 512", 512},
    };

    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        me_config *config = NULL;
        assert_int_equal(make_job(widths[i].added, "", "", NULL, &config),
                         ME_OK);
        assert_int_equal(config->model.ffn_hidden_size, widths[i].width);
        assert_int_equal(config->not_modelled.count, 0);
        me_config_destroy(config);
    }
    static const char *const wrong[] = {
        "--swiglu --multiple-of 0", "--swiglu --multiple-of -1",
        "--swiglu --multiple-of 8 --hidden-dim-multiplier 0"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(read_job(wrong[i], "", "", NULL), ME_ERR_CONFIG);
    }
}

/** The reach of what is not modelled of that name; none: it is not named. */
static me_reach lower_of(const me_config *config, const char *name)
{
    for (int i = 0; i < config->not_modelled.count; i++) {
        if (strstr(config->not_modelled.flags[i].flag, name) != NULL) {
            return config->not_modelled.flags[i].effect.lower;
        }
    }
    return ME_REACH_NONE;
}

/** Experts with biases in a fused activation, which core_v0.19.0 refuses. */
static void test_forks__biases(void **state)
{
    (void)state;
    static const char experts[] = "--num-experts 8 --moe-router-topk 2";
    char added[128];
    me_config *config = NULL;
    assert_int_equal(read_job(experts, "", "", NULL), ME_ERR_CONFIG);
    (void)snprintf(added, sizeof added, "%s --use-mpi", experts);
    assert_int_equal(make_job(added, "", "", NULL, &config), ME_OK);
    assert_false(config->train.bias_gelu_fusion);
    assert_int_equal(lower_of(config, "experts' biases"), ME_REACH_SOME);
    me_config_destroy(config);
    (void)snprintf(added, sizeof added, "%s --use-mpi --disable-bias-linear",
                   experts);
    assert_int_equal(make_job(added, "", "", NULL, &config), ME_OK);
    assert_int_equal(lower_of(config, "experts' biases"), ME_REACH_NONE);
    me_config_destroy(config);
}

/** Zero bubble's fork: six layers of four stages are eight. */
static void test_forks__padding(void **state)
{
    (void)state;
    static const char job[] = "--num-layers 6 --pipeline-model-parallel-size 4";
    char added[128];
    me_config *config = NULL;
    assert_int_equal(read_job(job, "", "--num-layers", NULL), ME_ERR_CONFIG);
    (void)snprintf(added, sizeof added, "%s --allow-padding-num-layers", job);
    assert_int_equal(make_job(added, "", "--num-layers", NULL, &config), ME_OK);
    assert_int_equal(config->model.num_layers, 8);
    assert_true(assumes(config, "8 layers are estimated"));
    me_config_destroy(config);
}

/** Flags of v2.5 and of Habana's fork in whose company others mean something. */
static void test_forks__company(void **state)
{
    (void)state;
    static const char *const flags[][2] = {
        {"--checkpoint-activations", "--data-impl mmap"},
        {"--num-experts 8 --moe-router-topk 2 --disable-bias-linear "
         "--moe-pad-expert-input-to-capacity",
         "--moe-capacity-bins-num 10"},
    };
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        char added[256];
        assert_int_equal(read_job(flags[i][0], "", "", NULL), ME_ERR_CONFIG);
        (void)snprintf(added, sizeof added, "%s %s", flags[i][0], flags[i][1]);
        assert_int_equal(read_job(added, "", "", NULL), ME_OK);
    }
}

/* Switches of today that earlier versions give a value, and forks none or one. */
static void test_forks__switches_with_a_value(void **state)
{
    (void)state;
    static const char *const added[] = {"--lazy-mpu-init 1", "--lazy-mpu-init",
                                        "--no-shared-fs x", "--no-shared-fs"};
    for (size_t i = 0; i < COUNT_OF(added); i++) {
        me_diag diag = {0};
        me_config *config = NULL;
        assert_int_equal(make_job(added[i], "", "", &diag, &config), ME_OK);
        assert_int_equal(config->not_modelled.count, 0);
        me_config_destroy(config);
    }
}

/** Megatron-LM evaluates where there are more iterations than 0 alone. */
static void test_forks__no_evaluation(void **state)
{
    (void)state;
    me_config *config = NULL;
    assert_int_equal(make_job("--eval-iters -1", "", "", NULL, &config), ME_OK);
    assert_int_equal(config->train.eval_iters, 0);
    assert_false(config->train.evaluates);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_signs__passes),
        cmocka_unit_test(test_fork_signs__refuses),
        cmocka_unit_test(test_fork_signs__attention),
        cmocka_unit_test(test_fork_signs__folders),
        cmocka_unit_test(test_fork_signs__dump),
        cmocka_unit_test(test_forks__width),
        cmocka_unit_test(test_forks__biases),
        cmocka_unit_test(test_forks__padding),
        cmocka_unit_test(test_forks__company),
        cmocka_unit_test(test_forks__switches_with_a_value),
        cmocka_unit_test(test_forks__no_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
