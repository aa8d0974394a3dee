/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/tree.h"
#include "config/torchtitan/torchtitan.h"
#include "job.h"

#include <stdio.h>
#include <stdlib.h>

#define OLD                                                                    \
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nbatch_size = 2\nseq_len = 1024\n"
#define NEW                                                                    \
    "[model]\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nseq_len = 1024\n"

/** The message as it is printed. */
static const char *shown(const me_diag *diag)
{
    static char text[ME_DIAG_TEXT + ME_DIAG_WHERE + 16];
    if (diag->line > 0) {
        (void)snprintf(text, sizeof text, "%s:%d: %s", diag->where, diag->line,
                       diag->text);
    } else {
        (void)snprintf(text, sizeof text, "%s%s%s", diag->where,
                       diag->where[0] == '\0' ? "" : ": ", diag->text);
    }
    return text;
}

static me_config *job_of(const char *text)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_non_null(config);
    const me_status status =
        me_torchtitan_read(config, "job.toml", text, strlen(text), &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    return config;
}

static const me_layer_spec *child(const me_layer_spec *layer, const char *name)
{
    for (uint32_t i = 0; i < layer->n_children; i++) {
        if (strcmp(layer->children[i].name, name) == 0) {
            return &layer->children[i];
        }
    }
    fail_msg("%s has no %s", layer->name, name);
    abort();
}

/* int(2 · 4 · 4096 / 3) = 10922; int(1.3 · 10922) = 14198; up to 14 · 1024. */
static void test_torchtitan__the_model_of_2024(void **state)
{
    (void)state;
    me_config *config =
        job_of(OLD "[activation_checkpoint]\nmode = \"full\"\n");
    const me_layer_tree *tree = &config->layers->tree;
    assert_true(tree->is_meta);
    assert_true(tree->root.keeps_unsharded);
    assert_int_equal(child(&tree->root, "tok_embeddings")->inputs, 128256);
    assert_false(child(&tree->root, "tok_embeddings")->is_sharded);
    /* a complex64 for each of 1024 positions and 64 pairs: 2 · 65536 floats */
    assert_int_equal(child(&tree->root, "freqs_cis")->inputs, 131072);
    const me_layer_spec *layers = child(&tree->root, "layers");
    assert_int_equal(layers->n_children, 32);
    for (uint32_t i = 0; i < 32; i++) {
        assert_true(layers->children[i].is_sharded);
        assert_int_equal(layers->children[i].keeps_unsharded, i == 31);
        assert_true(child(&layers->children[i], "wrapped")->is_checkpointed);
        assert_false(child(&layers->children[i], "wrapped")->is_selective);
    }
    const me_layer_spec *block = child(&layers->children[0], "wrapped");
    const me_layer_spec *mlp = child(block, "feed_forward");
    assert_int_equal(child(mlp, "w1")->outputs, 14336);
    assert_int_equal(child(child(block, "attention"), "wk")->outputs, 1024);
    assert_int_equal(child(block, "ffn_norm")->kind, ME_LAYER_MODULE);
    assert_int_equal(config->torch.attention, ME_SDPA_FLASH);
    assert_int_equal(config->impl.optimizer, ME_OPTIMIZER_TORCH_FOREACH);
    assert_string_equal(config->torch.input_shape, "(2, 1024)");
    assert_true(list_has(&config->modelled, "training.batch_size"));
    assert_int_equal(config->not_modelled.count, 0);
    me_config_destroy(config);
}

static void test_torchtitan__the_model_of_0_2(void **state)
{
    (void)state;
    me_config *config =
        job_of(NEW "[parallelism]\ndata_parallel_shard_degree = 8\n");
    const me_layer_spec *root = &config->layers->tree.root;
    assert_false(root->keeps_unsharded);
    assert_true(child(root, "tok_embeddings")->is_sharded);
    assert_true(child(root, "head")->is_sharded);
    assert_true(child(root, "head")->keeps_unsharded);
    const me_layer_spec *layers = child(root, "layers");
    assert_false(layers->children[31].keeps_unsharded);
    /* selective, every second block, which is the default */
    assert_int_equal(layers->children[0].n_children, 4);
    const me_layer_spec *wrapped = child(&layers->children[1], "wrapped");
    assert_true(wrapped->is_checkpointed && wrapped->is_recomputed_to_end);
    assert_int_equal(child(wrapped, "ffn_norm")->kind, ME_LAYER_RMS_NORM);
    assert_int_equal(config->torch.attention, ME_SDPA_CUDNN);
    assert_int_equal(config->impl.optimizer, ME_OPTIMIZER_TORCH_FUSED);
    assert_int_equal(config->parallel.world_size, 8);
    me_config_destroy(config);
}

/* 32 layers on 2 ranks of 2 stages: 8, 8, 8, 8; of 3: 10, 11, 11. */
static void test_torchtitan__stages(void **state)
{
    (void)state;
    me_config *config =
        job_of(OLD "[experimental]\npipeline_parallel_degree = 2\n"
                   "pipeline_parallel_schedule = \"Interleaved1F1B\"\n");
    const me_layer_spec *root = &config->layers->tree.root;
    assert_int_equal(root->n_children, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(child(&root->children[i], "layers")->n_children, 8);
    }
    assert_int_equal(config->parallel.virtual_pipeline, 2);
    assert_string_equal(config->pipeline.name, "ScheduleInterleaved1F1B");
    assert_string_equal(config->torch.input_shape, "(1, 1024)");
    me_config_destroy(config);

    static const char *const of_one[] = {"1f1b", "gpipe", "GPIPE"};
    for (size_t i = 0; i < sizeof of_one / sizeof of_one[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       OLD "[experimental]\npipeline_parallel_degree = 2\n"
                           "pipeline_parallel_schedule = \"%s\"\n",
                       of_one[i]);
        config = job_of(text);
        assert_int_equal(config->parallel.virtual_pipeline, 1);
        me_config_destroy(config);
    }

    config = job_of("[model]\nflavor = \"8B\"\n[training]\nbatch_size = 3\n"
                    "[experimental]\npipeline_parallel_degree = 3\n");
    root = &config->layers->tree.root;
    static const uint32_t layers[] = {10, 11, 11};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(child(&root->children[i], "layers")->n_children,
                         layers[i]);
    }
    me_config_destroy(config);

    config = job_of(OLD "[experimental]\npipeline_parallel_degree = 2\n"
                        "pipeline_parallel_split_points = [\"layers.30\"]\n");
    root = &config->layers->tree.root;
    assert_int_equal(child(&root->children[0], "layers")->n_children, 30);
    assert_int_equal(child(&root->children[1], "layers")->n_children, 2);
    me_config_destroy(config);
}

static void assert_layers(const char *text, uint32_t n, const uint32_t *layers)
{
    me_config *config = job_of(text);
    const me_layer_spec *root = &config->layers->tree.root;
    assert_int_equal(root->n_children, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(child(&root->children[i], "layers")->n_children,
                         layers[i]);
    }
    me_config_destroy(config);
}

/* Embedding and head count as a layer each: 34 on 2 stages, 17 each; on 8, 4
 * each and one more on the first two. Of 17 layers a stage there are 2. */
static void test_torchtitan__stages_of_0_2(void **state)
{
    (void)state;
    assert_layers(NEW "[parallelism]\npipeline_parallel_degree = 2", 2,
                  (const uint32_t[]){16, 16});
    assert_layers(NEW "[parallelism]\npipeline_parallel_degree = 4\n"
                      "pipeline_parallel_schedule = \"Interleaved1F1B\"",
                  8, (const uint32_t[]){4, 5, 4, 4, 4, 4, 4, 3});
    assert_layers(NEW "[parallelism]\npipeline_parallel_degree = 2\n"
                      "pipeline_parallel_layers_per_stage = 17\n"
                      "pipeline_parallel_first_stage_less_layers = 0",
                  2, (const uint32_t[]){17, 15});
    me_config *config =
        job_of("[training]\nlocal_batch_size = 8\n[parallelism]\n"
               "pipeline_parallel_degree = 2\n"
               "pipeline_parallel_microbatch_size = 2\n");
    assert_int_equal(config->torch.num_microbatches, 4);
    assert_false(config->torch.returns_outputs);
    assert_true(config->torch.unshard_stages);
    assert_true(child(&config->layers->tree.root.children[0], "tok_embeddings")
                    ->keeps_unsharded);
    me_config_destroy(config);
}

/* replicate(), which releases 0.2 run under autocast. */
static void test_torchtitan__copies_of_the_model(void **state)
{
    (void)state;
    me_config *config = job_of(OLD "data_parallel_replicate_degree = 2\n"
                                   "data_parallel_shard_degree = 1\n");
    assert_int_equal(config->torch.data_parallel, ME_DATA_PARALLEL_DDP);
    assert_true(config->torch.replicate);
    assert_true(config->torch.bucket_cap_mb == 100.0);
    assert_int_equal(config->torch.autocast, -1);
    assert_int_equal(config->parallel.world_size, 2);
    me_config_destroy(config);
    config = job_of(NEW "[parallelism]\ndata_parallel_replicate_degree = 2\n"
                        "data_parallel_shard_degree = 1\n");
    assert_int_equal(config->torch.data_parallel, ME_DATA_PARALLEL_DDP);
    assert_int_equal(config->torch.autocast, ME_DTYPE_BFLOAT16);
    me_config_destroy(config);
}

static void test_torchtitan__copies_of_shards(void **state)
{
    (void)state;
    me_config *config = job_of(OLD "data_parallel_replicate_degree = 2\n"
                                   "data_parallel_shard_degree = 4\n");
    assert_int_equal(config->torch.data_parallel_replicate, 2);
    assert_int_equal(config->torch.data_parallel, ME_DATA_PARALLEL_FULLY_SHARD);
    assert_int_equal(config->parallel.world_size, 8);
    me_config_destroy(config);
}

/** The entry of the plan for a path. */
static const me_style *style_of(const me_layer_tree *tree, const char *path)
{
    for (uint32_t i = 0; i < tree->n_styles; i++) {
        if (strcmp(tree->plan[i].path, path) == 0) {
            return &tree->plan[i];
        }
    }
    fail_msg("no entry for %s", path);
    abort();
}

static void test_torchtitan__the_plan(void **state)
{
    (void)state;
    const me_dlayout shard_1 = (me_dlayout)(ME_DLAYOUT_SHARD_0 + 1);
    me_config *config =
        job_of(OLD "tensor_parallel_degree = 8\n"
                   "[activation_checkpoint]\nmode = \"full\"\n");
    const me_layer_tree *tree = &config->layers->tree;
    assert_int_equal(config->parallel.tensor, 8);
    assert_true(config->torch.loss_parallel);
    assert_int_equal(tree->n_styles, 12); // wq, wk and wv are one entry
    const me_style *style = style_of(tree, "output");
    assert_int_equal(style->kind, ME_STYLE_COLWISE);
    assert_int_equal(style->output, ME_DLAYOUT_SHARD_LAST);
    assert_false(style->use_local_output);
    style = style_of(tree, "layers.*.wrapped.feed_forward");
    assert_int_equal(style->kind, ME_STYLE_PREPARE_INPUT);
    assert_int_equal(style->input, shard_1);
    assert_int_equal(style->desired_input, ME_DLAYOUT_REPLICATE);
    style = style_of(tree, "layers.*.wrapped.attention.wo");
    assert_int_equal(style->kind, ME_STYLE_ROWWISE);
    assert_int_equal(style->output, shard_1);
    me_config_destroy(config);

    /* Every second block is checkpointed; stages are the whole's children. */
    config = job_of(NEW "[parallelism]\ntensor_parallel_degree = 2\n"
                        "disable_loss_parallel = true\n"
                        "pipeline_parallel_degree = 2\n");
    tree = &config->layers->tree;
    assert_int_equal(tree->n_styles, 21);
    assert_false(config->torch.loss_parallel);
    assert_int_equal(style_of(tree, "*.head.output")->output,
                     ME_DLAYOUT_REPLICATE);
    (void)style_of(tree, "*.layers.*.ffn_norm");
    (void)style_of(tree, "*.layers.*.wrapped.ffn_norm");
    me_config_destroy(config);
}

static void test_torchtitan__cpu_offload(void **state)
{
    (void)state;
    me_config *config = job_of(OLD "enable_cpu_offload = true\n");
    assert_true(config->torch.cpu_offload);
    assert_true(config->torch.pin_memory);
    me_config_destroy(config);
    config = job_of(NEW "enable_cpu_offload = false\n");
    assert_false(config->torch.cpu_offload);
    me_config_destroy(config);
}

static void test_torchtitan__every_key_ends_in_a_list(void **state)
{
    (void)state;
    me_config *config = job_of(OLD "compile = true\nsteps = 10\n"
                                   "[float8]\nenable_float8_linear = false\n"
                                   "[job]\ndescription = \"x\"\n");
    assert_true(list_has(&config->not_modelled, "training.compile"));
    assert_true(list_has(&config->no_effect, "training.steps"));
    assert_true(list_has(&config->no_effect, "float8.enable_float8_linear"));
    assert_true(list_has(&config->no_effect, "job.description"));
    me_config_destroy(config);
}

static const struct {
    const char *text;
    me_status status;
    const char *message;
} refused[] = {
    {"[training]\nseqlen = 1", ME_ERR_CONFIG,
     "job.toml:2: training.seqlen = 1: torchtitan has no such key: did you "
     "mean training.seq_len?"},
    {OLD "[parallelism]\ntensor_parallel_degree = 1", ME_ERR_CONFIG,
     "job.toml:8: parallelism.tensor_parallel_degree = 1: is a key of "
     "torchtitan 0.2, and training.batch_size one of December 2024"},
    {OLD "tensor_parallel_degree = 16", ME_ERR_CONFIG,
     "job.toml:7: training.tensor_parallel_degree = 16: must divide the heads "
     "of keys and values"},
    {"[model]\nflavor = \"8B\"\n[training]\nseq_len = 1023\n"
     "tensor_parallel_degree = 2",
     ME_ERR_CONFIG,
     "job.toml:5: training.tensor_parallel_degree = 2: must divide the "
     "vocabulary and training.seq_len"},
    {OLD "[experimental]\ncontext_parallel_degree = 2", ME_ERR_UNSUPPORTED,
     "job.toml:8: experimental.context_parallel_degree = 2: context "
     "parallelism is not modelled"},
    {"[training]\nseq_len = \"8\"", ME_ERR_CONFIG,
     "job.toml:2: training.seq_len = 8: must be a whole number up to "
     "268435456"},
    {"[training]\nseq_len = 0", ME_ERR_CONFIG,
     "job.toml:2: training.seq_len = 0: must be at least 1"},
    {"[training]\nmax_norm = true", ME_ERR_CONFIG,
     "job.toml:2: training.max_norm = true: must be a number"},
    {"[optimizer]\nfused = 1", ME_ERR_CONFIG,
     "job.toml:2: optimizer.fused = 1: must be true or false"},
    {"[parallelism]\npipeline_parallel_degree = 2\n"
     "pipeline_parallel_schedule = \"2F2B\"",
     ME_ERR_CONFIG,
     "job.toml:3: parallelism.pipeline_parallel_schedule = 2F2B: must be one of "
     "PyTorch's, such as 1F1B, Interleaved1F1B or ZBVZeroBubble"},
    {"[parallelism]\npipeline_parallel_degree = 2\n"
     "pipeline_parallel_schedule = \"1-F1B\"",
     ME_ERR_CONFIG,
     "job.toml:3: parallelism.pipeline_parallel_schedule = 1-F1B: must be one "
     "of PyTorch's, such as 1F1B, Interleaved1F1B or ZBVZeroBubble"},
    {"[optimizer]\nname = \"Muon\"", ME_ERR_UNSUPPORTED,
     "job.toml:2: optimizer.name = Muon: Adam and AdamW are modelled"},
    {"[model]\nname = \"llama4\"", ME_ERR_UNSUPPORTED,
     "job.toml:2: model.name = llama4: of torchtitan's models llama3 is "
     "modelled"},
    {"[model]\nflavor = \"9B\"", ME_ERR_UNSUPPORTED,
     "job.toml:2: model.flavor = 9B: of llama3 debugmodel, 8B, 70B and "
     "405B are modelled"},
    {"[activation_checkpoint]\nmode = \"some\"", ME_ERR_CONFIG,
     "job.toml:2: activation_checkpoint.mode = some: must be one of none, "
     "selective, full"},
    {"[activation_checkpoint]\nselective_ac_option = \"x\"", ME_ERR_CONFIG,
     "job.toml:2: activation_checkpoint.selective_ac_option = x: must be "
     "op, or every how many blocks"},
    {OLD "data_parallel_replicate_degree = 2\n"
         "data_parallel_shard_degree = 1\ntensor_parallel_degree = 2",
     ME_ERR_UNSUPPORTED,
     "job.toml:7: training.data_parallel_replicate_degree = 2: torchtitan "
     "refuses DDP with tensor parallelism or a pipeline; copies of a sharded "
     "model (HSDP) go with both"},
    {NEW "[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_microbatch_size = 3",
     ME_ERR_CONFIG,
     "job.toml:8: parallelism.pipeline_parallel_microbatch_size = 3: must "
     "divide training.local_batch_size"},
    {NEW "[parallelism]\npipeline_parallel_degree = 16\n"
         "pipeline_parallel_schedule = \"Interleaved1F1B\"",
     ME_ERR_CONFIG,
     "job.toml:7: parallelism.pipeline_parallel_degree = 16: there would be a "
     "stage without layers"},
    {NEW "[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_layers_per_stage = 10",
     ME_ERR_CONFIG,
     "job.toml:8: parallelism.pipeline_parallel_layers_per_stage = 10: must "
     "make as many stages a rank as the schedule has: one, or two and more"},
    {NEW "[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_schedule_csv = \"absent.csv\"",
     ME_ERR_IO, "absent.csv: cannot open: No such file or directory"},
    {OLD "[experimental]\npipeline_parallel_schedule_csv = \"a.csv\"",
     ME_ERR_UNSUPPORTED,
     "job.toml:8: experimental.pipeline_parallel_schedule_csv = a.csv: an "
     "order from a file is modelled of releases 0.2 alone"},
    {OLD "[experimental]\npipeline_parallel_degree = 64", ME_ERR_CONFIG,
     "job.toml:8: experimental.pipeline_parallel_degree = 64: there are "
     "more stages than layers"},
    {OLD "[experimental]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_split_points = [\"layers.40\"]",
     ME_ERR_CONFIG,
     "job.toml:9: experimental.pipeline_parallel_split_points = layers.40: "
     "must be layers in their order, as layers.4,layers.8"},
    {OLD "[experimental]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_microbatches = 3",
     ME_ERR_CONFIG,
     "job.toml:9: experimental.pipeline_parallel_microbatches = 3: must "
     "divide the batch size"},
    {"[training]\nbatch_size = 3\n[experimental]\n"
     "pipeline_parallel_degree = 2",
     ME_ERR_CONFIG,
     "job.toml:4: experimental.pipeline_parallel_degree = 2: as many "
     "micro-batches must divide the batch size; "
     "pipeline_parallel_microbatches says another number"},
};

static void test_torchtitan__what_is_refused(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_non_null(config);
        const me_status status =
            me_torchtitan_read(config, "job.toml", refused[i].text,
                               strlen(refused[i].text), &diag);
        assert_string_equal(shown(&diag), refused[i].message);
        assert_int_equal(status, refused[i].status);
        me_config_destroy(config);
    }
}

static me_status read_flags(me_config *config, int argc,
                            const char *const *argv, me_diag *diag)
{
    return me_torchtitan_read_flags(config, argc, argv, diag);
}

static void test_torchtitan__flags_win(void **state)
{
    (void)state;
    static const char *const argv[] = {
        "--training.batch_size",
        "4",
        "--model.flavor=8B",
        "--optimizer.fused",
        "--training.seq_len=512",
        "--training.max_norm",
        "0",
    };
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_non_null(config);
    assert_int_equal(
        read_flags(config, sizeof argv / sizeof argv[0], argv, &diag), ME_OK);
    assert_string_equal(config->torch.input_shape, "(4, 512)");
    assert_int_equal(config->impl.optimizer, ME_OPTIMIZER_TORCH_FUSED);
    assert_true(config->optimizer.clip_grad <= 0);
    me_config_destroy(config);

    static const struct {
        const char *flags[2];
        int n;
        const char *message;
    } wrong[] = {
        {{"training.seq_len", "4"},
         2,
         "'training.seq_len' is no flag of torchtitan's: those are "
         "--table.key, such as --training.seq_len"},
        {{"--training.batch_sise=4"},
         1,
         "--training.batch_sise 4: torchtitan has no such key: did you mean "
         "training.batch_size?"},
        {{"--job.config_file=no.toml"},
         1,
         "no.toml: cannot open: No such file or directory"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        config = me_config_create();
        assert_non_null(config);
        assert_int_not_equal(
            read_flags(config, wrong[i].n, wrong[i].flags, &diag), ME_OK);
        assert_string_equal(shown(&diag), wrong[i].message);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchtitan__the_model_of_2024),
        cmocka_unit_test(test_torchtitan__the_model_of_0_2),
        cmocka_unit_test(test_torchtitan__stages),
        cmocka_unit_test(test_torchtitan__stages_of_0_2),
        cmocka_unit_test(test_torchtitan__copies_of_the_model),
        cmocka_unit_test(test_torchtitan__copies_of_shards),
        cmocka_unit_test(test_torchtitan__the_plan),
        cmocka_unit_test(test_torchtitan__cpu_offload),
        cmocka_unit_test(test_torchtitan__every_key_ends_in_a_list),
        cmocka_unit_test(test_torchtitan__what_is_refused),
        cmocka_unit_test(test_torchtitan__flags_win),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
