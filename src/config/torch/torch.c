/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "config/config_private.h"
#include "config/framework.h"
#include "config/schedule_choice.h"
#include "config/torch/forward_text.h"
#include "config/torch/torch_autocast.h"
#include "config/torch/torch_checkpoints.h"
#include "config/torch/torch_schedule.h"
#include "config/torch/torch_settings.h"
#include "config/torch/torch_tied.h"
#include "config/torch/tree.h"
#include "parallel/schedule.h"

#include <limits.h>
#include <string.h>

/* Plain PyTorch: the model is the tree of layers, the batch the input. */

enum {
    EXTENT_DIGITS = 9,
    DIMS_MAX = 5
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/** The extents of "8, 1024", as Python writes a tuple without its brackets; a
 *  comma may follow the last one. @return behind them; NULL: there are none, or
 *  one is 0 or too large */
static const char *read_extents(const char *at, me_torch_job *job)
{
    job->n_input_dims = 0;
    while (is_digit(*at) && job->n_input_dims < DIMS_MAX) {
        uint64_t extent = 0;
        size_t digits = 0;
        for (; is_digit(*at) && digits < EXTENT_DIGITS; at++) {
            extent = extent * 10 + (uint64_t)(*at - '0');
            digits++;
        }
        if (extent == 0) {
            return NULL;
        }
        job->input_dims[job->n_input_dims++] = extent;
        at += strspn(at, " ");
        if (*at != ',') {
            break;
        }
        at += 1 + strspn(at + 1, " ");
    }
    return job->n_input_dims > 0 ? at : NULL;
}

/** "(8, 1024)" or "8, 1024". */
static me_status read_shape(me_config *config, me_diag *diag)
{
    const char *at = config->torch.input_shape;
    at += strspn(at, " ");
    const bool has_bracket = *at == '(';
    at += has_bracket ? 1 + strspn(at + 1, " ") : 0;
    at = read_extents(at, &config->torch_job);
    if (at != NULL && has_bracket) {
        at = *at == ')' ? at + 1 + strspn(at + 1, " ") : NULL;
    }
    if (at == NULL || *at != '\0') {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.input_shape = \"%s\": must be 1 to %d extents "
                       "from 1 to 999999999 as Python writes them, such as "
                       "\"(8, 1024)\"",
                       config->torch.input_shape, DIMS_MAX);
    }
    return ME_OK;
}

static me_status read_loss(me_config *config, me_diag *diag)
{
    static const char *const parameters[] = {"y", "target"};
    const me_forward_scope scope = {.parameters = parameters,
                                    .n_parameters = 2};
    me_forward *loss = me_arena_alloc(config->own->text, 1, sizeof *loss);
    me_str why = {0};
    me_status status = ME_ERR_NOMEM;
    if (loss != NULL) {
        status = me_forward_parse(config->own->text, config->torch.loss, &scope,
                                  &why, loss);
    }
    if (status == ME_ERR_CONFIG) {
        status = me_fail(diag, status, "torch.loss: %s", me_str_text(&why));
    } else if (status != ME_OK) {
        status = me_fail(diag, status, "no memory for torch.loss");
    }
    config->torch_job.loss = loss;
    me_str_fini(&why);
    return status;
}

static void derive_batch(me_config *config)
{
    me_train_config *t = &config->train;
    t->micro_batch_size = config->torch_job.input_dims[0];
    const uint64_t samples =
        me_size_mul(t->micro_batch_size, (uint64_t)config->parallel.data);
    if (t->global_batch_size == 0) {
        t->global_batch_size =
            me_size_mul(samples, (uint64_t)config->torch.num_microbatches);
    }
    const uint64_t n = samples == 0 ? 0 : t->global_batch_size / samples;
    t->num_microbatches = n > INT32_MAX ? INT32_MAX : (int32_t)n;
    if (!me_config_is_set(config, "torch.num_microbatches")) {
        config->torch.num_microbatches = t->num_microbatches;
    }
}

/** Chunks of a rank where the order says how many. */
static me_status derive_chunks(me_config *config, me_diag *diag)
{
    me_schedule_shape shape = {.chunks = 0};
    if (config->parallel.pipeline == 1 ||
        me_config_is_set(config, "parallel.virtual_pipeline")) {
        return ME_OK;
    }
    if (config->pipeline.file[0] == '\0' &&
        me_schedule_find(config->pipeline.name) == NULL) {
        return ME_OK; // refused by name later
    }
    const me_status status = me_config_schedule_shape(config, diag, &shape);
    if (shape.chunks > 0) {
        config->parallel.virtual_pipeline = shape.chunks;
    }
    return status;
}

static me_status derive(me_config *config, int32_t num_processes, me_diag *diag)
{
    if (config->layers == NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "framework = \"torch\" needs a `module` group: the "
                       "model's layers (docs/modules.md)");
    }
    config->torch_job.tree = &config->layers->tree;
    me_torch_derive_optimizer(config);
    config->torch.bucket_bytes =
        (uint64_t)(config->torch.bucket_cap_mb * 1024 * 1024);
    me_status status = me_config_derive_world(config, num_processes, diag);
    if (status == ME_OK) {
        status = derive_chunks(config, diag);
    }
    if (status == ME_OK) {
        if (config->parallel.data == 1 && !config->torch.wrap_one_rank) {
            config->torch.data_parallel = ME_DATA_PARALLEL_NONE;
        }
        status = read_shape(config, diag);
    }
    if (status == ME_OK) {
        status = read_loss(config, diag);
    }
    if (status == ME_OK) {
        const me_layer_spec *root = &config->torch_job.tree->root;
        config->model.num_layers =
            (int32_t)(root->n_children > 0 ? root->n_children : 1);
        // Stages share no weights.
        config->model.untie_embeddings_and_output_weights = true;
        config->train.params_dtype = config->torch_job.tree->has_cast
                                         ? config->torch_job.tree->cast
                                         : root->dtype;
        derive_batch(config);
    }
    return status;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static bool has_kind(const me_layer_spec *layer, me_layer_kind kind)
{
    bool has = layer->kind == kind;
    for (uint32_t i = 0; i < layer->n_children && !has; i++) {
        has = has_kind(&layer->children[i], kind);
    }
    return has;
}

/** Buffers are not sent, cast or moved. */
static me_status check_buffers(const me_config *config, me_diag *diag)
{
    const me_layer_tree *tree = config->torch_job.tree;
    const bool is_plain = config->parallel.world_size == 1 &&
                          !tree->is_built_on_host && !tree->has_cast;
    return is_plain || !has_kind(&tree->root, ME_LAYER_BATCH_NORM2D)
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "module: BatchNorm2d is modelled on one rank, built "
                         "on the device and not cast");
}

/** fully_shard() alone moves a model that stays where it was built. */
static me_status check_host(const me_config *config, me_diag *diag)
{
    const me_layer_tree *tree = config->torch_job.tree;
    const bool is_wrapped =
        config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
        (config->torch.wrap_one_rank || config->parallel.data > 1);
    return !tree->stays_on_host ||
                   (is_wrapped && !tree->has_cast && tree->n_styles == 0)
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "module: device = \"host\" wants torch.data_parallel "
                         "= \"fully_shard\" that wraps it, no `to` and no "
                         "parallelize_plan; \"cpu\" moves it once it is built");
}

/** An order by its name; those of files were checked when they were read. */
static me_status check_named_order(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (config->pipeline.file[0] != '\0') {
        return ME_OK;
    }
    const me_pipeline first = me_config_pipeline(config);
    const me_schedule *schedule = me_schedule_find(config->pipeline.name);
    const me_status status = me_schedule_check(schedule, &first, diag);
    return status == ME_OK && schedule == me_schedule_find("1f1b") &&
                   first.microbatches < p->pipeline
               ? me_fail(diag, ME_ERR_CONFIG,
                         "pipeline.schedule = \"Schedule1F1B\": PyTorch wants "
                         "as many micro-batches as stages, %d, and there %s %d",
                         (int)p->pipeline,
                         first.microbatches == 1 ? "is" : "are",
                         (int)first.microbatches)
               : status;
}

/** What a stage may not have whose backward is split: the search for unused
 *  parameters begins at an output that the first half has detached. */
static me_status check_split(const me_config *config, me_diag *diag)
{
    return config->torch.find_unused_parameters &&
                   me_torch_splits_backward(config)
               ? me_fail(diag, ME_ERR_CONFIG,
                         "torch.find_unused_parameters = true in stages whose "
                         "backward is split is not modelled, false is")
               : ME_OK;
}

static me_status check_pipeline(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const me_layer_spec *root = &config->torch_job.tree->root;
    const bool has_file = config->pipeline.file[0] != '\0';
    if (p->pipeline == 1) {
        return config->pipeline.name[0] == '\0' && !has_file
                   ? ME_OK
                   : me_fail(diag, ME_ERR_CONFIG,
                             "pipeline.schedule%s needs parallel.pipeline over "
                             "1",
                             has_file ? "_file" : "");
    }
    me_status status = me_torch_check_schedule(config, diag);
    if (status != ME_OK) {
        return status;
    }
    const int32_t stages = p->pipeline * p->virtual_pipeline;
    if (root->kind != ME_LAYER_SEQUENTIAL || root->n_children == 0 ||
        (int32_t)root->n_children % stages != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "module: a pipeline of %d stages needs a Sequential "
                       "whose children, here %u, they share evenly",
                       (int)stages, (unsigned)root->n_children);
    }
    status = check_named_order(config, diag);
    return status == ME_OK ? check_split(config, diag) : status;
}

static me_status check_batch(const me_config *config, me_diag *diag)
{
    const me_train_config *t = &config->train;
    const uint64_t samples =
        me_size_mul(t->micro_batch_size, (uint64_t)config->parallel.data);
    if (t->num_microbatches < 1 || t->global_batch_size % samples != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "train.global_batch_size = %llu is no multiple of "
                       "the input's first dimension x %d ranks = %llu",
                       (unsigned long long)t->global_batch_size,
                       (int)config->parallel.data, (unsigned long long)samples);
    }
    if (config->torch.num_microbatches != t->num_microbatches) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "torch.num_microbatches = %d, and "
                       "train.global_batch_size = %llu over %llu samples of "
                       "each makes %d",
                       (int)config->torch.num_microbatches,
                       (unsigned long long)t->global_batch_size,
                       (unsigned long long)samples, (int)t->num_microbatches);
    }
    return ME_OK;
}

static me_status validate(const me_config *config, me_diag *diag)
{
    me_status status = me_torch_check_parallel(config, diag);
    if (status == ME_OK) {
        status = check_batch(config, diag);
    }
    if (status == ME_OK) {
        status = me_torch_check_settings(config, diag);
    }
    if (status == ME_OK) {
        status = me_torch_check_checkpoints(config, diag);
    }
    if (status == ME_OK) {
        status = check_pipeline(config, diag);
    }
    if (status == ME_OK) {
        status = check_buffers(config, diag);
    }
    if (status == ME_OK) {
        status = check_host(config, diag);
    }
    if (status == ME_OK) {
        status = me_torch_check_autocast(config, diag);
    }
    return status;
}

/** A model that stands alone because one rank has the whole batch. */
static me_status note_unwrapped(me_config *config, me_diag *diag)
{
    if (config->torch.wrap_one_rank || config->parallel.data > 1) {
        return ME_OK;
    }
    return me_config_assume(
        config, diag,
        "one rank has the whole batch, so that the model is not wrapped and "
        "keeps the types that it is built with; autocast, as torchtitan 0.2 has "
        "it there, is torch.autocast's");
}

/** When DistributedDataParallel makes its buckets anew, and what is held then. */
static me_status note_ddp(me_config *config, me_diag *diag)
{
    const me_torch_options *t = &config->torch;
    if (t->data_parallel != ME_DATA_PARALLEL_DDP ||
        (t->find_unused_parameters && !t->static_graph)) {
        return ME_OK;
    }
    return me_config_assume(
        config, diag,
        t->static_graph
            ? "DistributedDataParallel makes the buckets of a static graph anew "
              "at the third iteration, after those that are reported: the third "
              "one holds all gradients once more until they are reduced"
            : "DistributedDataParallel's first bucket, of all gradients, is held "
              "until the next gradients are reduced: NCCL's watchdog, which "
              "looks every 100 ms, may let it go when buckets are made anew, or "
              "in a job of shorter iterations keep it longer");
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static bool is_resharded_below(const me_layer_spec *layer)
{
    bool is = false;
    for (uint32_t i = 0; i < layer->n_children && !is; i++) {
        const me_layer_spec *child = &layer->children[i];
        is = (child->is_sharded && !child->keeps_unsharded) ||
             is_resharded_below(child);
    }
    return is;
}

/** stage_backward_input() looks for the weights before it has them gathered. */
static me_status note_resharded(me_config *config, me_diag *diag)
{
    const bool is_meant =
        config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
        me_torch_splits_backward(config) &&
        is_resharded_below(&config->torch_job.tree->root);
    return !is_meant
               ? ME_OK
               : me_config_assume(
                     config, diag,
                     "where a module's shards are still in their place when "
                     "half a backward begins, PyTorch finds no weights and "
                     "makes no gradients of them; with reshard_after_forward "
                     "= false it does");
}

/** torch.autograd.grad() runs no hooks of AccumulateGrad. */
static me_status note_unreduced(me_config *config, me_diag *diag)
{
    return config->torch.data_parallel != ME_DATA_PARALLEL_DDP ||
                   !me_torch_splits_backward(config)
               ? ME_OK
               : me_config_assume(
                     config, diag,
                     "of stages whose last backward is split PyTorch 2.11 has "
                     "DistributedDataParallel reduce the first one's gradients "
                     "alone: the others keep those of their own rank");
}

static me_status note(me_config *config, me_diag *diag)
{
    const me_status unwrapped = note_unwrapped(config, diag);
    if (unwrapped != ME_OK) {
        return unwrapped;
    }
    const me_status held = note_ddp(config, diag);
    if (held != ME_OK) {
        return held;
    }
    const me_status scaled = me_torch_note_autocast(config, diag);
    if (scaled != ME_OK) {
        return scaled;
    }
    if (has_kind(&config->torch_job.tree->root, ME_LAYER_CONV2D)) {
        const me_status status = me_config_add_not_modelled(
            config, "Conv2d",
            "cuDNN's workspaces and times: it chooses at run time",
            (me_effect)ME_HIGHER(SOME), diag);
        if (status != ME_OK) {
            return status;
        }
    }
    const me_status tied = me_torch_note_tied(config, diag);
    if (tied != ME_OK || config->parallel.pipeline == 1) {
        return tied;
    }
    const me_status order = me_torch_note_schedule(config, diag);
    if (order != ME_OK) {
        return order;
    }
    const me_status resharded = note_resharded(config, diag);
    if (resharded != ME_OK) {
        return resharded;
    }
    const me_status unreduced = note_unreduced(config, diag);
    if (unreduced != ME_OK) {
        return unreduced;
    }
    if (config->parallel.tensor > 1 &&
        config->torch.data_parallel != ME_DATA_PARALLEL_NONE) {
        const me_status status = me_config_assume(
            config, diag,
            "parallelize_plan in wrapped pipeline stages follows PyTorch's "
            "source; no measured job has it");
        if (status != ME_OK) {
            return status;
        }
    }
    return me_config_assume(
        config, diag,
        "tensors that a stage has sent are free at the next allocation; a GPU "
        "that lags behind keeps them longer: up to 7 %% of requested and 13 %% "
        "of reserved bytes more on measured ranks");
}

static const char *const options[] = {
    "name",
    "framework",
    "parallel.world_size",
    "parallel.tensor",
    "parallel.pipeline",
    "parallel.virtual_pipeline",
    "parallel.context",
    "parallel.expert",
    "pipeline.",
    "train.global_batch_size",
    "train.iterations",
    "optimizer.kind",
    "optimizer.clip_grad",
    "optimizer.weight_decay",
    "optimizer.sgd_momentum",
    "torch.",
    "impl.optimizer",
    "device.",
    "machine.",
    "time.",
    NULL,
};

const me_framework_rules me_torch_rules = {
    .options = options,
    .derive = derive,
    .validate = validate,
    .note = note,
    .needs = me_torch_needs,
};
