/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of plain PyTorch that PyTorch itself stops: the line that a person
 * reads. And what stands beside each and runs. */
#include "config/file.h"
#include "support/simulate.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    TEXT_BYTES = 1024
};

/** The module's own text is line 5. */
static const char job[] = "framework = \"torch\";\n"
                          "torch: { loss = \"%s\"; %s };\n"
                          "%s\n"
                          "module: {\n"
                          "%s\n"
                          "};\n";

#define FLOATS  "input_shape = \"(4, 6, 8)\"; input_dtype = \"float32\";"
#define HALVES  "input_shape = \"(4, 6, 8)\"; input_dtype = \"float16\";"
#define IMAGES  "input_shape = \"(2, 8, 16, 16)\"; input_dtype = \"float32\";"
#define INDICES "input_shape = \"(4, 8)\"; input_dtype = \"int64\";"
#define LINEAR(name)                                                           \
#    name ": { class = \"Linear\"; in_features = 8; out_features = 8; };"
#define HALF_LINEAR(name)                                                      \
#    name ": { class = \"Linear\"; dtype = \"bfloat16\"; in_features = 8; "    \
          "out_features = 8; };"
#define SHARDED      "data_parallel = \"fully_shard\"; " FLOATS
#define CALLED(path) "called_module = \"" path "\"; "
#define TWO_RANKS    "parallel: { world_size = 2; };"
#define PIPELINE                                                               \
    "parallel: { world_size = 2; pipeline = 2; }; "                            \
    "pipeline: { schedule = \"Schedule1F1B\"; };"

static const struct {
    const char *loss;
    const char *torch;
    const char *options;
    const char *module;
    const char *line; /* NULL: it runs */
} cases[] = {
    /* shapes */
    {"y.sum()", FLOATS, "",
     "forward = \"return a(x) + b(x)\"; " LINEAR(
         a) "b: { class = \"Linear\"; in_features = 8; out_features = 4; };",
     "job.cfg:5: module (root): (4, 6, 8) + (4, 6, 4): these shapes do not "
     "broadcast"},
    {"y.sum()", FLOATS, "",
     "forward = \"return a(x) + b(x)\"; " LINEAR(
         a) "b: { class = \"Linear\"; in_features = 8; out_features = 1; };",
     NULL},
    {"y.sum()", FLOATS, "",
     "forward = \"return w * a(x)\"; " LINEAR(
         a) "w: { class = \"Parameter\"; shape = 7; };",
     "module (root): (7,) * (4, 6, 8): these shapes do not broadcast"},
    {"((y - target) ** 2).mean()", "target = \"labels\"; " INDICES, "",
     "class = \"Sequential\"; a: { class = \"Embedding\"; num_embeddings = 9; "
     "embedding_dim = 5; };",
     "torch.loss: (4, 8, 5) - (4, 8): these shapes do not broadcast"},
    {"y.sum()", FLOATS, "", "forward = \"return a(x.view(-1, 5))\"; " LINEAR(a),
     "job.cfg:5: module (root): (4, 6, 8).view(-1, 5): 192 elements do not fill "
     "this shape"},
    {"y.sum()", FLOATS, "",
     "forward = \"return a(relu(x).reshape(2, 3, 6))\"; " LINEAR(a),
     "module (root): (4, 6, 8).reshape(2, 3, 6): 192 elements do not fill"},
    {"y.sum()", FLOATS, "",
     "forward = \"return a(x.view(2, -1, 8).reshape(12, 1, 2, 4, 2)"
     ".view(-1, 8))\"; " LINEAR(a),
     NULL},
    {"y.sum()", FLOATS, "",
     "forward = \"h = scaled_dot_product_attention(a(x), x, x, n_heads=2); "
     "return relu(h).view(-1)\"; " LINEAR(a),
     NULL},
    {"y.view(7, -1).sum()", FLOATS, "", "class = \"Sequential\"; " LINEAR(a),
     "torch.loss: (4, 6, 8).view(7, -1): 192 elements do not fill this shape"},
    /* types */
    {"y.sum()", FLOATS, "", "class = \"Sequential\"; " HALF_LINEAR(a),
     "job.cfg:5: module 0: a matrix product of float32 with bfloat16 weights"},
    {"y.sum()", "autocast = \"bfloat16\"; " FLOATS, "",
     "class = \"Sequential\"; " LINEAR(a), NULL},
    {"y.sum()", INDICES, "", "class = \"Sequential\"; " LINEAR(a),
     "module 0: a matrix product of int64 with float32 weights"},
    {"y.sum()", FLOATS, "",
     "forward = \"return b(a(x).half())\"; " LINEAR(
         a) "b: { class = \"LayerNorm\"; normalized_shape = 8; };",
     "module b: LayerNorm of float32 weights gets float16"},
    {"y.sum()", FLOATS, "",
     "forward = \"return b(a(x).half())\"; " LINEAR(
         a) "b: { class = \"RMSNorm\"; normalized_shape = 8; };",
     NULL},
    {"y.sum()", INDICES, "",
     "class = \"Sequential\"; b: { class = \"RMSNorm\"; normalized_shape = 8; };",
     "module 0: RMSNorm gets int64"},
    {"y.sum()", FLOATS, "",
     "forward = \"q = a(x); k = q.half(); return "
     "scaled_dot_product_attention(q, k, q, n_heads=2)\"; " LINEAR(a),
     "module (root): scaled_dot_product_attention of q, k and v of float32, "
     "float16 and float32"},
    {"y.sum()", INDICES, "",
     "class = \"Sequential\"; g: { class = \"GELU\"; };" LINEAR(a),
     "module 0: GELU gets int64"},
    {"y.sum()", HALVES, "",
     "class = \"Sequential\"; f: { class = \"Flatten\"; };"
     "a: { class = \"Linear\"; in_features = 48; out_features = 8; };",
     "module 1: a matrix product of float16 with float32 weights"},
    {"y.sum()", IMAGES, "",
     "class = \"Sequential\"; c: { class = \"Conv2d\"; dtype = \"bfloat16\"; "
     "in_channels = 8; out_channels = 8; kernel_size = 3; };",
     "module 0: Conv2d of bfloat16 weights gets float32"},
    {"y.mean()", INDICES, "",
     "forward = \"y = a(x.float()); return x\"; " LINEAR(a),
     "torch.loss: .mean() of int64"},
    {"y.sum()", INDICES, "",
     "forward = \"return a((x + 1).float()) + a((x + 0.5).float())\"; " LINEAR(
         a),
     "module (root): a sum with a number that is no whole one of int64"},
    {"y.sum()", INDICES, "",
     "forward = \"return a((x + 1).float())\"; " LINEAR(a), NULL},
    /* what backward() refuses */
    {"y", FLOATS, "", "class = \"Sequential\"; " LINEAR(a),
     "torch.loss: a loss of shape (4, 6, 8)"},
    {"y.sum()", FLOATS, "",
     "forward = \"h = a(x); k = g(h); h = r(h); return k + h\"; " LINEAR(
         a) "g: { class = \"GELU\"; }; r: { class = \"ReLU\"; inplace = true; };",
     "job.cfg:5: module g: GeluBackward0: a tensor that its gradient needs has "
     "been changed in place"},
    {"y.sum()", FLOATS, "",
     "forward = \"return r(a(x))\"; " LINEAR(
         a) "r: { class = \"ReLU\"; inplace = true; };",
     NULL},
    {"y.sum()", FLOATS, "", "forward = \"return x\"; " LINEAR(a),
     "nothing that the loss is made of needs a gradient, which PyTorch's "
     "backward() refuses"},
    {"y.sum()", FLOATS, "", "forward = \"a(x)\"; " LINEAR(a),
     "job.cfg:5: forward: without `return` a forward gives None"},
    /* optimizers */
    {"y.sum()", FLOATS, "", "class = \"Sequential\";",
     "module: no parameters in this model"},
    {"y.sum()", FLOATS, PIPELINE " train: { global_batch_size = 8; };",
     "class = \"Sequential\"; " LINEAR(a) "g: { class = \"GELU\"; };",
     "module: no parameters in the stages of a pipeline rank"},
    {"y.sum()", FLOATS, "optimizer: { sgd_momentum = 0.9; };",
     "class = \"Sequential\"; " LINEAR(a),
     "optimizer.sgd_momentum = 0.9 is of"},
    /* fully_shard() and pipelines */
    {"y.sum()", SHARDED, TWO_RANKS,
     "forward = \"return l(x)\"; l: { class = \"ModuleList\"; fully_shard = "
     "true; " LINEAR(a) "};",
     "job.cfg:5: fully_shard: a ModuleList has no forward"},
    {"y.sum()", SHARDED, TWO_RANKS,
     "forward = \"return b(a(x).bfloat16())\"; " LINEAR(a) HALF_LINEAR(b),
     "job.cfg:5: module b: fully_shard() of float32 and bfloat16 parameters in "
     "one group"},
    {"y.sum()", FLOATS, "",
     "class = \"Sequential\"; a: { class = \"Linear\"; in_features = 8; "
     "out_features = 8; fully_shard = true; };",
     "job.cfg:5: module 0: fully_shard = true: torch.data_parallel must be"},
    {"y.sum()", FLOATS, PIPELINE " train: { global_batch_size = 4; };",
     "class = \"Sequential\"; " LINEAR(a) LINEAR(b),
     "PyTorch wants as many micro-batches as stages, 2, and there is 1"},
    {"y.sum()", FLOATS, PIPELINE " train: { global_batch_size = 8; };",
     "class = \"Sequential\"; " LINEAR(a) LINEAR(b), NULL},
    /* a module that the loop calls in the model's place */
    {"y.sum()", CALLED("a.c") FLOATS, "",
     "a: { class = \"Sequential\"; " LINEAR(b) "};",
     "torch.called_module = \"a.c\": there is no such module; a has 0"},
    {"y.sum()", CALLED("a.0.w") FLOATS, "",
     "a: { class = \"Sequential\"; " LINEAR(b) "};",
     "torch.called_module = \"a.0.w\": there is no such module; a.0 has none"},
    {"y.sum()", CALLED("1") FLOATS, "", "class = \"Sequential\"; " LINEAR(a),
     "torch.called_module = \"1\": there is no such module; the model has 0"},
    {"y.sum()", CALLED("9") FLOATS, "",
     "class = \"Sequential\"; a: { repeat = 9; class = \"GELU\"; };",
     "module: no parameters in this model"},
    {"y.sum()", CALLED("a.9") FLOATS, "",
     "a: { class = \"Sequential\"; b: { repeat = 9; class = \"Linear\"; "
     "in_features = 8; out_features = 8; }; };",
     "there is no such module; a has 0, 1, 2, 3, 4, 5, 6, 7 and more"},
    {"y.sum()", CALLED("0.") FLOATS, "", "class = \"Sequential\"; " LINEAR(a),
     "torch.called_module = \"0.\": there is no such module; 0 has none"},
    {"y.sum()", CALLED("a") FLOATS, "",
     "a: { class = \"ModuleList\"; " LINEAR(b) "};",
     "torch.called_module = \"a\": a ModuleList has no forward"},
    {"y.sum()", CALLED("w") FLOATS, "",
     "forward = \"return w * a(x)\"; " LINEAR(
         a) "w: { class = \"Parameter\"; shape = 8; };",
     "torch.called_module = \"w\": a Parameter has no forward"},
    {"y.sum()", CALLED("1") FLOATS, "",
     "class = \"Sequential\"; " LINEAR(a) "g: { class = \"GELU\"; };",
     "nothing that the loss is made of needs a gradient"},
    {"y.sum()", CALLED("1") FLOATS, "",
     "class = \"Sequential\"; " LINEAR(a) LINEAR(b), NULL},
    {"y.sum()", CALLED("1") "grad_scaler = true; " FLOATS,
     "optimizer: { clip_grad = 1.0; };",
     "class = \"Sequential\"; " LINEAR(a) LINEAR(b), NULL},
    {"y.sum()", CALLED("0") FLOATS,
     PIPELINE " train: { global_batch_size = 8; };",
     "class = \"Sequential\"; " LINEAR(a) LINEAR(b),
     "torch.called_module = \"0\" with parallel.pipeline = 2: a pipeline's "
     "schedule calls whole stages"},
    {"y.sum()", CALLED("0") "data_parallel = \"ddp\"; " FLOATS, TWO_RANKS,
     "class = \"Sequential\"; " LINEAR(a),
     "torch.called_module = \"0\" with torch.data_parallel = \"ddp\": "
     "DistributedDataParallel reduces gradients of its own forward alone"},
    {"y.sum()", CALLED("0") SHARDED, TWO_RANKS,
     "class = \"Sequential\"; " LINEAR(a),
     "torch.called_module = \"0\": fully_shard gathers parameters in the "
     "forward of the module that it was called for, which needs fully_shard = "
     "true"},
    {"y.sum()",
     CALLED(
         "1") "input_shape = \"(4, 6, 8)\"; data_parallel = \"fully_shard\";",
     TWO_RANKS,
     "class = \"Sequential\"; e: { class = \"Embedding\"; num_embeddings = 16; "
     "embedding_dim = 8; }; o: { class = \"Linear\"; in_features = 8; "
     "out_features = 16; bias = false; fully_shard = true; weight = \"0.weight\"; };",
     "torch.called_module = \"1\": with fully_shard weights that are tied to "
     "those of other modules are not modelled there"},
    /* settings that nothing looks at */
    {"y.sum()", "param_dtype = \"bfloat16\"; " FLOATS, "",
     "class = \"Sequential\"; " LINEAR(a),
     "torch.param_dtype is fully_shard's"},
    {"y.sum()", "reshard_after_forward = false; " FLOATS, "",
     "class = \"Sequential\"; " LINEAR(a),
     "torch.reshard_after_forward is fully_shard's"},
    {"y.sum()", FLOATS, "moe: { num_experts = 4; };",
     "class = \"Sequential\"; " LINEAR(a),
     "moe.num_experts: a job of framework = \"torch\" has no such option"},
    {"y.sum()", FLOATS, "train: { deterministic_mode = true; };",
     "class = \"Sequential\"; " LINEAR(a),
     "train.deterministic_mode: a job of framework = \"torch\" has no such "
     "option"},
    {"y.sum()", FLOATS, "parallel: { expert_tensor = 1; };",
     "class = \"Sequential\"; " LINEAR(a),
     "parallel.expert_tensor: a job of framework = \"torch\" has no such "
     "option"},
    {"y.sum()", FLOATS, "time: { loader = \"mock_gpt\"; };",
     "class = \"Sequential\"; " LINEAR(a), "time.loader = \"mock_gpt\""},
    {"y.sum()", "num_microbatches = 3; " FLOATS,
     "train: { global_batch_size = 8; };", "class = \"Sequential\"; " LINEAR(a),
     "torch.num_microbatches = 3, and train.global_batch_size = 8 over 4 "
     "samples of each makes 2"},
    {"y.sum()", FLOATS, "",
     "class = \"Sequential\"; a: { class = \"Linear\"; in_features = 8; "
     "out_features = 8; checkpoint_policy = \"op\"; };",
     "job.cfg:5: checkpoint_policy: is of a checkpoint"},
    /* what a key or an option can be */
    {"y.sum()", IMAGES, "",
     "class = \"Sequential\"; p: { class = \"MaxPool2d\"; kernel_size = 2; "
     "padding = 2; };",
     "job.cfg:5: padding = 2: MaxPool2d takes half of kernel_size = 2"},
    {"y.sum()", "input_shape = \"8x64\";", "",
     "class = \"Sequential\"; " LINEAR(a), "torch.input_shape = \"8x64\""},
    {"y.sum()", "input_shape = \"(2, 64\";", "",
     "class = \"Sequential\"; " LINEAR(a), "torch.input_shape = \"(2, 64\""},
    {"y.sum()", "input_shape = \"2, 64)\";", "",
     "class = \"Sequential\"; " LINEAR(a), "torch.input_shape = \"2, 64)\""},
    {"y.sum()", "input_dtype = \"float32\"; input_shape = \"( 2, 8, )\";", "",
     "class = \"Sequential\"; " LINEAR(a), NULL},
    {"y.sum()", FLOATS, "",
     "class = \"Sequential\"; a: { class = \"GELU\"; to = \"float16\"; };",
     "job.cfg:5: to: is of the whole model alone"},
    {"y.sum()", FLOATS, "", "class = \"Linear\"; in_features = 8;",
     "Linear (root) needs out_features"},
    {"y.sum()", FLOATS, "", "class = \"ModuleList\"; " LINEAR(a),
     "a ModuleList has no forward"},
};

static me_status run(const char *text, me_diag *diag)
{
    test_job j = {.config = me_config_create()};
    me_rank_result *result = NULL;
    assert_non_null(j.config);
    me_status status =
        me_config_read_text(j.config, "job.cfg", text, strlen(text), diag);
    if (status == ME_OK) {
        status = test_job_plan(&j, diag);
    }
    const int32_t ranks = status == ME_OK ? j.config->parallel.world_size : 0;
    for (int32_t rank = 0; status == ME_OK && rank < ranks; rank++) {
        status = test_job_run(&j, rank, diag, &result);
        me_rank_result_destroy(result);
        result = NULL;
    }
    test_job_fini(&j);
    return status;
}

static void test_tree_errors__of_pytorch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[TEXT_BYTES] = "";
        char line[ME_DIAG_LINE] = "";
        me_diag diag = {0};
        const int length =
            snprintf(text, sizeof text, job, cases[i].loss, cases[i].torch,
                     cases[i].options, cases[i].module);
        assert_in_range(length, 1, TEXT_BYTES - 1);
        const me_status status = run(text, &diag);
        me_diag_line(&diag, line);
        if (cases[i].line == NULL ? status != ME_OK
                                  : strstr(line, cases[i].line) == NULL) {
            fail_msg("case %zu: %s", i, line);
        }
        assert_int_equal(status, cases[i].line == NULL ? ME_OK : ME_ERR_CONFIG);
    }
}

/* torch.optim's defaults, and what a file says instead. */
static void test_tree_errors__optimizer_defaults(void **state)
{
    static const struct {
        const char *options;
        me_optimizer_kind kind;
        double weight_decay;
        double momentum;
    } defaults[] = {
        {"", ME_OPTIMIZER_ADAMW, 0.01, 0},
        {"optimizer: { kind = \"adamw\"; };", ME_OPTIMIZER_ADAMW, 0.01, 0},
        {"optimizer: { kind = \"adam\"; };", ME_OPTIMIZER_ADAM, 0, 0},
        {"optimizer: { kind = \"sgd\"; };", ME_OPTIMIZER_SGD, 0, 0},
        {"optimizer: { kind = \"sgd\"; weight_decay = 0.1; sgd_momentum = 0.9; "
         "};",
         ME_OPTIMIZER_SGD, 0.1, 0.9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        char text[TEXT_BYTES] = "";
        me_diag diag = {0};
        (void)snprintf(text, sizeof text, job, "y.sum()", FLOATS,
                       defaults[i].options,
                       "class = \"Sequential\"; " LINEAR(a));
        me_config *c = me_config_create();
        assert_int_equal(
            me_config_read_text(c, "job.cfg", text, strlen(text), &diag),
            ME_OK);
        assert_int_equal(me_config_finish(c, 1, &diag), ME_OK);
        assert_int_equal(c->optimizer.kind, defaults[i].kind);
        assert_true(c->optimizer.weight_decay == defaults[i].weight_decay);
        assert_true(c->optimizer.sgd_momentum == defaults[i].momentum);
        me_config_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_errors__of_pytorch),
        cmocka_unit_test(test_tree_errors__optimizer_defaults),
    };
    return cmocka_run_group_tests_name("tree_errors", tests, NULL, NULL);
}
