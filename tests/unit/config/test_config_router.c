/* SPDX-License-Identifier: BSD-3-Clause */
/* A router's options: what does not go together, which losses it makes and logs. */
#include "config/config_private.h"
#include "job.h"

#include <stdio.h>

#define EXPERTS                                                                \
    "moe.num_experts=8 model.add_bias_linear=false "                           \
    "moe.token_dispatcher=alltoall "

static const char *const cases[][2] = {
    {EXPERTS "moe.router_load_balancing=best",
     "moe.router_load_balancing = best: 'best' must be one of aux_loss, "
     "seq_aux_loss, global_aux_loss, sinkhorn, none"},
    {EXPERTS "moe.aux_loss_coeffs=0.1,0.2",
     "moe.aux_loss_coeffs = 0.1,0.2: must be as many numbers as "
     "moe.router_load_balancing = aux_loss has words"},
    {EXPERTS "moe.router_load_balancing=aux_loss,seq_aux_loss "
             "moe.aux_loss_coeffs=0.1,x",
     "moe.aux_loss_coeffs = 0.1,x: 'x' must be a number"},
    {EXPERTS "moe.router_load_balancing=sinkhorn moe.aux_loss_coeff=0.1",
     "moe.aux_loss_coeff = 0.1 must be 0 with moe.router_load_balancing = "
     "sinkhorn"},
    {EXPERTS "moe.router_group_topk=1 moe.router_num_groups=3",
     "moe.router_num_groups = 3 must divide moe.num_experts = 8 with "
     "moe.router_group_topk"},
    {EXPERTS "moe.router_group_topk=1 moe.router_num_groups=4 "
             "moe.router_topk=3",
     "moe.router_group_topk = 1 of 4 groups of 2 experts cannot give "
     "moe.router_topk = 3"},
    {EXPERTS "moe.router_enable_expert_bias=true",
     "moe.router_enable_expert_bias = true needs moe.router_score_function = "
     "sigmoid or sqrtsoftplus"},
    {EXPERTS "moe.router_topk=1",
     "moe.router_topk = 1 needs moe.router_pre_softmax = true "
     "(--moe-router-pre-softmax)"},
    {EXPERTS "moe.router_fusion=true moe.router_dtype=fp64",
     "moe.router_dtype = fp64 does not go with moe.router_fusion = true: "
     "Transformer Engine has no such kernel"},
    {EXPERTS "moe.router_fusion=true impl.transformer=local",
     "moe.router_fusion = true needs impl.transformer = transformer_engine"},
    {EXPERTS "moe.pad_to_capacity=true",
     "moe.pad_to_capacity = true needs moe.capacity_factor "
     "(--moe-expert-capacity-factor)"},
    {EXPERTS "moe.router_load_balancing=sinkhorn moe.capacity_factor=1",
     "moe.capacity_factor = 1 does not go with moe.router_load_balancing = "
     "sinkhorn"},
    {EXPERTS "moe.token_dispatcher=flex",
     "moe.token_dispatcher = flex: DeepEP cannot exchange tokens of "
     "parallel.expert_tensor x parallel.expert = 1 x 1 ranks: 2, 4, 8, 16, 24, "
     "32, 48, 64, 96, 128, 144 or 160"},
    {EXPERTS "moe.token_dispatcher=flex parallel.expert=2 "
             "parallel.world_size=2 moe.capacity_factor=1 "
             "moe.pad_to_capacity=true",
     "moe.pad_to_capacity = true does not go with moe.flex_backend = deepep"},
    {EXPERTS "moe.routing=skew",
     "moe.routing = skew: must be balanced, measured or skewed:x, x from 0 to "
     "16"},
    {EXPERTS "moe.routing=skewed:17",
     "moe.routing = skewed:17: must be balanced, measured or skewed:x, x from "
     "0 to 16"},
    {EXPERTS "moe.routing=measured",
     "moe.routing = measured needs a file of counts: give moe.tokens"},
    {EXPERTS "moe.routing=balanced moe.tokens=t.txt",
     "moe.routing = balanced beside moe.tokens = t.txt: give one of them"},
    {EXPERTS "parallel.expert=2 parallel.world_size=2 moe.routing=skewed:1 "
             "moe.imbalance=1.5",
     "moe.routing = skewed:1 beside moe.imbalance = 1.5: give one of them"},
    {EXPERTS "moe.router_group_topk=2 moe.router_num_groups=4 "
             "moe.router_topk=4",
     ""},
};

static void test_router__rules(void **state)
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

enum {
    PLAIN = 1 << ME_LOAD_BALANCING_AUX_LOSS,
    SEQUENCE = 1 << ME_LOAD_BALANCING_SEQ_AUX_LOSS,
    GLOBAL = 1 << ME_LOAD_BALANCING_GLOBAL_AUX_LOSS,
    Z = 1 << ME_ROUTER_Z_LOSS
};

/* `"aux_loss" in type` of training_log() also holds where the type is the text
 * "seq_aux_loss", but not where it is a list that has it. */
static const struct {
    const char *settings;
    unsigned made;
    unsigned logged;
} losses[] = {
    {"moe.aux_loss_coeff=0.01", PLAIN, PLAIN},
    {"moe.aux_loss_coeff=0", 0, PLAIN},
    {"moe.router_load_balancing=none moe.aux_loss_coeff=1", 0, 0},
    {"moe.router_load_balancing=seq_aux_loss moe.aux_loss_coeff=1", SEQUENCE,
     PLAIN | SEQUENCE},
    {"moe.router_load_balancing=seq_aux_loss,global_aux_loss "
     "moe.aux_loss_coeffs=1,0",
     SEQUENCE, SEQUENCE | GLOBAL},
    {"moe.router_load_balancing=sinkhorn moe.z_loss_coeff=0", Z, Z},
};

static unsigned bits(const bool *flags)
{
    unsigned set = 0;
    for (unsigned i = 0; i < ME_ROUTER_LOSSES; i++) {
        set |= flags[i] ? 1U << i : 0;
    }
    return set;
}

static void test_router__losses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, EXPERTS "%s", losses[i].settings);
        me_config *config = job_with(text);
        me_diag diag = {0};
        assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
        assert_int_equal(bits(config->moe.has_loss), losses[i].made);
        assert_int_equal(bits(config->moe.tracks_loss), losses[i].logged);
        me_config_destroy(config);
    }
}

/* What is not modelled is said, also of an option. */
static void test_router__quantile_balancing(void **state)
{
    (void)state;
    me_config *config =
        job_with(EXPERTS "moe.router_load_balancing=quantile_balancing");
    me_diag diag = {0};
    assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
    assert_true(
        me_flag_list_has(&config->not_modelled, "moe.router_load_balancing"));
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_router__rules),
        cmocka_unit_test(test_router__losses),
        cmocka_unit_test(test_router__quantile_balancing),
    };
    return cmocka_run_group_tests_name("router", tests, NULL, NULL);
}
