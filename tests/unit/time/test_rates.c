/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "time/rates.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_near(double a, double b)
{
    return a > b * (1 - 1e-9) && a < b * (1 + 1e-9);
}

static void test_rates__measured(void **state)
{
    (void)state;
    me_rates r;
    assert_int_equal(me_rates_load(CARDS "/h200-141gb.cfg", NULL, &r), ME_OK);
    assert_true(r.is_known);
    assert_string_equal(r.source, "measured on this card");
    assert_true(is_near(r.memory[ME_KERNEL_COPY], 4.18e12));
    assert_true(r.memory[ME_KERNEL_OPTIMIZER] == r.memory[ME_KERNEL_ADAMW]);
    assert_true(r.memory[ME_KERNEL_STRIDED] < r.memory[ME_KERNEL_ELEMENTWISE]);
    assert_true(r.memory[ME_KERNEL_INDEX] == r.memory[ME_KERNEL_STRIDED]);
    assert_true(r.memory[ME_KERNEL_EMBEDDING] == r.memory[ME_KERNEL_STRIDED]);
    assert_true(r.memory[ME_KERNEL_COMPILED] ==
                r.memory[ME_KERNEL_ELEMENTWISE]);
    assert_true(r.memory[ME_KERNEL_MASKED_FILL] ==
                r.memory[ME_KERNEL_ELEMENTWISE]);
    assert_true(strstr(r.network_source, "not measured") != NULL);
}

/** What a card does not give is the other's, by the ratio of what it gives. */
static void test_rates__by_ratio(void **state)
{
    (void)state;
    me_rates r;
    me_rates like;
    assert_int_equal(me_rates_load(CARDS "/h200-141gb.cfg", NULL, &like),
                     ME_OK);
    assert_int_equal(me_rates_load(CARDS "/a100-80gb.cfg", NULL, &r), ME_OK);
    assert_true(is_near(r.half_product, 218e12));
    assert_true(is_near(r.memory[ME_KERNEL_NORM], 2.54e12 * 1.77 / 4.18));
    assert_true(is_near(r.flash[1][0], like.flash[1][0] * 218 / 691.2));
    assert_true(is_near(r.node.all_reduce, like.node.all_reduce * 300 / 450));
    assert_true(r.network.p2p == like.network.p2p);
    assert_true(strstr(r.source, "not measured") != NULL);
}

/** Every file of configs/cards can be read. */
static void test_rates__all_cards(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a100-40gb", "a100-80gb",  "b200-180gb", "gb200-186gb", "h100-80gb",
        "h20-96gb",  "h200-141gb", "h800-80gb",  "l40s-48gb",   "rtx4090-24gb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        me_rates r;
        me_diag diag = {.status = ME_OK};
        (void)snprintf(path, sizeof path, "%s/%s.cfg", CARDS, names[i]);
        assert_int_equal(me_rates_load(path, &diag, &r), ME_OK);
        assert_true(r.is_known);
    }
}

static void expect_refused(const char *text, const char *said)
{
    static const char path[] = "test_rates.cfg";
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    me_rates r;
    me_diag diag = {.status = ME_OK};
    assert_int_not_equal(me_rates_load(path, &diag, &r), ME_OK);
    if (strstr(diag.text, said) == NULL) {
        fail_msg("'%s' does not say '%s'", diag.text, said);
    }
    (void)remove(path);
}

static void test_rates__bad_files(void **state)
{
    (void)state;
    expect_refused("rates = { half_tflop = 3; };",
                   "rates.half_tflop is no rate of a card");
    expect_refused("rates = { half_tflops = -3; };", "from 0.001 to 1e9");
    expect_refused("rates = { copy_tbs = 1e-300; };", "from 0.001 to 1e9");
    expect_refused("rates = { half_tflops = \"3\"; };", "must be a number");
    expect_refused("rates = { half_tflops = 3; };", "is missing");
    expect_refused("rates = { source = 3; };", "must be printable text");
    expect_refused("rates = {", "syntax error");
    expect_refused("rates = { like = \"nowhere\"; };", "cannot open");
    expect_refused("rates = { like = \"test_rates\"; };", "must be complete");
    me_rates r;
    assert_int_equal(me_rates_load("/nowhere.cfg", NULL, &r), ME_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates__measured),
        cmocka_unit_test(test_rates__by_ratio),
        cmocka_unit_test(test_rates__all_cards),
        cmocka_unit_test(test_rates__bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
