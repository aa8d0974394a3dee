/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/shards.h"
#include "parallel/stage_layers.h"
#include "support/random.h"

enum {
    ME_TEST_PARAMS = 40 /**< at most */
};

/** A random list of parameters with its layout. */
typedef struct shards_case {
    me_buffer_param params[ME_TEST_PARAMS];
    uint32_t n_params;
    me_buffer_rules rules;
    me_buffer *buffer;
} shards_case;

static void make_case(me_random *random, bool is_distributed, shards_case *out)
{
    out->n_params = (uint32_t)me_random_in(random, 0, ME_TEST_PARAMS);
    for (uint32_t i = 0; i < out->n_params; i++) {
        const int32_t bits = me_random_in(random, 0, 22);
        out->params[i] = (me_buffer_param){
            .numel = (uint64_t)me_random_in(random, 1, 1 << bits),
            .is_shared_embedding = me_random_in(random, 0, 9) == 0,
        };
    }
    out->rules = (me_buffer_rules){
        .shard_ranks = me_random_in(random, 1, 40),
        .is_distributed = is_distributed,
        .pads_for_bandwidth = me_random_in(random, 0, 3) == 0,
        .bucket_numel = me_random_in(random, 0, 1) == 0
                            ? 0
                            : (uint64_t)me_random_in(random, 1, 1 << 22),
    };
    assert_int_equal(me_buffer_create(out->params, out->n_params, &out->rules,
                                      NULL, &out->buffer),
                     ME_OK);
}

/** Buckets tile the buffer, and slots lie in their buckets in order. */
static const char *check_tiling(const shards_case *test)
{
    const me_buffer *buffer = test->buffer;
    uint64_t at = 0;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < buffer->n_buckets; i++) {
        const me_bucket *bucket = &buffer->buckets[i];
        if (bucket->start != at || bucket->end < bucket->start ||
            bucket->first_slot != slot || bucket->n_slots == 0) {
            return "buckets don't tile the buffer";
        }
        for (uint32_t j = 0; j < bucket->n_slots; j++, slot++) {
            const me_slot *placed = &buffer->slots[slot];
            if (placed->start < at || placed->bucket != i ||
                placed->param != test->n_params - 1 - slot ||
                placed->numel != test->params[placed->param].numel) {
                return "a parameter is out of place";
            }
            at = placed->start + placed->numel;
        }
        if (bucket->start + bucket->unpadded_numel < at || bucket->end < at) {
            return "a parameter reaches out of its bucket";
        }
        at = bucket->end;
    }
    return at == buffer->numel && slot == test->n_params
               ? NULL
               : "the buffer does not end with its last bucket";
}

/** What the rules of the distributed optimizer promise. */
static const char *check_alignment(const shards_case *test)
{
    const me_buffer *buffer = test->buffer;
    for (uint32_t i = 0; i < buffer->n_buckets; i++) {
        const me_bucket *bucket = &buffer->buckets[i];
        if (bucket->end % (uint64_t)test->rules.shard_ranks != 0 ||
            bucket->end % 128 != 0) {
            return "a bucket's end is not aligned";
        }
        if (test->rules.pads_for_bandwidth && bucket->end % 65536 != 0) {
            return "a bucket's end is not padded for bandwidth";
        }
    }
    for (uint32_t i = 0; i < buffer->n_slots; i++) {
        const me_slot *slot = &buffer->slots[i];
        if (slot->start % 64 != 0) {
            return "a parameter's start is not aligned";
        }
        if (test->params[slot->param].is_shared_embedding &&
            buffer->buckets[slot->bucket].n_slots != 1) {
            return "a shared embedding shares its bucket";
        }
    }
    return NULL;
}

/** Every element of every parameter belongs to exactly one rank. */
static const char *check_sum(const shards_case *test)
{
    uint64_t owned[ME_TEST_PARAMS] = {0};
    uint64_t range_numel = 0;
    const int32_t ranks = test->rules.shard_ranks;
    for (int32_t rank = 0; rank < ranks; rank++) {
        me_shards *shards = NULL;
        assert_int_equal(
            me_shards_create(test->buffer, ranks, rank, NULL, &shards), ME_OK);
        range_numel += shards->range_numel;
        bool is_adjacent = true;
        for (uint32_t i = 0; i < shards->count; i++) {
            const me_shard *shard = &shards->items[i];
            // Ranks ascend through each bucket, so parts come in order.
            is_adjacent = is_adjacent && shard->numel > 0 &&
                          shard->start == owned[shard->param];
            owned[shard->param] += shard->numel;
        }
        me_shards_destroy(shards);
        if (!is_adjacent) {
            return "parts of a parameter overlap or leave a gap";
        }
    }
    for (uint32_t i = 0; i < test->n_params; i++) {
        if (owned[i] != test->params[i].numel) {
            return "a parameter's shards don't add up to it";
        }
    }
    return range_numel == test->buffer->numel
               ? NULL
               : "ranges don't add up to the buffer";
}

static const char *check_distributed(me_random *random)
{
    shards_case test = {0};
    make_case(random, true, &test);
    const char *wrong = check_tiling(&test);
    wrong = wrong == NULL ? check_alignment(&test) : wrong;
    wrong = wrong == NULL ? check_sum(&test) : wrong;
    me_buffer_destroy(test.buffer);
    return wrong;
}

static const char *check_plain(me_random *random)
{
    shards_case test = {0};
    make_case(random, false, &test);
    const char *wrong = check_tiling(&test);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < test.n_params; i++) {
        sum += test.params[i].numel;
    }
    if (wrong == NULL && test.buffer->numel != sum) {
        wrong = "a buffer without the distributed optimizer has padding";
    }
    me_buffer_destroy(test.buffer);
    return wrong;
}

/** Stages hold all layers once and in order; ends are where they belong. */
static const char *check_layers(me_random *random)
{
    const int32_t p = me_random_in(random, 1, 8);
    const int32_t chunks = p == 1 ? 1 : me_random_in(random, 1, 4);
    const bool is_uneven = me_random_in(random, 0, 1) == 1;
    const me_layer_split split = {
        .n_layers = me_random_in(random, 1, 64),
        .pipeline = p,
        .chunks = chunks,
        .first_layers = is_uneven ? me_random_in(random, 0, 4) : 0,
        .last_layers = is_uneven ? me_random_in(random, 0, 4) : 0,
        .counts_embedding = !is_uneven && me_random_in(random, 0, 1) == 1,
        .counts_loss = !is_uneven && me_random_in(random, 0, 1) == 1,
    };
    if (me_layer_split_check(&split, NULL) != ME_OK) {
        return NULL;
    }
    int32_t next = 0;
    for (int32_t v = 0; v < p * chunks; v++) {
        const me_stage stage = me_layer_split_stage(&split, v % p, v / p);
        if (stage.first_layer != next || stage.n_layers < 0) {
            return "stages don't follow each other";
        }
        next += stage.n_layers;
    }
    return next == split.n_layers ? NULL : "stages don't hold all layers";
}

static void test_shards_property__distributed(void **state)
{
    (void)state;
    me_property_run(check_distributed, 1000);
}

static void test_shards_property__plain(void **state)
{
    (void)state;
    me_property_run(check_plain, 1000);
}

static void test_shards_property__layers(void **state)
{
    (void)state;
    me_property_run(check_layers, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards_property__distributed),
        cmocka_unit_test(test_shards_property__plain),
        cmocka_unit_test(test_shards_property__layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
