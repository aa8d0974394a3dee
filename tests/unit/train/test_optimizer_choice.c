/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose optimizer a launch command takes. */
#include "program.h"

#include <stdio.h>

static bool takes_fused(const char *command)
{
    me_config *config = me_config_create();
    assert_non_null(config);
    read_command(config, command);
    assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
    const bool is_fused = config->impl.optimizer == ME_OPTIMIZER_FUSED;
    me_config_destroy(config);
    return is_fused;
}

/* Who can import Transformer Engine takes its optimizers: all launch commands but
 * those that ask for the local layers, and for nothing that they have of it. */
static void test_optimizer__of_a_launch(void **state)
{
    (void)state;
    static const char job[] = "pretrain_gpt.py --num-layers 1 "
                              "--hidden-size 64 --num-attention-heads 1 "
                              "--seq-length 8 --max-position-embeddings 8 "
                              "--vocab-size 8 --micro-batch-size 1 --bf16 ";

    static const struct {
        const char *flags;
        bool is_fused;
    } cases[] = {
        {"", true},
        {"--transformer-impl transformer_engine", true},
        {"--transformer-impl local", true}, /* fused weight gradients */
        {"--transformer-impl local --no-gradient-accumulation-fusion", false},
        {"--transformer-impl local --no-gradient-accumulation-fusion "
         "--position-embedding-type rope",
         true},
        {"--transformer-impl local --no-gradient-accumulation-fusion "
         "--position-embedding-type rope --no-rope-fusion",
         false},
        {"--transformer-impl local --use-distributed-optimizer "
         "--use-precision-aware-optimizer",
         true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[512];
        (void)snprintf(command, sizeof command, "%s%s", job, cases[i].flags);
        assert_int_equal(takes_fused(command), cases[i].is_fused);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer__of_a_launch),
    };
    return cmocka_run_group_tests_name("optimizer_choice", tests, NULL, NULL);
}
