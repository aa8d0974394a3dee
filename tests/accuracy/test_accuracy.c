/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/arena.h"
#include "config/file.h"
#include "facts.h"
#include "support/simulate.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FREES_MAX = 256
};

/** A case and memest's answers; what fails is counted, and said on stderr. */
typedef struct accuracy {
    facts measured;
    test_job job;
    char folder[64];
    char events[96];
    int wrong;
} accuracy;

static void compare(accuracy *a, int32_t rank, const char *what, uint64_t mine,
                    uint64_t right)
{
    if (mine != right) {
        (void)fprintf(stderr,
                      "rank %d: %s: memest %" PRIu64 ", measured %" PRIu64 "\n",
                      (int)rank, what, mine, right);
        a->wrong++;
    }
}

static void plan(accuracy *a)
{
    me_diag diag = {.status = ME_OK};
    char world[16] = "";
    (void)snprintf(world, sizeof world, "%d", (int)a->measured.world);
    a->job.config = me_config_create();
    assert_non_null(a->job.config);
    me_status status = ME_OK;
    if (a->measured.model != NULL) {
        char path[512] = "";
        (void)snprintf(path, sizeof path, "%s/%s", SOURCE_DIR,
                       a->measured.model);
        status = me_config_read_file(a->job.config, path, &diag);
    } else {
        status = me_config_read_launch(a->job.config, a->measured.n_words,
                                       a->measured.words, &diag);
    }
    if (status == ME_OK) {
        status =
            me_config_set(a->job.config, "parallel.world_size", world, &diag);
    }
    if (status == ME_OK) {
        status = test_job_set(&a->job, a->measured.sets, &diag);
    }
    if (status == ME_OK) {
        status = test_job_plan(&a->job, &diag);
    }
    if (status != ME_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(a->job.config->not_modelled.count, 0);
    a->job.simulation.events_path = a->events;
}

/** Parameters of module @p i alone. */
static uint64_t own_parameters(const me_rank_result *result, uint32_t i)
{
    uint64_t own = result->modules[i].parameters;
    for (uint32_t k = i + 1; k < result->n_modules; k++) {
        own -=
            result->modules[k].parent == i ? result->modules[k].parameters : 0;
    }
    return own;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void check_parameters(accuracy *a, const facts_rank *want,
                             const me_rank_result *result)
{
    uint64_t *own = calloc(result->n_modules + 1, sizeof *own);
    assert_non_null(own);
    uint64_t n = 0;
    for (uint32_t i = 0; i < result->n_modules; i++) {
        own[n] = own_parameters(result, i);
        n += own[n] > 0;
    }
    qsort(own, n, sizeof *own, by_size);
    uint64_t digest = FACTS_DIGEST_EMPTY;
    for (uint64_t i = 0; i < n; i++) {
        char line[32] = "";
        (void)snprintf(line, sizeof line, "%" PRIu64 "\n", own[i]);
        digest = me_facts_digest(digest, line);
    }
    free(own);
    compare(a, want->rank, "parameters", result->parameters, want->parameters);
    compare(a, want->rank, "modules with parameters", n, want->modules);
    compare(a, want->rank, "digest of the modules' parameters", digest,
            want->modules_digest);
}

static void check_point(accuracy *a, int32_t rank, const facts_point *want,
                        const me_point_result *mine)
{
    char what[96] = "";
    if (want->is_stand_in) {
        a->wrong += mine->requested_bytes < want->now ||
                    mine->requested_peak_bytes < want->peak;
        return;
    }
    (void)snprintf(what, sizeof what, "requested bytes at %s", want->name);
    compare(a, rank, what, mine->requested_bytes, want->now);
    if (want->is_compiling) {
        a->wrong += mine->requested_peak_bytes > want->peak;
        return;
    }
    (void)snprintf(what, sizeof what, "peak up to %s", want->name);
    compare(a, rank, what, mine->requested_peak_bytes, want->peak);
}

/** Of iterations behind the first two, which are no part of a case, the number is
 *  kept from their beginning to their end. */
static bool is_of_later(const char *name, long *iteration)
{
    if (strncmp(name, "iter", 4) == 0) {
        char *end = NULL;
        const long n = strtol(name + 4, &end, 10);
        *iteration = strcmp(end, "_end") == 0 ? 0 : n;
        return n > 1;
    }
    return *iteration > 1;
}

/** memest's points inside forwards were measured without resetting peaks. */
static void check_points(accuracy *a, const facts_rank *want,
                         const me_rank_result *result)
{
    uint32_t at = 0;
    long iteration = 0;
    for (uint32_t i = 0; i < result->n_points; i++) {
        const me_point_result *mine = &result->points[i];
        if (is_of_later(mine->name, &iteration) ||
            strncmp(mine->name, "fwd", 3) == 0 ||
            strcmp(mine->name, "start") == 0) {
            continue;
        }
        if (at == want->n_points ||
            strcmp(mine->name, want->points[at].name) != 0) {
            (void)fprintf(stderr, "rank %d: point %s was not measured here\n",
                          (int)want->rank, mine->name);
            a->wrong++;
            return;
        }
        check_point(a, want->rank, &want->points[at], mine);
        at++;
    }
    compare(a, want->rank, "points", at, want->n_points);
}

/** The two columns that the digest is of, as "alloc 512". */
static uint64_t digest_event(uint64_t digest, char *line)
{
    char *tab = strchr(line, '\t');
    assert_non_null(tab);
    *tab = ' ';
    tab[1 + strcspn(tab + 1, "\t")] = '\0';
    return me_facts_digest(me_facts_digest(digest, line), "\n");
}

/** Frees between two allocations, which a case may want sorted. */
typedef struct frees {
    uint64_t bytes[FREES_MAX];
    size_t count;
} frees;

static uint64_t digest_frees(uint64_t digest, frees *f)
{
    qsort(f->bytes, f->count, sizeof f->bytes[0], by_size);
    for (size_t i = 0; i < f->count; i++) {
        char text[40] = "";
        (void)snprintf(text, sizeof text, "free %" PRIu64 "\n", f->bytes[i]);
        digest = me_facts_digest(digest, text);
    }
    f->count = 0;
    return digest;
}

enum {
    COPIES_MAX = 64
};

/** Blocks that copy what a timed kernel writes. */
typedef struct copies {
    unsigned long long ids[COPIES_MAX];
    int count;
} copies;

/** Is a line of such a block, of which a clock decides how many there are? */
static bool is_copy(copies *c, const char *line)
{
    const char *bytes = strchr(line, '\t');
    const char *id = bytes == NULL ? NULL : strchr(bytes + 1, '\t');
    if (id == NULL) {
        return false;
    }
    const unsigned long long block = strtoull(id + 1, NULL, 10);
    if (strncmp(line, "alloc\t", 6) == 0) {
        if (strstr(line, "\tautotune.clone") == NULL) {
            return false;
        }
        assert_true(c->count < COPIES_MAX);
        c->ids[c->count++] = block;
        return true;
    }
    for (int i = 0; i < c->count; i++) {
        if (c->ids[i] == block) {
            c->ids[i] = c->ids[--c->count];
            return true;
        }
    }
    return false;
}

static void check_events(accuracy *a, const facts_rank *want)
{
    copies clones = {.count = 0};
    char line[1024] = "";
    uint64_t count = 0;
    uint64_t digest = FACTS_DIGEST_EMPTY;
    frees waiting = {.count = 0};
    FILE *stream = fopen(a->events, "r");
    assert_non_null(stream);
    while (fgets(line, sizeof line, stream) != NULL) {
        if (strncmp(line, "alloc\t", 6) != 0 &&
            strncmp(line, "free\t", 5) != 0) {
            continue; /* before the iteration, and not of the program */
        }
        if (is_copy(&clones, line)) {
            continue;
        }
        count++;
        if (a->measured.model != NULL && strncmp(line, "free\t", 5) == 0) {
            assert_true(waiting.count < FREES_MAX);
            waiting.bytes[waiting.count++] = strtoull(line + 5, NULL, 10);
        } else {
            digest = digest_frees(digest, &waiting);
            digest = digest_event(digest, line);
        }
    }
    digest = digest_frees(digest, &waiting);
    (void)fclose(stream);
    compare(a, want->rank, "events", count, want->events);
    compare(a, want->rank, "digest of events", digest, want->events_digest);
}

/** What a rank does in time can be written and read, as gathering does. */
static void check_times(const facts_rank *want, const me_rank_result *result)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    me_diag diag = {.status = ME_OK};
    me_time_program program;
    me_arena *arena = me_arena_create(UINT64_MAX, "times");
    assert_non_null(arena);
    assert_int_equal(me_rank_result_encode_time(result, &bytes, &size), ME_OK);
    if (me_time_program_decode(bytes, size, arena, &diag, &program) != ME_OK) {
        fail_msg("rank %d: %s", (int)want->rank, diag.text);
    }
    me_free(bytes);
    me_arena_destroy(arena);
}

static void check_rank(accuracy *a, const facts_rank *want)
{
    me_diag diag = {.status = ME_OK};
    me_rank_result *result = NULL;
    a->job.simulation.events_rank = want->rank;
    if (test_job_run(&a->job, want->rank, &diag, &result) != ME_OK) {
        fail_msg("rank %d: %s", (int)want->rank, diag.text);
    }
    check_times(want, result);
    check_parameters(a, want, result);
    check_points(a, want, result);
    check_events(a, want);
    me_rank_result_destroy(result);
}

static void test_accuracy__every_rank_is_as_measured(void **state)
{
    accuracy *a = *state;
    plan(a);
    for (uint32_t i = 0; i < a->measured.n_ranks; i++) {
        check_rank(a, &a->measured.ranks[i]);
    }
    assert_int_equal(a->wrong, 0);
}

static int teardown(void **state)
{
    accuracy *a = *state;
    (void)unlink(a->events);
    test_job_fini(&a->job);
    me_facts_fini(&a->measured);
    return rmdir(a->folder);
}

/* test_accuracy CASE: a file of tests/accuracy/cases. */
int main(int argc, char **argv)
{
    accuracy a = {.wrong = 0};
    if (argc != 2 || !me_facts_read(argv[1], &a.measured)) {
        return 2;
    }
    (void)snprintf(a.folder, sizeof a.folder, "%s", "/tmp/memest-test-XXXXXX");
    if (mkdtemp(a.folder) == NULL) {
        return 2;
    }
    (void)snprintf(a.events, sizeof a.events, "%s/events.tsv", a.folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(
            test_accuracy__every_rank_is_as_measured, NULL, teardown, &a),
    };
    return cmocka_run_group_tests_name("accuracy", tests, NULL, NULL);
}
