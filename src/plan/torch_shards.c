/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/torch_shards.h"

#include "base/alloc.h"
#include "base/size.h"

/** First dimensions of a model's parameters, each once. */
typedef struct extents {
    uint64_t *items; /**< one of a layer, at most */
    uint32_t count;
} extents;

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static size_t count_layers(const me_layer_spec *layer)
{
    size_t count = 1;
    for (uint32_t i = 0; i < layer->n_children; i++) {
        count += count_layers(&layer->children[i]);
    }
    return count;
}

/** Weights and biases of a layer have the same; 0: it has none. */
static uint64_t first_extent(const me_layer_spec *layer)
{
    const bool has_outputs =
        layer->kind == ME_LAYER_LINEAR || layer->kind == ME_LAYER_CONV2D;
    return has_outputs ? layer->outputs : layer->inputs;
}

static void add(extents *x, uint64_t extent)
{
    uint32_t i = 0;
    while (i < x->count && x->items[i] != extent) {
        i++;
    }
    if (i == x->count && extent > 0) {
        x->items[x->count++] = extent;
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void add_layers(extents *x, const me_layer_spec *layer)
{
    add(x, first_extent(layer));
    for (uint32_t i = 0; i < layer->n_children; i++) {
        add_layers(x, &layer->children[i]);
    }
}

/** Rows of the rank in place @p index of @p ranks. */
static uint64_t rows_of(uint64_t extent, uint64_t ranks, uint64_t index)
{
    const uint64_t chunk = me_div_up(extent, ranks);
    const uint64_t before = me_size_mul(chunk, index);
    return before >= extent ? 0 : me_min_u64(chunk, extent - before);
}

/** Has the rank in a place fewer rows of anything than the one before it? */
static bool has_fewer(const extents *x, uint64_t tensor, uint64_t ranks,
                      uint64_t index)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const uint64_t part = me_div_up(x->items[i], tensor);
        if (rows_of(x->items[i], ranks, index) !=
                rows_of(x->items[i], ranks, index - 1) ||
            rows_of(part, ranks, index) != rows_of(part, ranks, index - 1)) {
            return true;
        }
    }
    return false;
}

/** Of each parameter later places have no more rows than earlier ones, so that
 * places with equal shards follow each other. */
static void number_places(const me_config *config, const extents *x,
                          int32_t ranks, int32_t *class_of_place)
{
    const uint64_t tensor = (uint64_t)config->parallel.tensor;
    class_of_place[0] = 0;
    for (int32_t i = 1; i < ranks; i++) {
        const bool is_next = has_fewer(x, tensor, (uint64_t)ranks, (uint64_t)i);
        class_of_place[i] = class_of_place[i - 1] + (is_next ? 1 : 0);
    }
}

me_status me_torch_shard_classes(const me_plan *plan, int32_t rank,
                                 int32_t *class_out)
{
    const me_layer_spec *root = &plan->config->torch_job.tree->root;
    const me_group group =
        me_grid_group(&plan->grid, ME_GROUP_DATA_CONTEXT, rank);
    const int32_t ranks =
        me_grid_group(&plan->grid, ME_GROUP_DATA_SHARD, rank).size;
    extents x = {.items = me_alloc(count_layers(root), sizeof(uint64_t),
                                   "plan.extents")};
    int32_t *places = me_alloc((size_t)ranks, sizeof *places, "plan.extents");
    const bool is_made = x.items != NULL && places != NULL;
    if (is_made) {
        add_layers(&x, root);
        number_places(plan->config, &x, ranks, places);
    }
    for (int32_t i = 0; is_made && i < group.size; i++) {
        const int32_t member = me_group_member(&group, i);
        const me_group own =
            me_grid_group(&plan->grid, ME_GROUP_DATA_SHARD, member);
        class_out[i] = places[me_group_index(&own, member)];
    }
    me_free(places);
    me_free(x.items);
    return is_made ? ME_OK : ME_ERR_NOMEM;
}
