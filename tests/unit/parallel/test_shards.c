/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "llama.h"
#include "parallel/shards.h"
#include "support/test.h"

static me_buffer *make_llama(int32_t ranks, uint64_t bucket_numel)
{
    const me_buffer_rules rules = {.shard_ranks = ranks,
                                   .is_distributed = true,
                                   .bucket_numel = bucket_numel};
    me_buffer *buffer = NULL;
    assert_int_equal(
        me_buffer_create(me_llama, ME_LLAMA_PARAMS, &rules, NULL, &buffer),
        ME_OK);
    return buffer;
}

static me_shards *make_shards(const me_buffer *buffer, int32_t ranks,
                              int32_t rank)
{
    me_shards *shards = NULL;
    me_diag diag = {0};
    assert_int_equal(me_shards_create(buffer, ranks, rank, &diag, &shards),
                     ME_OK);
    return shards;
}

/** The shards of one rank as parameter and length, in the buffer's order. */
typedef struct rank_case {
    uint32_t count;

    struct {
        uint32_t param;
        uint64_t start;
        uint64_t numel;
    } shards[14];
} rank_case;

/** Parameter @p param of layer @p layer: me_llama_index() as a constant. */
#define AT(layer, param) (1 + 6 * (layer) + (param))
/** A whole layer, going up in the buffer, but for its input norm. */
#define LAYER(layer)                                                           \
    {AT(layer, 5), 0, ME_LLAMA_FC2}, {AT(layer, 4), 0, ME_LLAMA_FC1},          \
        {AT(layer, 3), 0, ME_LLAMA_NORM}, {AT(layer, 2), 0, ME_LLAMA_QKV},     \
    {                                                                          \
        AT(layer, 1), 0, ME_LLAMA_PROJ                                         \
    }

/** g4_dp4_do, all four ranks. */
static void test_shards__four_ranks_of_one_bucket(void **state)
{
    (void)state;
    static const rank_case cases[] = {
        {1, {{ME_LLAMA_OUTPUT, 0, 27658496}}},
        {14,
         {{ME_LLAMA_OUTPUT, 27658496, 5109504},
          {ME_LLAMA_FINAL_NORM, 0, ME_LLAMA_NORM},
          LAYER(3),
          {AT(3, 0), 0, ME_LLAMA_NORM},
          LAYER(2),
          {AT(2, 0), 0, 512}}},
        {14,
         {{AT(2, 0), 512, 512},
          LAYER(1),
          {AT(1, 0), 0, ME_LLAMA_NORM},
          LAYER(0),
          {AT(0, 0), 0, ME_LLAMA_NORM},
          {0, 0, 5109504}}},
        {1, {{0, 5109504, 27658496}}},
    };
    me_buffer *buffer = make_llama(4, 0);
    for (int32_t rank = 0; rank < 4; rank++) {
        me_shards *shards = make_shards(buffer, 4, rank);
        assert_int_equal(shards->numel, 27658496);
        assert_int_equal(shards->range_numel, 27658496);
        assert_int_equal(shards->count, cases[rank].count);
        uint64_t at = (uint64_t)rank * shards->range_numel;
        for (uint32_t i = 0; i < shards->count; i++) {
            const me_shard *shard = &shards->items[i];
            assert_int_equal(shard->param, cases[rank].shards[i].param);
            assert_int_equal(shard->start, cases[rank].shards[i].start);
            assert_int_equal(shard->numel, cases[rank].shards[i].numel);
            /* Shards fill the range; a parameter's is where the cut is. */
            assert_int_equal(shard->buffer_start, at);
            at += shard->numel;
            assert_int_equal(shard->bucket, 0);
        }
        me_shards_destroy(shards);
    }
    me_buffer_destroy(buffer);
}

/** g2_dp2_do_overlap: a range in each of two buckets. */
static void test_shards__two_ranks_of_two_buckets(void **state)
{
    (void)state;
    me_buffer *buffer = make_llama(2, 40000000);
    me_shards *shards = make_shards(buffer, 2, 0);
    assert_int_equal(shards->numel, 20709888 + 34607104);
    assert_int_equal(shards->items[0].param, ME_LLAMA_OUTPUT);
    assert_int_equal(shards->items[0].numel, 20709888);
    assert_int_equal(shards->items[1].bucket, 1);
    assert_int_equal(shards->items[1].buffer_start, 41419776);
    const me_shard *last = &shards->items[shards->count - 1];
    assert_int_equal(last->param, me_llama_index(0, 2));
    assert_int_equal(last->numel, 783360);
    me_shards_destroy(shards);
    shards = make_shards(buffer, 2, 1);
    assert_int_equal(shards->items[0].param, ME_LLAMA_OUTPUT);
    assert_int_equal(shards->items[0].start, 20709888);
    assert_int_equal(shards->items[0].numel, 12058112);
    me_shards_destroy(shards);
    me_buffer_destroy(buffer);
}

/** Padding belongs to somebody's range and holds nothing. */
static void test_shards__last_rank_has_the_padding(void **state)
{
    (void)state;
    const me_buffer_param params[] = {{130, false}};
    const me_buffer_rules rules = {.shard_ranks = 4, .is_distributed = true};
    me_buffer *buffer = NULL;
    assert_int_equal(me_buffer_create(params, 1, &rules, NULL, &buffer), ME_OK);
    static const uint64_t numel[] = {64, 64, 2, 0};
    for (int32_t rank = 0; rank < 4; rank++) {
        me_shards *shards = make_shards(buffer, 4, rank);
        assert_int_equal(shards->numel, numel[rank]);
        assert_int_equal(shards->range_numel, 64);
        me_shards_destroy(shards);
    }
    me_buffer_destroy(buffer);
}

static void test_shards__refuses_uneven_cuts(void **state)
{
    (void)state;
    me_buffer *buffer = make_llama(4, 0);
    me_shards *shards = NULL;
    me_diag diag = {0};
    assert_int_equal(me_shards_create(buffer, 3, 0, &diag, &shards),
                     ME_ERR_CONFIG);
    assert_string_equal(diag.text, "bucket 0 has 110633984 elements, not a "
                                   "multiple of 3 ranks");
    assert_int_equal(me_shards_create(buffer, 4, 4, &diag, &shards),
                     ME_ERR_CONFIG);
    me_alloc_fail_at(2);
    assert_int_equal(me_shards_create(buffer, 4, 0, &diag, &shards),
                     ME_ERR_NOMEM);
    me_alloc_fail_at(0);
    assert_null(shards);
    me_buffer_destroy(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards__four_ranks_of_one_bucket),
        cmocka_unit_test(test_shards__two_ranks_of_two_buckets),
        cmocka_unit_test(test_shards__last_rank_has_the_padding),
        cmocka_unit_test(test_shards__refuses_uneven_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
