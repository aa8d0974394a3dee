/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/replay.h"
#include "alloc/replay_order.h"
#include "alloc/replay_search.h"
#include "base/alloc.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    ENOUGH = 100000,
    FEW = 100, /* not enough to go back once */
    MANY = 20000,
    TOO_MANY = 1 << 20
};

#define ALLOC(bytes, id) "alloc\t" bytes "\t" id "\t0\n"
#define FREE(id)         "free_requested\t" id "\nfree_completed\t" id "\n"
#define MIB_12           "12582912"
#define MIB_20           "20971520"
#define MIB_24           "25165824"
#define MIB_32           "33554432"
#define MIB_40           "41943040"
#define MIB_64           "67108864"

/* Two segments of 32 MiB, with 12 MiB free in each behind 20, and nothing says
 * which lies lower; two of 64 MiB, with 24 free behind 40. `c` and `g` may be in
 * either. The driver's model has the newer segments lower. */
#define EQUAL_RESTS                                                            \
    ALLOC(MIB_32, "a")                                                         \
    ALLOC(MIB_32, "b")                                                         \
    ALLOC(MIB_64, "e")                                                         \
    ALLOC(MIB_64, "f")                                                         \
    FREE("a")                                                                  \
    ALLOC(MIB_20, "a")                                                         \
    FREE("b")                                                                  \
    ALLOC(MIB_20, "b")                                                         \
    FREE("e")                                                                  \
    ALLOC(MIB_40, "e")                                                         \
    FREE("f")                                                                  \
    ALLOC(MIB_40, "f")                                                         \
    ALLOC(MIB_12, "c")                                                         \
    ALLOC(MIB_24, "g")                                                         \
    ALLOC(MIB_12, "d")

/* The segment of `a` is free as a whole once `c` is gone, so `c` was in it. */
#define C_WAS_WITH_A FREE("a") FREE("c") ALLOC(MIB_32, "a")

/* 64 MiB where a segment of 32 was: that one had gone back, and the other, which
 * nobody used either, with it. */
#define EMPTIED                                                                \
    ALLOC(MIB_32, "a")                                                         \
    ALLOC(MIB_32, "b")                                                         \
    ALLOC("512", "c")                                                          \
    FREE("a")                                                                  \
    FREE("b")                                                                  \
    "# a line\n" ALLOC(MIB_64, "a")

/* The same while `b` is being freed. */
#define EMPTIED_BY_A_FREE                                                      \
    ALLOC(MIB_32, "a")                                                         \
    ALLOC(MIB_32, "b")                                                         \
    FREE("a")                                                                  \
    "free_requested\tb\n" ALLOC(MIB_64, "a") "free_completed\tb\n"

/* `y` fits where `x` was and is elsewhere; the segment is in use, so that it
 * cannot have gone back either. */
#define IMPOSSIBLE                                                             \
    ALLOC(MIB_32, "a")                                                         \
    FREE("a")                                                                  \
    ALLOC(MIB_20, "a")                                                         \
    ALLOC(MIB_12, "x")                                                         \
    FREE("x")                                                                  \
    ALLOC(MIB_12, "y")

/* An id that comes back 8 and 40 times. */
#define RETURN     ALLOC("512", "r") FREE("r")
#define RETURNS_8  RETURN RETURN RETURN RETURN RETURN RETURN RETURN RETURN
#define RETURNS_40 RETURNS_8 RETURNS_8 RETURNS_8 RETURNS_8 RETURNS_8

enum {
    CHOICE_C = 4, /* behind those of the four that came back */
    CHOICE_G = 5,
    N_CALLS = 24 /* of both texts together */
};

static me_search_result search(const char *text, uint64_t max_steps)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    rewind(file);
    me_replay_calls calls = {0};
    assert_int_equal(me_replay_calls_read(file, "test", &calls), ME_OK);
    (void)fclose(file);
    const me_replay_options options = me_replay_options_default();
    me_search_result result;
    assert_int_equal(
        me_replay_search(&options.pool, &calls, max_steps, &result), ME_OK);
    if (result.verdict == ME_SEARCH_AGREES ||
        result.verdict == ME_SEARCH_NOTHING) {
        assert_int_equal(result.n_calls, calls.n_calls);
    }
    me_replay_calls_fini(&calls);
    return result;
}

static void test_search__takes_the_model_where_ids_say_nothing(void **state)
{
    (void)state;
    me_search_result r = search(EQUAL_RESTS, ENOUGH);
    assert_int_equal(r.verdict, ME_SEARCH_NOTHING);
    assert_true(r.n_chosen > CHOICE_G);
    assert_int_equal(r.chosen[CHOICE_C], 0);
    assert_int_equal(r.n_released, 0);
    me_search_result_fini(&r);
}

/* What `g` took has nothing to do with it, and is not questioned: one step back,
 * behind it, would be taken first otherwise. */
static void test_search__undoes_the_choice_that_is_to_blame(void **state)
{
    (void)state;
    me_search_result r = search(EQUAL_RESTS C_WAS_WITH_A, ENOUGH);
    assert_int_equal(r.verdict, ME_SEARCH_AGREES);
    assert_int_equal(r.chosen[CHOICE_C], 1);
    assert_int_equal(r.chosen[CHOICE_G], 0);
    assert_int_equal(r.n_released, 0);
    /* once through, 1000 for going back to the first call, and once again */
    assert_int_equal(r.n_steps, N_CALLS + 1000 + N_CALLS);
    me_search_result_fini(&r);
}

static void test_search__says_that_the_bound_was_reached(void **state)
{
    (void)state;
    me_search_result r = search(EQUAL_RESTS C_WAS_WITH_A, FEW);
    assert_int_equal(r.verdict, ME_SEARCH_GIVEN_UP);
    assert_int_equal(r.n_calls, N_CALLS - 1);
    assert_int_equal(r.chosen[CHOICE_C], 0);
    me_search_result_fini(&r);
}

static void test_search__infers_that_the_cache_was_emptied(void **state)
{
    (void)state;
    me_search_result r = search(EMPTIED RETURNS_40, ENOUGH);
    assert_int_equal(r.verdict, ME_SEARCH_AGREES);
    assert_int_equal(r.n_released, 1);
    assert_int_equal(r.released[0], 7);
    me_search_result_fini(&r);
}

/* empty_cache() waits for frees, so it was not while `b` was being freed. */
static void
test_search__empties_the_cache_while_no_free_is_pending(void **state)
{
    (void)state;
    me_search_result r = search(EMPTIED_BY_A_FREE RETURNS_40, ENOUGH);
    assert_int_equal(r.verdict, ME_SEARCH_AGREES);
    assert_int_equal(r.n_released, 1);
    assert_int_equal(r.released[0], 4);
    me_search_result_fini(&r);
}

/* Too little comes back to say that ids are addresses. */
static void test_search__infers_nothing_from_a_few_ids(void **state)
{
    (void)state;
    me_search_result r = search(EMPTIED RETURNS_8, ENOUGH);
    assert_int_equal(r.verdict, ME_SEARCH_CONTRADICTS);
    assert_int_equal(r.n_calls, 7);
    assert_int_equal(r.n_released, 0);
    me_search_result_fini(&r);
}

static void test_search__says_where_nothing_agrees(void **state)
{
    (void)state;
    me_search_result r = search(IMPOSSIBLE, ENOUGH);
    assert_int_equal(r.verdict, ME_SEARCH_CONTRADICTS);
    assert_int_equal(r.n_calls, 7);
    assert_int_equal(r.n_released, 0);
    me_search_result_fini(&r);
}

static me_status report(const char *text, me_replay_format format,
                        uint64_t max_steps, me_str *report_out)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    me_replay_options options = me_replay_options_default();
    options.format = format;
    options.max_search_steps = max_steps;
    me_diag diag = {0};
    const me_status status =
        me_replay_file(&options, file, "test", &diag, NULL, report_out);
    (void)fclose(file);
    return status;
}

static void expect(const char *text, me_replay_format format,
                   uint64_t max_steps, const char *part)
{
    me_str said = {0};
    assert_int_equal(report(text, format, max_steps, &said), ME_OK);
    if (strstr(me_str_text(&said), part) == NULL) {
        print_error("no %s in\n%s\n", part, me_str_text(&said));
    }
    assert_non_null(strstr(me_str_text(&said), part));
    me_str_fini(&said);
}

/* Ids that never come back are names of blocks. */
static void test_report__takes_names_for_names(void **state)
{
    (void)state;
    static const char names[] = ALLOC(MIB_32, "1") FREE("1") ALLOC(MIB_32, "2")
        FREE("2") ALLOC(MIB_32, "3") FREE("3");
    expect(names, ME_REPLAY_JSON, ENOUGH, "\"segment_order\": \"modelled\"");
    expect(names, ME_REPLAY_JSON, ENOUGH,
           "\"reserved\": {\"current\": 33554432, \"peak\": 33554432}");
}

static void test_report__says_what_the_search_found(void **state)
{
    (void)state;
    static const char right[] = EQUAL_RESTS C_WAS_WITH_A;
    expect(right, ME_REPLAY_TEXT, ENOUGH,
           "which of equal blocks was used first is read off the recording\n");
    expect(right, ME_REPLAY_JSON, ENOUGH,
           "\"segment_order\": \"recorded\",\n  \"segment_order_to_line\": "
           "null,\n  \"empty_cache_inferred_by_lines\": []");
    expect(right, ME_REPLAY_TEXT, FEW,
           "up to line 24, where the search for one was given up\n");
    expect(right, ME_REPLAY_JSON, FEW,
           "\"segment_order\": \"given up\",\n  \"segment_order_to_line\": 24");
    expect(EMPTIED RETURNS_40, ME_REPLAY_TEXT, ENOUGH,
           "cached segments went back, as by empty_cache(); ids show it by "
           "line 9\n");
    expect(EMPTIED RETURNS_40, ME_REPLAY_JSON, ENOUGH,
           "\"empty_cache_inferred_by_lines\": [9]");
    expect(EMPTIED RETURNS_40, ME_REPLAY_JSON, ENOUGH,
           "\"reserved\": {\"current\": 69206016, \"peak\": 69206016}");
}

/* It would have to be held to be searched. */
static void test_report__says_that_a_recording_is_too_long(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    for (uint32_t i = 0; i < TOO_MANY / 3 + 1; i++) {
        (void)fprintf(file, ALLOC("512", "%u") FREE("%u"), i % 7, i % 7, i % 7);
    }
    me_replay_options options = me_replay_options_default();
    options.format = ME_REPLAY_TEXT;
    me_str said = {0};
    assert_int_equal(me_replay_file(&options, file, "test", NULL, NULL, &said),
                     ME_OK);
    assert_non_null(strstr(me_str_text(&said),
                           "up to line 1, where the search for one was given "
                           "up\n"));
    me_str_fini(&said);
    (void)fclose(file);
}

/* Of many ids, in more calls than there are checkpoints for. */
static void test_search__goes_back_in_a_long_recording(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    (void)fputs(EQUAL_RESTS, file);
    for (uint32_t i = 0; i < MANY; i++) {
        (void)fprintf(file, ALLOC("512", "x%u"), i);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        (void)fprintf(file, FREE("x%u"), i, i);
    }
    (void)fputs(C_WAS_WITH_A, file);
    rewind(file);
    me_replay_calls calls = {0};
    assert_int_equal(me_replay_calls_read(file, "test", &calls), ME_OK);
    (void)fclose(file);
    const me_replay_options options = me_replay_options_default();
    me_search_result r;
    assert_int_equal(
        me_replay_search(&options.pool, &calls, options.max_search_steps, &r),
        ME_OK);
    assert_int_equal(r.verdict, ME_SEARCH_AGREES);
    assert_int_equal(r.n_calls, N_CALLS + 3 * MANY);
    assert_int_equal(r.chosen[CHOICE_C], 1);
    me_search_result_fini(&r);
    me_replay_calls_fini(&calls);
}

static void test_search__survives_missing_memory(void **state)
{
    (void)state;
    me_status status = ME_ERR_NOMEM;
    for (uint64_t n = 1; status == ME_ERR_NOMEM; n++) {
        me_str said = {0};
        me_alloc_fail_at(n);
        status =
            report(EQUAL_RESTS C_WAS_WITH_A, ME_REPLAY_TEXT, ENOUGH, &said);
        me_alloc_fail_at(0);
        assert_true(status == ME_OK || status == ME_ERR_NOMEM);
        me_str_fini(&said);
    }
    assert_int_equal(status, ME_OK);
}

static void count_rule(void *self, const me_order_rule *rule)
{
    uint64_t *reasons = self;
    *reasons |= UINT64_C(1) << rule->reason;
}

static void test_order__follows_chains_and_explains_them(void **state)
{
    (void)state;
    me_order *order = me_order_create(8);
    assert_non_null(order);
    assert_int_equal(me_order_add(order, (me_order_rule){3, 4, 1}), ME_OK);
    assert_int_equal(me_order_add(order, (me_order_rule){1, 2, 2}), ME_OK);
    const uint32_t n = me_order_count(order);
    assert_false(me_order_is_below(order, 1, 4));
    assert_int_equal(me_order_add(order, (me_order_rule){2, 3, 3}), ME_OK);
    assert_true(me_order_is_below(order, 1, 4));
    assert_false(me_order_is_below(order, 4, 1));
    assert_int_equal(me_order_add(order, (me_order_rule){1, 4, 4}), ME_OK);
    assert_int_equal(me_order_count(order), n + 1);
    uint64_t reasons = 0;
    me_order_explain(order, 2, 4, count_rule, &reasons);
    assert_int_equal(reasons, 1U << 1U | 1U << 3U);
    me_order_forget(order, n);
    assert_false(me_order_is_below(order, 1, 4));
    assert_true(me_order_is_below(order, 3, 4));
    me_order_destroy(order);
}

/* Both go on from the same state, and neither sees the other. */
static void test_pool_clone__goes_on_apart(void **state)
{
    (void)state;
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    me_pool *pool = NULL;
    me_pool *clone = NULL;
    me_pool_block a = 0;
    me_pool_block b = 0;
    assert_int_equal(me_pool_create(&options, &pool), ME_OK);
    assert_int_equal(me_pool_alloc(pool, 3 << 20, 0, &a), ME_OK);
    assert_int_equal(me_pool_clone(pool, &clone), ME_OK);
    me_pool_free(pool, a);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(me_pool_alloc(clone, 3 << 20, 1, &b), ME_OK);
    }
    assert_int_equal(me_pool_check(pool, NULL), ME_OK);
    assert_int_equal(me_pool_check(clone, NULL), ME_OK);
    assert_int_equal(me_pool_current(pool, ME_POOL_ALLOCATED_BYTES), 0);
    assert_int_equal(me_pool_current(clone, ME_POOL_ALLOCATED_BYTES),
                     101 * (3 << 20));
    me_pool_free(clone, a);
    assert_int_equal(me_pool_check(clone, NULL), ME_OK);
    me_pool_destroy(pool);
    me_pool_destroy(clone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search__takes_the_model_where_ids_say_nothing),
        cmocka_unit_test(test_search__undoes_the_choice_that_is_to_blame),
        cmocka_unit_test(test_search__says_that_the_bound_was_reached),
        cmocka_unit_test(test_search__infers_that_the_cache_was_emptied),
        cmocka_unit_test(
            test_search__empties_the_cache_while_no_free_is_pending),
        cmocka_unit_test(test_search__infers_nothing_from_a_few_ids),
        cmocka_unit_test(test_report__takes_names_for_names),
        cmocka_unit_test(test_search__says_where_nothing_agrees),
        cmocka_unit_test(test_report__says_what_the_search_found),
        cmocka_unit_test(test_report__says_that_a_recording_is_too_long),
        cmocka_unit_test(test_search__goes_back_in_a_long_recording),
        cmocka_unit_test(test_search__survives_missing_memory),
        cmocka_unit_test(test_order__follows_chains_and_explains_them),
        cmocka_unit_test(test_pool_clone__goes_on_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
