/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text.h"
#include "report/verdict.h"
#include "support/test.h"

#include <string.h>

enum {
    MIB = 1 << 20,
    CAPACITY = 1000 * MIB
};

/** A world of two ranks, the second with @p bytes of the basis. */
typedef struct world {
    me_config config;
    me_point_result points[2];
    me_rank_result results[2];
    me_rank_result *pointers[2];
    me_report_rank ranks[2];
    me_report report;
} world;

static void make_world(world *w, me_basis basis, uint64_t bytes)
{
    *w = (world){0};
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t most = i == 0 ? 1 : bytes;
        w->points[i] = (me_point_result){
            .name = "iter1_end",
            .requested_peak_bytes = most,
            .reserved_peak_bytes =
                basis == ME_BASIS_REQUESTED ? ME_BYTES_UNKNOWN : most,
            .device_bytes = basis == ME_BASIS_DEVICE ? most : ME_BYTES_UNKNOWN,
        };
        w->results[i].device = (me_device_result){
            .is_known = basis == ME_BASIS_DEVICE,
            .context_bytes = (uint64_t)50 * MIB,
            .band_bytes = (uint64_t)8 * MIB,
        };
        w->results[i].points = &w->points[i];
        w->results[i].n_points = 1;
        w->pointers[i] = &w->results[i];
        w->ranks[i].place.rank = (int32_t)i;
        w->ranks[i].result = i;
    }
    w->report = (me_report){.config = &w->config,
                            .world_size = 2,
                            .results = w->pointers,
                            .n_results = 2,
                            .ranks = w->ranks};
}

static void test_verdict__weighs_the_worst_rank(void **state)
{
    (void)state;

    static const struct {
        me_basis basis;
        uint64_t mib;
        me_risk risk;
        bool fits;
    } cases[] = {
        {ME_BASIS_DEVICE, 500, ME_RISK_FITS, true},
        {ME_BASIS_DEVICE, 940, ME_RISK_FITS, true},
        {ME_BASIS_DEVICE, 941, ME_RISK_TIGHT, true}, /* 50 + 8 + 2 MiB */
        {ME_BASIS_DEVICE, 989, ME_RISK_TIGHT, true},
        {ME_BASIS_DEVICE, 990, ME_RISK_COIN_FLIP, true},
        {ME_BASIS_DEVICE, 1010, ME_RISK_COIN_FLIP, false},
        {ME_BASIS_DEVICE, 1011, ME_RISK_DOES_NOT_FIT, false},
        {ME_BASIS_RESERVED, 997, ME_RISK_FITS, true},
        {ME_BASIS_RESERVED, 1000, ME_RISK_COIN_FLIP, true},
        {ME_BASIS_REQUESTED, 1000, ME_RISK_FITS, true},
        {ME_BASIS_REQUESTED, 1001, ME_RISK_DOES_NOT_FIT, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        make_world(&w, cases[i].basis, cases[i].mib * MIB);
        const me_verdict v = me_verdict_judge(&w.report, CAPACITY);
        assert_int_equal(v.basis, cases[i].basis);
        assert_int_equal(v.risk, cases[i].risk);
        assert_int_equal(v.fits, cases[i].fits);
        assert_int_equal(v.worst_rank, 1);
        assert_int_equal(v.worst_bytes, cases[i].mib * MIB);
    }
}

static void test_verdict__doubts_the_compile_cache(void **state)
{
    (void)state;
    world w;
    make_world(&w, ME_BASIS_DEVICE, (uint64_t)975 * MIB);
    me_verdict v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.band.compile_cache, 0);
    const uint64_t sum = v.band_bytes;
    w.results[1].timing_buffer_bytes = (uint64_t)60 * MIB;
    v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.band.compile_cache, (uint64_t)60 * MIB);
    assert_int_equal(v.band_bytes, sum + (uint64_t)60 * MIB);
    assert_int_equal(v.risk, ME_RISK_COIN_FLIP);
}

static void test_verdict__doubts_what_depends_on_timing(void **state)
{
    (void)state;
    world w;
    make_world(&w, ME_BASIS_DEVICE, (uint64_t)975 * MIB);
    w.points[1].reserved_peak_bytes = (uint64_t)400 * MIB;
    assert_int_equal(me_verdict_judge(&w.report, CAPACITY).risk, ME_RISK_TIGHT);
    w.config.parallel.pipeline = 2;
    me_verdict v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.band.late_frees, (uint64_t)10 * MIB);
    assert_int_equal(v.risk, ME_RISK_TIGHT);
    me_late_result *late = &w.report.results[1]->late;
    *late = (me_late_result){.is_known = true,
                             .reserved_bytes = (uint64_t)417 * MIB};
    assert_int_equal(me_verdict_judge(&w.report, CAPACITY).band.late_frees,
                     (uint64_t)17 * MIB);
    late->reserved_bytes = (uint64_t)399 * MIB;
    assert_int_equal(me_verdict_judge(&w.report, CAPACITY).band.late_frees, 0);
    *late = (me_late_result){.is_known = false};
    w.config.parallel.virtual_pipeline = 2;
    w.config.optimizer.overlap_grad_reduce = true;
    v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.risk, ME_RISK_COIN_FLIP); /* 8 + 2 + 10 + 60.4 MiB */
    assert_int_equal(v.band_bytes, v.band.device + v.band.segment +
                                       v.band.late_frees + v.band.overlap);
    assert_false(me_verdict_lets_go(&v));
    w.config.optimizer.overlap_grad_reduce = false;
    assert_int_equal(me_verdict_judge(&w.report, CAPACITY).band.overlap, 0);
    w.config.parallel.overlap_p2p_comm = true;
    assert_int_equal(me_verdict_judge(&w.report, CAPACITY).band.overlap,
                     v.band.overlap);
}

/* Interleaved and overlapped: 2.5 and 15.3 % of 400 MiB to either side, but not
 * below the 350 MiB that are requested at once. */
static void test_verdict__gives_reserved_bytes_a_range(void **state)
{
    (void)state;
    world w;
    make_world(&w, ME_BASIS_DEVICE, (uint64_t)975 * MIB);
    const me_rank_result *result = w.report.results[1];
    w.points[1].reserved_peak_bytes = (uint64_t)400 * MIB;
    w.points[1].requested_peak_bytes = (uint64_t)300 * MIB;
    w.config.parallel.pipeline = 2;
    w.config.parallel.overlap_p2p_comm = true;
    assert_false(me_verdict_reserved_range(&w.config, result).is_known);
    w.config.parallel.virtual_pipeline = 2;
    me_reserved_range range = me_verdict_reserved_range(&w.config, result);
    assert_true(range.is_known);
    const uint64_t width = (uint64_t)400 * MIB / 1000 * 178;
    assert_in_range(range.least_bytes, (uint64_t)400 * MIB - width - 1000,
                    (uint64_t)400 * MIB - width);
    assert_int_equal(range.least_bytes + range.most_bytes, (uint64_t)800 * MIB);
    w.points[1].requested_peak_bytes = (uint64_t)350 * MIB;
    range = me_verdict_reserved_range(&w.config, result);
    assert_int_equal(range.least_bytes, (uint64_t)350 * MIB);
    w.report.results[1]->late.is_known = true; /* it has both ends */
    assert_false(me_verdict_reserved_range(&w.config, result).is_known);
}

static void test_verdict__takes_the_nearer_limit(void **state)
{
    (void)state;
    world w;
    make_world(&w, ME_BASIS_DEVICE, (uint64_t)500 * MIB);
    w.points[1].reserved_peak_bytes = (uint64_t)300 * MIB;
    w.report.limit_bytes = (uint64_t)250 * MIB;
    const me_verdict v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.basis, ME_BASIS_RESERVED);
    assert_int_equal(v.capacity_bytes, (uint64_t)250 * MIB);
    assert_int_equal(v.worst_bytes, (uint64_t)300 * MIB);
}

/** What is judged of 900 MiB on a card of @p capacity MiB and 800 of them
 *  reserved under @p limit MiB. */
static me_basis basis_of_two(uint64_t capacity, uint64_t limit)
{
    world w;
    make_world(&w, ME_BASIS_DEVICE, (uint64_t)900 * MIB);
    w.points[1].reserved_peak_bytes = (uint64_t)800 * MIB;
    w.report.limit_bytes = limit * MIB;
    return me_verdict_judge(&w.report, capacity * MIB).basis;
}

/* Of two that are exceeded the more exceeded one is told, of two that are not
 * the one with less left. */
static void test_verdict__tells_the_worse_of_two(void **state)
{
    (void)state;
    assert_int_equal(basis_of_two(850, 700), ME_BASIS_RESERVED);
    assert_int_equal(basis_of_two(700, 750), ME_BASIS_DEVICE);
    assert_int_equal(basis_of_two(950, 810), ME_BASIS_RESERVED);
    assert_int_equal(basis_of_two(910, 850), ME_BASIS_DEVICE);
    assert_int_equal(basis_of_two(950, 790), ME_BASIS_RESERVED);
    assert_int_equal(basis_of_two(890, 900), ME_BASIS_DEVICE);
}

static void test_verdict__judges_nothing_without_capacity(void **state)
{
    (void)state;
    world w;
    make_world(&w, ME_BASIS_DEVICE, 5);
    assert_int_equal(me_verdict_judge(&w.report, 0).risk, ME_RISK_UNKNOWN);
}

static void test_verdict__believes_the_limited_run(void **state)
{
    (void)state;
    world w;
    make_world(&w, ME_BASIS_RESERVED, (uint64_t)1100 * MIB);
    w.results[0].limit.is_known = true;
    w.results[1].limit.is_known = true;
    me_verdict v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.risk, ME_RISK_TIGHT);
    assert_true(v.fits);
    w.results[1].limit.oom_with_less = true;
    v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.risk, ME_RISK_COIN_FLIP);
    assert_true(v.fits);
    w.results[1].limit.oom = true;
    w.results[1].limit.tried_bytes = 77;
    v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.risk, ME_RISK_COIN_FLIP);
    assert_false(v.fits);
    w.results[1].limit.oom_with_more = true;
    v = me_verdict_judge(&w.report, CAPACITY);
    assert_int_equal(v.risk, ME_RISK_DOES_NOT_FIT);
    assert_false(v.fits);
    assert_int_equal(v.oom_rank, 1);
    w.report.verdict = v;
    me_str text = {0};
    me_text_end(&w.report, &text);
    assert_non_null(strstr(me_str_text(&text), "asking for 77 bytes"));
    me_str_fini(&text);
}

/* A card of 1000 GiB. Small is 512 MiB at least and 2 %, some a quarter, much a
 * half; what is left out together counts, in its own direction alone. */
static void
test_verdict__says_nothing_where_what_is_left_out_decides(void **state)
{
    (void)state;
    const uint64_t gib = (uint64_t)1024 * MIB;

    static const struct {
        uint64_t gib;
        me_effect effects[2];
        me_risk risk;
    } cases[] = {
        {900, {ME_EITHER(NONE), ME_EITHER(NONE)}, ME_RISK_FITS},
        {900, {ME_LOWER(ANY), ME_EITHER(NONE)}, ME_RISK_FITS},
        {900, {ME_HIGHER(ANY), ME_EITHER(NONE)}, ME_RISK_CANNOT_SAY},
        {900,
         {{ME_REACH_UNKNOWN, ME_REACH_UNKNOWN}, ME_EITHER(NONE)},
         ME_RISK_CANNOT_SAY},
        {900, {ME_HIGHER(SMALL), ME_EITHER(NONE)}, ME_RISK_FITS},
        {990, {ME_HIGHER(SMALL), ME_EITHER(NONE)}, ME_RISK_CANNOT_SAY},
        {970, {ME_HIGHER(SMALL), ME_EITHER(NONE)}, ME_RISK_FITS},
        {970, {ME_HIGHER(SMALL), ME_HIGHER(SMALL)}, ME_RISK_CANNOT_SAY},
        {790, {ME_HIGHER(SOME), ME_EITHER(NONE)}, ME_RISK_FITS},
        {810, {ME_EITHER(SOME), ME_EITHER(NONE)}, ME_RISK_CANNOT_SAY},
        {660, {ME_EITHER(MUCH), ME_EITHER(NONE)}, ME_RISK_FITS},
        {670, {ME_EITHER(MUCH), ME_EITHER(NONE)}, ME_RISK_CANNOT_SAY},
        {1100, {ME_HIGHER(ANY), ME_EITHER(NONE)}, ME_RISK_DOES_NOT_FIT},
        {1100, {ME_LOWER(SMALL), ME_EITHER(NONE)}, ME_RISK_DOES_NOT_FIT},
        {1100, {ME_LOWER(SOME), ME_EITHER(NONE)}, ME_RISK_CANNOT_SAY},
        {1000, {ME_EITHER(NONE), ME_EITHER(NONE)}, ME_RISK_COIN_FLIP},
        {1000, {ME_LOWER(SMALL), ME_EITHER(NONE)}, ME_RISK_CANNOT_SAY},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        me_flag_note notes[2] = {{"--a", NULL, cases[i].effects[0]},
                                 {"--b", NULL, cases[i].effects[1]}};
        make_world(&w, ME_BASIS_DEVICE, cases[i].gib * gib);
        w.config.not_modelled = (me_flag_list){.flags = notes, .count = 2};
        const me_verdict v = me_verdict_judge(&w.report, 1000 * gib);
        if (v.risk != cases[i].risk) {
            fail_msg("case %zu: %s", i, me_risk_name(v.risk));
        }
        assert_int_equal(me_verdict_lets_go(&v), v.risk == ME_RISK_FITS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict__weighs_the_worst_rank),
        cmocka_unit_test(test_verdict__doubts_the_compile_cache),
        cmocka_unit_test(test_verdict__doubts_what_depends_on_timing),
        cmocka_unit_test(test_verdict__gives_reserved_bytes_a_range),
        cmocka_unit_test(test_verdict__takes_the_nearer_limit),
        cmocka_unit_test(test_verdict__tells_the_worse_of_two),
        cmocka_unit_test(test_verdict__judges_nothing_without_capacity),
        cmocka_unit_test(test_verdict__believes_the_limited_run),
        cmocka_unit_test(
            test_verdict__says_nothing_where_what_is_left_out_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
