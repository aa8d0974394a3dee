/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#define ENGINE "impl.transformer=transformer_engine "
#define FINE   ENGINE "offload.fine_grained=true "
#define EXPERTS                                                                \
    "moe.num_experts=8 moe.grouped_gemm=true model.add_bias_linear=false "

/* What is set on JOB_TEXT (8 layers), and what the one line must say; "" is a
 * job that is right. Messages are those of TransformerConfig and
 * validate_args(), or say what is not modelled. */
static const char *const cases[][2] = {
    {ENGINE "offload.num_layers=7", ""},
    {ENGINE "offload.num_layers=8",
     "offload.num_layers = 8 must be less than model.num_layers = 8"},
    {ENGINE "offload.num_layers=2 parallel.pipeline=2",
     "no pipeline with CPU offloading"},
    {ENGINE "offload.num_layers=2 recompute.granularity=selective",
     "does not work when activations are recomputed"},
    {FINE "offload.core_attn=true offload.num_layers=2",
     "does not go with offload.fine_grained = true"},
    {FINE, "needs a module to offload (--offload-modules)"},
    {FINE "offload.core_attn=true offload.attn_proj=true", ""},
    {FINE "offload.attn_proj=true", "needs offload.core_attn = true"},
    {"offload.fine_grained=true offload.core_attn=true",
     "needs impl.transformer = transformer_engine"},
    {FINE "offload.moe_act=true recompute.granularity=selective "
          "recompute.moe=true moe.num_experts=8 moe.grouped_gemm=true "
          "model.add_bias_linear=false",
     "which runs the whole layer of experts again"},
    {FINE "offload.core_attn=true recompute.granularity=full "
          "recompute.num_layers=1",
     ""},
    {FINE "offload.core_attn=true offload.attn_proj=true train.fp8=hybrid",
     "stops at the product of what has come back"},
    {FINE EXPERTS "offload.moe_act=true moe.overlap_expert_comm=true "
                  "parallel.expert=2 parallel.world_size=4 parallel.pipeline=2 "
                  "parallel.virtual_pipeline=2 train.global_batch_size=16 "
                  "moe.token_dispatcher=alltoall",
     ""},
    {FINE EXPERTS "offload.expert_fc1=true train.fp8=hybrid",
     "does not go with train.fp8_recipe = delayed: Transformer Engine stops"},
    {FINE EXPERTS "offload.expert_fc1=true train.fp8=hybrid "
                  "train.fp8_recipe=tensorwise",
     "stops at the product of what has come back"},
    {FINE "offload.core_attn=true parallel.pipeline=2 pipeline.schedule=zbh1",
     "an order of pipeline.schedule"},
};

static void test_offload__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_config *config = job_with(cases[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        if (strstr(diag.text, cases[i][1]) == NULL ||
            (status == ME_OK) != (cases[i][1][0] == '\0')) {
            fail_msg("%s: %s", cases[i][0], diag.text);
        }
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offload__rules),
    };
    return cmocka_run_group_tests_name("config_offload", tests, NULL, NULL);
}
