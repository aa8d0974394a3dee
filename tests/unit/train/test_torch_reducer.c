/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/events.h"
#include "support/test.h"
#include "tensor/autograd.h"
#include "train/torch/torch_ddp.h"

#include <string.h>

enum {
    PARAMETERS = 3
};

/** Elements of each parameter: 40, 80 and 160 bytes. */
static const uint64_t NUMEL[PARAMETERS] = {10, 20, 40};

/** A loop whose model has three parameters and no forward of its own. */
typedef struct job {
    me_test_events *events;
    me_engine *e;
    me_communicators comm;
    me_config config;
    me_parameter parameters[PARAMETERS];
    me_parameter *list[PARAMETERS];
    me_node *used[PARAMETERS]; /**< what a forward's graph holds */
    me_layer_spec spec;
    me_layer model;
    me_loop loop;
    void *ddp;
} job;

static void set_up(job *j, me_test_events *events, me_torch_options options)
{
    *j = (job){.events = events, .e = events->e};
    j->comm.size[ME_GROUP_WORLD] = 2;
    j->comm.size[ME_GROUP_DATA] = 2;
    j->config = (me_config){.torch = options};
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        const me_shape shape = ME_SHAPE(NUMEL[i]);
        j->parameters[i] = (me_parameter){
            .name = "weight",
            .index = i,
            .tensor = me_keep(j->e, "weight", ME_CATEGORY_PARAMETER,
                              ME_DTYPE_FLOAT32, shape),
            .shape = shape,
        };
        j->parameters[i].tensor->requires_grad = true;
        j->parameters[i].tensor->parameter = &j->parameters[i];
        j->list[i] = &j->parameters[i];
    }
    j->model = (me_layer){.spec = &j->spec};
    j->loop = (me_loop){
        .e = j->e,
        .config = &j->config,
        .comm = &j->comm,
        .parameters = {.parameters = j->list, .count = PARAMETERS},
        .model = &j->model,
    };
    j->ddp = me_ddp_wrapper_row.wrap(&j->loop);
}

static void give_back(job *j)
{
    me_ddp_wrapper_row.unwrap(j->ddp);
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        me_clear(j->e, &j->parameters[i].tensor->grad);
        me_clear(j->e, &j->parameters[i].tensor);
    }
}

static void tear_down(job *j)
{
    give_back(j);
    assert_int_equal(j->events->live, 0);
}

/** Start-up is another test's. */
static void skip_set_up(job *j)
{
    (void)me_test_events_take(j->events);
}

/** A forward that uses the first @p n_used parameters. */
static void forward(job *j, uint32_t n_used, bool is_last_pass)
{
    j->loop.is_last_pass = is_last_pass;
    me_ddp_wrapper_row.pre_forward(j->ddp);
    for (uint32_t i = 0; i < n_used; i++) {
        j->used[i] = me_leaf_accumulator(j->e, j->parameters[i].tensor);
    }
    const me_frame frame = me_enter(j->e);
    me_tensor *x = me_test_leaf(j->e, ME_SHAPE(3));
    me_tensor *y = me_output(
        j->e, me_record1(j->e, &(const me_op)ME_NODE("made", NULL), x),
        me_empty(j->e, "y", ME_DTYPE_BFLOAT16, ME_SHAPE(3)));
    (void)me_ddp_wrapper_row.post_forward(j->ddp, y);
    me_leave(j->e, frame, NULL);
}

/** Gradients of the first @p n_used parameters, from the last to the first. */
static void backward(job *j, uint32_t n_used)
{
    for (uint32_t i = n_used; i > 0; i--) {
        const me_frame frame = me_enter(j->e);
        me_tensor *gradient = me_empty(j->e, "gradient", ME_DTYPE_FLOAT32,
                                       ME_SHAPE(NUMEL[i - 1]));
        me_accumulate_grad(j->e, j->parameters[i - 1].tensor, gradient);
        me_leave(j->e, frame, NULL);
        me_node_release(j->e, j->used[i - 1]);
        j->used[i - 1] = NULL;
    }
    me_ddp_wrapper_row.end_backward(j->ddp);
}

static void zero_grad(job *j)
{
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        me_clear(j->e, &j->parameters[i].tensor->grad);
    }
}

static void pass(job *j, bool is_last_pass)
{
    forward(j, PARAMETERS, is_last_pass);
    backward(j, PARAMETERS);
}

/* One bucket of 280 bytes; then, of at least 100 bytes, what comes first (160)
 * and the rest (80 and 40). The old bucket goes with the next all-reduce. */
static void test_torch_reducer__rebuilds_at_the_second_forward(void **state)
{
    job j;
    set_up(&j, *state, (me_torch_options){.bucket_bytes = 100});
    skip_set_up(&j);
    pass(&j, true);
    EXPECT_EVENTS(j.events, "+6 +6 -6 -6 +160 +80 +40 AllReduce:70");
    zero_grad(&j);
    EXPECT_EVENTS(j.events, "-40 -80 -160");
    pass(&j, true);
    EXPECT_EVENTS(j.events, "+16 Broadcast:4 +8 Broadcast:2 -8 -16 +160 +120 "
                            "+6 +6 -6 -6 +160 AllReduce:40 -280 +80 +40 "
                            "AllReduce:30");
    zero_grad(&j);
    (void)me_test_events_take(j.events);
    pass(&j, true);
    EXPECT_EVENTS(j.events, "+6 +6 -6 -6 +160 AllReduce:40 +80 +40 "
                            "AllReduce:30");
    tear_down(&j);
}

/* Each gradient goes once its bucket has it. */
static void test_torch_reducer__gradients_are_views(void **state)
{
    job j;
    set_up(&j, *state,
           (me_torch_options){.bucket_bytes = 100,
                              .gradient_as_bucket_view = true});
    skip_set_up(&j);
    pass(&j, true);
    EXPECT_EVENTS(j.events,
                  "+6 +6 -6 -6 +160 -160 +80 -80 +40 AllReduce:70 -40");
    zero_grad(&j);
    EXPECT_EVENTS(j.events, "");
    pass(&j, true);
    EXPECT_EVENTS(j.events, "+16 Broadcast:4 +8 Broadcast:2 -8 -16 +160 +120 "
                            "+6 +6 -6 -6 +160 AllReduce:40 -280 -160 +80 -80 "
                            "+40 AllReduce:30 -40");
    tear_down(&j);
}

/* Without zero_grad() between them, gradients move to the new buckets, which
 * the old one outlives. */
static void test_torch_reducer__views_move_to_new_buckets(void **state)
{
    job j;
    set_up(&j, *state,
           (me_torch_options){.bucket_bytes = 100,
                              .gradient_as_bucket_view = true});
    skip_set_up(&j);
    pass(&j, false);
    (void)me_test_events_take(j.events);
    pass(&j, true);
    EXPECT_EVENTS(j.events, "+16 Broadcast:4 +8 Broadcast:2 -8 -16 +160 +120 "
                            "+6 +6 -6 -6 +160 AllReduce:40 -280 -160 +80 -80 "
                            "+40 AllReduce:30 -40");
    zero_grad(&j);
    EXPECT_EVENTS(j.events, "");
    tear_down(&j);
}

/* In no_sync() gradients are tensors of their own until the pass that reduces. */
static void test_torch_reducer__no_sync_keeps_gradients(void **state)
{
    job j;
    set_up(&j, *state,
           (me_torch_options){.bucket_bytes = 100,
                              .gradient_as_bucket_view = true,
                              .no_sync = true});
    skip_set_up(&j);
    pass(&j, false);
    EXPECT_EVENTS(j.events, "+6 +6 -6 -6 +160 +80 +40");
    pass(&j, true);
    EXPECT_EVENTS(j.events, "+6 +6 -6 -6 +160 -160 -160 +80 -80 -80 +40 "
                            "-40 AllReduce:70 -40");
    zero_grad(&j);
    forward(&j, PARAMETERS, false);
    EXPECT_EVENTS(j.events, "+16 Broadcast:4 +8 Broadcast:2 -8 -16 +160 +120 "
                            "+6 +6 -6 -6");
    backward(&j, PARAMETERS);
    tear_down(&j);
}

/* Buckets from the last parameters to the first, for good: 160, and 80 and 40
 * bytes. What a forward did not use is ready at the first gradient. */
static void test_torch_reducer__unused_parameters(void **state)
{
    job j;
    set_up(&j, *state,
           (me_torch_options){.bucket_bytes = 100,
                              .find_unused_parameters = true});
    EXPECT_EVENTS(
        j.events,
        "+40 +80 +160 +8 +8 +8 +16 -16 AllGather:1 +48 -48 Broadcast:6 -8 -8 "
        "-8 +280 Broadcast:70 -280 +160 +120 +12");
    for (int i = 0; i < 2; i++) { /* a copy of the output takes its place */
        forward(&j, 2, true);
        EXPECT_EVENTS(j.events, "+6 +6 +6 -6 -6 -6");
        backward(&j, 2);
        EXPECT_EVENTS(j.events,
                      "+80 AllReduce:40 +40 AllReduce:30 AllReduce:3");
        assert_null(j.parameters[2].tensor->grad);
        zero_grad(&j);
        (void)me_test_events_take(j.events);
    }
    tear_down(&j);
}

/* The first backward is reduced as a whole at its end, the second shows the
 * order of gradients, and the third forward makes the buckets. */
static void test_torch_reducer__static_graph(void **state)
{
    job j;
    set_up(&j, *state,
           (me_torch_options){.bucket_bytes = 100,
                              .gradient_as_bucket_view = true,
                              .static_graph = true});
    skip_set_up(&j);
    forward(&j, 2, true);
    backward(&j, 2);
    EXPECT_EVENTS(j.events, "+6 +6 +6 -6 -6 -6 +80 +40 AllReduce:3 -40 -80 "
                            "AllReduce:70");
    zero_grad(&j);
    forward(&j, 2, true);
    backward(&j, 2);
    EXPECT_EVENTS(j.events, "+6 +6 -6 -6 +80 -80 +40 AllReduce:70 -40");
    zero_grad(&j);
    forward(&j, 2, true);
    backward(&j, 2);
    /* 80 and 40 bytes, and what is never used after them: 120, and 160 */
    EXPECT_EVENTS(j.events, "+16 Broadcast:4 +8 Broadcast:2 -8 -16 +120 +160 "
                            "+6 +6 -6 -6 +80 -80 +40 AllReduce:30 -280 "
                            "AllReduce:40 -40");
    tear_down(&j);
}

/* Two stages of a rank: what either reduces gives back the first buckets of
 * both, 120 and 160 bytes, which their process group holds. */
static void test_torch_reducer__stages_share_a_group(void **state)
{
    job j;
    set_up(&j, *state, (me_torch_options){.bucket_bytes = 100});
    me_ddp_wrapper_row.unwrap(j.ddp);
    j.loop.reducers = NULL;
    j.loop.parameters.count = 2;
    me_ddp_module *first = me_ddp_wrap(&j.loop, &j.model, 0);
    j.loop.parameters.count = 3;
    me_ddp_module *second = me_ddp_wrap(&j.loop, &j.model, 2);
    j.ddp = second;
    skip_set_up(&j);
    me_ddp_prepare_for_backward(first);
    me_ddp_prepare_for_backward(second);
    backward(&j, PARAMETERS);
    me_ddp_end_backward(first);
    EXPECT_EVENTS(j.events, "+160 AllReduce:40 +80 +40 AllReduce:30");
    zero_grad(&j);
    (void)me_test_events_take(j.events);
    me_ddp_pre_forward(first);
    me_ddp_pre_forward(second);
    EXPECT_EVENTS(j.events, "+12 Broadcast:3 +4 Broadcast:1 -4 -12 +120 "
                            "+8 Broadcast:2 +4 Broadcast:1 -4 -8 +160");
    me_ddp_prepare_for_backward(first);
    me_ddp_prepare_for_backward(second);
    backward(&j, PARAMETERS);
    EXPECT_EVENTS(j.events, "+160 AllReduce:40 -160 -120 +80 +40 AllReduce:30");
    me_ddp_fini(first);
    tear_down(&j);
}

static void expect_failure(job *j, const char *text)
{
    me_diag diag = {.status = ME_OK};
    assert_int_equal(me_engine_status(j->e, &diag), ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, text));
    me_engine_mute(j->e);
    give_back(j);
}

static void test_torch_reducer__a_gradient_must_come(void **state)
{
    job j;
    set_up(&j, *state, (me_torch_options){.bucket_bytes = 100});
    forward(&j, 2, true);
    backward(&j, 2);
    assert_int_equal(me_engine_status(j.e, NULL), ME_OK);
    me_ddp_wrapper_row.pre_forward(j.ddp);
    expect_failure(&j, "got no gradient");
}

static void test_torch_reducer__and_once(void **state)
{
    job j;
    set_up(&j, *state, (me_torch_options){.bucket_bytes = 100});
    forward(&j, PARAMETERS, true);
    backward(&j, 1);
    backward(&j, 1);
    expect_failure(&j, "twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_torch_reducer__rebuilds_at_the_second_forward),
        ENGINE_TEST(test_torch_reducer__gradients_are_views),
        ENGINE_TEST(test_torch_reducer__views_move_to_new_buckets),
        ENGINE_TEST(test_torch_reducer__no_sync_keeps_gradients),
        ENGINE_TEST(test_torch_reducer__unused_parameters),
        ENGINE_TEST(test_torch_reducer__static_graph),
        ENGINE_TEST(test_torch_reducer__stages_share_a_group),
        ENGINE_TEST(test_torch_reducer__a_gradient_must_come),
        ENGINE_TEST(test_torch_reducer__and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
