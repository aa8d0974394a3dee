/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/tie.h"

/** The module that fully_shard() is called for with @p layer's parameters. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static const me_layer *find_group(const me_layer *at, const me_layer *group,
                                  const me_layer *layer)
{
    const me_layer *here = at->spec->is_sharded ? at : group;
    const me_layer *found = at == layer ? here : NULL;
    for (uint32_t i = 0; i < at->n_children && found == NULL; i++) {
        found = find_group(&at->children[i], here, layer);
    }
    return found;
}

/** A module of a group that has the weight already, parted from @p original. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static me_layer *find_parted(const me_layer *root, me_layer *at,
                             const me_layer *group,
                             const me_parameter *original)
{
    if (at->weight != NULL && at->weight->parted_from == original &&
        find_group(root, root, at) == group) {
        return at;
    }
    me_layer *found = NULL;
    for (uint32_t i = 0; i < at->n_children && found == NULL; i++) {
        found = find_parted(root, &at->children[i], group, original);
    }
    return found;
}

static bool is_wrapped(const me_config *config)
{
    return config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
           (config->torch.wrap_one_rank || config->parallel.data > 1);
}

/** Whose weight a module has: another's, or NULL where it is to have its own. */
static me_layer *find_owner(const me_nn *nn, me_layer *root,
                            const me_layer *layer, me_layer *other)
{
    if (!is_wrapped(nn->config)) {
        return other;
    }
    const me_layer *group = find_group(root, root, layer);
    return find_group(root, root, other) == group
               ? other
               : find_parted(root, root, group, other->weight);
}

static void tie_one(me_nn *nn, me_layer *root, me_layer *layer)
{
    me_layer *other = me_layer_find(root, layer->spec->tied_to);
    if (other == NULL || other->weight == NULL || other == layer ||
        !me_shape_equal(&other->weight->shape, &layer->weight->shape)) {
        me_engine_fail(nn->e, ME_ERR_CONFIG,
                       "module: weight = \"%s.weight\" names no weight of the "
                       "same shape",
                       layer->spec->tied_to);
        return;
    }
    me_layer *owner = find_owner(nn, root, layer, other);
    if (owner == NULL) {
        me_clear(nn->e, &layer->weight->tensor);
        layer->weight->parted_from = other->weight;
        return;
    }
    me_parameter_remove(nn, layer->weight);
    layer->weight = owner->weight;
    layer->weight->is_tied = true;
    me_module_share_parameter(nn->e, layer->module, owner->module,
                              layer->weight->numel *
                                  me_dtype_bytes(layer->weight->dtype));
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void tie_below(me_nn *nn, me_layer *root, me_layer *layer)
{
    if (layer->spec->tied_to != NULL && me_engine_is_ok(nn->e)) {
        tie_one(nn, root, layer);
    }
    for (uint32_t i = 0; i < layer->n_children; i++) {
        tie_below(nn, root, &layer->children[i]);
    }
}

void me_layers_tie(me_nn *nn, me_layer *root)
{
    tie_below(nn, root, root);
}

void me_layers_share(me_nn *nn)
{
    for (uint32_t i = 0; i < nn->parameters->count; i++) {
        me_parameter *p = nn->parameters->parameters[i];
        if (p->parted_from != NULL && p->parted_from->tensor != NULL) {
            p->tensor = me_retain(p->parted_from->tensor);
        }
    }
}
