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

/* A time that is a lower bound is in no order to others; nor is a change against
 * one. */
static void test_text_fit__says_what_is_a_bound(void **state)
{
    (void)state;
    me_step_time step = {.step_ns = 3000000};
    const me_report known = {.time = {.step = &step}};
    const me_report bound = {.time = {.step = &step, .host_lacks = "copies"}};

    const struct {
        const me_report *before;
        const me_report *first;
        const char *order;
        const char *row;
        const char *other_row;
    } cases[] = {
        {&known, &known, "fastest first (= is a tie)\n", "1      3.0     +0 %",
         "1      3.0     +0 %"},
        {&known, &bound, "(= is a tie; >= has no place)\n", ">=3.0   >=+0 %",
         "1      3.0     +0 %"},
        {&bound, &bound, "(= is a tie; >= has no place)\n", ">=3.0        -",
         "1      3.0        -"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_fit_offer offers[] = {
            {.name = "a", .flags = "-a", .report = &known, .place = 1},
            {.name = "b",
             .flags = "-b",
             .report = cases[i].first,
             .place = cases[i].first == &bound ? 0 : 1},
        };
        const me_fit fit = {.offers = offers, .n_offers = 2, .n_together = 1};
        me_report report = *cases[i].before;
        report.fit = &fit;
        me_str text = {0};
        assert_int_equal(me_fit_text(&report, 0, &text), ME_OK);
        assert_non_null(strstr(me_str_text(&text), cases[i].order));
        assert_non_null(strstr(me_str_text(&text), cases[i].row));
        assert_non_null(strstr(me_str_text(&text), cases[i].other_row));
        me_str_fini(&text);
    }
}

static void test_text_fit__has_no_order_of_bounds(void **state)
{
    (void)state;
    me_step_time step = {.step_ns = 3000000};
    const me_report bound = {.time = {.step = &step, .host_lacks = "copies"}};
    const me_fit_offer offer = {.name = "a", .flags = "-a", .report = &bound};
    const me_fit fit = {.offers = &offer, .n_offers = 1, .n_together = 1};
    me_report report = bound;
    report.fit = &fit;
    me_str text = {0};
    assert_int_equal(me_fit_text(&report, 0, &text), ME_OK);
    assert_null(strstr(me_str_text(&text), "fastest"));
    assert_non_null(strstr(me_str_text(&text), "no places"));
    me_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_fit__shows_all),
        cmocka_unit_test(test_text_fit__finds_nothing),
        cmocka_unit_test(test_text_fit__says_what_is_a_bound),
        cmocka_unit_test(test_text_fit__has_no_order_of_bounds),
    };
    return cmocka_run_group_tests_name("text_fit", tests, NULL, NULL);
}
