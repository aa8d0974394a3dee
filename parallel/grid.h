/**
 * @file
 * The grid of ranks: which coordinates a rank has along each axis of
 * parallelism, and which ranks form a process group.
 *
 * Ranks are numbered as Megatron-LM core_v0.19.0 numbers them (its
 * parallel_state.py): tensor fastest, then context, expert, data, pipeline, or
 * with pipeline before data. Experts have a grid of their own over the same
 * ranks, in which expert takes the place of context. Instances of the
 * distributed optimizer cut the data axis in equal parts. Nothing here is
 * Collective.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_GRID_H
#define MEMEST_PARALLEL_GRID_H

#include "base/status.h"
#include "model/event.h"

#include <stdbool.h>
#include <stdint.h>

/** The axes; dense weights have no expert axis, experts no context axis. */
typedef enum me_axis {
    ME_AXIS_TENSOR,
    ME_AXIS_CONTEXT,
    ME_AXIS_EXPERT,
    ME_AXIS_DATA,     /**< within an instance of the distributed optimizer */
    ME_AXIS_INSTANCE, /**< instances of it */
    ME_AXIS_PIPELINE,
    ME_AXIS_COUNT
} me_axis;

/** Whose grid is meant: that of ordinary weights or that of experts. */
typedef enum me_grid_side {
    ME_GRID_DENSE,
    ME_GRID_EXPERT,
    ME_GRID_SIDE_COUNT
} me_grid_side;

/** What a grid is made from. Sizes are numbers of ranks, at least 1. */
typedef struct me_grid_sizes {
    int32_t world;
    int32_t tensor;
    int32_t context;
    int32_t pipeline;
    int32_t expert;
    int32_t expert_tensor;     /**< 0: as `tensor` */
    int32_t instances;         /**< of the distributed optimizer; 0: one */
    int32_t data_replicate;    /**< HSDP: copies of the shards along the data
                                    axis, outermost; 0: 1 */
    int32_t context_heads;     /**< inner ranks of a context axis of two levels;
                                    0: 1 */
    bool pipeline_before_data; /**< order tp-cp-ep-pp-dp */
    int32_t embedding_copy;    /**< pipeline rank that keeps a copy of the
                                    first's embedding; 0: none */
} me_grid_sizes;

/** One axis of the grid. */
typedef struct me_grid_axis {
    int32_t extent; /**< ranks along it */
    int32_t stride; /**< distance of neighbours, in ranks */
} me_grid_axis;

/** The grid; a value, made by me_grid_init(), then read-only. */
typedef struct me_grid {
    int32_t world;
    int32_t data_replicate;       /**< at least 1 */
    int32_t context_heads;        /**< at least 1 */
    int32_t embedding_copy;       /**< pipeline rank, 0: none */
    me_axis order[ME_AXIS_COUNT]; /**< fastest axis first */
    me_grid_axis axes[ME_GRID_SIDE_COUNT][ME_AXIS_COUNT];
} me_grid;

/** Where a rank is, by me_axis; 0 along an axis that the side lacks. */
typedef struct me_coordinates {
    int32_t at[ME_AXIS_COUNT];
} me_coordinates;

enum {
    ME_GROUP_AXES = 5 /**< axes that a group can span at most */
};

/**
 * A process group: its members in ascending order, described by strides, so
 * that a group of any size is a small value. Member i is `base` plus, along
 * each axis, the digit of i times the stride; the first axis is the fastest.
 */
typedef struct me_group {
    int32_t size; /**< members; 0: there is no such group */
    int32_t base; /**< rank of member 0 */
    int32_t n_axes;
    me_grid_axis axes[ME_GROUP_AXES];
} me_group;

/** A group as it is made at start-up. */
typedef struct me_created_group {
    me_group group;
    const char *name;   /**< static; lower case, such as "data_context" */
    me_group_kind kind; /**< ME_GROUP_COUNT: none that memest models uses it */
    bool has_host_twin; /**< followed by one for the hosts (Gloo) unless the
                             job switches those off */
} me_created_group;

/**
 * Make a grid. The data axes are derived: what the others leave of the world.
 *
 * @param sizes     what it is made from, used during the call only
 * @param diag      filled in on failure
 * @param grid_out  the grid, a value
 * @return ME_OK; ME_ERR_CONFIG if the sizes don't divide the world, or if the
 *         pipelines of the dense and the expert grid would differ
 */
me_status me_grid_init(const me_grid_sizes *sizes, me_diag *diag,
                       me_grid *grid_out) ME_MUST_CHECK;

/** Ranks along @p axis on @p side; at least 1. */
int32_t me_grid_extent(const me_grid *grid, me_grid_side side, me_axis axis);

/** The coordinates of @p rank (0 to world - 1) on @p side. */
me_coordinates me_grid_coordinates(const me_grid *grid, me_grid_side side,
                                   int32_t rank);

/** The rank at coordinates that are within the grid; inverse of the above. */
int32_t me_grid_rank(const me_grid *grid, me_grid_side side,
                     const me_coordinates *coordinates);

/** The data-parallel rank at coordinates of @p side, over all instances. */
int32_t me_grid_data_rank(const me_grid *grid, me_grid_side side,
                          const me_coordinates *coordinates);

/**
 * The group of a kind that @p rank is a member of. Cost: O(1).
 *
 * @return the group; of size 0 for a rank that is in no group of the kind,
 *         which only the embedding kinds leave out
 */
me_group me_grid_group(const me_grid *grid, me_group_kind kind, int32_t rank);

/** The rank of member @p index, 0 to size - 1. Cost: O(1). */
int32_t me_group_member(const me_group *group, int32_t index);

/** The index of @p rank among the members, -1 if it is none. Cost: O(1). */
int32_t me_group_index(const me_group *group, int32_t rank);

/** Number of groups that every rank makes at start-up, twins not counted. */
int64_t me_grid_created_count(const me_grid *grid);

/**
 * The groups in the order in which they are made, over all ranks; every rank
 * takes part in each. Cost: O(1).
 *
 * @param index  0 to me_grid_created_count() - 1
 */
me_created_group me_grid_created(const me_grid *grid, int64_t index);

#endif /* MEMEST_PARALLEL_GRID_H */
