/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders as PyTorch 2.11 itself lowers them: tests/golden/schedules/torch.tsv
 * (NOTES.md there). */
#include "base/str.h"
#include "parallel/schedule_check.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_lower.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_LINES = 116
};

static uint64_t fnv1a(const me_str *text)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text->length; i++) {
        digest =
            (digest ^ (uint8_t)me_str_text(text)[i]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

/** A lowered order reads back, since it passes all checks, as itself. */
static void check_read_back(const me_str *text)
{
    me_pipeline_order *back = NULL;
    me_pipeline_order *again = NULL;
    me_diag diag = {0};
    const me_csv_options options = {.has_transfers = true,
                                    .dialect = ME_CSV_TODAY};
    if (me_schedule_csv_read(me_str_text(text), text->length, &options, &diag,
                             &back) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(me_pipeline_order_lower(back, NULL, &again), ME_OK);
    me_str written = {0};
    me_schedule_csv_write(again, &written);
    assert_string_equal(me_str_text(&written), me_str_text(text));
    me_str_fini(&written);
    me_pipeline_order_destroy(again);
    me_pipeline_order_destroy(back);
}

static void check_line(const char *line)
{
    char name[32] = "";
    const size_t length = strcspn(line, "\t");
    assert_true(length < sizeof name);
    memcpy(name, line, length);
    char *at = NULL;
    me_pipeline p = {.ranks = (int32_t)strtol(line + length, &at, 10)};
    p.microbatches = (int32_t)strtol(at, &at, 10);
    p.chunks = (int32_t)strtol(at, &at, 10);
    const uint64_t digest = strtoull(at, NULL, 16);
    me_pipeline_order *order = NULL;
    me_pipeline_order *lowered = NULL;
    assert_int_equal(
        me_pipeline_order_create(me_schedule_find(name), &p, NULL, &order),
        ME_OK);
    assert_int_equal(me_pipeline_order_lower_torch(order, NULL, &lowered),
                     ME_OK);
    me_str text = {0};
    me_schedule_csv_write(lowered, &text);
    if (fnv1a(&text) != digest) {
        fail_msg("%s is lowered to\n%s", line, me_str_text(&text));
    }
    check_read_back(&text);
    me_str_fini(&text);
    me_pipeline_order_destroy(lowered);
    me_pipeline_order_destroy(order);
}

static void test_schedule_torch__every_line(void **state)
{
    (void)state;
    FILE *file = fopen(ME_TEST_GOLDEN "/schedules/torch.tsv", "r");
    assert_non_null(file);
    char line[128];
    int n = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] != '#') {
            check_line(line);
            n++;
        }
    }
    fclose(file);
    assert_int_equal(n, N_LINES);
}

/** Blocks of a forward and a backward, and more than three stages a rank. */
static void test_schedule_torch__makes_room(void **state)
{
    (void)state;

    static const char text[] =
        "0F0,1F0,2F0,3F0,3I0,3W0,(0F1;2B0)OVERLAP_F_B,1F1,1B0,2F1,0B0,3F1,"
        "3B1,2B1,1B1,0B1\n";
    static const char expected[] =
        "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,1RESHARD,"
        "0UNSHARD,2F0,3F0,3I0,3W0,3RESHARD,1UNSHARD,(0F1;2B0)OVERLAP_F_B,"
        "1F1,1B0,1RESHARD,3UNSHARD,2F1,0B0,0RESHARD,1UNSHARD,3F1,3B1,"
        "3REDUCE_GRAD,3RESHARD,0UNSHARD,2B1,2REDUCE_GRAD,2RESHARD,1B1,"
        "1REDUCE_GRAD,1RESHARD,0B1,0REDUCE_GRAD,0RESHARD\n";
    me_pipeline_order *order = NULL;
    me_pipeline_order *lowered = NULL;
    assert_int_equal(me_schedule_csv_read(text, strlen(text),
                                          &(me_csv_options){0}, NULL, &order),
                     ME_OK);
    assert_int_equal(me_pipeline_order_lower_torch(order, NULL, &lowered),
                     ME_OK);
    me_str written = {0};
    me_schedule_csv_write(lowered, &written);
    assert_string_equal(me_str_text(&written), expected);
    me_str_fini(&written);
    me_pipeline_order_destroy(lowered);
    me_pipeline_order_destroy(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_torch__every_line),
        cmocka_unit_test(test_schedule_torch__makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
