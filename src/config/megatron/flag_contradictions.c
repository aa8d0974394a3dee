/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "config/megatron/megatron_arguments.h"

#include <stdio.h>
#include <string.h>

/* What validate_args() of core_v0.19.0 (training/arguments.py) asserts of flags
 * among each other, from top to bottom. What options say of a job is checked in
 * the other files here, for jobs that are no command as well. */

/** A condition: flags as in me_flag_rule.needs, of which one is enough; `--flag>0`
 *  is a number above it. */
typedef struct contradiction {
    const char *when;
    const char *also; /**< and this holds; NULL: always */
    const char
        *without;      /**< it does not hold with this; NULL: it always does */
    const char *with;  /**< then this must not be given … */
    const char *needs; /**< … or this must */
} contradiction;

static const contradiction contradictions[] = {
    {"--ckpt-convert-format", .needs = "--ckpt-convert-save"},
    {"--ckpt-convert-format", .needs = "--load"},
    {"--enable-cuda-graph --external-cuda-graph",
     .with = "--cuda-graph-impl=local|transformer_engine|full_iteration"},
    {"--enable-cuda-graph", .with = "--external-cuda-graph"},
    {"--cuda-graph-scope", .with = "--cuda-graph-modules"},
    {"--data-path", .with = "--data-args-path"},
    {"--train-data-path --valid-data-path --test-data-path",
     .with = "--per-split-data-args-path"},
    {"--rampup-batch-size", .with = "--step-batch-size-schedule"},
    {"--global-batch-size", .with = "--step-batch-size-schedule"},
    {"--num-layers-per-virtual-pipeline-stage",
     .with = "--num-virtual-stages-per-pipeline-rank"},
    {"--pipeline-model-parallel-layout",
     .with = "--num-layers-per-virtual-pipeline-stage"},
    {"--pipeline-model-parallel-layout",
     .with = "--num-virtual-stages-per-pipeline-rank"},
    {"--fp4-format", .with = "--fp8-format"},
    {"--fp4-param-gather", .needs = "--fp4-format"},
    {"--use-megatron-fsdp", .with = "--use-torch-fsdp2"},
    {"--check-weight-hash-across-dp-replicas-interval",
     .also = "--use-megatron-fsdp",
     .with = "--data-parallel-sharding-strategy=optim_grads_params"},
    {"--fsdp-manual-registration", .needs = "--use-megatron-fsdp"},
    {"--fsdp-manual-registration", .needs = "--use-nccl-ub"},
    {"--bf16", .with = "--fp16"},
    {"--train-iters", .without = "--skip-train", .with = "--train-samples"},
    {"--train-iters", .without = "--skip-train", .with = "--lr-decay-samples"},
    {"--train-iters", .without = "--skip-train",
     .with = "--lr-warmup-samples>0"},
    {"--train-iters", .without = "--skip-train", .also = "--lr-warmup-fraction",
     .with = "--lr-warmup-iters>0"},
    {"--train-samples", .without = "--skip-train", .with = "--lr-decay-iters"},
    {"--train-samples", .without = "--skip-train",
     .with = "--lr-warmup-iters>0"},
    {"--train-samples", .without = "--skip-train",
     .also = "--lr-warmup-fraction", .with = "--lr-warmup-samples>0"},
    {"--num-layers", .with = "--encoder-num-layers"},
    {"--seq-length", .with = "--encoder-seq-length"},
    {"--save-params-interval", .also = "--save",
     .with = "--overlap-param-gather"},
    {"--fp16-lm-cross-entropy", .needs = "--fp16"},
    {"--start-weight-decay --end-weight-decay",
     .needs = "--weight-decay-incr-style=linear|cosine"},
    {"--weight-decay-incr-style=linear|cosine",
     .needs = "--start-weight-decay"},
    {"--weight-decay-incr-style=linear|cosine", .needs = "--end-weight-decay"},
    {"--tp-comm-overlap", .needs = "--sequence-parallel"},
    {"--hybrid-context-parallel", .with = "--pipeline-model-parallel-size>1"},
    {"--hybrid-context-parallel", .with = "--enable-cuda-graph"},
    {"--hybrid-context-parallel", .with = "--use-megatron-fsdp"},
    {"--hybrid-context-parallel", .needs = "--calculate-per-token-loss"},
    {"--no-position-embedding",
     .needs =
         "--position-embedding-type=rope --use-rotary-position-embeddings"},
    {"--position-embedding-type=relative", .with = "--transformer-impl=local"},
    {"--position-embedding-type=mrope", .needs = "--mrope-section"},
    {"--mock-data", .with = "--data-path --train-data-path --valid-data-path "
                            "--test-data-path"},
    {"--data-path",
     .with = "--train-data-path --valid-data-path --test-data-path"},
    {"--fim-data", .with = "--mock-data"},
    {"--dist-ckpt-optim-fully-reshardable",
     .also = "--disable-gloo-process-groups",
     .with = "--distrib-optim-fully-reshardable-mem-efficient"},
    {"--load-main-params-from-ckpt", .needs = "--no-load-optim"},
    {"--logits-save-dir", .needs = "--logits-save-top-k"},
    {"--logits-save-dir", .needs = "--async-save"},
    {"--override-ckpt-iteration", .with = "--finetune"},
    {"--moe-use-upcycling", .needs = "--save"},
    {"--non-persistent-ckpt-type=local",
     .needs = "--non-persistent-local-ckpt-dir"},
    {"--replication", .needs = "--replication-jump"},
    {"--replication", .needs = "--non-persistent-ckpt-type=local"},
    {"--cuda-graph-impl=full_iteration", .with = "--cuda-graph-modules"},
    {"--mla-down-proj-fusion", .needs = "--multi-latent-attention"},
    {"--moe-latent-size", .needs = "--num-experts"},
    /* add_network_size_args() and TransformerConfig */
    {"--swiglu", .with = "--squared-relu"},
    {"--swiglu", .with = "--quick-geglu"},
};

static bool is_above(const me_flag_uses *uses, const char *name, size_t length,
                     double least)
{
    char flag[96];
    double value = 0;
    (void)snprintf(flag, sizeof flag, "%.*s", (int)length, name);
    const me_flag_use *use = me_flag_use_find(uses, flag);
    return use != NULL && use->n_values == 1 &&
           me_parse_double(use->values[0], &value) == ME_OK && value > least;
}

/** The first condition of a list that holds; NULL: none does. */
static const char *holding(const me_flag_uses *uses, const char *conditions,
                           size_t *length_out)
{
    for (const char *at = conditions; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        const char *number = memchr(at, '>', length);
        char one[160];
        (void)snprintf(one, sizeof one, "%.*s", (int)length, at);
        const bool holds =
            number == NULL
                ? me_flag_needs_hold(uses, one)
                : is_above(uses, at, (size_t)(number - at), number[1] - '0');
        if (holds) {
            *length_out = length;
            return at;
        }
        at += length;
        at += strspn(at, " ");
    }
    return NULL;
}

static bool holds(const me_flag_uses *uses, const char *conditions)
{
    size_t length = 0;
    return holding(uses, conditions, &length) != NULL;
}

/** "--a=b|c" as a user reads it: "--a b|c". */
static void print_condition(const char *text, size_t length, char out[160])
{
    (void)snprintf(out, 160, "%.*s", (int)length, text);
    char *equals = strchr(out, '=');
    if (equals != NULL) {
        *equals = ' ';
    }
}

static me_status check_one(const contradiction *c, const me_flag_uses *uses,
                           me_diag *diag)
{
    size_t length = 0;
    size_t with_length = 0;
    const char *when = holding(uses, c->when, &length);
    if (when == NULL || (c->also != NULL && !holds(uses, c->also)) ||
        (c->without != NULL && holds(uses, c->without))) {
        return ME_OK;
    }
    const char *with =
        c->with == NULL ? NULL : holding(uses, c->with, &with_length);
    char a[160];
    char b[160];
    print_condition(when, length, a);
    if (with != NULL) {
        print_condition(with, with_length, b);
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s and %s exclude each other: give one", a, b);
    }
    if (c->needs != NULL && !holds(uses, c->needs)) {
        print_condition(c->needs, strlen(c->needs), b);
        return me_fail(diag, ME_ERR_CONFIG, "%s needs %s", a, b);
    }
    return ME_OK;
}

/** What a flag's number must be to another's. */
typedef enum relation {
    AT_MOST,
    MULTIPLE_OF,
    ABOVE,
    BELOW
} relation;

static const struct {
    const char *when; /**< NULL: always */
    const char *flag;
    relation relation;
    const char *other; /**< NULL: the number */
    double number;     /**< also if the other flag is not given; < 0: nothing
                            is asked then */
} numbers[] = {
    {NULL, "--min-lr", AT_MOST, "--lr", -1},
    {"--save", "--save-interval", ABOVE, NULL, 0},
    {"--save", "--save-retain-interval", MULTIPLE_OF, "--save-interval", -1},
    {NULL, "--log-memory-interval", MULTIPLE_OF, "--log-interval", 100},
    {"--qk-clip", "--qk-clip-alpha", ABOVE, NULL, 0},
    {"--qk-clip", "--qk-clip-alpha", BELOW, NULL, 1},
    {"--qk-clip", "--qk-clip-threshold", ABOVE, NULL, 0},
};

static const char *const relation_texts[] = {
    [AT_MOST] = "at most",
    [MULTIPLE_OF] = "a multiple of",
    [ABOVE] = "above",
    [BELOW] = "below",
};

static bool is_related(double value, relation asked, double to)
{
    switch (asked) {
    case AT_MOST: return value <= to;
    case MULTIPLE_OF:
        return to > 0 && value >= 0 && (uint64_t)value % (uint64_t)to == 0;
    case ABOVE: return value > to;
    case BELOW: return value < to;
    }
    return true;
}

/** The number of a flag; false: it is not given, or is none. */
static bool number_of(const me_flag_uses *uses, const char *flag, double *out)
{
    const me_flag_use *use = flag == NULL ? NULL : me_flag_use_find(uses, flag);
    return use != NULL && use->n_values == 1 &&
           me_parse_double(use->values[0], out) == ME_OK;
}

static me_status check_number(size_t i, const me_flag_uses *uses, me_diag *diag)
{
    double value = 0;
    double to = numbers[i].number;
    if ((numbers[i].when != NULL && !holds(uses, numbers[i].when)) ||
        !number_of(uses, numbers[i].flag, &value)) {
        return ME_OK;
    }
    if (!number_of(uses, numbers[i].other, &to) && to < 0) {
        return ME_OK;
    }
    const bool has_other = numbers[i].other != NULL;
    return is_related(value, numbers[i].relation, to)
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG, "%s %g: must be %s %s%s%g",
                         numbers[i].flag, value,
                         relation_texts[numbers[i].relation],
                         has_other ? numbers[i].other : "",
                         has_other ? ", " : "", to);
}

me_status me_megatron_check_flags(const me_flag_uses *uses, me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK &&
                       i < sizeof contradictions / sizeof contradictions[0];
         i++) {
        status = check_one(&contradictions[i], uses, diag);
    }
    for (size_t i = 0;
         status == ME_OK && i < sizeof numbers / sizeof numbers[0]; i++) {
        status = check_number(i, uses, diag);
    }
    return status;
}
