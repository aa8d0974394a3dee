/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/flash_attention.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/view.h"
#include "support/events.h"
#include "support/test.h"
#include "tensor/autograd.h"

#include <string.h>

static void test_engine__a_size_beyond_64_bits_fails(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_diag diag = {.status = ME_OK};

    me_empty(e, "huge", ME_DTYPE_FLOAT32,
             ME_SHAPE(UINT64_C(1) << 31, UINT64_C(1) << 31, 4));
    assert_int_equal(me_engine_status(e, &diag), ME_ERR_OVERFLOW);
    assert_string_equal(diag.text,
                        "the size of a tensor of huge exceeds 64 bits");
    EXPECT_EVENTS(events, "");
}

static void test_engine__the_first_failure_counts(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_diag diag = {.status = ME_OK};

    assert_int_equal(me_engine_status(e, &diag), ME_OK);
    assert_int_equal(diag.status, ME_OK);
    me_engine_fail(e, ME_ERR_CAPACITY, "the %s one", "first");
    me_engine_fail(e, ME_ERR_INTERNAL, "the second one");
    assert_int_equal(me_engine_status(e, &diag), ME_ERR_CAPACITY);
    assert_string_equal(diag.text, "the first one");
    assert_int_equal(diag.status, ME_ERR_CAPACITY);
}

/* After a failure operations do nothing, so model code has no branches. */
static void test_engine__operations_do_nothing_after_a_failure(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *good = me_test_leaf(e, ME_SHAPE(4, 3));
    me_tensor *root = me_neg(e, good);
    (void)me_test_events_take(events);
    me_engine_fail(e, ME_ERR_INTERNAL, "planted");
    me_tensor *x = me_neg(e, good);
    x = me_rebind(e, x, me_add(e, x, good));
    x = me_mul(e, x, x);
    x = me_cast(e, x, ME_DTYPE_FLOAT32);
    x = me_dropout(e, x, 0.5);
    x = me_softmax(e, x);
    x = me_sum(e, x);
    x = me_clone(e, x);
    x = me_contiguous(e, x);
    x = me_transpose(e, x, 0, -1);
    x = me_reshape(e, x, ME_SHAPE(3, 4));
    x = me_rms_norm(e, x, good);
    x = me_layer_norm(e, x, good, good);
    x = me_cat_last(e, x, x);
    x = me_slice(e, x, -1, 0, 2);
    x = me_fused_swiglu(e, x, NULL);
    x = me_bmm(e, x, x);
    x = me_sdpa_flash(e, x, x, x, 0.1);
    me_drop(e, x);
    me_backward(e, root, root);
    me_backward(e, x, x);
    assert_null(good->grad);
    EXPECT_EVENTS(events, "");
    me_leave(e, frame, x);
    EXPECT_EVENTS(events, "-24 -24");
}

static void test_engine__strides_that_do_not_allow_a_view_fail(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_diag diag = {.status = ME_OK};

    const me_frame frame = me_enter(e);
    me_tensor *x = me_transpose(e, me_test_leaf(e, ME_SHAPE(4, 3)), 0, 1);
    me_view(e, x, ME_SHAPE(12));
    assert_int_equal(me_engine_status(e, &diag), ME_ERR_INTERNAL);
    me_leave(e, frame, NULL);
}

/** Where the last event was. */
typedef struct place {
    me_event event;
} place;

static void keep(void *self, const me_event *event)
{
    ((place *)self)->event = *event;
}

static void test_engine__events_say_where_they_happen(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    place last = {0};
    me_engine_observe(e, (me_observer){.on_event = keep, .self = &last});

    const me_module_id decoder = me_module_add(e, ME_NO_MODULE, "decoder");
    const me_module_id layer = me_module_add_index(e, decoder, 3);
    const me_module_id list = me_module_add(e, decoder, "list");
    const me_module_id in_list = me_module_add_index(e, list, 0);
    assert_string_equal(me_engine_modules(e)->modules[layer].path, "decoder.3");
    const me_frame frame = me_enter(e);
    me_iteration(e, 1);
    me_microbatch(e, 2);
    me_phase_set(e, ME_PHASE_FORWARD);
    me_category_set(e, ME_CATEGORY_ACTIVATION);
    me_stream_set(e, ME_STREAM_SIDE);
    me_module_enter(e, decoder);
    me_module_enter(e, layer);
    me_scratch(e, "probe", 7);
    assert_int_equal(last.event.kind, ME_EVENT_ALLOC);
    assert_int_equal(last.event.bytes, 7);
    assert_int_equal(last.event.iteration, 1);
    assert_int_equal(last.event.microbatch, 2);
    assert_int_equal(last.event.phase, ME_PHASE_FORWARD);
    assert_int_equal(last.event.category, ME_CATEGORY_ACTIVATION);
    assert_int_equal(last.event.stream, ME_STREAM_SIDE);
    assert_int_equal(last.event.module, layer);
    assert_string_equal(last.event.op, "probe");
    me_module_leave(e);
    assert_int_equal(last.event.kind, ME_EVENT_MODULE_LEAVE);
    assert_int_equal(me_module_current(e), decoder);

    /* A list has no forward: what follows a module of it is not in the list,
     * and the list is not left. */
    me_module_enter(e, in_list);
    me_module_leave(e);
    assert_int_equal(me_module_current(e), decoder);
    me_module_switch(e, list);
    assert_int_equal(last.event.kind, ME_EVENT_MODULE_ENTER);
    assert_int_equal(last.event.module, list);
    me_module_leave(e);
    me_module_leave(e);
    assert_int_equal(last.event.kind, ME_EVENT_MODULE_LEAVE);
    assert_int_equal(last.event.module, decoder);
    assert_int_equal(me_module_current(e), ME_NO_MODULE);
    me_leave(e, frame, NULL);
}

/* What a node saves was no temporary after all. */
static void test_engine__saved_temporaries_become_activations(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    place last = {0};

    const me_frame frame = me_enter(e);
    me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_tensor *x = me_neg(e, me_test_leaf(e, ME_SHAPE(2)));
    me_engine_observe(e, (me_observer){.on_event = keep, .self = &last});
    me_silu(e, x);
    assert_int_equal(x->storage->category, ME_CATEGORY_ACTIVATION);
    me_categorize(e, x, ME_CATEGORY_INPUT);
    assert_int_equal(last.event.kind, ME_EVENT_RECATEGORIZE);
    assert_int_equal(last.event.old_category, ME_CATEGORY_ACTIVATION);
    assert_int_equal(last.event.category, ME_CATEGORY_INPUT);
    me_leave(e, frame, NULL);
}

/* Ids of blocks are unique among the live ones and used again. */
static void test_engine__block_ids_are_used_again(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    const me_frame frame = me_enter(e);
    me_tensor *a = me_scratch(e, "a", 1);
    me_tensor *b = me_scratch(e, "b", 1);
    assert_int_not_equal(a->storage->block, b->storage->block);
    const uint32_t freed = a->storage->block;
    me_drop(e, a);
    assert_int_equal(me_scratch(e, "c", 1)->storage->block, freed);
    me_record_stream(b);
    const uint32_t late = b->storage->block;
    me_drop(e, b); /* keeps its id until it is really free */
    me_tensor *d = me_scratch(e, "d", 1);
    assert_int_equal(d->storage->block, late);
    me_leave(e, frame, NULL);
}

static void test_engine__a_muted_engine_tells_nobody(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;

    me_scratch(e, "a", 1);
    me_engine_mute(e);
    me_scratch(e, "b", 2);
    EXPECT_EVENTS(events, "+1");
}

/* Pinned blocks are powers of two: 5 bytes take 8, and 4 take 4. */
static void test_engine__what_the_host_holds(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    const me_host_memory *host = me_engine_host(e);
    assert_false(me_host_memory_is_used(host));
    me_host_hold(e, ME_HOST_PARAMETERS, 5, true);
    me_host_hold(e, ME_HOST_PARAMETERS, 4, true);
    me_host_hold(e, ME_HOST_GRADIENTS, 0, true);
    me_host_hold(e, ME_HOST_OPTIMIZER_STATE, 7, false);
    assert_true(me_host_memory_is_used(host));
    assert_int_equal(host->bytes[ME_HOST_PARAMETERS], 9);
    assert_int_equal(host->bytes[ME_HOST_GRADIENTS], 0);
    assert_int_equal(host->bytes[ME_HOST_OPTIMIZER_STATE], 7);
    assert_int_equal(host->pinned_bytes, 12);

    assert_int_equal(host->peak_bytes, 19);

    // A block that is free serves the next request of its power of two alone.
    me_host_release(e, ME_HOST_PARAMETERS, 5, true);
    me_host_hold(e, ME_HOST_GRADIENTS, 7, true);
    assert_int_equal(host->pinned_bytes, 12);
    me_host_release(e, ME_HOST_OPTIMIZER_STATE, 7, false);
    me_host_hold(e, ME_HOST_ACTIVATIONS, 3, true);
    assert_int_equal(host->pinned_bytes, 16);
    assert_int_equal(host->bytes[ME_HOST_PARAMETERS], 9);
    assert_int_equal(host->bytes[ME_HOST_GRADIENTS], 7);
    assert_int_equal(host->peak_bytes, 19);

    me_tensor *x = me_keep_on_host(e, ME_DTYPE_FLOAT32, ME_SHAPE(2, 3));
    assert_int_equal(me_bytes(x), 24);
    me_release(e, x);
    EXPECT_EVENTS(events, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_engine__a_size_beyond_64_bits_fails),
        ENGINE_TEST(test_engine__the_first_failure_counts),
        ENGINE_TEST(test_engine__operations_do_nothing_after_a_failure),
        ENGINE_TEST(test_engine__strides_that_do_not_allow_a_view_fail),
        ENGINE_TEST(test_engine__events_say_where_they_happen),
        ENGINE_TEST(test_engine__saved_temporaries_become_activations),
        ENGINE_TEST(test_engine__block_ids_are_used_again),
        ENGINE_TEST(test_engine__a_muted_engine_tells_nobody),
        ENGINE_TEST(test_engine__what_the_host_holds),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
