/* SPDX-License-Identifier: BSD-3-Clause */
#include "time/recorder.h"

#include "base/alloc.h"

#include <string.h>

/** Where the last action of its kind stands. */
typedef struct action {
    me_time_part part;
    bool is_input; /**< a backward of the input alone */
    int32_t chunk;
    uint32_t begin; /**< items */
    uint32_t end;
} action;

struct me_time_recorder {
    const me_rates *rates;
    me_time_place place;
    me_stretch stretch;        /**< that is open */
    int64_t clocks[ME_CLOCKS]; /**< as if the stretch were alone */
    me_time_part part;
    int32_t chunk;
    int32_t microbatch;
    bool is_optimizer; /**< from here to the end */
    bool has_launched; /**< in the open stretch */
    action *actions;   /**< the last of each kind; owned */
    uint32_t n_actions;
    uint32_t actions_capacity;
    action open; /**< the one that runs */
    me_time_program program;
    uint32_t items_capacity;
    uint32_t stretches_capacity;
    me_status status;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

me_status me_time_recorder_create(const me_rates *rates,
                                  const me_time_place *place,
                                  me_time_recorder **recorder_out)
{
    me_time_recorder *r = me_alloc(1, sizeof *r, "time.recorder");
    if (r == NULL) {
        return ME_ERR_NOMEM;
    }
    r->rates = rates;
    r->place = *place;
    r->stretch = me_stretch_none();
    *recorder_out = r;
    return ME_OK;
}

void me_time_recorder_destroy(me_time_recorder *recorder)
{
    if (recorder != NULL) {
        me_free(recorder->actions);
        me_free(recorder->program.items);
        me_free(recorder->program.stretches);
        me_free(recorder);
    }
}

/** Room for one more; NULL without memory. */
static void *grow(me_time_recorder *r, void *items, uint32_t count,
                  uint32_t *capacity, size_t size)
{
    void *larger = me_grow(items, count, capacity, size, "time.program");
    r->status = larger == NULL ? ME_ERR_NOMEM : r->status;
    return larger;
}

static void add_item(me_time_recorder *r, const me_time_item *item)
{
    me_time_program *p = &r->program;
    me_time_item *items =
        grow(r, p->items, p->n_items, &r->items_capacity, sizeof *items);
    if (items != NULL) {
        p->items = items;
        p->items[p->n_items++] = *item;
    }
}

/** Index of the open stretch; it is new only if no like one was before. */
static uint32_t keep_stretch(me_time_recorder *r)
{
    me_time_program *p = &r->program;
    for (uint32_t i = p->n_stretches; i > 0; i--) {
        if (memcmp(&p->stretches[i - 1], &r->stretch, sizeof r->stretch) == 0) {
            return i - 1;
        }
    }
    me_stretch *stretches = grow(r, p->stretches, p->n_stretches,
                                 &r->stretches_capacity, sizeof *stretches);
    if (stretches == NULL) {
        return 0;
    }
    p->stretches = stretches;
    p->stretches[p->n_stretches] = r->stretch;
    return p->n_stretches++;
}

/** The open stretch ends here. */
static void close_stretch(me_time_recorder *r)
{
    if (!r->has_launched) {
        return;
    }
    add_item(r, &(me_time_item){.kind = ME_TIME_RUN,
                                .part = (uint8_t)r->part,
                                .chunk = r->chunk,
                                .microbatch = r->microbatch,
                                .stretch = keep_stretch(r)});
    r->stretch = me_stretch_none();
    memset(r->clocks, 0, sizeof r->clocks);
    r->has_launched = false;
}

/** Row @p to becomes at least row @p from. */
static void wait_for(me_time_recorder *r, me_clock to, me_clock from)
{
    for (int j = 0; j < ME_CLOCKS; j++) {
        r->stretch.after[to][j] =
            later(r->stretch.after[to][j], r->stretch.after[from][j]);
    }
    r->clocks[to] = later(r->clocks[to], r->clocks[from]);
}

static void advance(me_time_recorder *r, me_clock clock, int64_t ns)
{
    for (int j = 0; j < ME_CLOCKS; j++) {
        if (r->stretch.after[clock][j] != ME_TIME_NEVER) {
            r->stretch.after[clock][j] += ns;
        }
    }
    r->clocks[clock] += ns;
}

static void host_works(me_time_recorder *r, int64_t ns)
{
    r->stretch.host_ns += ns;
    advance(r, ME_CLOCK_HOST, ns);
    r->has_launched = true;
}

/** What the launch keeps the host. */
static int64_t host_ns(const me_time_recorder *r, const me_launch *launch)
{
    return me_host_ns(r->rates, r->place.program, launch);
}

static void run_kernel(me_time_recorder *r, const me_launch *launch)
{
    const int64_t ns = me_kernel_ns(r->rates, launch);
    host_works(r, host_ns(r, launch));
    wait_for(r, ME_CLOCK_COMPUTE, ME_CLOCK_HOST);
    advance(r, ME_CLOCK_COMPUTE, ns);
    r->stretch.compute_ns += ns;
}

/** Kernels wait for collectives; what they wait for beyond the host's own pace
 *  is what is exposed. */
static void stream_waits(me_time_recorder *r)
{
    r->has_launched = true;
    const int64_t could_run =
        later(r->clocks[ME_CLOCK_COMPUTE], r->clocks[ME_CLOCK_HOST]);
    r->stretch.exposed_ns +=
        later(0, r->clocks[ME_CLOCK_COMMUNICATION] - could_run);
    wait_for(r, ME_CLOCK_COMPUTE, ME_CLOCK_COMMUNICATION);
}

static int64_t collective_ns(const me_time_recorder *r, const me_launch *launch)
{
    const me_time_place *p = &r->place;
    return p->cluster == NULL
               ? me_collective_ns(r->rates, launch, &p->group[launch->group])
               : me_cluster_collective_ns(r->rates, p->cluster, launch,
                                          &p->path[launch->group]);
}

static void communicate(me_time_recorder *r, const me_launch *launch)
{
    const int64_t ns = collective_ns(r, launch);
    host_works(r, host_ns(r, launch));
    if (r->place.spans_stages[launch->group]) {
        close_stretch(r);
        add_item(r, &(me_time_item){.kind = ME_TIME_MEET,
                                    .part = (uint8_t)r->part,
                                    .group = launch->group,
                                    .first_stage =
                                        r->place.first_stage[launch->group],
                                    .ns = ns});
        return;
    }
    wait_for(r, ME_CLOCK_COMMUNICATION, ME_CLOCK_HOST);
    if (!launch->is_ahead) {
        wait_for(r, ME_CLOCK_COMMUNICATION, ME_CLOCK_COMPUTE);
    }
    advance(r, ME_CLOCK_COMMUNICATION, ns);
    r->stretch.communication_ns += ns;
    if (!launch->is_async) {
        stream_waits(r);
    }
}

static void host_waits(me_time_recorder *r)
{
    r->has_launched = true;
    wait_for(r, ME_CLOCK_HOST, ME_CLOCK_COMPUTE);
    wait_for(r, ME_CLOCK_HOST, ME_CLOCK_COMMUNICATION);
    advance(r, ME_CLOCK_HOST, ME_SYNCHRONIZE_NS);
}

/** To or from a stage's rank. */
static int64_t transfer_ns(const me_time_recorder *r, uint64_t bytes,
                           int32_t stage)
{
    const me_time_place *p = &r->place;
    const int32_t other = p->rank + (stage - p->stage) * p->stage_stride;
    if (p->cluster == NULL || other == p->rank) {
        return me_transfer_ns(r->rates, bytes,
                              me_cluster_node(&p->layout, other) !=
                                  me_cluster_node(&p->layout, p->rank));
    }
    return me_cluster_transfer_ns(
        r->rates, p->cluster, bytes,
        me_cluster_between(p->cluster, p->rank, other),
        &p->path[ME_GROUP_PIPELINE]);
}

/** A batch takes as long as the slower one of its links. */
static int64_t exchange_ns(const me_time_recorder *r, const me_launch *launch)
{
    const unsigned next = ME_TRANSFER_TO_NEXT | ME_TRANSFER_FROM_NEXT;
    const bool has_next = (launch->transfers & next) != 0;
    const bool has_previous = (launch->transfers & ~next) != 0;
    const int64_t to_next =
        has_next ? transfer_ns(r, launch->bytes, launch->next) : 0;
    const int64_t to_previous =
        has_previous ? transfer_ns(r, launch->bytes, launch->previous) : 0;
    return later(to_next, to_previous);
}

static void exchange(me_time_recorder *r, const me_launch *launch)
{
    host_works(r, host_ns(r, launch));
    close_stretch(r);
    add_item(r, &(me_time_item){.kind = ME_TIME_EXCHANGE,
                                .part = (uint8_t)r->part,
                                .transfers = launch->transfers,
                                .is_async = launch->is_async,
                                .is_queued = launch->is_queued,
                                .chunk = launch->chunk,
                                .microbatch = launch->microbatch,
                                .next = launch->next,
                                .previous = launch->previous,
                                .ns = exchange_ns(r, launch)});
}

static me_time_part part_of(const me_launch *launch)
{
    return launch->is_weights    ? ME_TIME_WEIGHTS
           : launch->is_backward ? ME_TIME_BACKWARD
                                 : ME_TIME_FORWARD;
}

static action action_of(const me_time_recorder *r, const me_launch *launch)
{
    return (action){.part = part_of(launch),
                    .is_input = launch->is_input,
                    .chunk = launch->chunk,
                    .begin = r->program.n_items};
}

static void begin_action(me_time_recorder *r, const me_launch *launch)
{
    close_stretch(r);
    r->part = part_of(launch);
    r->chunk = launch->chunk;
    r->microbatch = launch->microbatch;
    r->open = action_of(r, launch);
}

/** The last one like @p x; NULL: there was none. */
static action *find_action(const me_time_recorder *r, const action *x)
{
    for (uint32_t i = 0; i < r->n_actions; i++) {
        action *a = &r->actions[i];
        if (a->part == x->part && a->is_input == x->is_input &&
            a->chunk == x->chunk) {
            return a;
        }
    }
    return NULL;
}

/** The action that ends is the last one of its kind. */
static void keep_action(me_time_recorder *r)
{
    action *a = find_action(r, &r->open);
    if (a == NULL) {
        action *actions = grow(r, r->actions, r->n_actions,
                               &r->actions_capacity, sizeof *actions);
        if (actions == NULL) {
            return;
        }
        r->actions = actions;
        a = &r->actions[r->n_actions++];
    }
    *a = r->open;
    a->end = r->program.n_items;
}

static void end_action(me_time_recorder *r)
{
    r->has_launched = true; // an action is an item even if it is empty
    close_stretch(r);
    keep_action(r);
    r->part = r->is_optimizer ? ME_TIME_OPTIMIZER : ME_TIME_OTHER;
    r->chunk = 0;
    r->microbatch = -1;
}

/** The items of the last like action, of another micro-batch. */
static void repeat_action(me_time_recorder *r, const me_launch *launch)
{
    close_stretch(r);
    const action like = action_of(r, launch);
    const action *a = find_action(r, &like);
    for (uint32_t i = a == NULL ? 0 : a->begin; a != NULL && i < a->end; i++) {
        me_time_item item = r->program.items[i];
        if (item.kind == ME_TIME_RUN) {
            item.microbatch = launch->microbatch;
        }
        add_item(r, &item);
    }
}

static void on_launch(void *self, const me_launch *launch)
{
    me_time_recorder *r = self;
    switch (launch->kind) {
    case ME_LAUNCH_KERNEL: run_kernel(r, launch); break;
    case ME_LAUNCH_COLLECTIVE: communicate(r, launch); break;
    case ME_LAUNCH_STREAM_WAITS: stream_waits(r); break;
    case ME_LAUNCH_HOST:
        host_works(r, launch->host == ME_HOST_LOADER ? r->place.loader_ns
                                                     : host_ns(r, launch));
        break;
    case ME_LAUNCH_HOST_WAITS: host_waits(r); break;
    case ME_LAUNCH_EXCHANGE: exchange(r, launch); break;
    case ME_LAUNCH_ACTION_BEGIN: begin_action(r, launch); break;
    case ME_LAUNCH_ACTION_END: end_action(r); break;
    case ME_LAUNCH_ACTION_REPEATED: repeat_action(r, launch); break;
    case ME_LAUNCH_OPTIMIZER:
        close_stretch(r);
        r->is_optimizer = true;
        r->part = ME_TIME_OPTIMIZER;
        break;
    }
}

me_launch_listener me_time_recorder_listener(me_time_recorder *recorder,
                                             int32_t iteration)
{
    return (me_launch_listener){on_launch, recorder, iteration};
}

me_status me_time_recorder_finish(me_time_recorder *recorder, me_diag *diag,
                                  me_time_program *program_out)
{
    close_stretch(recorder);
    if (recorder->status != ME_OK) {
        return me_fail(diag, recorder->status, "no host memory for times");
    }
    *program_out = recorder->program;
    return ME_OK;
}
