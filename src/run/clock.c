/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/clock.h"

#include "run/group_links.h"
#include "run/program.h"

/** The host's time for a micro-batch's data. Megatron-LM's mock data set makes
 *  a mask of s x s for each sample: read off recorded jobs at s = 2048 and
 *  4096, the longer ones beyond the host's caches. */
static int64_t loader_ns(const me_config *c)
{
    static const double fixed_ns = 1.2e6;
    static const double short_ns = 2.3;
    static const double long_ns = 2.75;
    if (c->time.loader == ME_LOADER_NONE) {
        return 0;
    }
    const double s = (double)c->model.seq_length;
    const double masks = c->train.create_attention_mask_in_dataloader
                             ? (double)c->train.micro_batch_size * s * s
                             : 0;
    return (int64_t)(fixed_ns + masks * (s < 4096 ? short_ns : long_ns));
}

static int32_t stage_of(const me_plan *plan, int32_t rank)
{
    return me_plan_coordinates(plan, rank).at[ME_AXIS_PIPELINE];
}

/** Does nothing that is still to come change it? */
static bool is_placed(const me_time_place *place, me_group_kind kind)
{
    return place->group[kind].is_remote && place->spans_stages[kind] &&
           place->first_stage[kind] == 0;
}

static me_status place_group(const me_plan *plan, const me_job_card *card,
                             int32_t rank, me_group_kind kind,
                             me_time_place *place)
{
    const me_cluster_layout *layout = &card->layout;
    const me_group group = me_grid_group(&plan->grid, kind, rank);
    const int32_t own_node = me_cluster_node(layout, rank);
    const int32_t own_stage = stage_of(plan, rank);
    place->group[kind].size = group.size;
    place->first_stage[kind] = own_stage;
    for (int32_t i = 0; i < group.size && !is_placed(place, kind); i++) {
        const int32_t member = me_group_member(&group, i);
        const int32_t stage = stage_of(plan, member);
        if (me_cluster_node(layout, member) != own_node) {
            place->group[kind].is_remote = true;
        }
        if (stage != own_stage) {
            place->spans_stages[kind] = true;
        }
        if (stage < place->first_stage[kind]) {
            place->first_stage[kind] = stage;
        }
    }
    return card->has_machine
               ? me_links_of_group(&card->machine, &group, &place->path[kind])
               : ME_OK;
}

me_status me_clock_create(const me_plan *plan, const me_job_card *card,
                          int32_t rank, me_diag *diag,
                          me_time_recorder **recorder_out)
{
    *recorder_out = NULL;
    if (!card->rates.is_known) {
        return ME_OK;
    }
    me_time_place place = {
        .program = me_program_kind_of(plan)->host,
        .loader_ns = loader_ns(plan->config),
        .cluster = card->has_machine ? &card->machine : NULL,
        .layout = card->layout,
    };
    me_status status = ME_OK;
    for (int kind = 0; kind < ME_GROUP_COUNT && status == ME_OK; kind++) {
        status = place_group(plan, card, rank, (me_group_kind)kind, &place);
    }
    const me_group stages = me_grid_group(&plan->grid, ME_GROUP_PIPELINE, rank);
    place.rank = rank;
    place.stage = stage_of(plan, rank);
    place.stage_stride = stages.n_axes > 0 ? stages.axes[0].stride : 0;
    if (status == ME_OK) {
        status = me_time_recorder_create(&card->rates, &place, recorder_out);
    }
    return status == ME_OK ? ME_OK
                           : me_fail(diag, status, "no host memory for times");
}
