/* SPDX-License-Identifier: BSD-3-Clause */
/* Which attention Transformer Engine takes, on which card: its
 * get_attention_backend() and nvte_get_fused_attn_backend() of 2.17.1 with cuDNN
 * 9.19. */
#include "config/framework.h"
#include "job.h"

#include <stdio.h>

#define TE "impl.transformer=transformer_engine model.attention_dropout=0 "
#define LATENT                                                                 \
    TE "model.multi_latent_attention=true "                                    \
       "model.position_embedding_type=rope "
#define BARE    "impl.flash_attn=none "
#define WINDOW  "model.window_attention=true model.attention_dropout=0.1 "
#define FLASH_3 TE "impl.flash_attn=2+3 impl.attention_backend=flash "
#define FLASH_4 TE "impl.flash_attn=2+4 impl.attention_backend=flash "
#define FLAGS                                                                  \
    "--num-layers", "8", "--hidden-size", "512", "--num-attention-heads", "8", \
        "--seq-length", "128", "--max-position-embeddings", "128",             \
        "--vocab-size", "1000", "--micro-batch-size", "1", "--bf16",           \
        "--attention-dropout", "0"
#define SINK TE "model.softmax_type=learnable "

enum {
    A100 = 80,
    L40S = 89,
    H100 = 90,
    B200 = 100,
    RTX = 120
};

static const struct {
    const char *options;
    uint64_t capability; /**< ten times the card's */
    me_core_attention_kind kind;
    const char *refused; /**< NULL: it is not */
} cases[] = {
    {TE, H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {TE, A100, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {TE BARE, A100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {TE "impl.flash_attn=2", H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {TE "impl.attention_backend=flash", H100, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {TE "impl.attention_backend=fused", A100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {TE "impl.flash_attn=2 model.kv_channels=264", H100,
     ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "impl.flash_attn=2 model.kv_channels=256", L40S,
     ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "impl.flash_attn=2 train.params_dtype=float32", A100,
     ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "impl.flash_attn=2 " WINDOW, H100, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {TE "model.qk_clip=true", H100, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "model.log_max_attention_logit=true impl.flash_attn=2", A100,
     ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE, 75, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "model.kv_channels=256", H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {TE BARE "model.kv_channels=192", A100, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "model.kv_channels=256", L40S, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "model.kv_channels=256", B200, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "model.kv_channels=264", H100, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "model.kv_channels=100", H100, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "train.deterministic_mode=true", H100, ME_CORE_ATTENTION_TE_FUSED,
     NULL},
    {TE BARE "train.deterministic_mode=true", A100,
     ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "train.deterministic_mode=true", A100, ME_CORE_ATTENTION_TE_FLASH,
     NULL},
    {TE "train.deterministic_mode=true", B200, ME_CORE_ATTENTION_TE_FUSED,
     NULL},
    {TE "train.deterministic_mode=true model.attention_dropout=0.1", B200,
     ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {TE "train.deterministic_mode=true", RTX, ME_CORE_ATTENTION_TE_UNFUSED,
     NULL},
    {SINK, H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {SINK "train.deterministic_mode=true", H100, ME_CORE_ATTENTION_TE_UNFUSED,
     NULL},
    {TE "model.window_attention=true", H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {TE WINDOW, H100, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {LATENT, H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {LATENT, B200, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {LATENT BARE, A100, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {LATENT, A100, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {LATENT "model.qk_head_dim=96", H100, ME_CORE_ATTENTION_TE_UNFUSED, NULL},
    {LATENT "model.qk_head_dim=32 model.v_head_dim=64", H100,
     ME_CORE_ATTENTION_TE_FUSED, NULL},
    {TE "model.kv_channels=256 impl.core_attention=te_fused", A100,
     ME_CORE_ATTENTION_TE_FUSED,
     "impl.core_attention = te_fused needs cuDNN's attention, which does not go "
     "with heads of more than 128 columns on that card, of compute capability "
     "8.0"},
    {TE "impl.core_attention=te_fused", 75, ME_CORE_ATTENTION_TE_FUSED,
     "does not go with a card before compute capability 8.0"},
    {TE "train.deterministic_mode=true impl.core_attention=te_fused", RTX,
     ME_CORE_ATTENTION_TE_FUSED, "does not go with determinism on that card"},
    {TE "model.kv_channels=256 impl.attention_backend=fused", A100,
     ME_CORE_ATTENTION_TE_UNFUSED,
     "impl.attention_backend = fused (--attention-backend) does not go with "
     "heads of more than 128 columns on that card: Transformer Engine stops, "
     "since no attention is left"},
    {TE "model.kv_channels=256 impl.attention_backend=flash", A100,
     ME_CORE_ATTENTION_TE_FLASH, NULL},
    {TE "train.deterministic_mode=true impl.attention_backend=flash "
        "parallel.context=2",
     A100, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {TE "impl.attention_backend=flash", 75, ME_CORE_ATTENTION_TE_UNFUSED,
     "no attention is left"},
    {TE "impl.flash_attn=2+3", H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {FLASH_3, H100, ME_CORE_ATTENTION_TE_FLASH_3, NULL},
    {FLASH_3 "impl.flash_attn=3", H100, ME_CORE_ATTENTION_TE_FLASH_3, NULL},
    {FLASH_3, A100, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {FLASH_3, B200, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {FLASH_3 "impl.flash_attn=3", B200, ME_CORE_ATTENTION_TE_UNFUSED,
     "no attention is left"},
    {FLASH_3 "model.attention_dropout=0.1", H100, ME_CORE_ATTENTION_TE_FLASH,
     NULL},
    {FLASH_3 "model.window_attention=true", H100, ME_CORE_ATTENTION_TE_FLASH_3,
     NULL},
    {FLASH_3 "parallel.context=2", H100, ME_CORE_ATTENTION_TE_FLASH_3, NULL},
    {FLASH_3 "model.kv_channels=256", H100, ME_CORE_ATTENTION_TE_FLASH_3, NULL},
    {FLASH_3 "model.kv_channels=256 train.deterministic_mode=true", H100,
     ME_CORE_ATTENTION_TE_FLASH, NULL},
    {FLASH_3 "model.kv_channels=192 train.deterministic_mode=true", H100,
     ME_CORE_ATTENTION_TE_FLASH_3, NULL},
    {FLASH_3 "model.kv_channels=100", H100, ME_CORE_ATTENTION_TE_FLASH_3,
     "heads of 100 and 100 columns"},
    {FLASH_3 LATENT, H100, ME_CORE_ATTENTION_TE_FLASH_3, NULL},
    {FLASH_3 LATENT "model.qk_head_dim=160", H100, ME_CORE_ATTENTION_TE_FLASH,
     NULL},
    {FLASH_3 LATENT "model.qk_head_dim=32 model.qk_pos_emb_head_dim=32 "
                    "model.v_head_dim=264",
     H100, ME_CORE_ATTENTION_TE_FLASH_3, "heads of 64 and 264 columns"},
    {TE "impl.core_attention=te_flash_3", H100, ME_CORE_ATTENTION_TE_FLASH_3,
     NULL},
    {TE "impl.core_attention=te_flash_3", A100, ME_CORE_ATTENTION_TE_FLASH_3,
     "needs a card of compute capability 9.0"},
    {TE "impl.flash_attn=4", H100, ME_CORE_ATTENTION_TE_FUSED, NULL},
    {FLASH_4, H100, ME_CORE_ATTENTION_TE_FLASH_4, NULL},
    {FLASH_4 "impl.flash_attn=2+3+4", H100, ME_CORE_ATTENTION_TE_FLASH_3, NULL},
    {FLASH_4 "impl.flash_attn=2+3+4", B200, ME_CORE_ATTENTION_TE_FLASH_4, NULL},
    {FLASH_4, A100, ME_CORE_ATTENTION_TE_FLASH_4,
     "stops in the first backward on a card of compute capability 8.0: "},
    {FLASH_4 "model.attention_dropout=0.1", A100, ME_CORE_ATTENTION_TE_FLASH,
     NULL},
    {FLASH_4 "parallel.context=2", H100, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {FLASH_4 "model.kv_channels=256", B200, ME_CORE_ATTENTION_TE_FLASH_4, NULL},
    {TE "impl.flash_attn=4 model.kv_channels=256", B200,
     ME_CORE_ATTENTION_TE_FLASH_4, NULL},
    {FLASH_4 "model.kv_channels=256 train.deterministic_mode=true", B200,
     ME_CORE_ATTENTION_TE_FLASH_4, "where sums must have an order"},
    {FLASH_4 "model.kv_channels=192", B200, ME_CORE_ATTENTION_TE_FLASH, NULL},
    {FLASH_4 LATENT, B200, ME_CORE_ATTENTION_TE_FLASH_4, NULL},
    {FLASH_4 LATENT "model.v_head_dim=96", B200, ME_CORE_ATTENTION_TE_FLASH,
     NULL},
    {FLASH_4 "train.deterministic_mode=true", RTX, ME_CORE_ATTENTION_TE_FLASH_4,
     "where sums must have an order"},
    {TE "impl.core_attention=te_flash_4", H100, ME_CORE_ATTENTION_TE_FLASH_4,
     NULL},
    {TE BARE "model.kv_channels=256 parallel.context=2", A100,
     ME_CORE_ATTENTION_TE_UNFUSED,
     "parallel.context over 1 needs cuDNN's attention or flash-attn, which does "
     "not go with heads of more than 128 columns on that card"},
};

static void test_attention__by_job_and_card(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_diag diag = {0};
        me_config *config = job_with(cases[i].options);
        const int32_t ranks = config->parallel.context == 2 ? 2 : 1;
        me_status status = me_config_finish(config, ranks, &diag);
        assert_string_equal(diag.text, "");
        assert_int_equal(status, ME_OK);
        status = me_framework_traits_of(config)->check_card(
            config, cases[i].capability, &diag);
        if (cases[i].refused != NULL) {
            assert_int_equal(status, ME_ERR_CONFIG);
            assert_non_null(strstr(diag.text, cases[i].refused));
        } else {
            assert_int_equal(status, ME_OK);
        }
        if (config->impl.core_attention != cases[i].kind) {
            fail_msg("%s on %d: %d", cases[i].options, (int)cases[i].capability,
                     (int)config->impl.core_attention);
        }
        me_config_destroy(config);
    }
}

/* A window keeps dropout from cuDNN's kernel in its own layers alone. */
static void test_attention__by_layer(void **state)
{
    (void)state;

    static const struct {
        const char *frequency;
        me_core_attention_kind kind;
        me_core_attention_kind within;
    } rows[] = {
        {"2", ME_CORE_ATTENTION_TE_FUSED, ME_CORE_ATTENTION_TE_UNFUSED},
        {"1", ME_CORE_ATTENTION_TE_FUSED, ME_CORE_ATTENTION_TE_FUSED},
        {"9", ME_CORE_ATTENTION_TE_UNFUSED, ME_CORE_ATTENTION_TE_UNFUSED},
        {"[1]*9", ME_CORE_ATTENTION_TE_UNFUSED, ME_CORE_ATTENTION_TE_UNFUSED},
        {"[0]+[1]*9", ME_CORE_ATTENTION_TE_FUSED, ME_CORE_ATTENTION_TE_UNFUSED},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        me_diag diag = {0};
        me_config *config = job_with(TE WINDOW);
        assert_int_equal(me_config_set(config, "model.window_attn_skip_freq",
                                       rows[i].frequency, &diag),
                         ME_OK);
        assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
        assert_string_equal(diag.text, "");
        assert_int_equal(config->impl.core_attention, rows[i].kind);
        assert_int_equal(config->impl.window_attention, rows[i].within);
        me_config_destroy(config);
    }
}

/* What was chosen for layers without a window can be given, as a configuration that
 * was printed has it: those within one take what they took. */
static void test_attention__chosen_is_given(void **state)
{
    (void)state;

    static const struct {
        const char *options;
        me_core_attention_kind within;
        const char *refused; /**< NULL: it is not */
    } rows[] = {
        {"model.window_attn_skip_freq=2", ME_CORE_ATTENTION_TE_UNFUSED, NULL},
        {"model.window_attn_skip_freq=2 impl.flash_attn=2",
         ME_CORE_ATTENTION_TE_FLASH, NULL},
        {"model.window_attn_skip_freq=1", ME_CORE_ATTENTION_TE_FUSED, NULL},
        {"", ME_CORE_ATTENTION_TE_FUSED, "no dropout within a window"},
        {"model.window_attn_skip_freq=2 impl.attention_backend=fused",
         ME_CORE_ATTENTION_TE_FUSED, "no attention is left"},
        {"model.window_attn_skip_freq=2 parallel.context=2",
         ME_CORE_ATTENTION_TE_FUSED, "windows of some layers under"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        me_diag diag = {0};
        char options[512];
        (void)snprintf(options, sizeof options,
                       TE WINDOW "impl.core_attention=te_fused %s",
                       rows[i].options);
        me_config *config = job_with(options);
        const int32_t ranks = config->parallel.context == 2 ? 2 : 1;
        const me_status status = me_config_finish(config, ranks, &diag);
        if (rows[i].refused != NULL) {
            assert_int_equal(status, ME_ERR_CONFIG);
            assert_non_null(strstr(diag.text, rows[i].refused));
        } else {
            assert_string_equal(diag.text, "");
            assert_int_equal(
                me_framework_traits_of(config)->check_card(config, H100, &diag),
                ME_OK);
            assert_int_equal(config->impl.core_attention,
                             ME_CORE_ATTENTION_TE_FUSED);
            assert_int_equal(config->impl.window_attention, rows[i].within);
        }
        me_config_destroy(config);
    }
}

/* clip_qk() looks for what Transformer Engine's attention alone keeps, below
 * Float16Module. */
static void test_attention__largest_scores_are_refused(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "impl.transformer=local model.qk_clip=true",
        TE "model.log_max_attention_logit=true train.params_dtype=float32",
    };
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        me_diag diag = {0};
        me_config *config = job_with(jobs[i]);
        assert_int_equal(me_config_finish(config, 1, &diag), ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, "Megatron-LM stops"));
        me_config_destroy(config);
    }
}

/* One back end alone is asked for, and it does not take the job on any card. */
static void test_attention__none_is_left(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        TE "impl.attention_backend=fused model.kv_channels=100",
        TE "impl.attention_backend=fused train.params_dtype=float32",
        TE "impl.attention_backend=flash train.params_dtype=float32",
        TE "impl.attention_backend=fused model.window_attention=true "
           "model.attention_dropout=0.1",
        TE "impl.attention_backend=fused model.attention_dropout=0.1 "
           "model.window_attention=true model.window_attn_skip_freq=2",
        TE "impl.attention_backend=flash model.qk_clip=true",
        TE "impl.attention_backend=fused model.qk_clip=true",
    };
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        me_diag diag = {0};
        me_config *config = job_with(jobs[i]);
        assert_int_equal(me_config_finish(config, 1, &diag), ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, "no attention is left"));
        me_config_destroy(config);
    }
}

/* flash-attn's backward of cuDNN's attention is called as no version has it, on a
 * card of compute capability 9.0 alone, and not over context ranks. */
static void test_attention__flash_backward(void **state)
{
    (void)state;

    static const struct {
        const char *variable;
        const char *more;
        const char *value;
        uint64_t capability;
        bool is_refused;
    } rows[] = {
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=1", "--attention-backend", "auto", H100,
         true},
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=1", "--attention-backend", "auto", A100,
         false},
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=1", "--attention-backend", "auto", B200,
         false},
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=1", "--attention-backend", "unfused",
         H100, false},
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=1", "--attention-backend", "flash", H100,
         false},
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=1", "--context-parallel-size", "2", H100,
         false},
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=0", "--attention-backend", "auto", H100,
         false},
        {"NVTE_FUSED_ATTN_USE_FAv2_BWD=2", "--attention-backend", "auto", H100,
         false},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *const argv[] = {rows[i].variable, "pretrain_gpt.py",
                                    rows[i].more, rows[i].value, FLAGS};
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_int_equal(
            me_config_read_launch(config, (int)COUNT_OF(argv), argv, &diag),
            ME_OK);
        const int32_t ranks =
            strcmp(rows[i].more, "--context-parallel-size") == 0 ? 2 : 1;
        assert_int_equal(me_config_finish(config, ranks, &diag), ME_OK);
        const me_status status = me_framework_traits_of(config)->check_card(
            config, rows[i].capability, &diag);
        assert_int_equal(status, rows[i].is_refused ? ME_ERR_CONFIG : ME_OK);
        assert_true(rows[i].is_refused ==
                    (strstr(diag.text, "USE_FAv2_BWD=1: Transformer Engine "
                                       "stops in the first backward") != NULL));
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention__by_job_and_card),
        cmocka_unit_test(test_attention__by_layer),
        cmocka_unit_test(test_attention__chosen_is_given),
        cmocka_unit_test(test_attention__largest_scores_are_refused),
        cmocka_unit_test(test_attention__none_is_left),
        cmocka_unit_test(test_attention__flash_backward),
        cmocka_unit_test(test_attention__flash_backward),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
