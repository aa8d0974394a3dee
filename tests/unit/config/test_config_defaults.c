/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job without a word about it is made of: the same wherever the model
 * comes from, and said where no launch command means it by silence. */
#include "config/huggingface/huggingface.h"
#include "job.h"

#include <stdio.h>

#define SAID "layers are Transformer Engine's with core attention te_fused"

/** A model of one layer as a file, as Hugging Face's, and as flags. */
static const char file[] =
    "model = { num_layers = 1; hidden_size = 64; num_attention_heads = 2;"
    " vocab_size = 100; normalization = \"RMSNorm\"; };"
    "train = { params_dtype = \"bfloat16\"; };";
static const char hugging_face[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 64,"
    " \"intermediate_size\": 128, \"num_attention_heads\": 2,"
    " \"vocab_size\": 100}";
static const char *const flags[] = {"--num-layers",
                                    "1",
                                    "--hidden-size",
                                    "64",
                                    "--num-attention-heads",
                                    "8",
                                    "--seq-length",
                                    "64",
                                    "--max-position-embeddings",
                                    "64",
                                    "--vocab-size",
                                    "100",
                                    "--micro-batch-size",
                                    "1",
                                    "--bf16"};

typedef enum source {
    FROM_FILE,
    FROM_HUGGING_FACE,
    FROM_PRESET,
    FROM_LAUNCH,
    FROM_PRESET_AND_LAUNCH,
    SOURCES
} source;

static me_config *read_source(source from)
{
    me_config *config = me_config_create();
    assert_non_null(config);
    if (from == FROM_FILE) {
        assert_int_equal(
            me_config_read_text(config, "job.cfg", file, strlen(file), NULL),
            ME_OK);
    } else if (from == FROM_HUGGING_FACE) {
        assert_int_equal(me_huggingface_read(config, "config.json",
                                             hugging_face, strlen(hugging_face),
                                             NULL),
                         ME_OK);
    } else if (from == FROM_PRESET || from == FROM_PRESET_AND_LAUNCH) {
        assert_int_equal(
            me_config_read_file(
                config, SOURCE_DIR "/configs/models/llama-3-8b.cfg", NULL),
            ME_OK);
    }
    if (from == FROM_LAUNCH || from == FROM_PRESET_AND_LAUNCH) {
        assert_int_equal(
            me_config_read_launch(config, COUNT_OF(flags), flags, NULL), ME_OK);
    }
    return config;
}

/** Set what every job needs, and @p settings, with one blank between. */
static void set_all(me_config *config, const char *settings)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "model.seq_length=64 train.micro_batch_size=1%s%s",
                   settings[0] == '\0' ? "" : " ", settings);
    for (char *at = text; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        const bool is_last = at[n] == '\0';
        at[n] = '\0';
        assert_int_equal(me_config_set_assignment(config, at, NULL), ME_OK);
        at += n + (is_last ? 0 : 1);
    }
}

static bool says(const me_config *config, const char *part)
{
    for (int32_t i = 0; i < config->assumptions.count; i++) {
        if (strstr(config->assumptions.flags[i].note, part) != NULL) {
            return true;
        }
    }
    return false;
}

static void test_defaults__of_all_sources(void **state)
{
    (void)state;
    for (int from = 0; from < SOURCES; from++) {
        me_config *config = read_source((source)from);
        set_all(config, "");
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->impl.transformer, ME_TRANSFORMER_ENGINE);
        assert_int_equal(config->impl.core_attention,
                         ME_CORE_ATTENTION_TE_FUSED);
        assert_int_equal(config->impl.optimizer, ME_OPTIMIZER_FUSED);
        assert_int_equal(says(config, SAID),
                         from != FROM_LAUNCH && from != FROM_PRESET_AND_LAUNCH);
        me_config_destroy(config);
    }
}

/* Without what local layers have of Transformer Engine. */
#define UNFUSED                                                                \
    "train.gradient_accumulation_fusion=false train.apply_rope_fusion=false"

/* What is given holds, and a core attention names whose the layers are. */
static void test_defaults__what_is_given(void **state)
{
    static const struct {
        const char *settings;
        me_transformer_impl transformer;
        me_core_attention_kind attention;
        me_optimizer_impl optimizer;
    } cases[] = {
        {"impl.transformer=local", ME_TRANSFORMER_LOCAL,
         ME_CORE_ATTENTION_UNFUSED, ME_OPTIMIZER_FUSED},
        {"impl.core_attention=sdpa_flash", ME_TRANSFORMER_LOCAL,
         ME_CORE_ATTENTION_SDPA_FLASH, ME_OPTIMIZER_FUSED},
        {"impl.core_attention=unfused " UNFUSED, ME_TRANSFORMER_LOCAL,
         ME_CORE_ATTENTION_UNFUSED, ME_OPTIMIZER_TORCH_FOREACH},
        {"impl.transformer=local impl.importable=transformer_engine " UNFUSED,
         ME_TRANSFORMER_LOCAL, ME_CORE_ATTENTION_UNFUSED, ME_OPTIMIZER_FUSED},
        {"impl.transformer=local impl.importable=apex " UNFUSED,
         ME_TRANSFORMER_LOCAL, ME_CORE_ATTENTION_UNFUSED, ME_OPTIMIZER_FUSED},
        {"impl.transformer=local impl.optimizer=torch_foreach",
         ME_TRANSFORMER_LOCAL, ME_CORE_ATTENTION_UNFUSED,
         ME_OPTIMIZER_TORCH_FOREACH},
        {"impl.core_attention=te_unfused", ME_TRANSFORMER_ENGINE,
         ME_CORE_ATTENTION_TE_UNFUSED, ME_OPTIMIZER_FUSED},
        {"impl.transformer=transformer_engine", ME_TRANSFORMER_ENGINE,
         ME_CORE_ATTENTION_TE_FUSED, ME_OPTIMIZER_FUSED},
        {"impl.core_attention=sdpa_flash impl.optimizer=fused",
         ME_TRANSFORMER_LOCAL, ME_CORE_ATTENTION_SDPA_FLASH,
         ME_OPTIMIZER_FUSED},
        {"impl.transformer=transformer_engine impl.optimizer=torch_foreach",
         ME_TRANSFORMER_ENGINE, ME_CORE_ATTENTION_TE_FUSED,
         ME_OPTIMIZER_TORCH_FOREACH},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int from = 0; from < SOURCES; from++) {
            me_config *config = read_source((source)from);
            set_all(config, cases[i].settings);
            assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
            assert_int_equal(config->impl.transformer, cases[i].transformer);
            assert_int_equal(config->impl.core_attention, cases[i].attention);
            assert_int_equal(config->impl.optimizer, cases[i].optimizer);
            assert_false(says(config, SAID));
            me_config_destroy(config);
        }
    }
    me_config *config = read_source(FROM_FILE);
    me_diag diag = {0};
    set_all(config, "impl.transformer=transformer_engine "
                    "impl.core_attention=sdpa_flash");
    assert_int_equal(me_config_finish(config, 1, &diag), ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "needs impl.transformer = local"));
    me_config_destroy(config);
}

/** The sentences that rest on options, one a line. */
static void append_rests(const me_config *config, me_str *text)
{
    for (int32_t i = 0; i < config->assumptions.count; i++) {
        const me_flag_note *said = &config->assumptions.flags[i];
        if (said->flag[0] != '\0') {
            me_str_printf(text, "%s: %s\n", said->flag, said->note);
        }
    }
}

/** Finish, dump and destroy a job. */
static void dump(me_config *config, me_str *text, me_str *rests)
{
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    append_rests(config, rests);
    me_config_dump(config, text);
    me_config_destroy(config);
}

/* A dump gives every option, and says what nobody gave. */
static void test_defaults__a_dump_says_the_same(void **state)
{
    static const char *const settings[] = {
        "", "impl.transformer=local",
        ("impl.transformer=local parallel.sequence=true " UNFUSED),
        "impl.attention_backend=flash"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        for (int from = 0; from < SOURCES; from++) {
            me_str first = {0};
            me_str second = {0};
            me_str said = {0};
            me_str said_again = {0};
            me_config *config = read_source((source)from);
            set_all(config, settings[i]);
            dump(config, &first, &said);
            dump(job_from_text(me_str_text(&first)), &second, &said_again);
            assert_true(said.length > 0);
            assert_string_equal(me_str_text(&said), me_str_text(&said_again));
            assert_string_equal(me_str_text(&first), me_str_text(&second));
            me_str_fini(&first);
            me_str_fini(&second);
            me_str_fini(&said);
            me_str_fini(&said_again);
        }
    }
}

/* Once an option that was assumed is given, nothing is assumed of it. */
static void test_defaults__a_dump_that_is_changed(void **state)
{
    static const struct {
        const char *from, *to; /**< in the text */
        const char *settings;  /**< over it */
        bool is_said;
    } cases[] = {
        {"", "", "", true},
        {"", "", "impl.importable=none", false},
        {"importable = \"none\"", "importable = \"apex\"", "", false},
        {"", "", "impl.norm=torch", true},
    };

    (void)state;
    me_str text = {0};
    me_str rests = {0};
    me_config *config = read_source(FROM_LAUNCH);
    set_all(config, "impl.transformer=local " UNFUSED);
    dump(config, &text, &rests);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *at = strstr(me_str_text(&text), cases[i].from);
        assert_non_null(at);
        me_str changed = {0};
        me_str_append_n(&changed, me_str_text(&text),
                        (size_t)(at - me_str_text(&text)));
        me_str_printf(&changed, "%s%s", cases[i].to,
                      at + strlen(cases[i].from));
        me_config *back = job_from_text(me_str_text(&changed));
        set_all(back, cases[i].settings);
        assert_int_equal(me_config_finish(back, 1, NULL), ME_OK);
        assert_int_equal(says(back, "Engine cannot be imported: the optimizer"),
                         cases[i].is_said);
        me_config_destroy(back);
        me_str_fini(&changed);
    }
    me_str_fini(&text);
    me_str_fini(&rests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults__of_all_sources),
        cmocka_unit_test(test_defaults__what_is_given),
        cmocka_unit_test(test_defaults__a_dump_says_the_same),
        cmocka_unit_test(test_defaults__a_dump_that_is_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
