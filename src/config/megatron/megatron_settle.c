/* SPDX-License-Identifier: BSD-3-Clause */
/* What validate_args() makes of several flags together. */
#include "base/input.h"
#include "base/parse.h"
#include "base/python_number.h"
#include "base/size.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *me_megatron_shard_ranks(const me_flag_use *use,
                                    const me_flag_uses *uses,
                                    uint64_t *ranks_out)
{
    static const char *const shards[][3] = {
        {"--tensor-parallel-num-weight-shards", "--tensor-model-parallel-size"},
        {"--expert-tensor-parallel-num-weight-shards",
         "--expert-tensor-parallel-size", "--tensor-model-parallel-size"},
    };
    for (size_t i = 0; i < sizeof shards / sizeof shards[0]; i++) {
        if (strcmp(use->name, shards[i][0]) != 0) {
            continue;
        }
        const me_flag_use *ranks = me_flag_use_find(uses, shards[i][1]);
        if (ranks == NULL && shards[i][2] != NULL) {
            ranks = me_flag_use_find(uses, shards[i][2]);
        }
        *ranks_out = 1;
        return ranks == NULL ||
                       me_parse_u64(ranks->values[0], ranks_out) == ME_OK
                   ? shards[i][1]
                   : NULL;
    }
    return NULL;
}

bool me_megatron_shards_no_more(const me_flag_use *use,
                                const me_flag_uses *uses)
{
    uint64_t ranks = 0;
    uint64_t shards = 0;
    return me_megatron_shard_ranks(use, uses, &ranks) != NULL &&
           me_parse_u64(use->values[0], &shards) == ME_OK && shards == ranks;
}

/** A number as _parse_numeric_value() reads it: `250B` is a thousand million times
 *  250 (core/num_microbatches_calculator.py). @return false: it is none */
static bool read_amount(const char *text, size_t length, double *amount_out)
{
    static const char suffixes[] = "KMBT";
    char number[64];
    if (length == 0 || length >= sizeof number) {
        return false;
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)length, text);
    const char last = (char)toupper((unsigned char)number[length - 1]);
    const char *suffix = strchr(suffixes, last);
    double factor = 1;
    if (suffix != NULL) {
        number[length - 1] = '\0';
        for (const char *c = suffixes; c <= suffix; c++) {
            factor *= 1000;
        }
    }
    me_str plain = {0};
    const bool is_read =
        me_python_float(number, &plain) &&
        me_parse_double(me_str_text(&plain), amount_out) == ME_OK;
    me_str_fini(&plain);
    *amount_out *= factor;
    return is_read && *amount_out >= 0 && *amount_out < 1e18;
}

/** "0:768 250B:1536": from so many tokens on a batch of so many samples. What
 *  StepBatchsizeNumMicroBatchesCalculator asserts of it; a job is as large as with
 *  the largest batch that it will have. @param least_out  where it begins */
static bool read_steps(const char *text, uint64_t *most_out, double *least_out)
{
    static const char between[] = ", \t\n";
    for (text += strspn(text, between); *text != '\0';
         text += strspn(text, between)) {
        double threshold = 0;
        double samples = 0;
        const size_t length = strcspn(text, between);
        const char *colon = memchr(text, ':', length);
        if (colon == NULL ||
            !read_amount(text, (size_t)(colon - text), &threshold) ||
            !read_amount(colon + 1, (size_t)(text + length - colon - 1),
                         &samples) ||
            samples < 1) {
            return false;
        }
        *most_out = samples > (double)*most_out ? (uint64_t)samples : *most_out;
        *least_out = threshold < *least_out ? threshold : *least_out;
        text += length;
    }
    return *most_out > 0;
}

static me_status settle_batches(me_config *config, const me_flag_uses *uses,
                                me_diag *diag)
{
    const me_flag_use *use =
        me_flag_use_find(uses, "--step-batch-size-schedule");
    uint64_t most = 0;
    double least = INFINITY;
    if (use == NULL) {
        return ME_OK;
    }
    const char *right =
        !read_steps(use->values[0], &most, &least)
            ? "be THRESHOLD:SIZE, several with blanks between them"
        : least >= (double)me_max_u64(config->model.seq_length, 1)
            ? "begin with a threshold of 0"
            : NULL;
    if (right != NULL) {
        const me_status status = me_fail(
            diag, ME_ERR_CONFIG, "--step-batch-size-schedule %.80s: must %s",
            use->values[0], right);
        return me_fail_flag(diag, status, use->name);
    }
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)most);
    return me_config_set(config, "train.global_batch_size", text, diag);
}

/** validate_args() turns the distributed optimizer on for these. */
static me_status settle_sharding(me_config *config, const me_flag_uses *uses,
                                 me_diag *diag)
{
    const me_flag_use *optimizer = me_flag_use_find(uses, "--optimizer");
    const bool is_sharded =
        me_flag_use_find(uses, "--use-megatron-fsdp") != NULL ||
        (optimizer != NULL && strcmp(optimizer->values[0], "dist_muon") == 0);
    return is_sharded && config->optimizer.kind != ME_OPTIMIZER_SGD
               ? me_config_set(config, "optimizer.distributed", "true", diag)
               : ME_OK;
}

static bool is_given(const me_flag_uses *uses, const char *name)
{
    return me_flag_use_find(uses, name) != NULL;
}

/** get_parameter_state_dp_zero() gathers with NCCL, on all ranks, for this
 * format alone; local checkpoints refuse it. */
static me_status settle_saving(me_config *config, const me_flag_uses *uses,
                               me_diag *diag)
{
    const me_flag_use *format = me_flag_use_find(uses, "--ckpt-format");
    const bool is_distributed =
        format == NULL || strcmp(format->values[0], "torch_dist") == 0;
    return is_given(uses, "--save") && is_distributed &&
                   is_given(uses, "--dist-ckpt-optim-fully-reshardable") &&
                   !is_given(
                       uses,
                       "--distrib-optim-fully-reshardable-mem-efficient") &&
                   !is_given(uses, "--no-save-optim")
               ? me_config_set(config, "optimizer.saves_fully_reshardable",
                               "true", diag)
               : ME_OK;
}

/** Does the tracker of checkpoints lie in the folder that a flag names? */
static bool has_tracker(const me_flag_uses *uses, const char *flag)
{
    const me_flag_use *folder = me_flag_use_find(uses, flag);
    char path[4096];
    const int length = folder == NULL || folder->n_values < 1
                           ? -1
                           : snprintf(path, sizeof path,
                                      "%s/latest_checkpointed_iteration.txt",
                                      folder->values[0]);
    return length > 0 && (size_t)length < sizeof path && me_input_is_file(path);
}

/** load_checkpoint(). Of a checkpoint that is not here nobody knows whether it will
 *  be there, unless the job ends without: the more is assumed. */
static me_status settle_loading(me_config *config, const me_flag_uses *uses,
                                me_diag *diag)
{
    const me_flag_use *format = me_flag_use_find(uses, "--ckpt-format");
    const bool is_other =
        (format != NULL && strcmp(format->values[0], "torch_dist") != 0) ||
        is_given(uses, "--ckpt-fully-parallel-load") ||
        is_given(uses, "--dist-ckpt-optim-fully-reshardable");
    const bool is_resumed = has_tracker(uses, "--load");
    const bool is_there = is_resumed ||
                          is_given(uses, "--exit-on-missing-checkpoint") ||
                          has_tracker(uses, "--pretrained-checkpoint");
    const bool is_weights =
        is_given(uses, "--finetune") || is_given(uses, "--no-load-optim") ||
        (!is_resumed && is_given(uses, "--pretrained-checkpoint"));
    if (!is_given(uses, "--load") &&
        !is_given(uses, "--pretrained-checkpoint")) {
        return ME_OK;
    }
    const me_status status = me_config_set(config, "train.load_checkpoint",
                                           is_other     ? "other"
                                           : is_weights ? "weights"
                                                        : "all",
                                           diag);
    return status != ME_OK || is_other || is_there
               ? status
               : me_config_assume(
                     config, diag,
                     "a checkpoint is there to be loaded (--load); without one "
                     "the job begins from nothing, which takes less: "
                     "train.load_checkpoint=nothing");
}

/** The variables are compared with "1" (torch/_dynamo/config.py, eval_frame.py,
 *  torch/_inductor/config.py): any other text, "true" among them, turns nothing
 *  off. */
static bool is_on(const me_config *config, const char *variable)
{
    const char *value = me_config_variable(config, variable);
    return value != NULL && strcmp(value, "1") == 0;
}

static me_status settle_compilation(me_config *config, me_diag *diag)
{
    if (is_on(config, "TORCH_COMPILE_DISABLE") ||
        is_on(config, "TORCHDYNAMO_DISABLE")) {
        return me_config_set(config, "train.torch_compile", "false", diag);
    }
    return is_on(config, "TORCHINDUCTOR_FORCE_DISABLE_CACHES")
               ? me_config_set(config, "train.compile_cache_is_warm", "false",
                               diag)
               : ME_OK;
}

/** Flags whose several values an option has as one text. */
static const char *const lists[][2] = {
    {"--moe-router-load-balancing-type", "moe.router_load_balancing"},
    {"--moe-aux-loss-coeff", "moe.aux_loss_coeffs"},
    {"--cuda-graph-modules", "train.cuda_graph_modules"},
    {"--cuda-graph-scope", "train.cuda_graph_modules"},
    {"--cp-comm-type", "parallel.cp_comm_layers"},
};

bool me_megatron_takes_list(const me_flag_use *use)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(use->name, lists[i][0]) == 0) {
            return true;
        }
    }
    return false;
}

static me_status settle_lists(me_config *config, const me_flag_uses *uses,
                              me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && status == ME_OK;
         i++) {
        const me_flag_use *use = me_flag_use_find(uses, lists[i][0]);
        if (use == NULL || use->n_values < 2 ||
            !me_flag_needs_hold(uses, use->flag.rule->needs)) {
            continue;
        }
        me_str text = {0};
        for (int v = 0; v < use->n_values; v++) {
            me_str_printf(&text, "%s%s", v == 0 ? "" : " ", use->values[v]);
        }
        status = me_config_set(config, lists[i][1], me_str_text(&text), diag);
        me_str_fini(&text);
    }
    return status;
}

/** (-1, 0) and (-1, -1) are windows that end nowhere: those of no window. */
static me_status settle_window(me_config *config, const me_flag_uses *uses,
                               me_diag *diag)
{
    const me_flag_use *window = me_flag_use_find(uses, "--window-size");
    if (window == NULL || window->n_values != 1) {
        return ME_OK;
    }
    const char *left = window->values[0] + strspn(window->values[0], "( ");
    if (strncmp(left, "-1", 2) == 0) {
        return me_config_set(config, "model.window_attention", "false", diag);
    }
    char keys[32];
    const size_t length = strspn(left, "0123456789");
    if (length == 0 || length > 8) { // longer than any sequence: all
        return ME_OK;
    }
    (void)snprintf(keys, sizeof keys, "%ld", strtol(left, NULL, 10) + 1);
    return me_config_set(config, "model.window_keys", keys, diag);
}

/** A job that offloads nothing but what is not modelled is one without: the flag
 *  says so. */
static me_status settle_offload(me_config *config, const me_flag_uses *uses,
                                me_diag *diag)
{
    const me_flag_use *modules = me_flag_use_find(uses, "--offload-modules");
    return modules != NULL && modules->n_values == 1 &&
                   strcmp(modules->values[0], "fused_group_mlp") == 0
               ? me_config_set(config, "offload.fine_grained", "false", diag)
               : ME_OK;
}

me_status me_megatron_settle(me_config *config, const me_flag_uses *uses,
                             me_diag *diag)
{
    me_status status = settle_batches(config, uses, diag);
    if (status == ME_OK) {
        status = settle_sharding(config, uses, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_settle_overlap(config, uses, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_settle_forks(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_compilation(config, diag);
    }
    if (status == ME_OK) {
        status = settle_loading(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_lists(config, uses, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_settle_context(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_window(config, uses, diag);
    }
    if (status == ME_OK) {
        status = settle_offload(config, uses, diag);
    }
    return status == ME_OK ? settle_saving(config, uses, diag) : status;
}
