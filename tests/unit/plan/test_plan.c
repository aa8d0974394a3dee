/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/simulate.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char *const small[] = {
    "model.num_layers=4",          "model.hidden_size=16",
    "model.num_attention_heads=4", "model.seq_length=8",
    "model.vocab_size=64",         "train.micro_batch_size=1",
    "train.global_batch_size=8",   NULL,
};

static void plan(test_job *job, const char *const *more)
{
    me_diag diag = {.status = ME_OK};
    *job = (test_job){.config = me_config_create()};
    me_status status = test_job_set(job, small, &diag);
    if (status == ME_OK) {
        status = test_job_set(job, more, &diag);
    }
    if (status == ME_OK) {
        status = test_job_plan(job, &diag);
    }
    if (status != ME_OK) {
        fail_msg("%s", diag.text);
    }
}

/* Tensor fastest, then data, then pipeline; data ranks fold together. The
 * first tensor rank loads the batch in another order, so it is alone. */
static void test_plan__classes_of_a_grid(void **state)
{
    (void)state;
    test_job job;
    me_str text = {0};

    plan(&job, (const char *[]){"parallel.tensor=2", "parallel.pipeline=2",
                                "parallel.world_size=8", NULL});
    me_plan_dump(job.plan, &text);
    assert_string_equal(
        me_str_text(&text),
        "rank 0: class 0 tp 0 cp 0 ep 0 dp 0 pp 0 | chunk 0: embedding layers "
        "0-1\n"
        "rank 1: class 1 tp 1 cp 0 ep 0 dp 0 pp 0 | chunk 0: embedding layers "
        "0-1\n"
        "rank 2: class 0 tp 0 cp 0 ep 0 dp 1 pp 0 | chunk 0: embedding layers "
        "0-1\n"
        "rank 3: class 1 tp 1 cp 0 ep 0 dp 1 pp 0 | chunk 0: embedding layers "
        "0-1\n"
        "rank 4: class 2 tp 0 cp 0 ep 0 dp 0 pp 1 | chunk 0: layers 2-3 head\n"
        "rank 5: class 3 tp 1 cp 0 ep 0 dp 0 pp 1 | chunk 0: layers 2-3 head\n"
        "rank 6: class 2 tp 0 cp 0 ep 0 dp 1 pp 1 | chunk 0: layers 2-3 head\n"
        "rank 7: class 3 tp 1 cp 0 ep 0 dp 1 pp 1 | chunk 0: layers 2-3 "
        "head\n");
    assert_int_equal(job.plan->n_classes, 4);
    assert_int_equal(me_plan_representative(job.plan, 2), 4);
    me_str_fini(&text);
    test_job_fini(&job);
}

static void test_plan__interleaved_chunks(void **state)
{
    (void)state;
    test_job job;

    plan(&job, (const char *[]){"parallel.pipeline=2",
                                "parallel.virtual_pipeline=2", NULL});
    assert_int_equal(job.plan->n_chunks, 2);

    static const struct {
        int32_t rank, chunk, first;
        bool has_embedding, has_head;
    } stages[] = {
        {0, 0, 0, true, false},
        {1, 0, 1, false, false},
        {0, 1, 2, false, false},
        {1, 1, 3, false, true},
    };

    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        const me_stage s =
            me_plan_stage(job.plan, stages[i].rank, stages[i].chunk);
        assert_int_equal(s.first_layer, stages[i].first);
        assert_int_equal(s.n_layers, 1);
        assert_int_equal(s.has_embedding, stages[i].has_embedding);
        assert_int_equal(s.has_head, stages[i].has_head);
    }
    test_job_fini(&job);
}

/* Every rank is its own class when nothing is folded. */
static void test_plan__without_folding(void **state)
{
    (void)state;
    test_job job;
    me_diag diag = {.status = ME_OK};

    plan(&job, (const char *[]){"parallel.world_size=4", NULL});
    assert_int_equal(job.plan->n_classes, 1);
    me_plan *unfolded = NULL;
    assert_int_equal(me_plan_create(job.config, false, &diag, &unfolded),
                     ME_OK);
    assert_int_equal(unfolded->n_classes, 4);
    for (int32_t r = 0; r < 4; r++) {
        assert_int_equal(unfolded->class_of[r], r);
        assert_int_equal(me_plan_representative(unfolded, r), r);
    }
    me_plan_destroy(unfolded);
    test_job_fini(&job);
}

/** Ranks that share a sequence see other parts of it, unless they deal out
 * heads. */
static void test_plan__classes_of_a_sequence(void **state)
{
    (void)state;

    static const struct {
        const char *comm_type;
        int32_t classes[8];
    } cases[] = {
        {"parallel.cp_comm_type=p2p", {0, 1, 2, 3, 0, 1, 2, 3}},
        {"parallel.cp_comm_type=all_gather", {0, 1, 2, 3, 0, 1, 2, 3}},
        {"parallel.cp_comm_type=a2a", {0, 0, 0, 0, 0, 0, 0, 0}},
        {"parallel.cp_comm_layers=a2a a2a a2a a2a", {0, 0, 0, 0, 0, 0, 0, 0}},
        {"parallel.cp_comm_layers=a2a a2a p2p a2a", {0, 1, 2, 3, 0, 1, 2, 3}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_job job;
        plan(&job, (const char *[]){
                       "impl.transformer=transformer_engine",
                       "train.params_dtype=bfloat16", "model.kv_channels=8",
                       "model.attention_dropout=0", "parallel.context=4",
                       "parallel.world_size=8", cases[i].comm_type, NULL});
        for (int r = 0; r < 8; r++) {
            assert_int_equal(job.plan->class_of[r], cases[i].classes[r]);
        }
        test_job_fini(&job);
    }
}

/** A dense job's ranks are numbered on the grid of experts as well: with the
 *  pipeline before data both must leave as many ranks for data. */
static void test_plan__expert_grid_of_a_dense_job(void **state)
{
    (void)state;
    test_job job;

    plan(&job, (const char *[]){
                   "parallel.world_size=8", "parallel.tensor=2",
                   "parallel.pipeline=2", "parallel.context=2",
                   "parallel.tp_pp_dp_mapping=true", "parallel.expert_tensor=4",
                   "impl.transformer=transformer_engine",
                   "train.params_dtype=bfloat16", "model.kv_channels=8", NULL});
    assert_int_equal(me_plan_coordinates(job.plan, 4).at[ME_AXIS_PIPELINE], 1);
    test_job_fini(&job);
}

static void test_plan__place_in_the_pipeline(void **state)
{
    (void)state;
    test_job job;

    plan(&job, (const char *[]){"parallel.pipeline=4", "parallel.world_size=8",
                                NULL});
    const me_pipeline p = me_plan_pipeline(job.plan, 5);
    assert_int_equal(p.ranks, 4);
    assert_int_equal(p.rank, 2); /* data 2: stage of rank 5 is 5 / 2 */
    assert_int_equal(p.microbatches, 4);
    assert_int_equal(p.chunks, 1);
    test_job_fini(&job);
}

/** Where a file counts tokens each rank has its own: equal programs take unlike
 *  memory, so none stands for another. */
static void test_plan__counted_tokens_tell_ranks_apart(void **state)
{
    (void)state;
    static const char tokens[] =
        "moe.tokens=" SOURCE_DIR "/tests/golden/tiny_moe/tokens.txt";
    test_job job;
    for (int32_t counts = 0; counts < 2; counts++) {
        plan(&job, (const char *[]){
                       "model.num_layers=2", "model.hidden_size=12",
                       "model.num_attention_heads=3", "model.seq_length=5",
                       "model.add_bias_linear=false", "moe.num_experts=4",
                       "moe.router_topk=2", "moe.layer_freq=[0,1]",
                       "moe.token_dispatcher=alltoall", "parallel.expert=2",
                       "parallel.world_size=2", "train.global_batch_size=4",
                       counts == 1 ? tokens : NULL, NULL});
        assert_int_equal(job.plan->n_classes, counts == 1 ? 2 : 1);
        test_job_fini(&job);
    }
}

/** Two expert groups of two ranks: equal counts of the second make its ranks those
 *  of the first, place by place. */
static void test_plan__equal_columns_share(void **state)
{
    (void)state;
    static const char path[] = "test_plan.tokens";

    static const struct {
        int counts[4]; /* of each rank's first expert; its second has 3 */
        int n_classes;
    } cases[] = {{{0, 4, 0, 4}, 2}, {{0, 4, 3, 1}, 4}, {{0, 4, 1, 3}, 4}};

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        for (int i = 0; i < 2 * 2 * 4; i++) {
            (void)fprintf(file, "%d 0 %d %d %d 3\n", i / 8, i / 4 % 2, i % 4,
                          cases[c].counts[i % 4]);
        }
        assert_int_equal(fclose(file), 0);
        test_job job;
        plan(&job,
             (const char *[]){
                 "model.num_layers=1", "model.seq_length=5",
                 "model.add_bias_linear=false", "moe.num_experts=4",
                 "moe.router_topk=1", "moe.router_pre_softmax=true",
                 "moe.ffn_hidden_size=4", "moe.token_dispatcher=alltoall",
                 "moe.tokens=test_plan.tokens", "parallel.expert=2",
                 "parallel.world_size=4", "train.global_batch_size=8", NULL});
        assert_int_equal(job.plan->n_classes, cases[c].n_classes);
        test_job_fini(&job);
    }
    assert_int_equal(remove(path), 0);
}

/** A tensor rank gets its own part of a skewed expert's rows, whose number the
 *  tensor ranks need not divide. */
static void test_plan__tensor_ranks_of_skewed_experts(void **state)
{
    (void)state;
    test_job job;
    plan(&job, (const char *[]){
                   "model.num_layers=1", "model.seq_length=8",
                   "model.num_attention_heads=4", "model.add_bias_linear=false",
                   "moe.num_experts=2", "moe.ffn_hidden_size=4",
                   "moe.token_dispatcher=alltoall", "moe.routing=skewed:0.5",
                   "parallel.tensor=4", "parallel.expert_tensor=4",
                   "parallel.expert=2", "parallel.sequence=true",
                   "parallel.world_size=8", "train.global_batch_size=4", NULL});
    assert_int_equal(job.plan->n_classes, 8);
    test_job_fini(&job);
}

/** Ranks that share experts get each other's tokens: 4 of a sequence over two
 *  ranks, twice each for two experts, are 8 on both. */
static void test_plan__shared_experts_get_all_ranks_tokens(void **state)
{
    (void)state;
    static const char path[] = "test_plan.tokens";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 2 * 2 * 2; i++) {
        (void)fprintf(file, "%d 0 %d %d 2 2 2 2\n", i / 4, i / 2 % 2, i % 2);
    }
    assert_int_equal(fclose(file), 0);
    test_job job;
    plan(&job,
         (const char *[]){"model.num_layers=1", "model.seq_length=4",
                          "model.add_bias_linear=false", "moe.num_experts=4",
                          "moe.router_topk=2", "moe.ffn_hidden_size=4",
                          "moe.token_dispatcher=alltoall",
                          "moe.tokens=test_plan.tokens", "parallel.tensor=2",
                          "parallel.sequence=true", "parallel.world_size=2",
                          "train.global_batch_size=2", NULL});
    assert_int_equal(job.plan->n_classes, 2);
    test_job_fini(&job);
    assert_int_equal(remove(path), 0);
}

/** Lines of other jobs: rank, iteration, layer or micro-batch are not of this
 *  one. */
static void test_plan__counts_of_other_jobs_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"0 1 0 9 5 5", "line 2: rank 9, from 0, is beyond "
                        "parallel.world_size = 2"},
        {"2 1 0 1 5 5", "line 2: iteration 2, from 0, is beyond "
                        "train.iterations = 2"},
        {"0 1 2 1 5 5", "line 2: micro-batch 2, from 0, is beyond the number "
                        "of micro-batches = 2"},
        {"0 2 0 1 5 5", "line 2: rank 1 has no layer 2 with experts"},
        {"0 0 0 1 5 5", "line 2: rank 1 has no layer 0 with experts"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *file = fopen("test_plan_other.tokens", "w");
        assert_non_null(file);
        (void)fprintf(file, "alone\n%s\n", cases[i].line);
        assert_int_equal(fclose(file), 0);
        me_diag diag = {.status = ME_OK};
        test_job job = {.config = me_config_create()};
        assert_int_equal(
            test_job_set(
                &job,
                (const char *[]){
                    "model.num_layers=2", "model.hidden_size=12",
                    "model.num_attention_heads=3", "model.seq_length=5",
                    "model.add_bias_linear=false", "model.vocab_size=64",
                    "moe.num_experts=4", "moe.router_topk=2",
                    "moe.layer_freq=[0,1]", "moe.token_dispatcher=alltoall",
                    "moe.tokens=test_plan_other.tokens", "parallel.expert=2",
                    "parallel.world_size=2", "train.micro_batch_size=1",
                    "train.global_batch_size=4", NULL},
                &diag),
            ME_OK);
        assert_int_equal(test_job_plan(&job, &diag), ME_ERR_CONFIG);
        test_job_fini(&job);
        if (strstr(diag.text, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].line, diag.text);
        }
        assert_int_equal(remove("test_plan_other.tokens"), 0);
    }
}

/** The layer behind a stage's last is the next stage's, and that behind the depths
 *  of multi-token prediction nobody's. These are as the decoder's last. */
static void test_plan__counts_end_with_a_stage(void **state)
{
    (void)state;

    static const struct {
        const char *sets[4];
        const char *line;
        const char *says; /**< NULL: it is right */
    } cases[] = {
        {{"parallel.pipeline=2", "parallel.world_size=2", NULL},
         "0 1 0 1 5 5 5 5",
         NULL},
        {{"parallel.pipeline=2", "parallel.world_size=2", NULL},
         "0 1 0 0 5 5 5 5",
         "line 2: rank 0 has no layer 1 with experts"},
        {{"model.mtp_num_layers=1", "model.position_embedding_type=rope", NULL},
         "0 2 0 0 5 5 5 5",
         NULL},
        {{"model.mtp_num_layers=1", "model.position_embedding_type=rope", NULL},
         "0 3 0 0 5 5 5 5",
         "line 2: rank 0 has no layer 3 with experts"},
        {{"model.mtp_num_layers=1", "model.position_embedding_type=rope",
          "moe.layer_freq=[1,0]"},
         "0 2 0 0 5 5 5 5",
         "line 2: rank 0 has no layer 2 with experts"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *file = fopen("test_plan_stage.tokens", "w");
        assert_non_null(file);
        (void)fprintf(file, "alone\n%s\n", cases[i].line);
        assert_int_equal(fclose(file), 0);
        me_diag diag = {.status = ME_OK};
        test_job job = {.config = me_config_create()};
        assert_int_equal(
            test_job_set(
                &job,
                (const char *[]){
                    "model.num_layers=2", "model.hidden_size=12",
                    "model.num_attention_heads=3", "model.seq_length=10",
                    "model.add_bias_linear=false", "model.vocab_size=64",
                    "moe.num_experts=4", "moe.router_topk=2",
                    "moe.token_dispatcher=alltoall",
                    "moe.tokens=test_plan_stage.tokens",
                    "train.micro_batch_size=1", "train.global_batch_size=4",
                    "parallel.world_size=1", NULL},
                &diag),
            ME_OK);
        assert_int_equal(test_job_set(&job, cases[i].sets, &diag), ME_OK);
        const me_status status = test_job_plan(&job, &diag);
        test_job_fini(&job);
        const bool has_layer =
            strstr(diag.text, "has no layer") == NULL; // others may be missing
        if (cases[i].says == NULL
                ? !has_layer
                : status != ME_ERR_CONFIG ||
                      strstr(diag.text, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].line, diag.text);
        }
        assert_int_equal(remove("test_plan_stage.tokens"), 0);
    }
}

/** A skew of 0 is no skew. */
static void test_plan__skewed_by_nothing_is_balanced(void **state)
{
    (void)state;
    test_job job;
    for (int32_t is_skewed = 0; is_skewed < 2; is_skewed++) {
        plan(&job, (const char *[]){
                       "model.num_layers=2", "model.seq_length=5",
                       "model.add_bias_linear=false", "moe.num_experts=4",
                       "moe.router_topk=2", "moe.token_dispatcher=alltoall",
                       "parallel.expert=2", "parallel.world_size=2",
                       "train.global_batch_size=4",
                       is_skewed == 1 ? "moe.routing=skewed:0.5"
                                      : "moe.routing=skewed:0",
                       NULL});
        assert_int_equal(me_routing_is_uniform(&job.plan->routing),
                         is_skewed == 0);
        test_job_fini(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan__classes_of_a_grid),
        cmocka_unit_test(test_plan__interleaved_chunks),
        cmocka_unit_test(test_plan__without_folding),
        cmocka_unit_test(test_plan__classes_of_a_sequence),
        cmocka_unit_test(test_plan__expert_grid_of_a_dense_job),
        cmocka_unit_test(test_plan__counted_tokens_tell_ranks_apart),
        cmocka_unit_test(test_plan__equal_columns_share),
        cmocka_unit_test(test_plan__tensor_ranks_of_skewed_experts),
        cmocka_unit_test(test_plan__shared_experts_get_all_ranks_tokens),
        cmocka_unit_test(test_plan__counts_of_other_jobs_are_refused),
        cmocka_unit_test(test_plan__counts_end_with_a_stage),
        cmocka_unit_test(test_plan__skewed_by_nothing_is_balanced),
        cmocka_unit_test(test_plan__place_in_the_pipeline),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
