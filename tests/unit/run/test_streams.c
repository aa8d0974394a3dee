/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA streams that blocks of a job are of. */
#include "run/rank_parts.h"
#include "support/simulate.h"
#include "support/test.h"

#include <string.h>

/** Two stages of two chunks, two micro-batches in turns, four in all. */
static const char *const turns[] = {
    "model.num_layers=4",
    "model.hidden_size=64",
    "model.num_attention_heads=2",
    "model.ffn_hidden_size=128",
    "model.seq_length=32",
    "model.vocab_size=100",
    "model.add_bias_linear=false",
    "model.activation=swiglu",
    "model.position_embedding_type=rope",
    "model.untie_embeddings_and_output_weights=true",
    "parallel.world_size=4",
    "parallel.pipeline=2",
    "parallel.virtual_pipeline=2",
    "parallel.expert=2",
    "train.micro_batch_size=1",
    "train.global_batch_size=8",
    "train.params_dtype=bfloat16",
    "moe.num_experts=4",
    "moe.router_topk=2",
    "moe.ffn_hidden_size=64",
    "moe.grouped_gemm=true",
    "moe.token_dispatcher=alltoall",
    "moe.overlap_expert_comm=true",
    NULL,
};

/** Blocks of one operation in the steady iteration, by their stream. */
typedef struct counted {
    const char *op;
    int blocks[ME_STREAMS];
} counted;

static void count(void *self, const me_event *event)
{
    counted *c = self;
    if (event->kind == ME_EVENT_ALLOC &&
        event->iteration == ME_STEADY_ITERATION &&
        strcmp(event->op, c->op) == 0) {
        c->blocks[event->stream]++;
    }
}

static counted count_blocks(const test_job *job, int32_t rank, const char *op)
{
    counted c = {.op = op};
    me_diag diag = {.status = ME_OK};
    me_call_log *log = NULL;
    assert_int_equal(me_call_log_create(&log), ME_OK);
    me_rank_parts p = me_rank_parts_begin(&job->simulation, rank);
    assert_int_equal(me_rank_parts_make_program(&p, log, &diag), ME_OK);
    assert_int_equal(me_rank_parts_observe(&p, &diag), ME_OK);
    me_engine_observe(p.engine, (me_observer){.on_event = count, .self = &c});
    if (me_rank_parts_run(&p, &diag) != ME_OK) {
        fail_msg("rank %d: %s", rank, diag.text);
    }
    me_rank_parts_fini(&p);
    me_call_log_destroy(log);
    return c;
}

/* Eight forwards a stage, of chunks 0 0 1 1 0 0 1 1; the first stage has five
 * before the steady steps, the last three. The first stage has inputs of its own
 * for chunk 0, and receives in step k what the other's step k - 1 made, if that is
 * of chunk 0; the last one receives the first input before all, and in step k that
 * of step k + 1. The last step receives nothing. Steady steps receive inputs on the
 * stream of communication, gradients on that of computation. */
static void test_streams__received_in_turns(void **state)
{
    (void)state;

    static const struct {
        int32_t rank;
        int before;
        int steady;
    } stages[] = {{0, 2, 2}, {2, 4, 4}};

    test_job job = {.config = me_config_create()};
    me_diag diag = {.status = ME_OK};
    if (test_job_set(&job, turns, &diag) != ME_OK ||
        test_job_plan(&job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        const int32_t rank = stages[i].rank;
        const counted inputs = count_blocks(&job, rank, "recv_forward");
        assert_int_equal(inputs.blocks[ME_STREAM_DEFAULT], stages[i].before);
        assert_int_equal(inputs.blocks[ME_STREAM_DISPATCH], stages[i].steady);
        const counted gradients = count_blocks(&job, rank, "recv_backward");
        assert_true(gradients.blocks[ME_STREAM_DEFAULT] > 0);
        assert_int_equal(gradients.blocks[ME_STREAM_DISPATCH], 0);
    }
    test_job_fini(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams__received_in_turns),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
