/* SPDX-License-Identifier: BSD-3-Clause */
/* What would make a job fit, as text: all of it is shown where nobody else has
 * more to show. */
#include "report/fit.h"
#include "support/test.h"

#include <string.h>

enum {
    N_OFFERS = 70
};

static void test_text_fit__shows_all(void **state)
{
    (void)state;
    static const me_report changed = {.n_results = 0};
    me_fit_offer offers[N_OFFERS];
    for (size_t i = 0; i < N_OFFERS; i++) {
        offers[i] = (me_fit_offer){
            .name = "change", .flags = "--flag", .report = &changed};
    }
    const me_fit fit = {.offers = offers,
                        .n_offers = N_OFFERS,
                        .n_together = 1,
                        .n_tried = N_OFFERS + 3,
                        .n_left = 3};
    const me_report report = {.fit = &fit};

    const struct {
        size_t most;
        size_t lines;
        bool says_who;
    } cases[] = {{0, N_OFFERS, false}, {8, 8, true}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_str text = {0};
        assert_int_equal(me_fit_text(&report, cases[i].most, &text), ME_OK);
        size_t lines = 0;
        for (const char *at = strstr(me_str_text(&text), "--flag"); at != NULL;
             at = strstr(at + 1, "--flag")) {
            lines++;
        }
        assert_int_equal(lines, cases[i].lines);
        const bool says_who = strstr(me_str_text(&text), "memest fit") != NULL;
        assert_int_equal(says_who, cases[i].says_who);
        assert_non_null(strstr(me_str_text(&text), "3 may fit and were not"));
        me_str_fini(&text);
    }
}

/* Nor does a search that found nothing send to itself. */
static void test_text_fit__finds_nothing(void **state)
{
    (void)state;
    const me_fit fit = {.n_tried = 4, .n_left = 4};
    const me_report report = {.fit = &fit};
    me_str text = {0};
    assert_int_equal(me_fit_text(&report, 0, &text), ME_OK);
    assert_null(strstr(me_str_text(&text), "memest fit"));
    me_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_fit__shows_all),
        cmocka_unit_test(test_text_fit__finds_nothing),
    };
    return cmocka_run_group_tests_name("text_fit", tests, NULL, NULL);
}
