/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/probe.h"

#include "base/alloc.h"
#include "base/log.h"
#include "config/framework.h"
#include "config/options.h"
#include "run/program.h"
#include "run/simulate.h"
#include "search/evaluate.h"
#include "search/rules.h"
#include "tensor/launch.h"

#include <string.h>

enum {
    MICROBATCHES = 2,
    LAYERS = 2
};

/** A forward or backward. Of what was there before its micro-batch a forward gives
 *  back what modules had kept of the one before. */
typedef struct action {
    int64_t ns;             /**< kernels, and collectives that they wait for */
    int64_t host_ns;        /**< of the host */
    int64_t collectives_ns; /**< all of them */
    int64_t bytes;          /**< that it leaves */
    int64_t gone;   /**< of what was there before, given back by a forward */
    int64_t before; /**< what was there before the micro-batch and stays */
    int64_t most;   /**< that it has at once, beside what was there before the
                        micro-batch and stays; of a backward */
} action;

/** Listens to one run. */
typedef struct listener {
    const me_plan *plan;
    const me_job_card *card;
    me_host_program host;
    int64_t live;   /**< bytes that are requested and not given back */
    int64_t begin;  /**< of them when the open action began */
    int64_t most;   /**< live at once since the open forward began */
    int64_t before; /**< live when it began */
    int64_t gone;   /**< of what was live then, given back by the forward */
    uint32_t *born; /**< in which forward a block was allocated; owned */
    uint32_t n_born;
    uint32_t n_forwards; /**< so far */
    bool is_forward;     /**< one is open */
    me_status status;
    action *holder; /**< of what is live at the end of the open action; NULL */
    action *open;   /**< whose launches are told; NULL: nobody's */
    int64_t pending_ns; /**< from the end of the last kernel to that of a linear
                             layer's collective; 0: none is waited for */
    me_digest digest;
    action forward[MICROBATCHES];
    action backward[MICROBATCHES];
} listener;

static action *action_of(listener *l, bool is_backward, int32_t microbatch)
{
    return microbatch < 0 || microbatch >= MICROBATCHES ? NULL
           : is_backward ? &l->backward[microbatch]
                         : &l->forward[microbatch];
}

/** Groups that are the same whatever the job's other degrees are; those that share
 *  parameters are all there (megatron_probe.c). */
static bool is_of_layer(const listener *l, uint8_t group)
{
    const me_config *c = l->plan->config;
    return group == ME_GROUP_TENSOR || group == ME_GROUP_CONTEXT ||
           group == ME_GROUP_EXPERT || group == ME_GROUP_EXPERT_TENSOR ||
           group == ME_GROUP_TENSOR_CONTEXT ||
           (group == ME_GROUP_DATA_CONTEXT &&
            me_framework_traits_of(c)->shards_parameters(c));
}

/** Do its ranks span more than a node? All groups of a kind span as many, so that
 *  none of them lies on one. */
static bool spans_nodes(const me_cluster_layout *layout, const me_group *group)
{
    const int32_t first = me_group_member(group, 0);
    const int32_t last = me_group_member(group, group->size - 1);
    return !layout->is_cyclic && last - first >= layout->gpus_per_node;
}

/** Wherever its ranks lie. */
static int64_t collective_ns(const listener *l, const me_launch *launch)
{
    if (l->card->has_machine || !is_of_layer(l, launch->group)) {
        return 0;
    }
    const me_rates *rates = &l->card->rates;
    const me_group group =
        me_grid_group(&l->plan->grid, (me_group_kind)launch->group, 0);
    const me_time_group near = {.size = group.size};
    const me_time_group far = {.size = group.size, .is_remote = true};
    const int64_t a = me_collective_ns(rates, launch, &near);
    const int64_t b = me_collective_ns(rates, launch, &far);
    return a < b && !spans_nodes(&l->card->layout, &group) ? a : b;
}

/** Kernels wait for what a linear layer began beside them. */
static void stream_waits(listener *l, action *open)
{
    open->ns += l->pending_ns;
    l->pending_ns = 0;
}

/** Kernels wait at once, or a linear layer has more of them run meanwhile and waits
 *  before its backward ends. Of others nobody knows in which layer they are waited
 *  for. */
static void add_collective(listener *l, const me_launch *launch, action *open)
{
    const int64_t ns = collective_ns(l, launch);
    const bool is_linear = launch->is_async && !launch->is_ahead &&
                           launch->group == ME_GROUP_TENSOR;
    open->collectives_ns += ns;
    open->ns += launch->is_async || launch->is_ahead ? 0 : ns;
    l->pending_ns = is_linear ? ns : 0;
}

static void add_kernel(listener *l, const me_launch *launch, action *open)
{
    const int64_t ns = me_kernel_ns(&l->card->rates, launch);
    open->ns += ns;
    l->pending_ns = l->pending_ns > ns ? l->pending_ns - ns : 0;
}

/** Each moves one clock of the rank at least, and an end of the step is the end of
 *  all. */
static void add_launch(listener *l, const me_launch *launch, action *open)
{
    const me_rates *rates = &l->card->rates;
    if (launch->kind == ME_LAUNCH_KERNEL) {
        add_kernel(l, launch, open);
    } else if (launch->kind == ME_LAUNCH_COLLECTIVE) {
        add_collective(l, launch, open);
    } else if (launch->kind == ME_LAUNCH_STREAM_WAITS) {
        stream_waits(l, open);
        return;
    } else if (launch->kind != ME_LAUNCH_HOST) {
        return;
    }
    open->host_ns += me_host_ns(rates, l->host, launch);
}

static void digest_launch(me_digest *digest, const me_launch *launch)
{
    const me_launch *x = launch;
    const uint64_t words[] = {
        (uint64_t)x->kind, x->kernel, x->dtype,    x->host,     x->collective,
        x->group,          x->phase,  x->is_async, x->is_ahead, x->flops,
        x->bytes,          x->batch,  x->m,        x->n,        x->k};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        me_digest_add(digest, words[i]);
    }
}

static void on_launch(void *self, const me_launch *launch)
{
    listener *l = self;
    digest_launch(&l->digest, launch);
    if (launch->kind == ME_LAUNCH_ACTION_BEGIN) {
        l->open = action_of(l, launch->is_backward, launch->microbatch);
        l->pending_ns = 0;
    } else if (launch->kind == ME_LAUNCH_ACTION_END) {
        l->open = NULL;
    } else if (l->open != NULL) {
        add_launch(l, launch, l->open);
    }
}

static void on_alloc(listener *l, const me_event *event)
{
    if (event->block >= l->n_born) {
        const uint32_t n = 2 * event->block + 1;
        uint32_t *grown = me_realloc(l->born, n, sizeof *grown, "probe.born");
        if (grown == NULL) {
            l->status = ME_ERR_NOMEM;
            return;
        }
        l->born = grown;
        l->n_born = n;
    }
    l->born[event->block] = l->n_forwards;
    l->live += (int64_t)event->bytes;
    l->most = l->live > l->most ? l->live : l->most;
}

static void on_free(listener *l, const me_event *event)
{
    const bool is_known = event->block < l->n_born;
    l->live -= (int64_t)event->bytes;
    if (l->is_forward && is_known && l->born[event->block] != l->n_forwards) {
        l->gone += (int64_t)event->bytes;
    }
}

static void on_action_begin(listener *l, const me_event *event)
{
    l->begin = l->live;
    l->is_forward = strcmp(event->name, "F") == 0;
    if (l->is_forward) {
        l->n_forwards++;
        l->gone = 0;
        l->before = l->live;
        l->most = l->live;
    }
    l->holder = event->iteration != ME_STEADY_ITERATION
                    ? NULL
                    : action_of(l, !l->is_forward, event->microbatch);
}

static void on_action_end(listener *l)
{
    if (l->holder != NULL) {
        l->holder->bytes = l->live - l->begin;
        l->holder->gone = l->gone;
        l->holder->before = l->before - l->gone;
        l->holder->most = l->most - l->holder->before;
        l->holder = NULL;
    }
    l->is_forward = false;
}

static void on_event(void *self, const me_event *event)
{
    listener *l = self;
    me_digest_add(&l->digest, (uint64_t)event->kind);
    me_digest_add(&l->digest, event->block);
    me_digest_add(&l->digest, event->bytes);
    if (event->kind == ME_EVENT_ALLOC) {
        on_alloc(l, event);
    } else if (event->kind == ME_EVENT_FREE_REQUESTED) {
        on_free(l, event);
    } else if (event->kind == ME_EVENT_ACTION_BEGIN) {
        on_action_begin(l, event);
    } else {
        on_action_end(l);
    }
}

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    listener *l = self;
    me_engine_observe(
        e, (me_observer){.on_event = on_event,
                         .self = self,
                         .kinds = ME_EVENT_BIT(ME_EVENT_ALLOC) |
                                  ME_EVENT_BIT(ME_EVENT_FREE_REQUESTED) |
                                  ME_EVENT_BIT(ME_EVENT_ACTION_BEGIN) |
                                  ME_EVENT_BIT(ME_EVENT_ACTION_END)});
    if (l->card->rates.is_known) {
        me_engine_listen(
            e, (me_launch_listener){.on_launch = on_launch,
                                    .self = self,
                                    .iteration = ME_STEADY_ITERATION});
    }
    return ME_OK;
}

static me_status end(void *self, me_diag *diag)
{
    const listener *l = self;
    return l->status == ME_OK
               ? ME_OK
               : me_fail(diag, l->status, "no host memory for probes");
}

/** The lowest rank of the last stage. */
static int32_t rank_at_end(const me_plan *plan)
{
    const me_coordinates c = {
        .at = {[ME_AXIS_PIPELINE] = plan->config->parallel.pipeline - 1}};
    return me_grid_rank(&plan->grid, ME_GRID_DENSE, &c);
}

static me_status watch(me_config *config, const me_job_card *card,
                       me_diag *diag, listener *l)
{
    me_plan *plan = NULL;
    me_status status = me_config_finish(config, 1, diag);
    if (status == ME_OK) {
        status = me_plan_create(config, true, diag, &plan);
    }
    *l = (listener){.plan = plan, .card = card};
    if (status == ME_OK) {
        l->host = me_program_kind_of(plan)->host;
    }
    const me_watcher watcher = {.begin = begin, .end = end, .self = l};
    if (status == ME_OK) {
        status =
            me_simulate_watched(plan, card, rank_at_end(plan), &watcher, diag);
    }
    l->plan = NULL;
    me_free(l->born);
    l->born = NULL;
    me_plan_destroy(plan);
    return status;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_none(int64_t x)
{
    return x > 0 ? x : 0;
}

/** The most of a micro-batch lies where all layers' bytes are there if another
 *  layer raises it by its own. */
static uint64_t spike_of(const listener *one, const listener *two, int64_t kept)
{
    int64_t spike = INT64_MAX;
    for (int m = 0; m < MICROBATCHES; m++) {
        const int64_t most = one->backward[m].most;
        if (two->backward[m].most - most < kept) {
            return 0;
        }
        spike = least(spike, most - kept);
    }
    return (uint64_t)at_least_none(spike);
}

/** Of a micro-batch, both ways. */
static action both_ways(const listener *l, int microbatch)
{
    const action *f = &l->forward[microbatch];
    const action *b = &l->backward[microbatch];
    return (action){.ns = f->ns + b->ns,
                    .host_ns = f->host_ns + b->host_ns,
                    .collectives_ns = f->collectives_ns + b->collectives_ns};
}

/** From jobs of one layer and of two. */
static me_probe tell_apart(const listener *one, const listener *two)
{
    const int64_t most = INT64_MAX;
    me_probe p = {.forward_ns = most,
                  .backward_ns = most,
                  .host_ns = most,
                  .collectives_ns = most,
                  .digest = two->digest};
    int64_t kept = most;
    int64_t held = most;
    int64_t lasting = most;
    action ends = {.ns = most, .host_ns = most};
    for (int m = 0; m < MICROBATCHES; m++) {
        const action a = both_ways(one, m);
        const action b = both_ways(two, m);
        p.forward_ns =
            least(p.forward_ns, two->forward[m].ns - one->forward[m].ns);
        p.backward_ns =
            least(p.backward_ns, two->backward[m].ns - one->backward[m].ns);
        p.host_ns = least(p.host_ns, b.host_ns - a.host_ns);
        p.collectives_ns =
            least(p.collectives_ns, b.collectives_ns - a.collectives_ns);
        const action *f = &one->forward[m];
        const action *g = &two->forward[m];
        kept = least(kept, g->bytes - f->bytes);
        held = least(held, g->bytes + g->gone - f->bytes - f->gone);
        lasting = least(lasting, g->before - f->before);
        ends.ns = least(ends.ns, a.ns);
        ends.host_ns = least(ends.host_ns, a.host_ns);
    }
    p.forward_ns = at_least_none(p.forward_ns);
    p.backward_ns = at_least_none(p.backward_ns);
    p.ends_ns = at_least_none(ends.ns - p.forward_ns - p.backward_ns);
    p.host_ns = at_least_none(p.host_ns);
    p.host_ends_ns = at_least_none(ends.host_ns - p.host_ns);
    p.collectives_ns = at_least_none(p.collectives_ns);
    p.kept_bytes = (uint64_t)at_least_none(kept);
    p.held_bytes = (uint64_t)at_least_none(held);
    p.lasting_bytes = (uint64_t)at_least_none(lasting);
    p.spike_bytes = spike_of(one, two, at_least_none(held));
    me_log(
        ME_LOG_DEBUG,
        "search: a layer: forward %lld ns, backward %lld; %llu bytes lasting, "
        "%llu held, %llu kept; %llu at most beside them",
        (long long)p.forward_ns, (long long)p.backward_ns,
        (unsigned long long)p.lasting_bytes, (unsigned long long)p.held_bytes,
        (unsigned long long)p.kept_bytes, (unsigned long long)p.spike_bytes);
    return p;
}

/** @param n_layers  as me_candidate_probe() */
static me_status watch_layers(const me_candidate *candidate,
                              const me_config *job, int32_t n_layers,
                              const me_job_card *card, me_diag *diag,
                              listener *l)
{
    me_config *config = NULL;
    me_status status = me_candidate_probe(candidate, job, ME_PROBE_LAYER,
                                          n_layers, diag, &config);
    if (status == ME_OK) {
        status = watch(config, card, diag, l);
    }
    me_config_destroy(config);
    return status;
}

/** What the last stage of a pipeline has beside its layers. One that cannot have
 *  a pipeline shows nothing. */
static me_status probe_end(const me_candidate *candidate, const me_config *job,
                           const me_job_card *card, me_diag *diag,
                           me_probe *probe)
{
    listener last;
    me_diag own = {.status = ME_OK};
    const me_status status =
        watch_layers(candidate, job, ME_PROBE_END, card, &own, &last);
    if (me_candidate_is_reason(status)) {
        return ME_OK;
    }
    if (status != ME_OK) {
        *diag = own;
        return status;
    }
    int64_t ns = INT64_MAX;
    for (int m = 0; m < MICROBATCHES; m++) {
        ns = least(ns, both_ways(&last, m).ns);
    }
    probe->head_ns = at_least_none(ns - probe->forward_ns - probe->backward_ns);
    return ME_OK;
}

static me_status probe_layer(const me_candidate *candidate,
                             const me_config *job, const me_job_card *card,
                             me_diag *diag, me_probe *probe)
{
    const me_probe_rules *rules =
        &me_search_rules_of(job->framework)->probes[ME_PROBE_LAYER];
    const bool has_rest = rules->has_rest != NULL && rules->has_rest(job);
    listener runs[LAYERS];
    listener rest = {.digest = {0, 0}};
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < LAYERS; i++) {
        status = watch_layers(candidate, job, i + 1, card, diag, &runs[i]);
    }
    if (status == ME_OK && has_rest) {
        status = watch_layers(candidate, job, ME_PROBE_REST, card, diag, &rest);
    }
    if (status == ME_OK) {
        *probe = tell_apart(&runs[0], &runs[1]);
    }
    if (status == ME_OK && has_rest) {
        me_digest_add(&probe->digest, rest.digest.a);
        me_digest_add(&probe->digest, rest.digest.b);
    }
    return status == ME_OK ? probe_end(candidate, job, card, diag, probe)
                           : status;
}

me_status me_probe_run(const me_candidate *candidate, const me_config *job,
                       me_probe_kind kind, const me_job_card *card,
                       me_diag *diag, me_probe *probe_out)
{
    me_diag own = {.status = ME_OK};
    *probe_out = (me_probe){.forward_ns = 0};
    const me_status status =
        kind == ME_PROBE_LAYER
            ? probe_layer(candidate, job, card, &own, probe_out)
            : me_candidate_outside(candidate, job, &own,
                                   &probe_out->outside_bytes);
    if (status != ME_OK && !me_candidate_is_reason(status)) {
        *diag = own;
        return status;
    }
    return ME_OK;
}
