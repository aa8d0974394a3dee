/* SPDX-License-Identifier: BSD-3-Clause */
/* MemoryTracker: the operations that PyTorch's was recorded with, in their
 * order, and memory after each. */
#include "alloc/pool_observer.h"
#include "support/table.h"
#include "support/watch.h"
#include "track/memory_tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLES SOURCE_DIR "/tests/golden/trackers/"

enum {
    LINE_BYTES = 256,
    PATH_BYTES = 512,
    TABLE_OP = 3 /* column of an operation's name */
};

/** A rank's tracker, while its engine is there. */
typedef struct tracking {
    int32_t iteration;
    me_pool_observer *pool;
    me_memory_tracker *tracker;
    void (*check)(const struct tracking *t, const me_op_series *series);
    const char *name; /**< in the table, of those with several; else its own */
    uint32_t rows;    /**< that it has there */
} tracking;

static void read_pool(void *self, me_op_memory *memory_out)
{
    const me_pool *pool = me_pool_observer_pool(self);
    *memory_out = (me_op_memory){
        .allocated = me_pool_current(pool, ME_POOL_ALLOCATED_BYTES),
        .active = me_pool_current(pool, ME_POOL_ACTIVE_BYTES),
        .reserved = me_pool_current(pool, ME_POOL_RESERVED_BYTES),
    };
}

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    tracking *t = self;
    me_pool_options options = {.limit_bytes = 0};
    assert_int_equal(me_alloc_conf_parse("", diag, &options.conf), ME_OK);
    assert_int_equal(me_pool_observer_create(&options, &t->pool), ME_OK);
    me_engine_observe(e, me_pool_observer_handle(t->pool));
    t->tracker = me_memory_tracker_create(
        e, ME_NO_MODULE, t->iteration,
        &(me_op_counters){.read = read_pool, .self = t->pool}, true);
    assert_non_null(t->tracker);
    return ME_OK;
}

static me_status end(void *self, me_diag *diag)
{
    (void)diag;
    tracking *t = self;
    t->check(t, me_memory_tracker_series(t->tracker));
    return ME_OK;
}

static void track(const char *model, const char *const *sets, tracking *t)
{
    test_job job;
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/%s", model);
    const me_watcher watcher = {.begin = begin, .end = end, .self = t};
    test_job_watch(path, sets, &watcher, &job);
    me_memory_tracker_destroy(t->tracker);
    me_pool_observer_destroy(t->pool);
    test_job_fini(&job);
}

static FILE *open_table(const char *name)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/trackers/%s",
                   name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

/** Megabytes of a table, as bytes. */
static uint64_t bytes_of(const char *mb)
{
    return (uint64_t)(strtod(mb, NULL) * 1048576.0);
}

/** @p line is `operation MB-allocated MB-active`, between tabs. */
static void check_row(const me_op_row *row, const char *line)
{
    const size_t length = strcspn(line, "\t");
    const char *allocated = line + length + 1;
    const char *active = allocated + strcspn(allocated, "\t") + 1;
    if (strlen(row->name) != length || memcmp(row->name, line, length) != 0 ||
        row->memory.allocated != bytes_of(allocated) ||
        row->memory.active != bytes_of(active)) {
        fail_msg("memest %s %llu, PyTorch %s", row->name,
                 (unsigned long long)row->memory.allocated, line);
    }
    assert_true(row->memory.reserved >= row->memory.active);
}

static void check_local_model(const tracking *t, const me_op_series *s)
{
    (void)t;
    FILE *file = open_table("memory_tracker.tsv");
    char line[LINE_BYTES];
    uint32_t n = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') {
            continue;
        }
        assert_in_range(n + 1, 1, s->n_rows);
        check_row(&s->rows[n++], line);
    }
    (void)fclose(file);
    assert_int_equal(n, 29);
    assert_int_equal(s->n_markers, 2);
    assert_string_equal(s->markers[0].name, "fw_start");
    assert_int_equal(s->markers[0].at, 0);
    assert_string_equal(s->markers[1].name, "fw_bw_boundary");
    assert_int_equal(s->markers[1].at, 9);
}

static void test_local_model(void **state)
{
    (void)state;
    static const char *const sets[] = {NULL};
    tracking t = {.iteration = 0, .check = check_local_model};
    track("trackers/memory_tracker.cfg", sets, &t);
}

/** "a.b.forward.mm.default_3" is "mm.default". */
static void check_operation(const char *name, const char *want)
{
    static const char end_of_module[] = "forward.";
    const char *at = name;
    const char *next = NULL;
    while ((next = strstr(at, end_of_module)) != NULL) {
        at = next + strlen(end_of_module);
    }
    const size_t length = strlen(want);
    assert_true(strlen(at) > length + 1);
    assert_memory_equal(at, want, length);
    assert_int_equal(at[length], '_');
}

/** Reads of scalars and marks are of the loop around the step. */
static bool is_left_out(const char *name)
{
    return strstr(name, "_local_scalar_dense.") != NULL ||
           strstr(name, "_record_function_") != NULL;
}

/** Does the table have it because of fake tensors alone? Of those autograd
 *  detaches gradients. */
static bool is_of_fake_tensors(const char *op)
{
    return strncmp(op, "detach.", strlen("detach.")) == 0;
}

static uint32_t next_row(const me_op_series *s, uint32_t at)
{
    while (at < s->n_rows && is_left_out(s->rows[at].name)) {
        at++;
    }
    return at;
}

/** All operations of a step, in a table of its own. */
static void check_step(const tracking *t, const me_op_series *s)
{
    test_table table = test_table_open(t->name);
    uint32_t n = 0;
    uint32_t at = 0;
    while (test_table_next(&table)) {
        const char *op = table.fields[TABLE_OP];
        if (!is_left_out(op) && !is_of_fake_tensors(op)) {
            at = next_row(s, at);
            assert_in_range(at + 1, 1, s->n_rows);
            check_operation(s->rows[at++].name, op);
            n++;
        }
    }
    assert_int_equal(next_row(s, at), s->n_rows);
    assert_int_equal(n, t->rows);
}

/** All lines `case iteration …` of the table. */
static void check_case(const tracking *t, const me_op_series *s)
{
    FILE *file = open_table("autocast_ops.tsv");
    char line[LINE_BYTES];
    char prefix[64];
    uint32_t n = 0;
    (void)snprintf(prefix, sizeof prefix, "%s\t%d\t", t->name,
                   (int)t->iteration);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, prefix, strlen(prefix)) == 0) {
            assert_in_range(n + 1, 1, s->n_rows);
            check_row(&s->rows[n++], line + strlen(prefix));
        }
    }
    (void)fclose(file);
    assert_int_equal(n, s->n_rows);
    assert_int_equal(n, t->rows);
}

static void test_transformer(void **state)
{
    (void)state;
    static const char *const sets[] = {"optimizer.weight_decay=0", NULL};
    tracking t = {.iteration = 1,
                  .check = check_step,
                  .name = TABLES "transformer_ops.tsv",
                  .rows = 477};
    track("jobs/seed_tf.cfg", sets, &t);
}

static void test_cnn(void **state)
{
    (void)state;
    static const char *const sets[] = {NULL};
    tracking t = {.iteration = 1,
                  .check = check_step,
                  .name = TABLES "cnn_ops.tsv",
                  .rows = 62};
    track("trackers/cnn.cfg", sets, &t);
}

static void test_autocast(void **state)
{
    (void)state;
    static const char *const sets[] = {NULL};
    tracking t = {
        .iteration = 1, .check = check_case, .name = "autocast", .rows = 618};
    track("trackers/autocast.cfg", sets, &t);
}

static void test_grad_scaler(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        const char *sets[4];
        int32_t iteration;
        uint32_t rows;
    } cases[] = {
        {"gs", {NULL}, 0, 136},
        {"gs_clip", {"optimizer.clip_grad=1"}, 1, 118},
        {"gs_fused", {"impl.optimizer=torch_fused"}, 0, 112},
        {"gs_fused_clip",
         {"impl.optimizer=torch_fused", "optimizer.clip_grad=1"},
         1,
         95},
        {"gs_sgd",
         {"optimizer.kind=sgd", "optimizer.sgd_momentum=1",
          "optimizer.weight_decay=0"},
         0,
         95},
        {"gs_loop", {"impl.optimizer=torch_for_loop"}, 1, 164},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tracking t = {.iteration = cases[i].iteration,
                      .check = check_case,
                      .name = cases[i].name,
                      .rows = cases[i].rows};
        track("trackers/grad_scaler.cfg", cases[i].sets, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_model), cmocka_unit_test(test_transformer),
        cmocka_unit_test(test_cnn),         cmocka_unit_test(test_autocast),
        cmocka_unit_test(test_grad_scaler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
