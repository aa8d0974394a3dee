/* SPDX-License-Identifier: BSD-3-Clause */
/* RuntimeEstimator: what PyTorch's said of each operation, each module and the
 * order of modules. */
#include "support/near.h"
#include "support/table.h"
#include "support/watch.h"
#include "track/runtime_estimator.h"

#include <stdlib.h>

#define TABLES  SOURCE_DIR "/tests/golden/trackers/"
#define CONFIGS SOURCE_DIR "/tests/trackers/"

/** Columns of a table of operations. */
enum {
    OP_PASS = 1,
    OP_NAME = 3,
    OP_FLOPS = 6,
    OP_BYTES = 7,
    OP_MS_A100 = 10,
    OP_MS_H100 = 11
};

/** Data sheets as PyTorch 2.11 has them. */
static const me_roofline a100 = {312.5e12, 19.5e12, 2039e9};
static const me_roofline h100 = {1979e12, 67.5e12, 3350e9};
/** What it finds out of the card that it runs on. */
static const me_roofline h200 = {535.26528e12, 33.45408e12, 4814.304e9};

/** A rank's operations, held against a table as they come. */
typedef struct listener {
    me_engine *e;
    test_table table;
    uint32_t n;
} listener;

/** Of a few thousand additions of doubles; the table has 9 digits. */
static void assert_near(double value, double want)
{
    test_assert_near(value, want, 2e-8);
}

/** What PyTorch's mode sees of fake tensors alone, and marks. */
static bool is_free(const char *op)
{
    return strncmp(op, "detach.", 7) == 0 || strstr(op, "_record_func") != NULL;
}

static void on_operation(void *self, const me_operation *operation)
{
    listener *l = self;
    if (me_iteration_get(l->e) != 1 || is_free(operation->name)) {
        return;
    }
    do {
        assert_true(test_table_next(&l->table));
    } while (is_free(l->table.fields[OP_NAME]));
    const char *const *want = l->table.fields;
    assert_string_equal(operation->name, want[OP_NAME]);
    assert_int_equal(me_is_backward(l->e), strcmp(want[OP_PASS], "bw") == 0);
    assert_int_equal(operation->flops, strtoull(want[OP_FLOPS], NULL, 10));
    const double a100_ms = strtod(want[OP_MS_A100], NULL);
    if (a100_ms > 0 &&
        me_roofline_bytes(operation) != strtoull(want[OP_BYTES], NULL, 10)) {
        fail_msg("%s: %llu bytes instead of %s", operation->name,
                 (unsigned long long)me_roofline_bytes(operation),
                 want[OP_BYTES]);
    }
    assert_near(me_roofline_ms(&a100, operation), a100_ms);
    assert_near(me_roofline_ms(&h100, operation),
                strtod(want[OP_MS_H100], NULL));
    l->n++;
}

static me_status listen(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    listener *l = self;
    l->e = e;
    me_engine_hook(e, (me_hooks){.operation = on_operation,
                                 .is_dispatch_mode = true,
                                 .self = l});
    return ME_OK;
}

static me_status end_listening(void *self, me_diag *diag)
{
    (void)diag;
    listener *l = self;
    while (test_table_next(&l->table)) {
        assert_true(is_free(l->table.fields[OP_NAME]));
    }
    return ME_OK;
}

static void test_roofline__costs_operations_as_pytorch(void **state)
{
    (void)state;
    static const char *const sets[] = {NULL};

    static const struct {
        const char *table;
        const char *config;
        uint32_t n;
    } cases[] = {
        {TABLES "transformer_ops.tsv", CONFIGS "transformer.cfg", 581},
        {TABLES "cnn_ops.tsv", CONFIGS "cnn.cfg", 62},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        listener l = {.table = test_table_open(cases[i].table)};
        test_job job;
        test_job_watch(
            cases[i].config, sets,
            &(me_watcher){.begin = listen, .end = end_listening, .self = &l},
            &job);
        assert_int_equal(l.n, cases[i].n);
        test_job_fini(&job);
    }
}

/** PyTorch's estimator on one card. */
typedef struct estimation {
    const char *model; /**< as tables call it, and */
    const char *mode;  /**< the card */
    const me_roofline *roofline;
    me_mod_tracker *mod;
    me_runtime_estimator *estimator;
} estimation;

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    estimation *s = self;
    s->mod = me_mod_tracker_create(e);
    assert_non_null(s->mod);
    s->estimator = me_runtime_estimator_create(e, s->mod, s->roofline, 1);
    assert_non_null(s->estimator);
    return ME_OK;
}

/** Times of a module that PyTorch's estimator said of a card. */
static void read_module(const estimation *s, const char *module,
                        double ms_out[2])
{
    test_table t = test_table_open(TABLES "runtime_modules.tsv");
    do {
        assert_true(test_table_next(&t));
    } while (strcmp(t.fields[0], s->model) != 0 ||
             strcmp(t.fields[1], s->mode) != 0 ||
             strcmp(t.fields[2], module) != 0);
    ms_out[0] = strtod(t.fields[3], NULL);
    ms_out[1] = strtod(t.fields[4], NULL);
    (void)fclose(t.file);
}

/** All but what queries of tensors' devices add there. */
static void check_totals(const estimation *s)
{
    double queries[2];
    double total[2];
    double all[2];
    read_module(s, "PRIM", queries);
    read_module(s, "TOTAL", total);
    read_module(s, "Global", all);
    const me_module_runtime *global =
        me_runtime_estimator_module(s->estimator, "Global");
    assert_non_null(global);
    assert_near(global->forward_ms, all[0] - queries[0]);
    assert_near(global->backward_ms, all[1] - queries[1]);
    assert_near(me_runtime_estimator_total_ms(s->estimator),
                total[0] - queries[0] - queries[1]);
}

/** Names with spaces between them, in the order of a kind of hook. */
static void check_order(const estimation *s, me_mod_event_kind kind,
                        const char *want)
{
    const me_module_order *order =
        me_runtime_estimator_order(s->estimator, kind);
    for (uint32_t i = 0; i < order->count; i++) {
        const size_t length = strcspn(want, " ");
        assert_int_equal(strlen(order->fqns[i]), length);
        assert_memory_equal(order->fqns[i], want, length);
        want += length + (want[length] == ' ');
    }
    assert_string_equal(want, "");
}

static void check_orders(const estimation *s)
{
    static const char *const names[] = {
        [ME_MOD_PRE_FORWARD] = "fwpre",
        [ME_MOD_POST_FORWARD] = "fwpost",
        [ME_MOD_PRE_BACKWARD] = "bwpre",
        [ME_MOD_POST_BACKWARD] = "bwpost",
    };

    uint32_t n = 0;
    test_table t = test_table_open(TABLES "runtime_orders.tsv");
    while (test_table_next(&t)) {
        const bool is_own = strcmp(t.fields[0], s->model) == 0;
        for (int kind = 0; is_own && kind < 4; kind++) {
            if (strcmp(t.fields[1], names[kind]) == 0) {
                check_order(s, (me_mod_event_kind)kind, t.fields[2]);
                n++;
            }
        }
    }
    assert_int_equal(n, 4);
}

static me_status end(void *self, me_diag *diag)
{
    (void)diag;
    const estimation *s = self;
    check_totals(s);
    check_orders(s);
    return ME_OK;
}

static void test_estimator__knows_totals_and_orders(void **state)
{
    (void)state;
    static const char *const sets[] = {NULL};

    static const struct {
        const char *name;
        const char *config;
    } models[] = {{"T", CONFIGS "transformer.cfg"}, {"C", CONFIGS "cnn.cfg"}};

    static const struct {
        const char *name;
        const me_roofline *roofline;
    } cards[] = {{"a100new", &a100}, {"h100new", &h100}, {"real", &h200}};

    for (size_t i = 0; i < 6; i++) {
        estimation s = {.model = models[i / 3].name,
                        .mode = cards[i % 3].name,
                        .roofline = cards[i % 3].roofline};
        test_job job;
        test_job_watch(models[i / 3].config, sets,
                       &(me_watcher){.begin = begin, .end = end, .self = &s},
                       &job);
        me_runtime_estimator_destroy(s.estimator);
        me_mod_tracker_destroy(s.mod);
        test_job_fini(&job);
    }
}

static void test_roofline__wants_a_clock_and_a_memory(void **state)
{
    (void)state;
    me_rates rates = {.multiprocessors = 108, .sm_clock = 1410e6};
    me_roofline roofline;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(me_roofline_of(&rates, "A100", &diag, &roofline),
                     ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "A100: the roofline needs rates.sm_clock_mhz and "
                        "rates.memory_gbs in the card's file");
    rates.memory_sheet = 1555.2e9;
    assert_int_equal(me_roofline_of(&rates, "A100", &diag, &roofline), ME_OK);
    assert_near(roofline.single_peak, 19.49184e12);
    assert_near(roofline.half_peak, 311.86944e12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roofline__costs_operations_as_pytorch),
        cmocka_unit_test(test_estimator__knows_totals_and_orders),
        cmocka_unit_test(test_roofline__wants_a_clock_and_a_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
