/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of fake tensors' devices: how many come after each operation, and of
 * how many bytes, as PyTorch's RuntimeEstimator saw them. */
#include "support/table.h"
#include "support/watch.h"
#include "track/runtime_estimator.h"

#include <math.h>
#include <stdlib.h>

#define TABLES SOURCE_DIR "/tests/golden/trackers/"

/** Columns of a table of operations. */
enum {
    OP_NAME = 3,
    OP_QUERIES = 12,
    OP_QUERY_BYTES = 13
};

/** A step is a function, whose output is gone when it ends. */
static const char *const in_function[] = {"torch.keeps_last_output=false",
                                          NULL};

/** What was asked since an operation. */
typedef struct queries {
    uint64_t count;
    uint64_t bytes;
} queries;

/** A rank's operations, held against a table as they come. */
typedef struct listener {
    me_engine *e;
    test_table table;
    char last[96]; /**< the operation that queries come after */
    queries told;
    queries wanted;
    uint32_t n_ops;
    queries total;
} listener;

/** What PyTorch's mode sees of fake tensors alone, and marks: queries after it
 *  count for the operation before. */
static bool is_free(const char *op)
{
    return strncmp(op, "detach.", 7) == 0 || strstr(op, "_record_func") != NULL;
}

static void check_queries(listener *l)
{
    if (l->told.count != l->wanted.count || l->told.bytes != l->wanted.bytes) {
        fail_msg("after %s, operation %u: %llu queries of %llu bytes instead "
                 "of %llu of %llu",
                 l->last, l->n_ops, (unsigned long long)l->told.count,
                 (unsigned long long)l->told.bytes,
                 (unsigned long long)l->wanted.count,
                 (unsigned long long)l->wanted.bytes);
    }
    l->total.count += l->told.count;
    l->total.bytes += l->told.bytes;
    l->told = (queries){0, 0};
    l->wanted = (queries){0, 0};
}

/** Queries after the table's line. */
static void want_line(listener *l)
{
    l->wanted.count += strtoull(l->table.fields[OP_QUERIES], NULL, 10);
    l->wanted.bytes += strtoull(l->table.fields[OP_QUERY_BYTES], NULL, 10);
}

/** The table's next operation that is told here too. @return false: none */
static bool next_op(listener *l)
{
    while (test_table_next(&l->table)) {
        if (!is_free(l->table.fields[OP_NAME])) {
            return true;
        }
        want_line(l);
    }
    return false;
}

static bool is_on(const listener *l)
{
    return me_iteration_get(l->e) == 1;
}

static void on_operation(void *self, const me_operation *operation)
{
    listener *l = self;
    if (!is_on(l) || is_free(operation->name)) {
        return;
    }
    const bool is_there = next_op(l);
    check_queries(l);
    assert_true(is_there);
    assert_string_equal(operation->name, l->table.fields[OP_NAME]);
    want_line(l);
    (void)snprintf(l->last, sizeof l->last, "%s", operation->name);
    l->n_ops++;
}

static void on_device_query(void *self, const me_tensor *x)
{
    listener *l = self;
    if (is_on(l)) {
        l->told.count++;
        l->told.bytes += me_roofline_tensor_bytes(x);
    }
}

static me_status listen(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    listener *l = self;
    l->e = e;
    me_engine_hook(e, (me_hooks){.operation = on_operation,
                                 .device_query = on_device_query,
                                 .is_dispatch_mode = true,
                                 .self = l});
    return ME_OK;
}

static me_status end_listening(void *self, me_diag *diag)
{
    (void)diag;
    listener *l = self;
    assert_false(next_op(l));
    check_queries(l);
    return ME_OK;
}

/** A model and its table, which begins with the first operation: what is asked
 *  before that stands here. */
typedef struct model {
    const char *config;
    const char *table;
    queries first;
    uint32_t n_ops;
    uint64_t n_queries;
} model;

static void test_queries__follow_operations_as_in_pytorch(void **state)
{
    (void)state;
    static const model models[] = {
        {SOURCE_DIR "/tests/trackers/transformer.cfg",
         TABLES "transformer_ops.tsv",
         {1, 4 * 8192 * 768},
         581,
         1583},
        {SOURCE_DIR "/tests/trackers/cnn.cfg",
         TABLES "cnn_ops.tsv",
         {2, 4 * (2400 + 32)},
         62,
         204},
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const model *m = &models[i];
        listener l = {.table = test_table_open(m->table),
                      .last = "the begin",
                      .wanted = m->first};
        test_job job;
        test_job_watch(
            m->config, in_function,
            &(me_watcher){.begin = listen, .end = end_listening, .self = &l},
            &job);
        assert_int_equal(l.n_ops, m->n_ops);
        assert_int_equal(l.total.count, m->n_queries);
        test_job_fini(&job);
    }
}

/** A rank's queries in all. */
typedef struct counter {
    me_engine *e;
    queries total;
} counter;

static void count_query(void *self, const me_tensor *x)
{
    counter *c = self;
    if (me_iteration_get(c->e) == 1) {
        c->total.count++;
        c->total.bytes += me_roofline_tensor_bytes(x);
    }
}

static me_status count(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    counter *c = self;
    c->e = e;
    me_engine_hook(e, (me_hooks){.device_query = count_query,
                                 .is_dispatch_mode = true,
                                 .self = c});
    return ME_OK;
}

static me_status check_counter(void *self, me_diag *diag)
{
    (void)diag;
    const counter *c = self;
    assert_int_equal(c->total.count, 1583 - 52);
    assert_int_equal(c->total.bytes, UINT64_C(30568034584));
    return ME_OK;
}

/** An output that stays keeps the graph of the step before, and that the leaves'
 *  AccumulateGrads: none of the 52 parameters is asked again. Measured so. */
static void test_queries__are_fewer_while_a_graph_lives(void **state)
{
    (void)state;
    static const char *const sets[] = {"torch.keeps_last_output=true", NULL};
    counter c = {.e = NULL};
    test_job job;
    test_job_watch(
        SOURCE_DIR "/tests/trackers/transformer.cfg", sets,
        &(me_watcher){.begin = count, .end = check_counter, .self = &c}, &job);
    test_job_fini(&job);
}

/** PyTorch's estimator on one card. */
typedef struct estimation {
    const char *mode; /**< as tables call the card */
    me_roofline roofline;
    me_mod_tracker *mod;
    me_runtime_estimator *estimator;
} estimation;

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    estimation *s = self;
    s->mod = me_mod_tracker_create(e);
    assert_non_null(s->mod);
    s->estimator = me_runtime_estimator_create(e, s->mod, &s->roofline, 1);
    assert_non_null(s->estimator);
    me_runtime_estimator_count_queries(s->estimator);
    return ME_OK;
}

/** Of a few thousand additions of doubles; the table has 9 digits. */
static void assert_near(const char *module, double value, const char *text)
{
    const double want = strtod(text, NULL);
    if (fabs(value - want) > 2e-8 * fabs(want)) {
        fail_msg("%s: %.10g instead of %s", module, value, text);
    }
}

/** A line of the table: a module's forward and backward, or all in one. */
static void check_line(const estimation *s, const char *const *fields)
{
    const char *name = fields[2];
    if (strcmp(name, "TOTAL") == 0) {
        assert_near(name, me_runtime_estimator_total_ms(s->estimator),
                    fields[3]);
        return;
    }
    const me_module_runtime *module =
        me_runtime_estimator_module(s->estimator, name);
    assert_non_null(module);
    assert_near(name, module->forward_ms, fields[3]);
    assert_near(name, module->backward_ms, fields[4]);
}

static me_status end(void *self, me_diag *diag)
{
    (void)diag;
    const estimation *s = self;
    uint32_t n = 0;
    test_table t = test_table_open(TABLES "runtime_modules.tsv");
    while (test_table_next(&t)) {
        if (strcmp(t.fields[0], "T") == 0 &&
            strcmp(t.fields[1], s->mode) == 0 &&
            strcmp(t.fields[2], "PRIM") != 0) {
            check_line(s, t.fields);
            n++;
        }
    }
    assert_int_equal(n, 64);
    return ME_OK;
}

static void test_estimator__knows_modules_with_queries(void **state)
{
    (void)state;
    estimation cases[] = {
        {"a100new", {312.5e12, 19.5e12, 2039e9}, NULL, NULL},
        {"h100new", {1979e12, 67.5e12, 3350e9}, NULL, NULL},
        {"real", {535.26528e12, 33.45408e12, 4814.304e9}, NULL, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        estimation *s = &cases[i];
        test_job job;
        test_job_watch(
            SOURCE_DIR "/tests/trackers/transformer.cfg", in_function,
            &(me_watcher){.begin = begin, .end = end, .self = s}, &job);
        me_runtime_estimator_destroy(s->estimator);
        me_mod_tracker_destroy(s->mod);
        test_job_fini(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queries__follow_operations_as_in_pytorch),
        cmocka_unit_test(test_queries__are_fewer_while_a_graph_lives),
        cmocka_unit_test(test_estimator__knows_modules_with_queries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
