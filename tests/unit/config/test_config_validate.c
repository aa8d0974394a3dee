/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#define AWARE                                                                  \
    "optimizer.precision_aware=true optimizer.distributed=true "               \
    "impl.optimizer=fused"

#define DISTRIBUTED                                                            \
    "model.position_embedding_type=rope parallel.tensor=2 "                    \
    "recompute.granularity=full recompute.num_layers=1 "                       \
    "recompute.distribute_saved_activations=true"

/* What is set on JOB_TEXT and what the line must say; "" is a job that is right. */
static const char *const rule_cases[][2] = {
    {"", ""},
    {"parallel.tensor=3",
     "parallel.tensor = 3 does not divide model.num_attention_heads = 8"},
    {"model.num_query_groups=3", "model.num_query_groups = 3 does not divide "
                                 "model.num_attention_heads = 8"},
    {"model.num_attention_heads=12 model.kv_channels=64 "
     "model.num_query_groups=6 parallel.tensor=4",
     "parallel.tensor = 4 and model.num_query_groups = 6: one must divide"},
    {"model.num_query_groups=2 parallel.tensor=4", ""},
    {"model.num_query_groups=4 parallel.tensor=4", ""},
    {"model.kv_channels=63 model.position_embedding_type=rope",
     "model.rotary_percent = 1 of model.kv_channels = 63 makes tables of 64 "},
    {"model.rotary_percent=0.01 model.position_embedding_type=rope",
     "makes tables of 0 columns"},
    {"model.rotary_percent=0.3 model.position_embedding_type=rope", ""},
    {"model.kv_channels=63", ""},
    {"model.multi_latent_attention=true", ""},
    {"model.multi_latent_attention=true model.num_query_groups=4",
     "model.num_query_groups = 4 does not go with "
     "model.multi_latent_attention = true"},
    {"model.multi_latent_attention=true model.rotary_interleaved=true",
     "model.rotary_interleaved = true does not go with "
     "model.multi_latent_attention = true"},
    {"recompute.granularity=selective recompute.mla_up_proj=true",
     "recompute.mla_up_proj = true needs model.multi_latent_attention = true"},
    {"model.multi_latent_attention=true model.mla_down_proj_fusion=true "
     "impl.transformer=transformer_engine",
     "model.mla_down_proj_fusion = true needs a model.q_lora_rank"},
    {"model.multi_latent_attention=true model.rope_type=rope "
     "model.position_embedding_type=rope",
     "train.apply_rope_fusion = true does not go with model.rope_type = rope"},
    {"model.multi_latent_attention=true model.rope_type=rope "
     "model.position_embedding_type=rope train.apply_rope_fusion=false",
     ""},
    {"model.multi_latent_attention=true model.rope_type=rope "
     "model.rotary_percent=0.01",
     "model.rotary_percent = 0.01 of model.qk_pos_emb_head_dim = 64"},
    {"model.multi_latent_attention=true model.q_lora_rank=9 parallel.tensor=2 "
     "impl.transformer=local",
     "parallel.tensor = 2 does not divide model.q_lora_rank = 9"},
    {"model.multi_latent_attention=true model.q_lora_rank=9 parallel.tensor=2 "
     "impl.transformer=transformer_engine",
     ""},
    {"model.multi_latent_attention=true model.q_lora_rank=9 parallel.tensor=2 "
     "impl.transformer=transformer_engine model.mla_down_proj_fusion=true",
     "parallel.tensor = 2 does not divide model.q_lora_rank = 9"},
    {"model.multi_latent_attention=true model.kv_lora_rank=9 "
     "parallel.tensor=2 impl.transformer=local",
     "does not divide model.kv_lora_rank + model.qk_pos_emb_head_dim = 73"},
    {"model.multi_latent_attention=true model.qk_head_dim=512 "
     "impl.core_attention=sdpa_flash",
     "takes model.qk_head_dim + model.qk_pos_emb_head_dim up to 256, not 576"},
    {"model.mtp_num_layers=1", "model.mtp_num_layers = 1 needs "
                               "model.position_embedding_type = rope or none"},
    {"model.mtp_num_layers=2 model.position_embedding_type=rope", ""},
    {"model.mtp_num_layers=2 " DISTRIBUTED,
     "with recompute.method = uniform does not go with model.mtp_num_layers"},
    {"model.mtp_num_layers=1 " DISTRIBUTED, ""},
    {"model.mtp_num_layers=3 model.position_embedding_type=rope",
     "model.mtp_num_layers = 3: at most 2 depths are modelled"},
    {"model.mtp_num_layers=1 model.position_embedding_type=none "
     "recompute.granularity=full recompute.num_layers=2",
     "recompute.num_layers = 2 must be 1 with recompute.method = uniform"},
    {"model.mtp_num_layers=1 model.position_embedding_type=none "
     "recompute.granularity=full recompute.num_layers=2 "
     "recompute.method=block",
     ""},
    {"model.mtp_num_layers=1 model.position_embedding_type=none "
     "parallel.pipeline=2 optimizer.overlap_grad_reduce=true",
     "needs model.untie_embeddings_and_output_weights = true"},
    {"model.mtp_num_layers=1 model.position_embedding_type=none "
     "parallel.pipeline=2 parallel.pipeline_layout=Et*4|t*4L",
     "has 0 depths of multi-token prediction (m): model.mtp_num_layers = 1"},
    {"model.mtp_num_layers=1 model.position_embedding_type=none "
     "parallel.pipeline=2 parallel.pipeline_layout=Et*4|t*4mL",
     ""},
    {"model.kv_channels=63 impl.core_attention=sdpa_flash", ""},
    {"model.kv_channels=72 impl.core_attention=sdpa_flash", ""},
    {"train.global_batch_size=131073",
     "makes 131073 micro-batches of train.micro_batch_size = 1"},
    {"train.global_batch_size=131072", ""},
    {"optimizer.kind=sgd optimizer.distributed=true",
     "needs optimizer.kind = adam, not sgd"},
    {"optimizer.kind=muon", ""},
    {"optimizer.kind=muon optimizer.distributed=true "
     "train.params_dtype=bfloat16",
     ""},
    {"optimizer.kind=muon optimizer.distributed=true "
     "train.params_dtype=float32",
     "optimizer.kind = muon with optimizer.distributed = true needs"},
    {"optimizer.kind=lion train.params_dtype=float16",
     "optimizer.kind = lion does not go with train.params_dtype = float16"},
    {"optimizer.kind=muon optimizer.muon_fp32_matmul_prec=low",
     "give medium or high"},
    {"optimizer.kind=adaptive_muon optimizer.precision_aware=true "
     "optimizer.distributed=true impl.optimizer=fused",
     "needs optimizer.kind = adam"},
    {"optimizer.ddp_num_buckets=4 optimizer.ddp_bucket_size=4",
     "exclude each other: give one"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "parallel.num_layers_per_virtual_pipeline_stage=4",
     "of 4 layers a stage contradict each other: give one"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "parallel.num_layers_per_virtual_pipeline_stage=2 "
     "train.global_batch_size=4",
     ""},
    {"model.hidden_size=16777216 model.kv_channels=64",
     "model.num_layers x the parameters of a layer is over 256 PiB"},
    {"model.num_attention_heads=7",
     "model.num_attention_heads = 7 does not divide model.hidden_size"},
    {"model.num_attention_heads=7 model.kv_channels=64", ""},
    {"model.ffn_hidden_size=1001 parallel.tensor=2",
     "parallel.tensor = 2 does not divide model.ffn_hidden_size = 1001"},
    {"model.hidden_size=16 model.activation=swiglu", "is too small"},
    {"model.padded_vocab_size=999", "is smaller than model.vocab_size"},
    {"model.padded_vocab_size=1001 parallel.tensor=2",
     "does not divide model.padded_vocab_size = 1001"},
    {"model.max_position_embeddings=64",
     "model.max_position_embeddings = 64 is smaller than "
     "model.seq_length = 128"},
    {"parallel.world_size=6 parallel.tensor=2 parallel.pipeline=2",
     "parallel.world_size = 6 is no multiple of parallel.tensor x "
     "parallel.pipeline x parallel.context = 2 x 2 x 1 = 4"},
    {"parallel.world_size=4 parallel.expert=2",
     "parallel.expert = 2 needs experts: give moe.num_experts"},
    {"parallel.world_size=4 parallel.expert=4 moe.num_experts=6",
     "parallel.expert = 4 does not divide moe.num_experts = 6"},
    {"moe.num_experts=2048",
     "moe.num_experts / parallel.expert = 2048: at most 1024 experts of a rank are run"},
    {"moe.num_experts=4 moe.router_topk=5",
     "moe.router_topk = 5 must be at most moe.num_experts = 4"},
    {"parallel.world_size=2 parallel.tensor=2 moe.num_experts=4",
     "moe.num_experts = 4 with parallel.tensor = 2 needs "
     "parallel.sequence = true"},
    {"parallel.world_size=4 parallel.expert=2 parallel.expert_tensor=3 "
     "moe.num_experts=4 moe.ffn_hidden_size=6",
     "parallel.world_size = 4 is no multiple of parallel.expert_tensor x "
     "parallel.expert x parallel.pipeline = 3 x 2 x 1"},
    {"parallel.world_size=4 parallel.expert_tensor=4", ""},
    {"parallel.world_size=4 parallel.expert_tensor=3",
     "parallel.world_size = 4 is no multiple of parallel.expert_tensor x "
     "parallel.expert x parallel.pipeline = 3 x 1 x 1"},
    {"moe.num_experts=4 model.add_bias_linear=false", ""},
    {"moe.num_experts=4 model.add_bias_linear=false moe.imbalance=1.5",
     "moe.imbalance = 1.5 must be at most 1"},
    {"moe.num_experts=4 model.add_bias_linear=false moe.imbalance=0.5",
     "moe.imbalance = 0.5 must be 1 where parallel.expert is 1"},
    {"moe.num_experts=4 moe.shared_expert_intermediate_size=3 "
     "parallel.tensor=2 parallel.sequence=true moe.token_dispatcher=alltoall",
     "parallel.tensor = 2 does not divide "
     "moe.shared_expert_intermediate_size = 3"},
    {"moe.num_experts=4 model.add_bias_linear=false moe.imbalance=0.5 "
     "moe.tokens=file",
     "moe.imbalance = 0.5 beside moe.tokens = file"},
    {"parallel.world_size=4 train.global_batch_size=6",
     "train.global_batch_size = 6 is no multiple of "
     "train.micro_batch_size x data parallel size = 1 x 4"},
    {"parallel.tensor=8 parallel.sequence=true model.seq_length=100",
     "parallel.tensor = 8 does not divide model.seq_length = 100"},
    {"parallel.tensor=8 model.seq_length=100", ""},
    {"parallel.context=4 model.seq_length=100",
     "no multiple of 2 x parallel.context = 2 x 4"},
    {"train.params_dtype=float32 impl.core_attention=sdpa_flash",
     "sdpa_flash needs train.params_dtype"},
    {"model.kv_channels=512 impl.core_attention=sdpa_flash",
     "up to 256, not 512"},
    {"train.params_dtype=float32 model.fp32_residual_connection=true",
     "fp32_residual_connection = true needs"},
    {"impl.transformer=transformer_engine model.fp32_residual_connection=true",
     "does not go with impl.transformer"},
    {"model.activation=squared_relu", "does not go with"},
    {"model.attention_output_gate=true optimizer.kind=muon",
     "optimizer.muon_split_qkv"},
    {"model.activation=squared_relu train.bias_gelu_fusion=false", ""},
    {"model.activation=quick_geglu",
     "model.activation = quick_geglu: set it to false"},
    {"model.activation=quick_geglu train.bias_gelu_fusion=false", ""},
    {"model.activation=quick_geglu moe.num_experts=4 moe.grouped_gemm=true "
     "impl.transformer=transformer_engine "
     "train.bias_dropout_fusion=false",
     ""},
    {"recompute.granularity=selective recompute.mlp=true", "never ends"},
    {"recompute.granularity=selective recompute.mlp=true "
     "model.add_bias_linear=false",
     ""},
    {"optimizer.overlap_param_gather=true", "optimizer.distributed = true"},
    {"optimizer.overlap_param_gather=true optimizer.distributed=true",
     "optimizer.overlap_grad_reduce = true"},
    {"optimizer.overlap_param_gather_with_optimizer_step=true",
     "= true needs optimizer.overlap_param_gather = true"},
    {"optimizer.overlap_param_gather_with_optimizer_step=true "
     "optimizer.overlap_param_gather=true optimizer.distributed=true "
     "optimizer.overlap_grad_reduce=true parallel.pipeline=2",
     "needs Megatron-LM's interleaved schedule"},
    {"optimizer.num_distributed_optimizer_instances=2",
     "needs optimizer.distributed = true"},
    {"optimizer.num_distributed_optimizer_instances=2 parallel.world_size=4 "
     "optimizer.distributed=true",
     ""},
    {"optimizer.num_distributed_optimizer_instances=2 parallel.world_size=4 "
     "optimizer.distributed=true "
     "optimizer.ddp_reduce_scatter_with_fp32_accumulation=true",
     "optimizer.ddp_reduce_scatter_with_fp32_accumulation = true does not go "
     "with optimizer.num_distributed_optimizer_instances = 2"},
    {"optimizer.num_distributed_optimizer_instances=3 parallel.world_size=4 "
     "optimizer.distributed=true",
     "optimizer.num_distributed_optimizer_instances = 3 does not divide data "
     "parallel size = 4"},
    {"optimizer.num_distributed_optimizer_instances=2 parallel.world_size=4 "
     "optimizer.distributed=true moe.num_experts=4 "
     "model.add_bias_linear=false",
     ""},
    {"optimizer.num_distributed_optimizer_instances=4 parallel.world_size=4 "
     "optimizer.distributed=true moe.num_experts=4 parallel.expert=2 "
     "model.add_bias_linear=false",
     "does not divide expert data parallel size = 2"},
    {"moe.num_experts=4 model.add_bias_linear=false moe.ffn_hidden_size=96 "
     "moe.glu_interleave_size=64",
     "moe.glu_interleave_size = 64 does not divide"},
    {AWARE, ""},
    {AWARE " optimizer.main_grads_dtype=bf16 optimizer.exp_avg_dtype=fp8", ""},
    {AWARE " optimizer.kind=sgd", "needs optimizer.kind = adam"},
    {AWARE " optimizer.distributed=false",
     "optimizer.precision_aware = true needs optimizer.distributed = true"},
    {AWARE " impl.optimizer=torch_foreach",
     "needs impl.optimizer = fused: it is Transformer Engine's"},
    {AWARE " train.params_dtype=float32",
     "with train.params_dtype = float32 is not modelled"},
    {AWARE " train.params_dtype=float16", "cannot clip float16 gradients"},
    {AWARE " train.params_dtype=float16 optimizer.clip_grad=0", ""},
    {AWARE " optimizer.main_grads_dtype=bf16 "
           "train.accumulate_allreduce_grads_in_fp32=true",
     "needs optimizer.main_grads_dtype = fp32"},
    {AWARE " optimizer.cpu_offload=true impl.optimizer=torch_foreach", ""},
    {"optimizer.cpu_offload=true",
     "optimizer.cpu_offload = true needs optimizer.precision_aware = true"},
    {AWARE " optimizer.main_params_dtype=bf16", "must be fp32 or fp16"},
    {AWARE " optimizer.main_grads_dtype=fp8", "must be fp32 or bf16"},
    {"optimizer.exp_avg_sq_dtype=bf16",
     "optimizer.exp_avg_sq_dtype other than fp32 needs "
     "optimizer.precision_aware = true"},
    {"recompute.granularity=full", "needs recompute.num_layers"},
    {"recompute.granularity=full recompute.num_layers=1", ""},
    {"recompute.granularity=full recompute.num_layers=0",
     "recompute.num_layers = 0 must be at least 1 with recompute.method = "
     "uniform"},
    {"recompute.granularity=full recompute.num_layers=0 "
     "recompute.method=block",
     ""},
    {"recompute.num_layers=0", ""},
    {"recompute.distribute_saved_activations=true",
     "needs recompute.granularity = full"},
    {"recompute.distribute_saved_activations=true "
     "recompute.granularity=full recompute.num_layers=1",
     "needs parallel.tensor over 1"},
    {"model.seq_length=268435456 train.micro_batch_size=1073741824 "
     "model.max_position_embeddings=268435456",
     "over 256 PiB"},
    {"parallel.pipeline=3",
     "parallel.pipeline = 3 does not divide model.num_layers = 8; "
     "parallel.decoder_first_pipeline_num_layers and"},
    {"parallel.pipeline=4 "
     "parallel.account_for_loss_in_pipeline_split=true",
     "with what parallel.account_for_* adds = 9"},
    {"parallel.pipeline=3 "
     "parallel.account_for_loss_in_pipeline_split=true",
     ""},
    {"parallel.pipeline=3 parallel.decoder_first_pipeline_num_layers=2", ""},
    {"parallel.pipeline=3 parallel.decoder_first_pipeline_num_layers=3",
     "leaves 5 layers for 2 stages"},
    {"parallel.pipeline=2 parallel.decoder_first_pipeline_num_layers=9",
     "leaves -1 layers"},
    {"parallel.pipeline=2 parallel.decoder_first_pipeline_num_layers=3 "
     "parallel.account_for_loss_in_pipeline_split=true",
     "does not go with parallel.decoder_first"},
    {"parallel.pipeline=2 "
     "parallel.num_layers_per_virtual_pipeline_stage=3",
     "= 3 does not divide the 4 layers of a pipeline stage"},
    {"parallel.pipeline=2 "
     "parallel.num_layers_per_virtual_pipeline_stage=100",
     "= 100 does not divide"},
    {"parallel.pipeline=2 parallel.decoder_first_pipeline_num_layers=2 "
     "parallel.num_layers_per_virtual_pipeline_stage=2",
     "give parallel.virtual_pipeline"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=3",
     "parallel.virtual_pipeline = 3 does not divide the 4 layers"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "parallel.decoder_first_pipeline_num_layers=3",
     "3 layers of the first pipeline stage"},
    {"parallel.virtual_pipeline=2", "needs parallel.pipeline of at least 2"},
    {"parallel.pipeline=4 parallel.pipeline_layout=E|t*4|t*4|L", ""},
    {"parallel.pipeline=3 parallel.pipeline_layout=E|t*8|L", ""},
    {"parallel.pipeline=2 parallel.pipeline_layout=E|t*4|t*4|L "
     "train.global_batch_size=4",
     ""},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "parallel.pipeline_layout=E|t*4|t*4|L train.global_batch_size=4",
     ""},
    {"parallel.pipeline=2 parallel.pipeline_layout=Et*4|x|L",
     "pipeline layout: x at character 6"},
    {"parallel.pipeline=3 parallel.pipeline_layout=E|t*4|t*4|L",
     "parallel.pipeline_layout has 4 stages: no multiple of "
     "parallel.pipeline = 3"},
    {"parallel.pipeline=8 parallel.pipeline_layout=E|t*4|t*4|L",
     "parallel.pipeline_layout has 4 stages: no multiple of "
     "parallel.pipeline = 8"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=1 "
     "parallel.pipeline_layout=E|t*4|t*4|L",
     "parallel.pipeline_layout has 4 stages, not parallel.pipeline x "
     "parallel.virtual_pipeline = 2 x 1"},
    {"parallel.pipeline=2 parallel.pipeline_layout=Et*4|t*3,L",
     "parallel.pipeline_layout has 7 layers (t): model.num_layers = 8"},
    {"parallel.pipeline=2 parallel.pipeline_layout=Et*4|t*4,L "
     "parallel.decoder_first_pipeline_num_layers=4",
     "does not go with parallel.decoder_first/last_pipeline_num_layers"},
    {"parallel.pipeline=2 parallel.pipeline_layout=Et*4|t*4,L "
     "parallel.account_for_loss_in_pipeline_split=true",
     "does not go with parallel.account_for_*_in_pipeline_split"},
    {"parallel.pipeline=2 parallel.pipeline_layout=Et*4|t*4,L "
     "parallel.num_layers_per_virtual_pipeline_stage=4",
     "does not go with parallel.num_layers_per_virtual_pipeline_stage"},
    {"parallel.pipeline_layout=Et*4|t*4,L",
     "needs parallel.pipeline of at least 2"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "parallel.overlap_p2p_comm=false",
     "at least 3 without parallel.overlap_p2p_comm"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "train.global_batch_size=4",
     ""},
    {"parallel.pipeline=4 parallel.virtual_pipeline=2 "
     "train.global_batch_size=4 parallel.overlap_p2p_comm=false "
     "parallel.overlap_p2p_comm_warmup_flush=true",
     "parallel.overlap_p2p_comm_warmup_flush = true needs Megatron-LM's "
     "interleaved schedule"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "train.global_batch_size=4 parallel.overlap_p2p_comm_warmup_flush=true",
     ""},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "train.global_batch_size=5",
     "5 micro-batches in groups of parallel.microbatch_group_size = 2"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "train.global_batch_size=1",
     "to the number of micro-batches = 1"},
    {"parallel.pipeline=2 parallel.virtual_pipeline=2 "
     "train.global_batch_size=4 train.eval_global_batch_size=1",
     "to the number of micro-batches of evaluation = 1"},
};

static void test_validate__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rule_cases); i++) {
        me_config *config = job_with(rule_cases[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        if (strstr(diag.text, rule_cases[i][1]) == NULL) {
            fail_msg("%s: %s", rule_cases[i][0], diag.text);
        }
        assert_int_equal(status,
                         rule_cases[i][1][0] == '\0' ? ME_OK : ME_ERR_CONFIG);
        me_config_destroy(config);
    }
}

static void test_validate__required(void **state)
{
    (void)state;
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_int_equal(me_config_finish(config, 1, &diag), ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "model.num_layers is not given (in a launch command "
                        "--num-layers), nor by --set");
    me_config_destroy(config);
}

static void test_validate__extremes_do_not_overflow(void **state)
{
    (void)state;
    size_t count = 0;
    const me_option *options = me_options(&count);
    me_config *config = me_config_create();
    for (size_t i = 0; i < count; i++) {
        me_str value = {0};
        me_str_printf(&value, "%.0f", options[i].max);
        if (options[i].type == ME_OPTION_INT ||
            options[i].type == ME_OPTION_COUNT) {
            assert_int_equal(me_config_set(config, options[i].name,
                                           me_str_text(&value), NULL),
                             ME_OK);
        }
        me_str_fini(&value);
    }
    me_diag diag = {0};
    assert_int_equal(me_config_finish(config, INT32_MAX, &diag), ME_ERR_CONFIG);
    me_config_destroy(config);
}

static void test_derive__as_megatron(void **state)
{
    (void)state;
    me_config *config =
        job_with("model.hidden_size=1024 model.activation=swiglu "
                 "parallel.tensor=2 parallel.world_size=8 "
                 "train.global_batch_size=16 model.vocab_size=50257");
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    assert_int_equal(config->model.ffn_hidden_size, 2688);
    assert_int_equal(config->model.kv_channels, 128);
    assert_int_equal(config->model.num_query_groups, 8);
    assert_int_equal(config->model.padded_vocab_size, 50432);
    assert_true(config->model.add_qkv_bias);
    assert_int_equal(config->parallel.data, 4);
    assert_int_equal(config->parallel.microbatch_group_size, 1);
    assert_false(config->parallel.overlap_p2p_comm);
    assert_int_equal(config->train.num_microbatches, 4);
    assert_int_equal(config->train.grad_dtype, ME_DTYPE_FLOAT32);
    me_config_destroy(config);
}

static void test_derive__gradient_types(void **state)
{
    (void)state;

    static const struct {
        const char *set;
        me_dtype grad;
        bool checks_nan;
    } cases[] = {
        {"", ME_DTYPE_FLOAT32, true},
        {"train.grad_reduce_in_bf16=true", ME_DTYPE_BFLOAT16, true},
        {"train.params_dtype=float16", ME_DTYPE_FLOAT16, false},
        {"train.params_dtype=float16 train.loss_scale=1024", ME_DTYPE_FLOAT16,
         true},
        {"train.params_dtype=float16 "
         "train.accumulate_allreduce_grads_in_fp32=true",
         ME_DTYPE_FLOAT32, false},
        {"train.params_dtype=float32", ME_DTYPE_FLOAT32, true},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_config *config = job_with(cases[i].set);
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->train.grad_dtype, cases[i].grad);
        assert_int_equal(config->train.check_for_nan_in_loss_and_grad,
                         cases[i].checks_nan);
        me_config_destroy(config);
    }
}

static void test_derive__world_size(void **state)
{
    (void)state;

    static const struct {
        const char *set;
        int32_t processes;
        int32_t world;
        int32_t n_assumptions;
    } cases[] = {
        {"parallel.tensor=2", 1, 2, 1},
        {"parallel.tensor=2", 8, 8, 1},
        {"parallel.tensor=2 parallel.world_size=4", 8, 4, 0},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_config *config = job_with(cases[i].set);
        assert_int_equal(me_config_finish(config, cases[i].processes, NULL),
                         ME_OK);
        assert_int_equal(config->parallel.world_size, cases[i].world);
        assert_int_equal(config->assumptions.count, cases[i].n_assumptions);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_validate__rules),
        cmocka_unit_test(test_validate__required),
        cmocka_unit_test(test_validate__extremes_do_not_overflow),
        cmocka_unit_test(test_derive__as_megatron),
        cmocka_unit_test(test_derive__gradient_types),
        cmocka_unit_test(test_derive__world_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
