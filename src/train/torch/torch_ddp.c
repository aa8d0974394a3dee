/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/torch_ddp.h"

#include "base/size.h"
#include "nn/torch/dtensor.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

struct me_ddp_module {
    me_loop *loop;
    me_group_kind group;
    uint32_t first; /**< of the loop's parameters */
    uint32_t n;
    me_tensor **dtensors; /**< what the model shows of parameters that a plan
                               made DTensors, in whose place are local ones;
                               each owned, or NULL */
    me_tensor **leaves;   /**< those local ones, while the model shows DTensors;
                               borrowed, each or NULL */
    me_tensor **buffers;  /**< in the order of registration; borrowed */
    uint32_t n_buffers;
    me_reducer *reducer;
    bool sends_buffers;  /**< require_forward_param_sync: not after a forward in
                              no_sync() */
    bool has_run_static; /**< the first backward of a static graph is over, or
                              under way */
};

/** Bytes of the pieces in which parameters and buffers are broadcast. */
static const uint64_t BROADCAST_BYTES = UINT64_C(250) << 20;

static me_parameter *parameter_of(const me_ddp_module *ddp, uint32_t index)
{
    return ddp->loop->parameters.parameters[ddp->first + index];
}

/** All-gathers are of lists: allgather_(). */
static void tell(const me_ddp_module *ddp, me_collective kind, me_dtype dtype,
                 uint64_t count)
{
    const uint64_t ranks = (uint64_t)ddp->loop->comm->size[ddp->group];
    const uint64_t bytes = me_size_mul(count, me_dtype_bytes(dtype));
    const bool is_broadcast = kind == ME_COLLECTIVE_BROADCAST;
    me_communicate_c10d(
        ddp->loop->e, ddp->loop->comm,
        (me_c10d_call){.op = is_broadcast ? ME_C10D_BROADCAST_
                                          : ME_C10D_ALLGATHER_,
                       .group = ddp->group,
                       .peer = is_broadcast ? 0 : -1,
                       .input_bytes = bytes,
                       .output_bytes = me_size_mul(bytes, ranks)});
    me_communicate(ddp->loop->e, ddp->loop->comm,
                   (me_call){ddp->group, kind, dtype, count,
                             is_broadcast ? 0 : -1, false});
}

/** _verify_param_shape_across_processes(): the number of parameters from every
 *  rank, then the shapes and strides of rank 0. */
static void verify_shapes(const me_ddp_module *ddp)
{
    me_engine *e = ddp->loop->e;
    const uint64_t ranks = (uint64_t)ddp->loop->comm->size[ddp->group];
    uint64_t extents = 0;
    for (uint32_t i = 0; i < ddp->n; i++) {
        extents += 2 * (uint64_t)parameter_of(ddp, i)->shape.ndim;
    }
    const me_frame frame = me_enter(e);
    me_empty(e, "param_size", ME_DTYPE_INT64, ME_SHAPE(1));
    for (uint64_t i = 0; i < ranks; i++) {
        me_empty(e, "param_sizes", ME_DTYPE_INT64, ME_SHAPE(1));
    }
    me_drop(e, me_empty(e, "all_gather", ME_DTYPE_INT64, ME_SHAPE(ranks)));
    tell(ddp, ME_COLLECTIVE_ALL_GATHER, ME_DTYPE_INT64, 1);
    me_drop(e, me_empty(e, "metadata", ME_DTYPE_INT64, ME_SHAPE(extents)));
    tell(ddp, ME_COLLECTIVE_BROADCAST, ME_DTYPE_INT64, extents);
    me_leave(e, frame, NULL);
}

/** Broadcasts that are under way together (broadcast_coalesced() of
 *  c10d/comm.cpp): the oldest ends before one more begins. */
enum {
    BROADCASTS_IN_FLIGHT = 2
};

/** What is sent: parameters, then buffers. */
static const me_tensor *state_of(const me_ddp_module *ddp, uint32_t index)
{
    return index < ddp->n ? parameter_of(ddp, index)->tensor
                          : ddp->buffers[index - ddp->n];
}

typedef struct in_flight {
    me_tensor *flat[BROADCASTS_IN_FLIGHT]; /**< owned */
    uint32_t oldest;
} in_flight;

/** Those of one dtype from @p begin to @p end, flattened piece by piece; one
 *  alone is flat (flatten_dense_tensors()). */
static void broadcast(const me_ddp_module *ddp, uint32_t begin, uint32_t end,
                      in_flight *works)
{
    me_engine *e = ddp->loop->e;
    const me_dtype dtype = (me_dtype)state_of(ddp, begin)->dtype;
    for (uint32_t i = begin; i < end && me_engine_is_ok(e);) {
        uint64_t bytes = 0;
        uint32_t n = 0;
        for (; i < end && bytes < BROADCAST_BYTES; i++) {
            if ((me_dtype)state_of(ddp, i)->dtype == dtype) {
                bytes = me_size_add(bytes, me_bytes(state_of(ddp, i)));
                n++;
            }
        }
        if (bytes == 0) {
            break;
        }
        me_tensor **flat = &works->flat[works->oldest];
        me_clear(e, flat);
        const me_frame frame = me_enter(e);
        if (n > 1) {
            *flat = me_retain(me_scratch(e, "broadcast_coalesced", bytes));
        }
        tell(ddp, ME_COLLECTIVE_BROADCAST, dtype,
             bytes / me_dtype_bytes(dtype));
        me_leave(e, frame, NULL);
        works->oldest = (works->oldest + 1) % BROADCASTS_IN_FLIGHT;
    }
}

/** Is it the first of its dtype from @p begin on? */
static bool is_first_of_dtype(const me_ddp_module *ddp, uint32_t begin,
                              uint32_t i)
{
    uint32_t at = begin;
    while (at < i && state_of(ddp, at)->dtype != state_of(ddp, i)->dtype) {
        at++;
    }
    return at == i;
}

/** broadcast_coalesced(): buffers of rank 0, after its parameters if they are
 *  sent too. */
static void broadcast_state(const me_ddp_module *ddp, bool with_parameters)
{
    const uint32_t begin = with_parameters ? 0 : ddp->n;
    const uint32_t end = ddp->n + ddp->n_buffers;
    in_flight works = {.oldest = 0};
    for (uint32_t i = begin; i < end && me_engine_is_ok(ddp->loop->e); i++) {
        if (is_first_of_dtype(ddp, begin, i)) {
            broadcast(ddp, i, end, &works);
        }
    }
    for (uint32_t i = 0; i < BROADCASTS_IN_FLIGHT; i++) {
        me_clear(ddp->loop->e,
                 &works.flat[(works.oldest + i) % BROADCASTS_IN_FLIGHT]);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static uint32_t collect_buffers(me_ddp_module *ddp, const me_layer *layer,
                                uint32_t n)
{
    uint32_t count = n;
    for (uint32_t i = 0; i < layer->n_children; i++) {
        if (layer->children[i].buffer != NULL) {
            if (ddp->buffers != NULL) {
                ddp->buffers[count] = layer->children[i].buffer;
            }
            count++;
        }
    }
    for (uint32_t i = 0; i < layer->n_children; i++) {
        count = collect_buffers(ddp, &layer->children[i], count);
    }
    return count;
}

/** named_buffers(): a module's own before those of its children. */
static void find_buffers(me_ddp_module *ddp, const me_layer *model)
{
    const uint32_t n = collect_buffers(ddp, model, 0);
    ddp->buffers =
        me_engine_alloc(ddp->loop->e, (size_t)n + 1, sizeof(me_tensor *));
    if (ddp->buffers != NULL) {
        ddp->n_buffers = collect_buffers(ddp, model, 0);
    }
}

/** The engine's memory for a tensor a parameter. */
static me_tensor **pointers(const me_ddp_module *ddp)
{
    return me_engine_alloc(ddp->loop->e, (size_t)ddp->n + 1,
                           sizeof(me_tensor *));
}

/** _localize_dtensor() of tensor/parallel/ddp.py, for a module that a plan was
 *  applied to: parameters are the local tensors. */
static void localize(me_ddp_module *ddp)
{
    me_engine *e = ddp->loop->e;
    for (uint32_t i = 0; i < ddp->n && me_engine_is_ok(e); i++) {
        me_parameter *p = parameter_of(ddp, i);
        const bool is_uneven = me_dparameter_of(p)->is_uneven;
        if (p->kind != NULL && (is_uneven || p->is_tied)) {
            me_engine_fail(e, ME_ERR_CONFIG,
                           "torch.data_parallel = \"ddp\" around a "
                           "parallelize_plan with %s is not modelled",
                           is_uneven ? "dimensions that parallel.tensor "
                                       "does not divide"
                                     : "tied weights");
        }
        p->tensor->kind = NULL;
    }
}

/** _reconstruct_dtensor(), a forward hook: DTensors of the local parameters,
 *  from whose graph gradients come once all of the model's own are made. */
static void show_dtensors(me_ddp_module *ddp)
{
    me_engine *e = ddp->loop->e;
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < ddp->n && me_engine_is_ok(e); i++) {
        me_parameter *p = parameter_of(ddp, i);
        if (p->kind == NULL) {
            continue;
        }
        const me_dparameter *d = me_dparameter_of(p);
        me_assign(e, &ddp->dtensors[i],
                  me_from_local(&ddp->loop->nn, p->tensor, d->tensor.layout,
                                d->gradient));
        if (me_engine_is_ok(e)) {
            ddp->leaves[i] = p->tensor;
            p->tensor = ddp->dtensors[i];
        }
    }
    me_leave(e, frame, NULL);
}

/** The optimizer has the local parameters. */
static void hide_dtensors(me_ddp_module *ddp)
{
    for (uint32_t i = 0; i < ddp->n; i++) {
        if (ddp->leaves[i] != NULL) {
            parameter_of(ddp, i)->tensor = ddp->leaves[i];
            ddp->leaves[i] = NULL;
            me_clear(ddp->loop->e, &ddp->dtensors[i]);
        }
    }
}

/** DDP.__init__(). @return false after a failure of the engine */
static bool make(me_ddp_module *ddp, const me_layer *model, uint32_t first)
{
    me_loop *l = ddp->loop;
    *ddp = (me_ddp_module){
        .loop = l,
        .group = me_mesh_group(l->comm, ME_GROUP_DATA),
        .first = first,
        .n = l->parameters.count - first,
        .sends_buffers = true,
    };
    if (ddp->n == 0) {
        me_engine_fail(
            l->e, ME_ERR_CONFIG,
            "module: DistributedDataParallel around a module without "
            "parameters, which PyTorch refuses");
    }
    ddp->dtensors = pointers(ddp);
    ddp->leaves = pointers(ddp);
    if (!me_engine_is_ok(l->e)) {
        return false;
    }
    localize(ddp);
    if (l->config->torch.broadcast_buffers && !l->config->torch.replicate) {
        find_buffers(ddp, model);
    }
    verify_shapes(ddp);
    broadcast_state(ddp, true);
    ddp->reducer = me_reducer_create(l, ddp->group, first, ddp->n);
    return ddp->reducer != NULL;
}

static me_ddp_module *allocate(me_loop *l)
{
    me_ddp_module *ddp = me_engine_alloc(l->e, 1, sizeof *ddp);
    if (ddp != NULL) {
        *ddp = (me_ddp_module){.loop = l};
    }
    return ddp;
}

me_ddp_module *me_ddp_wrap(me_loop *l, const me_layer *model, uint32_t first)
{
    me_ddp_module *ddp = allocate(l);
    return ddp != NULL && make(ddp, model, first) ? ddp : NULL;
}

void me_ddp_pre_forward(me_ddp_module *ddp)
{
    me_launch_host(ddp->loop->e, ME_HOST_DDP);
    me_reducer_rebuild(ddp->reducer);
    if (ddp->sends_buffers && ddp->n_buffers > 0) {
        broadcast_state(ddp, false);
    }
    show_dtensors(ddp);
}

/** Does the output pass _DDPSink, which makes a copy of it? */
static bool has_sink(const me_ddp_module *ddp)
{
    const me_torch_options *o = &ddp->loop->config->torch;
    return o->static_graph ? !ddp->has_run_static : o->find_unused_parameters;
}

me_tensor *me_ddp_post_forward(me_ddp_module *ddp, bool syncs, me_tensor *y)
{
    me_engine *e = ddp->loop->e;
    ddp->sends_buffers = syncs;
    if (!me_engine_is_ok(e)) { // and so there may be no reducer
        return y;
    }
    if (syncs) {
        me_reducer_prepare(ddp->reducer);
    }
    if (!has_sink(ddp)) {
        return y;
    }
    me_tensor *copy = me_clone(e, y);
    const bool has_graph = y->grad_fn != NULL;
    me_drop(e, has_graph ? y : copy);
    return has_graph ? copy : y;
}

/** After a failure there may be no reducer. */
void me_ddp_prepare_for_backward(me_ddp_module *ddp)
{
    if (ddp->reducer != NULL) {
        me_reducer_prepare(ddp->reducer);
    }
}

void me_ddp_end_backward(me_ddp_module *ddp)
{
    ddp->has_run_static = true;
    if (ddp->reducer != NULL) {
        me_reducer_end_backward(ddp->reducer);
    }
    hide_dtensors(ddp);
}

void me_ddp_fini(me_ddp_module *ddp)
{
    if (ddp != NULL) {
        me_reducer_fini(ddp->reducer);
        hide_dtensors(ddp);
    }
}

static void *wrap(me_loop *l)
{
    return l->config->torch.replicate ? allocate(l)
                                      : me_ddp_wrap(l, l->model, 0);
}

/** replicate() makes its DistributedDataParallel, of a list of the model's
 *  parameters, in the first forward (_composable/replicate.py, lazy_init()). */
static void pre_forward(void *self)
{
    me_ddp_module *ddp = self;
    if (ddp->reducer == NULL && me_engine_is_ok(ddp->loop->e) &&
        !make(ddp, ddp->loop->model, 0)) {
        return;
    }
    if (ddp->reducer != NULL) {
        me_ddp_pre_forward(ddp);
    }
}

/** All passes before a step but the last one may run in no_sync(). */
static me_tensor *post_forward(void *self, me_tensor *y)
{
    me_ddp_module *ddp = self;
    const me_loop *l = ddp->loop;
    return me_ddp_post_forward(ddp,
                               l->is_last_pass || !l->config->torch.no_sync, y);
}

static void end_backward(void *self)
{
    me_ddp_end_backward(self);
}

static void unwrap(void *self)
{
    me_ddp_fini(self);
}

const me_wrapper me_ddp_wrapper_row = {
    .wrap = wrap,
    .pre_forward = pre_forward,
    .post_forward = post_forward,
    .end_backward = end_backward,
    .unwrap = unwrap,
};
