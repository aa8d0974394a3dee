/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/parse.h"
#include "config/megatron/megatron_arguments.h"
#include "parallel/moe_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What validate_args() of core_v0.19.0 (training/arguments.py) asserts of flags
 * among each other, from top to bottom, and what TransformerConfig does behind it
 * (core/transformer/transformer_config.py). What options say of a job is checked
 * in the other files here, for jobs that are no command as well. */

#define SELECTIVE "--recompute-granularity=selective --recompute-activations"
#define EMERGING  "--optimizer=muon|dist_muon|lion|soap|adaptive_muon"

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
    {"--inference-cuda-graph-scope=layer|block",
     .needs = "--cuda-graph-impl=local --enable-cuda-graph"},
    {"--inference-cuda-graph-scope=none",
     .with = "--cuda-graph-impl=local --enable-cuda-graph"},
    {"--data-path", .with = "--data-args-path"},
    {"--train-data-path --valid-data-path --test-data-path",
     .with = "--per-split-data-args-path"},
    {"--global-batch-size", .with = "--step-batch-size-schedule"},
    {"--decrease-batch-size-if-needed", .with = "--step-batch-size-schedule"},
    {"--hybrid-override-pattern", .with = "--hybrid-layer-pattern"},
    {"--hybrid-layer-pattern --hybrid-override-pattern",
     .with = "--num-layers-per-virtual-pipeline-stage "
             "--num-virtual-stages-per-pipeline-rank "
             "--pipeline-model-parallel-layout "
             "--account-for-embedding-in-pipeline-split "
             "--account-for-loss-in-pipeline-split"},
    {"--num-layers-per-virtual-pipeline-stage",
     .with = "--num-virtual-stages-per-pipeline-rank"},
    {"--pipeline-model-parallel-layout",
     .with = "--num-layers-per-virtual-pipeline-stage"},
    {"--pipeline-model-parallel-layout",
     .with = "--num-virtual-stages-per-pipeline-rank"},
    {"--fp4-format", .with = "--fp8-format"},
    {"--fp4-param-gather", .needs = "--fp4-format"},
    {"--use-megatron-fsdp", .with = "--use-torch-fsdp2"},
    {"--moe-single-grouped-weight --moe-single-grouped-bias",
     .with = "--use-megatron-fsdp"},
    {"--check-weight-hash-across-dp-replicas-interval",
     .also = "--use-megatron-fsdp",
     .with = "--data-parallel-sharding-strategy=optim_grads_params"},
    {"--fsdp-manual-registration", .needs = "--use-megatron-fsdp"},
    {"--fsdp-manual-registration", .needs = "--use-nccl-ub"},
    {"--bf16", .with = "--fp16"},
    {"--inference-cuda-graph-scope=block", .also = "--fp8-format",
     .needs = "--transformer-impl=inference_optimized"},
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
    {"--save", .needs = "--save-interval --persistent-save-interval"},
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
    {"--hybrid-context-parallel", .with = "--dataloader-type=cyclic|external"},
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
    {"--disable-gloo-process-groups", .also = "--use-distributed-optimizer",
     .without = EMERGING, .with = "--ckpt-format=torch"},
    {"--dist-ckpt-optim-fully-reshardable",
     .also = "--disable-gloo-process-groups",
     .with = "--distrib-optim-fully-reshardable-mem-efficient"},
    {"--load-main-params-from-ckpt", .needs = "--no-load-optim"},
    {"--logits-save-dir", .needs = "--logits-save-top-k"},
    {"--logits-save-dir", .needs = "--async-save"},
    {"--override-ckpt-iteration", .with = "--finetune"},
    {"--inference-batch-times-seqlen-threshold>-1",
     .needs = "--pipeline-model-parallel-size>1"},
    {"--inference-batch-times-seqlen-threshold>-1",
     .with = "--cuda-graph-impl=local|transformer_engine|full_iteration "
             "--enable-cuda-graph --external-cuda-graph"},
    {"--moe-use-upcycling", .needs = "--save"},
    {"--non-persistent-ckpt-type=local",
     .needs = "--non-persistent-local-ckpt-dir"},
    {"--replication", .needs = "--replication-jump"},
    {"--replication", .needs = "--non-persistent-ckpt-type=local"},
    {"--cuda-graph-impl=full_iteration", .with = "--cuda-graph-modules"},
    {"--cuda-graph-impl=full_iteration",
     .also = "--fine-grained-activation-offloading",
     .needs = "--fine-grained-offloading-max-inflight-offloads"},
    {"--group-query-attention", .with = "--multi-latent-attention"},
    {"--mla-down-proj-fusion", .needs = "--multi-latent-attention"},
    {"--moe-latent-size", .needs = "--num-experts"},
    /* core_transformer_config_from_args() and TransformerConfig */
    {"--swiglu", .with = "--squared-relu"},
    {"--swiglu", .with = "--quick-geglu"},
    {"--heterogeneous-layers-config-path", .with = "--multi-latent-attention"},
    {"--rope-type=yarn", .needs = "--multi-latent-attention"},
    {"--fp8-recipe=custom", .also = "--fp8-format",
     .needs = "--fp8-quantizer-factory"},
    {"--fp8-output-proj", .needs = "--fp8-format"},
    {"--fp8-output-proj", .needs = "--fp8-recipe=mxfp8"},
    {"--fp4-recipe=custom", .also = "--fp4-format",
     .needs = "--fp4-quantizer-factory"},
    {"--moe-ffn-hidden-size",
     .without = "--moe-layer-freq --use-checkpoint-args",
     .needs = "--num-experts"},
    {"--moe-single-grouped-weight --moe-single-grouped-bias",
     .needs = "--moe-grouped-gemm"},
    {"--moe-single-grouped-weight", .also = "--fp8-format",
     .needs = "--fp8-recipe=mxfp8"},
    {"--moe-single-grouped-weight",
     .needs = "--use-transformer-engine-op-fuser"},
    {"--moe-single-grouped-bias", .with = "--disable-bias-linear"},
    {"--moe-flex-dispatcher-backend=ncclep",
     .needs = "--moe-token-dispatcher-type=flex"},
    {"--moe-expert-rank-capacity-factor",
     .needs = "--moe-flex-dispatcher-backend=hybridep|ncclep"},
    {"--moe-expert-rank-capacity-factor",
     .without = "--moe-flex-dispatcher-backend=ncclep",
     .needs = "--use-transformer-engine-op-fuser"},
    {"--recompute-modules=gdn_norm_out", .also = SELECTIVE,
     .needs = "--experimental-attention-variant=gated_delta_net"},
    {"--moe-layer-recompute", .with = "--recompute-granularity=full"},
    {"--moe-paged-stash", .with = "--cpu-offloading-num-layers>0"},
    {"--moe-paged-stash", .needs = "--moe-expert-rank-capacity-factor"},
    {"--glu-linear-offset --use-te-activation-func", .also = "--swiglu",
     .needs = "--no-bias-swiglu-fusion"},
    {"--glu-linear-offset",
     .without = "--swiglu --quick-geglu --disable-bias-linear",
     .needs = "--no-bias-gelu-fusion"},
    {"--use-te-activation-func", .without = "--swiglu --disable-bias-linear",
     .needs = "--no-bias-gelu-fusion"},
    {"--use-te-activation-func", .with = "--squared-relu --quick-geglu"},
    {"--fused-residual-rmsnorm", .needs = "--normalization=RMSNorm"},
    {"--overlap-dispatch-backward-with-experts-wgrad",
     .with = "--overlap-moe-expert-parallel-comm --delay-wgrad-compute"},
    {"--experimental-attention-variant=gated_delta_net",
     .needs = "--linear-attention-freq"},
    {"--transformer-impl=inference_optimized",
     .needs = "--normalization=RMSNorm"},
    {"--transformer-impl=inference_optimized", .with = "--apply-layernorm-1p"},
    {"--transformer-impl=inference_optimized",
     .needs = "--disable-bias-linear"},
    {"--transformer-impl=inference_optimized", .with = "--add-qkv-bias"},
    {"--inference-fuse-tp-communication "
     "--inference-disable-triton-nvls-kernels",
     .needs = "--transformer-impl=inference_optimized"},
    {"--batch-invariant-mode", .needs = "--attention-backend=flash"},
    {"--batch-invariant-mode", .needs = "--flash-attention-version=3|4"},
    {"--batch-invariant-mode", .with = "--context-parallel-size>1"},
    {"--batch-invariant-mode", .needs = "--attention-dropout=0|0.0"},
};

/** Of weights that are cut over more ranks than tensor parallelism has, by one of
 *  these flags (validate_args(), GTP). */
#define SHARDS                                                                 \
    "--tensor-parallel-num-weight-shards "                                     \
    "--expert-tensor-parallel-num-weight-shards"

static const contradiction of_shards[] = {
    {SHARDS, .also = "--fp4-format", .needs = "--fp4-param-gather"},
    {SHARDS, .with = "--ddp-average-in-collective"},
    {SHARDS, .with = "--ckpt-format=torch_dcp|fsdp_dtensor"},
    {SHARDS, .also = "--dist-ckpt-optim-fully-reshardable",
     .with = "--distrib-optim-fully-reshardable-mem-efficient"},
    {SHARDS, .also = "--fp8-recipe=mxfp8", .needs = "--fp8-param-gather"},
    {SHARDS, .also = "--fp8-recipe=mxfp8",
     .needs = "--reuse-grad-buf-for-mxfp8-param-ag"},
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
    size_t length = 0;
    for (const char *at = me_name_next(&conditions, &length); at != NULL;
         at = me_name_next(&conditions, &length)) {
        const char *number = memchr(at, '>', length);
        char one[160];
        (void)snprintf(one, sizeof one, "%.*s", (int)length, at);
        const bool holds = number == NULL
                               ? me_flag_needs_hold(uses, one)
                               : is_above(uses, at, (size_t)(number - at),
                                          strtod(number + 1, NULL));
        if (holds) {
            *length_out = length;
            return at;
        }
    }
    return NULL;
}

static bool holds(const me_flag_uses *uses, const char *conditions)
{
    size_t length = 0;
    return holding(uses, conditions, &length) != NULL;
}

enum {
    CONDITION_BYTES = 200
};

/** "--a=b|c --d>1" as a user reads it: "--a b|c or --d over 1". */
static void print_condition(const char *text, size_t length, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < length && n < CONDITION_BYTES - 8; i++) {
        const char *word = text[i] == ' '   ? " or "
                           : text[i] == '=' ? " "
                           : text[i] == '>' ? " over "
                                            : NULL;
        n += (size_t)snprintf(out + n, CONDITION_BYTES - n, "%.*s",
                              word == NULL ? 1 : 6,
                              word == NULL ? text + i : word);
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
    char a[CONDITION_BYTES];
    char b[CONDITION_BYTES];
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
    {NULL, "--num-dataset-builder-threads", ABOVE, NULL, 0},
    {NULL, "--decoder-seq-length", AT_MOST, "--max-position-embeddings", -1},
    {NULL, "--min-lr", AT_MOST, "--lr", -1},
    {"--save", "--save-interval", ABOVE, NULL, 0},
    {"--save", "--persistent-save-interval", ABOVE, NULL, 0},
    {"--save", "--save-retain-interval", ABOVE, NULL, 0},
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

/** --cp-comm-type has one word, or one for each layer. */
static me_status check_exchanges(const me_flag_uses *uses, me_diag *diag)
{
    double layers = 0;
    const me_flag_use *use = me_flag_use_find(uses, "--cp-comm-type");
    return use == NULL || use->n_values == 1 ||
                   !holds(uses, "--context-parallel-size>1") ||
                   !number_of(uses, "--num-layers", &layers) ||
                   use->n_values == (int)layers
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "--cp-comm-type has %d words: must be one, or one for "
                         "each of the %d layers",
                         use->n_values, (int)layers);
}

/** --no-rope-freq is a period that divides the layers, or a list of them. */
static me_status check_rope_layers(const me_flag_uses *uses, me_diag *diag)
{
    double layers = 0;
    uint64_t period = 0;
    const me_flag_use *use = me_flag_use_find(uses, "--no-rope-freq");
    if (use == NULL || use->n_values != 1 ||
        !number_of(uses, "--num-layers", &layers) || layers < 1) {
        return ME_OK;
    }
    const uint64_t n_layers = (uint64_t)layers;
    if (me_parse_u64(use->values[0], &period) == ME_OK) {
        return period == 0 || n_layers % period == 0
                   ? ME_OK
                   : me_fail(diag, ME_ERR_CONFIG,
                             "--no-rope-freq %.40s: must divide --num-layers "
                             "%d",
                             use->values[0], (int)n_layers);
    }
    bool *of_layers = me_alloc(n_layers, sizeof *of_layers, "rope.layers");
    me_status status = of_layers == NULL ? ME_ERR_NOMEM
                                         : me_moe_layers_read(use->values[0],
                                                              (int32_t)n_layers,
                                                              NULL, of_layers);
    me_free(of_layers);
    if (status != ME_OK) {
        status = me_fail(diag, status,
                         "--no-rope-freq %.40s: must be a period, or a list "
                         "with a 0 or a 1 for each of the %d layers",
                         use->values[0], (int)n_layers);
    }
    return status;
}

static me_status check_shards(const me_flag_uses *uses, me_diag *diag)
{
    bool is_sharded = false;
    me_status status = ME_OK;
    for (int i = 0; i < uses->count; i++) {
        const me_flag_use *use = &uses->uses[i];
        is_sharded |= !use->is_repeated && strstr(SHARDS, use->name) != NULL &&
                      !me_megatron_shards_no_more(use, uses);
    }
    for (size_t i = 0; is_sharded && status == ME_OK &&
                       i < sizeof of_shards / sizeof of_shards[0];
         i++) {
        status = check_one(&of_shards[i], uses, diag);
    }
    return status;
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
    if (status == ME_OK) {
        status = check_shards(uses, diag);
    }
    if (status == ME_OK) {
        status = check_exchanges(uses, diag);
    }
    return status == ME_OK ? check_rope_layers(uses, diag) : status;
}
