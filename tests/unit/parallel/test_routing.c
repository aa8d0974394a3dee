/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/routing.h"
#include "support/faults.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char two_experts[] = "# a comment\n"
                                  "0 1 0 0  7 9\n"
                                  "\n"
                                  "0 0 0 0 1 2 # and another\r\n"
                                  "1 0 3 2 0 4";

/* Of a rank, and of the model. */
static const uint32_t experts[] = {2, 4};

static void test_routing__reads_counts(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    me_routing r;
    assert_int_equal(me_routing_read(two_experts, "f", experts, &diag, &r),
                     ME_OK);
    uint64_t counts[2] = {0, 0};
    const me_routing_place first = {.layer = 1};
    const me_routing_place last = {
        .rank = 2, .iteration = 1, .layer = 0, .microbatch = 3};
    const me_routing_place none = {.layer = 2};
    me_routing_counts(&r, &first, 100, 2, counts);
    assert_int_equal(counts[0], 7);
    assert_int_equal(counts[1], 9);
    assert_int_equal(me_routing_received(&r, &last, 100), 4);
    assert_true(me_routing_has(&r, &last));
    assert_false(me_routing_has(&r, &none));
    assert_false(me_routing_is_uniform(&r));
    me_routing_fini(&r);
}

static void test_routing__says_what_is_wrong(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"", "f: no counts in it"},
        {"alone\n", "f: no counts in it"},
        {"alone 0 0 0 0 1 2\n",
         "f, line 1: expected numbers: iteration, layer, "
         "micro-batch, rank and the tokens of its 2 experts"},
        {"0 0 0 0 1\n", "f, line 1: expected numbers: iteration, layer, "
                        "micro-batch, rank and the tokens of its 2 experts"},
        {"0 0 0 0 1 2\n0 1 0 0 1 2 3\n",
         "f, line 2: expected numbers: iteration, layer, micro-batch, rank and "
         "the tokens of its 2 experts"},
        {"0 0 0 0 1 x\n", "f, line 1: expected numbers: iteration, layer, "
                          "micro-batch, rank and the tokens of its 2 experts"},
        {"0 0 0 0 1 4294967296\n",
         "f, line 1: expected numbers: iteration, layer, micro-batch, rank and "
         "the tokens of its 2 experts"},
        {"0 0 0 1 1 2\n0 0 0 1 2 1\n",
         "f: two lines for iteration 0, layer 0, micro-batch 0, rank 1"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {.status = ME_OK};
        me_routing r;
        assert_int_equal(
            me_routing_read(cases[i].text, "f", experts, &diag, &r),
            ME_ERR_CONFIG);
        assert_string_equal(diag.text, cases[i].said);
        assert_null(r.rows);
    }
}

/* Of ranks that were measured alone: one without a line gets an equal share, one
 * with lines needs them all. */
static void test_routing__alone(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    me_routing r;
    assert_int_equal(
        me_routing_read("alone # word\n0 0 0 2 7 9\n", "f", experts, &diag, &r),
        ME_OK);
    const me_routing_place own = {.rank = 2};
    const me_routing_place missing = {.rank = 2, .layer = 1};
    const me_routing_place other = {.rank = 1, .layer = 1};
    const me_routing_place later = {.rank = 3};
    assert_true(r.is_alone);
    assert_int_equal(me_routing_received(&r, &own, 100), 16);
    assert_false(me_routing_has(&r, &missing));
    assert_true(me_routing_has(&r, &other));
    assert_true(me_routing_has(&r, &later));
    assert_int_equal(me_routing_received(&r, &other, 100), 100);
    me_routing_fini(&r);
}

/* Counts of what a rank's own tokens chose are of all experts of the model. */
static void test_routing__routed(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *said; /**< NULL: it is right */
    } cases[] = {
        {"routed\n0 0 0 1 7 9 1 3\n", NULL},
        {"alone\nrouted # word\n0 0 0 1 7 9 1 3\n", NULL},
        {"0 0 0 0 1 2\nrouted\n", "f, line 2: routed stands before all counts"},
        {"routed\n0 0 0 1 7 9\n",
         "f, line 2: expected numbers: iteration, layer, micro-batch, rank and "
         "the tokens of its own for each of 4 experts"},
        {"route\n", "f, line 1: expected numbers: iteration, layer, "
                    "micro-batch, rank and the tokens of its 2 experts"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {.status = ME_OK};
        me_routing r;
        const me_status status =
            me_routing_read(cases[i].text, "f", experts, &diag, &r);
        const me_routing_place at = {.rank = 1};
        uint64_t sent = 0;
        if (cases[i].said != NULL) {
            assert_int_equal(status, ME_ERR_CONFIG);
            assert_string_equal(diag.text, cases[i].said);
            continue;
        }
        assert_int_equal(status, ME_OK);
        assert_true(r.is_routed);
        assert_int_equal(r.n_experts, 4);
        assert_int_equal(me_routing_received(&r, &at, 0), 20);
        assert_false(me_routing_sent(&r, &at, &sent)); // until a plan says it
        me_routing_fini(&r);
    }
}

/** A file with @p text, @p times over. */
static void write_file(const char *path, const char *text, int times)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < times; i++) {
        assert_true(fputs(text, file) >= 0);
    }
    assert_int_equal(fclose(file), 0);
}

/* Longer than what is held of it at once; lines come in any order. */
static void test_routing__reads_long_files(void **state)
{
    (void)state;

    enum {
        RANKS = 97,
        LAYERS = 61
    };

    static const char path[] = "test_routing.tokens";
    write_file(path, "# a comment that fills more than a block\n", 2000);
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    for (int i = 0; i < RANKS * LAYERS; i++) {
        const int n = i * 1000 % (RANKS * LAYERS); // 1000 has no factor of it
        (void)fprintf(file, "0 %d 2 %d %d 7\n", n % LAYERS, n / LAYERS, n);
    }
    assert_int_equal(fclose(file), 0);
    me_diag diag = {.status = ME_OK};
    me_routing r;
    assert_int_equal(me_routing_read_file(path, experts, &diag, &r), ME_OK);
    for (int n = 0; n < RANKS * LAYERS; n++) {
        const me_routing_place at = {
            .rank = n / LAYERS, .layer = n % LAYERS, .microbatch = 2};
        uint64_t counts[2] = {0, 0};
        me_routing_counts(&r, &at, 0, 2, counts);
        assert_int_equal(counts[0], n);
        assert_int_equal(counts[1], 7);
    }
    assert_false(me_routing_names(&r, RANKS));
    assert_false(me_routing_has(&r, &(me_routing_place){.microbatch = 1}));
    me_routing_fini(&r);
    assert_int_equal(remove(path), 0);
}

static void test_routing__says_what_is_wrong_in_files(void **state)
{
    (void)state;
    static const char path[] = "test_routing.tokens";
    me_diag diag = {.status = ME_OK};
    me_routing r;
    assert_int_equal(me_routing_read_file("none/such", experts, &diag, &r),
                     ME_ERR_IO);
    write_file(path,
               "\xEF\xBB\xBF"
               "0 0 0 0 1 2\n0 0 0 1 1\n",
               1);
    diag = (me_diag){.status = ME_OK};
    assert_int_equal(me_routing_read_file(path, experts, &diag, &r),
                     ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "line 2: expected numbers"));
    for (int i = 0; i < 3; i++) {
        static const char *const before[] = {"0 0 0 0 1 2\n", "0 0 0 0 1 ",
                                             "# a comment "};
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        (void)fputs(before[i], file);
        (void)fputc('\0', file);
        assert_int_equal(fclose(file), 0);
        diag = (me_diag){.status = ME_OK};
        assert_int_equal(me_routing_read_file(path, experts, &diag, &r),
                         ME_ERR_SYNTAX);
        assert_string_equal(diag.text, "binary file: it has a NUL byte");
        assert_int_equal(diag.line, i == 0 ? 2 : 1);
    }
    assert_int_equal(remove(path), 0);
}

/* Columns are compared whole: place by place, count by count. */
static void test_routing__equal_columns(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    me_routing r;
    static const char text[] = "0 0 0 0 1 2\n0 1 0 0 3 4\n" // as rank 4
                               "0 0 0 1 1 2\n0 1 0 1 4 3\n"
                               "0 0 0 2 1 2\n0 1 1 2 3 4\n"
                               "0 0 0 3 1 2\n"
                               "0 1 0 4 3 4\n0 0 0 4 1 2\n";
    assert_int_equal(me_routing_read(text, "f", experts, &diag, &r), ME_OK);
    for (int32_t rank = 1; rank < 6; rank++) {
        assert_int_equal(me_routing_is_same(&r, 0, rank), rank == 4);
    }
    assert_true(me_routing_is_same(&r, 5, 6));
    me_routing_fini(&r);
}

/* Without counts: the rule, evenly among the experts. */
static void test_routing__rule(void **state)
{
    (void)state;
    const me_routing r = {.imbalance = 1.5};
    const me_routing_place at = {.rank = 3};
    uint64_t counts[4] = {0, 0, 0, 0};
    assert_true(me_routing_is_uniform(&r));
    assert_true(me_routing_has(&r, &at));
    assert_int_equal(me_routing_received(&r, &at, 10), 15);
    me_routing_counts(&r, &at, 10, 4, counts);
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[2], 4);
    assert_int_equal(counts[3], 3);
}

static void test_routing__without_memory(void **state)
{
    (void)state;
    uint64_t nth = 1;
    for (;; nth++) {
        me_diag diag = {.status = ME_OK};
        me_routing r;
        me_alloc_fail_at(nth);
        const me_status status =
            me_routing_read(two_experts, "f", experts, &diag, &r);
        me_alloc_fail_at(0);
        if (status == ME_OK) {
            me_routing_fini(&r);
            break;
        }
        assert_int_equal(status, ME_ERR_NOMEM);
    }
    assert_true(nth > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routing__reads_counts),
        cmocka_unit_test(test_routing__says_what_is_wrong),
        cmocka_unit_test(test_routing__alone),
        cmocka_unit_test(test_routing__routed),
        cmocka_unit_test(test_routing__reads_long_files),
        cmocka_unit_test(test_routing__says_what_is_wrong_in_files),
        cmocka_unit_test(test_routing__equal_columns),
        cmocka_unit_test(test_routing__rule),
        cmocka_unit_test(test_routing__without_memory),
    };
    return cmocka_run_group_tests_name("routing", tests, NULL, NULL);
}
