/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks have a part of: experts cut over other ranks than the rest, layers
 * counted with what stands at the pipeline's ends. */
#include "job.h"

static const char *const cases[][2] = {
    {"parallel.world_size=2 parallel.tensor=2 parallel.sequence=true "
     "parallel.expert_tensor=1 moe.num_experts=4 model.add_bias_linear=false "
     "moe.shared_expert_intermediate_size=5",
     "parallel.tensor = 2 does not divide "
     "moe.shared_expert_intermediate_size = 5"},
    {"parallel.world_size=2 parallel.expert_tensor=2 moe.num_experts=4 "
     "moe.ffn_hidden_size=6 moe.token_dispatcher=alltoall "
     "model.add_bias_linear=false moe.shared_expert_intermediate_size=5",
     ""},
    {"parallel.pipeline=3 "
     "parallel.account_for_loss_in_pipeline_split=true "
     "parallel.num_layers_per_virtual_pipeline_stage=1 "
     "train.global_batch_size=3",
     ""},
};

static void test_split__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_config *config = job_with(cases[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        assert_string_equal(diag.text, cases[i][1]);
        assert_int_equal(status,
                         cases[i][1][0] == '\0' ? ME_OK : ME_ERR_CONFIG);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split__rules),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
