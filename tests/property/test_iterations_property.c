/* SPDX-License-Identifier: BSD-3-Clause */
/* Why two iterations are simulated: the first makes the optimizer's state, and
 * from the second on they all do the same. With a dynamic loss scale that holds
 * of the iterations that skip the optimizer, and of those in which it steps. */
#include "base/alloc.h"
#include "config/options.h"
#include "run/program.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    ITERATIONS = 4
};

/** What an event does, without the ids of blocks and the time. */
typedef struct step {
    const char *op;
    uint64_t bytes;
    uint64_t count;
    uint32_t module;
    int32_t microbatch;
    uint8_t kind;
    uint8_t category;
    uint8_t phase;
    uint8_t stream;
} step;

/** The steps of each iteration, up to where the next one begins. */
typedef struct recording {
    step *steps;
    size_t n_steps;
    size_t capacity;
    size_t begins[2 * ITERATIONS];
    size_t n_iterations;
} recording;

static void on_event(void *self, const me_event *event)
{
    recording *r = self;
    if (event->kind == ME_EVENT_ITERATION) {
        assert_true(r->n_iterations < 2 * ITERATIONS);
        r->begins[r->n_iterations++] = r->n_steps;
    }
    if (event->kind == ME_EVENT_POINT || event->kind == ME_EVENT_ITERATION) {
        return; /* their names count */
    }
    if (r->n_steps == r->capacity) {
        r->capacity = r->capacity == 0 ? 4096 : r->capacity * 2;
        r->steps =
            me_realloc(r->steps, r->capacity, sizeof *r->steps, "recording");
        assert_non_null(r->steps);
    }
    r->steps[r->n_steps++] = (step){
        .op = event->op == NULL ? "" : event->op,
        .bytes = event->bytes,
        .count = event->count,
        .module = event->module,
        .microbatch = event->microbatch,
        .kind = (uint8_t)event->kind,
        .category = event->category,
        .phase = event->phase,
        .stream = event->stream,
    };
}

static bool is_equal(const step *a, const step *b)
{
    return strcmp(a->op, b->op) == 0 && a->bytes == b->bytes &&
           a->count == b->count && a->module == b->module &&
           a->microbatch == b->microbatch && a->kind == b->kind &&
           a->category == b->category && a->phase == b->phase &&
           a->stream == b->stream;
}

static size_t end_of(const recording *r, size_t iteration)
{
    return iteration + 1 < r->n_iterations ? r->begins[iteration + 1]
                                           : r->n_steps;
}

/** The first step of an iteration that the iteration @p second does not do, or
 *  the number of steps where there is none. */
static size_t first_difference(const recording *r, size_t second,
                               size_t iteration)
{
    const size_t n = end_of(r, second) - r->begins[second];
    const step *a = &r->steps[r->begins[second]];
    const step *b = &r->steps[r->begins[iteration]];
    size_t s = 0;
    while (s < n && r->begins[iteration] + s < r->n_steps &&
           is_equal(&a[s], &b[s])) {
        s++;
    }
    return s;
}

/** The ITERATIONS from @p first on do as the second of them does. */
static void assert_repeats(const char *job, const recording *r, size_t first)
{
    const size_t second = first + 1;
    const size_t n = end_of(r, second) - r->begins[second];
    assert_true(n > 100);
    for (size_t i = second + 1; i < first + ITERATIONS; i++) {
        const size_t same = first_difference(r, second, i);
        if (same != n || end_of(r, i) - r->begins[i] != n) {
            fail_msg("%s: iteration %zu repeats %zu of the %zu steps of "
                     "iteration %zu, then differs",
                     job, i, same, n, second);
        }
    }
}

static void run_rank(const char *job, const me_plan *plan, int32_t rank)
{
    const me_card card = {.multiprocessors = 132,
                          .threads_per_multiprocessor = 2048,
                          .cublas_workspace_bytes = UINT64_C(32) << 20};
    me_engine *engine = NULL;
    me_program program;
    me_diag diag = {0};
    recording r = {.steps = NULL};
    assert_int_equal(me_engine_create(&card, &engine), ME_OK);
    assert_int_equal(me_program_init(plan, rank, &program), ME_OK);
    me_engine_observe(engine, (me_observer){.on_event = on_event, .self = &r});
    me_program_run(engine, &program);
    assert_int_equal(me_engine_status(engine, NULL), ME_OK);
    assert_int_equal(me_engine_status(engine, &diag), ME_OK);
    assert_int_equal(r.n_iterations,
                     me_config_iterations(plan->config, ITERATIONS));
    for (size_t first = 0; first < r.n_iterations; first += ITERATIONS) {
        assert_repeats(job, &r, first);
    }
    me_free(r.steps);
    me_program_fini(&program);
    me_engine_destroy(engine);
}

/** Eight layers, and what is set on them, blanks between the assignments. */
static me_config *job_with(const char *assignments)
{
    static const char small[] =
        "model.num_layers=8 model.hidden_size=64 model.num_attention_heads=4 "
        "model.seq_length=32 model.vocab_size=100 train.micro_batch_size=2 "
        "train.global_batch_size=16 train.params_dtype=bfloat16 "
        "train.iterations=4 train.eval_iters=0 ";
    char text[1024];
    assert_true((size_t)snprintf(text, sizeof text, "%s%s", small,
                                 assignments) < sizeof text);
    me_config *config = me_config_create();
    assert_non_null(config);
    for (char *c = text; *c != '\0';) {
        const size_t length = strcspn(c, " ");
        const bool is_last = c[length] == '\0';
        c[length] = '\0';
        me_diag diag = {0};
        const me_status status = me_config_set_assignment(config, c, &diag);
        assert_string_equal(diag.text, "");
        assert_int_equal(status, ME_OK);
        c += length + !is_last;
    }
    return config;
}

static void test_iterations__repeat_the_second(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "",
        "model.activation=swiglu "
        "model.add_bias_linear=false model.normalization=RMSNorm "
        "model.position_embedding_type=rope model.num_query_groups=2",
        "train.params_dtype=float32 optimizer.kind=sgd",
        "train.params_dtype=float16",
        "train.params_dtype=float16 train.loss_scale=1024",
        "parallel.tensor=2 parallel.sequence=true",
        "parallel.pipeline=2",
        "parallel.pipeline=2 parallel.virtual_pipeline=2",
        "parallel.pipeline=4 "
        "parallel.pipeline_layout=E|t*8||L",
        "parallel.pipeline=4 parallel.virtual_pipeline=2 "
        "parallel.overlap_p2p_comm=false",
        "parallel.world_size=4 optimizer.distributed=true",
        "parallel.world_size=4 optimizer.distributed=true "
        "optimizer.overlap_grad_reduce=true "
        "optimizer.overlap_param_gather=true",
        "parallel.world_size=4 parallel.pipeline=2 parallel.virtual_pipeline=2 "
        "parallel.overlap_p2p_comm_warmup_flush=true "
        "optimizer.distributed=true optimizer.overlap_grad_reduce=true "
        "optimizer.overlap_param_gather=true "
        "optimizer.overlap_param_gather_with_optimizer_step=true",
        "recompute.granularity=full recompute.num_layers=2",
        "recompute.granularity=selective",
        "parallel.world_size=8 parallel.tensor=2 "
        "parallel.pipeline=2 parallel.virtual_pipeline=2 "
        "parallel.sequence=true optimizer.distributed=true "
        "recompute.granularity=full recompute.num_layers=1",
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        me_config *config = job_with(jobs[i]);
        me_diag diag = {0};
        me_plan *plan = NULL;
        if (me_config_finish(config, 1, &diag) != ME_OK ||
            me_plan_create(config, true, &diag, &plan) != ME_OK) {
            fail_msg("%s: %s", jobs[i], diag.text);
        }
        for (int32_t c = 0; c < plan->n_classes; c++) {
            run_rank(jobs[i], plan, me_plan_representative(plan, c));
        }
        me_plan_destroy(plan);
        me_config_destroy(config);
    }
}

static void test_iterations__are_an_option(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    assert_non_null(config);
    assert_int_equal(config->train.iterations, 2);
    static const char *const wrong[] = {"0", "1", "17", "two"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        me_diag diag = {0};
        assert_int_equal(
            me_config_set(config, "train.iterations", wrong[i], &diag),
            ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, "a whole number from 2 to 16"));
    }
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iterations__repeat_the_second),
        cmocka_unit_test(test_iterations__are_an_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
