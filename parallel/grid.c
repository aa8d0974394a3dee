/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/grid.h"

#include "base/assert.h"

/** A set of axes, one bit each. */
enum {
    ME_T = 1 << ME_AXIS_TENSOR,
    ME_C = 1 << ME_AXIS_CONTEXT,
    ME_E = 1 << ME_AXIS_EXPERT,
    ME_PART = 1 << ME_AXIS_DATA, /**< of an instance */
    ME_I = 1 << ME_AXIS_INSTANCE,
    ME_D = ME_PART | ME_I,
    ME_P = 1 << ME_AXIS_PIPELINE,
    ME_TCEDP = ME_T | ME_C | ME_E | ME_D | ME_P
};

/** Which ends of its axes a group keeps. */
typedef enum me_ends {
    ME_ENDS_ALL,        /**< every member */
    ME_ENDS_FIRST,      /**< the first of each pipeline */
    ME_ENDS_FIRST_COPY, /**< and the one that has a copy of its embedding */
    ME_ENDS_MIRRORED,   /**< a rank and the one as far from the other end */
    ME_ENDS_INNER,      /**< of one axis: neighbours, such as share shards */
    ME_ENDS_OUTER       /**< of one axis: one of each of those neighbourhoods */
} me_ends;

/** A kind of group: all ranks that agree on the axes that are not in it. */
typedef struct me_family {
    me_grid_side side;
    unsigned axes;
    me_ends ends;
} me_family;

/** By me_group_kind. */
static const me_family families[ME_GROUP_COUNT] = {
    [ME_GROUP_WORLD] = {ME_GRID_DENSE, ME_TCEDP, ME_ENDS_ALL},
    [ME_GROUP_TENSOR] = {ME_GRID_DENSE, ME_T, ME_ENDS_ALL},
    [ME_GROUP_PIPELINE] = {ME_GRID_DENSE, ME_P, ME_ENDS_ALL},
    [ME_GROUP_DATA] = {ME_GRID_DENSE, ME_D, ME_ENDS_ALL},
    [ME_GROUP_DATA_CONTEXT] = {ME_GRID_DENSE, ME_D | ME_C, ME_ENDS_ALL},
    [ME_GROUP_CONTEXT] = {ME_GRID_DENSE, ME_C, ME_ENDS_ALL},
    [ME_GROUP_MODEL] = {ME_GRID_DENSE, ME_T | ME_P, ME_ENDS_ALL},
    [ME_GROUP_EMBEDDING] = {ME_GRID_DENSE, ME_P, ME_ENDS_FIRST_COPY},
    [ME_GROUP_POSITION_EMBEDDING] = {ME_GRID_DENSE, ME_P, ME_ENDS_FIRST},
    [ME_GROUP_PARTIAL_DATA_CONTEXT] = {ME_GRID_DENSE, ME_PART | ME_C,
                                       ME_ENDS_ALL},
    [ME_GROUP_INTER_INSTANCE] = {ME_GRID_DENSE, ME_I, ME_ENDS_ALL},
    [ME_GROUP_OPTIMIZER_INSTANCE] = {ME_GRID_DENSE, ME_TCEDP & ~(unsigned)ME_I,
                                     ME_ENDS_ALL},
    [ME_GROUP_EXPERT] = {ME_GRID_EXPERT, ME_E, ME_ENDS_ALL},
    [ME_GROUP_EXPERT_TENSOR] = {ME_GRID_EXPERT, ME_T, ME_ENDS_ALL},
    [ME_GROUP_EXPERT_TENSOR_EXPERT] = {ME_GRID_EXPERT, ME_T | ME_E,
                                       ME_ENDS_ALL},
    [ME_GROUP_EXPERT_DATA] = {ME_GRID_EXPERT, ME_D, ME_ENDS_ALL},
    [ME_GROUP_PARTIAL_EXPERT_DATA] = {ME_GRID_EXPERT, ME_PART, ME_ENDS_ALL},
    [ME_GROUP_EXPERT_MODEL] = {ME_GRID_EXPERT, ME_T | ME_E | ME_P, ME_ENDS_ALL},
    [ME_GROUP_TENSOR_CONTEXT] = {ME_GRID_DENSE, ME_T | ME_C, ME_ENDS_ALL},
    [ME_GROUP_STAGE_COPIES] = {ME_GRID_DENSE, ME_P, ME_ENDS_MIRRORED},
    [ME_GROUP_DATA_SHARD] = {ME_GRID_DENSE, ME_PART, ME_ENDS_INNER},
    [ME_GROUP_DATA_REPLICATE] = {ME_GRID_DENSE, ME_PART, ME_ENDS_OUTER},
    [ME_GROUP_CONTEXT_HEADS] = {ME_GRID_DENSE, ME_C, ME_ENDS_INNER},
    [ME_GROUP_CONTEXT_RING] = {ME_GRID_DENSE, ME_C, ME_ENDS_OUTER},
    [ME_GROUP_TENSOR_DATA_CONTEXT] = {ME_GRID_DENSE, ME_T | ME_D | ME_C,
                                      ME_ENDS_ALL},
    [ME_GROUP_USER_BUFFERS] = {ME_GRID_DENSE, ME_T, ME_ENDS_ALL},
    [ME_GROUP_USER_BUFFERS_WORLD] = {ME_GRID_DENSE, ME_TCEDP, ME_ENDS_ALL},
};

/** One step of start-up: all groups of a family, one after another. */
typedef struct me_creation {
    const char *name;   /**< only with `family` */
    me_group_kind kind; /**< ME_GROUP_COUNT: `family` says what */
    me_family family;
    int lists; /**< this many steps go list by list together, else 0 */
    bool has_host_twin;
} me_creation;

/** The order of initialize_model_parallel() in parallel_state.py, with one
 *  instance of the distributed optimizer. */
static const me_creation creations[] = {
    {.kind = ME_GROUP_COUNT,
     .name = "weight_remat",
     .family = {ME_GRID_DENSE, 0, ME_ENDS_ALL}},
    {.kind = ME_GROUP_DATA_CONTEXT, .has_host_twin = true},
    {.kind = ME_GROUP_DATA, .has_host_twin = true},
    {.kind = ME_GROUP_CONTEXT},
    {.kind = ME_GROUP_MODEL},
    {.kind = ME_GROUP_TENSOR},
    {.kind = ME_GROUP_PIPELINE, .lists = 3},
    {.kind = ME_GROUP_EMBEDDING},
    {.kind = ME_GROUP_POSITION_EMBEDDING},
    {.kind = ME_GROUP_TENSOR_DATA_CONTEXT},
    {.kind = ME_GROUP_COUNT,
     .name = "tensor_data",
     .family = {ME_GRID_DENSE, ME_T | ME_D, ME_ENDS_ALL}},
    {.kind = ME_GROUP_TENSOR_CONTEXT},
    {.kind = ME_GROUP_COUNT,
     .name = "expert_weight_remat",
     .family = {ME_GRID_EXPERT, 0, ME_ENDS_ALL}},
    {.kind = ME_GROUP_EXPERT},
    {.kind = ME_GROUP_EXPERT_TENSOR},
    {.kind = ME_GROUP_EXPERT_TENSOR_EXPERT},
    {.kind = ME_GROUP_EXPERT_MODEL},
    {.kind = ME_GROUP_COUNT,
     .name = "expert_model_weight_remat",
     .family = {ME_GRID_EXPERT, ME_T | ME_E | ME_P, ME_ENDS_ALL}},
    {.kind = ME_GROUP_EXPERT_DATA, .has_host_twin = true},
    {.kind = ME_GROUP_OPTIMIZER_INSTANCE},
};

enum {
    ME_CREATIONS = sizeof creations / sizeof creations[0]
};

static me_family creation_family(const me_creation *step)
{
    return step->kind == ME_GROUP_COUNT ? step->family : families[step->kind];
}

static me_status check_sizes(const me_grid_sizes *sizes, me_diag *diag)
{
    const struct {
        const char *name;
        int32_t size;
    } given[] = {
        {"world", sizes->world},
        {"tensor parallel", sizes->tensor},
        {"context parallel", sizes->context},
        {"pipeline parallel", sizes->pipeline},
        {"expert parallel", sizes->expert},
    };

    for (unsigned i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (given[i].size < 1) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s size = %d must be at least 1", given[i].name,
                           given[i].size);
        }
    }
    if (sizes->expert_tensor < 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "expert tensor parallel size = %d must be at least 1",
                       sizes->expert_tensor);
    }
    if (sizes->context_heads < 0 ||
        (sizes->context_heads > 0 &&
         sizes->context % sizes->context_heads != 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "context size %d is not a multiple of the %d ranks that "
                       "share heads",
                       sizes->context, sizes->context_heads);
    }
    return ME_OK;
}

/**
 * What three degrees leave of the world for data, 0 if they don't divide it.
 */
static int32_t data_extent(int32_t world, int32_t a, int32_t b, int32_t c)
{
    // Divide step by step: the product may not fit, the quotient always does.
    if (world % a != 0 || (world / a) % b != 0 || (world / a / b) % c != 0) {
        return 0;
    }
    return world / a / b / c;
}

static me_status derive_extents(const me_grid_sizes *sizes, me_diag *diag,
                                me_grid *grid)
{
    const int32_t etp =
        sizes->expert_tensor != 0 ? sizes->expert_tensor : sizes->tensor;
    const int32_t dp = data_extent(sizes->world, sizes->tensor, sizes->context,
                                   sizes->pipeline);
    if (dp == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "world size %d is not a multiple of tensor %d x "
                       "context %d x pipeline %d",
                       sizes->world, sizes->tensor, sizes->context,
                       sizes->pipeline);
    }
    if (sizes->data_replicate < 0 ||
        (sizes->data_replicate > 0 && dp % sizes->data_replicate != 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "data size %d is not a multiple of its %d copies of the "
                       "shards",
                       dp, sizes->data_replicate);
    }
    const int32_t edp =
        data_extent(sizes->world, etp, sizes->expert, sizes->pipeline);
    if (edp == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "world size %d is not a multiple of expert tensor %d x "
                       "expert %d x pipeline %d",
                       sizes->world, etp, sizes->expert, sizes->pipeline);
    }
    if (sizes->pipeline_before_data && sizes->pipeline > 1 && edp != dp) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "with pipeline before data in the order of ranks, "
                       "data size %d must equal expert data size %d",
                       dp, edp);
    }
    const int32_t n = sizes->instances == 0 ? 1 : sizes->instances;
    if (n < 0 || dp % n != 0 || edp % n != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d instances of the distributed optimizer do not "
                       "divide data size %d and expert data size %d",
                       n, dp, edp);
    }
    if (n > 1 && sizes->data_replicate > 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d copies of the shards (HSDP) and %d instances of the "
                       "distributed optimizer belong to different frameworks",
                       sizes->data_replicate, n);
    }
    const int32_t extents[ME_GRID_SIDE_COUNT][ME_AXIS_COUNT] = {
        {sizes->tensor, sizes->context, 1, dp / n, n, sizes->pipeline},
        {etp, 1, sizes->expert, edp / n, n, sizes->pipeline},
    };
    for (int side = 0; side < ME_GRID_SIDE_COUNT; side++) {
        for (int axis = 0; axis < ME_AXIS_COUNT; axis++) {
            grid->axes[side][axis].extent = extents[side][axis];
        }
    }
    return ME_OK;
}

me_status me_grid_init(const me_grid_sizes *sizes, me_diag *diag,
                       me_grid *grid_out)
{
    me_status status = check_sizes(sizes, diag);
    if (status != ME_OK) {
        return status;
    }
    const bool is_early = sizes->pipeline_before_data;
    me_grid grid = {
        .world = sizes->world,
        .data_replicate = sizes->data_replicate > 0 ? sizes->data_replicate : 1,
        .context_heads = sizes->context_heads > 0 ? sizes->context_heads : 1,
        .embedding_copy = sizes->embedding_copy,
        .order = {ME_AXIS_TENSOR, ME_AXIS_CONTEXT, ME_AXIS_EXPERT,
                  is_early ? ME_AXIS_PIPELINE : ME_AXIS_DATA,
                  is_early ? ME_AXIS_DATA : ME_AXIS_INSTANCE,
                  is_early ? ME_AXIS_INSTANCE : ME_AXIS_PIPELINE},
    };
    status = derive_extents(sizes, diag, &grid);
    if (status != ME_OK) {
        return status;
    }
    for (int side = 0; side < ME_GRID_SIDE_COUNT; side++) {
        int32_t stride = 1;
        for (int i = 0; i < ME_AXIS_COUNT; i++) {
            me_grid_axis *axis = &grid.axes[side][grid.order[i]];
            axis->stride = stride;
            stride *= axis->extent;
        }
        ME_ASSERT(stride == grid.world);
    }
    *grid_out = grid;
    return ME_OK;
}

int32_t me_grid_extent(const me_grid *grid, me_grid_side side, me_axis axis)
{
    return grid->axes[side][axis].extent;
}

me_coordinates me_grid_coordinates(const me_grid *grid, me_grid_side side,
                                   int32_t rank)
{
    ME_ASSERT(rank >= 0 && rank < grid->world);
    me_coordinates coordinates;
    for (int i = 0; i < ME_AXIS_COUNT; i++) {
        const me_grid_axis axis = grid->axes[side][i];
        coordinates.at[i] = rank / axis.stride % axis.extent;
    }
    return coordinates;
}

int32_t me_grid_rank(const me_grid *grid, me_grid_side side,
                     const me_coordinates *coordinates)
{
    int32_t rank = 0;
    for (int i = 0; i < ME_AXIS_COUNT; i++) {
        ME_ASSERT(coordinates->at[i] >= 0 &&
                  coordinates->at[i] < grid->axes[side][i].extent);
        rank += coordinates->at[i] * grid->axes[side][i].stride;
    }
    return rank;
}

int32_t me_grid_data_rank(const me_grid *grid, me_grid_side side,
                          const me_coordinates *coordinates)
{
    return coordinates->at[ME_AXIS_INSTANCE] *
               grid->axes[side][ME_AXIS_DATA].extent +
           coordinates->at[ME_AXIS_DATA];
}

/** Is @p axis part of a family? Axes of one rank never are. */
static bool is_spanned(const me_grid *grid, me_family family, me_axis axis)
{
    return (family.axes & (1U << axis)) != 0 &&
           grid->axes[family.side][axis].extent > 1;
}

/** The ends of the pipeline that lists from @p base on run through. */
static void keep_ends(const me_grid *grid, me_ends ends, me_group *group)
{
    if (ends == ME_ENDS_ALL) {
        return;
    }
    const int32_t copy = ends == ME_ENDS_FIRST_COPY ? grid->embedding_copy : 0;
    const int32_t stride = copy > 0 ? group->axes[0].stride * copy : 0;
    group->size = copy > 0 ? 2 : 1;
    group->n_axes = copy > 0 ? 1 : 0;
    group->axes[0] = (me_grid_axis){group->size, stride};
}

/** The group of a family whose first member, ends aside, is @p base. */
static me_group group_at(const me_grid *grid, me_family family, int32_t base)
{
    me_group group = {.size = 1, .base = base};
    for (int i = 0; i < ME_AXIS_COUNT; i++) {
        const me_axis axis = grid->order[i];
        if (is_spanned(grid, family, axis)) {
            ME_ASSERT(group.n_axes < ME_GROUP_AXES);
            group.axes[group.n_axes++] = grid->axes[family.side][axis];
            group.size *= grid->axes[family.side][axis].extent;
        }
    }
    keep_ends(grid, family.ends, &group);
    return group;
}

/** Pipeline rank @p at and p - 1 - @p at of the pipeline that @p rank is in. */
static me_group mirrored_group(const me_grid *grid, int32_t rank, int32_t at)
{
    const me_grid_axis axis = grid->axes[ME_GRID_DENSE][ME_AXIS_PIPELINE];
    const int32_t other = axis.extent - 1 - at;
    const int32_t first = at < other ? at : other;
    const int32_t distance = at < other ? other - at : at - other;
    return (me_group){
        .size = distance == 0 ? 1 : 2,
        .base = rank - (at - first) * axis.stride,
        .n_axes = distance == 0 ? 0 : 1,
        .axes = {{2, distance * axis.stride}},
    };
}

/** The part of an axis of two levels that @p rank, at @p at there, is in. */
static me_group level_group(const me_grid *grid, me_family family, int32_t rank,
                            int32_t at)
{
    const bool is_context = family.axes == ME_C;
    const me_grid_axis axis =
        grid->axes[ME_GRID_DENSE][is_context ? ME_AXIS_CONTEXT : ME_AXIS_DATA];
    const int32_t inner =
        is_context ? grid->context_heads : axis.extent / grid->data_replicate;
    const int32_t outer = axis.extent / inner;
    const bool is_outer = family.ends == ME_ENDS_OUTER;
    const me_grid_axis line = {is_outer ? outer : inner,
                               is_outer ? axis.stride * inner : axis.stride};
    return (me_group){
        .size = line.extent,
        .base = rank - (is_outer ? at / inner : at % inner) * line.stride,
        .n_axes = line.extent > 1 ? 1 : 0,
        .axes = {line},
    };
}

me_group me_grid_group(const me_grid *grid, me_group_kind kind, int32_t rank)
{
    ME_ASSERT((int)kind >= 0 && kind < ME_GROUP_COUNT);
    const me_family family = families[kind];
    const me_coordinates own = me_grid_coordinates(grid, family.side, rank);
    if (family.ends == ME_ENDS_MIRRORED) {
        return mirrored_group(grid, rank, own.at[ME_AXIS_PIPELINE]);
    }
    if (family.ends == ME_ENDS_INNER || family.ends == ME_ENDS_OUTER) {
        return level_group(
            grid, family, rank,
            own.at[family.axes == ME_C ? ME_AXIS_CONTEXT : ME_AXIS_DATA]);
    }
    int32_t base = rank;
    for (int i = 0; i < ME_AXIS_COUNT; i++) {
        if (is_spanned(grid, family, (me_axis)i)) {
            base -= own.at[i] * grid->axes[family.side][i].stride;
        }
    }
    const me_group group = group_at(grid, family, base);
    return me_group_index(&group, rank) >= 0 ? group : (me_group){0};
}

int32_t me_group_member(const me_group *group, int32_t index)
{
    ME_ASSERT(index >= 0 && index < group->size);
    int32_t rank = group->base;
    for (int32_t i = 0; i < group->n_axes; i++) {
        rank += index % group->axes[i].extent * group->axes[i].stride;
        index /= group->axes[i].extent;
    }
    return rank;
}

int32_t me_group_index(const me_group *group, int32_t rank)
{
    int32_t rest = rank - group->base;
    int32_t index = 0;
    int32_t weight = group->size;
    // Strides grow, so the slowest axis takes the largest part of the rest.
    for (int32_t i = group->n_axes - 1; i >= 0; i--) {
        const int32_t digit = rest / group->axes[i].stride;
        if (rest < 0 || digit >= group->axes[i].extent) {
            return -1;
        }
        weight /= group->axes[i].extent;
        index += digit * weight;
        rest -= digit * group->axes[i].stride;
    }
    return rest == 0 && group->size > 0 ? index : -1;
}

/** How many groups a family has. */
static int32_t group_count(const me_grid *grid, me_family family)
{
    int32_t count = grid->world;
    for (int i = 0; i < ME_AXIS_COUNT; i++) {
        if (is_spanned(grid, family, (me_axis)i)) {
            count /= grid->axes[family.side][i].extent;
        }
    }
    return count;
}

/** The @p index-th group of a family: digits along the axes left out. */
static me_group nth_group(const me_grid *grid, me_family family, int32_t index)
{
    int32_t base = 0;
    for (int i = 0; i < ME_AXIS_COUNT; i++) {
        const me_axis axis = grid->order[i];
        const me_grid_axis line = grid->axes[family.side][axis];
        if (!is_spanned(grid, family, axis)) {
            base += index % line.extent * line.stride;
            index /= line.extent;
        }
    }
    return group_at(grid, family, base);
}

int64_t me_grid_created_count(const me_grid *grid)
{
    int64_t count = 0;
    for (int i = 0; i < ME_CREATIONS; i++) {
        count += group_count(grid, creation_family(&creations[i]));
    }
    return count;
}

me_created_group me_grid_created(const me_grid *grid, int64_t index)
{
    ME_ASSERT(index >= 0 && index < me_grid_created_count(grid));
    int at = 0;
    int lists = 1;
    for (;;) {
        lists = creations[at].lists > 0 ? creations[at].lists : 1;
        const int64_t count =
            (int64_t)lists * group_count(grid, creation_family(&creations[at]));
        if (index < count) {
            break;
        }
        index -= count;
        at += lists;
    }
    const me_creation *step = &creations[at + (int)(index % lists)];
    return (me_created_group){
        .group =
            nth_group(grid, creation_family(step), (int32_t)(index / lists)),
        .name = step->kind == ME_GROUP_COUNT ? step->name
                                             : me_group_kind_name(step->kind),
        .kind = step->kind,
        .has_host_twin = step->has_host_twin,
    };
}
