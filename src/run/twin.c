/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/twin.h"

#include "base/size.h"
#include "config/framework.h"
#include "run/program.h"

#include <string.h>

void me_twin_watch_tell(void *self, bool begins)
{
    me_twin_watch *w = self;
    const uint64_t calls = me_pool_observer_driver_calls(w->pool);
    w->has_called = w->has_called || (!begins && calls != w->driver_calls);
    w->driver_calls = calls;
    if (w->tracker != NULL && begins) {
        me_tracker_begin_twin_span(w->tracker);
    } else if (w->tracker != NULL) {
        me_tracker_end_twin_span(w->tracker);
    }
}

void me_twin_watch_end(const me_twin_watch *watch, bool *differs_from_twin)
{
    const bool has_peak =
        watch->tracker != NULL && me_tracker_differs_from_twin(watch->tracker);
    if (differs_from_twin != NULL &&
        (watch->has_called || has_peak ||
         me_pool_observer_differs_from_twin(watch->pool))) {
        *differs_from_twin = true;
    }
}

/** Do the ranks of each tensor group have one node to themselves or share it
 *  as a whole, so that all see the same nodes from where they are? */
static bool groups_share_nodes(const me_simulation *simulation)
{
    const me_cluster_layout *layout = &simulation->card->layout;
    const me_group group =
        me_grid_group(&simulation->plan->grid, ME_GROUP_TENSOR, 0);
    return group.n_axes == 1 && group.axes[0].stride == 1 &&
           !layout->is_cyclic && layout->gpus_per_node % group.size == 0;
}

/** The age of blocks counts for an allocator that collects garbage. */
static bool can_have_twins(const me_simulation *simulation)
{
    const me_config *c = simulation->plan->config;
    return me_framework_traits_of(c)->has_twins(c) &&
           me_routing_is_uniform(&simulation->plan->routing) &&
           simulation->alloc_conf.garbage_collection_threshold <= 0.0 &&
           simulation->events_path == NULL && !simulation->runs_all_rounds &&
           groups_share_nodes(simulation);
}

/** Does the first of a tensor group make batches, in another order than the
 *  others? */
static bool reads_data(const me_plan *plan, int32_t rank)
{
    for (int32_t i = 0; i < plan->n_chunks; i++) {
        const me_stage stage = me_plan_stage(plan, rank, i);
        if (stage.has_embedding || stage.has_mtp || stage.has_head) {
            return true;
        }
    }
    return false;
}

/** Is that order all that differs? With context parallelism ranks take their parts
 *  of a mask in an order of their own, and more is made of what the depths of
 *  multi-token prediction read. */
static bool can_follow_batches(const me_plan *plan, int32_t rank)
{
    const me_config *c = plan->config;
    for (int32_t i = 0; i < plan->n_chunks; i++) {
        if (me_plan_stage(plan, rank, i).has_mtp) {
            return false;
        }
    }
    return c->parallel.context == 1 ||
           !c->train.create_attention_mask_in_dataloader;
}

me_twin_batch me_twin_batch_of(const me_plan *plan, int32_t rank)
{
    const me_config *c = plan->config;
    const me_coordinates at = me_plan_coordinates(plan, rank);
    if (c->parallel.tensor == 1 || at.at[ME_AXIS_TENSOR] != 0 ||
        !me_framework_traits_of(c)->has_twins(c) || !reads_data(plan, rank) ||
        !can_follow_batches(plan, rank)) {
        return (me_twin_batch){.token_bytes = 0};
    }
    const uint64_t tokens =
        me_size_mul(c->train.micro_batch_size, c->model.seq_length);
    return (me_twin_batch){
        .token_bytes = me_size_mul(tokens, me_dtype_bytes(ME_DTYPE_INT64)),
        .mask_bytes = c->train.create_attention_mask_in_dataloader
                          ? me_size_mul(tokens, c->model.seq_length)
                          : 0,
    };
}

bool me_twin_has_peak_of_batch(const me_rank_result *result)
{
    static const char *const parts[] = {"attention_mask", "labels", "loss_mask",
                                        "position_ids", "tokens"};
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        const char *op = result->iterations[i].peak.op;
        for (size_t k = 0; op != NULL && k < sizeof parts / sizeof parts[0];
             k++) {
            if (strcmp(op, parts[k]) == 0) {
                return true;
            }
        }
    }
    return false;
}

/** The class of the first ranks in the tensor groups of a class. Where batches are
 *  made, a course may see what lives in between. */
static int32_t find_first(const me_simulation *simulation, int32_t class_id)
{
    const me_plan *plan = simulation->plan;
    const int32_t rank = me_plan_representative(plan, class_id);
    me_coordinates c = me_plan_coordinates(plan, rank);
    c.at[ME_AXIS_TENSOR] = 0;
    const int32_t first = me_grid_rank(&plan->grid, ME_GRID_DENSE, &c);
    const int32_t class_of_first = plan->class_of[first];
    return me_plan_representative(plan, class_of_first) == first &&
                   (!reads_data(plan, rank) ||
                    (can_follow_batches(plan, rank) &&
                     !simulation->keeps_course))
               ? class_of_first
               : class_id;
}

/** Does a rank's event log not name its own modules? */
static bool can_have_kin(const me_simulation *simulation)
{
    return simulation->events_path == NULL && !simulation->runs_all_rounds;
}

/** Its kin if both have the same twin up to kin, else itself. */
static int32_t kin_of(const me_plan *plan, const me_twin *twins, int32_t i)
{
    const int32_t kin = me_plan_kin(plan, i);
    const int32_t first = twins[i].first;
    const int32_t kin_of_first = first == i ? kin : twins[first].kin;
    return twins[kin].first == kin_of_first ? kin : i;
}

/** Can a program's events be told for ranks with other shards as well? */
static bool can_have_strands(const me_simulation *simulation)
{
    return simulation->strands_max > 1 && can_have_kin(simulation) &&
           me_program_kind_of(simulation->plan)
               ->can_have_strands(simulation->plan->config);
}

/** Of a class that is simulated first: as a strand of one before it that does what
 *  it does, while there is room, or as the lead of more. */
static void find_strand(const me_simulation *simulation, me_twin *twins,
                        int32_t i, int32_t *n_leads)
{
    me_twin *t = &twins[i];
    const int32_t like = can_have_strands(simulation)
                             ? me_plan_first_like(simulation->plan, i)
                             : i;
    me_twin *first = &twins[like];
    const bool is_first =
        like >= i || first->first != like || first->kin != like;
    const int32_t open = is_first ? i : first->open;
    if (!is_first && twins[open].n_strands < simulation->strands_max) {
        t->lead = open;
        t->strand = twins[open].n_strands++;
        t->task = twins[open].task;
        return;
    }
    t->lead = i;
    t->n_strands = 1;
    t->open = i;
    t->task = (*n_leads)++;
    first->open = is_first ? first->open : i;
}

/** Lists of kin and of strands. */
static void link_lists(me_twin *twins, int32_t n)
{
    for (int32_t i = n; i-- > 0;) {
        me_twin *t = &twins[i];
        me_twin *kin = &twins[t->kin];
        me_twin *lead = &twins[t->lead];
        if (t->kin != i) {
            t->next_kin = kin->next_kin;
            kin->next_kin = i;
        }
        if (t->lead != i) {
            t->next_strand = lead->next_strand;
            lead->next_strand = i;
        }
    }
}

void me_twins_find(const me_simulation *simulation, me_twin *twins_out)
{
    const me_plan *plan = simulation->plan;
    const bool can = can_have_twins(simulation);
    const bool can_kin = can_have_kin(simulation);
    int32_t n = 0;
    int32_t n_leads = 0;
    for (int32_t i = 0; i < plan->n_classes; i++) {
        me_twin *t = &twins_out[i];
        *t = (me_twin){.first = can ? find_first(simulation, i) : i,
                       .kin = i,
                       .lead = i,
                       .n_strands = 1};
        t->kin = can_kin ? kin_of(plan, twins_out, i) : i;
        const int32_t stands = t->kin != i ? t->kin : t->first;
        if (stands == i) {
            t->number = n++;
            find_strand(simulation, twins_out, i, &n_leads);
        } else {
            t->number = twins_out[stands].number;
            t->task = twins_out[stands].task;
        }
    }
    link_lists(twins_out, plan->n_classes);
}
