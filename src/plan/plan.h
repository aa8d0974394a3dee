/**
 * @file
 * What each rank of a job holds: its place in the grid, its chunks of the
 * model, its groups, and which ranks run the same program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PLAN_PLAN_H
#define MEMEST_PLAN_PLAN_H

#include "base/status.h"
#include "base/str.h"
#include "config/config.h"
#include "model/shard_kin.h"
#include "parallel/grid.h"
#include "parallel/pipeline_order.h"
#include "parallel/routing.h"
#include "parallel/stage_layers.h"

/** Frozen once it is made. */
typedef struct me_plan {
    const me_config *config; /**< borrowed */
    me_grid grid;
    me_layout layout; /**< owned; no stages: not given */
    me_layer_split split;
    int32_t n_chunks;         /**< of every rank */
    me_pipeline_order *order; /**< with sends and receives; owned; NULL: a
                                   schedule of Megatron-LM's own */
    int32_t *stage_of;        /**< of the order: see me_layer_split; owned */
    bool *is_moe_layer;       /**< of the model's; owned; NULL: no experts */
    me_routing routing;       /**< who gets how many tokens; owned */
    int32_t *column_of; /**< of each rank, which counts of tokens the members
                                   of its experts' group have; 0: none; owned */
    int32_t n_classes;
    int32_t *class_of;       /**< world_size of them; owned */
    int32_t *members;        /**< all ranks, class by class, ascending; owned */
    int32_t *first_member;   /**< where each class begins in `members`, and at
                                  n_classes where the last one ends; owned */
    int32_t *shard_class;    /**< row by row, of each member of a row's
                                data-parallel group; owned; NULL: all differ */
    me_shard_kin *shard_kin; /**< of each row; owned; NULL: none */
    int32_t n_shard_rows;
    int32_t *kin_of; /**< of each class the lowest one of its kin; owned; NULL:
                          each is its own */
} me_plan;

/**
 * Plan a job.
 *
 * @param config    finished; borrowed for as long as the plan lives
 * @param folds     equal ranks form a class; else each rank is its own
 * @param plan_out  owned by the caller
 * @return ME_OK; ME_ERR_CONFIG naming what does not fit; ME_ERR_NOMEM
 */
me_status me_plan_create(const me_config *config, bool folds, me_diag *diag,
                         me_plan **plan_out) ME_MUST_CHECK;

/** Tells apart the ranks of a stage that own different shards of it. */
typedef struct me_shard_classes {
    /**
     * @param rank       a rank of the stage
     * @param class_out  for each member of the rank's data-parallel group
     *                   (context included) a number from 0 on; members with
     *                   the same number own the same parts of parameters
     * @param kin        all zero, and may stay so
     */
    me_status (*find)(void *self, const me_plan *plan, int32_t rank,
                      me_diag *diag, int32_t *class_out, me_shard_kin *kin);
    void *self;
} me_shard_classes;

/**
 * With the distributed optimizer, FSDP2 or fully_shard() every data-parallel
 * rank owns a shard, and me_plan_create() takes all shards for different. Fold
 * ranks whose shards are the same; the plan is not yet in use. A plan without
 * them stays as it is.
 *
 * @return ME_OK, what @p shards returned, or ME_ERR_NOMEM
 */
me_status me_plan_fold_shards(me_plan *plan, const me_shard_classes *shards,
                              me_diag *diag) ME_MUST_CHECK;

/** The lowest class of a class's kin (itself, if it has none): one simulation
 *  stands for all of them. Local. */
int32_t me_plan_kin(const me_plan *plan, int32_t class_id);

/** The class of the first rank of the data-parallel group that does what a class's
 *  ranks do, but for the shards that it steps. Local. */
int32_t me_plan_first_like(const me_plan *plan, int32_t class_id);

/** What the modules of that class's shards are in @p class_id. Local. */
me_shard_modules me_plan_shard_modules(const me_plan *plan, int32_t class_id);

/** Does the rank get the same tokens in all micro-batches, as do those that it
 *  exchanges them with? Local. */
bool me_plan_is_steady(const me_plan *plan, int32_t rank);

/** Give back a plan; NULL is allowed. */
void me_plan_destroy(me_plan *plan);

/** Ranks of a class, ascending; borrowed. */
const int32_t *me_plan_members(const me_plan *plan, int32_t class_id,
                               int32_t *count_out);

/** The rank's coordinates on the grid of ordinary weights. */
me_coordinates me_plan_coordinates(const me_plan *plan, int32_t rank);

/** Chunk @p chunk of @p rank. */
me_stage me_plan_stage(const me_plan *plan, int32_t rank, int32_t chunk);

/** The rank's place in its pipeline. */
me_pipeline me_plan_pipeline(const me_plan *plan, int32_t rank);

/** One line a rank: class, coordinates, layers; for `--dump plan`. */
void me_plan_dump(const me_plan *plan, me_str *text);

/** The lowest rank of a class, which stands for all of it. Local. */
static inline int32_t me_plan_representative(const me_plan *plan,
                                             int32_t class_id)
{
    return plan->members[plan->first_member[class_id]];
}

/** @name For the files of src/plan alone
 *  @{ */
/** Number the columns of counts in the order of their lowest ranks.
 *  @return ME_OK or ME_ERR_NOMEM */
me_status me_plan_find_columns(me_plan *plan, me_diag *diag) ME_MUST_CHECK;
/** The row of a table of shard classes that a rank is in. */
int32_t me_plan_shard_row(const me_plan *plan, int32_t rank);
/** Find the kin of all classes. @return ME_OK or ME_ERR_NOMEM */
me_status me_plan_find_kin(me_plan *plan, me_diag *diag) ME_MUST_CHECK;
void me_shard_kin_fini(me_shard_kin *kin);
/** @} */

#endif /* MEMEST_PLAN_PLAN_H */
