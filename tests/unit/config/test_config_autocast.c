/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

/** What stands in `torch` and `parallel`, the model, and what is said of it;
 *  "" is a job that is right. */
typedef struct job_case {
    const char *torch;
    const char *parallel;
    const char *module;
    const char *part;
} job_case;

#define NORM "class = \"LayerNorm\"; normalized_shape = 8;"
#define IMAGES                                                                 \
    "class = \"Sequential\";\n"                                                \
    "conv: { class = \"Conv2d\"; in_channels = 8; out_channels = 8; "          \
    "kernel_size = 1; };"
#define STAGES "class = \"Sequential\"; a: { " NORM " }; b: { " NORM " };"
#define PLAN                                                                   \
    "up: { class = \"Linear\"; in_features = 8; out_features = 8; };\n"        \
    "parallelize_plan: { a: { module = \"up\"; style = "                       \
    "\"RowwiseParallel\"; }; };"
#define FP16 "autocast = \"float16\"; grad_scaler = true; "
#define BF16 "autocast = \"bfloat16\"; "

static const job_case cases[] = {
    {"", "", NORM, ""},
    {BF16, "", NORM, ""},
    {FP16, "", NORM, ""},
    {"grad_scaler = true;", "", NORM, ""},
    {FP16 "data_parallel = \"ddp\";", "world_size = 2;", NORM, ""},
    {BF16 "data_parallel = \"fully_shard\";", "world_size = 2;", NORM, ""},
    {BF16, "", "a: { " NORM " checkpoint = true; };", ""},
    {BF16, "", "a: { " NORM " checkpoint = \"reentrant\"; };", ""},
    {FP16, "", "a: { " NORM " checkpoint = \"reentrant\"; };", ""},
    {FP16 "data_parallel = \"fully_shard\";", "world_size = 2;", NORM, ""},
    {BF16 "data_parallel = \"fully_shard\"; param_dtype = \"bfloat16\";",
     "world_size = 2;", NORM, ""},
    {BF16 "data_parallel = \"fully_shard\"; cpu_offload = true;",
     "world_size = 2;", NORM, ""},
    {FP16 "data_parallel = \"fully_shard\"; cpu_offload = true;",
     "world_size = 2;", NORM, ""},
    {"grad_scaler = true;", "world_size = 2; tensor = 2;", PLAN, ""},
    {"grad_scaler = true; loss_parallel = true;", "world_size = 2; tensor = 2;",
     PLAN, ""},
    {BF16, "", IMAGES, "torch.autocast with Conv2d is not modelled"},
    {"grad_scaler = true;", "", IMAGES, ""},
    {BF16, "world_size = 2; pipeline = 2;", STAGES, ""},
    {FP16, "world_size = 2; pipeline = 2;", STAGES, ""},
    {BF16 "data_parallel = \"fully_shard\";", "world_size = 4; pipeline = 2;",
     STAGES, ""},
    {FP16 "data_parallel = \"ddp\";", "world_size = 4; pipeline = 2;", STAGES,
     ""},
    {BF16 "autocast_backward = true;", "world_size = 2; pipeline = 2;", STAGES,
     ""},
    {BF16 "autocast_backward = true;", "", NORM,
     "torch.autocast_backward = true is modelled with torch.autocast and "
     "parallel.pipeline over 1 alone"},
    {"autocast_backward = true;", "world_size = 2; pipeline = 2;", STAGES,
     "torch.autocast_backward = true is modelled with torch.autocast"},
    {BF16, "world_size = 2; tensor = 2;", PLAN, ""},
    {BF16 "data_parallel = \"fully_shard\";", "world_size = 4; tensor = 2;",
     PLAN, ""},
    {FP16, "world_size = 2; tensor = 2;", PLAN, ""},
    {FP16 "data_parallel = \"ddp\";", "world_size = 4; tensor = 2;", PLAN, ""},
};

static void test_autocast__what_goes_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[1024] = "";
        (void)snprintf(text, sizeof text,
                       "framework = \"torch\"; parallel: { %s };\n"
                       "pipeline: { schedule = \"%s\"; };\n"
                       "torch: { input_shape = \"(4, 8)\"; %s };\n"
                       "module: { %s };",
                       cases[i].parallel,
                       strstr(cases[i].parallel, "pipeline") == NULL
                           ? ""
                           : "ScheduleGPipe",
                       cases[i].torch, cases[i].module);
        me_diag diag = {0};
        const me_status status = finish_text(text, &diag);
        const bool is_right = cases[i].part[0] == '\0';
        if ((status == ME_OK) != is_right ||
            strstr(diag.text, cases[i].part) == NULL) {
            fail_msg("case %zu: %s", i, diag.text);
        }
    }
}

static bool assumes(const me_config *config, const char *part)
{
    bool found = false;
    for (int32_t i = 0; i < config->assumptions.count; i++) {
        found =
            found || strstr(config->assumptions.flags[i].note, part) != NULL;
    }
    return found;
}

/** That no step is skipped cannot be known, and is said. */
static void test_autocast__says_what_it_assumes(void **state)
{
    (void)state;
    for (int scales = 0; scales <= 1; scales++) {
        char text[512] = "";
        (void)snprintf(text, sizeof text,
                       "framework = \"torch\";\n"
                       "torch: { input_shape = \"(4, 8)\"; autocast = "
                       "\"float16\"; grad_scaler = %s; };\n"
                       "module: { " NORM " };",
                       scales == 1 ? "true" : "false");
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_int_equal(
            me_config_read_text(config, "job.cfg", text, strlen(text), &diag),
            ME_OK);
        assert_int_equal(me_config_finish(config, 0, &diag), ME_OK);
        assert_int_equal(assumes(config, "the GradScaler skips no step"),
                         scales);
        me_config_destroy(config);
    }
}

/** Ranks without a loss have to make the scaler's numbers themselves. */
static void test_autocast__says_who_scales_in_a_pipeline(void **state)
{
    (void)state;
    for (int scales = 0; scales <= 1; scales++) {
        char text[512] = "";
        (void)snprintf(
            text, sizeof text,
            "framework = \"torch\"; parallel: { world_size = 2; "
            "pipeline = 2; };\n"
            "pipeline: { schedule = \"ScheduleGPipe\"; };\n"
            "torch: { input_shape = \"(4, 8)\"; grad_scaler = %s; };\n"
            "module: { " STAGES " };",
            scales == 1 ? "true" : "false");
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_int_equal(
            me_config_read_text(config, "job.cfg", text, strlen(text), &diag),
            ME_OK);
        assert_int_equal(me_config_finish(config, 0, &diag), ME_OK);
        assert_int_equal(assumes(config, "_lazy_init_scale_growth_tracker"),
                         scales);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_autocast__what_goes_together),
        cmocka_unit_test(test_autocast__says_what_it_assumes),
        cmocka_unit_test(test_autocast__says_who_scales_in_a_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
