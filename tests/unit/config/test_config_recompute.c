/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_job.h"

#define EXPERTS                                                                \
    "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm "                  \
    "--moe-token-dispatcher-type alltoall --disable-bias-linear "
#define LAYERS "--moe-layer-recompute "

/** TransformerConfig turns --moe-layer-recompute into selective recomputation of
 *  "moe" and what --recompute-modules says, or core_attn, of dense jobs too; after
 *  what it asks of --recompute-granularity. */
static const struct {
    const char *added;
    bool core_attn, moe, moe_act;
} settled[] = {
    {EXPERTS LAYERS, true, true, false},
    {EXPERTS LAYERS "--recompute-granularity selective", true, true, false},
    {EXPERTS LAYERS "--recompute-activations", true, true, false},
    {EXPERTS LAYERS "--recompute-modules moe_act", false, true, true},
    {EXPERTS LAYERS "--recompute-modules core_attn moe", true, true, false},
    {LAYERS, true, true, false},
    {EXPERTS LAYERS "--recompute-num-layers 1", true, true, false},
    {EXPERTS LAYERS "--recompute-method uniform", true, true, false},
    {EXPERTS "--recompute-activations", true, false, false},
};

static void test_recompute__of_layers_with_experts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settled); i++) {
        me_diag diag = {0};
        me_config *config = NULL;
        if (make_job(settled[i].added, "", "", &diag, &config) != ME_OK) {
            fail_msg("%s: %s", settled[i].added, diag.text);
        }
        const me_recompute_config *r = &config->recompute;
        if (r->granularity != ME_RECOMPUTE_SELECTIVE ||
            r->core_attn != settled[i].core_attn || r->moe != settled[i].moe ||
            r->moe_act != settled[i].moe_act ||
            config->not_modelled.count != 0) {
            fail_msg("%s: %d, core_attn %d, moe %d, moe_act %d, %d flags not "
                     "modelled",
                     settled[i].added, (int)r->granularity, r->core_attn,
                     r->moe, r->moe_act, (int)config->not_modelled.count);
        }
        me_config_destroy(config);
    }
}

static const struct {
    const char *added;
    const char *variable;
    me_status status;
    const char *text;
} refused[] = {
    {EXPERTS LAYERS
     "--recompute-granularity selective --recompute-num-layers 1",
     "", ME_ERR_CONFIG,
     "--recompute-num-layers does not go with selective recomputation"},
    {EXPERTS LAYERS "--recompute-activations --recompute-method uniform", "",
     ME_ERR_CONFIG,
     "--recompute-method does not go with selective recomputation"},
    {EXPERTS LAYERS "--expert-model-parallel-size 2 "
                    "--overlap-moe-expert-parallel-comm",
     "", ME_ERR_CONFIG, "needs recompute.moe = false"},
    {EXPERTS LAYERS
     "--fine-grained-activation-offloading --offload-modules moe_act",
     "NVTE_CPU_OFFLOAD_V1=1", ME_ERR_CONFIG,
     "recompute.moe = true, which runs the whole layer of experts again"},
    {LAYERS "--cpu-offloading-num-layers 1", "", ME_ERR_UNSUPPORTED,
     "offload.num_layers with --moe-layer-recompute is not modelled"},
    {LAYERS "--recompute-activations --cpu-offloading-num-layers 1", "",
     ME_ERR_CONFIG, "CPU offloading does not work when activations"},
};

static void test_recompute__refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        me_diag diag = {0};
        const me_status status =
            read_job(refused[i].added, refused[i].variable, "", &diag);
        if (status != refused[i].status ||
            strstr(diag.text, refused[i].text) == NULL) {
            fail_msg("%s: %s", refused[i].added,
                     status == ME_OK ? "not refused" : diag.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recompute__of_layers_with_experts),
        cmocka_unit_test(test_recompute__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
