/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <stdio.h>

/** A job that Megatron-LM runs. */
static const char base[] =
    "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 "
    "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 "
    "--tokenizer-type NullTokenizer --micro-batch-size 2 "
    "--global-batch-size 32 --bf16 --mock-data --train-iters 10";

/** validate_args() of Megatron-LM core_v0.19.0 (training/arguments.py) from top to
 *  bottom: the line that stops a job on eight ranks, what is added to the base, or
 *  taken from it, and what must be said. */
static const struct {
    int line;
    const char *added;
    const char *variable; /**< before the program's name; "": none */
    const char *taken;    /**< a flag; "": none */
    const char *text;
} cases
    [] =
        {
            {392, "--ckpt-convert-format torch_dist", "", "",
             "--ckpt-convert-format needs --ckpt-convert-save"},
            {404,
             "--non-persistent-ckpt-type local --non-persistent-save-interval 2",
             "", "",
             "--non-persistent-ckpt-type local needs --non-persistent-local-ckpt-dir"},
            {430, "--tensor-model-parallel-size 3", "", "",
             "parallel.tensor = 3 does not divide model.num_attention_heads = 16"},
            {435,
             "--attention-backend local --transformer-impl transformer_engine",
             "", "",
             "impl.attention_backend = local needs impl.transformer = local (--transformer-impl local): Transforme"},
            {564,
             "--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 4 2",
             "", "",
             "--hierarchical-context-parallel-sizes: the product of the sizes is 8 and must be --context-parallel-"},
            {566, "--context-parallel-size 4 --cp-comm-type a2a+p2p", "", "",
             "parallel.cp_comm_type = a2a+p2p needs parallel.context_heads (--hierarchical-context-parallel-sizes)"},
            {573, "--batch-size 4", "", "",
             "--batch-size: Megatron-LM refuses this flag: use --micro-batch-size"},
            {576, "--warmup 4", "", "",
             "--warmup: Megatron-LM refuses this flag: use --lr-warmup-fraction"},
            {579, "--model-parallel-size 2", "", "",
             "--model-parallel-size: Megatron-LM refuses this flag: use --tensor-model-parallel-size"},
            {594,
             "--enable-cuda-graph --cuda-graph-impl local --te-rng-tracker", "",
             "",
             "--enable-cuda-graph and --cuda-graph-impl local|transformer_engine|full_iteration exclude each other"},
            {597, "--enable-cuda-graph --external-cuda-graph --te-rng-tracker",
             "", "",
             "--enable-cuda-graph and --external-cuda-graph exclude each other: give one"},
            {616,
             "--cuda-graph-impl transformer_engine --te-rng-tracker --cuda-graph-scope attn --cuda-graph-modules attn",
             "", "",
             "--cuda-graph-scope and --cuda-graph-modules exclude each other: give one"},
            {659, "--data-path x --data-args-path y", "", "--mock-data",
             "--data-path and --data-args-path exclude each other: give one"},
            {666, "--train-data-path x --per-split-data-args-path y", "",
             "--mock-data",
             "--train-data-path and --per-split-data-args-path exclude each other: give one"},
            {675, "", "", "--micro-batch-size",
             "train.micro_batch_size is not given (in a launch command --micro-batch-size)"},
            {676, "--micro-batch-size 0", "", "",
             "--micro-batch-size 0: must be a whole number from 1 to 1073741824"},
            {681, "--step-batch-size-schedule 0:384", "", "",
             "--global-batch-size and --step-batch-size-schedule exclude each other: give one"},
            {687, "--global-batch-size 0", "", "",
             "--global-batch-size 0: must be a whole number from 1 to 1073741824"},
            {857,
             "--mtp-num-layers 1 --position-embedding-type learned_absolute",
             "", "",
             "model.mtp_num_layers = 1 needs model.position_embedding_type = rope or none, not learned_absolute"},
            {894,
             "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --num-virtual-stages-per-pipeline-rank 2",
             "", "",
             "--num-layers-per-virtual-pipeline-stage and --num-virtual-stages-per-pipeline-rank exclude each othe"},
            {911,
             "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout E|t|tttL",
             "", "",
             "parallel.pipeline_layout has 3 stages: no multiple of parallel.pipeline = 2"},
            {921,
             "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --decoder-first-pipeline-num-layers 1",
             "", "",
             "parallel.num_layers_per_virtual_pipeline_stage does not go with parallel.decoder_first/last_pipeline"},
            {934,
             "--num-layers 5 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1",
             "", "",
             "parallel.pipeline = 2 does not divide model.num_layers = 5"},
            {938,
             "--num-layers 6 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2",
             "", "",
             "parallel.num_layers_per_virtual_pipeline_stage = 2 does not divide the 3 layers of a pipeline stage"},
            {963, "--num-layers 5 --pipeline-model-parallel-size 2", "", "",
             "parallel.pipeline = 2 does not divide model.num_layers = 5"},
            {968, "--num-virtual-stages-per-pipeline-rank 2", "", "",
             "parallel.virtual_pipeline = 2 needs parallel.pipeline of at least 2, not 1"},
            {972,
             "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication",
             "", "",
             "parallel.virtual_pipeline = 2 needs parallel.pipeline of at least 3 without parallel.overlap_p2p_com"},
            {991, "--overlap-param-gather --overlap-grad-reduce", "", "",
             "optimizer.overlap_param_gather = true needs optimizer.distributed = true"},
            {994, "--overlap-param-gather --use-distributed-optimizer", "", "",
             "optimizer.overlap_param_gather = true needs optimizer.overlap_grad_reduce = true"},
            {1000,
             "--use-torch-fsdp2 --pipeline-model-parallel-size 2 --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights",
             "", "",
             "parallel.torch_fsdp2 = true (--use-torch-fsdp2) needs parallel.pipeline = 1"},
            {1002,
             "--use-torch-fsdp2 --num-experts 8 --expert-model-parallel-size 2 --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights --disable-bias-linear",
             "", "",
             "parallel.torch_fsdp2 = true (--use-torch-fsdp2) needs parallel.expert = 1"},
            {1004,
             "--use-torch-fsdp2 --use-distributed-optimizer --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights",
             "", "",
             "parallel.torch_fsdp2 = true (--use-torch-fsdp2) needs optimizer.distributed = false"},
            {1006, "--use-torch-fsdp2 --untie-embeddings-and-output-weights",
             "", "",
             "parallel.torch_fsdp2 = true (--use-torch-fsdp2) needs train.gradient_accumulation_fusion = false (--"},
            {1008,
             "--use-torch-fsdp2 --untie-embeddings-and-output-weights --no-gradient-accumulation-fusion --ckpt-format torch",
             "", "",
             "--ckpt-format torch does not go with --use-torch-fsdp2: give torch_dist or torch_dcp"},
            {1010, "--use-torch-fsdp2 --no-gradient-accumulation-fusion", "",
             "",
             "parallel.torch_fsdp2 = true (--use-torch-fsdp2) needs model.untie_embeddings_and_output_weights = tr"},
            {1012,
             "--use-torch-fsdp2 --untie-embeddings-and-output-weights --no-gradient-accumulation-fusion --fp16",
             "", "--bf16",
             "parallel.torch_fsdp2 = true (--use-torch-fsdp2) does not go with train.params_dtype = float16 (--fp1"},
            {1014,
             "--use-torch-fsdp2 --untie-embeddings-and-output-weights --no-gradient-accumulation-fusion",
             "CUDA_DEVICE_MAX_CONNECTIONS=1", "",
             "parallel.torch_fsdp2 = true (--use-torch-fsdp2) does not go with CUDA_DEVICE_MAX_CONNECTIONS=1: give"},
            {1033, "--overlap-param-gather-with-optimizer-step", "", "",
             "--overlap-param-gather-with-optimizer-step needs --ckpt-format torch: Megatron-LM stops at it with a"},
            {1035,
             "--overlap-param-gather-with-optimizer-step --use-distributed-optimizer --overlap-grad-reduce",
             "", "",
             "--overlap-param-gather-with-optimizer-step needs --ckpt-format torch: Megatron-LM stops at it with a"},
            {1037,
             "--overlap-param-gather-with-optimizer-step --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ckpt-format torch",
             "", "",
             "optimizer.overlap_param_gather_with_optimizer_step = true needs Megatron-LM's interleaved schedule ("},
            {1039,
             "--overlap-param-gather-with-optimizer-step --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1",
             "", "",
             "--overlap-param-gather-with-optimizer-step needs --ckpt-format torch: Megatron-LM stops at it with a"},
            {1061, "--fp8-format hybrid --fp8-param-gather", "", "",
             "train.fp8_param = true needs optimizer.distributed = true (--use-distributed-optimizer) or FSDP: Meg"},
            {1066, "--fp4-format e2m1 --fp8-format hybrid", "", "",
             "--fp4-format and --fp8-format exclude each other: give one"},
            {1070, "--fp4-param-gather", "", "",
             "--fp4-param-gather needs --fp4-format"},
            {1127,
             "--use-megatron-fsdp --ckpt-format fsdp_dtensor --optimizer muon",
             "", "",
             "--ckpt-format fsdp_dtensor does not go with an emerging optimizer: give torch or torch_dist"},
            {1140,
             "--use-megatron-fsdp --ckpt-format fsdp_dtensor --data-parallel-sharding-strategy optim_grads_params --check-weight-hash-across-dp-replicas-interval 5 --no-gradient-accumulation-fusion",
             "", "",
             "--check-weight-hash-across-dp-replicas-interval and --data-parallel-sharding-strategy optim_grads_pa"},
            {1143, "--use-megatron-fsdp --ckpt-format fsdp_dtensor",
             "CUDA_DEVICE_MAX_CONNECTIONS=1", "",
             "parallel.megatron_fsdp = true (--use-megatron-fsdp) does not go with CUDA_DEVICE_MAX_CONNECTIONS=1: "},
            {1146, "--use-megatron-fsdp --ckpt-format torch_dist", "", "",
             "--use-megatron-fsdp needs --ckpt-format fsdp_dtensor: Megatron-LM stops at any other"},
            {1161,
             "--use-megatron-fsdp --ckpt-format fsdp_dtensor --init-model-with-meta-device --data-parallel-sharding-strategy no_shard",
             "", "",
             "parallel.megatron_fsdp = true (--use-megatron-fsdp) with parallel.init_model_with_meta_device = true"},
            {1167, "--fsdp-manual-registration", "", "",
             "--fsdp-manual-registration needs --use-megatron-fsdp"},
            {1168,
             "--use-megatron-fsdp --ckpt-format fsdp_dtensor --fsdp-manual-registration",
             "", "", "--fsdp-manual-registration needs --use-nccl-ub"},
            {1173, "--fp16", "", "",
             "--bf16 and --fp16 exclude each other: give one"},
            {1187,
             "--accumulate-allreduce-grads-in-fp32 --use-precision-aware-optimizer --use-distributed-optimizer --main-grads-dtype bf16",
             "", "",
             "optimizer.precision_aware = true with train.accumulate_allreduce_grads_in_fp32 = true needs optimize"},
            {1196, "--cuda-graph-impl full_iteration --te-rng-tracker", "", "",
             "train.cuda_graph_impl = full_iteration needs train.check_for_nan_in_loss_and_grad = false (--no-chec"},
            {1239, "--train-samples 100", "", "",
             "--train-iters and --train-samples exclude each other: give one"},
            {1241, "--lr-decay-samples 100", "", "",
             "--train-iters and --lr-decay-samples exclude each other: give one"},
            {1243, "--lr-warmup-samples 100", "", "",
             "--train-iters and --lr-warmup-samples>0 exclude each other: give one"},
            {1246, "--lr-warmup-fraction 0.1 --lr-warmup-iters 3", "", "",
             "--train-iters and --lr-warmup-iters>0 exclude each other: give one"},
            {1255, "--train-samples 100 --lr-decay-iters 10", "",
             "--train-iters",
             "--train-samples and --lr-decay-iters exclude each other: give one"},
            {1257, "--train-samples 100 --lr-warmup-iters 10", "",
             "--train-iters",
             "--train-samples and --lr-warmup-iters>0 exclude each other: give one"},
            {1265, "--encoder-num-layers 4", "", "",
             "--num-layers and --encoder-num-layers exclude each other: give one"},
            {1269, "", "", "--num-layers",
             "model.num_layers is not given (in a launch command --num-layers)"},
            {1292, "--num-attention-heads 15", "", "",
             "model.num_attention_heads = 15 does not divide model.hidden_size = 1024"},
            {1296,
             "--context-parallel-size 2 --seq-length 1022 --cp-comm-type p2p",
             "", "",
             "model.seq_length = 1022 is no multiple of 2 x parallel.context = 2 x 2"},
            {1307, "--encoder-seq-length 12", "", "",
             "--seq-length and --encoder-seq-length exclude each other: give one"},
            {1310, "", "", "--seq-length",
             "model.seq_length is not given (in a launch command --seq-length)"},
            {1314, "--max-position-embeddings 512", "", "",
             "model.max_position_embeddings = 512 is smaller than model.seq_length = 1024"},
            {1320, "--lr 1e-4 --min-lr 1", "", "",
             "--min-lr 1: must be at most --lr, 0.0001"},
            {1323, "--save x --save-interval 0", "", "",
             "--save-interval 0: must be above 0"},
            {1326, "--save x --save-interval 10 --save-retain-interval 15", "",
             "",
             "--save-retain-interval 15: must be a multiple of --save-interval, 10"},
            {1328,
             "--save x --save-interval 10 --save-params-interval 1 --use-distributed-optimizer --overlap-param-gather --overlap-grad-reduce",
             "", "",
             "--save-params-interval and --overlap-param-gather exclude each other: give one"},
            {1330, "--log-memory-interval 3 --log-interval 2", "", "",
             "--log-memory-interval 3: must be a multiple of --log-interval, 2"},
            {1333, "--fp16-lm-cross-entropy", "", "",
             "--fp16-lm-cross-entropy needs --fp16"},
            {1335, "--fp32-residual-connection", "", "--bf16",
             "model.fp32_residual_connection = true needs train.params_dtype = bfloat16 or float16, not float32"},
            {1350, "--no-weight-decay-cond-type x", "", "",
             "--no-weight-decay-cond-type x: must be true or false"},
            {1354, "--start-weight-decay 0.1", "", "",
             "--start-weight-decay needs --weight-decay-incr-style linear|cosine"},
            {1359, "--weight-decay-incr-style linear", "", "",
             "--weight-decay-incr-style linear|cosine needs --start-weight-decay"},
            {1371,
             "--distribute-saved-activations --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
             "", "",
             "recompute.distribute_saved_activations = true needs parallel.tensor over 1 and parallel.sequence = f"},
            {1374,
             "--distribute-saved-activations --tensor-model-parallel-size 2",
             "", "",
             "recompute.distribute_saved_activations = true needs recompute.granularity = full"},
            {1386,
             "--recompute-granularity selective --recompute-method uniform", "",
             "",
             "--recompute-method does not go with selective recomputation: leave it out or give --recompute-granul"},
            {1402, "--tp-comm-overlap --tensor-model-parallel-size 2", "", "",
             "--tp-comm-overlap needs --sequence-parallel"},
            {1405,
             "--hybrid-context-parallel --pipeline-model-parallel-size 2 --calculate-per-token-loss",
             "", "",
             "--hybrid-context-parallel and --pipeline-model-parallel-size>1 exclude each other: give one"},
            {1409, "--hybrid-context-parallel", "", "",
             "--hybrid-context-parallel needs --calculate-per-token-loss"},
            {1560, "--qk-clip --qk-clip-alpha 1.5", "", "",
             "--qk-clip-alpha 1.5: must be below 1"},
            {1562, "--qk-clip --qk-clip-threshold 0", "", "",
             "--qk-clip-threshold 0: must be above 0"},
            {1579, "--no-position-embedding", "", "",
             "--no-position-embedding needs --position-embedding-type rope --use-rotary-position-embeddings"},
            {1583,
             "--position-embedding-type relative --transformer-impl local", "",
             "",
             "--position-embedding-type relative and --transformer-impl local exclude each other: give one"},
            {1589, "--position-embedding-type mrope", "", "",
             "--position-embedding-type mrope needs --mrope-section"},
            {1601, "--expert-model-parallel-size 2", "", "",
             "parallel.expert = 2 needs experts: give moe.num_experts"},
            {1602,
             "--expert-model-parallel-size 4 --num-experts 6 --disable-bias-linear",
             "", "", "parallel.expert = 4 does not divide moe.num_experts = 6"},
            {1613, "--ckpt-format torch_dcp", "", "",
             "--ckpt-format torch_dcp needs --use-torch-fsdp2 and a tensor size of 1"},
            {1614,
             "--ckpt-format torch_dcp --use-torch-fsdp2 --tensor-model-parallel-size 2 --untie-embeddings-and-output-weights --no-gradient-accumulation-fusion",
             "", "",
             "--ckpt-format torch_dcp needs --use-torch-fsdp2 and a tensor size of 1"},
            {1621, "--ckpt-format fsdp_dtensor", "", "",
             "--ckpt-format fsdp_dtensor needs --use-megatron-fsdp"},
            {1624, "--data-path x", "", "",
             "--mock-data and --data-path exclude each other: give one"},
            {1637, "--fim-data", "", "",
             "--fim-data and --mock-data exclude each other: give one"},
            {1684,
             "--optimizer muon --use-torch-fsdp2 --untie-embeddings-and-output-weights --no-gradient-accumulation-fusion",
             "", "",
             "optimizer.kind = muon does not go with parallel.torch_fsdp2 = true (--use-torch-fsdp2)"},
            {1686, "--optimizer muon --ckpt-format zarr", "", "",
             "--ckpt-format zarr: must be one of torch, torch_dist, torch_dcp, fsdp_dtensor"},
            {1698,
             "--disable-gloo-process-groups --use-distributed-optimizer --dist-ckpt-optim-fully-reshardable --distrib-optim-fully-reshardable-mem-efficient",
             "", "",
             "--dist-ckpt-optim-fully-reshardable and --distrib-optim-fully-reshardable-mem-efficient exclude each"},
            {1702,
             "--fake-process-group --num-experts 8 --moe-token-dispatcher-type flex --disable-bias-linear",
             "", "",
             "moe.token_dispatcher = flex: DeepEP cannot exchange tokens of parallel.expert_tensor x parallel.expe"},
            {1738, "--load-main-params-from-ckpt", "", "",
             "--load-main-params-from-ckpt needs --no-load-optim"},
            {1752, "--logits-save-dir x", "", "",
             "--logits-save-dir needs --logits-save-top-k"},
            {1771, "--override-ckpt-iteration 5 --finetune", "", "",
             "--override-ckpt-iteration and --finetune exclude each other: give one"},
            {1783, "--moe-use-upcycling --num-experts 8 --disable-bias-linear",
             "", "", "--moe-use-upcycling needs --save"},
            {1804, "--optimizer-cpu-offload --use-distributed-optimizer", "",
             "",
             "optimizer.cpu_offload = true needs optimizer.precision_aware = true (--use-precision-aware-optimizer"},
            {1808,
             "--optimizer-cpu-offload --use-distributed-optimizer --use-precision-aware-optimizer --fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather",
             "", "",
             "optimizer.cpu_offload = true with train.fp8_param = true needs train.fp8_recipe = delayed"},
            {1816,
             "--replication --non-persistent-ckpt-type local --non-persistent-local-ckpt-dir x",
             "", "", "--replication needs --replication-jump"},
            {1817, "--replication --replication-jump 2", "", "",
             "--replication needs --non-persistent-ckpt-type local"},
            {1823, "--delay-wgrad-compute --transformer-impl local", "", "",
             "moe.delay_wgrad_compute = true needs moe.overlap_expert_comm = true (--overlap-moe-expert-parallel-c"},
            {1838,
             "--delay-wgrad-compute --overlap-grad-reduce --cuda-graph-impl transformer_engine --cuda-graph-modules attn --te-rng-tracker --no-gradient-accumulation-fusion --disable-bias-linear --overlap-moe-expert-parallel-comm --num-experts 8 --expert-model-parallel-size 2",
             "", "",
             "train.cuda_graph_impl = transformer_engine with two micro-batches in turns (--overlap-moe-expert-par"},
            {1855,
             "--fine-grained-activation-offloading --offload-modules core_attn --transformer-impl local",
             "NVTE_CPU_OFFLOAD_V1=1", "",
             "offload.fine_grained = true needs impl.transformer = transformer_engine (--transformer-impl transfor"},
            {1881, "--cuda-graph-impl transformer_engine --te-rng-tracker",
             "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "",
             "train.cuda_graph_impl = transformer_engine with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True nee"},
            {1888,
             "--cuda-graph-impl full_iteration --te-rng-tracker --cuda-graph-modules attn --no-check-for-nan-in-loss-and-grad", "", "", "--cuda-graph-impl full_iteration and --cuda-graph-modules exclude each other: give one"},
            {1893,
             "--multi-latent-attention --group-query-attention --num-query-groups 4",
             "", "",
             "model.num_query_groups = 4 does not go with model.multi_latent_attention = true: leave it out"},
            {1896, "--mla-down-proj-fusion", "", "",
             "--mla-down-proj-fusion needs --multi-latent-attention"},
            {1900, "--moe-latent-size 0 --num-experts 8 --disable-bias-linear",
             "", "",
             "--moe-latent-size 0: must be a whole number from 1 to 16777216"},
            {1901, "--moe-latent-size 8", "", "",
             "--moe-latent-size needs --num-experts"},
};

enum {
    MOST_WORDS = 64
};

/** Words of @p text as arguments, without the flag @p taken and its value.
 *  @return how many there are then */
static int append_words(char *text, const char *taken, const char **words,
                        int count)
{
    bool is_taken = false;
    for (char *at = text; *at != '\0';) {
        char *end = at + strcspn(at, " ");
        char *next = end + strspn(end, " ");
        *end = '\0';
        if (at[0] == '-' && at[1] == '-') {
            is_taken = strcmp(at, taken) == 0;
        }
        if (!is_taken) {
            assert_true(count < MOST_WORDS);
            words[count++] = at;
        }
        at = next;
    }
    return count;
}

static me_status read_job(const char *added, const char *variable,
                          const char *taken, me_diag *diag)
{
    char first[512];
    char second[512];
    const char *words[MOST_WORDS];
    int count = 0;
    (void)snprintf(first, sizeof first, "%s", base);
    (void)snprintf(second, sizeof second, "%s", added);
    if (variable[0] != '\0') {
        words[count++] = variable;
    }
    words[count++] = "pretrain_gpt.py";
    count = append_words(first, taken, words, count);
    count = append_words(second, "", words, count);
    me_config *config = me_config_create();
    assert_non_null(config);
    me_status status = me_config_read_launch(config, count, words, diag);
    if (status == ME_OK) {
        status = me_config_finish(config, 8, diag);
    }
    me_config_destroy(config);
    return status;
}

static void test_contradictions__validate_args(void **state)
{
    (void)state;
    me_diag diag = {0};
    assert_int_equal(read_job("", "", "", &diag), ME_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const me_status status =
            read_job(cases[i].added, cases[i].variable, cases[i].taken, &diag);
        if (status == ME_OK || strstr(diag.text, cases[i].text) == NULL) {
            fail_msg("arguments.py:%d: %s: %s", cases[i].line, cases[i].added,
                     status == ME_OK ? "not refused" : diag.text);
        }
    }
}

/** The same flags where nothing speaks against them. */
static void test_contradictions__what_goes_together(void **state)
{
    (void)state;
    static const char *const right[] = {
        "--lr-warmup-samples 0 --lr-warmup-fraction 0.1 --lr-warmup-iters 0",
        "--train-samples 100 --skip-train",
        ("--start-weight-decay 0.1 --end-weight-decay 0.1 "
         "--weight-decay-incr-style linear"),
        "--no-position-embedding --use-rotary-position-embeddings",
        "--lr 1e-4 --min-lr 1e-4",
        "--log-memory-interval 200",
        "--save x --save-interval 10 --save-retain-interval 20",
        "--enable-cuda-graph --cuda-graph-impl none --te-rng-tracker",
        "--cross-entropy-loss-fusion --cross-entropy-fusion-impl native",
        "--optimizer muon --ckpt-format torch",
    };
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        me_diag diag = {0};
        if (read_job(right[i], "", "", &diag) != ME_OK) {
            fail_msg("%s: %s", right[i], diag.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contradictions__validate_args),
        cmocka_unit_test(test_contradictions__what_goes_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
