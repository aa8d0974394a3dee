/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/tree.h"
#include "job.h"

#include <stdio.h>
#include <string.h>

/* A job of one Linear, with a line of the test's in its `module` group and some
 * options beside it. */
static const char job[] = "framework = \"torch\";\n"
                          "torch: { input_shape = \"(4, 8)\"; };\n"
                          "%s\n"
                          "module:\n"
                          "{\n"
                          "%s\n"
                          "up: { class = \"Linear\"; in_features = 8; "
                          "out_features = 6; };\n"
                          "};\n";

enum {
    LINE = 6 /* of the test's own line */
};

/* Four stages of one layer each, whose backwards are split. */
#define SPLIT                                                                  \
    "parallel: { pipeline = 2; virtual_pipeline = 2; world_size = 2; }; "      \
    "pipeline: { schedule = \"ScheduleInterleavedZeroBubble\"; }; "            \
    "train: { global_batch_size = 16; };"
#define SPLIT_MODULE(checkpoint)                                               \
    "class = \"Sequential\"; a: { class = \"ReLU\"; repeat = 3; " checkpoint   \
    " };"

static const struct {
    const char *options;
    const char *module;
    int line; /* 0: the error is of the whole job */
    const char *part;
} wrong[] = {
    {"", "a: { class = \"Conv3d\"; };", LINE,
     "class: must be one of Module, Sequential, ModuleList, Linear"},
    {"", "a: { class = 4; };", LINE, "class: must be one of"},
    {"", "a: { class = \"Linear\"; in_features = 8; };", LINE,
     "Linear a needs out_features"},
    {"", "a: { class = \"Linear\"; in_features = 0; out_features = 4; };", LINE,
     "in_features: must be a whole number from 1"},
    {"", "a: { class = \"Linear\"; in_feature = 8; out_features = 4; };", LINE,
     "Linear has no 'in_feature': did you mean in_features?"},
    {"", "a: { class = \"Dropout\"; p = 2; };", LINE,
     "p: must be a number from 0 to 1"},
    {"", "a: { class = \"ReLU\"; b: { class = \"ReLU\"; }; };", LINE,
     "b: this class has no children"},
    {"", "a: { class = \"ReLU\"; repeat = 2; };", LINE,
     "repeat:  is no Sequential or ModuleList"},
    {"", "dtype = \"int8\";", LINE, "dtype: must be one of float32"},
    {"", "checkpoint = 1;", LINE, "checkpoint: must be true or false"},
    {"", "checkpoint = \"both\";", LINE,
     "checkpoint: must be true, false or \"reentrant\""},
    {"", "forward = \"return down(x)\";", LINE, "down"},
    {"", "forward = 3;", LINE, "forward: must be text in quotes"},
    {"", "device = \"tpu\";", LINE, "device: must be one of cpu, cuda"},
    {"", "parallelize_plan = 3;", LINE,
     "parallelize_plan: must be a group of groups"},
    {"", "parallelize_plan: { a: { module = \"up\"; style = \"Rows\"; }; };",
     LINE, "style: must be one of ColwiseParallel, RowwiseParallel"},
    {"", "parallelize_plan: { a: { style = \"ColwiseParallel\"; }; };", LINE,
     "ColwiseParallel needs module"},
    {"",
     "parallelize_plan: { a: { module = \"up\"; style = \"ColwiseParallel\"; "
     "output_layouts = \"Shard(9)\"; }; };",
     LINE, "output_layouts: must be Replicate or Shard(d)"},
    {"",
     "parallelize_plan: { a: { module = \"up\"; style = \"ColwiseParallel\"; "
     "sequence_dim = 1; }; };",
     LINE, "ColwiseParallel has no 'sequence_dim'"},
    {"",
     "parallelize_plan: { a: { module = \"up\"; style = \"PrepareModuleInput\"; "
     "input_layouts = \"Shard(1)\"; }; };",
     LINE, "PrepareModuleInput needs desired_input_layouts"},
    {"parallel: { tensor = 2; world_size = 2; };", "", 0,
     "parallel.tensor = 2 needs a parallelize_plan"},
    {"",
     "parallelize_plan: { a: { module = \"up\"; style = \"ColwiseParallel\"; "
     "}; };",
     0, "parallelize_plan needs parallel.tensor over 1"},
    {"parallel: { tensor = 2; world_size = 2; }; optimizer: { kind = \"sgd\"; "
     "}; impl: { optimizer = \"torch_fused\"; };",
     "parallelize_plan: { a: { module = \"up\"; style = \"ColwiseParallel\"; "
     "}; };",
     0, "optimizer.kind = \"sgd\": PyTorch has no such operation for DTensors"},
    {"parallel: { tensor = 2; pipeline = 2; world_size = 4; };",
     "parallelize_plan: { a: { module = \"up\"; style = \"ColwiseParallel\"; "
     "}; };",
     0, "parallel.pipeline over 1 is modelled with device = \"meta\" alone"},
    {"parallel: { pipeline = 2; world_size = 4; };", "", 0,
     "leave 2 copies of the model"},
    {SPLIT, SPLIT_MODULE("checkpoint = \"reentrant\";"), 0,
     "module: 0: PyTorch runs no checkpoint = \"reentrant\" in a stage whose "
     "backward is split"},
    {SPLIT, SPLIT_MODULE("checkpoint = true; checkpoint_policy = \"op\";"), 0,
     "module: 0: PyTorch runs no checkpoint_policy = \"op\" in a stage whose "
     "backward is split"},
    {"", "device = \"host\";", 0, "module: device = \"host\" wants"},
    {"parallel: { pipeline = 2; world_size = 2; };", "checkpoint = true;", 0,
     "module: checkpoint of the whole model with parallel.pipeline = 2"},
    {"",
     "a: { class = \"Sequential\"; b: { class = \"ReLU\"; repeat = 2; "
     "checkpoint_from = 2; }; };",
     6, "checkpoint_from = 2: b is there 2 times, from 0"},
    {"",
     "a: { class = \"ReLU\"; checkpoint = \"reentrant\"; checkpoint_policy = "
     "\"op\"; };",
     0, "module: a: checkpoint_policy = \"op\" wants checkpoint = true"},
    {"parallel: { tensor = 2; world_size = 2; };",
     "parallelize_plan: { a: { module = \"up\"; style = \"ColwiseParallel\"; "
     "}; }; a: { class = \"ReLU\"; checkpoint = \"reentrant\"; };",
     0, "module: a: checkpoint = \"reentrant\" with a parallelize_plan"},
};

static void test_layers__errors_say_what_would_be_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char text[1024] = "";
        (void)snprintf(text, sizeof text, job, wrong[i].options,
                       wrong[i].module);
        me_diag diag = {0};
        const me_status status = finish_text(text, &diag);
        if (strstr(diag.text, wrong[i].part) == NULL) {
            fail_msg("case %zu: %s", i, diag.text);
        }
        assert_int_equal(status, ME_ERR_CONFIG);
        assert_int_equal(diag.line, wrong[i].line);
    }
}

static const struct {
    const char *options;
    const char *part;
} wrong_sharding[] = {
    {"data_parallel = \"ddp\"; data_parallel_replicate = 2;",
     "are fully_shard's"},
    {"data_parallel = \"ddp\"; requires_gradient_sync = false;",
     "are fully_shard's"},
    {"data_parallel = \"ddp\"; cpu_offload = true;",
     "torch.cpu_offload, torch.requires_gradient_sync and"},
    {"data_parallel = \"fully_shard\"; data_parallel_replicate = 3;",
     "torch.data_parallel_replicate = 3 does not divide the 4 ranks"},
    {"data_parallel = \"fully_shard\"; loss_parallel = true;",
     "torch.loss_parallel needs a parallelize_plan in `module`"},
    {"data_parallel = \"fully_shard\"; requires_all_reduce = false;",
     "torch.requires_all_reduce = false needs copies"},
    {"data_parallel = \"fully_shard\"; data_parallel_shard = 3;",
     "torch.data_parallel_shard = 3 in 1 copies, and 4 ranks of "
     "parallel.world_size = 4 are of a batch"},
};

static void test_layers__copies_of_shards_must_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong_sharding); i++) {
        char text[512] = "";
        (void)snprintf(
            text, sizeof text,
            "framework = \"torch\"; parallel: { world_size = 4; };\n"
            "torch: { input_shape = \"(4, 8)\"; %s };\n"
            "module: { class = \"LayerNorm\"; normalized_shape = 8; };",
            wrong_sharding[i].options);
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_int_equal(
            me_config_read_text(config, "job.cfg", text, strlen(text), &diag),
            ME_OK);
        assert_int_equal(me_config_finish(config, 0, &diag), ME_ERR_CONFIG);
        if (strstr(diag.text, wrong_sharding[i].part) == NULL) {
            fail_msg("case %zu: %s", i, diag.text);
        }
        me_config_destroy(config);
    }
}

static const struct {
    const char *parallel;
    const char *torch;
    const char *module;
    const char *part;
} wrong_ddp[] = {
    {"world_size = 2;",
     "data_parallel = \"fully_shard\"; gradient_as_bucket_view = true;", "",
     "torch.gradient_as_bucket_view = true is DistributedDataParallel's"},
    {"world_size = 1;", "bucket_cap_mb = 4.0;", "",
     "torch.bucket_cap_mb is DistributedDataParallel's"},
    {"world_size = 1;", "broadcast_buffers = false;", "",
     "torch.broadcast_buffers = false is DistributedDataParallel's"},
    {"world_size = 2;", "data_parallel = \"ddp\";", "device = \"meta\";",
     "device = \"meta\" with torch.data_parallel = \"ddp\""},
    {"world_size = 2;",
     "data_parallel = \"ddp\"; static_graph = true; no_sync = true;", "",
     "torch.static_graph = true with torch.no_sync = true: PyTorch 2.11 fails"},
    {"world_size = 4; pipeline = 2;",
     "data_parallel = \"ddp\"; static_graph = true;", "",
     "torch.static_graph = true with parallel.pipeline over 1: PyTorch"},
    {"world_size = 4; pipeline = 2;",
     "data_parallel = \"ddp\"; no_sync = true;", "",
     "torch.no_sync = true with parallel.pipeline = 2"},
    {"world_size = 2;",
     "data_parallel = \"fully_shard\"; zero_grad_set_to_none = false;", "",
     "torch.zero_grad_set_to_none = false with fully_shard"},
    {"world_size = 4; pipeline = 2; virtual_pipeline = 2; }; pipeline: { "
     "schedule = \"ScheduleInterleavedZeroBubble\";",
     "data_parallel = \"ddp\"; num_microbatches = 4; "
     "find_unused_parameters = true;",
     "",
     "torch.find_unused_parameters = true in stages whose backward is split"},
    {"world_size = 4; pipeline = 2; virtual_pipeline = 2; }; pipeline: { "
     "schedule = \"ScheduleInterleavedZeroBubble\";",
     "data_parallel = \"fully_shard\"; num_microbatches = 4;",
     "a: { class = \"ReLU\"; repeat = 4; checkpoint = true; fully_shard = "
     "true; };",
     "module: 0: fully_shard in a checkpoint, in a stage whose backward is "
     "split, is modelled with reshard_after_forward = false alone"},
};

static void test_layers__ddp_says_what_would_be_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong_ddp); i++) {
        char text[1024] = "";
        (void)snprintf(
            text, sizeof text,
            "framework = \"torch\"; parallel: { %s };\n"
            "torch: { input_shape = \"(4, 8)\"; %s };\n"
            "module: { class = \"Sequential\"; %s up: { repeat = 4; class = "
            "\"Linear\"; in_features = 8; out_features = 8; }; };",
            wrong_ddp[i].parallel, wrong_ddp[i].torch, wrong_ddp[i].module);
        me_diag diag = {0};
        const me_status status = finish_text(text, &diag);
        if (strstr(diag.text, wrong_ddp[i].part) == NULL) {
            fail_msg("case %zu: %s", i, diag.text);
        }
        assert_int_equal(status, ME_ERR_CONFIG);
    }
}

/** A dump of the model says @p wanted, and reads back equal. */
static void check_reads_back(const me_config *config, const char *wanted)
{
    me_str dump = {0};
    me_layers_dump(config->layers, &dump);
    assert_non_null(strstr(me_str_text(&dump), wanted));
    char whole[4096] = "";
    (void)snprintf(whole, sizeof whole, "framework = \"torch\";\n%s",
                   me_str_text(&dump));
    me_config *again = job_from_text(whole);
    me_str dump_again = {0};
    me_layers_dump(again->layers, &dump_again);
    assert_string_equal(me_str_text(&dump), me_str_text(&dump_again));
    me_str_fini(&dump);
    me_str_fini(&dump_again);
    me_config_destroy(again);
}

static const char convolution[] =
    "class = \"Conv2d\"; in_channels = 8; out_channels = 4; "
    "kernel_size = 3; padding = 1; stride = 2;";

/** Every class, as the whole model and as a part of it. */
static void test_layers__keys_read_back_equal(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "class = \"Linear\"; in_features = 8; out_features = 4; bias = false;",
        "class = \"Embedding\"; num_embeddings = 8; embedding_dim = 4;",
        "class = \"LayerNorm\"; normalized_shape = 8;",
        "class = \"RMSNorm\"; normalized_shape = 8; fully_shard = true;",
        "class = \"ReLU\"; inplace = true;",
        "class = \"Dropout\"; p = 0.25; checkpoint = true;",
        convolution,
        "class = \"MaxPool2d\"; kernel_size = 3; padding = 0;",
        "class = \"BatchNorm2d\"; num_features = 8;",
        "class = \"AdaptiveAvgPool2d\"; output_size = 1;",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *own = strstr(keys[i], "; ") + 2;
        for (int is_root = 0; is_root <= 1; is_root++) {
            char text[1024] = "";
            (void)snprintf(text, sizeof text,
                           is_root ? "framework = \"torch\"; module: { %s };"
                                   : "framework = \"torch\"; module: { class = "
                                     "\"Sequential\"; a: { %s }; };",
                           keys[i]);
            me_config *config = job_from_text(text);
            check_reads_back(config, own);
            me_config_destroy(config);
        }
    }
}

/** What a plan's defaults are, and that a dump of it reads back equal. */
static void test_layers__a_plan_reads_back_equal(void **state)
{
    (void)state;
    static const char plan[] =
        "parallelize_plan: {\n"
        " a: { module = \"up\"; style = \"RowwiseParallel\"; };\n"
        " b: { module = \"n\"; style = \"SequenceParallel\"; sequence_dim = 0; "
        "};\n"
        "};\n"
        "n: { class = \"LayerNorm\"; normalized_shape = 8; };";
    char text[1024] = "";
    (void)snprintf(text, sizeof text, job,
                   "parallel: { tensor = 2; world_size = 2; };", plan);
    me_config *config = job_from_text(text);
    const me_layer_tree *tree = &config->layers->tree;
    const me_style *styles = tree->plan;
    assert_int_equal(tree->n_styles, 2);
    assert_int_equal(styles[0].desired_input, ME_DLAYOUT_SHARD_LAST);
    assert_int_equal(styles[0].output, ME_DLAYOUT_REPLICATE);
    assert_true(styles[0].use_local_output);
    assert_int_equal(styles[1].desired_input, ME_DLAYOUT_SHARD_0);
    assert_false(styles[1].use_local_output);
    check_reads_back(config, "parallelize_plan");
    me_config_destroy(config);
}

/** Both kinds, one inside the other, and a dump that says so. */
static void test_layers__checkpoints_read_back(void **state)
{
    (void)state;
    char text[1024] = "";
    (void)snprintf(text, sizeof text, job, "",
                   "a: { checkpoint = \"reentrant\"; b: { class = \"ReLU\"; "
                   "checkpoint = true; checkpoint_early_stop = false; }; };");
    me_config *config = job_from_text(text);
    const me_layer_spec *a = &config->layers->tree.root.children[0];
    assert_true(a->is_checkpointed && a->is_reentrant);
    assert_true(a->children[0].is_checkpointed);
    assert_false(a->children[0].is_reentrant);
    me_str dump = {0};
    me_layers_dump(config->layers, &dump);
    assert_non_null(strstr(me_str_text(&dump), " checkpoint = \"reentrant\";"));
    assert_non_null(
        strstr(me_str_text(&dump),
               " checkpoint = true; checkpoint_early_stop = false;"));
    me_str_fini(&dump);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers__keys_read_back_equal),
        cmocka_unit_test(test_layers__a_plan_reads_back_equal),
        cmocka_unit_test(test_layers__checkpoints_read_back),
        cmocka_unit_test(test_layers__errors_say_what_would_be_right),
        cmocka_unit_test(test_layers__copies_of_shards_must_fit),
        cmocka_unit_test(test_layers__ddp_says_what_would_be_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
