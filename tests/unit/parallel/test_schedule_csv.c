/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_lower.h"
#include "support/test.h"

#include <string.h>

static me_pipeline_order *read_text(const char *text, bool has_transfers)
{
    me_pipeline_order *order = NULL;
    me_diag diag = {0};
    const me_csv_options options = {.where = "x.csv",
                                    .has_transfers = has_transfers};
    if (me_schedule_csv_read(text, strlen(text), &options, &diag, &order) !=
        ME_OK) {
        fail_msg("%s:%d: %s", diag.where, diag.line, diag.text);
    }
    return order;
}

static void check_written(const char *text, const char *expected)
{
    me_pipeline_order *order = read_text(text, false);
    me_str written = {0};
    me_schedule_csv_write(order, &written);
    assert_string_equal(me_str_text(&written), expected);
    me_str_fini(&written);
    me_pipeline_order_destroy(order);
}

static void test_schedule_csv__idle_cells_and_line_ends(void **state)
{
    (void)state;
    check_written("0F0,0F1,,,0B0, 0B1\r\n,1F0,1B0,1F1,1B1,\r\n",
                  "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    check_written("0F0,0B0", "0F0,0B0\n");
    check_written("0F0,0B0\n\n\r\n,,\n", "0F0,0B0\n");
}

/** As spreadsheets write them. */
static void test_schedule_csv__marks_and_quotes(void **state)
{
    (void)state;
    check_written("\xef\xbb\xbf"
                  "0F0,0B0\n",
                  "0F0,0B0\n");
    check_written("\"0F0\", \" 0B0\" ,\"\"\r\n", "0F0,0B0\n");
    check_written("\"0F0\",\"(0F1;0B0)OVERLAP_F_B\",0B1\n",
                  "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
}

/** What FSDP does to parameters is kept, and changes nothing else. */
static void test_schedule_csv__work_on_parameters(void **state)
{
    (void)state;
    const char *text = "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n";
    check_written(text, text);
    me_pipeline_order *order = read_text(text, false);
    assert_int_equal(order->n_microbatches, 1);
    me_pipeline_order *lowered = NULL;
    assert_int_equal(me_pipeline_order_lower(order, NULL, &lowered), ME_OK);
    assert_int_equal(lowered->ranks[0].count, 5);
    me_pipeline_order_destroy(lowered);
    me_pipeline_order_destroy(order);
}

/** B is the input gradient where BW is the whole backward, or where there is
 *  a W but no I. */
static void test_schedule_csv__older_dialect(void **state)
{
    (void)state;
    check_written("0F0,0F1,0B0,0W0,0BW1\n", "0F0,0F1,0I0,0W0,0B1\n");
    check_written("0F0,0B0,0W0\n", "0F0,0I0,0W0\n");
    const char *text = "0F0,0B0\n1F0,1B0,1W0\n";
    me_pipeline_order *order = NULL;
    me_diag diag = {0};
    assert_int_equal(
        me_schedule_csv_read(text, strlen(text),
                             &(me_csv_options){.dialect = ME_CSV_TODAY}, &diag,
                             &order),
        ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "rank 1: 1W0 comes after its weight gradient was made");
}

static void test_schedule_csv__finds_the_placement(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        me_placement placement;
        int32_t chunks;
    } cases[] = {
        {"0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n", ME_PLACEMENT_LOOP, 2},
        {"0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", ME_PLACEMENT_V, 2},
        {"0F0,3F1,3B1,0B0\n2F1,1F0,1B0,2B1\n", ME_PLACEMENT_TWO_WAYS, 2},
        {"1F0,1B0\n0F0,0B0\n", ME_PLACEMENT_OTHER, 1},
        {"0F0,2F0,2B0,0B0\n1F0,1B0\n", ME_PLACEMENT_OTHER, 2},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = read_text(cases[i].text, false);
        assert_int_equal(order->placement, cases[i].placement);
        assert_int_equal(order->n_chunks, cases[i].chunks);
        me_pipeline_order_destroy(order);
    }
}

static void test_schedule_csv__blocks(void **state)
{
    (void)state;
    const char *text = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n";
    me_pipeline_order *order = read_text(text, false);
    assert_int_equal(order->ranks[0].count, 4);
    assert_true(order->ranks[0].items[1].is_overlapped);
    assert_int_equal(order->ranks[0].items[2].kind, ME_ACTION_BACKWARD);
    me_pipeline_order_destroy(order);
    check_written(text, text);
}

static void test_schedule_csv__names_what_is_wrong(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int line;
        const char *error;
    } cases[] = {
        {"", 0, "an order has a row for each rank"},
        {"0F0,0B0\n\n1F0,1B0\n", 2, "the row of a rank has no action"},
        {"0F0,0X0\n", 1,
         "cell 2, \"0X0\": a cell is STAGE TYPE MICROBATCH, as 2F0, of type "
         "F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD or "
         "REDUCE_GRAD"},
        {"0F0,0B\n", 1, "cell 2, \"0B\": the micro-batch is no number"},
        {"0F0,0B9999999999\n", 1,
         "cell 2, \"0B9999999999\": the micro-batch is no number"},
        {"0UNSHARD1\n", 1,
         "cell 1, \"0UNSHARD1\": work on parameters has no micro-batch"},
        {"0F0,0SEND_F0,0B0\n", 1,
         "cell 2, \"0SEND_F0\": sends and receives do not belong into an "
         "order that says only what is computed"},
        {"(0F0;0B0\n", 1,
         "cell 1, \"(0F0;0B0\": a block is (FORWARD;BACKWARD)OVERLAP_F_B"},
        {"(0B0;0F0)OVERLAP_F_B\n", 1,
         "cell 1, \"(0B0;0F0)OVERLAP_F_B\": a block is a forward and then a "
         "backward"},
        {"0F0,0B0\n0F1,0B1\n", 0,
         "stage 0 is in the rows of rank 0 and of rank 1"},
        {"0F0,0F1,0B0,0B1\n2F0,2F1,2B0,2B1\n", 0,
         "stage 1 of stages 0 to 2 is in no row"},
        {"0F0,0F1,0B0\n", 0, "rank 0: 0B1 is missing"},
        {"0F0,0F1,0B0,0I1\n", 0, "rank 0: 0W1 is missing"},
        {"0F0,0B0,0B1\n", 0, "rank 0: 0F1 is missing"},
        {"0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n", 0, "rank 1: 1F1 is missing"},
        {"0F0,0F1,0B0,0W1\n", 0, "rank 0: 0I1 is missing"},
        {"0F0,0B0,0F0\n", 0, "rank 0: 0F0 is there twice"},
        {"0B0,0F0\n", 0,
         "rank 0: 0B0 comes before the forward of its micro-batch"},
        {"0F0,0W0,0I0\n", 0,
         "rank 0: 0W0 comes before the input gradient of its micro-batch"},
        {"0F0,0B0,0I0,0W0\n", 0,
         "rank 0: 0I0 is a second backward of its micro-batch"},
        {"0F900000,0B900000\n", 0,
         "1 forwards are too few for stages 0 to 0 and micro-batches 0 to "
         "900000"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_pipeline_order *order = NULL;
        me_diag diag = {0};
        const me_status status = me_schedule_csv_read(
            cases[i].text, strlen(cases[i].text),
            &(me_csv_options){.where = "x.csv"}, &diag, &order);
        assert_true(status == ME_ERR_SYNTAX || status == ME_ERR_CONFIG);
        assert_string_equal(diag.text, cases[i].error);
        assert_string_equal(diag.where, "x.csv");
        assert_int_equal(diag.line, cases[i].line);
    }
}

static void test_schedule_csv__transfers(void **state)
{
    (void)state;
    const char *right = "0F0,0SEND_F0,0RECV_B0,0B0\n"
                        "1RECV_F0,1F0,1B0,1SEND_B0\n";
    me_pipeline_order *order = read_text(right, true);
    me_str written = {0};
    me_schedule_csv_write(order, &written);
    assert_string_equal(me_str_text(&written), right);
    me_str_fini(&written);
    me_pipeline_order_destroy(order);

    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n",
         "rank 1: 1F0 comes before what it needs is received or made"},
        {"0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
         "rank 0: a send or receive of stage 0, micro-batch 0, is missing"},
        {"0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
         "rank 0: 0SEND_F0 is there twice"},
        {"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1SEND_F0\n",
         "rank 1: 1SEND_F0 has no other rank to exchange with"},
        {"0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
         "the order would never end: rank 0 at 0RECV_B0 waits for 1SEND_B0 of "
         "rank 1; rank 1 at 1RECV_F0 waits for 0SEND_F0 of rank 0"},
        {"0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0B1\n"
         "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
         "rank 0: 0SEND_F0 would be received by 1RECV_F1 of rank 1: receives "
         "must have the order of the sends"},
        {"1F0,0F0,0SEND_F0,1B0,0B0\n", // both on one rank
         "rank 0: 1F0 comes before what it needs is received or made"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {0};
        assert_int_equal(
            me_schedule_csv_read(cases[i].text, strlen(cases[i].text),
                                 &(me_csv_options){.has_transfers = true},
                                 &diag, &order),
            ME_ERR_CONFIG);
        assert_string_equal(diag.text, cases[i].error);
    }
}

static void test_schedule_csv__impossible_work_on_parameters(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"0F0,0UNSHARD,0B0\n", "0F0 computes while its stage is in shards: no "
                               "UNSHARD stands before it"},
        {"0UNSHARD,0F0,0UNSHARD,0B0\n", "0UNSHARD comes while its stage is "
                                        "whole: no RESHARD stands before it"},
        {"0RESHARD,0F0,0B0\n", "0RESHARD comes while its stage is in shards: "
                               "no UNSHARD stands before it"},
        {"0UNSHARD,0RESHARD,0F0,0B0\n",
         "0RESHARD comes before its stage has computed anything"},
        {"0UNSHARD,0F0,0B0,0RESHARD,0UNSHARD\n",
         "0UNSHARD gathers what nothing computes with"},
        {"0F0,0I0,0REDUCE_GRAD,0W0\n",
         "0REDUCE_GRAD comes before the last backward of its stage"},
        {"0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n", "0REDUCE_GRAD is there twice"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {0};
        me_pipeline_order *order = NULL;
        assert_int_equal(
            me_schedule_csv_read(cases[i].text, strlen(cases[i].text),
                                 &(me_csv_options){0}, &diag, &order),
            ME_ERR_CONFIG);
        assert_memory_equal(diag.text, "rank 0: ", 8);
        assert_string_equal(diag.text + 8, cases[i].error);
    }
    check_written("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0REDUCE_GRAD\n",
                  "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0REDUCE_GRAD\n");
}

/** What has its transfers is not given them again. */
static void test_schedule_csv__is_lowered_once(void **state)
{
    (void)state;
    static const char text[] = "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n"
                               "1RECV_F0,1F0,1B0,1SEND_B0\n";
    me_pipeline_order *order = read_text(text, true);
    me_pipeline_order *lowered = NULL;
    me_pipeline_order *computes = NULL;
    me_str written = {0};
    assert_int_equal(me_pipeline_order_lower(order, NULL, &lowered), ME_OK);
    me_schedule_csv_write(lowered, &written);
    assert_string_equal(me_str_text(&written), text);
    me_str_fini(&written);
    assert_int_equal(me_pipeline_order_copy(order, true, NULL, &computes),
                     ME_OK);
    written = (me_str){0};
    me_schedule_csv_write(computes, &written);
    assert_string_equal(me_str_text(&written), "0F0,0B0\n1F0,1B0\n");
    me_str_fini(&written);
    me_pipeline_order_destroy(computes);
    me_pipeline_order_destroy(lowered);
    me_pipeline_order_destroy(order);
}

static void test_schedule_csv__without_memory(void **state)
{
    (void)state;
    const char *text = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
    const me_csv_options options = {.has_transfers = true};
    me_pipeline_order *order = NULL;
    me_alloc_fail_at(0);
    assert_int_equal(
        me_schedule_csv_read(text, strlen(text), &options, NULL, &order),
        ME_OK);
    const uint64_t requests = me_alloc_count();
    me_pipeline_order_destroy(order);
    for (uint64_t nth = 1; nth <= requests; nth++) {
        me_alloc_fail_at(nth);
        assert_int_equal(
            me_schedule_csv_read(text, strlen(text), &options, NULL, &order),
            ME_ERR_NOMEM);
    }
    me_alloc_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_csv__idle_cells_and_line_ends),
        cmocka_unit_test(test_schedule_csv__work_on_parameters),
        cmocka_unit_test(test_schedule_csv__older_dialect),
        cmocka_unit_test(test_schedule_csv__finds_the_placement),
        cmocka_unit_test(test_schedule_csv__blocks),
        cmocka_unit_test(test_schedule_csv__names_what_is_wrong),
        cmocka_unit_test(test_schedule_csv__transfers),
        cmocka_unit_test(test_schedule_csv__marks_and_quotes),
        cmocka_unit_test(test_schedule_csv__impossible_work_on_parameters),
        cmocka_unit_test(test_schedule_csv__is_lowered_once),
        cmocka_unit_test(test_schedule_csv__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
