/* SPDX-License-Identifier: BSD-3-Clause */
/* Which tensors PyTorch asks for their devices, in its order: elements of each.
 * Lines are what a TorchDispatchMode over fake tensors of PyTorch 2.11 saw. */
#include "ops/autocast_casts.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/functional_linear.h"
#include "ops/layer_norm.h"
#include "ops/reduce.h"
#include "ops/sdpa.h"
#include "ops/view.h"
#include "support/backward.h"
#include "support/test.h"
#include "tensor/autocast.h"
#include "tensor/hooks.h"

#include <inttypes.h>
#include <stdio.h>

static const me_autocast_state bfloat16 = {.is_enabled = true,
                                           .dtype = ME_DTYPE_BFLOAT16};

/** What a test runs in. */
typedef struct setting {
    me_test_events *events;
    me_engine *e;
    me_frame frame;
    char text[512];
    size_t length;
} setting;

static void on_device_query(void *self, const me_tensor *x)
{
    setting *s = self;
    const int n =
        snprintf(s->text + s->length, sizeof s->text - s->length, "%s%" PRIu64,
                 s->length == 0 ? "" : " ", me_numel(x));
    assert_in_range(n, 1, sizeof s->text - s->length - 1);
    s->length += (size_t)n;
}

static int begin(void **state)
{
    static setting s;
    void *events = NULL;
    if (me_test_events_setup(&events) != 0) {
        return -1;
    }
    s = (setting){.events = events, .e = ((me_test_events *)events)->e};
    me_engine_hook(s.e,
                   (me_hooks){.device_query = on_device_query, .self = &s});
    s.frame = me_enter(s.e);
    *state = &s;
    return 0;
}

static int end(void **state)
{
    setting *s = *state;
    me_leave(s->e, s->frame, NULL);
    void *events = s->events;
    return me_test_events_teardown(&events);
}

/** Asked since the last call. */
static void expect(setting *s, const char *want)
{
    assert_string_equal(s->text, want);
    s->length = 0;
    s->text[0] = '\0';
}

static me_tensor *leaf(setting *s, me_dtype dtype, me_shape shape)
{
    me_tensor *x = me_empty(s->e, "leaf", dtype, shape);
    x->requires_grad = true;
    return x;
}

static me_tensor *float_leaf(setting *s, me_shape shape)
{
    return leaf(s, ME_DTYPE_FLOAT32, shape);
}

static me_tensor *half_leaf(setting *s, me_shape shape)
{
    return leaf(s, ME_DTYPE_BFLOAT16, shape);
}

static void test_asked__of_a_cast(void **state)
{
    setting *s = *state;
    me_tensor *x = half_leaf(s, ME_SHAPE(2, 3));
    const bool grad = me_grad_enable(s->e, false);
    me_cast(s->e, x, ME_DTYPE_FLOAT32);
    expect(s, "");
    me_grad_enable(s->e, grad);
    me_cast(s->e, x, ME_DTYPE_BFLOAT16);
    expect(s, "6");
    me_cast(s->e, x, ME_DTYPE_FLOAT32);
    expect(s, "6 6 6");
}

static void test_asked__of_shapes(void **state)
{
    setting *s = *state;
    me_tensor *turned =
        me_transpose(s->e, float_leaf(s, ME_SHAPE(3, 2, 4)), 0, 1);
    expect(s, "24 24 24");
    me_reshape(s->e, turned, ME_SHAPE(2, 3, 2, 2));
    expect(s, "24 24 24 24 24");
    me_reshape(s->e, turned, ME_SHAPE(24));
    expect(s, "24 24");
    me_contiguous(s->e, me_contiguous(s->e, turned));
    expect(s, "24 24");
}

static void test_asked__of_a_linear(void **state)
{
    setting *s = *state;
    me_functional_linear(s->e, float_leaf(s, ME_SHAPE(2, 3, 4)),
                         float_leaf(s, ME_SHAPE(5, 4)),
                         float_leaf(s, ME_SHAPE(5)));
    expect(s, "24 24 24 24 20 20 20 5 30 30 30");
    me_functional_linear(s->e, float_leaf(s, ME_SHAPE(3, 4)),
                         float_leaf(s, ME_SHAPE(5, 4)),
                         float_leaf(s, ME_SHAPE(5)));
    expect(s, "20 20 20 5 12 15");
    me_functional_linear(s->e, float_leaf(s, ME_SHAPE(2, 3, 4)),
                         float_leaf(s, ME_SHAPE(5, 4)), NULL);
    expect(s, "20 20 20 24 24 24 30 30");
}

static void test_asked__under_autocast(void **state)
{
    setting *s = *state;
    me_tensor *x = float_leaf(s, ME_SHAPE(2, 3, 4));
    me_tensor *weight = float_leaf(s, ME_SHAPE(5, 4));
    me_autocast_state before = me_autocast_enter(s->e, bfloat16);
    me_functional_linear(s->e, x, weight, NULL);
    me_functional_linear(s->e, x, weight, NULL); /* the weight's cast is kept */
    me_autocast_exit(s->e, before);
    expect(s, "20 20 20 20 24 24 24 24 20 20 24 24 30 30 "
              "20 24 20 20 24 24 30 30");
    before = me_autocast_enter(s->e, bfloat16);
    me_sum(s->e, float_leaf(s, ME_SHAPE(6, 5)));
    me_autocast_exit(s->e, before);
    expect(s, "30 30 1");
}

static void test_asked__of_norms(void **state)
{
    setting *s = *state;
    me_tensor *x = half_leaf(s, ME_SHAPE(3, 4));
    me_rms_norm(s->e, x, half_leaf(s, ME_SHAPE(4)));
    expect(s, "12 4 12 3");
    me_rms_norm(s->e, half_leaf(s, ME_SHAPE(3, 4)), float_leaf(s, ME_SHAPE(4)));
    expect(s, "12 12 12 12 3 3 3 12 4 12 12 12 12");
}

static void test_asked__of_a_cross_entropy(void **state)
{
    setting *s = *state;
    me_tensor *target = test_tensor(s->e, ME_DTYPE_INT64, ME_SHAPE(6));
    me_cross_entropy(s->e, half_leaf(s, ME_SHAPE(6, 5)), target);
    expect(s, "30 30 30 30 30 1");
    const me_autocast_state before = me_autocast_enter(s->e, bfloat16);
    me_cross_entropy(s->e, half_leaf(s, ME_SHAPE(6, 5)), target);
    me_autocast_exit(s->e, before);
    expect(s, "30 30 30 30 30 30 6 30 30 30 1");
}

static void test_asked__of_an_attention(void **state)
{
    setting *s = *state;
    me_tensor *qkv[3];
    for (int i = 0; i < 3; i++) {
        qkv[i] = half_leaf(s, ME_SHAPE(1, 2, 64, 8));
    }
    me_sdpa(s->e, qkv[0], qkv[1], qkv[2]);
    expect(s, "1024 1024 1024 1024 1024 1024 1024 1024 1024 "
              "1024 1024 1024 1024");
}

static void test_asked__in_place(void **state)
{
    setting *s = *state;
    me_relu_in_place(s->e, me_neg(s->e, float_leaf(s, ME_SHAPE(4, 3))));
    expect(s, "12 12 12");
}

/** The gradient goes to both, so that each leaf takes a copy. */
static void test_asked__in_a_backward(void **state)
{
    setting *s = *state;
    me_tensor *x = float_leaf(s, ME_SHAPE(4, 3));
    me_tensor *y = float_leaf(s, ME_SHAPE(4, 3));
    me_tensor *sum = me_add(s->e, x, y);
    expect(s, "12 12 12");
    me_backward(s->e, sum, me_empty_like(s->e, "gradient", sum));
    expect(s, "12 12 12 12 12 12 12 12 12 12 12 12");
}

/** `torch.autograd.grad()` of one root, and of two that lead to one another. */
static void test_asked__by_grad(void **state)
{
    setting *s = *state;
    me_tensor *x = float_leaf(s, ME_SHAPE(4, 3));
    me_tensor *a = me_neg(s->e, x);
    me_tensor *b = me_neg(s->e, a);
    const me_edge roots[] = {{a->grad_fn, a->output_nr},
                             {b->grad_fn, b->output_nr}};
    me_tensor *gradients[] = {me_empty_like(s->e, "gradient", a),
                              me_empty_like(s->e, "gradient", b)};
    me_node *leaf_node = me_leaf_accumulator(s->e, x);
    me_tensor *got = NULL;
    me_grad_request request = {
        .n_roots = 1,
        .roots = roots,
        .gradients = gradients,
        .n_inputs = 1,
        .inputs = &leaf_node,
        .gradients_out = &got,
        .retain_graph = true,
    };
    expect(s, "12 12 12");
    me_autograd_grad(s->e, &request);
    expect(s, "12 12 12 12 12 12 12");
    me_clear(s->e, &got);
    request.n_roots = 2;
    me_autograd_grad(s->e, &request);
    expect(s, "12 12 12 12 12 12 12 12 12 12 12 12 12 12 12");
    me_clear(s->e, &got);
    me_node_release(s->e, leaf_node);
}

#define ASKED_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ASKED_TEST(test_asked__of_a_cast),
        ASKED_TEST(test_asked__of_shapes),
        ASKED_TEST(test_asked__of_a_linear),
        ASKED_TEST(test_asked__under_autocast),
        ASKED_TEST(test_asked__of_norms),
        ASKED_TEST(test_asked__of_a_cross_entropy),
        ASKED_TEST(test_asked__of_an_attention),
        ASKED_TEST(test_asked__in_place),
        ASKED_TEST(test_asked__in_a_backward),
        ASKED_TEST(test_asked__by_grad),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
