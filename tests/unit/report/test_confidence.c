/* SPDX-License-Identifier: BSD-3-Clause */
/* Each part of a verdict that nobody can decide makes it an approximation by
 * itself; a number that has a band is not called exact. */
#include "model/effect.h"
#include "report/confidence.h"
#include "support/test.h"

static me_confidence of(const me_verdict *verdict)
{
    const me_config config = {.not_modelled = {.count = 0}};
    const me_report report = {.config = &config, .verdict = *verdict};
    return me_confidence_of(&report);
}

static void test_confidence__what_is_undecided(void **state)
{
    (void)state;
    static const me_verdict undecided[] = {
        {.band = {.device = ME_MEASURED_DEVICE_BAND_BYTES + 1}},
        {.band = {.late_frees = 1}},
        {.band = {.overlap = 1}},
        {.band = {.routing = 1}},
        {.band = {.workspace = 1}},
        {.lower_bytes = 1},
        {.higher_bytes = 1},
    };
    static const me_verdict modelled[] = {
        {.band = {.device = ME_MEASURED_DEVICE_BAND_BYTES},
         .band_bytes = ME_MEASURED_DEVICE_BAND_BYTES},
        {.band = {.segment = 1}, .band_bytes = 1},
        {.band = {.compile_cache = 1}, .band_bytes = 1},
    };
    static const me_verdict exact = {.worst_bytes = 1};
    for (size_t i = 0; i < sizeof undecided / sizeof undecided[0]; i++) {
        assert_int_equal(of(&undecided[i]).level, ME_CONFIDENCE_APPROXIMATED);
    }
    for (size_t i = 0; i < sizeof modelled / sizeof modelled[0]; i++) {
        assert_int_equal(of(&modelled[i]).level, ME_CONFIDENCE_MODELLED);
    }
    assert_int_equal(of(&exact).level, ME_CONFIDENCE_EXACT);
}

/* The band goes to both sides, what is left out to its own. */
static void test_confidence__sides(void **state)
{
    (void)state;
    const me_verdict verdict = {
        .lower_bytes = 3, .higher_bytes = 5, .band_bytes = 100};
    const me_confidence c = of(&verdict);
    assert_int_equal(c.lower_bytes, 103);
    assert_int_equal(c.higher_bytes, 105);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_confidence__what_is_undecided),
        cmocka_unit_test(test_confidence__sides),
    };
    return cmocka_run_group_tests_name("confidence", tests, NULL, NULL);
}
