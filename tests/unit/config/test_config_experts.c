/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job with experts must keep to beside its ranks. */
#include "job.h"

#define TURNS                                                                  \
    "impl.transformer=transformer_engine moe.num_experts=4 "                   \
    "model.add_bias_linear=false parallel.world_size=2 parallel.expert=2 "     \
    "moe.token_dispatcher=alltoall train.params_dtype=bfloat16 "               \
    "moe.overlap_expert_comm=true "

static const char *const cases[][2] = {
    {"moe.num_experts=4",
     "train.bias_gelu_fusion = true must be false (--no-bias-gelu-fusion) with "
     "experts and model.add_bias_linear = true"},
    {"moe.num_experts=4 train.bias_gelu_fusion=false", ""},
    {"moe.num_experts=4 model.activation=swiglu",
     "train.bias_swiglu_fusion = true must be false (--no-bias-swiglu-fusion)"},
    {"impl.transformer=transformer_engine moe.num_experts=4 "
     "model.activation=swiglu moe.grouped_gemm=true",
     "model.add_bias_linear = true with experts needs "
     "train.bias_dropout_fusion = false (--no-bias-dropout-fusion); or give "
     "false (--disable-bias-linear)"},
    {"impl.transformer=transformer_engine moe.num_experts=4 "
     "model.activation=swiglu moe.grouped_gemm=true "
     "train.bias_dropout_fusion=false",
     ""},
    {"moe.num_experts=4 train.bias_gelu_fusion=false "
     "moe.shared_expert_intermediate_size=64",
     "needs no moe.shared_expert_intermediate_size"},
    {"moe.num_experts=4 model.add_bias_linear=false "
     "moe.shared_expert_intermediate_size=64 moe.shared_expert_overlap=true",
     "moe.shared_expert_overlap = true needs moe.token_dispatcher = alltoall"},
    {"moe.num_experts=4 model.add_bias_linear=false "
     "recompute.granularity=selective recompute.moe_act=true",
     "recompute.moe_act = true (--recompute-modules moe_act) needs "
     "moe.grouped_gemm = true (--moe-grouped-gemm)"},
    {"moe.num_experts=4 model.add_bias_linear=false moe.latent_size=8 "
     "impl.transformer=local",
     "moe.latent_size = 8 needs impl.transformer = transformer_engine"},
    {"moe.num_experts=4 model.add_bias_linear=false "
     "moe.apply_probs_on_input=true",
     "moe.apply_probs_on_input = true needs moe.router_topk = 1, not 2"},
    {"moe.overlap_expert_comm=true",
     "moe.overlap_expert_comm = true needs experts: give moe.num_experts"},
    {"moe.delay_wgrad_compute=true",
     "moe.delay_wgrad_compute = true needs moe.overlap_expert_comm = true"},
    {TURNS "parallel.expert=1", "needs parallel.expert over 1"},
    {TURNS "model.mtp_num_layers=1 model.position_embedding_type=rope", ""},
    {TURNS "model.mtp_num_layers=1 model.position_embedding_type=rope "
           "model.num_layers=2 moe.layer_freq=[1,0]",
     "needs experts in the last layer, of whose kind depths are: "
     "moe.layer_freq = [1,0]"},
    {TURNS "moe.token_dispatcher=allgather",
     "needs moe.token_dispatcher = alltoall or flex"},
    {TURNS "recompute.granularity=selective recompute.moe=true",
     "needs recompute.moe = false (no --recompute-modules moe)"},
    {TURNS "recompute.granularity=full recompute.method=uniform "
           "recompute.num_layers=1",
     "needs recompute.granularity = none or selective"},
    {TURNS "train.params_dtype=float32",
     "needs train.params_dtype = bfloat16 or float16"},
    {TURNS "parallel.world_size=4 parallel.pipeline=2",
     "needs parallel.virtual_pipeline over 1 where parallel.pipeline is"},
    {TURNS "moe.delay_wgrad_compute=true impl.transformer=local",
     "needs impl.transformer = transformer_engine"},
    {TURNS "", ""},
};

static void test_experts__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_config *config = job_with(cases[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        assert_non_null(strstr(diag.text, cases[i][1]));
        assert_int_equal(status,
                         cases[i][1][0] == '\0' ? ME_OK : ME_ERR_CONFIG);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts__rules),
    };
    return cmocka_run_group_tests_name("config_experts", tests, NULL, NULL);
}
