/**
 * @file
 * Random jobs, and whether what is simulated once and what is not run again gives
 * the same report, byte for byte, as every rank and every micro-batch run by
 * itself, one after the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_FOLD_H
#define MEMEST_TESTS_SUPPORT_FOLD_H

#include "app/estimate_command.h"
#include "base/str.h"
#include "support/random.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETS = 40,
    SET_BYTES = 80
};

/** What a test begins with and writes. */
typedef struct fold_files {
    const char *model;
    const char *report;
    const char *events;
} fold_files;

/** A random job: its settings as text. */
typedef struct job {
    char sets[SETS][SET_BYTES];
    int32_t n;
} job;

static inline void set(job *j, const char *option, int64_t value)
{
    (void)snprintf(j->sets[j->n++], SET_BYTES, "%s=%" PRId64, option, value);
}

static inline void set_flag(job *j, me_random *random, const char *option)
{
    (void)snprintf(j->sets[j->n++], SET_BYTES, "%s=%s", option,
                   me_random_in(random, 0, 1) == 0 ? "false" : "true");
}

static inline int64_t pick_power(me_random *random, int32_t most)
{
    return INT64_C(1) << me_random_in(random, 0, most);
}

static inline void set_word(job *j, const char *assignment)
{
    (void)snprintf(j->sets[j->n++], SET_BYTES, "%s", assignment);
}

/** @return experts of a rank; 0: there are none */
static inline int64_t set_experts(job *j, me_random *random, int64_t data)
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

/** All of a file, which is removed; owned by the caller. */
static inline char *take_file(const char *path)
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

/** A job's report as JSON and the events of its rank 0 up to the end of an
 *  iteration, or none; no report: it failed. */
typedef struct outcome {
    char *report;
    char *events;
} outcome;

static inline void outcome_fini(const outcome *x)
{
    test_free(x->report);
    test_free(x->events);
}

static inline const char *find_difference(const outcome *a, const outcome *b)
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

enum {
    NO_EVENTS = -1
};

/** Ranks whose events nobody asks for may take the results of twins.
 *  @param iteration  events up to its end are written; NO_EVENTS: none are */
static inline outcome run(const fold_files *files, const job *j, bool folds,
                          int32_t iteration)
{
    const bool has_events = iteration != NO_EVENTS;
    me_cli cli = {.command = "estimate",
                  .format = "json",
                  .model = files->model,
                  .output = files->report,
                  .events = has_events ? files->events : NULL,
                  .rank = 0,
                  .iteration = iteration,
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
    return (outcome){.report = take_file(files->report),
                     .events = has_events ? take_file(files->events) : NULL};
}

/** The last iteration of a report, which is the evaluation where there is one. */
static inline int32_t last_iteration(const char *report)
{
    static const char key[] = "{\"iteration\": ";
    int32_t last = 0;
    for (const char *at = report == NULL ? NULL : strstr(report, key);
         at != NULL; at = strstr(at + 1, key)) {
        const int32_t i = (int32_t)strtol(at + sizeof key - 1, NULL, 10);
        last = i > last ? i : last;
    }
    return last;
}

/** What differs between the job folded and not; NULL: nothing. */
static inline const char *compare_runs(const fold_files *files, const job *j)
{
    outcome twins = run(files, j, true, NO_EVENTS);
    const int32_t last = last_iteration(twins.report);
    outcome folded = run(files, j, true, last);
    outcome full = run(files, j, false, last);
    const char *wrong = find_difference(&folded, &full);
    if (wrong == NULL) {
        wrong = find_difference(&twins, &full);
    }
    outcome_fini(&folded);
    outcome_fini(&full);
    outcome_fini(&twins);
    return wrong;
}

static inline const char *check_job(const fold_files *files, const job *j)
{
    const char *wrong = compare_runs(files, j);
    for (int32_t i = 0; wrong != NULL && i < j->n; i++) {
        print_error("--set %s\n", j->sets[i]);
    }
    return wrong;
}

/** The most that a rank of a report has reserved. */
static inline uint64_t most_reserved(const char *report)
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
static inline void set_limit(const fold_files *files, job *j, me_random *random)
{
    const outcome wanted = run(files, j, true, NO_EVENTS);
    const uint64_t most =
        wanted.report == NULL ? 0 : most_reserved(wanted.report);
    outcome_fini(&wanted);
    if (most > 0) {
        const int64_t less = me_random_in(random, 1, 8);
        set(j, "device.memory_limit", (int64_t)most - (less << 21));
    }
}

#endif /* MEMEST_TESTS_SUPPORT_FOLD_H */
