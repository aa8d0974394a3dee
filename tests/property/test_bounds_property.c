/* SPDX-License-Identifier: BSD-3-Clause */
/* No bound of a search is above what the simulation finds: of random jobs, and
 * of jobs whose layers are wide enough for the bounds to be near. And a simulation
 * that counts totals alone, as a search's do, finds what a whole one does.
 * ME_TEST_SEED=seed runs the jobs that begin at that seed. */
#include "config/file.h"
#include "config/options.h"
#include "report/verdict.h"
#include "run/job_run.h"
#include "search/bound.h"
#include "search/evaluate.h"
#include "support/random_assignments.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RANDOM_JOBS = 80,
    WIDE_JOBS = 80,
    WINDOW_JOBS = 60
};

static me_transport *transport;

/** The base of a random job, or of a wide one. */
typedef me_status base_of(me_config *config, me_diag *diag);

static me_status base_gpt(me_config *config, me_diag *diag)
{
    return me_config_read_file(config, ME_MODEL, diag);
}

static me_status base_none(me_config *config, me_diag *diag)
{
    return me_config_set(config, "device.name", "h100-80gb", diag);
}

/** What a job's bounds are held against. */
typedef struct weighed {
    me_search_bound bound;
    uint64_t outside_bytes; /**< beside the bound of memory; 0: not known */
    me_search_result result;
    me_search_result totals; /**< of the simulation that counts them alone */
    bool is_probed;
} weighed;

/** @return all zero: it has none of the kind */
static me_probe probe_of(const me_config *job, const me_job_card *card,
                         me_probe_kind kind)
{
    static const me_schedule_choice own = {.schedule = NULL};
    char assignments[] = "train.iterations=2";
    const me_candidate candidate = {.assignments = assignments, .choice = &own};
    me_probe probe = {.forward_ns = 0};
    me_str key = {0};
    bool has_probe = false;
    assert_int_equal(
        me_candidate_probe_key(&candidate, job, kind, NULL, &has_probe, &key),
        ME_OK);
    if (has_probe) {
        assert_int_equal(
            me_probe_run(&candidate, job, kind, card, NULL, &probe), ME_OK);
    }
    me_str_fini(&key);
    return probe;
}

/** The larger ones of the bounds by arithmetic and of those with probes. */
static void bound_job(const me_config *job, const me_config *finished,
                      const me_job_card *card, weighed *w)
{
    const me_probe layer = probe_of(job, card, ME_PROBE_LAYER);
    const me_probe place = probe_of(job, card, ME_PROBE_PLACE);
    const me_search_bound far = me_search_bound_of(finished, card, NULL);
    w->bound = me_search_bound_of(finished, card, &layer);
    assert_true(w->bound.step_ns >= far.step_ns);
    w->outside_bytes = place.outside_bytes;
    w->is_probed = layer.forward_ns > 0;
}

/** Simulate what stands for the stages. */
static me_units_done screen(const me_config *config,
                            const me_run_options *options)
{
    me_diag diag = {.status = ME_OK};
    me_units_done done = {.count = 0};
    me_run_sight sight;
    me_run *run = NULL;
    me_config *own = me_config_clone(config);
    assert_non_null(own);
    me_status status = me_run_create(transport, own, options, &diag, &run);
    if (status == ME_OK) {
        const me_screen_watcher watcher = {.done_out = &done};
        status = me_run_screen(run, &watcher, &diag, &sight);
    }
    if (status == ME_OK) {
        assert_true(done.count >= (uint32_t)own->parallel.pipeline);
    }
    me_run_destroy(run);
    return done;
}

/** The whole life's most bytes, as verdicts count.
 *
 *  @param config        taken over
 *  @param keeps_totals  as a search's candidates, after a screen of it */
static me_status simulate(me_config *config, bool keeps_totals, me_diag *diag,
                          me_search_result *result)
{
    me_run_options options = {.threads = 1, .keeps_totals = keeps_totals};
    me_units_done done = {.count = 0};
    if (keeps_totals) {
        done = screen(config, &options);
        options.done = &done;
    }
    me_run *run = NULL;
    me_status status = me_run_create(transport, config, &options, diag, &run);
    assert_true(status != ME_OK || done.count == 0);
    me_units_done_fini(&done);
    if (status == ME_OK) {
        status = me_run_simulate(run, diag);
    }
    if (status == ME_OK) {
        status = me_search_result_of(me_run_report(run), diag, result);
    }
    if (status == ME_OK) {
        (void)me_report_worst_by(me_run_report(run), ME_BASIS_REQUESTED,
                                 &result->requested_bytes);
    }
    me_run_destroy(run);
    return status;
}

/** @return false: it is no job */
static bool weigh(base_of *base, const random_job *job, weighed *w)
{
    me_diag diag = {.status = ME_OK};
    me_job_card card;
    me_config *read = me_config_create();
    assert_non_null(read);
    assert_int_equal(base(read, &diag), ME_OK);
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < job->n_sets; i++) {
        status = me_config_set_assignment(read, job->sets[i], &diag);
    }
    me_config *config = me_config_clone(read);
    assert_non_null(config);
    if (status == ME_OK) {
        status = me_config_finish(config, 1, &diag);
    }
    if (status == ME_OK) {
        status = me_job_card_make(config, &diag, &card);
    }
    if (status == ME_OK) {
        bound_job(read, config, &card, w);
        me_config *again = me_config_clone(config);
        assert_non_null(again);
        status = simulate(config, false, &diag, &w->result);
        assert_int_equal(simulate(again, true, &diag, &w->totals), status);
    } else {
        me_config_destroy(config);
    }
    me_config_destroy(read);
    return status == ME_OK;
}

static void fail_with(const char *what, uint64_t seed, const random_job *job,
                      uint64_t bound, uint64_t found)
{
    for (int i = 0; i < job->n_sets; i++) {
        print_error("  --set %s\n", job->sets[i]);
    }
    fail_msg("seed %" PRIu64 ": the bound of %s is %" PRIu64 ", over %" PRIu64,
             seed, what, bound, found);
}

/** Texts and padding aside, all of it. */
static bool is_same(const me_search_result *a, const me_search_result *b)
{
    return a->risk == b->risk && a->basis == b->basis && a->fits == b->fits &&
           a->is_open == b->is_open && a->worst_rank == b->worst_rank &&
           a->worst_bytes == b->worst_bytes &&
           a->requested_bytes == b->requested_bytes &&
           a->allocated_bytes == b->allocated_bytes &&
           a->reserved_bytes == b->reserved_bytes &&
           a->device_bytes == b->device_bytes && a->step_ns == b->step_ns &&
           a->forward_backward_ns == b->forward_backward_ns &&
           a->bubble_ns == b->bubble_ns && a->exposed_ns == b->exposed_ns;
}

/** Sums over jobs. */
typedef struct nearness {
    double bytes;
    double step;
    int n;
    int n_probed;
    int n_placed;
} nearness;

/** What is requested at once is less than all else that is counted. */
static void check(base_of *base, uint64_t seed, const random_job *job,
                  nearness *sums)
{
    weighed w;
    if (!weigh(base, job, &w)) {
        return;
    }
    const me_search_result *r = &w.result;
    if (!is_same(r, &w.totals)) {
        fail_with("totals, which should equal it,", seed, job,
                  w.totals.worst_bytes, r->worst_bytes);
    }
    if (w.bound.bytes > r->requested_bytes) {
        fail_with("memory", seed, job, w.bound.bytes, r->requested_bytes);
    }
    if (w.outside_bytes > 0 && r->basis == ME_BASIS_DEVICE &&
        w.bound.bytes + w.outside_bytes > r->worst_bytes) {
        fail_with("the card", seed, job, w.bound.bytes + w.outside_bytes,
                  r->worst_bytes);
    }
    if (r->step_ns > 0 && w.bound.step_ns > r->step_ns) {
        fail_with("time", seed, job, (uint64_t)w.bound.step_ns,
                  (uint64_t)r->step_ns);
    }
    sums->bytes += (double)w.bound.bytes / (double)r->requested_bytes;
    sums->step +=
        r->step_ns == 0 ? 0 : (double)w.bound.step_ns / (double)r->step_ns;
    sums->n++;
    sums->n_probed += w.is_probed ? 1 : 0;
    sums->n_placed += w.outside_bytes > 0 ? 1 : 0;
}

static uint64_t first_seed(void)
{
    const char *seed = getenv("ME_TEST_SEED");
    return seed == NULL ? 1 : strtoull(seed, NULL, 10);
}

static void test_bounds_property__random_jobs(void **state)
{
    (void)state;
    nearness sums = {0};
    for (uint64_t seed = first_seed(); sums.n < RANDOM_JOBS; seed++) {
        me_random random = {seed};
        random_job job;
        me_random_job_draw(&random, &job);
        check(base_gpt, seed, &job, &sums);
    }
    print_message("%d of %d probed\n", sums.n_probed, sums.n);
    assert_true(sums.n_probed > 0);
}

#define SET(...)                                                               \
    (void)snprintf(job->sets[job->n_sets++], sizeof job->sets[0], __VA_ARGS__)

static const char *pick(me_random *random, const char *const *words, int32_t n)
{
    return words[me_random_in(random, 0, n - 1)];
}

static int32_t power(me_random *random, int32_t most)
{
    return 1 << me_random_in(random, 0, most);
}

static void draw_wide_model(me_random *random, random_job *job, int32_t layers)
{
    static const char *const activations[] = {"swiglu", "gelu", "squared_relu"};
    static const char *const dtypes[] = {"bfloat16", "float16", "float32"};
    SET("model.num_layers=%d", (int)layers);
    SET("model.hidden_size=%d", 1024 * power(random, 2));
    SET("model.ffn_hidden_size=%d", 2048 * power(random, 2));
    SET("model.num_attention_heads=16");
    SET("model.num_query_groups=8");
    SET("model.seq_length=%d", 512 * power(random, 3));
    SET("model.vocab_size=%d", 1000 * me_random_in(random, 1, 100));
    SET("model.normalization=RMSNorm");
    SET("model.activation=%s", pick(random, activations, 3));
    SET("train.bias_gelu_fusion=false");
    SET("model.add_bias_linear=false");
    SET("model.position_embedding_type=rope");
    SET("model.untie_embeddings_and_output_weights=%s",
        power(random, 1) == 1 ? "true" : "false");
    SET("model.attention_dropout=0");
    SET("model.hidden_dropout=0");
    SET("train.params_dtype=%s", pick(random, dtypes, 3));
}

static void draw_wide_recompute(me_random *random, random_job *job)
{
    static const char *const kinds[] = {"none", "selective", "full"};
    static const char *const flags[] = {"true", "false"};
    SET("recompute.granularity=%s", pick(random, kinds, 3));
    SET("recompute.method=%s", power(random, 1) == 1 ? "uniform" : "block");
    SET("recompute.num_layers=%d", (int)me_random_in(random, 1, 2));
    SET("recompute.mlp=%s", pick(random, flags, 2));
    SET("recompute.layernorm=%s", pick(random, flags, 2));
    SET("recompute.core_attn=%s", pick(random, flags, 2));
}

static void draw_wide_experts(me_random *random, random_job *job)
{
    static const char *const frequencies[] = {"1", "2", "[1]*1+[0]*1",
                                              "[0]*1+[1]*1"};
    SET("moe.num_experts=8");
    SET("moe.router_topk=2");
    SET("moe.ffn_hidden_size=%d", 512 * power(random, 2));
    SET("moe.token_dispatcher=alltoall");
    SET("moe.grouped_gemm=true");
    SET("parallel.expert=%d", (int)power(random, 2));
    SET("moe.shared_expert_intermediate_size=%d",
        512 * (int)me_random_in(random, 0, 1));
    if (power(random, 1) == 1) {
        SET("moe.layer_freq=%s", pick(random, frequencies, 4));
    }
}

/** Transformer Engine's layers, as launches have them. */
static void draw_wide(me_random *random, random_job *job)
{
    static const char *const flags[] = {"true", "false"};
    *job = (random_job){.n_sets = 0};
    const int32_t tensor = power(random, 2);
    const int32_t pipeline = power(random, 2);
    const int32_t context = power(random, 1);
    const int32_t data = power(random, 2);
    const int32_t chunks = power(random, 1);
    const int32_t batch = power(random, 1);
    draw_wide_model(random, job,
                    pipeline * chunks * me_random_in(random, 1, 2));
    SET("parallel.world_size=%d", (int)(tensor * pipeline * context * data));
    SET("parallel.tensor=%d", (int)tensor);
    SET("parallel.pipeline=%d", (int)pipeline);
    SET("parallel.context=%d", (int)context);
    SET("parallel.virtual_pipeline=%d", (int)chunks);
    SET("parallel.sequence=%s", pick(random, flags, 2));
    SET("train.micro_batch_size=%d", (int)batch);
    SET("train.global_batch_size=%d",
        (int)(batch * data * pipeline * me_random_in(random, 1, 4)));
    const bool is_sharded = pipeline == 1 && me_random_in(random, 0, 1) == 0;
    if (is_sharded) {
        SET("parallel.torch_fsdp2=true");
        SET("train.gradient_accumulation_fusion=false");
    }
    SET("optimizer.distributed=%s",
        is_sharded ? "false" : pick(random, flags, 2));
    if (me_random_in(random, 0, 3) == 0) {
        SET("train.fp8=hybrid");
    }
    draw_wide_recompute(random, job);
    if (me_random_in(random, 0, 2) == 0) {
        draw_wide_experts(random, job);
    }
}

/* And near: a bound that says nothing rules nothing out. */
static void test_bounds_property__wide_jobs(void **state)
{
    (void)state;
    nearness sums = {0};
    for (uint64_t seed = first_seed(); sums.n < WIDE_JOBS; seed++) {
        me_random random = {seed};
        random_job job;
        draw_wide(&random, &job);
        check(base_none, seed, &job, &sums);
    }
    print_message("bytes %.3f, step %.3f of what is simulated, %d and %d of "
                  "%d probed\n",
                  sums.bytes / sums.n, sums.step / sums.n, sums.n_probed,
                  sums.n_placed, sums.n);
    assert_true(sums.bytes > 0.5 * sums.n);
    assert_true(sums.n_probed > sums.n / 3);
    assert_true(sums.n_placed > sums.n / 3);
}

/** Layers with a window beside others: with dropout, which fused attention has no
 *  windows with, they keep their scores. */
static void draw_windows(me_random *random, random_job *job)
{
    static const char *const frequencies[] = {"2", "3", "[0]*1+[1]*63",
                                              "[1]*1+[0]*63"};
    draw_wide(random, job);
    SET("parallel.context=1");
    SET("model.window_attention=true");
    SET("model.attention_dropout=%s", power(random, 1) == 1 ? "0" : "0.1");
    SET("model.window_attn_skip_freq=%s", pick(random, frequencies, 4));
}

static void test_bounds_property__windows(void **state)
{
    (void)state;
    nearness sums = {0};
    for (uint64_t seed = first_seed(); sums.n < WINDOW_JOBS; seed++) {
        me_random random = {seed};
        random_job job;
        draw_windows(&random, &job);
        check(base_none, seed, &job, &sums);
    }
    print_message("bytes %.3f of what is simulated, %d of %d probed\n",
                  sums.bytes / sums.n, sums.n_probed, sums.n);
    assert_true(sums.n_probed > sums.n / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_property__random_jobs),
        cmocka_unit_test(test_bounds_property__wide_jobs),
        cmocka_unit_test(test_bounds_property__windows),
    };
    if (me_transport_local_create(&transport) != ME_OK) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}
