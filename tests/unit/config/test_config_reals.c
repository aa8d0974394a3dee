/* SPDX-License-Identifier: BSD-3-Clause */
/* Real numbers that Python's float() takes, and what Megatron-LM asks of them;
 * digits that are not ASCII's. */
#include "command_job.h"

#define EXPERTS                                                                 \
    "--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall " \
    "--disable-bias-linear "
#define AUX EXPERTS "--moe-router-load-balancing-type aux_loss "
#define MUP "--use-mup --mup-base-hidden-size 512 "

/** What a flag turns on. */
typedef enum asked {
    CLIPS,
    HAS_AUX_LOSS,
    HAS_SEQUENCE_LOSS,
    HAS_Z_LOSS,
    HAS_BIAS,
    KEEPS_BIAS,
    SCALES_SCORES,
    HAS_JITTER,
    HAS_CAPACITY,
    CLAMPS,
    SCALES_EMBEDDING,
    TURNS_WHOLE_HEADS,
    HAS_MOMENTUM,
    NOTHING
} asked;

static bool is_so(const me_config *c, asked a)
{
    const me_moe_options *m = &c->moe;
    switch (a) {
    case CLIPS: return c->optimizer.clip_grad > 0;
    case HAS_AUX_LOSS: return m->has_loss[ME_LOAD_BALANCING_AUX_LOSS];
    case HAS_SEQUENCE_LOSS: return m->has_loss[ME_LOAD_BALANCING_SEQ_AUX_LOSS];
    case HAS_Z_LOSS: return m->has_loss[ME_ROUTER_Z_LOSS];
    case HAS_BIAS: return m->router_force_biased != 0;
    case KEEPS_BIAS: return m->router_force_biased < 0;
    case SCALES_SCORES: return m->router_topk_scaling_factor != 0;
    case HAS_JITTER: return m->has_input_jitter;
    case HAS_CAPACITY: return m->has_capacity;
    case CLAMPS: return c->model.activation_clamp_value > 0;
    case SCALES_EMBEDDING: return c->model.mup_embedding_mult != 1.0;
    case TURNS_WHOLE_HEADS: return c->model.rotary_percent == 1.0;
    case HAS_MOMENTUM: return c->optimizer.sgd_momentum > 0;
    case NOTHING: return true;
    }
    return false;
}

static const struct {
    const char *added;
    asked asked;
    bool is_so;
} taken[] = {
    {"--clip-grad 1e20", CLIPS, true},
    {"--clip-grad 1e400", CLIPS, true},
    {"--clip-grad inf", CLIPS, true},
    {"--clip-grad=-inf", CLIPS, false},
    {"--clip-grad=-1e400", CLIPS, false},
    {"--clip-grad -3", CLIPS, false},
    {"--clip-grad nan", CLIPS, false},
    {"--clip-grad 1e-400", CLIPS, false},
    {"--lr 1e400 --lr-warmup-init 1e400", NOTHING, true},
    {"--adam-beta1 nan --adam-eps inf", NOTHING, true},
    {"--weight-decay 1e20", NOTHING, true},
    {"--weight-decay inf", NOTHING, true},
    {"--init-method-std nan --no-initialization", NOTHING, true},
    {"--init-method-std inf", NOTHING, true},
    {"--optimizer sgd --sgd-momentum nan", HAS_MOMENTUM, true},
    {"--optimizer sgd --sgd-momentum 1e300", HAS_MOMENTUM, true},
    {"--optimizer sgd --sgd-momentum 0", HAS_MOMENTUM, false},
    {"--fp16 --loss-scale 1e30", NOTHING, true},
    {"--position-embedding-type rope --rotary-percent 1.5", TURNS_WHOLE_HEADS,
     true},
    {"--position-embedding-type rope --rotary-percent inf", TURNS_WHOLE_HEADS,
     true},
    {"--position-embedding-type rope --rotary-percent 0.5", TURNS_WHOLE_HEADS,
     false},
    {"--swiglu --no-bias-swiglu-fusion --activation-func-clamp-value 0", CLAMPS,
     true},
    {"--swiglu --no-bias-swiglu-fusion --activation-func-clamp-value -7",
     CLAMPS, true},
    {"--swiglu --no-bias-swiglu-fusion --activation-func-clamp-value 1e9",
     CLAMPS, true},
    {MUP "--mup-embedding-mult nan", SCALES_EMBEDDING, true},
    {MUP "--mup-embedding-mult 1e400", SCALES_EMBEDDING, true},
    {MUP "--mup-embedding-mult 1.00", SCALES_EMBEDDING, false},
    {AUX "--moe-aux-loss-coeff 1e9", HAS_AUX_LOSS, true},
    {AUX "--moe-aux-loss-coeff inf", HAS_AUX_LOSS, true},
    {AUX "--moe-aux-loss-coeff nan", HAS_AUX_LOSS, false},
    {AUX "--moe-aux-loss-coeff -1", HAS_AUX_LOSS, false},
    {EXPERTS "--moe-router-load-balancing-type aux_loss seq_aux_loss "
             "--moe-aux-loss-coeff nan inf",
     HAS_SEQUENCE_LOSS, true},
    {EXPERTS "--moe-router-load-balancing-type aux_loss seq_aux_loss "
             "--moe-aux-loss-coeff nan -1",
     HAS_SEQUENCE_LOSS, false},
    {EXPERTS "--moe-z-loss-coeff -1", HAS_Z_LOSS, true},
    {EXPERTS "--moe-z-loss-coeff -0.5", HAS_Z_LOSS, true},
    {EXPERTS "--moe-z-loss-coeff nan", HAS_Z_LOSS, true},
    {EXPERTS "--moe-router-force-biased 0", HAS_BIAS, true},
    {EXPERTS "--moe-router-force-biased 1e20", KEEPS_BIAS, false},
    {EXPERTS "--moe-router-force-biased -0.1", KEEPS_BIAS, true},
    {EXPERTS "--moe-router-topk-scaling-factor -2.5", SCALES_SCORES, true},
    {EXPERTS "--moe-router-topk-scaling-factor nan", SCALES_SCORES, true},
    {EXPERTS "--moe-router-topk-scaling-factor 0", SCALES_SCORES, false},
    {EXPERTS "--moe-input-jitter-eps inf", HAS_JITTER, true},
    {EXPERTS "--moe-expert-capacity-factor -10000000", HAS_CAPACITY, false},
};

static void test_reals__taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        me_diag diag = {.status = ME_OK};
        me_config *config = NULL;
        const bool is_fp16 = strncmp(taken[i].added, "--fp16", 6) == 0;
        const me_status status = make_job(
            taken[i].added, "", is_fp16 ? "--bf16" : "", &diag, &config);
        if (status != ME_OK ||
            is_so(config, taken[i].asked) != taken[i].is_so) {
            fail_msg("%s: %s", taken[i].added,
                     status == ME_OK ? "means something else" : diag.text);
        }
        me_config_destroy(config);
    }
}

/** What stops Megatron-LM, PyTorch or Python. */
static const struct {
    const char *added;
    const char *text;
} refused[] = {
    {"--clip-grad 1e", "--clip-grad 1e: must be a number of at least 0"},
    {"--weight-decay -1", "--weight-decay -1: must be a number of at least 0"},
    {"--weight-decay nan", "--weight-decay nan: must be"},
    {"--optimizer sgd --sgd-momentum -1", "--sgd-momentum -1: must be"},
    {"--attention-dropout nan", "--attention-dropout nan: must be"},
    {"--hidden-dropout 1e400", "--hidden-dropout 1e400: must be"},
    {"--position-embedding-type rope --rotary-percent -1",
     "--rotary-percent -1: must be a number from 0 to 1"},
    {"--loss-scale nan",
     "--loss-scale nan: must be a number from 0 to 3.4e+38"},
    {"--loss-scale 1e400", "--loss-scale 1e400: must be"},
    {EXPERTS "--moe-expert-capacity-factor inf",
     "--moe-expert-capacity-factor inf: must be"},
    {EXPERTS "--moe-router-force-biased nan",
     "--moe-router-force-biased nan: must be a number"},
    {EXPERTS "--moe-input-jitter-eps 0",
     "--moe-input-jitter-eps 0: must be above 0"},
    {EXPERTS "--moe-router-load-balancing-type sinkhorn "
             "--moe-aux-loss-coeff -1",
     "--moe-aux-loss-coeff under 0 and --moe-router-load-balancing-type "
     "sinkhorn exclude each other"},
    {"--lr-warmup-iters 10", "--lr-warmup-iters 10: must be below "
                             "--train-iters, 10"},
    {"--lr-decay-iters 5 --lr-warmup-iters 7",
     "--lr-warmup-iters 7: must be below --lr-decay-iters, 5"},
    {"--lr-decay-iters 0", "--lr-decay-iters 0: must be above 0"},
    {"--lr-warmup-fraction 1", "--lr-warmup-fraction 1: must be below 1"},
    {"--lr 1e-4 --lr-warmup-init 1e-3",
     "--lr-warmup-init 1e-3: must be at most --lr, 0.0001"},
    {"--log-interval 0", "--log-interval 0 needs --skip-train"},
    {"--check-weight-hash-across-dp-replicas-interval 0",
     "--check-weight-hash-across-dp-replicas-interval 0 needs --skip-train"},
    {"--adlr-autoresume --adlr-autoresume-interval 0",
     "--adlr-autoresume-interval 0 beside --adlr-autoresume needs"},
    {"--tensorboard-dir x --tensorboard-log-interval 0",
     "--tensorboard-log-interval 0 beside --tensorboard-dir needs"},
    {"--init-method-std nan", "--init-method-std nan: must be at least 0"},
    {"--embedding-init-method-std -1",
     "--embedding-init-method-std -1: must be at least 0"},
    {"--min-lr -1", "--min-lr -1: must be at least 0"},
    {"--lr-decay-style WSD",
     "--lr-decay-style WSD beside --train-iters needs --lr-wsd-decay-iters"},
    {"--override-opt_param-scheduler --use-checkpoint-opt_param-scheduler",
     "--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler "
     "exclude each other"},
    {"--fp16 --initial-loss-scale 0.5",
     "--initial-loss-scale 0.5: must be at least --min-loss-scale, 1"},
    {"--fp16 --min-loss-scale 0", "--min-loss-scale 0: must be above 0"},
    {"--fp16 --hysteresis 0", "--hysteresis 0: must be above 0"},
    {"--fp16 --loss-scale-window nan", "--loss-scale-window nan: must be"},
};

static void test_reals__refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        me_diag diag = {.status = ME_OK};
        const bool is_fp16 = strncmp(refused[i].added, "--fp16", 6) == 0;
        const me_status status =
            read_job(refused[i].added, "", is_fp16 ? "--bf16" : "", &diag);
        if (status == ME_OK || strstr(diag.text, refused[i].text) == NULL) {
            fail_msg("%s: %s", refused[i].added,
                     status == ME_OK ? "not refused" : diag.text);
        }
    }
}

/** What is asked of a schedule or a scale is not asked of a job without it. */
static void test_reals__not_asked(void **state)
{
    (void)state;
    static const char *const right[] = {
        "--skip-train --lr-warmup-iters 99 --lr-warmup-init 3 --lr 1e-4",
        "--fp16 --loss-scale 8 --hysteresis 0 --initial-loss-scale 0.5",
        "--lr-decay-iters 300 --lr-warmup-iters 99",
        "--lr-decay-style WSD --lr-wsd-decay-iters 3",
    };
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        me_diag diag = {.status = ME_OK};
        const bool is_fp16 = strncmp(right[i], "--fp16", 6) == 0;
        if (read_job(right[i], "", is_fp16 ? "--bf16" : "", &diag) != ME_OK) {
            fail_msg("%s: %s", right[i], diag.text);
        }
    }
}

/* Decimal digits of any script, as int(), float() and argparse's \d have them: 1000
 * and 64 in full width, -1.5 and 128 in Arabic-Indic digits. */
static void test_reals__digits_of_any_script(void **state)
{
    (void)state;
    me_config *config = NULL;
    me_diag diag = {.status = ME_OK};
    (void)make_job(
        "--vocab-size \xef\xbc\x91\xef\xbc\x90\xef\xbc\x90\xef\xbc\x90 "
        "--kv-channels \xef\xbc\x96\xef\xbc\x94 "
        "--window-size (\xd9\xa1\xd9\xa2\xd9\xa8,0) "
        "--window-attn-skip-freq \xd9\xa2 --clip-grad -\xd9\xa1.\xd9\xa5",
        "", "--vocab-size", &diag, &config);
    assert_string_equal(diag.text, "");
    assert_int_equal(config->model.vocab_size, 1000);
    assert_int_equal(config->model.kv_channels, 64);
    assert_int_equal(config->model.window_keys, 129);
    assert_string_equal(config->model.window_attn_skip_freq, "2");
    assert_true(config->optimizer.clip_grad <= 0);
    me_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reals__taken),
        cmocka_unit_test(test_reals__refused),
        cmocka_unit_test(test_reals__not_asked),
        cmocka_unit_test(test_reals__digits_of_any_script),
    };
    return cmocka_run_group_tests_name("config_reals", tests, NULL, NULL);
}
