/* SPDX-License-Identifier: BSD-3-Clause */
/* What is simulated once and what is not run again, by several threads, give
 * the same report, byte for byte, as every rank and every micro-batch run by
 * itself, one after the other. */
#include "app/estimate_command.h"
#include "base/str.h"
#include "parallel/schedule.h"
#include "support/random.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOBS = 12,
    SMALL_JOBS = 40,
    SHARDED_JOBS = 24,
    SETS = 40,
    SET_BYTES = 80,
    ITERATIONS = 2
};

#define TOKENS_PATH "fold_property_tokens.txt"

/** A random job: its settings as text. */
typedef struct job {
    char sets[SETS][SET_BYTES];
    int32_t n;
} job;

static void set(job *j, const char *option, int64_t value)
{
    (void)snprintf(j->sets[j->n++], SET_BYTES, "%s=%" PRId64, option, value);
}

static void set_flag(job *j, me_random *random, const char *option)
{
    (void)snprintf(j->sets[j->n++], SET_BYTES, "%s=%s", option,
                   me_random_in(random, 0, 1) == 0 ? "false" : "true");
}

static int64_t pick_power(me_random *random, int32_t most)
{
    return INT64_C(1) << me_random_in(random, 0, most);
}

/** An order that Megatron-LM has no function for; its V needs untied
 *  embeddings and two chunks of layers. */
static void set_schedule(job *j, me_random *random, int64_t pipeline,
                         int64_t microbatches)
{
    static const char *const names[] = {
        "gpipe",  "zbh1",    "zb_auto", "zbv",      "vhalf",    "vmin",
        "v_auto", "chimera", "zbh2",    "dualpipe", "dualpipev"};

    enum {
        N_NAMES = sizeof names / sizeof names[0],
        N_FULL = 3 /**< the last ones, of pipelines that are filled twice */
    };

    const int32_t i = me_random_in(random, 0, 2 * N_NAMES);
    const bool is_full = microbatches >= 2 * pipeline;
    if (pipeline == 1 || i >= (is_full ? N_NAMES : N_NAMES - N_FULL)) {
        set_flag(j, random, "model.untie_embeddings_and_output_weights");
        return;
    }
    (void)snprintf(j->sets[j->n++], SET_BYTES, "pipeline.schedule=%s",
                   names[i]);
    set(j, "model.num_layers", 8);
    (void)snprintf(j->sets[j->n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
}

static void set_optimizer(job *j, me_random *random, int64_t data)
{
    const bool is_distributed = me_random_in(random, 0, 1) == 1;
    (void)snprintf(j->sets[j->n++], SET_BYTES, "optimizer.distributed=%s",
                   is_distributed ? "true" : "false");
    if (is_distributed && data > 1) {
        set(j, "optimizer.num_distributed_optimizer_instances",
            me_random_in(random, 1, 2));
    }
}

/** FSDP2 in place of DDP, over a vocabulary that some ranks have less of. */
static void set_fsdp2(job *j, me_random *random, int64_t pipeline)
{
    if (pipeline > 1 || me_random_in(random, 0, 1) == 0) {
        return;
    }
    set(j, "model.padded_vocab_size", 1000 + 2 * me_random_in(random, 0, 8));
    (void)snprintf(j->sets[j->n++], SET_BYTES, "parallel.torch_fsdp2=true");
    (void)snprintf(j->sets[j->n++], SET_BYTES, "optimizer.distributed=false");
    set(j, "optimizer.num_distributed_optimizer_instances", 1);
    (void)snprintf(j->sets[j->n++], SET_BYTES,
                   "train.gradient_accumulation_fusion=false");
    (void)snprintf(j->sets[j->n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
}

static job make_job(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = pick_power(random, 1);
    const int64_t pipeline = pick_power(random, 2);
    const int64_t data = pick_power(random, 2);
    const int64_t rounds = me_random_in(random, 1, 6) * 4;
    set(&j, "parallel.tensor", tensor);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.world_size", tensor * pipeline * data);
    set(&j, "train.global_batch_size", data * rounds);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", 4 * me_random_in(random, 1, 2));
    set(&j, "model.hidden_size", 256);
    set(&j, "model.num_attention_heads", 4);
    set(&j, "model.ffn_hidden_size", 96 * me_random_in(random, 1, 9));
    set(&j, "model.seq_length", 128);
    set(&j, "model.max_position_embeddings", 128);
    set(&j, "model.vocab_size", 1000);
    set_optimizer(&j, random, data);
    set_schedule(&j, random, pipeline, rounds);
    set_fsdp2(&j, random, pipeline);
    if (tensor > 1) {
        set_flag(&j, random, "parallel.sequence");
    }
    if (me_random_in(random, 0, 2) == 0) {
        (void)snprintf(j.sets[j.n++], SET_BYTES,
                       "recompute.granularity=selective");
        set_flag(&j, random, "recompute.core_attn");
        set_flag(&j, random, "recompute.layernorm");
    }
    return j;
}

static void set_word(job *j, const char *assignment)
{
    (void)snprintf(j->sets[j->n++], SET_BYTES, "%s", assignment);
}

/** Modules of every kind run again, and enter others as they do. */
static void set_recomputation(job *j, me_random *random, bool has_experts)
{
    if (me_random_in(random, 0, 3) == 0) {
        set_word(j, "recompute.granularity=full");
        set_word(j, me_random_in(random, 0, 1) == 0 ? "recompute.method=uniform"
                                                    : "recompute.method=block");
        set(j, "recompute.num_layers", 1);
        return;
    }
    set_word(j, "recompute.granularity=selective");
    set_flag(j, random, "recompute.core_attn");
    set_flag(j, random, "recompute.layernorm");
    if (!has_experts) {
        set_flag(j, random, "recompute.mlp");
    }
}

/** @return experts of a rank; 0: there are none */
static int64_t set_experts(job *j, me_random *random, int64_t data)
{
    const int64_t ranks = data > 1 ? pick_power(random, 1) : 1;
    const bool has_experts = me_random_in(random, 0, 2) == 0;
    if (has_experts) {
        set(j, "moe.num_experts", 4);
        set(j, "moe.router_topk", me_random_in(random, 1, 2));
        set_word(j, "moe.router_pre_softmax=true"); // one expert wants it
        set(j, "moe.ffn_hidden_size", 64);
        set_word(j, "moe.token_dispatcher=alltoall");
        set_word(j, "model.activation=swiglu");
        set(j, "parallel.expert", ranks);
    }
    return has_experts ? 4 / ranks : 0;
}

/** Small and recomputed, on a pipeline with few micro-batches, which are told
 *  again as early as can be. */
static job make_small_job(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = pick_power(random, 1);
    const int64_t pipeline = pick_power(random, 1);
    const int64_t data = pick_power(random, 1);
    const int64_t chunks = pipeline > 1 ? me_random_in(random, 1, 2) : 1;
    const int64_t rounds = pipeline * me_random_in(random, 1, 4);
    set(&j, "parallel.tensor", tensor);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.virtual_pipeline", chunks);
    set(&j, "parallel.world_size", tensor * pipeline * data);
    set(&j, "train.global_batch_size", data * rounds);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", pipeline * chunks * me_random_in(random, 1, 2));
    set(&j, "model.hidden_size", 64);
    set(&j, "model.num_attention_heads", 2);
    set(&j, "model.seq_length", 64 * me_random_in(random, 1, 16));
    set(&j, "model.max_position_embeddings", 1024);
    set(&j, "model.vocab_size", 1000 * me_random_in(random, 1, 32));
    set_word(&j, "model.add_bias_linear=false");
    set_flag(&j, random, "model.untie_embeddings_and_output_weights");
    set_flag(&j, random, "optimizer.distributed");
    set_flag(&j, random, "optimizer.overlap_grad_reduce");
    const bool has_experts = set_experts(&j, random, data) > 0;
    if (tensor > 1) {
        set_word(&j, has_experts ? "parallel.sequence=true"
                                 : "parallel.sequence=false");
    }
    set_recomputation(&j, random, has_experts);
    return j;
}

/** Counts of the first ranks, which may be all, as if each had run alone.
 *  @param sizes  layers, micro-batches and experts of a rank */
static void write_tokens(me_random *random, const int64_t sizes[3],
                         int64_t world)
{
    FILE *file = fopen(TOKENS_PATH, "wb");
    assert_non_null(file);
    (void)fputs("alone\n", file);
    const int64_t named = me_random_in(random, 1, (int32_t)world);
    const int64_t dispatches = ITERATIONS * sizes[0] * sizes[1];
    for (int64_t i = 0; i < named * dispatches; i++) {
        const int64_t of_rank = i % dispatches;
        (void)fprintf(file, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                      of_rank % ITERATIONS, of_rank / ITERATIONS % sizes[0],
                      of_rank / ITERATIONS / sizes[0], i / dispatches);
        for (int64_t k = 0; k < sizes[2]; k++) {
            (void)fprintf(file, " %" PRId32, me_random_in(random, 0, 60));
        }
        (void)fputc('\n', file);
    }
    (void)fclose(file);
}

/** Many data-parallel ranks, of which most own a part of one parameter: as much
 *  of other layers. */
static job make_sharded_job(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = pick_power(random, 1);
    const int64_t pipeline = pick_power(random, 1);
    const int64_t data = INT64_C(4) << me_random_in(random, 0, 3);
    const int64_t layers = pipeline * pick_power(random, 2);
    set(&j, "parallel.tensor", tensor);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.world_size", tensor * pipeline * data);
    const int64_t rounds = me_random_in(random, 1, 4);
    set(&j, "train.global_batch_size", data * rounds);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", layers);
    set(&j, "model.hidden_size", pick_power(random, 3) * 64);
    set(&j, "model.num_attention_heads", 2);
    set(&j, "model.ffn_hidden_size", pick_power(random, 4) * 256);
    set(&j, "model.seq_length", 64);
    set(&j, "model.max_position_embeddings", 64);
    set(&j, "model.vocab_size", 1000 * me_random_in(random, 1, 8));
    set_word(&j, "model.add_bias_linear=false");
    set_word(&j, "optimizer.distributed=true");
    set_flag(&j, random, "model.untie_embeddings_and_output_weights");
    set_flag(&j, random, "optimizer.overlap_grad_reduce");
    set_flag(&j, random, "optimizer.log_num_zeros_in_grad");
    set_word(&j, me_random_in(random, 0, 1) == 0
                     ? "impl.optimizer=fused"
                     : "impl.optimizer=torch_foreach");
    const int64_t experts = set_experts(&j, random, data);
    const int32_t routing = experts > 0 ? me_random_in(random, 0, 2) : 2;
    if (routing == 0) {
        set_word(&j, "moe.routing=skewed:0.5");
    } else if (routing == 1) {
        write_tokens(random, (int64_t[]){layers, rounds, experts},
                     tensor * pipeline * data);
        set_word(&j, "moe.tokens=" TOKENS_PATH);
        set_word(&j, "parallel.expert_tensor=1"); // no two share a token
    }
    if (tensor > 1) {
        set_word(&j, "parallel.sequence=true");
    }
    return j;
}

/** All of a file, which is removed; owned by the caller. */
static char *take_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file);
    rewind(file);
    char *text = test_malloc((size_t)size + 1);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    text[size] = '\0';
    (void)fclose(file);
    (void)remove(path);
    return text;
}

/** A job's report as JSON and the events of its rank 0, or none; no report: it
 *  failed. */
typedef struct outcome {
    char *report;
    char *events;
} outcome;

static void outcome_fini(const outcome *x)
{
    test_free(x->report);
    test_free(x->events);
}

static const char *find_difference(const outcome *a, const outcome *b)
{
    if (a->report == NULL || b->report == NULL) {
        return "a job was refused";
    }
    if (strcmp(a->report, b->report) != 0) {
        return "the reports differ";
    }
    if (a->events == NULL || b->events == NULL) {
        return NULL; /* nobody asked for those of one */
    }
    return strcmp(a->events, b->events) != 0 ? "the events differ" : NULL;
}

/** Ranks whose events nobody asks for may take the results of twins. */
static outcome run(const job *j, bool folds, bool has_events)
{
    static const char path[] = "fold_property.json";
    static const char events_path[] = "fold_property.tsv";
    me_cli cli = {.command = "estimate",
                  .format = "json",
                  .model = ME_MODEL,
                  .output = path,
                  .events = has_events ? events_path : NULL,
                  .rank = 0,
                  .iteration = -1,
                  .no_fold = !folds,
                  .threads = folds ? 3 : 1,
                  .course = true};
    for (int32_t i = 0; i < j->n; i++) {
        cli.sets[cli.n_sets++] = j->sets[i];
    }
    me_diag diag = {.status = ME_OK};
    me_transport *transport = NULL;
    if (me_transport_local_create(&transport) != ME_OK) {
        return (outcome){.report = NULL};
    }
    const int code = me_estimate(transport, &cli, &diag);
    me_transport_destroy(transport);
    if (code != ME_EXIT_OK) {
        print_error("%s\n", diag.text);
        return (outcome){.report = NULL};
    }
    return (outcome){.report = take_file(path),
                     .events = has_events ? take_file(events_path) : NULL};
}

/** What differs between the job folded and not; NULL: nothing. */
static const char *compare_runs(const job *j)
{
    outcome folded = run(j, true, true);
    outcome full = run(j, false, true);
    outcome twins = run(j, true, false);
    const char *wrong = find_difference(&folded, &full);
    if (wrong == NULL) {
        wrong = find_difference(&twins, &full);
    }
    outcome_fini(&folded);
    outcome_fini(&full);
    outcome_fini(&twins);
    return wrong;
}

static const char *check_job(const job *j)
{
    const char *wrong = compare_runs(j);
    for (int32_t i = 0; wrong != NULL && i < j->n; i++) {
        print_error("--set %s\n", j->sets[i]);
    }
    return wrong;
}

static const char *folding_changes_nothing(me_random *random)
{
    const job j = make_job(random);
    return check_job(&j);
}

/** The most that a rank of a report has reserved. */
static uint64_t most_reserved(const char *report)
{
    static const char key[] = "\"reserved_bytes\": ";
    uint64_t most = 0;
    for (const char *at = strstr(report, key); at != NULL;
         at = strstr(at + 1, key)) {
        const uint64_t bytes = strtoull(at + sizeof key - 1, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/** It may run with a little less than it wants, or die. */
static void set_limit(job *j, me_random *random)
{
    const outcome wanted = run(j, true, false);
    const uint64_t most =
        wanted.report == NULL ? 0 : most_reserved(wanted.report);
    outcome_fini(&wanted);
    if (most > 0) {
        const int64_t less = me_random_in(random, 1, 8);
        set(j, "device.memory_limit", (int64_t)most - (less << 21));
    }
}

static const char *folding_changes_no_recomputation(me_random *random)
{
    job j = make_small_job(random);
    if (me_random_in(random, 0, 1) == 0) {
        set_limit(&j, random);
    }
    return check_job(&j);
}

static const char *folding_changes_no_shard(me_random *random)
{
    job j = make_sharded_job(random);
    if (me_random_in(random, 0, 2) == 0) {
        set_limit(&j, random);
    }
    return check_job(&j);
}

static void test_fold__changes_nothing(void **state)
{
    (void)state;
    me_property_run(folding_changes_nothing, JOBS);
}

static void test_fold__changes_nothing_under_recomputation(void **state)
{
    (void)state;
    me_property_run(folding_changes_no_recomputation, SMALL_JOBS);
}

static void test_fold__changes_nothing_of_shards(void **state)
{
    (void)state;
    me_property_run(folding_changes_no_shard, SHARDED_JOBS);
}

/** Pairs of ranks have communicators of their own, numbered in the world, of
 *  which some lie within a node and others do not. */
static void test_fold__changes_nothing_in_pairs_over_nodes(void **state)
{
    (void)state;
    job j = {.n = 0};
    set(&j, "parallel.world_size", 16);
    set(&j, "parallel.tensor", 4);
    set(&j, "parallel.pipeline", 2);
    set(&j, "parallel.virtual_pipeline", 3);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "train.global_batch_size", 4);
    set(&j, "model.num_layers", 12);
    set(&j, "model.num_attention_heads", 4);
    set(&j, "optimizer.num_distributed_optimizer_instances", 2);
    (void)snprintf(j.sets[j.n++], SET_BYTES, "parallel.tp_pp_dp_mapping=true");
    (void)snprintf(j.sets[j.n++], SET_BYTES, "optimizer.distributed=true");
    (void)snprintf(j.sets[j.n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
    const char *wrong = compare_runs(&j);
    if (wrong != NULL) {
        fail_msg("%s", wrong);
    }
}

/** A small job of a schedule on so many stages with so many micro-batches. */
static job make_scheduled(const char *name, int64_t pipeline,
                          int64_t microbatches, bool recomputes)
{
    job j = {.n = 0};
    set(&j, "parallel.tensor", 2);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.world_size", 2 * pipeline);
    set(&j, "train.global_batch_size", microbatches);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", 8);
    set(&j, "model.hidden_size", 256);
    set(&j, "model.num_attention_heads", 4);
    set(&j, "model.ffn_hidden_size", 512);
    set(&j, "model.seq_length", 128);
    set(&j, "model.max_position_embeddings", 128);
    set(&j, "model.vocab_size", 1000);
    (void)snprintf(j.sets[j.n++], SET_BYTES, "pipeline.schedule=%s", name);
    (void)snprintf(j.sets[j.n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
    if (recomputes) {
        (void)snprintf(j.sets[j.n++], SET_BYTES, "recompute.granularity=full");
        (void)snprintf(j.sets[j.n++], SET_BYTES, "recompute.method=uniform");
        set(&j, "recompute.num_layers", 1);
    }
    if (strncmp(name, "interleaved", strlen("interleaved")) == 0 ||
        strcmp(name, "looped_bfs") == 0) {
        set(&j, "parallel.virtual_pipeline", 2);
    }
    return j;
}

static void test_fold__changes_nothing_in_any_schedule(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{2, 8}, {2, 12}, {4, 8}, {4, 16}};
    for (uint32_t i = 0; me_schedule_at(i) != NULL; i++) {
        const char *name = me_schedule_at(i)->name;
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
            const int64_t stages = strcmp(name, "none") == 0 ? 1 : shapes[k][0];
            const job j = make_scheduled(name, stages, shapes[k][1], k == 1);
            const char *wrong = compare_runs(&j);
            assert_string_equal(wrong == NULL ? "" : wrong, "");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__changes_nothing),
        cmocka_unit_test(test_fold__changes_nothing_under_recomputation),
        cmocka_unit_test(test_fold__changes_nothing_of_shards),
        cmocka_unit_test(test_fold__changes_nothing_in_pairs_over_nodes),
        cmocka_unit_test(test_fold__changes_nothing_in_any_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
