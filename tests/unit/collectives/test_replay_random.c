/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random jobs against a replay that is too simple to be wrong: every rank by
 * itself, one call at a time, until nothing moves. Calls are first laid out so
 * that they cannot hang, then some ranks, or a whole stage alike, swap two
 * neighbours. Digests still match, so that only the order is in question.
 * The seed is printed on failure; MEMEST_TEST_SEED runs that one alone.
 */
#include "collectives/call_log_impl.h"
#include "support/job.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_CALLS = 64
};

/* A call of the plan: a collective on a group, or a message in a pipeline. */
typedef struct plan_call {
    me_group_kind kind;
    bool is_p2p;
    bool is_send;
    int peer; /* stage */
} plan_call;

typedef struct plan {
    plan_call calls[JOB_MOST][MOST_CALLS];
    int n_calls[JOB_MOST];
} plan;

static uint64_t next_random(uint64_t *seed)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    return me_digest_mix(*seed);
}

static int pick(uint64_t *seed, int n)
{
    return (int)(next_random(seed) % (uint64_t)n);
}

static void add(plan *p, int rank, plan_call call)
{
    p->calls[rank][p->n_calls[rank]++] = call;
}

static int stage_of(const job *j, int rank)
{
    return rank / (j->tp * j->dp);
}

/* One event that a job in lock step would make. */
static void add_event(plan *p, const job *j, uint64_t *seed)
{
    const int choice = pick(seed, 3);
    const int stage = pick(seed, j->pp);
    for (int rank = 0; rank < job_size(j); rank++) {
        if (choice == 2 && j->pp > 1) {
            const int from = stage;
            const int to = (stage + 1) % j->pp;
            if (stage_of(j, rank) == from || stage_of(j, rank) == to) {
                const bool is_send = stage_of(j, rank) == from;
                add(p, rank,
                    (plan_call){ME_GROUP_PIPELINE, true, is_send,
                                is_send ? to : from});
            }
        } else if (stage_of(j, rank) == stage) {
            add(p, rank,
                (plan_call){choice == 0 ? ME_GROUP_TENSOR : ME_GROUP_DATA,
                            false, false, 0});
        }
    }
}

static bool may_swap(const plan_call *a, const plan_call *b)
{
    return a->kind != b->kind ||
           (a->is_p2p && b->is_p2p &&
            (a->is_send != b->is_send || a->peer != b->peer));
}

static void swap_some(plan *p, const job *j, uint64_t *seed)
{
    const bool is_stage = pick(seed, 2) == 0;
    const int victim = pick(seed, job_size(j));
    const uint64_t place = next_random(seed);
    for (int rank = 0; rank < job_size(j); rank++) {
        const int n = p->n_calls[rank];
        const bool is_hit = is_stage ? stage_of(j, rank) == stage_of(j, victim)
                                     : rank == victim;
        if (!is_hit || n < 2) {
            continue;
        }
        plan_call *call = &p->calls[rank][place % (uint64_t)(n - 1)];
        if (may_swap(&call[0], &call[1])) {
            const plan_call first = call[0];
            call[0] = call[1];
            call[1] = first;
        }
    }
}

static bool is_same(const plan_call *a, const plan_call *b)
{
    return a->kind == b->kind && a->is_p2p == b->is_p2p &&
           a->is_send == b->is_send && a->peer == b->peer;
}

/* The collective or message before position @p at that are like it. */
static int number_of(const plan *p, int rank, int at)
{
    int number = 0;
    for (int i = 0; i < at; i++) {
        number += is_same(&p->calls[rank][i], &p->calls[rank][at]);
    }
    return number;
}

/* Do the ranks whom the call of @p rank needs all stand at its other end? */
static bool can_go(const plan *p, const job *j, const int *at, int rank)
{
    const plan_call *call = &p->calls[rank][at[rank]];
    me_group group = {0};
    (void)job_group_of(j, rank, call->kind, &group);
    for (int i = 0; i < group.count; i++) {
        const int other = me_group_member(&group, i);
        if (call->is_p2p && i != call->peer) {
            continue;
        }
        if (at[other] >= p->n_calls[other]) {
            return false;
        }
        plan_call wanted = *call;
        if (call->is_p2p) {
            wanted.is_send = !call->is_send;
            wanted.peer = stage_of(j, rank);
        }
        if (!is_same(&p->calls[other][at[other]], &wanted) ||
            number_of(p, other, at[other]) != number_of(p, rank, at[rank])) {
            return false;
        }
    }
    return true;
}

static void step_together(const plan *p, const job *j, int *at, int rank)
{
    const plan_call *call = &p->calls[rank][at[rank]];
    me_group group = {0};
    (void)job_group_of(j, rank, call->kind, &group);
    if (call->is_p2p) {
        at[me_group_member(&group, call->peer)]++;
        at[rank]++;
        return;
    }
    for (int i = 0; i < group.count; i++) {
        at[me_group_member(&group, i)]++;
    }
}

static bool is_hanging(const plan *p, const job *j)
{
    int at[JOB_MOST] = {0};
    bool has_moved = true;
    while (has_moved) {
        has_moved = false;
        for (int rank = 0; rank < job_size(j); rank++) {
            if (at[rank] < p->n_calls[rank] && can_go(p, j, at, rank)) {
                step_together(p, j, at, rank);
                has_moved = true;
            }
        }
    }
    for (int rank = 0; rank < job_size(j); rank++) {
        if (at[rank] < p->n_calls[rank]) {
            return true;
        }
    }
    return false;
}

static void record(const plan *p, job *j)
{
    for (int rank = 0; rank < job_size(j); rank++) {
        job_begin_rank(j, rank);
        for (int i = 0; i < p->n_calls[rank]; i++) {
            const plan_call *call = &p->calls[rank][i];
            ncclComm_t comm = call->kind == ME_GROUP_TENSOR ? j->tensor[rank]
                              : call->kind == ME_GROUP_DATA ? j->data[rank]
                                                            : j->pipeline[rank];
            if (!call->is_p2p) {
                (void)ncclAllReduce(NULL, NULL, 4, ncclFloat32, ncclSum, comm,
                                    NULL);
            } else if (call->is_send) {
                (void)ncclSend(NULL, 4, ncclInt8, call->peer, comm, NULL);
            } else {
                (void)ncclRecv(NULL, 4, ncclInt8, call->peer, comm, NULL);
            }
        }
    }
}

/* Runs one random job; did both replays say the same? */
static bool run_seed(uint64_t seed, bool *is_hanging_out, bool *is_folded_out)
{
    const uint64_t name = seed;
    job j = {.tp = 1 + pick(&seed, 3),
             .dp = 1 + pick(&seed, 3),
             .pp = 1 + pick(&seed, 4)};
    static plan p;
    memset(&p, 0, sizeof p);
    const int n_events = 1 + pick(&seed, 30);
    const int n_swaps = pick(&seed, 6);
    for (int i = 0; i < n_events; i++) {
        add_event(&p, &j, &seed);
    }
    for (int i = 0; i < n_swaps; i++) {
        swap_some(&p, &j, &seed);
    }
    record(&p, &j);
    me_transport *transport = NULL;
    me_diag diag = {0};
    me_check_report report = {0};
    me_status status = me_transport_local_create(&transport);
    if (status == ME_OK) {
        status = job_check(transport, &j, &diag, &report);
    }
    me_transport_destroy(transport);
    job_fini(&j);
    *is_hanging_out = is_hanging(&p, &j);
    *is_folded_out = status == ME_OK && report.n_classes < job_size(&j);
    const bool is_right = status == (*is_hanging_out ? ME_ERR_MISMATCH : ME_OK);
    const bool is_said =
        !*is_hanging_out || strncmp(diag.text, "NCCL would hang: ", 17) == 0;
    if (!is_right || !is_said) {
        (void)fprintf(stderr, "MEMEST_TEST_SEED=%llu: %s\n",
                      (unsigned long long)name, diag.text);
    }
    return is_right && is_said;
}

static void test_replay_random__agrees_with_a_simple_replay(void **state)
{
    (void)state;

    enum {
        N_SEEDS = 3000
    };

    const char *only = getenv("MEMEST_TEST_SEED");
    const uint64_t first = only == NULL ? 0 : strtoull(only, NULL, 10);
    const uint64_t end = only == NULL ? N_SEEDS : first + 1;
    int n_hanging = 0;
    int n_folded = 0;
    for (uint64_t seed = first; seed < end; seed++) {
        bool is_stuck = false;
        bool is_folded = false;
        assert_true(run_seed(seed, &is_stuck, &is_folded));
        n_hanging += is_stuck;
        n_folded += is_folded;
    }
    if (only == NULL) { /* both outcomes, and folding, have been tried */
        assert_in_range(n_hanging, N_SEEDS / 20, N_SEEDS - N_SEEDS / 20);
        assert_in_range(n_folded, N_SEEDS / 20, N_SEEDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay_random__agrees_with_a_simple_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
