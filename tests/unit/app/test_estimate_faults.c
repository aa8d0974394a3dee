/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole way from a job to its report, with one request for host memory
 * failing; and random ones of random jobs. */
#include "app/compare_command.h"
#include "app/estimate_command.h"
#include "report/job_report.h"
#include "support/command_faults.h"
#include "support/random_assignments.h"

#define REPORT "estimate_faults.report"
#define EVENTS "estimate_faults.events"

static const char on_machine[] =
    "machine.file=" SOURCE_DIR "/configs/machines/pcie-gen4.cfg";

/* Pipelined, interleaved, sharded, recomputed: something of everything. */
static const char *const sets[] = {
    "impl.transformer=local",
    "model.num_layers=4",
    "model.hidden_size=64",
    "model.num_attention_heads=4",
    "model.seq_length=32",
    "model.vocab_size=500",
    "model.position_embedding_type=rope",
    "train.apply_rope_fusion=false",
    "parallel.world_size=8",
    "parallel.virtual_pipeline=2",
    "parallel.sequence=true",
    "optimizer.overlap_grad_reduce=true",
    "recompute.granularity=full",
    "recompute.num_layers=1",
    "device.memory_limit=1GiB",
    on_machine,
};

enum {
    N_SETS = sizeof sets / sizeof sets[0],
    /* Each step is a STEP-th of the way longer. */
#ifdef __SANITIZE_ADDRESS__
    STEP = 8, /* a run takes ten times as long */
#else
    STEP = 24,
#endif
    MOST = 10000000,
    N_JOBS = 60,
    TRIES = 8 /* a job */
};

typedef struct scenario {
    const char *format;
    bool writes_events;
    const char *const *sets;
    int n_sets;
    bool compares;
    bool has_durations;
} scenario;

static me_cli cli_of(const scenario *s)
{
    static const char *const launch[] = {"torchrun", "pretrain_gpt.py",
                                         "--an-unknown-flag", "--lr=1"};
    me_cli cli = {.command = "estimate",
                  .unknown = "warn",
                  .threads = 1, /* that whose requests fail */
                  .model = SOURCE_DIR "/configs/gpt.cfg",
                  .format = s->format,
                  .output = REPORT,
                  .events = s->writes_events ? EVENTS : NULL,
                  .rank = -1,
                  .iteration = -1,
                  .n_sets = s->n_sets,
                  .launch_argc = sizeof launch / sizeof launch[0],
                  .launch_argv = launch};
    for (int i = 0; i < s->n_sets; i++) {
        cli.sets[i] = s->sets[i];
    }
    if (s->compares) {
        cli.command = "compare";
        cli.course = true;
        cli.durations = s->has_durations ? "F=1,I=2,W=1,comm=1" : NULL;
        cli.schedules[cli.n_schedules++] = "interleaved:2";
        cli.variants[cli.n_variants++] = "small:train.micro_batch_size=1";
    }
    return cli;
}

static command_run *run_of(const scenario *s)
{
    return s->compares ? me_compare : me_estimate;
}

static void sweep_scenario(const scenario *s)
{
    const me_cli cli = cli_of(s);
    assert_in_range(command_sweep(run_of(s), &cli, STEP, MOST), 1001, MOST - 1);
    (void)unlink(EVENTS);
}

static void sweep(const char *format, bool writes_events)
{
    sweep_scenario(&(scenario){.format = format,
                               .writes_events = writes_events,
                               .sets = sets,
                               .n_sets = N_SETS});
}

static void sweep_comparison(const char *format)
{
    sweep_scenario(&(scenario){
        .format = format, .sets = sets, .n_sets = N_SETS, .compares = true});
}

static void test_estimate_faults__comparison(void **state)
{
    (void)state;
    sweep_comparison("json");
    sweep_scenario(&(scenario){.format = "text",
                               .sets = sets,
                               .n_sets = N_SETS,
                               .compares = true,
                               .has_durations = true});
}

static void test_estimate_faults__html(void **state)
{
    (void)state;
    me_diag diag = {0};
    me_format format = ME_FORMAT_TEXT;
    if (me_format_read("html", NULL, &diag, &format) != ME_OK) {
        skip();
    }
    sweep("html", false);
    sweep_comparison("html");
}

static void test_estimate_faults__text(void **state)
{
    (void)state;
    sweep("text", true);
}

static void test_estimate_faults__json(void **state)
{
    (void)state;
    sweep("json", false);
}

static void test_estimate_faults__csv(void **state)
{
    (void)state;
    sweep("csv", false);
}

static const char *some_requests_fail(me_random *random)
{
    random_job job;
    const char *job_sets[RANDOM_JOB_SETS];
    me_random_job_draw(random, &job);
    for (int i = 0; i < job.n_sets; i++) {
        job_sets[i] = job.sets[i];
    }
    const scenario s = {
        .format = "json", .sets = job_sets, .n_sets = job.n_sets};
    int code = ME_EXIT_OK;
    me_diag diag = {0};
    const me_cli cli = cli_of(&s);
    const uint64_t requests =
        command_with_fault(run_of(&s), &cli, 0, &code, &diag);
    (void)unlink(REPORT);
    if (code != ME_EXIT_OK) {
        return code == ME_EXIT_USAGE ? NULL : "a job fails by itself";
    }
    for (int i = 0; i < TRIES; i++) {
        const int32_t most = requests > MOST ? MOST : (int32_t)requests;
        if (!command_fails_at(run_of(&s), &cli,
                              (uint64_t)me_random_in(random, 1, most))) {
            return "two runs make different numbers of requests";
        }
    }
    return NULL;
}

static void test_estimate_faults__random_jobs(void **state)
{
    (void)state;
    me_property_run(some_requests_fail, N_JOBS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate_faults__text),
        cmocka_unit_test(test_estimate_faults__json),
        cmocka_unit_test(test_estimate_faults__csv),
        cmocka_unit_test(test_estimate_faults__html),
        cmocka_unit_test(test_estimate_faults__comparison),
        cmocka_unit_test(test_estimate_faults__random_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
