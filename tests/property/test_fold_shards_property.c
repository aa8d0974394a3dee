/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that own other shards of a stage and are simulated once change no report,
 * nor do counted tokens. */
#include "collectives/digest.h"
#include "support/fold.h"

#define TOKENS_PATH "fold_shards_property.txt"

static const fold_files files = {ME_MODEL, "fold_shards_property.json",
                                 "fold_shards_property.tsv"};

enum {
    SHARDED_JOBS = 30,
    ITERATIONS = 2
};

/** Counts of the first ranks, which may be all, as if each had run alone; or of
 *  all, each half of a stage with those of the other.
 *  @param sizes  layers, micro-batches and experts of a rank, and stages, each of
 *  as many layers and of neighbouring ranks */
static void write_tokens(me_random *random, const int64_t sizes[4],
                         int64_t world)
{
    FILE *file = fopen(TOKENS_PATH, "wb");
    assert_non_null(file);
    (void)fputs("alone\n", file);
    const bool is_halved = me_random_in(random, 0, 1) == 0;
    const uint64_t salt = (uint64_t)me_random_in(random, 0, 1000);
    const int64_t period = is_halved ? world / sizes[3] / 2 : world;
    const int64_t named =
        is_halved ? world : me_random_in(random, 1, (int32_t)world);
    const int64_t dispatches = ITERATIONS * sizes[0] * sizes[1];
    for (int64_t i = 0; i < named * dispatches; i++) {
        const int64_t of_rank = i % dispatches;
        const int64_t rank = i / dispatches;
        const int64_t layer = of_rank / ITERATIONS % sizes[0];
        if (layer / (sizes[0] / sizes[3]) != rank / (world / sizes[3])) {
            continue; // another stage has it
        }
        (void)fprintf(file, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                      of_rank % ITERATIONS, layer,
                      of_rank / ITERATIONS / sizes[0], rank);
        for (int64_t k = 0; k < sizes[2]; k++) {
            const uint64_t of_half =
                (uint64_t)(of_rank * period + rank % period) * 8 + (uint64_t)k;
            (void)fprintf(file, " %" PRIu64,
                          me_digest_mix(of_half + (salt << 40)) % 61);
        }
        (void)fputc('\n', file);
    }
    (void)fclose(file);
}

/** Megatron-FSDP in place of DDP, whose forward and backward handle shards. */
static void set_megatron_fsdp(job *j, me_random *random)
{
    static const char *const strategies[] = {"optim", "optim_grads",
                                             "optim_grads_params"};
    set_word(j, "parallel.megatron_fsdp=true");
    (void)snprintf(j->sets[j->n++], SET_BYTES, "parallel.sharding_strategy=%s",
                   strategies[me_random_in(random, 0, 2)]);
    set_word(j, "impl.optimizer=fused");
    set_word(j, "optimizer.overlap_grad_reduce=false");
    set_word(j, "optimizer.log_num_zeros_in_grad=false");
}

/** Many data-parallel ranks, of which most own a part of one parameter: as much
 *  of other layers. */
static job make_sharded_job(me_random *random)
{
    job j = {.n = 0};
    const int64_t tensor = pick_power(random, 1);
    const int64_t pipeline = pick_power(random, 1);
    const int64_t data = INT64_C(4) << me_random_in(random, 0, 3);
    const int64_t layers = pipeline * pick_power(random, 2);
    set(&j, "parallel.tensor", tensor);
    set(&j, "parallel.pipeline", pipeline);
    set(&j, "parallel.world_size", tensor * pipeline * data);
    const int64_t rounds = me_random_in(random, 1, 4);
    set(&j, "train.global_batch_size", data * rounds);
    set(&j, "train.micro_batch_size", 1);
    set(&j, "model.num_layers", layers);
    set(&j, "model.hidden_size", pick_power(random, 3) * 64);
    set(&j, "model.num_attention_heads", 2);
    set(&j, "model.ffn_hidden_size", pick_power(random, 4) * 256);
    set(&j, "model.seq_length", 64);
    set(&j, "model.max_position_embeddings", 64);
    set(&j, "model.vocab_size", 1000 * me_random_in(random, 1, 8));
    set_word(&j, "model.add_bias_linear=false");
    set_word(&j, "optimizer.distributed=true");
    set_flag(&j, random, "model.untie_embeddings_and_output_weights");
    set_flag(&j, random, "optimizer.overlap_grad_reduce");
    set_flag(&j, random, "optimizer.log_num_zeros_in_grad");
    set_word(&j, me_random_in(random, 0, 1) == 0
                     ? "impl.optimizer=fused"
                     : "impl.optimizer=torch_foreach");
    if (pipeline == 1 && tensor == 1 && me_random_in(random, 0, 1) == 0) {
        set_megatron_fsdp(&j, random);
        return j;
    }
    const int64_t experts = set_experts(&j, random, data);
    const int32_t routing = experts > 0 ? me_random_in(random, 0, 2) : 2;
    if (routing == 0) {
        set_word(&j, "moe.routing=skewed:0.5");
    } else if (routing == 1) {
        write_tokens(random, (int64_t[]){layers, rounds, experts, pipeline},
                     tensor * pipeline * data);
        set_word(&j, "moe.tokens=" TOKENS_PATH);
        set_word(&j, "parallel.expert_tensor=1"); // no two share a token
    }
    if (tensor > 1) {
        set_word(&j, "parallel.sequence=true");
    }
    return j;
}

static const char *folding_changes_no_shard(me_random *random)
{
    job j = make_sharded_job(random);
    if (me_random_in(random, 0, 2) == 0) {
        set_limit(&files, &j, random);
    }
    return check_job(&files, &j);
}

static void test_fold__changes_nothing_of_shards(void **state)
{
    (void)state;
    me_property_run(folding_changes_no_shard, SHARDED_JOBS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__changes_nothing_of_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
