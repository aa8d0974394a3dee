/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#define LOCAL  "train.cuda_graph_impl=local "
#define TE     "train.cuda_graph_impl=transformer_engine "
#define ENGINE "impl.transformer=transformer_engine "
#define FULL   "train.cuda_graph_impl=full_iteration "
#define EXPERTS                                                                \
    "moe.num_experts=8 moe.grouped_gemm=true model.add_bias_linear=false "

/* What is set on JOB_TEXT and what the line must say; "" is a job that is right. */
static const char *const cases[][2] = {
    {LOCAL, ""},
    {TE, ""},
    {LOCAL "recompute.granularity=full recompute.num_layers=1",
     "needs train.cuda_graph_impl = full_iteration or none, not local"},
    {TE "recompute.granularity=full recompute.num_layers=1",
     "needs train.cuda_graph_impl = full_iteration or none, not "
     "transformer_engine"},
    {FULL, "train.cuda_graph_impl = full_iteration needs "
           "train.check_for_nan_in_loss_and_grad = false"},
    {FULL "train.check_for_nan_in_loss_and_grad=false "
          "recompute.granularity=full recompute.num_layers=1",
     ""},
    {LOCAL "parallel.pipeline=2 parallel.world_size=2",
     "with parallel.pipeline = 2: Megatron-LM itself stops"},
    {LOCAL "recompute.granularity=selective recompute.core_attn=true",
     "does not go with --recompute-modules core_attn, mlp or moe"},
    {LOCAL "recompute.granularity=selective recompute.core_attn=false "
           "recompute.layernorm=true",
     ""},
    {LOCAL ENGINE "offload.num_layers=2",
     "does not go with offload.num_layers"},
    {LOCAL ENGINE "offload.fine_grained=true offload.core_attn=true",
     "local goes with offload.expert_fc1 and offload.moe_act alone"},
    {LOCAL ENGINE EXPERTS "offload.fine_grained=true offload.moe_act=true",
     "does not go with train.cuda_graph_impl = local of whole layers"},
    {LOCAL ENGINE EXPERTS "offload.fine_grained=true offload.moe_act=true "
                          "train.cuda_graph_modules=moe "
                          "moe.capacity_factor=1 moe.pad_to_capacity=true",
     "does not go with train.cuda_graph_modules = moe: experts that drop"},
    {LOCAL ENGINE EXPERTS "offload.fine_grained=true offload.moe_act=true "
                          "train.cuda_graph_modules=moe_router",
     "with CUDA graphs is modelled where Transformer Engine captures"},
    {TE ENGINE "offload.fine_grained=true offload.core_attn=true",
     "captures attention alone"},
    {TE ENGINE "offload.fine_grained=true offload.core_attn=true "
               "train.cuda_graph_modules=attn",
     ""},
    {TE ENGINE "offload.fine_grained=true offload.attn_norm=true "
               "train.cuda_graph_modules=attn",
     ""},
    {TE ENGINE "offload.fine_grained=true offload.mlp_norm=true "
               "train.cuda_graph_modules=attn",
     ""},
    {TE ENGINE "offload.fine_grained=true offload.mlp_norm=true "
               "train.cuda_graph_modules=attn train.cuda_graph_warmup_steps=0",
     "needs train.cuda_graph_warmup_steps over 0"},
    {LOCAL ENGINE EXPERTS "moe.token_dispatcher=alltoall "
                          "train.cuda_graph_modules=moe_router",
     "the copy of token counts is awaited that was captured"},
    {TE ENGINE EXPERTS "moe.token_dispatcher=alltoall "
                       "train.cuda_graph_modules=attn,moe_router",
     ""},
    {TE ENGINE "train.cuda_graph_modules=banana",
     "no part of a layer is called banana: attn, mlp"},
    {TE ENGINE "train.cuda_graph_modules=attn,mlp2", "is called mlp2"},
    {TE ENGINE "train.cuda_graph_modules=attn,mlp", ""},
    {LOCAL "parallel.torch_fsdp2=true "
           "model.untie_embeddings_and_output_weights=true",
     "local with FSDP2 (--use-torch-fsdp2) is not modelled"},
    {TE "parallel.torch_fsdp2=true "
        "model.untie_embeddings_and_output_weights=true",
     "transformer_engine with FSDP2 (--use-torch-fsdp2) is not modelled"},
    {TE "parallel.pipeline=2 parallel.world_size=2 pipeline.schedule=zb-h1 "
        "train.global_batch_size=4",
     "not Megatron-LM's own is not modelled"},
};

static void test_graphs__rules(void **state)
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

/* The last flags of a command, and whether the first of them is modelled, left
 * out, or of no effect. */
static const struct {
    const char *flags[4];
    size_t list; /* offset in me_config */
} lists[] = {
    {{"--cuda-graph-impl", "local"}, offsetof(me_config, modelled)},
    {{"--cuda-graph-impl", "none"}, offsetof(me_config, modelled)},
    {{"--enable-cuda-graph"}, offsetof(me_config, modelled)},
    {{"--cuda-graph-warmup-steps", "1"}, offsetof(me_config, no_effect)},
    {{"--cuda-graph-warmup-steps", "1", "--enable-cuda-graph"},
     offsetof(me_config, modelled)},
    {{"--cuda-graph-modules", "attn"}, offsetof(me_config, no_effect)},
    {{"--cuda-graph-modules", "attn", "--enable-cuda-graph"},
     offsetof(me_config, modelled)},
    {{"--cuda-graph-scope", "mlp", "--external-cuda-graph"},
     offsetof(me_config, modelled)},
    {{"--window-attn-skip-freq", "2", "--window-size", "64,0"},
     offsetof(me_config, modelled)},
    {{"--flash-attention-version", "4", "--attention-backend", "flash"},
     offsetof(me_config, modelled)},
    {{"--flash-attention-version", "3", "--attention-backend", "flash"},
     offsetof(me_config, modelled)},
    {{"--flash-attention-version", "4"}, offsetof(me_config, no_effect)},
    {{"--qk-clip"}, offsetof(me_config, modelled)},
    {{"--qk-clip-alpha", "0.4", "--qk-clip"}, offsetof(me_config, no_effect)},
};

static void test_graphs__flags(void **state)
{
    (void)state;
    static const char *const job[] = {JOB_FLAGS};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        const char *words[COUNT_OF(job) + 4];
        memcpy(words, job, sizeof job);
        int n = COUNT_OF(job);
        for (int k = 0; k < 4 && lists[i].flags[k] != NULL; k++) {
            words[n++] = lists[i].flags[k];
        }
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_int_equal(me_config_read_launch(config, n, words, &diag), ME_OK);
        const char *bytes = (const char *)config + lists[i].list;
        if (!list_has((const me_flag_list *)(const void *)bytes,
                      lists[i].flags[0])) {
            fail_msg("%s: in another list", lists[i].flags[0]);
        }
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs__rules),
        cmocka_unit_test(test_graphs__flags),
    };
    return cmocka_run_group_tests_name("config_graphs", tests, NULL, NULL);
}
