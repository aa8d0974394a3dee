/* SPDX-License-Identifier: BSD-3-Clause */
/* What is simulated once and what is not run again, by several threads, changes
 * no report: jobs of all schedules. */
#include "parallel/schedule.h"
#include "support/fold.h"

static const fold_files files = {ME_MODEL, "fold_property.json",
                                 "fold_property.tsv"};

enum {
    JOBS = 12,
    SMALL_JOBS = 40,
    INTERLEAVED_JOBS = 12,
    TURNS_JOBS = 16
};

/** An order that Megatron-LM has no function for; its V needs untied
 *  embeddings and two chunks of layers. */
static void set_schedule(job *j, me_random *random, int64_t pipeline,
                         int64_t microbatches)
{
    static const char *const names[] = {
        "gpipe",  "zbh1",    "zb_auto", "zbv",      "vhalf",    "vmin",
        "v_auto", "chimera", "zbh2",    "dualpipe", "dualpipev"};

    enum {
        N_NAMES = sizeof names / sizeof names[0],
        N_FULL = 3 /**< the last ones, of pipelines that are filled twice */
    };

    const int32_t i = me_random_in(random, 0, 2 * N_NAMES);
    const bool is_full = microbatches >= 2 * pipeline;
    if (pipeline == 1 || i >= (is_full ? N_NAMES : N_NAMES - N_FULL)) {
        set_flag(j, random, "model.untie_embeddings_and_output_weights");
        return;
    }
    (void)snprintf(j->sets[j->n++], SET_BYTES, "pipeline.schedule=%s",
                   names[i]);
    set(j, "model.num_layers", 8);
    (void)snprintf(j->sets[j->n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
}

static void set_optimizer(job *j, me_random *random, int64_t data)
{
    const bool is_distributed = me_random_in(random, 0, 1) == 1;
    (void)snprintf(j->sets[j->n++], SET_BYTES, "optimizer.distributed=%s",
                   is_distributed ? "true" : "false");
    if (is_distributed && data > 1) {
        set(j, "optimizer.num_distributed_optimizer_instances",
            me_random_in(random, 1, 2));
    }
}

/** FSDP2 in place of DDP, over a vocabulary that some ranks have less of. */
static void set_fsdp2(job *j, me_random *random, int64_t pipeline)
{
    if (pipeline > 1 || me_random_in(random, 0, 1) == 0) {
        return;
    }
    set(j, "model.padded_vocab_size", 1000 + 2 * me_random_in(random, 0, 8));
    (void)snprintf(j->sets[j->n++], SET_BYTES, "parallel.torch_fsdp2=true");
    (void)snprintf(j->sets[j->n++], SET_BYTES, "optimizer.distributed=false");
    set(j, "optimizer.num_distributed_optimizer_instances", 1);
    (void)snprintf(j->sets[j->n++], SET_BYTES,
                   "train.gradient_accumulation_fusion=false");
    (void)snprintf(j->sets[j->n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
}

static job make_job(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = pick_power(random, 1);
    const int64_t pipeline = pick_power(random, 2);
    const int64_t data = pick_power(random, 2);
    const int64_t rounds = me_random_in(random, 1, 6) * 4;
    set(&j, "parallel.tensor", tensor);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.world_size", tensor * pipeline * data);
    set(&j, "train.global_batch_size", data * rounds);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", 4 * me_random_in(random, 1, 2));
    set(&j, "model.hidden_size", 256);
    set(&j, "model.num_attention_heads", 4);
    set(&j, "model.ffn_hidden_size", 96 * me_random_in(random, 1, 9));
    set(&j, "model.seq_length", 128);
    set(&j, "model.max_position_embeddings", 128);
    set(&j, "model.vocab_size", 1000);
    set_optimizer(&j, random, data);
    set_schedule(&j, random, pipeline, rounds);
    set_fsdp2(&j, random, pipeline);
    if (tensor > 1) {
        set_flag(&j, random, "parallel.sequence");
    }
    if (me_random_in(random, 0, 2) == 0) {
        (void)snprintf(j.sets[j.n++], SET_BYTES,
                       "recompute.granularity=selective");
        set_flag(&j, random, "recompute.core_attn");
        set_flag(&j, random, "recompute.layernorm");
    }
    return j;
}

/** Modules of every kind run again, and enter others as they do. */
static void set_recomputation(job *j, me_random *random, bool has_experts)
{
    if (me_random_in(random, 0, 3) == 0) {
        set_word(j, "recompute.granularity=full");
        set_word(j, me_random_in(random, 0, 1) == 0 ? "recompute.method=uniform"
                                                    : "recompute.method=block");
        set(j, "recompute.num_layers", 1);
        return;
    }
    set_word(j, "recompute.granularity=selective");
    set_flag(j, random, "recompute.core_attn");
    set_flag(j, random, "recompute.layernorm");
    if (!has_experts) {
        set_flag(j, random, "recompute.mlp");
    }
}

typedef struct ranks {
    int64_t tensor;
    int64_t pipeline;
    int64_t chunks; /**< of each pipeline rank */
    int64_t data;
} ranks;

/** @param rounds  micro-batches of one sample, of each data-parallel rank */
static void set_ranks(job *j, ranks r, int64_t rounds)
{
    set(j, "parallel.tensor", r.tensor);
    set(j, "parallel.pipeline", r.pipeline);
    set(j, "parallel.virtual_pipeline", r.chunks);
    set(j, "parallel.world_size", r.tensor * r.pipeline * r.data);
    set(j, "train.global_batch_size", r.data * rounds);
    set(j, "train.micro_batch_size", 1);
}

/** Small and recomputed, on a pipeline with few micro-batches, which are told
 *  again as early as can be. */
static job make_small_job(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = pick_power(random, 1);
    const int64_t pipeline = pick_power(random, 1);
    const int64_t data = pick_power(random, 1);
    const int64_t chunks = pipeline > 1 ? me_random_in(random, 1, 2) : 1;
    const int64_t rounds = pipeline * me_random_in(random, 1, 4);
    set_ranks(&j, (ranks){tensor, pipeline, chunks, data}, rounds);
    set(&j, "model.num_layers", pipeline * chunks * me_random_in(random, 1, 2));
    set(&j, "model.hidden_size", 64);
    set(&j, "model.num_attention_heads", 2);
    set(&j, "model.seq_length", 64 * me_random_in(random, 1, 16));
    set(&j, "model.max_position_embeddings", 1024);
    set(&j, "model.vocab_size", 1000 * me_random_in(random, 1, 32));
    set_word(&j, "model.add_bias_linear=false");
    set_flag(&j, random, "model.untie_embeddings_and_output_weights");
    set_flag(&j, random, "optimizer.distributed");
    set_flag(&j, random, "optimizer.overlap_grad_reduce");
    const bool has_experts = set_experts(&j, random, data) > 0;
    if (tensor > 1) {
        set_word(&j, has_experts ? "parallel.sequence=true"
                                 : "parallel.sequence=false");
    }
    set_recomputation(&j, random, has_experts);
    return j;
}

/** Layers of experts, whose dispatchers keep what they were given until their
 *  next forward, with one or more micro-batches in flight. */
static job make_job_of_experts(me_random *random)
{
    static const char *const dispatchers[] = {"moe.token_dispatcher=alltoall",
                                              "moe.token_dispatcher=allgather"};
    job j = {.n = 0};
    const int64_t pipeline = pick_power(random, 2);
    const int64_t expert = pick_power(random, 1);
    const int64_t chunks = pipeline > 1 ? me_random_in(random, 1, 2) : 1;
    set(&j, "parallel.tensor", 1);
    set(&j, "parallel.expert_tensor", 1);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.virtual_pipeline", chunks);
    set(&j, "parallel.expert", expert);
    set(&j, "parallel.world_size", 2 * pipeline);
    set(&j, "train.global_batch_size",
        2 * pipeline * me_random_in(random, 1, 4));
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", pipeline * chunks);
    set(&j, "model.hidden_size", 64);
    set(&j, "model.num_attention_heads", 2);
    set(&j, "model.seq_length", 64);
    set(&j, "model.vocab_size", 1000);
    set(&j, "model.mtp_num_layers", me_random_in(random, 0, 1));
    set_word(&j, "model.position_embedding_type=rope");
    set_word(&j, "model.add_bias_linear=false");
    set_word(&j, "model.activation=swiglu");
    set_word(&j, "model.untie_embeddings_and_output_weights=true");
    set(&j, "moe.num_experts", 4);
    set(&j, "moe.router_topk", 2);
    set(&j, "moe.ffn_hidden_size", 64);
    set_word(&j, dispatchers[me_random_in(random, 0, 1)]);
    set_flag(&j, random, "moe.grouped_gemm");
    set_flag(&j, random, "moe.permute_fusion");
    set_flag(&j, random, "optimizer.distributed");
    return j;
}

/** None, or the activation, the norm before the experts, or both: of one expert a
 *  rank both come back before its last product's gradient. */
static void set_recomputed_experts(job *j, me_random *random)
{
    const int64_t which = me_random_in(random, 0, 3);
    if (which > 0) {
        set_word(j, "recompute.granularity=selective");
        set_word(j, (which & 1) != 0 ? "recompute.moe_act=true"
                                     : "recompute.moe_act=false");
        set_word(j, (which & 2) != 0 ? "recompute.layernorm=true"
                                     : "recompute.layernorm=false");
    }
}

/** Two micro-batches in turns, told by the round: with few rounds and with many,
 *  and with groups of micro-batches that are longer than the pipeline. */
static job make_job_in_turns(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = pick_power(random, 1);
    const int64_t pipeline = pick_power(random, 2);
    const int64_t chunks = pipeline > 1 ? me_random_in(random, 2, 3) : 1;
    const int64_t rounds = pipeline * me_random_in(random, 1, 8);
    set_ranks(&j, (ranks){tensor, pipeline, chunks, 2}, rounds);
    set(&j, "parallel.expert", 2);
    set(&j, "parallel.expert_tensor", 1);
    set_word(&j,
             tensor > 1 ? "parallel.sequence=true" : "parallel.sequence=false");
    set_word(&j, pipeline == 2 || me_random_in(random, 0, 1) == 0
                     ? "parallel.overlap_p2p_comm=true"
                     : "parallel.overlap_p2p_comm=false");
    if (pipeline > 1) {
        const int64_t group = pipeline + me_random_in(random, 0, 2);
        const int64_t left =
            rounds % group; // none, or as many as there are ranks
        set(&j, "parallel.microbatch_group_size",
            group <= rounds && (left == 0 || left >= pipeline) ? group
                                                               : pipeline);
    }
    set(&j, "model.num_layers", pipeline * chunks);
    set(&j, "model.hidden_size", 64);
    set(&j, "model.num_attention_heads", 2);
    set(&j, "model.seq_length", 64);
    set(&j, "model.vocab_size", 1000);
    set_word(&j, "train.params_dtype=bfloat16");
    set_word(&j, "model.position_embedding_type=rope");
    set_word(&j, "model.add_bias_linear=false");
    set_word(&j, "model.activation=swiglu");
    set_word(&j, "model.untie_embeddings_and_output_weights=true");
    if (me_random_in(random, 0, 1) == 0) {
        set_word(&j, "impl.transformer=transformer_engine");
        set_word(&j, "impl.core_attention=te_fused");
        set_flag(&j, random, "moe.delay_wgrad_compute");
        set_recomputed_experts(&j, random);
    }
    set(&j, "moe.num_experts", 2 * me_random_in(random, 1, 2));
    set(&j, "moe.router_topk", 2);
    set(&j, "moe.ffn_hidden_size", 64);
    set_word(&j, "moe.grouped_gemm=true");
    set_word(&j, "moe.token_dispatcher=alltoall");
    set_word(&j, "moe.overlap_expert_comm=true");
    set_flag(&j, random, "moe.permute_fusion");
    set_flag(&j, random, "train.calculate_per_token_loss");
    set_word(&j, "optimizer.distributed=true");
    set_flag(&j, random, "optimizer.overlap_grad_reduce");
    return j;
}

/** Chunks in turns on tensor ranks that read data, each in its own order, whose
 *  small blocks share segments with much else. */
static job make_interleaved_job(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = 2 * pick_power(random, 1);
    const int64_t pipeline = 2 * pick_power(random, 1);
    const int64_t data = pick_power(random, 1);
    const int64_t chunks = me_random_in(random, 2, 5);
    const int64_t rounds = pipeline * me_random_in(random, 1, 6);
    set_ranks(&j, (ranks){tensor, pipeline, chunks, data}, rounds);
    set(&j, "model.num_layers", pipeline * chunks);
    set(&j, "model.hidden_size", 128 * pick_power(random, 2));
    set(&j, "model.num_attention_heads", 4);
    set(&j, "model.ffn_hidden_size", 256);
    set(&j, "model.seq_length", 256 * pick_power(random, 4));
    set(&j, "model.max_position_embeddings", 4096);
    set(&j, "model.vocab_size", 1000 * me_random_in(random, 1, 32));
    set_word(&j, "model.position_embedding_type=rope");
    set_word(&j, "model.add_bias_linear=false");
    if (me_random_in(random, 0, 1) == 0) {
        set_word(&j, "impl.transformer=transformer_engine");
        set_word(&j, "impl.core_attention=te_fused");
    }
    set_flag(&j, random, "model.untie_embeddings_and_output_weights");
    set_flag(&j, random, "optimizer.distributed");
    set_flag(&j, random, "parallel.sequence");
    set_flag(&j, random, "train.create_attention_mask_in_dataloader");
    return j;
}

static const char *folding_changes_no_interleaved_job(me_random *random)
{
    const job j = make_interleaved_job(random);
    return check_job(&files, &j);
}

static const char *folding_changes_no_turns(me_random *random)
{
    job j = make_job_in_turns(random);
    if (me_random_in(random, 0, 1) == 0) {
        set_limit(&files, &j, random);
    }
    return check_job(&files, &j);
}

static const char *folding_changes_no_experts(me_random *random)
{
    const job j = make_job_of_experts(random);
    return check_job(&files, &j);
}

static const char *folding_changes_nothing(me_random *random)
{
    const job j = make_job(random);
    return check_job(&files, &j);
}

static const char *folding_changes_no_recomputation(me_random *random)
{
    job j = make_small_job(random);
    if (me_random_in(random, 0, 1) == 0) {
        set_limit(&files, &j, random);
    }
    return check_job(&files, &j);
}

static void test_fold__changes_nothing(void **state)
{
    (void)state;
    me_property_run(folding_changes_nothing, JOBS);
}

static void test_fold__changes_no_interleaved_job(void **state)
{
    (void)state;
    me_property_run(folding_changes_no_interleaved_job, INTERLEAVED_JOBS);
}

static void test_fold__changes_no_turns(void **state)
{
    (void)state;
    me_property_run(folding_changes_no_turns, TURNS_JOBS);
}

static void test_fold__changes_no_experts(void **state)
{
    (void)state;
    me_property_run(folding_changes_no_experts, SMALL_JOBS);
}

static void test_fold__changes_nothing_under_recomputation(void **state)
{
    (void)state;
    me_property_run(folding_changes_no_recomputation, SMALL_JOBS);
}

/** Pairs of ranks have communicators of their own, numbered in the world, of
 *  which some lie within a node and others do not. */
static void test_fold__changes_nothing_in_pairs_over_nodes(void **state)
{
    (void)state;
    job j = {.n = 0};
    set(&j, "parallel.world_size", 16);
    set(&j, "parallel.tensor", 4);
    set(&j, "parallel.pipeline", 2);
    set(&j, "parallel.virtual_pipeline", 3);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "train.global_batch_size", 4);
    set(&j, "model.num_layers", 12);
    set(&j, "model.num_attention_heads", 4);
    set(&j, "optimizer.num_distributed_optimizer_instances", 2);
    (void)snprintf(j.sets[j.n++], SET_BYTES, "parallel.tp_pp_dp_mapping=true");
    (void)snprintf(j.sets[j.n++], SET_BYTES, "optimizer.distributed=true");
    (void)snprintf(j.sets[j.n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
    const char *wrong = compare_runs(&files, &j);
    if (wrong != NULL) {
        fail_msg("%s", wrong);
    }
}

/** A small job of a schedule on so many stages with so many micro-batches. */
static job make_scheduled(const char *name, int64_t pipeline,
                          int64_t microbatches, bool recomputes)
{
    job j = {.n = 0};
    set(&j, "parallel.tensor", 2);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.world_size", 2 * pipeline);
    set(&j, "train.global_batch_size", microbatches);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", 8);
    set(&j, "model.hidden_size", 256);
    set(&j, "model.num_attention_heads", 4);
    set(&j, "model.ffn_hidden_size", 512);
    set(&j, "model.seq_length", 128);
    set(&j, "model.max_position_embeddings", 128);
    set(&j, "model.vocab_size", 1000);
    (void)snprintf(j.sets[j.n++], SET_BYTES, "pipeline.schedule=%s", name);
    (void)snprintf(j.sets[j.n++], SET_BYTES,
                   "model.untie_embeddings_and_output_weights=true");
    if (recomputes) {
        (void)snprintf(j.sets[j.n++], SET_BYTES, "recompute.granularity=full");
        (void)snprintf(j.sets[j.n++], SET_BYTES, "recompute.method=uniform");
        set(&j, "recompute.num_layers", 1);
    }
    if (strncmp(name, "interleaved", strlen("interleaved")) == 0 ||
        strcmp(name, "looped_bfs") == 0) {
        set(&j, "parallel.virtual_pipeline", 2);
    }
    return j;
}

static void test_fold__changes_nothing_in_any_schedule(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{2, 8}, {2, 12}, {4, 8}, {4, 16}};
    for (uint32_t i = 0; me_schedule_at(i) != NULL; i++) {
        const char *name = me_schedule_at(i)->name;
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
            const int64_t stages = strcmp(name, "none") == 0 ? 1 : shapes[k][0];
            const job j = make_scheduled(name, stages, shapes[k][1], k == 1);
            const char *wrong = compare_runs(&files, &j);
            assert_string_equal(wrong == NULL ? "" : wrong, "");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__changes_nothing),
        cmocka_unit_test(test_fold__changes_no_interleaved_job),
        cmocka_unit_test(test_fold__changes_no_turns),
        cmocka_unit_test(test_fold__changes_no_experts),
        cmocka_unit_test(test_fold__changes_nothing_under_recomputation),
        cmocka_unit_test(test_fold__changes_nothing_in_pairs_over_nodes),
        cmocka_unit_test(test_fold__changes_nothing_in_any_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
