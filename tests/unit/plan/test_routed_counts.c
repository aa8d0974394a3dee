/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/simulate.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

/* What routers chose: two ranks of two experts each, whose routers sent 10 choices
 * of 5 tokens. What is beyond a capacity is dropped where it was chosen. */

typedef struct routed_case {
    const char *lines; /**< of both ranks */
    const char *sets[3];
    uint64_t sent[2];
    uint64_t received[2][2]; /**< of each rank, by its experts */
    const char *says;        /**< NULL: it is right */
} routed_case;

static const routed_case cases[] = {
    {"0 0 0 0 5 1 4 0\n0 0 0 1 2 2 5 1\n",
     {NULL},
     {10, 10},
     {{7, 3}, {9, 1}},
     NULL},
    {"0 0 0 0 5 1 4 0\n0 0 0 1 2 2 5 1\n",
     {"moe.capacity_factor=1", NULL}, // ceil(5 * 2 / 4)
     {7, 8},
     {{5, 3}, {6, 1}},
     NULL},
    {"0 0 0 0 3 1 3 0\n0 0 0 1 2 2 3 1\n", // counted when they were gone
     {"moe.capacity_factor=1", NULL},
     {7, 8},
     {{5, 3}, {6, 1}},
     NULL},
    {"alone\n0 0 0 0 5 1 4 0\n0 0 0 1 2 2 5 1\n",
     {"moe.capacity_factor=1", NULL},
     {7, 8},
     {{6, 2}, {6, 2}}, // of itself, from both
     NULL},
    {"0 0 0 0 6 0 4 0\n",
     {NULL},
     {0},
     {{0}},
     "line 2: expert 0 gets 6 tokens of rank 0, which has 5"},
    {"0 0 0 0 4 1 4 0\n",
     {NULL},
     {0},
     {{0}},
     "line 2: all experts get 9 tokens of rank 0 together, not 10"},
    {"0 0 0 0 5 1 4 0\n",
     {NULL},
     {0},
     {{0}},
     "no line for iteration 0, layer 0, micro-batch 0, rank 1"},
};

/** The case's counts, and those of the next iteration. */
static void write_counts(const char *path, const routed_case *c)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "routed\n%s", c->lines);
    for (int32_t rank = 0; rank < 2; rank++) {
        (void)fprintf(file, "1 0 0 %d 5 5 0 0\n", (int)rank);
    }
    assert_int_equal(fclose(file), 0);
}

static void check_counts(const me_routing *routing, const routed_case *c)
{
    for (int32_t rank = 0; rank < 2; rank++) {
        const me_routing_place at = {.rank = rank};
        uint64_t counts[2] = {0, 0};
        uint64_t sent = 0;
        me_routing_counts(routing, &at, 0, 2, counts);
        assert_true(me_routing_sent(routing, &at, &sent));
        assert_int_equal(sent, c->sent[rank]);
        assert_int_equal(counts[0], c->received[rank][0]);
        assert_int_equal(counts[1], c->received[rank][1]);
    }
}

static void test_routed_counts__are_received(void **state)
{
    (void)state;
    static const char path[] = "test_routed_counts.tokens";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_counts(path, &cases[i]);
        me_diag diag = {.status = ME_OK};
        test_job job = {.config = me_config_create()};
        assert_int_equal(
            test_job_set(
                &job,
                (const char *[]){
                    "model.num_layers=1", "model.hidden_size=12",
                    "model.num_attention_heads=3", "model.seq_length=5",
                    "model.add_bias_linear=false", "model.vocab_size=64",
                    "moe.num_experts=4", "moe.router_topk=2",
                    "moe.token_dispatcher=alltoall",
                    "moe.tokens=test_routed_counts.tokens", "parallel.expert=2",
                    "parallel.world_size=2", "train.micro_batch_size=1",
                    "train.global_batch_size=2", NULL},
                &diag),
            ME_OK);
        assert_int_equal(test_job_set(&job, cases[i].sets, &diag), ME_OK);
        const me_status status = test_job_plan(&job, &diag);
        assert_int_equal(remove(path), 0);
        if (cases[i].says == NULL) {
            assert_int_equal(status, ME_OK);
            check_counts(&job.plan->routing, &cases[i]);
        } else if (status != ME_ERR_CONFIG ||
                   strstr(diag.text, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].lines, diag.text);
        }
        test_job_fini(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routed_counts__are_received),
    };
    return cmocka_run_group_tests_name("routed_counts", tests, NULL, NULL);
}
