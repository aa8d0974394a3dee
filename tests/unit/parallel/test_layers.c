/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/stage_layers.h"
#include "support/test.h"

enum {
    ME_TEST_STAGES = 8
};

/** First layer and number of layers by virtual stage. */
typedef struct split_case {
    me_layer_split split;
    int32_t first[ME_TEST_STAGES];
    int32_t count[ME_TEST_STAGES];
} split_case;

/** What Megatron's own functions give; mostly P = 4. */
static const split_case cases[] = {
    {{.n_layers = 16, .pipeline = 4, .chunks = 1}, {0, 4, 8, 12}, {4, 4, 4, 4}},
    {{.n_layers = 16, .pipeline = 4, .chunks = 2},
     {0, 2, 4, 6, 8, 10, 12, 14},
     {2, 2, 2, 2, 2, 2, 2, 2}},
    {{.n_layers = 14,
      .pipeline = 4,
      .chunks = 1,
      .counts_embedding = true,
      .counts_loss = true},
     {0, 3, 7, 11},
     {3, 4, 4, 3}},
    {{.n_layers = 14,
      .pipeline = 4,
      .chunks = 2,
      .counts_embedding = true,
      .counts_loss = true},
     {0, 1, 3, 5, 7, 9, 11, 13},
     {1, 2, 2, 2, 2, 2, 2, 1}},
    {{.n_layers = 15, .pipeline = 4, .chunks = 1, .counts_embedding = true},
     {0, 3, 7, 11},
     {3, 4, 4, 4}},
    {{.n_layers = 12,
      .pipeline = 4,
      .chunks = 1,
      .first_layers = 2,
      .last_layers = 2},
     {0, 2, 6, 10},
     {2, 4, 4, 2}},
    {{.n_layers = 12,
      .pipeline = 4,
      .chunks = 2,
      .first_layers = 2,
      .last_layers = 2},
     {0, 1, 3, 5, 6, 7, 9, 11},
     {1, 2, 2, 1, 1, 2, 2, 1}},
    {{.n_layers = 13, .pipeline = 4, .chunks = 1, .last_layers = 1},
     {0, 4, 8, 12},
     {4, 4, 4, 1}},
    {{.n_layers = 5, .pipeline = 2, .chunks = 1, .first_layers = 3},
     {0, 3},
     {3, 2}},
    {{.n_layers = 3, .pipeline = 1, .chunks = 1, .last_layers = 3}, {0}, {3}},
    {{.n_layers = 1,
      .pipeline = 3,
      .chunks = 1,
      .counts_embedding = true,
      .counts_loss = true},
     {0, 0, 1},
     {0, 1, 0}},
};

static void test_layers__known_splits(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_layer_split *split = &cases[i].split;
        me_diag diag = {0};
        assert_int_equal(me_layer_split_check(split, &diag), ME_OK);
        const int32_t n = split->pipeline * split->chunks;
        for (int32_t v = 0; v < n; v++) {
            const me_stage stage = me_layer_split_stage(
                split, v % split->pipeline, v / split->pipeline);
            assert_int_equal(stage.virtual_stage, v);
            assert_int_equal(stage.first_layer, cases[i].first[v]);
            assert_int_equal(stage.n_layers, cases[i].count[v]);
            assert_int_equal(stage.has_embedding, v == 0);
            assert_int_equal(stage.has_head, v == n - 1);
        }
    }
}

static void test_layers__one_rank_has_all(void **state)
{
    (void)state;
    const me_layer_split split = {
        .n_layers = 6, .pipeline = 1, .chunks = 1, .is_tied = true};
    assert_int_equal(me_layer_split_check(&split, NULL), ME_OK);
    const me_stage stage = me_layer_split_stage(&split, 0, 0);
    assert_int_equal(stage.n_layers, 6);
    assert_true(stage.has_embedding && stage.has_head);
    assert_false(stage.has_embedding_copy || stage.is_shared_embedding);
}

static void test_layers__tied_embedding_is_copied(void **state)
{
    (void)state;
    const me_layer_split split = {
        .n_layers = 8, .pipeline = 2, .chunks = 2, .is_tied = true};
    const me_stage first = me_layer_split_stage(&split, 0, 0);
    const me_stage last = me_layer_split_stage(&split, 1, 1);
    const me_stage other = me_layer_split_stage(&split, 1, 0);
    assert_true(first.is_shared_embedding && !first.has_embedding_copy);
    assert_true(last.is_shared_embedding && last.has_embedding_copy);
    assert_false(other.is_shared_embedding || other.has_embedding_copy);
}

/** Two ranks, four stages in a V; and two copies of two stages, each rank
 *  having one of each. */
static void test_layers__stages_elsewhere(void **state)
{
    (void)state;
    static const int32_t v[] = {0, 3, 1, 2};
    const me_layer_split in_a_v = {
        .n_layers = 8, .pipeline = 2, .chunks = 2, .stage_of = v};
    assert_int_equal(me_layer_split_check(&in_a_v, NULL), ME_OK);
    me_stage stage = me_layer_split_stage(&in_a_v, 0, 1);
    assert_int_equal(stage.first_layer, 6);
    assert_int_equal(stage.n_layers, 2);
    assert_true(stage.has_head && !stage.has_embedding);
    assert_true(me_layer_split_stage(&in_a_v, 0, 0).has_embedding);
    assert_int_equal(me_layer_split_stage(&in_a_v, 1, 1).first_layer, 4);

    static const int32_t both[] = {0, 1, 1, 0};
    const me_layer_split in_both = {.n_layers = 8,
                                    .pipeline = 2,
                                    .chunks = 1,
                                    .copies = 2,
                                    .stage_of = both};
    assert_int_equal(me_layer_split_check(&in_both, NULL), ME_OK);
    for (int32_t rank = 0; rank < 2; rank++) {
        const me_stage a = me_layer_split_stage(&in_both, rank, rank);
        assert_int_equal(a.first_layer, 0);
        assert_int_equal(a.n_layers, 4);
        assert_true(a.has_embedding && !a.has_head);
        assert_true(me_layer_split_stage(&in_both, rank, 1 - rank).has_head);
    }
}

static void test_layers__names_what_does_not_fit(void **state)
{
    (void)state;

    static const struct {
        me_layer_split split;
        const char *text;
    } bad[] = {
        {{.n_layers = 10, .pipeline = 4, .chunks = 1},
         "10 layers are not a multiple of 4 pipeline ranks"},
        {{.n_layers = 10, .pipeline = 4, .chunks = 1, .counts_loss = true},
         "10 layers + 1 for the loss are not a multiple of 4 pipeline ranks"},
        {{.n_layers = 12, .pipeline = 4, .chunks = 2},
         "3 layers of a pipeline rank are not a multiple of its 2 chunks"},
        {{.n_layers = 12, .pipeline = 4, .chunks = 1, .first_layers = 2},
         "10 layers left by the first and last pipeline rank are not a "
         "multiple of the 3 other ranks"},
        {{.n_layers = 4,
          .pipeline = 2,
          .chunks = 1,
          .first_layers = 2,
          .last_layers = 1},
         "4 layers with 2 given for the first and 1 for the last pipeline "
         "rank leave 1 layers for 0 ranks"},
        {{.n_layers = 4, .pipeline = 1, .chunks = 1, .last_layers = 2},
         "4 layers with 0 given for the first and 2 for the last pipeline "
         "rank leave 2 layers for 0 ranks"},
        {{.n_layers = 4,
          .pipeline = 4,
          .chunks = 1,
          .first_layers = 1,
          .counts_loss = true},
         "layers of the first or last pipeline rank (1, 0) can't be given "
         "when embedding or loss count as layers"},
        {{.n_layers = 0, .pipeline = 2, .chunks = 1},
         "can't split 0 layers (first rank 0, last rank 0) over 2 pipeline "
         "ranks with 1 chunks each"},
    };

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        me_diag diag = {0};
        assert_int_equal(me_layer_split_check(&bad[i].split, &diag),
                         ME_ERR_CONFIG);
        assert_string_equal(diag.text, bad[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers__known_splits),
        cmocka_unit_test(test_layers__one_rank_has_all),
        cmocka_unit_test(test_layers__tied_embedding_is_copied),
        cmocka_unit_test(test_layers__stages_elsewhere),
        cmocka_unit_test(test_layers__names_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
