/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistakes planted in the program of a real job, between the engine and the
 * collectives: whatever the number of processes, all of them name the mistake
 * in the same words. With the argument `kill` one process dies half-way. */
#include "collectives/check.h"
#include "collectives/rank_comms.h"
#include "config/file.h"
#include "config/options.h"
#include "run/groups.h"
#include "run/program.h"
#include "support/mpi.h"
#include "support/test.h"
#include "tensor/engine.h"

#include <signal.h>
#include <string.h>

enum {
    WORLD = 8, /* tensor 2 x data 2 x pipeline 2, in Megatron's order */
    HELD_MAX = 64
};

typedef enum mistake {
    NO_MISTAKE,
    SWAPPED_COLLECTIVES, /* rank 5: two of the tensor group change places */
    WRONG_SHAPE,         /* rank 6: one of the tensor group is longer */
    NO_RECEIVE,          /* rank 7: the first receive is left out */
    NO_SEND,             /* rank 1: the last send is left out */
    DEADLOCK,            /* rank 0: sends come after the first receive */
    FAILURE,             /* rank 7: a call fails */
    KILL                 /* rank 6: the process dies */
} mistake;

static const char *const settings[] = {
    "model.num_layers=4",          "model.hidden_size=64",
    "model.num_attention_heads=4", "model.seq_length=32",
    "model.vocab_size=500",
};

typedef struct call {
    me_group_kind group;
    me_collective kind;
    me_dtype dtype;
    uint64_t count;
    int32_t peer;
} call;

/* What stands between the engine of one rank and its communicators. */
typedef struct saboteur {
    me_rank_comms *comms;
    mistake what;
    int rank;
    int n_calls; /* of the kind that matters */
    call held[HELD_MAX];
    int n_held;
    bool is_done;
    bool has_received;
} saboteur;

static me_status pass_on(saboteur *s, const call *c, me_diag *diag)
{
    return me_rank_comms_call(s->comms, c->group, c->kind, c->dtype, c->count,
                              c->peer, diag);
}

static me_status pass_held(saboteur *s, me_diag *diag)
{
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < s->n_held; i++) {
        status = pass_on(s, &s->held[i], diag);
    }
    s->n_held = 0;
    return status;
}

/* The first collective that the next one differs from comes after it. */
static me_status swap(saboteur *s, const call *c, me_diag *diag)
{
    if (s->is_done || c->group != ME_GROUP_TENSOR) {
        return pass_on(s, c, diag);
    }
    if (s->n_held == 0) {
        s->held[s->n_held++] = *c;
        return ME_OK;
    }
    const call before = s->held[0];
    s->n_held = 0;
    s->is_done = before.count != c->count || before.kind != c->kind;
    if (!s->is_done) {
        s->held[s->n_held++] = *c;
        return pass_on(s, &before, diag);
    }
    const me_status status = pass_on(s, c, diag);
    return status == ME_OK ? pass_on(s, &before, diag) : status;
}

static me_status send_late(saboteur *s, const call *c, me_diag *diag)
{
    if (!s->is_done && c->kind == ME_COLLECTIVE_SEND && s->n_held < HELD_MAX) {
        s->held[s->n_held++] = *c;
        return ME_OK;
    }
    s->has_received = s->has_received || c->kind == ME_COLLECTIVE_RECV;
    return pass_on(s, c, diag);
}

// NOLINTNEXTLINE(readability-function-size): it is the engine's callback
static me_status sabotaged_call(void *self, me_group_kind group,
                                me_collective kind, me_dtype dtype,
                                uint64_t count, int32_t peer, me_diag *diag)
{
    saboteur *s = self;
    call c = {group, kind, dtype, count, peer};
    if (s->what == SWAPPED_COLLECTIVES && s->rank == 5) {
        return swap(s, &c, diag);
    }
    if (s->what == WRONG_SHAPE && s->rank == 6 && group == ME_GROUP_TENSOR &&
        ++s->n_calls == 3) {
        c.count += 8;
    }
    if (s->what == NO_RECEIVE && s->rank == 7 && kind == ME_COLLECTIVE_RECV &&
        ++s->n_calls == 1) {
        return ME_OK;
    }
    if (s->what == NO_SEND && s->rank == 1 && kind == ME_COLLECTIVE_SEND &&
        ++s->n_calls == 2) {
        return ME_OK;
    }
    if (s->what == DEADLOCK && s->rank == 0) {
        return send_late(s, &c, diag);
    }
    if (s->what == FAILURE && s->rank == 7 && ++s->n_calls == 100) {
        return me_fail(diag, ME_ERR_OVERFLOW, "a size of rank %d", s->rank);
    }
    if (s->what == KILL && s->rank == 6 && ++s->n_calls == 50) {
        (void)raise(SIGKILL);
    }
    return pass_on(s, &c, diag);
}

static me_status sabotaged_group(void *self, bool begin, me_diag *diag)
{
    saboteur *s = self;
    me_status status = me_rank_comms_group_call(s->comms, begin, diag);
    if (status == ME_OK && !begin && s->has_received && s->n_held > 0) {
        s->is_done = true;
        status = pass_held(s, diag);
    }
    return status;
}

/* One process's part of the job. */
typedef struct run {
    me_config *config;
    me_plan *plan;
    me_groups *groups;
    me_call_log *logs[WORLD];
    int ranks[WORLD];
    int log_of[WORLD];
    int n_ranks;
} run;

static me_status read_job(run *r, me_diag *diag)
{
    r->config = me_config_create();
    me_status status = r->config == NULL ? ME_ERR_NOMEM : ME_OK;
    if (status == ME_OK) {
        status =
            me_config_read_file(r->config, SOURCE_DIR "/configs/gpt.cfg", diag);
    }
    for (size_t i = 0;
         status == ME_OK && i < sizeof settings / sizeof settings[0]; i++) {
        status = me_config_set_assignment(r->config, settings[i], diag);
    }
    if (status == ME_OK) {
        status = me_config_finish(r->config, 1, diag);
    }
    if (status == ME_OK) {
        status = me_plan_create(r->config, true, diag, &r->plan);
    }
    return status == ME_OK ? me_groups_create(r->plan, &r->groups) : status;
}

static me_status run_program(run *r, mistake what, int rank, me_call_log *log,
                             me_diag *diag)
{
    static const me_card card = {.multiprocessors = 132,
                                 .threads_per_multiprocessor = 2048};
    me_engine *engine = NULL;
    me_program program;
    saboteur s = {.what = what, .rank = rank};
    me_status status =
        me_rank_comms_create(log, rank, me_groups_find, r->groups, &s.comms);
    if (status == ME_OK) {
        status = me_engine_create(&card, &engine);
    }
    if (status == ME_OK) {
        status = me_program_init(r->plan, rank, &program);
    }
    if (status == ME_OK) {
        program.comm.call = sabotaged_call;
        program.comm.group_call = sabotaged_group;
        program.comm.self = &s;
        me_program_run(engine, &program);
        status = me_engine_status(engine, diag);
        me_program_fini(&program);
    }
    me_engine_destroy(engine);
    me_rank_comms_destroy(s.comms);
    return status;
}

static me_status run_ranks(run *r, me_transport *transport, mistake what,
                           me_diag *diag)
{
    const int size = me_transport_size(transport);
    me_status status = read_job(r, diag);
    for (int rank = me_transport_rank(transport);
         status == ME_OK && rank < WORLD; rank += size) {
        const int n = r->n_ranks;
        status = me_call_log_create(&r->logs[n]);
        if (status == ME_OK) {
            status = run_program(r, what, rank, r->logs[n], diag);
        }
        r->ranks[n] = rank;
        r->log_of[n] = n;
        r->n_ranks++;
    }
    return status;
}

static void run_fini(run *r)
{
    for (int i = 0; i < WORLD; i++) {
        me_call_log_destroy(r->logs[i]);
    }
    me_groups_destroy(r->groups);
    me_plan_destroy(r->plan);
    me_config_destroy(r->config);
}

static me_status check_job(me_transport *transport, mistake what, me_diag *diag)
{
    run r = {.n_ranks = 0};
    me_check_report report = {0};
    me_status status = me_transport_agree(
        transport, run_ranks(&r, transport, what, diag), diag);
    if (status == ME_OK) {
        const me_call_log *logs[WORLD];
        for (int i = 0; i < r.n_ranks; i++) {
            logs[i] = r.logs[i];
        }
        status =
            me_collectives_check(transport,
                                 &(me_check_part){.world_size = WORLD,
                                                  .logs = logs,
                                                  .n_logs = r.n_ranks,
                                                  .ranks = r.ranks,
                                                  .log_of = r.log_of,
                                                  .n_ranks = r.n_ranks,
                                                  .group_of = me_groups_find,
                                                  .self = r.groups},
                                 diag, &report);
    }
    run_fini(&r);
    return status;
}

static me_transport *transport;

static void expect(mistake what, me_status expected, const char *text)
{
    me_diag verdict = {0};
    me_diag diag = {0};
    const me_status status = check_job(transport, what, &diag);
    MPI_EXPECT(&verdict, status == expected);
    MPI_EXPECT(&verdict, strstr(diag.text, text) != NULL);
    if (verdict.status != ME_OK && me_transport_rank(transport) == 0) {
        (void)fprintf(stderr, "%d: %s\n", (int)what, diag.text);
    }
    assert_true(mpi_agree(transport, &verdict));
}

static void test_mpi_program__is_right(void **state)
{
    (void)state;
    expect(NO_MISTAKE, ME_OK, "");
}

static void test_mpi_program__swapped_collectives(void **state)
{
    (void)state;
    expect(SWAPPED_COLLECTIVES, ME_ERR_MISMATCH,
           "ranks 4 and 5 of tensor group {4, 5} disagree on collective");
}

static void test_mpi_program__wrong_shape(void **state)
{
    (void)state;
    expect(WRONG_SHAPE, ME_ERR_MISMATCH,
           "ranks 6 and 7 of tensor group {6, 7} disagree on collective 3");
}

static void test_mpi_program__no_receive(void **state)
{
    (void)state;
    expect(NO_RECEIVE, ME_ERR_MISMATCH, "from rank 3 to rank 7");
}

static void test_mpi_program__no_send(void **state)
{
    (void)state;
    expect(NO_SEND, ME_ERR_MISMATCH, "from rank 1 to rank 5");
}

static void test_mpi_program__deadlock(void **state)
{
    (void)state;
    expect(DEADLOCK, ME_ERR_MISMATCH, "NCCL would hang: ");
}

static void test_mpi_program__one_rank_fails(void **state)
{
    (void)state;
    expect(FAILURE, ME_ERR_OVERFLOW, "a size of rank 7");
}

int main(int argc, char **argv)
{
    me_diag diag = {0};
    if (me_transport_mpi_create(&argc, &argv, &diag, &transport) != ME_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "kill") == 0) {
        (void)check_job(transport, KILL, &diag);
        me_transport_destroy(transport);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi_program__is_right),
        cmocka_unit_test(test_mpi_program__swapped_collectives),
        cmocka_unit_test(test_mpi_program__wrong_shape),
        cmocka_unit_test(test_mpi_program__no_receive),
        cmocka_unit_test(test_mpi_program__no_send),
        cmocka_unit_test(test_mpi_program__deadlock),
        cmocka_unit_test(test_mpi_program__one_rank_fails),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}
