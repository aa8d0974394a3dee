/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "tensor/launch.h"
#include "time/transfers.h"

enum {
    N_STAGES = 3,
    TRANSFER_NS = 10
};

/** Stages in a line. */
typedef struct line {
    me_links *links;
    me_transfers stages[N_STAGES];
} line;

static line make_line(void)
{
    line l = {.links = me_links_create(N_STAGES)};
    assert_non_null(l.links);
    for (int32_t i = 0; i < N_STAGES; i++) {
        l.stages[i].stage = i;
    }
    return l;
}

static void line_fini(line *l)
{
    for (int32_t i = 0; i < N_STAGES; i++) {
        me_transfers_fini(&l->stages[i]);
    }
    me_links_destroy(l->links);
}

static void ask(line *l, int32_t stage, uint8_t transfers, int32_t microbatch,
                int64_t asked)
{
    const me_time_item item = {
        .kind = ME_TIME_EXCHANGE,
        .transfers = transfers,
        .microbatch = microbatch,
        .next = stage + 1,
        .previous = stage == 0 ? 0 : stage - 1,
        .ns = TRANSFER_NS,
    };
    assert_int_equal(me_transfers_add(&l->stages[stage], &item, asked), ME_OK);
}

static void run_all(line *l)
{
    bool has_moved = true;
    while (has_moved) {
        has_moved = false;
        for (int32_t i = 0; i < N_STAGES; i++) {
            assert_int_equal(
                me_transfers_run(&l->stages[i], l->links, &has_moved), ME_OK);
        }
    }
}

/** A send is done when the receiver's turn has come, and what the sender has
 *  asked for later waits behind it. */
static void test_transfers__one_after_the_other(void **state)
{
    (void)state;
    line l = make_line();
    ask(&l, 1, ME_TRANSFER_TO_NEXT, 0, 100);
    ask(&l, 1, ME_TRANSFER_FROM_PREVIOUS, 1, 101);
    ask(&l, 0, ME_TRANSFER_TO_NEXT, 1, 50);
    run_all(&l);
    assert_int_equal(l.stages[1].n_done, 0); /* nobody receives */
    assert_int_equal(l.stages[0].n_done, 0); /* behind a send to another */
    ask(&l, 2, ME_TRANSFER_FROM_PREVIOUS, 0, 700);
    run_all(&l);
    assert_int_equal(l.stages[1].items[0].done, 700 + TRANSFER_NS);
    assert_int_equal(l.stages[1].items[1].done, 700 + 2 * TRANSFER_NS);
    assert_int_equal(me_transfers_end(&l.stages[0]), 700 + 2 * TRANSFER_NS);
    line_fini(&l);
}

/** A batch waits for its slowest part, and is one turn. */
static void test_transfers__batch(void **state)
{
    (void)state;
    line l = make_line();
    ask(&l, 1, ME_TRANSFER_TO_NEXT | ME_TRANSFER_FROM_PREVIOUS, 0, 5);
    ask(&l, 0, ME_TRANSFER_TO_NEXT, 0, 20);
    ask(&l, 2, ME_TRANSFER_FROM_PREVIOUS, 0, 90);
    run_all(&l);
    assert_int_equal(me_transfers_end(&l.stages[0]), 20 + TRANSFER_NS);
    assert_int_equal(me_transfers_end(&l.stages[1]), 90 + TRANSFER_NS);
    line_fini(&l);
}

static void test_transfers__find(void **state)
{
    (void)state;
    line l = make_line();
    ask(&l, 1, ME_TRANSFER_FROM_PREVIOUS, 3, 0);
    ask(&l, 1, ME_TRANSFER_FROM_NEXT, 3, 0);
    me_time_item action = {.part = ME_TIME_BACKWARD, .microbatch = 3};
    assert_ptr_equal(me_transfers_find(&l.stages[1], &action),
                     &l.stages[1].items[1]);
    l.stages[1].items[1].is_taken = true;
    assert_null(me_transfers_find(&l.stages[1], &action));
    action.part = ME_TIME_FORWARD;
    assert_ptr_equal(me_transfers_find(&l.stages[1], &action),
                     &l.stages[1].items[0]);
    action.chunk = 1;
    assert_null(me_transfers_find(&l.stages[1], &action));
    assert_int_equal(me_transfers_end(&l.stages[1]), ME_TIME_NEVER);
    line_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers__one_after_the_other),
        cmocka_unit_test(test_transfers__batch),
        cmocka_unit_test(test_transfers__find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
