/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"
#include "sac/display.h"
#include "sac/policy.h"
#include "support/faults.h"
#include "support/test.h"

#include <stdio.h>

/* Everything that can be asked of a module, with text in both layouts. */
static me_status ask(void *context)
{
    const sac_case *c = context;
    bool saves[CASE_OPS];
    bool is_feasible = false;
    me_sac_greedy g = {.n_ops = 0};
    me_sac_tradeoff t = {.n_points = 0};
    me_str text = {0};
    me_diag diag = {.line = 0};
    me_status status = me_sac_greedy_init(&g, &c->stats, &diag);
    if (status == ME_OK) {
        status = me_sac_tradeoff_init(&t, &c->stats, &g, 2, &diag);
    }
    for (int i = 0; status == ME_OK && i < 2; i++) {
        status = me_sac_display_append(&text, &c->stats, &g, i == 0, &diag);
    }
    if (status == ME_OK) {
        status = me_sac_policy(&c->stats, 0.4, saves, &is_feasible, &diag);
    }
    assert_int_equal(diag.status, status);
    assert_int_equal(diag.text[0] != '\0', status != ME_OK);
    me_str_fini(&text);
    me_sac_tradeoff_fini(&t);
    me_sac_greedy_fini(&g);
    return status;
}

static void test_faults__of_a_layer(void **state)
{
    (void)state;
    static sac_case c;
    me_sac_case_of_module("Transformer.layers.0", &c);
    me_sweep_faults(ask, &c, 60);
}

/* Groups in place and of random ones. */
static void test_faults__of_groups(void **state)
{
    (void)state;
    FILE *file = fopen(GOLDEN_DIR "/sac_cases.tsv", "r");
    assert_non_null(file);
    static sac_case c;
    for (int i = 0; i < 8; i++) {
        assert_true(me_sac_case_read(file, &c));
        me_sweep_faults(ask, &c, 20);
    }
    assert_int_equal(fclose(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults__of_a_layer),
        cmocka_unit_test(test_faults__of_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
