/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/flag_contradictions.h"

#include "base/alloc.h"
#include "base/parse.h"
#include "base/python_number.h"
#include "base/size.h"
#include "config/megatron/megatron_arguments.h"
#include "parallel/moe_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Flags that Megatron-LM stops at together: by the tables of
 * flag_contradiction_rows.c, and by numbers. What options say of a job is checked
 * in the other files here, for jobs that are no command as well. */

/** Of weights that are cut over more ranks than tensor parallelism has, by one of
 *  these flags (validate_args(), GTP). */
#define SHARDS                                                                 \
    "--tensor-parallel-num-weight-shards "                                     \
    "--expert-tensor-parallel-num-weight-shards"

/** Shared experts that Megatron-LM captures itself, of weights that are cut
 *  further: as part of a layer, of its experts or with their router. */
#define LOCAL_SHARED                                                           \
    "--tensor-parallel-num-weight-shards&--cuda-graph-impl=local&"             \
    "--recompute-granularity=selective&"                                       \
    "--moe-shared-expert-intermediate-size"
#define GRAPHED_SHARED                                                         \
    LOCAL_SHARED "&!--cuda-graph-modules " LOCAL_SHARED                        \
                 "&--cuda-graph-modules=moe|moe_router"

static const me_flag_contradiction of_shards[] = {
    {SHARDS, .also = "--fp4-format", .needs = "--fp4-param-gather"},
    {SHARDS, .with = "--ddp-average-in-collective"},
    {SHARDS, .with = "--ckpt-format=torch_dcp|fsdp_dtensor"},
    // core/parallel_state.py, initialize_model_parallel()
    {SHARDS, .with = "--num-distributed-optimizer-instances>1"},
    {SHARDS, .also = "--dist-ckpt-optim-fully-reshardable",
     .with = "--distrib-optim-fully-reshardable-mem-efficient"},
    {SHARDS, .also = "--fp8-recipe=mxfp8", .needs = "--fp8-param-gather"},
    {SHARDS, .also = "--fp8-recipe=mxfp8",
     .needs = "--reuse-grad-buf-for-mxfp8-param-ag"},
    // TransformerConfig: shared experts that are captured and computed again
    {GRAPHED_SHARED, .also = "--fp8-format --fp4-format",
     .without = "--moe-shared-expert-overlap",
     .with = "--recompute-modules=shared_experts"},
};

/** The number of a flag, which may be none; false: it is not given. */
static bool number_of(const me_flag_uses *uses, const char *flag, double *out)
{
    me_str text = {0};
    const me_flag_use *use = flag == NULL ? NULL : me_flag_use_find(uses, flag);
    if (use == NULL || use->n_values != 1) {
        return false;
    }
    const bool is_number = me_parse_double(use->values[0], out) == ME_OK;
    if (!is_number && me_python_not_finite(use->values[0], &text)) {
        const char *word = me_str_text(&text);
        *out = word[0] == 'n'   ? (double)NAN
               : word[0] == '-' ? (double)-INFINITY
                                : (double)INFINITY;
    }
    const bool is_there = is_number || text.length > 0;
    me_str_fini(&text);
    return is_there;
}

/** `--flag`, `--flag=a|b`, `--flag>0`, `--flag<0` or `--flag~text`; not that behind
 *  a `!`. */
static bool part_holds(const me_flag_uses *uses, const char *part,
                       size_t length)
{
    const bool is_negated = *part == '!';
    part += is_negated;
    length -= is_negated;
    char text[160];
    double value = 0;
    (void)snprintf(text, sizeof text, "%.*s", (int)length, part);
    char *sign = text + strcspn(text, "<>~");
    const char kind = *sign;
    if (kind == '\0') {
        return me_flag_needs_hold(uses, text) != is_negated;
    }
    *sign = '\0';
    if (kind == '~') {
        const me_flag_use *use = me_flag_use_find(uses, text);
        return (use != NULL && use->n_values == 1 &&
                strstr(use->values[0], sign + 1) != NULL) != is_negated;
    }
    const double to = strtod(sign + 1, NULL);
    return (number_of(uses, text, &value) &&
            (kind == '>' ? value > to : value < to)) != is_negated;
}

/** The first condition of a list that holds; NULL: none does. */
static const char *holding(const me_flag_uses *uses, const char *conditions,
                           size_t *length_out)
{
    size_t length = 0;
    for (const char *at = me_name_next(&conditions, &length); at != NULL;
         at = me_name_next(&conditions, &length)) {
        bool is_met = true;
        for (size_t n = 0, from = 0; is_met && from < length; from += n + 1) {
            n = strcspn(at + from, "& ");
            is_met = part_holds(uses, at + from, n);
        }
        if (is_met) {
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
static void print_condition(const char *text, size_t length, char *out,
                            size_t size)
{
    static const struct {
        char sign;
        const char *words;
    } signs[] = {
        {' ', " or "},   {'=', " "},       {'&', " with "},
        {'>', " over "}, {'<', " under "}, {'~', " with a "},
    };

    size_t n = 0;
    for (size_t i = 0; i < length && n + 10 < size; i++) {
        const char *words = NULL;
        for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
            words = signs[k].sign == text[i] ? signs[k].words : words;
        }
        n += (size_t)snprintf(out + n, size - n, "%.*s", words == NULL ? 1 : 10,
                              words == NULL ? text + i : words);
    }
}

/** The condition of @p conditions that holds, after @p before; "": there are none.
 *  Of several values that it takes the one that is given is named. */
static void print_holding(const me_flag_uses *uses, const char *before,
                          const char *conditions, char out[CONDITION_BYTES])
{
    size_t length = 0;
    const char *at =
        conditions == NULL ? NULL : holding(uses, conditions, &length);
    *out = '\0';
    if (at == NULL) {
        return;
    }
    char flag[CONDITION_BYTES];
    const size_t n_flag = (size_t)me_min_u64(strcspn(at, "="), length);
    (void)snprintf(flag, sizeof flag, "%.*s", (int)n_flag, at);
    const me_flag_use *use = me_flag_use_find(uses, flag);
    const bool is_choice = memchr(at, '|', length) != NULL &&
                           memchr(at, '&', length) == NULL && use != NULL;
    const int n = snprintf(out, CONDITION_BYTES, "%s", before);
    if (is_choice && use->n_values == 1) {
        (void)snprintf(out + n, CONDITION_BYTES - (size_t)n, "%s %.60s", flag,
                       use->values[0]);
    } else {
        print_condition(at, length, out + n, CONDITION_BYTES - (size_t)n);
    }
}

/** All that has to hold for a job to stop is named, for a reader to know which of
 *  it to change. */
static me_status check_one(const me_flag_contradiction *c, me_config *config,
                           const me_flag_uses *uses, me_diag *diag)
{
    if (!holds(uses, c->when) || (c->also != NULL && !holds(uses, c->also)) ||
        (c->without != NULL && holds(uses, c->without))) {
        return ME_OK;
    }
    char when[CONDITION_BYTES];
    char also[CONDITION_BYTES];
    char other[CONDITION_BYTES];
    print_holding(uses, "", c->when, when);
    print_holding(uses, " beside ", c->also, also);
    print_holding(uses, "", c->with, other);
    char stops[4 * CONDITION_BYTES];
    if (other[0] != '\0') {
        (void)snprintf(stops, sizeof stops,
                       "%s and %s exclude each other%s: give one", when, other,
                       also);
    } else if (c->needs != NULL && !holds(uses, c->needs)) {
        print_condition(c->needs, strlen(c->needs), other, sizeof other);
        (void)snprintf(stops, sizeof stops, "%s%s needs %s", when, also, other);
    } else {
        return ME_OK;
    }
    return c->is_light ? me_megatron_pass(config, stops, diag)
                       : me_fail(diag, ME_ERR_CONFIG, "%s", stops);
}

/** What a flag's number must be to another's. */
typedef enum relation {
    AT_MOST,
    AT_LEAST,
    MULTIPLE_OF,
    EQUAL_TO,
    ABOVE,
    BELOW
} relation;

/** A loss scale that changes. */
#define DYNAMIC "--fp16&!--loss-scale>0"

/** Weights of a normal distribution. */
#define DRAWN "!--no-initialization"

static const struct {
    const char *when; /**< NULL: always */
    const char *flag;
    relation relation;
    const char
        *other;    /**< the first of these that is given; NULL: the number */
    double number; /**< also if the other flag is not given; < 0: nothing
                            is asked then */
} numbers[] = {
    {NULL, "--num-dataset-builder-threads", ABOVE, NULL, 0},
    {NULL, "--decoder-seq-length", AT_MOST, "--max-position-embeddings", -1},
    {NULL, "--min-lr", AT_MOST, "--lr", -1},
    {NULL, "--lr", AT_LEAST, "--min-lr", 0},
    {"--save", "--save-interval", ABOVE, NULL, 0},
    {"--save", "--persistent-save-interval", ABOVE, NULL, 0},
    {"--save", "--save-retain-interval", ABOVE, NULL, 0},
    {"--save", "--save-retain-interval", MULTIPLE_OF,
     "--save-interval --persistent-save-interval", -1},
    {NULL, "--log-memory-interval", MULTIPLE_OF, "--log-interval", 100},
    {"--fim-data", "--fim-rate", ABOVE, NULL, 0},
    {"--fim-data", "--fim-spm-rate", ABOVE, NULL, 0},
    {"--qk-clip", "--qk-clip-alpha", ABOVE, NULL, 0},
    {"--qk-clip", "--qk-clip-alpha", BELOW, NULL, 1},
    {"--qk-clip", "--qk-clip-threshold", ABOVE, NULL, 0},
    {NULL, "--moe-shared-expert-intermediate-size", ABOVE, NULL, 0},
    {"!--moe-flex-dispatcher-num-sms", "--moe-deepep-num-sms", EQUAL_TO,
     "--moe-hybridep-num-sms", -1},
    {"--num-experts", "--moe-input-jitter-eps", ABOVE, NULL, 0},
    // init_method_normal() (core/utils.py): normal_() takes no other deviation
    {DRAWN, "--init-method-std", AT_LEAST, NULL, 0},
    {DRAWN, "--embedding-init-method-std", AT_LEAST, NULL, 0},
    // OptimizerParamScheduler (core/optimizer_param_scheduler.py)
    {"--train-iters&!--skip-train", "--lr-decay-iters", ABOVE, NULL, 0},
    {"--train-samples&!--skip-train", "--lr-decay-samples", ABOVE, NULL, 0},
    {"--train-iters&!--skip-train", "--lr-warmup-iters", BELOW,
     "--lr-decay-iters --train-iters", -1},
    {"--train-samples&!--skip-train", "--lr-warmup-samples", BELOW,
     "--lr-decay-samples --train-samples", -1},
    {"!--skip-train", "--lr-warmup-fraction", BELOW, NULL, 1},
    {"!--skip-train", "--min-lr", AT_LEAST, NULL, 0},
    {"!--skip-train", "--lr-warmup-init", AT_MOST, "--lr", -1},
    // training/training.py, train()
    {"--manual-gc&!--skip-train", "--manual-gc-interval", AT_LEAST, NULL, 0},
    // DynamicGradScaler (core/optimizer/grad_scaler.py)
    {DYNAMIC, "--min-loss-scale", ABOVE, NULL, 0},
    {DYNAMIC, "--initial-loss-scale", AT_LEAST, "--min-loss-scale", 1},
    {DYNAMIC, "--loss-scale-window", ABOVE, NULL, 0},
    {DYNAMIC, "--hysteresis", ABOVE, NULL, 0},
    {"--experimental-attention-variant=gated_delta_net",
     "--linear-num-value-heads", MULTIPLE_OF, "--linear-num-key-heads", 16},
};

static const char *const relation_texts[] = {
    [AT_MOST] = "at most",
    [AT_LEAST] = "at least",
    [MULTIPLE_OF] = "a multiple of",
    [EQUAL_TO] = "equal to",
    [ABOVE] = "above",
    [BELOW] = "below",
};

static bool is_related(double value, relation asked, double to)
{
    switch (asked) {
    case AT_MOST: return value <= to;
    case AT_LEAST: return value >= to;
    case EQUAL_TO: return value == to;
    case MULTIPLE_OF:
        return to > 0 && value >= 0 && (uint64_t)value % (uint64_t)to == 0;
    case ABOVE: return value > to;
    case BELOW: return value < to;
    }
    return true;
}

/** The number of the first of some flags that is given, which is named. */
static bool number_of_first(const me_flag_uses *uses, const char *flags,
                            char name_out[CONDITION_BYTES], double *out)
{
    size_t length = 0;
    for (const char *at = me_name_next(&flags, &length); at != NULL;
         at = me_name_next(&flags, &length)) {
        (void)snprintf(name_out, CONDITION_BYTES, "%.*s", (int)length, at);
        if (number_of(uses, name_out, out)) {
            return true;
        }
    }
    return false;
}

/** All of the first kinds are of learning rates, checkpoints and data, which take
 *  no memory. */
static bool is_light(const char *flag)
{
    static const char *const light[] = {"--lr",         "--min-lr",
                                        "--save",       "--persistent-save",
                                        "--log-memory", "--manual-gc"};
    bool is = false;
    for (size_t i = 0; i < sizeof light / sizeof light[0]; i++) {
        is = is || strncmp(flag, light[i], strlen(light[i])) == 0;
    }
    return is;
}

static me_status check_number(size_t i, me_config *config,
                              const me_flag_uses *uses, me_diag *diag)
{
    double value = 0;
    double to = numbers[i].number;
    if ((numbers[i].when != NULL && !holds(uses, numbers[i].when)) ||
        !number_of(uses, numbers[i].flag, &value)) {
        return ME_OK;
    }
    const bool has_other = numbers[i].other != NULL;
    char other[CONDITION_BYTES] = "";
    if (has_other && !number_of_first(uses, numbers[i].other, other, &to) &&
        to < 0) {
        return ME_OK;
    }
    const me_flag_use *use = me_flag_use_find(uses, numbers[i].flag);
    if (is_related(value, numbers[i].relation, to)) {
        return ME_OK;
    }
    char stops[2 * CONDITION_BYTES];
    (void)snprintf(stops, sizeof stops, "%s %.80s: must be %s %s%s%g",
                   use->name, use->word == NULL ? use->values[0] : use->word,
                   relation_texts[numbers[i].relation], other,
                   has_other ? ", " : "", to);
    const me_status status = is_light(use->name)
                                 ? me_megatron_pass(config, stops, diag)
                                 : me_fail(diag, ME_ERR_CONFIG, "%s", stops);
    return status == ME_OK ? ME_OK : me_fail_flag(diag, status, use->name);
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
    me_status status = ME_OK;
    if (me_parse_u64(use->values[0], &period) == ME_OK) {
        if (period == 0 || n_layers % period == 0) {
            return ME_OK;
        }
        status = me_fail(diag, ME_ERR_CONFIG,
                         "--no-rope-freq %.40s: must divide --num-layers %d",
                         use->values[0], (int)n_layers);
        return me_fail_flag(diag, status, use->name);
    }
    bool *of_layers = me_alloc(n_layers, sizeof *of_layers, "rope.layers");
    status = of_layers == NULL
                 ? ME_ERR_NOMEM
                 : me_moe_layers_read(use->values[0], (int32_t)n_layers, NULL,
                                      of_layers);
    me_free(of_layers);
    if (status != ME_OK) {
        status = me_fail(diag, status,
                         "--no-rope-freq %.40s: must be a period, or a list "
                         "with a 0 or a 1 for each of the %d layers",
                         use->values[0], (int)n_layers);
        status = me_fail_flag(diag, status, use->name);
    }
    return status;
}

/** resolve_tensor_parallel_weight_shards() (core/model_parallel_config.py). */
static me_status check_shard_count(const me_flag_use *use,
                                   const me_flag_uses *uses, me_diag *diag)
{
    uint64_t ranks = 1;
    uint64_t shards = 0;
    const char *flag = me_megatron_shard_ranks(use, uses, &ranks);
    return flag == NULL || (me_parse_u64(use->values[0], &shards) == ME_OK &&
                            shards > 0 && shards % me_max_u64(ranks, 1) == 0)
               ? ME_OK
               : me_fail_flag(
                     diag,
                     me_fail(diag, ME_ERR_CONFIG,
                             "%s %.40s: must be a multiple of %s, %llu",
                             use->name, use->values[0], flag,
                             (unsigned long long)ranks),
                     use->name);
}

static me_status check_shards(me_config *config, const me_flag_uses *uses,
                              me_diag *diag)
{
    bool is_sharded = false;
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < uses->count; i++) {
        const me_flag_use *use = &uses->uses[i];
        if (!use->is_repeated) {
            status = check_shard_count(use, uses, diag);
            is_sharded |= strstr(SHARDS, use->name) != NULL &&
                          !me_megatron_shards_no_more(use, uses);
        }
    }
    for (size_t i = 0; is_sharded && status == ME_OK &&
                       i < sizeof of_shards / sizeof of_shards[0];
         i++) {
        status = check_one(&of_shards[i], config, uses, diag);
    }
    return status;
}

/** Kinds of balancing of which each has a coefficient (TransformerConfig). */
static me_status check_coefficients(const me_flag_uses *uses, me_diag *diag)
{
    const me_flag_use *kinds =
        me_flag_use_find(uses, "--moe-router-load-balancing-type");
    const me_flag_use *given = me_flag_use_find(uses, "--moe-aux-loss-coeff");
    const int n = given == NULL ? 1 : given->n_values;
    return kinds == NULL || kinds->n_values == 1 || kinds->n_values == n
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "--moe-router-load-balancing-type has %d kinds: "
                         "--moe-aux-loss-coeff must have a number for each",
                         kinds->n_values);
}

static me_status check_rows(const me_flag_contradiction *rows,
                            me_config *config, const me_flag_uses *uses,
                            me_diag *diag)
{
    me_status status = ME_OK;
    for (; status == ME_OK && rows->when != NULL; rows++) {
        status = check_one(rows, config, uses, diag);
    }
    return status;
}

me_status me_megatron_check_flags(me_config *config, const me_flag_uses *uses,
                                  me_diag *diag)
{
    me_status status =
        check_rows(me_contradictions_of_arguments, config, uses, diag);
    if (status == ME_OK) {
        status = check_rows(me_contradictions_of_configs, config, uses, diag);
    }
    for (size_t i = 0;
         status == ME_OK && i < sizeof numbers / sizeof numbers[0]; i++) {
        status = check_number(i, config, uses, diag);
    }
    if (status == ME_OK) {
        status = check_shards(config, uses, diag);
    }
    if (status == ME_OK) {
        status = check_coefficients(uses, diag);
    }
    return status == ME_OK ? check_rope_layers(uses, diag) : status;
}
