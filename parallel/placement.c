/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/placement.h"

#include "base/assert.h"

#include <stdbool.h>

const char *me_placement_name(me_placement placement)
{
#define NAME_CASE(constant, name)                                              \
    case constant: return name;
    switch (placement) {
        ME_PLACEMENT_LIST(NAME_CASE)
    case ME_PLACEMENT_COUNT: break;
    }
#undef NAME_CASE
    ME_ASSERT(false);
    return "?";
}

/** Does chunk @p chunk run through the ranks from the last to the first? */
static bool goes_back(me_placement placement, int32_t chunk)
{
    return placement != ME_PLACEMENT_LOOP && chunk % 2 == 1;
}

int32_t me_placement_stage(me_placement placement, int32_t ranks, int32_t rank,
                           int32_t chunk)
{
    ME_ASSERT(placement != ME_PLACEMENT_OTHER);
    return chunk * ranks +
           (goes_back(placement, chunk) ? ranks - 1 - rank : rank);
}

int32_t me_placement_rank(me_placement placement, int32_t ranks, int32_t stage)
{
    ME_ASSERT(placement != ME_PLACEMENT_OTHER);
    const int32_t at = stage % ranks;
    return goes_back(placement, stage / ranks) ? ranks - 1 - at : at;
}

int32_t me_placement_next(me_placement placement, int32_t stages, int32_t stage)
{
    const bool ends = placement == ME_PLACEMENT_TWO_WAYS
                          ? stage % (stages / 2) == stages / 2 - 1
                          : stage == stages - 1;
    return ends ? -1 : stage + 1;
}

int32_t me_placement_previous(me_placement placement, int32_t stages,
                              int32_t stage)
{
    const bool begins = placement == ME_PLACEMENT_TWO_WAYS
                            ? stage % (stages / 2) == 0
                            : stage == 0;
    return begins ? -1 : stage - 1;
}

/** Stages that the model is cut into: half of the stages of two directions. */
static int32_t model_stages(me_placement placement, int32_t stages)
{
    return placement == ME_PLACEMENT_TWO_WAYS ? stages / 2 : stages;
}

int32_t me_placement_model_stage(me_placement placement, int32_t stages,
                                 int32_t stage)
{
    return stage % model_stages(placement, stages);
}
