/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#define CONTEXT                                                                \
    "parallel.context=2 impl.transformer=transformer_engine "                  \
    "train.params_dtype=bfloat16"

/* What is set on JOB_TEXT (8 layers, 512 wide, 8 heads), and what the one line must
 * say; "" is a job that is right. */
static const char *const cases[][2] = {
    {"parallel.context=2", "parallel.context = 2: Megatron-LM's own attention "
                           "refuses context parallelism"},
    {CONTEXT, ""},
    {CONTEXT " train.params_dtype=float32",
     "parallel.context = 2: Transformer Engine's unfused attention refuses "
     "context parallelism, and its fused one does not go with "
     "train.params_dtype = float32"},
    {CONTEXT " impl.attention_backend=unfused",
     "does not go with impl.attention_backend = unfused"},
    {CONTEXT " impl.core_attention=te_unfused",
     "does not go with impl.core_attention = te_unfused"},
    {CONTEXT " model.kv_channels=100",
     "does not go with heads that are no multiple of 8 columns wide"},
    {CONTEXT " model.kv_channels=264",
     "does not go with heads of more than 256 columns"},
    {CONTEXT " model.qk_clip=true model.attention_dropout=0",
     "does not go with model.qk_clip = true (--qk-clip), whose largest scores "
     "cuDNN gives from 9.21 on: PyTorch 2.11 has 9.19"},
    {CONTEXT " model.log_max_attention_logit=true",
     "does not go with model.log_max_attention_logit = true "
     "(--log-max-attention-logit), whose largest scores cuDNN gives from 9.21 "
     "on"},
    {CONTEXT " train.deterministic_mode=true model.softmax_type=learnable "
             "parallel.cp_comm_type=a2a",
     "does not go with determinism where model.softmax_type is not vanilla"},
    {CONTEXT " model.softmax_type=learnable",
     "parallel.cp_comm_type = p2p: Transformer Engine takes no "
     "model.softmax_type but vanilla with it, only with a2a"},
    {CONTEXT " model.softmax_type=learnable parallel.cp_comm_type=a2a", ""},
    {CONTEXT " parallel.cp_comm_type=all_gather",
     "model.attention_dropout must be 0"},
    {CONTEXT " parallel.cp_comm_type=all_gather model.attention_dropout=0", ""},
    {CONTEXT " model.window_attention=true",
     "does not go with model.attention_dropout over 0 with "
     "model.window_attention = true"},
    {CONTEXT " model.window_attention=true model.attention_dropout=0",
     "parallel.cp_comm_type = p2p: Transformer Engine takes no "
     "model.window_attention = true with it, only with a2a or all_gather"},
    {CONTEXT " model.window_attention=true parallel.cp_comm_type=a2a "
             "model.attention_dropout=0",
     ""},
    {CONTEXT " parallel.cp_comm_type=a2a model.num_query_groups=1",
     "parallel.context = 2 does not divide model.num_query_groups / "
     "parallel.tensor = 1"},
    {CONTEXT " parallel.cp_comm_type=a2a parallel.tensor=4 "
             "model.num_query_groups=2",
     "parallel.context = 2 does not divide model.num_query_groups / "
     "parallel.tensor = 1"},
    {CONTEXT " parallel.cp_comm_type=a2a parallel.tensor=8",
     "does not divide model.num_attention_heads / parallel.tensor = 1"},
    {CONTEXT " parallel.cp_comm_type=a2a+p2p",
     "parallel.cp_comm_type = a2a+p2p needs parallel.context_heads "
     "(--hierarchical-context-parallel-sizes)"},
    {CONTEXT " parallel.cp_comm_type=a2a+p2p parallel.context_heads=3",
     "parallel.context_heads = 3 does not divide parallel.context = 2"},
    {CONTEXT " parallel.cp_comm_type=a2a+p2p parallel.context_heads=2", ""},
    {CONTEXT " parallel.cp_comm_layers=p2p,a2a",
     "parallel.cp_comm_layers (--cp-comm-type) has 2 words: must have one for "
     "each of the 8 layers"},
    {CONTEXT " parallel.cp_comm_layers=p2p,ring",
     "parallel.cp_comm_layers: 'ring' must be one of p2p, all_gather, a2a, "
     "a2a+p2p"},
    {CONTEXT " parallel.cp_comm_layers=p2p,a2a,p2p,a2a,p2p,a2a,p2p,a2a", ""},
    {CONTEXT " parallel.cp_comm_layers=a2a,a2a,a2a,a2a,a2a,a2a,a2a,p2p "
             "model.softmax_type=learnable",
     "parallel.cp_comm_type = p2p: Transformer Engine takes no "
     "model.softmax_type but vanilla with it"},
    {CONTEXT " parallel.cp_comm_layers=a2a,a2a,a2a,a2a,a2a,a2a,a2a,a2a "
             "model.softmax_type=learnable",
     ""},
    {CONTEXT " parallel.cp_comm_layers=p2p,p2p,p2p,p2p,p2p,p2p,p2p,all_gather",
     "model.attention_dropout must be 0"},
    {CONTEXT " parallel.cp_comm_layers=p2p,p2p,p2p,p2p,p2p,p2p,p2p,a2a+p2p",
     "parallel.cp_comm_type = a2a+p2p needs parallel.context_heads"},
    {CONTEXT " parallel.cp_comm_layers=p2p,p2p,p2p,p2p,p2p,p2p,p2p,a2a "
             "model.num_query_groups=1",
     "parallel.context = 2 does not divide model.num_query_groups"},
};

static void test_context__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_config *config = job_with(cases[i][0]);
        me_diag diag = {0};
        const me_status status = me_config_finish(config, 1, &diag);
        if (strstr(diag.text, cases[i][1]) == NULL) {
            fail_msg("%s: %s", cases[i][0], diag.text);
        }
        assert_int_equal(status,
                         cases[i][1][0] == '\0' ? ME_OK : ME_ERR_CONFIG);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context__rules),
    };
    return cmocka_run_group_tests_name("config_context", tests, NULL, NULL);
}
