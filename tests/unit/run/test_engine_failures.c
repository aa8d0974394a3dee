/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of a rank on an engine that fails at one of its events, as it does
 * where a limited allocator dies: at the first, the second, and so on in growing
 * steps. What a program has made by then is of any length, and nothing of it may
 * be read beyond. */
#include "config/file.h"
#include "support/launch_job.h"

enum {
    STEP = 40 /* each step is a 40th of the way longer */
};

#define ANY_TYPE   "pretrain_gpt.py --transformer-impl local " ANY_IMPL
#define BASE_OF_TE "pretrain_gpt.py --bf16 " ANY_IMPL
#define ANY_IMPL                                                               \
    "--micro-batch-size 1 "                                                    \
    "--no-masked-softmax-fusion --no-gradient-accumulation-fusion "            \
    "--no-rope-fusion --num-layers 2 --hidden-size 64 "                        \
    "--num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 "    \
    "--vocab-size 200 "
#define BASE ANY_TYPE "--bf16 "
#define EXPERTS                                                                \
    "--swiglu --disable-bias-linear --attention-dropout 0 --hidden-dropout 0 " \
    "--num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 32 "            \
    "--moe-aux-loss-coeff 0.01 "
#define ALL_TO_ALL "--moe-token-dispatcher-type alltoall "
#define LATENT                                                                 \
    "--multi-latent-attention --kv-lora-rank 16 --q-lora-rank 32 "             \
    "--qk-head-dim 16 --qk-pos-emb-head-dim 8 --v-head-dim 16 --qk-layernorm "
#define FULL                                                                   \
    "--recompute-granularity full --recompute-method uniform "                 \
    "--recompute-num-layers 1 "

typedef struct job_source {
    const char *launch; /* NULL: a file */
    const char *file;
    int32_t world;
    int32_t rank;
} job_source;

static const job_source sources[] = {
    {BASE "--global-batch-size 2", NULL, 1, 0},
    {ANY_TYPE "--global-batch-size 2 --fp16 --use-distributed-optimizer", NULL,
     2, 0},
    {BASE "--global-batch-size 1 --group-query-attention --num-query-groups 2 "
          "--qk-layernorm --normalization RMSNorm --tensor-model-parallel-size "
          "4 --sequence-parallel --position-embedding-type rope",
     NULL, 4, 3},
    {BASE FULL "--global-batch-size 1 --tensor-model-parallel-size 2 "
               "--distribute-saved-activations",
     NULL, 2, 1},
    {BASE "--global-batch-size 1 --recompute-granularity selective "
          "--recompute-modules core_attn layernorm mlp --swiglu "
          "--disable-bias-linear "
          "--no-create-attention-mask-in-dataloader "
          "--cross-entropy-loss-fusion",
     NULL, 1, 0},
    {BASE EXPERTS ALL_TO_ALL "--global-batch-size 2 "
                             "--tensor-model-parallel-size 2 "
                             "--sequence-parallel "
                             "--expert-model-parallel-size 2 "
                             "--expert-tensor-parallel-size 2",
     NULL, 4, 1},
    {BASE EXPERTS FULL
     "--global-batch-size 1 --moe-token-dispatcher-type allgather "
     "--moe-router-pre-softmax --moe-shared-expert-intermediate-size 32",
     NULL, 1, 0},
    {BASE LATENT "--global-batch-size 1 --tensor-model-parallel-size 2 "
                 "--sequence-parallel --rope-type yarn",
     NULL, 2, 1},
    {BASE FULL "--global-batch-size 1 --position-embedding-type rope "
               "--mtp-num-layers 2",
     NULL, 1, 0},
    {BASE "--global-batch-size 4 --pipeline-model-parallel-size 2 "
          "--use-distributed-optimizer --overlap-grad-reduce",
     NULL, 4, 0},
    {BASE "--global-batch-size 4 --pipeline-model-parallel-size 2 "
          "--position-embedding-type rope --mtp-num-layers 1",
     NULL, 2, 1},
    {BASE "--global-batch-size 4 --pipeline-model-parallel-size 2 "
          "--num-layers-per-virtual-pipeline-stage 1 --num-layers 4",
     NULL, 2, 1},
    {BASE "--global-batch-size 8 --pipeline-model-parallel-size 4 "
          "--num-layers-per-virtual-pipeline-stage 1 --num-layers 8 "
          "--no-overlap-p2p-communication",
     NULL, 4, 1},
    {BASE "--global-batch-size 2 --use-torch-fsdp2 "
          "--no-gradient-accumulation-fusion --untie-embeddings-and-output-"
          "weights --ckpt-format torch_dist",
     NULL, 2, 1},
    {BASE_OF_TE EXPERTS ALL_TO_ALL "--global-batch-size 2 "
                                   "--tensor-model-parallel-size 2 "
                                   "--sequence-parallel",
     NULL, 2, 1},
    {BASE_OF_TE LATENT FULL "--global-batch-size 2 --rope-type rope "
                            "--use-distributed-optimizer --mtp-num-layers 1 "
                            "--position-embedding-type rope",
     NULL, 2, 1},
    {NULL, "pp2_zbv_fsdp2_mp_ac", 0, 1},
    {NULL, "au_pp2_fsdp2_int1f1b_ac", 0, 1},
    {NULL, "ddp2_tf_view_unused", 0, 1},
    {NULL, "rep2_tf", 0, 0},
    {NULL, "tp2_lm_lp_gs", 0, 1},
    {NULL, "fsdp2_tf_off_gs", 0, 0},
    {NULL, "ck_rnr", 0, 0},
    {NULL, "au_fsdp2_tf_bf16", 0, 0},
};

/* The engine under test and at which of its events it fails. */
typedef struct breaker {
    me_engine *e;
    uint64_t seen;
    uint64_t fails_at; /* 0: never */
} breaker;

static void on_event(void *self, const me_event *event)
{
    breaker *b = self;
    (void)event;
    if (++b->seen == b->fails_at) {
        me_engine_fail(b->e, ME_ERR_CONFIG, "the event fails");
    }
}

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    breaker *b = self;
    (void)diag;
    b->e = e;
    me_engine_observe(e, (me_observer){.on_event = on_event, .self = b});
    return ME_OK;
}

static me_status end(void *self, me_diag *diag)
{
    (void)self;
    (void)diag;
    return ME_OK;
}

static me_status read_job(me_config *config, const job_source *j, me_diag *diag)
{
    char path[512];
    if (j->launch != NULL) {
        return test_job_read_launch(config, j->launch, j->world, diag);
    }
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/jobs/%s.cfg", j->file);
    return me_config_read_file(config, path, diag);
}

/* @return how many events there were */
static uint64_t run(const test_job *job, int32_t rank, uint64_t fails_at)
{
    breaker b = {.fails_at = fails_at};
    me_diag diag = {.status = ME_OK};
    const me_watcher watcher = {begin, end, &b};
    const me_status status =
        me_simulate_watched(job->plan, &job->card, rank, &watcher, &diag);
    const bool has_failed = fails_at > 0 && b.seen >= fails_at;
    if (status != (has_failed ? ME_ERR_CONFIG : ME_OK)) {
        fail_msg("event %llu: status \"%s\", \"%s\"",
                 (unsigned long long)fails_at, me_status_text(status),
                 diag.text);
    }
    return b.seen;
}

static void test_engine_failures__at_any_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        me_diag diag = {.status = ME_OK};
        test_job job = {.config = me_config_create()};
        assert_non_null(job.config);
        me_status status = read_job(job.config, &sources[i], &diag);
        if (status == ME_OK) {
            status = test_job_plan(&job, &diag);
        }
        if (status != ME_OK) {
            fail_msg("job %zu: %s", i, diag.text);
        }
        const uint64_t events = run(&job, sources[i].rank, 0);
        assert_true(events > 100);
        for (uint64_t n = 1; n <= events; n += 1 + n / STEP) {
            (void)run(&job, sources[i].rank, n);
        }
        test_job_fini(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_failures__at_any_event),
    };
    return cmocka_run_group_tests_name("engine_failures", tests, NULL, NULL);
}
