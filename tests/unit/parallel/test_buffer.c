/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "llama.h"
#include "parallel/buffer.h"
#include "support/test.h"

static me_buffer *make_buffer(const me_buffer_param *params, uint32_t n_params,
                              const me_buffer_rules *rules)
{
    me_buffer *buffer = NULL;
    me_diag diag = {0};
    assert_int_equal(me_buffer_create(params, n_params, rules, &diag, &buffer),
                     ME_OK);
    return buffer;
}

/** g4_dp4_do: one bucket whose end needs no padding. */
static void test_buffer__one_bucket_without_overlap(void **state)
{
    (void)state;
    const me_buffer_rules rules = {.shard_ranks = 4, .is_distributed = true};
    me_buffer *buffer = make_buffer(me_llama, ME_LLAMA_PARAMS, &rules);
    assert_int_equal(buffer->numel, 110633984);
    assert_int_equal(buffer->n_buckets, 1);
    assert_int_equal(buffer->buckets[0].unpadded_numel, 110633984);
    assert_int_equal(buffer->n_slots, ME_LLAMA_PARAMS);
    assert_int_equal(buffer->slots[0].param, ME_LLAMA_OUTPUT);
    assert_int_equal(buffer->slots[1].param, ME_LLAMA_FINAL_NORM);
    assert_int_equal(buffer->slots[2].param, me_llama_index(3, 5));
    assert_int_equal(buffer->slots[26].param, 0);
    assert_int_equal(buffer->slots[26].start, 110633984 - 32768000);
    me_buffer_destroy(buffer);
}

/** g2_dp2_do_overlap: bucket 0 closes after layer 3's first feed-forward. */
static void test_buffer__buckets_with_overlap(void **state)
{
    (void)state;
    const me_bucket_choice choice = {.overlaps_reduction = true,
                                     .shard_ranks = 2};
    const me_buffer_rules rules = {.shard_ranks = 2,
                                   .is_distributed = true,
                                   .bucket_numel = me_bucket_numel(&choice)};
    me_buffer *buffer = make_buffer(me_llama, ME_LLAMA_PARAMS, &rules);
    assert_int_equal(buffer->n_buckets, 2);
    assert_int_equal(buffer->buckets[0].start, 0);
    assert_int_equal(buffer->buckets[0].end, 41419776);
    assert_int_equal(buffer->buckets[0].n_slots, 4);
    assert_int_equal(buffer->slots[3].param, me_llama_index(3, 4));
    assert_int_equal(buffer->buckets[1].start, 41419776);
    assert_int_equal(buffer->buckets[1].end, 110633984);
    assert_int_equal(buffer->buckets[1].first_slot, 4);
    assert_int_equal(buffer->buckets[1].n_slots, 23);
    me_buffer_destroy(buffer);
}

/**
 * By hand, d = 3, so ends are multiples of 384. Going up: 10 at 0; 100 at 64,
 * end 164; a shared one of 200 would start at 192, where the first bucket is
 * closed: 384. It ends at 584, its bucket at 768. Then 5 at 768: 1152.
 */
static void test_buffer__shared_embedding_has_its_own_bucket(void **state)
{
    (void)state;
    const me_buffer_param params[] = {
        {5, false}, {200, true}, {100, false}, {10, false}};
    const me_buffer_rules rules = {.shard_ranks = 3, .is_distributed = true};
    static const me_slot slots[] = {
        {3, 0, 0, 10}, {2, 0, 64, 100}, {1, 1, 384, 200}, {0, 2, 768, 5}};
    static const me_bucket buckets[] = {
        {0, 384, 192, 0, 2}, {384, 768, 200, 2, 1}, {768, 1152, 5, 3, 1}};
    me_buffer *buffer = make_buffer(params, 4, &rules);
    assert_int_equal(buffer->numel, 1152);
    assert_int_equal(buffer->n_buckets, 3);
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(&buffer->slots[i], &slots[i], sizeof slots[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(&buffer->buckets[i], &buckets[i],
                            sizeof buckets[i]);
    }
    me_buffer_destroy(buffer);
}

/** Neither alignment nor buckets for embeddings, but buckets by size. */
static void test_buffer__without_distributed_optimizer(void **state)
{
    (void)state;
    const me_buffer_param params[] = {{5, false}, {200, true}, {7, false}};
    me_buffer_rules rules = {.shard_ranks = 3};
    me_buffer *buffer = make_buffer(params, 3, &rules);
    assert_int_equal(buffer->numel, 212);
    assert_int_equal(buffer->n_buckets, 1);
    assert_int_equal(buffer->slots[1].start, 7);
    me_buffer_destroy(buffer);
    rules.bucket_numel = 207;
    buffer = make_buffer(params, 3, &rules);
    assert_int_equal(buffer->numel, 212);
    assert_int_equal(buffer->n_buckets, 2);
    assert_int_equal(buffer->buckets[0].end, 207);
    assert_int_equal(buffer->slots[2].start, 207);
    me_buffer_destroy(buffer);
}

static void test_buffer__pads_for_bandwidth(void **state)
{
    (void)state;
    const me_buffer_param params[] = {{1, false}};
    const me_buffer_rules rules = {
        .shard_ranks = 6, .is_distributed = true, .pads_for_bandwidth = true};
    assert_int_equal(me_bucket_divisor(&rules), 196608);
    me_buffer *buffer = make_buffer(params, 1, &rules);
    assert_int_equal(buffer->numel, 196608);
    me_buffer_destroy(buffer);
}

static void test_buffer__bucket_size_rule(void **state)
{
    (void)state;

    static const struct {
        me_bucket_choice choice;
        uint64_t numel;
    } cases[] = {
        {{true, 0, 0, 2, 0, false}, 40000000},
        {{true, 0, 0, 64, 0, false}, 64000000},
        {{true, 0, 0, 16384, 0, false}, UINT64_C(16384000000)},
        {{true, 0, 0, 64, 1000, false}, 1000},
        {{true, 1, 0, 64, 1000, false}, 0},
        {{true, 0, 1, 64, 1000, false}, 0},
        {{false, 0, 0, 64, 1000, false}, 0},
        {{true, 0, 0, 64, 1000, true}, 0},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(me_bucket_numel(&cases[i].choice), cases[i].numel);
    }
}

static void test_buffer__no_parameters(void **state)
{
    (void)state;
    const me_buffer_rules rules = {.shard_ranks = 4, .is_distributed = true};
    me_buffer *buffer = make_buffer(NULL, 0, &rules);
    assert_int_equal(buffer->numel, 0);
    assert_int_equal(buffer->n_buckets, 0);
    me_buffer_destroy(buffer);
}

static void test_buffer__refuses_nonsense(void **state)
{
    (void)state;
    const me_buffer_param params[] = {{UINT64_MAX - 10, false}, {64, false}};
    me_buffer_rules rules = {.shard_ranks = 1, .is_distributed = true};
    me_buffer *buffer = NULL;
    me_diag diag = {0};
    assert_int_equal(me_buffer_create(params, 2, &rules, &diag, &buffer),
                     ME_ERR_OVERFLOW);
    rules.shard_ranks = 0;
    assert_int_equal(me_buffer_create(params, 2, &rules, &diag, &buffer),
                     ME_ERR_CONFIG);
    assert_null(buffer);
}

static void test_buffer__without_memory(void **state)
{
    (void)state;
    const me_buffer_rules rules = {.shard_ranks = 1, .is_distributed = true};
    me_status status = ME_ERR_NOMEM;
    uint64_t nth = 0;
    me_buffer *buffer = NULL;
    while (status == ME_ERR_NOMEM) {
        me_alloc_fail_at(++nth);
        status =
            me_buffer_create(me_llama, ME_LLAMA_PARAMS, &rules, NULL, &buffer);
    }
    me_alloc_fail_at(0);
    assert_int_equal(status, ME_OK);
    assert_int_equal(nth, 4);
    me_buffer_destroy(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffer__one_bucket_without_overlap),
        cmocka_unit_test(test_buffer__buckets_with_overlap),
        cmocka_unit_test(test_buffer__shared_embedding_has_its_own_bucket),
        cmocka_unit_test(test_buffer__without_distributed_optimizer),
        cmocka_unit_test(test_buffer__pads_for_bandwidth),
        cmocka_unit_test(test_buffer__bucket_size_rule),
        cmocka_unit_test(test_buffer__no_parameters),
        cmocka_unit_test(test_buffer__refuses_nonsense),
        cmocka_unit_test(test_buffer__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
