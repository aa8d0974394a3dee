/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <stdio.h>

enum {
    WORDS_MAX = 64
};

/* JOB_FLAGS and more, split at blanks. */
static me_status read_flags(me_config *config, const char *more, me_diag *diag)
{
    static const char *const job[] = {JOB_FLAGS};
    const char *words[WORDS_MAX + COUNT_OF(job)];
    me_config_take_unknown(config);
    char text[512];
    assert_true((size_t)snprintf(text, sizeof text, "%s", more) < sizeof text);
    int count = 0;
    for (; count < (int)COUNT_OF(job); count++) {
        words[count] = job[count];
    }
    for (char *c = text; *c != '\0';) {
        const size_t length = strcspn(c, " ");
        words[count++] = c;
        c += length;
        if (*c == ' ') {
            *c++ = '\0';
        }
    }
    return me_config_read_launch(config, count, words, diag);
}

static me_config *job_of(const char *more)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    const me_status status = read_flags(config, more, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    return config;
}

static const struct {
    const char *flags;
    me_status status;
    const char *part;
} wrong_values[] = {
    {"--num-layers", ME_ERR_SYNTAX, "--num-layers has no value"},
    {"--num-layers --bf16", ME_ERR_SYNTAX, "--num-layers has no value"},
    {"--num-layers four", ME_ERR_CONFIG,
     "--num-layers four: must be a whole number from 1"},
    {"--num-layers=-4", ME_ERR_CONFIG, "--num-layers -4: must be"},
    {"--num-layers 0", ME_ERR_CONFIG, "--num-layers 0: must be"},
    {"--num-layers 4.5", ME_ERR_CONFIG, "--num-layers 4.5"},
    {"--hidden-size 99999999999999999999", ME_ERR_CONFIG,
     "--hidden-size 99999999999999999999: must be a whole number"},
    {"--train-iters ten", ME_ERR_CONFIG,
     "--train-iters ten: must be a whole number"},
    {"--train-iters 1__0", ME_ERR_CONFIG, "--train-iters 1__0: must be"},
    {"--num-layers 1_0.0", ME_ERR_CONFIG, "--num-layers 1_0.0: must be"},
    {"--normalization RMSNORM", ME_ERR_CONFIG, "must be one of LayerNorm"},
    {"--lr high", ME_ERR_CONFIG, "--lr high: must be a number"},
    {"--normalization Layer", ME_ERR_CONFIG,
     "--normalization Layer: must be one of LayerNorm, RMSNorm"},
    {"--swiglu=1", ME_ERR_SYNTAX, "--swiglu=1: the flag takes no value"},
    {"--swiglu 1", ME_ERR_SYNTAX,
     "'1' belongs to no flag: it comes after --swiglu"},
    {"--rampup-batch-size 1 2", ME_ERR_SYNTAX, "three values"},
    {"--batch-size 4", ME_ERR_CONFIG, "use --micro-batch-size"},
    {"--checkpoint-activations", ME_ERR_CONFIG, "--recompute-activations"},
    {"--fp16", ME_ERR_CONFIG, "--bf16 and --fp16 exclude each other"},
    {"--swiglu --squared-relu", ME_ERR_CONFIG, "exclude each other"},
    {"--use-megatron-fsdp", ME_ERR_CONFIG, "--ckpt-format fsdp_dtensor"},
    {"--ckpt-format fsdp_dtensor", ME_ERR_CONFIG, "needs --use-megatron-fsdp"},
    {"--use-torch-fsdp2 --ckpt-format torch", ME_ERR_CONFIG,
     "--ckpt-format torch does not go with --use-torch-fsdp2"},
    {"--ckpt-format torch_dcp", ME_ERR_CONFIG,
     "--ckpt-format torch_dcp needs --use-torch-fsdp2"},
    {"--use-torch-fsdp2 --ckpt-format torch_dcp "
     "--tensor-model-parallel-size 2",
     ME_ERR_CONFIG, "needs --use-torch-fsdp2 and a tensor size of 1"},
    {"--overlap-param-gather-with-optimizer-step", ME_ERR_CONFIG,
     "--overlap-param-gather-with-optimizer-step needs --ckpt-format torch"},
    {"--swiglu --quick-geglu", ME_ERR_CONFIG, "exclude each other"},
    {"--pipeline-model-parallel-layout Et|tL "
     "--num-virtual-stages-per-pipeline-rank 1",
     ME_ERR_CONFIG, "exclude each other"},
    {"--pipeline-model-parallel-layout Et|tL "
     "--num-layers-per-virtual-pipeline-stage 1",
     ME_ERR_CONFIG, "exclude each other"},
    {"--recompute-granularity full --recompute-num-layers 1", ME_ERR_CONFIG,
     "needs --recompute-method"},
    {"--recompute-activations --recompute-num-layers 1", ME_ERR_CONFIG,
     "does not go with selective"},
    {"--recompute-granularity selective --recompute-modules all", ME_ERR_CONFIG,
     "--recompute-modules all: must be one of core_attn"},
    {"--attention-dropout 2", ME_ERR_CONFIG, "a number from 0 to 1"},
    {"--context-parallel-size 2 --cp-comm-type allgather", ME_ERR_CONFIG,
     "--cp-comm-type allgather: must be one of p2p, all_gather, a2a, a2a+p2p"},
    {"--context-parallel-size 8 --hierarchical-context-parallel-sizes 2 2",
     ME_ERR_CONFIG,
     "--hierarchical-context-parallel-sizes: the product of the sizes is 4 and "
     "must be --context-parallel-size = 8"},
    {"--context-parallel-size 8 --cp-comm-type a2a+p2p "
     "--hierarchical-context-parallel-sizes 2 2 2",
     ME_ERR_CONFIG, "Transformer Engine needs two sizes for a2a+p2p, not 3"},
};

static void test_megatron__values_that_are_wrong(void **state)
{
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong_values); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        const me_status status =
            read_flags(config, wrong_values[i].flags, &diag);
        if (strstr(diag.text, wrong_values[i].part) == NULL) {
            fail_msg("%s: %s", wrong_values[i].flags, diag.text);
        }
        assert_int_equal(status, wrong_values[i].status);
        me_config_destroy(config);
    }
}

/* The last flag of a command and the list that it must be in. */
static const char *const list_cases[][3] = {
    {"--swiglu", "--swiglu", "modelled"},
    {"--pipeline-model-parallel-layout Et*4|t*4L",
     "--pipeline-model-parallel-layout", "modelled"},
    {"--lr 1e-4", "--lr", "no effect"},
    {"--adam-eps -.5", "--adam-eps", "no effect"},
    {"--save /x --save-interval 4", "--save", "no effect"},
    {"--num-query-groups 4", "--num-query-groups", "no effect"},
    {"--num-query-groups 4 --group-query-attention", "--num-query-groups",
     "modelled"},
    {"--context-parallel-size 2", "--context-parallel-size", "modelled"},
    {"--cp-comm-type a2a", "--cp-comm-type", "no effect"},
    {"--context-parallel-size 2 --cp-comm-type a2a", "--cp-comm-type",
     "modelled"},
    {"--context-parallel-size 2 --cp-comm-type a2a p2p p2p p2p p2p p2p p2p p2p",
     "--cp-comm-type", "modelled"},
    {"--context-parallel-size 4 --hierarchical-context-parallel-sizes 2 2",
     "--hierarchical-context-parallel-sizes", "modelled"},
    {"--context-parallel-size 2 --cp-comm-type all_gather --window-size 128,0",
     "--window-size", "modelled"},
    {"--moe-grouped-gemm", "--moe-grouped-gemm", "no effect"},
    {"--moe-grouped-gemm --num-experts 0", "--moe-grouped-gemm", "no effect"},
    {"--moe-grouped-gemm --num-experts 8", "--moe-grouped-gemm", "modelled"},
    {"--moe-router-topk 4 --num-experts 8", "--moe-router-topk", "modelled"},
    {"--moe-router-topk 4", "--moe-router-topk", "no effect"},
    {"--num-experts 8 --moe-aux-loss-coeff 0.01", "--moe-aux-loss-coeff",
     "modelled"},
    {"--num-experts 8 --moe-aux-loss-coeff 0.01 0.02 "
     "--moe-router-load-balancing-type aux_loss seq_aux_loss",
     "--moe-aux-loss-coeff", "modelled"},
    {"--num-experts 8 --moe-router-load-balancing-type seq_aux_loss",
     "--moe-router-load-balancing-type", "modelled"},
    {"--num-experts 8 --moe-token-dispatcher-type flex",
     "--moe-token-dispatcher-type", "modelled"},
    {"--fp8-recipe delayed", "--fp8-recipe", "no effect"},
    {"--fp8-format hybrid", "--fp8-format", "modelled"},
    {"--cross-entropy-fusion-impl te", "--cross-entropy-fusion-impl",
     "no effect"},
    {"--cross-entropy-loss-fusion --cross-entropy-fusion-impl te",
     "--cross-entropy-fusion-impl", "modelled"},
    {"--recompute-granularity full --recompute-method block "
     "--recompute-num-layers 0",
     "--recompute-num-layers", "modelled"},
    {"--expert-tensor-parallel-size 4", "--expert-tensor-parallel-size",
     "modelled"},
    {"--recompute-modules mlp", "--recompute-modules", "no effect"},
    {"--recompute-activations --recompute-modules core_attn",
     "--recompute-modules", "modelled"},
    {"--recompute-granularity selective --recompute-modules mlp core_attn",
     "--recompute-modules", "modelled"},
    {"--recompute-activations --recompute-modules layernorm shared_experts",
     "--recompute-modules", "modelled"},
    {"--multi-latent-attention", "--multi-latent-attention", "modelled"},
    {"--q-lora-rank 64", "--q-lora-rank", "no effect"},
    {"--multi-latent-attention --q-lora-rank 64", "--q-lora-rank", "modelled"},
    {"--multi-latent-attention --rope-type yarn", "--rope-type", "modelled"},
    {"--multi-latent-attention --mscale 0.7", "--mscale", "no effect"},
    {"--multi-latent-attention --mla-down-proj-fusion",
     "--mla-down-proj-fusion", "modelled"},
    {"--mtp-num-layers 1", "--mtp-num-layers", "modelled"},
    {"--mtp-detach-heads", "--mtp-detach-heads", "no effect"},
    {"--mtp-num-layers 1 --mtp-detach-heads", "--mtp-detach-heads",
     "not modelled"},
    {"--openai-gelu", "--openai-gelu", "no effect"},
    {"--position-embedding-type mrope --mrope-section 8 12 12",
     "--position-embedding-type", "not modelled"},
    {"--position-embedding-type yarn", "--position-embedding-type", "modelled"},
    {"--optimizer muon --muon-num-ns-steps 5", "--muon-num-ns-steps",
     "modelled"},
    {"--optimizer soap", "--optimizer", "modelled"},
    {"--optimizer sgd --muon-num-ns-steps 5", "--muon-num-ns-steps",
     "no effect"},
    {"--bf16 --initial-loss-scale 1024", "--initial-loss-scale", "no effect"},
    {"--attention-backend flash", "--attention-backend", "no effect"},
    {"--transformer-impl transformer_engine --attention-backend flash",
     "--attention-backend", "modelled"},
    {"--use-torch-fsdp2 --untie-embeddings-and-output-weights",
     "--use-torch-fsdp2", "modelled"},
    {"--use-torch-fsdp2 --untie-embeddings-and-output-weights "
     "--torch-fsdp2-no-reshard-after-forward",
     "--torch-fsdp2-no-reshard-after-forward", "modelled"},
    {"--torch-fsdp2-no-reshard-after-forward",
     "--torch-fsdp2-no-reshard-after-forward", "no effect"},
    {"--use-torch-fsdp2 --untie-embeddings-and-output-weights "
     "--overlap-grad-reduce",
     "--overlap-grad-reduce", "no effect"},
    {"--save x --save-interval 2 --dist-ckpt-optim-fully-reshardable",
     "--dist-ckpt-optim-fully-reshardable", "modelled"},
    {"--dist-ckpt-optim-fully-reshardable",
     "--dist-ckpt-optim-fully-reshardable", "no effect"},
    {"--async-save --use-persistent-ckpt-worker",
     "--use-persistent-ckpt-worker", "not modelled"},
    {"--use-persistent-ckpt-worker", "--use-persistent-ckpt-worker",
     "no effect"},
    {"--non-persistent-ckpt-type local --non-persistent-local-ckpt-dir x "
     "--replication --replication-jump 2",
     "--replication", "not modelled"},
    {"--mtp-num-layers 1 --mtp-hybrid-override-pattern M",
     "--mtp-hybrid-override-pattern", "not modelled"},
    {"--full-validation --multiple-validation-sets",
     "--multiple-validation-sets", "no effect"},
    {"--full-validation", "--full-validation", "modelled"},
    {"--eval-iters 0", "--eval-iters", "modelled"},
    {"--eval-micro-batch-size 2", "--eval-micro-batch-size", "modelled"},
    {"--rampup-batch-size 1 2 3", "--rampup-batch-size", "no effect"},
    {"--disable-jit-fuser", "--disable-jit-fuser", "no effect"},
    {"--step-batch-size-schedule 0:8", "--step-batch-size-schedule",
     "not modelled"},
    {"--num-distributed-optimizer-instances 1",
     "--num-distributed-optimizer-instances", "modelled"},
    {"--num-layer 4 5", "--num-layer", "not modelled"},
    {"--num_layers=4", "--num_layers", "not modelled"},
    {"-x", "-x", "not modelled"},
};

static void test_megatron__lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(list_cases); i++) {
        me_config *config = job_of(list_cases[i][0]);
        const me_flag_list *list = strcmp(list_cases[i][2], "modelled") == 0
                                       ? &config->modelled
                                   : strcmp(list_cases[i][2], "no effect") == 0
                                       ? &config->no_effect
                                       : &config->not_modelled;
        if (!list_has(list, list_cases[i][1])) {
            fail_msg("%s: not in the list \"%s\"", list_cases[i][0],
                     list_cases[i][2]);
        }
        assert_int_equal(list_has(&config->modelled, list_cases[i][1]) +
                             list_has(&config->no_effect, list_cases[i][1]) +
                             list_has(&config->not_modelled, list_cases[i][1]),
                         1);
        me_config_destroy(config);
    }
}

/** Flags and the option that they set. */
static const char *const option_cases[][3] = {
    {"--step-batch-size-schedule 0:8,250B:64,1T:16", "train.global_batch_size",
     "64"},
    {"--ddp-bucket-size 0", "optimizer.ddp_bucket_size", "1"},
    {"--ddp-bucket-size 0_0", "optimizer.ddp_bucket_size", "1"},
    {"--ddp-bucket-size 7", "optimizer.ddp_bucket_size", "7"},
    {"--use-megatron-fsdp --ckpt-format fsdp_dtensor --transformer-impl "
     "transformer_engine",
     "optimizer.distributed", "true"},
    {"--optimizer dist_muon", "optimizer.kind", "muon"},
    {"--save x --save-interval 2 --dist-ckpt-optim-fully-reshardable",
     "optimizer.saves_fully_reshardable", "true"},
    {"--save x --save-interval 2 --dist-ckpt-optim-fully-reshardable --no-save-optim",
     "optimizer.saves_fully_reshardable", "false"},
    {"--save x --save-interval 2 --dist-ckpt-optim-fully-reshardable "
     "--distrib-optim-fully-reshardable-mem-efficient",
     "optimizer.saves_fully_reshardable", "false"},
    {"--group-query-attention", "model.num_query_groups", "1"},
    {"--num-query-groups 4 --group-query-attention", "model.num_query_groups",
     "4"},
    {"--num-query-groups 4", "model.num_query_groups", "0"},
    {"--num-layers 2 --num-layers 3", "model.num_layers", "3"},
    {"--num-layers=5", "model.num_layers", "5"},
    {"--disable-bias-linear", "model.add_bias_linear", "false"},
    {"--use-rotary-position-embeddings --position-embedding-type none",
     "model.position_embedding_type", "rope"},
    {"--apply-query-key-layer-scaling", "model.query_key_layer_scaling",
     "true"},
    {"--recompute-activations --recompute-granularity full",
     "recompute.granularity", "selective"},
    {"--recompute-activations --recompute-modules mlp", "recompute.core_attn",
     "false"},
    {"--recompute-activations --recompute-modules core_attn mlp",
     "recompute.mlp", "true"},
    {"--recompute-activations --recompute-modules layernorm mlp",
     "recompute.layernorm", "true"},
    {"--recompute-activations", "recompute.layernorm", "false"},
    {"--quick-geglu", "model.activation", "quick_geglu"},
    {"--activation-func-clamp-value 7.0", "model.activation_clamp_value", "7"},
    {"--context-parallel-size 2", "parallel.context", "2"},
    {"--context-parallel-size 2 --cp-comm-type all_gather",
     "parallel.cp_comm_type", "all_gather"},
    {"--context-parallel-size 2 --cp-comm-type p2p a2a a2a p2p",
     "parallel.cp_comm_layers", "p2p a2a a2a p2p"},
    {"--context-parallel-size 8 --cp-comm-type p2p p2p p2p a2a+p2p "
     "--hierarchical-context-parallel-sizes 2 4",
     "parallel.context_heads", "2"},
    {"--context-parallel-size 8 --cp-comm-type a2a+p2p "
     "--hierarchical-context-parallel-sizes 4 2",
     "parallel.context_heads", "4"},
    {"--context-parallel-size 8 --hierarchical-context-parallel-sizes 4 2",
     "parallel.context_heads", "0"},
    {"--tokenizer-type GPT2BPETokenizer --vocab-size 7", "model.vocab_size",
     "50257"},
    {"--no-rope-fusion", "train.apply_rope_fusion", "false"},
    {"--use-torch-fsdp2 --untie-embeddings-and-output-weights "
     "--torch-fsdp2-no-reshard-after-forward",
     "parallel.torch_fsdp2_reshard_after_forward", "false"},
    {"--torch-fsdp2-no-reshard-after-forward",
     "parallel.torch_fsdp2_reshard_after_forward", "true"},
    {"--use-torch-fsdp2 --untie-embeddings-and-output-weights "
     "--overlap-grad-reduce",
     "optimizer.overlap_grad_reduce", "false"},
    {"--transformer-impl transformer_engine", "impl.transformer",
     "transformer_engine"},
    {"--transformer-impl transformer_engine --attention-backend unfused",
     "impl.attention_backend", "unfused"},
    {"--attention-backend unfused", "impl.attention_backend", "auto"},
    {"", "impl.transformer", "local"},
    {"--softmax-type learnable", "model.softmax_type", "learnable"},
};

static void test_megatron__options(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(option_cases); i++) {
        me_config *config = job_of(option_cases[i][0]);
        me_str text = {0};
        me_option_format(me_option_find(option_cases[i][1]), config, &text);
        assert_string_equal(me_str_text(&text), option_cases[i][2]);
        me_str_fini(&text);
        me_config_destroy(config);
    }
}

static void test_megatron__transformer_engine_is_the_default(void **state)
{
    (void)state;

    /* Its attention follows from type, head size and what is asked for. */
    static const struct {
        const char *flags[13];
        me_core_attention_kind attention;
    } cases[] = {
        {{"--bf16"}, ME_CORE_ATTENTION_TE_FUSED},
        {{"--fp16"}, ME_CORE_ATTENTION_TE_FUSED},
        {{"--loss-scale", "1"}, ME_CORE_ATTENTION_TE_UNFUSED},
        {{"--bf16", "--kv-channels", "12"}, ME_CORE_ATTENTION_TE_UNFUSED},
        {{"--bf16", "--kv-channels", "256"}, ME_CORE_ATTENTION_TE_FUSED},
        {{"--bf16", "--kv-channels", "264"}, ME_CORE_ATTENTION_TE_UNFUSED},
        {{"--bf16", "--attention-backend", "unfused"},
         ME_CORE_ATTENTION_TE_UNFUSED},
        {{"--bf16", "--attention-backend", "fused"},
         ME_CORE_ATTENTION_TE_FUSED},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *flags[32] = {"--num-layers",
                                 "2",
                                 "--hidden-size",
                                 "64",
                                 "--num-attention-heads",
                                 "4",
                                 "--seq-length",
                                 "16",
                                 "--max-position-embeddings",
                                 "16",
                                 "--vocab-size",
                                 "128",
                                 "--micro-batch-size",
                                 "1"};
        int count = 14;
        for (int k = 0; cases[i].flags[k] != NULL; k++) {
            flags[count++] = cases[i].flags[k];
        }
        me_config *config = me_config_create();
        assert_int_equal(me_config_read_launch(config, count, flags, NULL),
                         ME_OK);
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->impl.transformer, ME_TRANSFORMER_ENGINE);
        assert_int_equal(config->impl.core_attention, cases[i].attention);
        assert_int_equal(config->not_modelled.count, 0);
        me_config_destroy(config);
    }
}

/** LanguageModule._set_attention_backend() stops where a variable and the flag
 *  do not agree. */
static void test_megatron__attention_variables(void **state)
{
    (void)state;
    static const char *const flags[] = {"NVTE_FUSED_ATTN=0",
                                        "python",
                                        "pretrain_gpt.py",
                                        "--num-layers",
                                        "2",
                                        "--hidden-size",
                                        "64",
                                        "--num-attention-heads",
                                        "4",
                                        "--seq-length",
                                        "16",
                                        "--max-position-embeddings",
                                        "16",
                                        "--vocab-size",
                                        "128",
                                        "--micro-batch-size",
                                        "1",
                                        "--bf16",
                                        "--attention-backend",
                                        "unfused"};
    for (int with_flag = 0; with_flag < 2; with_flag++) {
        me_config *config = me_config_create();
        const int count = with_flag ? 20 : 18;
        assert_int_equal(me_config_read_launch(config, count, flags, NULL),
                         ME_OK);
        assert_int_equal(me_config_finish(config, 1, NULL),
                         with_flag ? ME_OK : ME_ERR_CONFIG);
        me_config_destroy(config);
    }
}

/* Numbers as Python writes them; a float where forks have one, and the words of
 * forks for choices. */
static void test_megatron__takes_what_argparse_takes(void **state)
{
    (void)state;
    me_config *config = job_of(
        "--train-samples 732_421_875 --clip-grad 1_0.0 --lr=1_0e-5 "
        "--normalization rmsnorm --rotary-base 1000000.0 --vocab-size +01_000 "
        "--rotary-seq-len-interpolation-factor 2.0 --kv-channels 6_4");
    assert_true(config->optimizer.clip_grad == 10.0);
    assert_int_equal(config->model.normalization, ME_NORMALIZATION_RMS_NORM);
    assert_int_equal(config->model.vocab_size, 1000);
    assert_int_equal(config->model.kv_channels, 64);
    me_config_destroy(config);
}

/* `args.clip_grad > 0` decides; other floats move nothing that is counted. */
static void test_megatron__takes_what_float_takes(void **state)
{
    (void)state;
    static const char *const flags[] = {
        "--clip-grad inf", "--clip-grad=-inf", "--clip-grad nan",
        "--clip-grad -1 --lr inf --adam-eps=-inf --adam-beta1 nan"};
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        me_config *config = job_of(flags[i]);
        assert_true((config->optimizer.clip_grad > 0) == (i == 0));
        me_config_destroy(config);
    }
}

/* A batch that the ranks do not divide is refused, or made smaller. */
static void test_megatron__decreases_a_batch(void **state)
{
    (void)state;
#define JOB                                                                    \
    "--global-batch-size 6 --micro-batch-size 4 --num-layers 2 --hidden-size " \
    "8 --num-attention-heads 1 --seq-length 16 --max-position-embeddings 16 "  \
    "--vocab-size 128 --bf16 --transformer-impl local "
    me_config *config = job_of(JOB);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_ERR_CONFIG);
    me_config_destroy(config);
    config = job_of(
        JOB "--decrease-batch-size-if-needed --eval-global-batch-size 4");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->train.global_batch_size, 4);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_megatron__values_that_are_wrong),
        cmocka_unit_test(test_megatron__lists),
        cmocka_unit_test(test_megatron__options),
        cmocka_unit_test(test_megatron__takes_what_argparse_takes),
        cmocka_unit_test(test_megatron__takes_what_float_takes),
        cmocka_unit_test(test_megatron__transformer_engine_is_the_default),
        cmocka_unit_test(test_megatron__attention_variables),
        cmocka_unit_test(test_megatron__decreases_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
