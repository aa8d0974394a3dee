/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/device_observer.h"
#include "alloc/pool_observer.h"
#include "model/dtype.h"
#include "support/test.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

/** Every number is small and different, so that sums tell what is in them. */
static const me_device_card card = {
    .name = "test",
    .total_bytes = 4000 * MIB,
    .context_bytes = 100 * MIB,
    .first_kernel_bytes = 1 * MIB,
    .small_modules_bytes = 2 * MIB,
    .cublas_handle_bytes = 10 * MIB,
    .cudnn_handle_bytes = 5 * MIB,
    .nccl = {.first_communicator_bytes = 20 * MIB,
             .first_collective_bytes = 30 * MIB,
             .first_send_recv_bytes = 40 * MIB,
             .granularity_bytes = 2 * MIB,
             .allocations_per_channel = 3,
             .fixed_allocations = 2,
             .channels_size1 = 64,
             .coll_channels = 24,
             .p2p_channels_per_peer = 64,
             .has_peer_access = 1},
};

static bool no_remote(void *self, me_group_kind group, int32_t peer)
{
    (void)self;
    (void)group;
    (void)peer;
    return false;
}

static me_device_observer *make(void)
{
    const me_nccl_setup setup = me_nccl_setup_default();
    me_device_place place = {.is_remote = no_remote};
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        place.shape[kind] = (me_group_shape){2, 2};
    }
    me_device_observer *observer = NULL;
    assert_int_equal(
        me_device_observer_create(&card, &setup, &place, &observer), ME_OK);
    return observer;
}

static void tell(me_device_observer *observer, const me_event *event)
{
    const me_observer handle = me_device_observer_handle(observer);
    handle.on_event(handle.self, event);
}

static uint64_t mib(const me_device_observer *observer)
{
    return me_device_memory_bytes(me_device_observer_memory(observer)) / MIB;
}

static const me_event kernel = {.kind = ME_EVENT_ALLOC, .op = "zeros"};
static const me_event drawn = {
    .kind = ME_EVENT_ALLOC, .op = "weight", .is_drawn = true};
static const me_event workspace = {.kind = ME_EVENT_ALLOC,
                                   .op = "cublas_workspace"};
static const me_event backward = {.kind = ME_EVENT_PHASE,
                                  .phase = ME_PHASE_BACKWARD};
static const me_event reduce = {.kind = ME_EVENT_COLLECTIVE,
                                .collective = ME_COLLECTIVE_ALL_REDUCE,
                                .group = ME_GROUP_DATA,
                                .dtype = ME_DTYPE_FLOAT32,
                                .count = 1};
static const me_event lone_send = {.kind = ME_EVENT_COLLECTIVE,
                                   .collective = ME_COLLECTIVE_SEND,
                                   .group = ME_GROUP_DATA,
                                   .dtype = ME_DTYPE_FLOAT32,
                                   .is_lone = true,
                                   .peer = 1,
                                   .count = 1};

static void test_device_observer__follows_first_uses(void **state)
{
    (void)state;
    me_device_observer *o = make();
    assert_int_equal(mib(o), 100);
    tell(o, &drawn); /* needs no local memory */
    assert_int_equal(mib(o), 100);
    tell(o, &kernel);
    tell(o, &kernel);
    assert_int_equal(mib(o), 101);
    tell(o, &workspace);
    assert_int_equal(mib(o), 111);
    tell(o, &workspace); /* autograd's thread */
    tell(o, &workspace);
    assert_int_equal(mib(o), 121);
    tell(o, &backward);
    tell(o, &backward);
    assert_int_equal(mib(o), 123);
    tell(o, &reduce);
    tell(o, &reduce);
    assert_int_equal(mib(o), 123 + 20 + 30 + 196 + 288);
    tell(o, &lone_send); /* a communicator of the pair, one direction */
    assert_int_equal(mib(o), 657 + 40 + 196 + 64);
    assert_int_equal(me_device_observer_memory(o)->n_communicators, 2);
    assert_int_equal(me_device_observer_status(o, NULL), ME_OK);
    me_device_observer_destroy(o);
}

/* A handle for each host thread that runs cuDNN's operations, by PyTorch or by
 * Transformer Engine. */
static void test_device_observer__makes_cudnn_handles(void **state)
{
    (void)state;

    static const char *const ops[][4] = {
        {"convolution", "cudnn_batch_norm", "cudnn_batch_norm_backward",
         "convolution_backward"},
        {"fused_attn_fwd", "fused_attn_fwd", "fused_attn_bwd",
         "fused_attn_bwd.workspace"},
    };

    static const uint64_t want[] = {106, 106, 111, 111};
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        me_device_observer *o = make();
        tell(o, &kernel);
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
            const me_event event = {.kind = ME_EVENT_ALLOC,
                                    .op = ops[k][i],
                                    .phase = i < 2 ? ME_PHASE_FORWARD
                                                   : ME_PHASE_BACKWARD};
            tell(o, &event);
            assert_int_equal(mib(o), want[i]);
        }
        me_device_observer_destroy(o);
    }
}

static void tell_pool(void *self, uint64_t bytes, const me_event *event)
{
    me_pool_observer_set_outside(self, bytes, event);
}

/* PyTorch holds all but 500 MiB; a communicator wants more than is left. */
static void test_device_observer__nccl_finds_no_memory(void **state)
{
    (void)state;
    me_device_observer *o = make();
    me_pool_observer *pool = NULL;
    const me_pool_options options = {
        .conf = me_alloc_conf_default(),
        .device_total_bytes = card.total_bytes,
        .outside_bytes = card.context_bytes,
        .capacity_bytes = card.total_bytes - card.context_bytes,
    };
    assert_int_equal(me_pool_observer_create(&options, &pool), ME_OK);
    me_device_observer_on_growth(o, tell_pool, pool);
    const me_observer handle = me_pool_observer_handle(pool);
    const me_event block = {.kind = ME_EVENT_ALLOC, .bytes = 3400 * MIB};
    handle.on_event(handle.self, &block);
    assert_false(me_pool_observer_limit(pool).is_oom);
    tell(o, &reduce);
    const me_pool_limit end = me_pool_observer_limit(pool);
    assert_true(end.is_oom);
    assert_true(end.is_outside);
    assert_string_equal(end.op, "AllReduce");
    assert_int_equal(end.oom.tried_bytes, (20 + 30 + 196 + 288) * MIB);
    me_str text = {0};
    me_pool_observer_oom_text(pool, &text);
    assert_string_equal(me_str_text(&text), "");
    me_str_fini(&text);
    me_pool_observer_destroy(pool);
    me_device_observer_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_observer__follows_first_uses),
        cmocka_unit_test(test_device_observer__makes_cudnn_handles),
        cmocka_unit_test(test_device_observer__nccl_finds_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
