/* SPDX-License-Identifier: BSD-3-Clause */
/* SACEstimator: what PyTorch's said of the operations of a Transformer's modules,
 * and what its integer programme is told of each module. */
#include "support/near.h"
#include "support/table.h"
#include "support/watch.h"
#include "track/sac_modules.h"

#include <stdlib.h>

#define TRANSFORMER SOURCE_DIR "/tests/trackers/transformer.cfg"
#define TABLES      SOURCE_DIR "/tests/golden/trackers/"

/** The tools on a rank, and the card whose roofline they use. */
typedef struct tools {
    const me_roofline *roofline;
    me_mod_tracker *mod;
    me_mem_tracker *mem;
    me_runtime_estimator *runtime;
    me_sac_estimator *sac;
    const char *table; /**< of modules */
} tools;

/** Data sheets as PyTorch 2.11 has them. */
static const me_roofline a100 = {312.5e12, 19.5e12, 2039e9};
static const me_roofline h100 = {1979e12, 67.5e12, 3350e9};

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    tools *t = self;
    const me_mem_options options = {.as_memtracker = true, .iteration = 1};
    t->mod = me_mod_tracker_create(e);
    assert_non_null(t->mod);
    t->mem = me_mem_tracker_create(e, t->mod, &options);
    assert_non_null(t->mem);
    t->runtime = me_runtime_estimator_create(e, t->mod, t->roofline, 1);
    assert_non_null(t->runtime);
    me_runtime_estimator_count_queries(t->runtime);
    t->sac = me_sac_estimator_create(e, t->mod, t->roofline, 1);
    assert_non_null(t->sac);
    return ME_OK;
}

/** The columns of the table of operations. */
enum {
    OP_MODULE,
    OP_INDEX,
    OP_NAME,
    OP_MS,
    OP_BYTES,
    OP_VIEW,
    OP_RANDOM,
    OP_SAVED
};

/** PyTorch's tool tells storages apart by Python's ids, which come again: it
 *  took what the embeddings' sum lay in for another's that was saved. */
static bool is_saved_by_mistake(const me_sac_op *op, uint32_t at)
{
    return at == 3 && strcmp(op->name, "add") == 0;
}

static me_status check_operations(void *self, me_diag *diag)
{
    (void)diag;
    const tools *t = self;
    test_table table = test_table_open(TABLES "sac_stats.tsv");
    uint32_t n = 0;
    while (test_table_next(&table)) {
        const char *const *want = table.fields;
        const me_sac_stats *stats =
            me_sac_estimator_module(t->sac, want[OP_MODULE]);
        assert_non_null(stats);
        const uint32_t at = (uint32_t)strtoul(want[OP_INDEX], NULL, 10);
        assert_in_range(at, 0, stats->n_ops - 1);
        const me_sac_op *op = &stats->ops[at];
        assert_string_equal(op->name, want[OP_NAME]);
        test_assert_near(op->runtime_ms, strtod(want[OP_MS], NULL), 2e-8);
        assert_int_equal(op->bytes, strtoull(want[OP_BYTES], NULL, 10));
        assert_int_equal(op->is_view_like, *want[OP_VIEW] == '1');
        assert_int_equal(op->is_random, *want[OP_RANDOM] == '1');
        if (!is_saved_by_mistake(op, at)) {
            assert_int_equal(op->is_saved, *want[OP_SAVED] == '1');
        }
        n++;
    }
    assert_int_equal(n, 246);
    return ME_OK;
}

/** Run a job under all tools. */
static void run(tools *t, const char *path,
                me_status (*end)(void *self, me_diag *diag))
{
    static const char *const sets[] = {NULL};
    test_job job;
    test_job_watch(path, sets,
                   &(me_watcher){.begin = begin, .end = end, .self = t}, &job);
    me_sac_estimator_destroy(t->sac);
    me_runtime_estimator_destroy(t->runtime);
    me_mem_tracker_destroy(t->mem);
    me_mod_tracker_destroy(t->mod);
    test_job_fini(&job);
}

static void test_estimator__knows_operations(void **state)
{
    (void)state;
    tools t = {.roofline = &a100};
    run(&t, TRANSFORMER, check_operations);
}

/* Linear, then ReLU in place: as in PyTorch's test, whose two other operations
 * in place leave a model that cannot be trained. */
static me_status check_in_place(void *self, me_diag *diag)
{
    (void)diag;

    static const struct {
        const char *name;
        uint64_t bytes;
        int32_t in_place_of;
        bool is_view_like;
    } want[] = {
        {"t", 0, ME_SAC_NOT_IN_PLACE, true},
        {"addmm", 0, ME_SAC_NOT_IN_PLACE, false}, /* the last one that counts */
        {"relu_", 512, 1, false},
    };

    const tools *t = self;
    const me_sac_stats *stats = me_sac_estimator_module(t->sac, "Sequential.2");
    assert_non_null(stats);
    assert_int_equal(stats->n_ops, sizeof want / sizeof want[0]);
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        const me_sac_op *op = &stats->ops[i];
        assert_string_equal(op->name, want[i].name);
        assert_int_equal(op->bytes, want[i].bytes);
        assert_int_equal(op->in_place_of, want[i].in_place_of);
        assert_int_equal(op->is_view_like, want[i].is_view_like);
        assert_false(op->is_random);
    }
    return ME_OK;
}

static void test_estimator__groups_what_is_in_place(void **state)
{
    (void)state;
    tools t = {.roofline = &a100};
    run(&t, SOURCE_DIR "/tests/trackers/memory_tracker.cfg", check_in_place);
}

/** The columns of a table of modules. */
enum {
    MOD_FQN,
    MOD_PARAM,
    MOD_GRAD,
    MOD_GRAD_TOTAL,
    MOD_ACT_FW,
    MOD_ACT_BW,
    MOD_ACT_GRAD,
    MOD_ACT_TOTAL,
    MOD_INPUT,
    MOD_OUTPUT,
    MOD_FW_MS,
    MOD_BW_MS,
    MOD_IS_LEAF,
    MOD_SAC_MS,
    MOD_SAC_BYTES,
    MOD_SEGMENTS,
    MOD_SLOPES,
    MOD_INTERCEPTS,
    MOD_BREAKS,
    MOD_PRE,
    MOD_POST,
    TOKENS_BYTES = 8 * 1024 * 8
};

static uint64_t bytes_of(const char *text)
{
    return (uint64_t)strtoll(text, NULL, 10);
}

/** Numbers with commas between them. */
static void check_list(const double *values, uint32_t count, const char *want)
{
    for (uint32_t i = 0; i < count; i++) {
        char *end = NULL;
        test_assert_near(values[i], strtod(want, &end), 1e-6);
        want = end + (*end == ',');
    }
}

/** Through the four points of attention's curve many lines go, and PyTorch's
 *  fit takes some. */
static bool is_fit_exactly(const char *fqn)
{
    const char *dot = strrchr(fqn, '.');
    return dot != NULL && strcmp(dot, ".attention") == 0;
}

static void check_module(const me_sac_module *m, const char *const *want)
{
    assert_string_equal(m->fqn, want[MOD_FQN]);
    assert_int_equal(m->param_bytes, bytes_of(want[MOD_PARAM]));
    assert_int_equal(m->grad_bytes, bytes_of(want[MOD_GRAD]));
    assert_int_equal(m->grad_total_bytes, bytes_of(want[MOD_GRAD_TOTAL]));
    assert_int_equal(m->act_fw_bytes, bytes_of(want[MOD_ACT_FW]));
    assert_int_equal(m->act_bw_bytes, bytes_of(want[MOD_ACT_BW]));
    assert_int_equal(m->act_grad_bytes, bytes_of(want[MOD_ACT_GRAD]));
    assert_int_equal(m->act_total_bytes, bytes_of(want[MOD_ACT_TOTAL]));
    if (m->input_bytes !=
        TOKENS_BYTES) { /* which PyTorch's test did not name */
        assert_int_equal(m->input_bytes, bytes_of(want[MOD_INPUT]));
    }
    assert_int_equal(m->output_bytes, bytes_of(want[MOD_OUTPUT]));
    test_assert_near(m->fw_ms, strtod(want[MOD_FW_MS], NULL), 1e-12);
    test_assert_near(m->bw_ms, strtod(want[MOD_BW_MS], NULL), 1e-12);
    assert_int_equal(m->is_leaf, *want[MOD_IS_LEAF] == '1');
    test_assert_near(m->sac_ms, strtod(want[MOD_SAC_MS], NULL), 1e-12);
    assert_int_equal(m->sac_bytes, bytes_of(want[MOD_SAC_BYTES]));
    assert_int_equal(m->n_segments, bytes_of(want[MOD_SEGMENTS]));
    if (!is_fit_exactly(m->fqn)) {
        check_list(m->slopes, m->n_segments, want[MOD_SLOPES]);
        check_list(m->intercepts, m->n_segments, want[MOD_INTERCEPTS]);
    }
    assert_int_equal(m->fw_pre_order, bytes_of(want[MOD_PRE]));
    assert_int_equal(m->fw_post_order, bytes_of(want[MOD_POST]));
}

static me_status check_modules(void *self, me_diag *diag)
{
    const tools *t = self;
    me_sac_graph *graph = NULL;
    assert_int_equal(
        me_sac_modules_collect(t->mem, t->runtime, t->sac, diag, &graph),
        ME_OK);
    test_table table = test_table_open(t->table);
    uint32_t n = 0;
    while (test_table_next(&table)) {
        assert_in_range(n, 0, graph->n_modules - 1);
        check_module(&graph->modules[n++], table.fields);
    }
    assert_int_equal(n, graph->n_modules);
    me_sac_graph_destroy(graph);
    return ME_OK;
}

static void test_modules__are_collected(void **state)
{
    (void)state;
    tools cases[] = {
        {.roofline = &a100, .table = TABLES "sac_ilp_a100new.tsv"},
        {.roofline = &h100, .table = TABLES "sac_ilp_h100new.tsv"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run(&cases[i], TRANSFORMER, check_modules);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimator__knows_operations),
        cmocka_unit_test(test_estimator__groups_what_is_in_place),
        cmocka_unit_test(test_modules__are_collected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
