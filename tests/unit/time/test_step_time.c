/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "tensor/launch.h"
#include "time/pipeline_step.h"

#include <stdio.h>
#include <string.h>

/** A unit of time so long that the host's own 8 us do not show. */
static const int64_t TICK = INT64_C(1000000000);

enum {
    MOST_ITEMS = 256,
    MOST_STAGES = 8,
    FORWARD = 0,
    BACKWARD = 1
};

/** A pipeline whose forwards take one tick and whose backwards two. */
typedef struct pipeline {
    me_stretch stretches[2];
    me_time_item items[MOST_STAGES][MOST_ITEMS];
    me_time_program programs[MOST_STAGES];
    int32_t n;
    bool is_async;
    int64_t transfer;
} pipeline;

static me_stretch takes(int64_t ns)
{
    me_stretch s = me_stretch_none();
    s.after[ME_CLOCK_COMPUTE][ME_CLOCK_HOST] = ns;
    s.after[ME_CLOCK_COMPUTE][ME_CLOCK_COMPUTE] = ns;
    s.compute_ns = ns;
    return s;
}

static void begin(pipeline *p, int32_t n, bool is_async, int64_t transfer)
{
    memset(p, 0, sizeof *p);
    p->n = n;
    p->is_async = is_async;
    p->transfer = transfer;
    p->stretches[FORWARD] = takes(TICK);
    p->stretches[BACKWARD] = takes(2 * TICK);
    for (int32_t i = 0; i < n; i++) {
        p->programs[i] = (me_time_program){
            .stretches = p->stretches, .n_stretches = 2, .items = p->items[i]};
    }
}

static void add(pipeline *p, int32_t stage, me_time_item item)
{
    p->items[stage][p->programs[stage].n_items++] = item;
}

static void run(pipeline *p, int32_t stage, int what, int32_t microbatch)
{
    add(p, stage,
        (me_time_item){.kind = ME_TIME_RUN,
                       .part =
                           what == FORWARD ? ME_TIME_FORWARD : ME_TIME_BACKWARD,
                       .microbatch = microbatch,
                       .stretch = (uint32_t)what});
}

/** What would leave the pipeline at its ends is not there. */
static void exchange(pipeline *p, int32_t stage, int transfers)
{
    const int previous = ME_TRANSFER_TO_PREVIOUS | ME_TRANSFER_FROM_PREVIOUS;
    const int next = ME_TRANSFER_TO_NEXT | ME_TRANSFER_FROM_NEXT;
    transfers &= stage == 0 ? ~previous : ~0;
    transfers &= stage == p->n - 1 ? ~next : ~0;
    if (transfers != 0) {
        add(p, stage,
            (me_time_item){.kind = ME_TIME_EXCHANGE,
                           .transfers = (uint8_t)transfers,
                           .is_async = p->is_async,
                           .chunk = -1,
                           .microbatch = -1,
                           .next = (stage + 1) % p->n,
                           .previous = (stage + p->n - 1) % p->n,
                           .ns = p->transfer});
    }
}

/** Megatron's 1F1B with its batches of sends and receives. */
static void one_forward_one_backward(pipeline *p, int32_t stage, int32_t m)
{
    const int32_t w = p->n - 1 - stage < m ? p->n - 1 - stage : m;
    for (int32_t i = 0; i < w; i++) {
        exchange(p, stage, ME_TRANSFER_FROM_PREVIOUS);
        run(p, stage, FORWARD, i);
        exchange(p, stage, ME_TRANSFER_TO_NEXT);
    }
    if (w < m) {
        exchange(p, stage, ME_TRANSFER_FROM_PREVIOUS);
    }
    for (int32_t i = w; i < m; i++) {
        run(p, stage, FORWARD, i);
        exchange(p, stage, ME_TRANSFER_TO_NEXT | ME_TRANSFER_FROM_NEXT);
        run(p, stage, BACKWARD, i - w);
        exchange(p, stage,
                 ME_TRANSFER_TO_PREVIOUS |
                     (i < m - 1 ? ME_TRANSFER_FROM_PREVIOUS : 0));
    }
    for (int32_t i = m - w; i < m; i++) {
        exchange(p, stage, ME_TRANSFER_FROM_NEXT);
        run(p, stage, BACKWARD, i);
        exchange(p, stage, ME_TRANSFER_TO_PREVIOUS);
    }
}

static me_step_time *simulate(const pipeline *p)
{
    me_step_time *step = NULL;
    assert_int_equal(me_step_time_create(p->programs, p->n, NULL, &step),
                     ME_OK);
    return step;
}

static int64_t ticks(int64_t ns)
{
    return (ns + TICK / 2) / TICK;
}

/* The bubble of 1F1B is (P - 1)(F + B) whatever M is, where nothing is lost
 * between stages: Narayanan et al. 2021, section 2.2. */
static void test_step__bubble_of_1f1b(void **state)
{
    (void)state;
    static const int32_t cases[][2] = {{2, 4}, {4, 4}, {4, 8}, {8, 16}, {4, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static pipeline p;
        const int32_t n = cases[i][0];
        const int32_t m = cases[i][1];
        begin(&p, n, true, 0);
        for (int32_t s = 0; s < n; s++) {
            one_forward_one_backward(&p, s, m);
        }
        me_step_time *step = simulate(&p);
        assert_int_equal(ticks(step->forward_backward_ns), 3 * (m + n - 1));
        assert_int_equal(ticks(step->bubble_ns), 3 * (n - 1));
        assert_int_equal(ticks(step->stages[0].busy_ns), 3 * m);
        assert_int_equal(step->stages[n - 1].n_spans, 2 * m);
        me_step_time_destroy(step);
    }
}

/* A tick for each transfer: sends that nobody waits for, and Megatron's
 * batches, which both sides wait for (35 49 109 and 36 52 112). */
static void test_step__transfers_of_a_tick(void **state)
{
    (void)state;
    static const int32_t cases[][4] = {
        {2, 8, 35, 36}, {4, 8, 49, 52}, {8, 16, 109, 112}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int k = 0; k < 2; k++) {
            static pipeline p;
            begin(&p, cases[i][0], k == 0, TICK);
            for (int32_t s = 0; s < p.n; s++) {
                one_forward_one_backward(&p, s, cases[i][1]);
            }
            me_step_time *step = simulate(&p);
            assert_int_equal(ticks(step->forward_backward_ns), cases[i][2 + k]);
            me_step_time_destroy(step);
        }
    }
}

static void test_step__parts_add_up(void **state)
{
    (void)state;
    static pipeline p;
    begin(&p, 4, false, TICK);
    for (int32_t s = 0; s < 4; s++) {
        one_forward_one_backward(&p, s, 8);
    }
    me_step_time *step = simulate(&p);
    for (int32_t i = 0; i < 4; i++) {
        const me_time_stage *s = &step->stages[i];
        assert_int_equal(s->compute_ns + s->exposed_ns + s->transfer_ns +
                             s->host_ns + s->optimizer_ns,
                         step->step_ns);
        assert_int_equal(s->busy_ns + s->idle_ns, step->forward_backward_ns);
    }
    me_step_time_destroy(step);
}

/** All ranks of a group leave a collective together, after the last came. */
static void test_step__meets(void **state)
{
    (void)state;
    static pipeline p;
    begin(&p, 3, false, 0);
    for (int32_t s = 0; s < 3; s++) {
        for (int32_t i = 0; i <= s; i++) {
            run(&p, s, BACKWARD, i);
        }
        if (s != 1) {
            add(&p, s,
                (me_time_item){.kind = ME_TIME_MEET,
                               .group = ME_GROUP_EMBEDDING,
                               .ns = TICK});
        }
        run(&p, s, FORWARD, 0);
    }
    me_step_time *step = simulate(&p);
    assert_int_equal(ticks(step->step_ns), 6 + 1 + 1);
    assert_int_equal(ticks(step->stages[0].spans[1].start_ns), 7);
    assert_int_equal(ticks(step->stages[1].spans[2].start_ns), 4);
    me_step_time_destroy(step);
}

/** Two stages that both receive first never go on, and that is said. */
static void test_step__waits_for_ever(void **state)
{
    (void)state;
    static pipeline p;
    begin(&p, 2, false, 0);
    exchange(&p, 0, ME_TRANSFER_FROM_NEXT);
    exchange(&p, 0, ME_TRANSFER_TO_NEXT);
    exchange(&p, 1, ME_TRANSFER_FROM_PREVIOUS);
    exchange(&p, 1, ME_TRANSFER_TO_PREVIOUS);
    me_step_time *step = NULL;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(me_step_time_create(p.programs, 2, &diag, &step),
                     ME_ERR_MISMATCH);
    assert_non_null(strstr(diag.text, "stage 0 at item 0"));
    assert_null(step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step__bubble_of_1f1b),
        cmocka_unit_test(test_step__transfers_of_a_tick),
        cmocka_unit_test(test_step__parts_add_up),
        cmocka_unit_test(test_step__meets),
        cmocka_unit_test(test_step__waits_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
