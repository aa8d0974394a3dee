/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of two blocks of one size goes first: sums of bytes do not tell, the
 * allocator's choice of the next block does. */
#include "run/rank_parts.h"
#include "support/simulate.h"
#include "support/test.h"

#include <string.h>

static const char *const base[] = {
    "model.num_layers=1",
    "model.hidden_size=64",
    "model.num_attention_heads=2",
    "model.ffn_hidden_size=128",
    "model.seq_length=32",
    "model.vocab_size=100",
    "model.add_bias_linear=false",
    "model.position_embedding_type=rope",
    "model.untie_embeddings_and_output_weights=true",
    "parallel.world_size=1",
    "train.micro_batch_size=1",
    "train.global_batch_size=1",
    "train.params_dtype=bfloat16",
    NULL,
};

enum {
    FOLLOWED = 16
};

/** A kind of blocks, each of which is followed until it is freed. */
typedef struct kind {
    const char *op;
    const char *after; /**< the operation of the allocation before; NULL: any */
    char name; /**< of its first block, the next letter that of the next */
} kind;

typedef struct order {
    const kind *kinds; /**< up to one without an op */
    const char *before;
    int n;
    uint32_t blocks[FOLLOWED];
    char names[FOLLOWED];
    int made[2]; /**< of each kind */
    char freed[FOLLOWED + 1];
} order;

static void follow(order *o, const me_event *event)
{
    for (int i = 0; o->kinds[i].op != NULL && o->n < FOLLOWED; i++) {
        const kind *k = &o->kinds[i];
        if (strcmp(event->op, k->op) == 0 &&
            (k->after == NULL || strcmp(o->before, k->after) == 0)) {
            o->blocks[o->n] = event->block;
            o->names[o->n++] = (char)(k->name + o->made[i]++);
        }
    }
    o->before = event->op;
}

static void note_free(order *o, const me_event *event)
{
    for (int i = 0; i < o->n; i++) {
        if (o->blocks[i] == event->block && o->names[i] != 0) {
            o->freed[strlen(o->freed)] = o->names[i];
            o->names[i] = 0;
        }
    }
}

static void on_event(void *self, const me_event *event)
{
    if (event->iteration != ME_STEADY_ITERATION) {
        return;
    }
    if (event->kind == ME_EVENT_ALLOC) {
        follow(self, event);
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        note_free(self, event);
    }
}

/** In which order blocks of @p kinds go in the steady iteration. */
static order free_order(const char *const *more, const kind *kinds)
{
    order o = {.kinds = kinds, .before = ""};
    test_job job = {.config = me_config_create()};
    me_diag diag = {.status = ME_OK};
    me_call_log *log = NULL;
    if (test_job_set(&job, base, &diag) != ME_OK ||
        test_job_set(&job, more, &diag) != ME_OK ||
        test_job_plan(&job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(me_call_log_create(&log), ME_OK);
    me_rank_parts p = me_rank_parts_begin(&job.simulation, 0);
    assert_int_equal(me_rank_parts_make_program(&p, log, &diag), ME_OK);
    assert_int_equal(me_rank_parts_observe(&p, &diag), ME_OK);
    me_engine_observe(p.engine,
                      (me_observer){.on_event = on_event, .self = &o});
    if (me_rank_parts_run(&p, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    me_rank_parts_fini(&p);
    me_call_log_destroy(log);
    test_job_fini(&job);
    return o;
}

/* train_step() lets go of a list of micro-batches' losses, from its end. */
static void test_free_order__losses(void **state)
{
    (void)state;
    static const kind losses[] = {{"cat", "clone", 'a'}, {NULL, NULL, 0}};
    const order o =
        free_order((const char *[]){"train.global_batch_size=3", NULL}, losses);
    assert_string_equal(o.freed, "cba");
}

/* weighted_bias_quick_geglu_impl(): the clamped halves are a tuple, which goes from
 * its end. */
static void test_free_order__clamped_halves(void **state)
{
    (void)state;
    static const char *const experts[] = {
        "impl.transformer=transformer_engine",
        "model.add_bias_linear=true",
        "train.bias_dropout_fusion=false",
        "model.activation=quick_geglu",
        "model.activation_clamp_value=7",
        "moe.num_experts=2",
        "moe.router_topk=2",
        "moe.ffn_hidden_size=64",
        "moe.grouped_gemm=true",
        "moe.token_dispatcher=alltoall",
        NULL,
    };
    static const kind clamped[] = {{"clamp", NULL, 'a'}, {NULL, NULL, 0}};
    const order o = free_order(experts, clamped);
    assert_string_equal(o.freed, "bac"); // c: of the loss
}

/* process_mtp_loss(): the node of `sum * (num_tokens > 0) / num_tokens.clamp(1)`
 * goes before that of its product. */
static void test_free_order__scalars_of_a_depth(void **state)
{
    (void)state;
    static const kind scalars[] = {
        {"to", "gt", 'a'}, {"clamp", "mul", 'b'}, {NULL, NULL, 0}};
    const order o =
        free_order((const char *[]){"model.mtp_num_layers=1", NULL}, scalars);
    assert_string_equal(o.freed, "bac"); // c: of the model's own loss
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_order__losses),
        cmocka_unit_test(test_free_order__clamped_halves),
        cmocka_unit_test(test_free_order__scalars_of_a_depth),
    };
    return cmocka_run_group_tests_name("free_order", tests, NULL, NULL);
}
