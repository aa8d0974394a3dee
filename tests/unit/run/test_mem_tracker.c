/* SPDX-License-Identifier: BSD-3-Clause */
/* Every snapshot of MemTracker and FSDPMemTracker that was recorded, on the same
 * models. */
#include "run/simulate.h"
#include "support/watch.h"
#include "track/mem_tracker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 1024,
    MAX_FIELDS = 24,
    PATH_BYTES = 512,
    MAX_SETS = 4
};

/** A test of PyTorch's, as a job. */
typedef struct test_case {
    const char *name; /**< in the table */
    const char *job;  /**< of tests/trackers */
    const char *sets[MAX_SETS];
    me_mem_options options;
    const char *world; /**< in the table; NULL: it has none */
    /** What fake tensors put on the GPU of what real ones have on the host: seed
     *  and offset of an attention with dropout, a block each. */
    uint64_t fake_bytes;
} test_case;

/** What a rank's tracker says, while its engine is there. */
typedef struct tracking {
    const test_case *test;
    const char *table;
    int32_t iteration;
    me_mod_tracker *mod;
    me_mem_tracker *mem;
    bool is_peak_only;
    uint64_t peak;
    int checked;
    int wrong;
} tracking;

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    tracking *t = self;
    me_mem_options options = t->test->options;
    options.iteration = t->iteration;
    t->mod = me_mod_tracker_create(e);
    assert_non_null(t->mod);
    t->mem = me_mem_tracker_create(e, t->mod, &options);
    assert_non_null(t->mem);
    return ME_OK;
}

/** The fields of a line, which are ended in place. */
static int split(char *line, char **fields)
{
    int n = 0;
    for (char *at = line; *at != '\0' && *at != '\n';) {
        assert_in_range(n, 0, MAX_FIELDS - 1);
        fields[n++] = at;
        at += strcspn(at, "\t\n");
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
    return n;
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    const uint64_t value = strtoull(text, &end, 10);
    assert_true(*text != '\0' && *end == '\0');
    return value;
}

/** Bytes by category and their sum. @param why what they are of */
static void compare(tracking *t, const char *why, const me_mem_device *mine,
                    char *const *fields, uint64_t fake_bytes)
{
    const uint32_t n = me_mem_tracker_shown(t->mem);
    const uint32_t activation =
        t->test->options.is_fsdp ? ME_FSDP_MEM_ACTIVATION : ME_MEM_ACTIVATION;
    t->checked++;
    for (uint32_t i = 0; i <= n; i++) {
        const char *label =
            i == n ? "Total" : me_mem_tracker_labels(t->mem)->categories[i];
        uint64_t bytes = i == n ? mine->total : mine->by_category[i];
        bytes += i == n || i == activation ? fake_bytes : 0;
        if (bytes != number(fields[i])) {
            (void)fprintf(stderr,
                          "%s: %s: %s: memest %" PRIu64 ", PyTorch %s\n",
                          t->test->name, why, label, bytes, fields[i]);
            t->wrong++;
        }
    }
}

static int device_of(const char *name)
{
    return strcmp(name, "cpu") == 0 ? ME_MEM_CPU : ME_MEM_CUDA;
}

static const me_mem_snapshot *find_point(const tracking *t, const char *name)
{
    uint32_t count = 0;
    const me_mem_point *points = me_mem_tracker_points(t->mem, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(points[i].name, name) == 0) {
            return &points[i].snapshot;
        }
    }
    return strcmp(name, "peak") == 0 ? me_mem_tracker_peak(t->mem) : NULL;
}

static const me_mem_module *find_module(const tracking *t, const char *name)
{
    uint32_t count = 0;
    const me_mem_module *modules = me_mem_tracker_modules(t->mem, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(modules[i].fqn, name) == 0) {
            return &modules[i];
        }
    }
    fail_msg("%s: there is no module %s", t->test->name, name);
    return NULL;
}

static const me_mem_snapshot *find_state(const tracking *t, char *const *fields)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t->mem);
    const me_mem_module *m = find_module(t, fields[0]);
    const uint64_t call = number(fields[2]);
    for (uint32_t i = 0; i < labels->n_states; i++) {
        if (strcmp(labels->states[i], fields[1]) == 0) {
            assert_in_range(call, 1, m->states[i].count);
            return &m->states[i].snapshots[call - 1];
        }
    }
    fail_msg("%s: there is no state %s", t->test->name, fields[1]);
    return NULL;
}

/** In which states the attention of the checkpointed block has run again. */
static bool has_fake_bytes(const char *state)
{
    return strcmp(state, "Peak Backward") == 0 ||
           strcmp(state, "Post-Forward AC") == 0;
}

static void check_point(tracking *t, char *const *fields)
{
    const me_mem_snapshot *mine = find_point(t, fields[0]);
    assert_non_null(mine);
    const bool is_fsdp = t->test->options.is_fsdp;
    const int device = is_fsdp ? ME_MEM_CUDA : device_of(fields[1]);
    compare(t, fields[0], &mine->device[device], fields + (is_fsdp ? 1 : 2), 0);
}

static void check_state(tracking *t, char *const *fields)
{
    char why[256];
    const me_mem_snapshot *mine = find_state(t, fields);
    const bool is_fsdp = t->test->options.is_fsdp;
    const int device = is_fsdp ? ME_MEM_CUDA : device_of(fields[3]);
    (void)snprintf(why, sizeof why, "iteration %d: %s: %s", (int)t->iteration,
                   fields[0], fields[1]);
    compare(t, why, &mine->device[device], fields + (is_fsdp ? 3 : 4),
            has_fake_bytes(fields[1]) ? t->test->fake_bytes : 0);
}

static void check_module(tracking *t, char *const *fields)
{
    const me_mem_module *m = find_module(t, fields[0]);
    const uint64_t mine[] = {m->parameter_bytes, m->buffer_bytes,
                             m->input_bytes, m->output_bytes};
    for (int i = 0; i < 4; i++) {
        if (mine[i] != number(fields[1 + i])) {
            (void)fprintf(stderr,
                          "%s: %s: number %d: memest %" PRIu64 ", PyTorch %s\n",
                          t->test->name, fields[0], i, mine[i], fields[1 + i]);
            t->wrong++;
        }
    }
    t->checked++;
}

/** A line of the table, if it is of this test and iteration. */
static void check_line(tracking *t, char *line)
{
    char *fields[MAX_FIELDS];
    const int n = line[0] == '#' ? 0 : split(line, fields);
    if (n == 0 || strcmp(fields[1], t->test->name) != 0) {
        return;
    }
    char **at = fields + 2;
    if (t->test->world != NULL && strcmp(*at++, t->test->world) != 0) {
        return;
    }
    if (strcmp(fields[0], "point") == 0) {
        check_point(t, at);
    } else if (number(*at) == (uint64_t)t->iteration) {
        if (strcmp(fields[0], "module") == 0) {
            check_module(t, at + 1);
        } else {
            check_state(t, at + 1);
        }
    }
}

static me_status end(void *self, me_diag *diag)
{
    (void)diag;
    tracking *t = self;
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/trackers/%s",
                   t->table);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, file) != NULL) {
        check_line(t, line);
    }
    (void)fclose(file);
    return ME_OK;
}

static me_status keep_peak(void *self, me_diag *diag)
{
    (void)diag;
    tracking *t = self;
    t->peak = me_mem_tracker_peak(t->mem)->device[ME_MEM_CUDA].total;
    return ME_OK;
}

static void track(tracking *t)
{
    const char *sets[MAX_SETS + 1] = {NULL};
    test_job job;
    char path[PATH_BYTES];
    char world[64];
    size_t n = 0;
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/trackers/%s.cfg",
                   t->test->job);
    memcpy(sets, t->test->sets, sizeof t->test->sets);
    while (sets[n] != NULL) {
        n++;
    }
    if (t->test->world != NULL) {
        (void)snprintf(world, sizeof world, "parallel.world_size=%s",
                       t->test->world);
        sets[n] = world;
    }
    const me_watcher watcher = {
        .begin = begin, .end = t->is_peak_only ? keep_peak : end, .self = t};
    test_job_watch(path, sets, &watcher, &job);
    me_mem_tracker_destroy(t->mem);
    me_mod_tracker_destroy(t->mod);
    test_job_fini(&job);
}

/** @param rows  that must have been compared over both iterations */
static void check(const test_case *test, const char *table, int rows)
{
    int checked = 0;
    int wrong = 0;
    for (int32_t iteration = 0; iteration < 2; iteration++) {
        tracking t = {.test = test, .table = table, .iteration = iteration};
        track(&t);
        checked += t.checked;
        wrong += t.wrong;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(checked, rows);
}

/** A job without fully_shard(), of its own name in the table. */
static void check_plain(const char *name, bool is_input_inside,
                        const char *table, int rows)
{
    const test_case test = {
        .name = name,
        .job = name,
        .options = {.as_memtracker = true, .is_input_inside = is_input_inside}};
    check(&test, table, rows);
}

static void test_equivalence(void **state)
{
    (void)state;
    check_plain("mem_tracker", false, "mem_tracker.tsv", 218);
}

static void test_checkpoint(void **state)
{
    (void)state;
    check_plain("mem_tracker_checkpoint", true, "mem_tracker.tsv", 542);
}

static void test_attribution(void **state)
{
    (void)state;
    check_plain("mem_tracker_attribution", true, "mem_tracker.tsv", 91);
}

static void test_called_module(void **state)
{
    (void)state;
    check_plain("called_module", false, "called_module.tsv", 90);
}

/** A job among four ranks and two. @param names  with resharding, without
 *  @param rows  of these among four ranks */
static void check_fsdp(const char *job, const char *const *names,
                       const int *rows, uint64_t fake_bytes)
{
    for (int i = 0; i < 4; i++) {
        const test_case test = {
            .name = names[i / 2],
            .job = job,
            .sets = {i < 2 ? "torch.reshard_after_forward=true"
                           : "torch.reshard_after_forward=false"},
            .options = {.is_fsdp = true, .as_memtracker = true},
            .world = i % 2 == 0 ? "4" : "2",
            .fake_bytes = fake_bytes};
        check(&test, "fsdp2.tsv", i % 2 == 0 ? rows[i / 2] : 14);
    }
}

static void test_multi_group(void **state)
{
    (void)state;
    static const char *const names[] = {"multi_group", "multi_group_kept"};
    check_fsdp("fsdp2_multi_group", names, (const int[]){94, 94}, 0);
}

static void test_fsdp_checkpoint(void **state)
{
    (void)state;
    static const char *const names[] = {"checkpoint", "checkpoint_kept"};
    check_fsdp("fsdp2_checkpoint", names, (const int[]){130, 14}, 1024);
}

/* Modules that are not run keep their shards, and get neither gradients nor
 * Adam's state. */
static void test_fsdp_non_root(void **state)
{
    (void)state;
    test_case test = {.name = "non_root",
                      .job = "fsdp2_non_root",
                      .options = {.is_fsdp = true, .as_memtracker = true},
                      .world = "2"};
    check(&test, "fsdp2.tsv", 14);
    test.world = "4";
    check(&test, "fsdp2.tsv", 34);
    test.name = "non_root_nested";
    test.job = "fsdp2_non_root_nested";
    check(&test, "fsdp2_nested.tsv", 76);
}

typedef struct row_case {
    const char *name;
    const char *job;
    const char *sets[MAX_SETS];
    int rows; /**< as check() has them */
} row_case;

static void check_all(const row_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        test_case test = {.name = cases[i].name,
                          .job = cases[i].job,
                          .options = {.as_memtracker = true}};
        memcpy(test.sets, cases[i].sets, sizeof test.sets);
        check(&test, "autocast.tsv", cases[i].rows);
    }
}

static void test_autocast(void **state)
{
    (void)state;
    static const row_case cases[] = {
        {"autocast", "autocast", {NULL}, 137},
        {"autocast_clip", "autocast", {"optimizer.clip_grad=1"}, 38},
        {"autocast_reentrant", "autocast_reentrant", {NULL}, 129},
    };
    check_all(cases, sizeof cases / sizeof cases[0]);
}

/** What a GradScaler makes is an activation, if no optimizer's step does. */
static void test_grad_scaler(void **state)
{
    (void)state;
    static const row_case cases[] = {
        {"gs", "grad_scaler", {NULL}, 129},
        {"gs_clip", "grad_scaler", {"optimizer.clip_grad=1"}, 38},
        {"gs_fused", "grad_scaler", {"impl.optimizer=torch_fused"}, 22},
        {"gs_fused_clip",
         "grad_scaler",
         {"impl.optimizer=torch_fused", "optimizer.clip_grad=1"},
         22},
        {"gs_loop", "grad_scaler", {"impl.optimizer=torch_for_loop"}, 38},
        {"gs_sgd",
         "grad_scaler",
         {"optimizer.kind=sgd", "optimizer.sgd_momentum=1",
          "optimizer.weight_decay=0"},
         22},
    };
    check_all(cases, sizeof cases / sizeof cases[0]);
}

static void test_fsdp_autocast(void **state)
{
    (void)state;
    const test_case test = {.name = "autocast_fsdp2",
                            .job = "autocast_fsdp2",
                            .options = {.is_fsdp = true, .as_memtracker = true},
                            .world = "4"};
    check(&test, "autocast_fsdp2.tsv", 62);
}

/** The device's peak without what was there at the start: both cuBLAS
 *  workspaces and cuBLASLt's, and with a process group its barrier's byte. */
enum {
    WARM_BYTES = 68157440,
    LT_BYTES = 1048576,
    BARRIER_BYTES = 512
};

static uint64_t real_peak(const test_case *test)
{
    tracking t = {.test = test, .iteration = 1, .is_peak_only = true};
    track(&t);
    return t.peak;
}

/** What a tracker of tensors does not see is there: torch.cuda.memory_stats()'s
 *  peak of active bytes on H200. */
static void test_real(void **state)
{
    (void)state;

    static const struct {
        test_case test;
        uint64_t peak;
        uint64_t lt_bytes; /* in a process whose autograd thread had that */
    } cases[] = {
        {{.job = "mem_tracker"}, 10522624, 0},
        {{.job = "mem_tracker_checkpoint",
          .options = {.is_input_inside = true}},
         UINT64_C(3327208448),
         0},
        {{.job = "fsdp2_multi_group", .options = {.is_fsdp = true}},
         1610833408,
         0},
        {{.job = "fsdp2_multi_group",
          .sets = {"torch.reshard_after_forward=false"},
          .options = {.is_fsdp = true}},
         1745040896,
         0},
        {{.job = "fsdp2_checkpoint", .options = {.is_fsdp = true}},
         275023872,
         0},
        {{.job = "fsdp2_checkpoint",
          .sets = {"torch.reshard_after_forward=false"},
          .options = {.is_fsdp = true}},
         274023424,
         LT_BYTES},
        {{.job = "fsdp2_non_root", .options = {.is_fsdp = true}}, 436930560, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const test_case *test = &cases[i].test;
        const uint64_t barrier = test->options.is_fsdp ? BARRIER_BYTES : 0;
        assert_int_equal(real_peak(test), cases[i].peak + WARM_BYTES + barrier +
                                              cases[i].lt_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equivalence),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_attribution),
        cmocka_unit_test(test_multi_group),
        cmocka_unit_test(test_fsdp_checkpoint),
        cmocka_unit_test(test_called_module),
        cmocka_unit_test(test_fsdp_non_root),
        cmocka_unit_test(test_autocast),
        cmocka_unit_test(test_grad_scaler),
        cmocka_unit_test(test_fsdp_autocast),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
