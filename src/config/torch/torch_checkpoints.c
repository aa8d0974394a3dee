/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/torch_checkpoints.h"

#include "config/schedule_choice.h"

#include <stddef.h>

/** What is around a module. */
typedef struct search {
    bool is_in_checkpoint;
} search;

/** `context_fn` with use_reentrant=True, which PyTorch refuses. */
static bool is_selective_reentrant(const me_layer_spec *layer, const search *s)
{
    (void)s;
    return layer->is_reentrant && layer->is_selective;
}

/** `early_stop` with use_reentrant=True: PyTorch takes it and does not look at
 *  it. */
static bool is_idle_early_stop(const me_layer_spec *layer, const search *s)
{
    (void)s;
    return layer->is_reentrant && layer->has_early_stop;
}

static bool is_reentrant(const me_layer_spec *layer, const search *s)
{
    (void)s;
    return layer->is_reentrant;
}

/** A module that is gathered for a backward runs again in each of its halves. */
static bool is_gathered_inside(const me_layer_spec *layer, const search *s)
{
    return layer->is_sharded && !layer->keeps_unsharded &&
           (s->is_in_checkpoint || layer->is_checkpointed);
}

static bool is_selective(const me_layer_spec *layer, const search *s)
{
    (void)s;
    return layer->is_selective;
}

bool me_torch_splits_backward(const me_config *config)
{
    bool splits = false;
    return config->parallel.pipeline > 1 &&
           me_config_splits_backward(config, NULL, &splits) == ME_OK && splits;
}

/** The name of the first module at or below @p layer that @p is_meant.
 *  @return is there one? */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static bool find(const me_layer_spec *layer, search s,
                 bool (*is_meant)(const me_layer_spec *layer, const search *s),
                 const char **name_out)
{
    if (is_meant(layer, &s)) {
        *name_out = layer->name;
        return true;
    }
    s.is_in_checkpoint = s.is_in_checkpoint || layer->is_checkpointed;
    bool is_found = false;
    for (uint32_t i = 0; i < layer->n_children && !is_found; i++) {
        is_found = find(&layer->children[i], s, is_meant, name_out);
    }
    return is_found;
}

/** What is refused, the first rule that applies first. */
static const struct {
    bool (*is_meant)(const me_layer_spec *layer, const search *s);

    enum {
        ALWAYS,
        WITH_PLAN,
        WITH_SPLIT, /* of backwards */
        WITH_SPLIT_SHARDS
    } when;

    const char *why;
} rules[] = {
    {is_selective_reentrant, ALWAYS,
     "checkpoint_policy = \"op\" wants checkpoint = true: PyTorch has no "
     "context_fn with use_reentrant=True"},
    {is_idle_early_stop, ALWAYS,
     "checkpoint_early_stop has no effect with checkpoint = \"reentrant\", "
     "which always runs again to its end; with checkpoint = true it has"},
    {is_reentrant, WITH_PLAN,
     "checkpoint = \"reentrant\" with a parallelize_plan is not modelled, "
     "checkpoint = true is"},
    {is_reentrant, WITH_SPLIT,
     "PyTorch runs no checkpoint = \"reentrant\" in a stage whose backward "
     "is split (it is incompatible with torch.autograd.grad()), checkpoint "
     "= true it does"},
    {is_selective, WITH_SPLIT,
     "PyTorch runs no checkpoint_policy = \"op\" in a stage whose backward "
     "is split, which would run it again twice"},
    {is_gathered_inside, WITH_SPLIT_SHARDS,
     "fully_shard in a checkpoint, in a stage whose backward is split, is "
     "modelled with reshard_after_forward = false alone"},
};

me_status me_torch_check_checkpoints(const me_config *config, me_diag *diag)
{
    const me_layer_tree *tree = config->torch_job.tree;
    if (tree->root.is_checkpointed && config->parallel.pipeline > 1) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "module: checkpoint of the whole model with "
            "parallel.pipeline = %d: stages have its children, which "
            "may be checkpointed",
            (int)config->parallel.pipeline);
    }
    const bool is_split = me_torch_splits_backward(config);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *name = "";
        const bool applies[] = {
            [ALWAYS] = true,
            [WITH_PLAN] = tree->n_styles > 0,
            [WITH_SPLIT] = is_split,
            [WITH_SPLIT_SHARDS] = is_split && config->torch.data_parallel ==
                                                  ME_DATA_PARALLEL_FULLY_SHARD,
        };
        if (applies[rules[i].when] &&
            find(&tree->root, (search){0}, rules[i].is_meant, &name)) {
            return me_fail(diag, ME_ERR_CONFIG, "module: %s: %s", name,
                           rules[i].why);
        }
    }
    return ME_OK;
}
