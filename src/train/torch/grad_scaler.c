/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/grad_scaler.h"

#include "ops/elementwise.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"

static const char FULL[] = "full.default";
static const char TO_COPY[] = "_to_copy.default";

/** One number that the scaler keeps from now on, made by an operation of the
 *  dispatcher. */
static me_tensor *keep_number(me_loop *l, const char *name, me_dtype dtype,
                              const char *op)
{
    me_tensor *x =
        me_keep(l->e, name, ME_CATEGORY_OPTIMIZER_STATE, dtype, ME_SCALAR);
    me_tell_op(l->e, op, ME_NO_TENSORS, ME_TENSORS(x));
    return x;
}

void me_grad_scaler_begin(me_loop *l)
{
    me_grad_scaler *scaler = &l->scaler;
    if (scaler->scale == NULL) {
        scaler->scale = keep_number(l, "scale", ME_DTYPE_FLOAT32, FULL);
        scaler->growth_tracker =
            keep_number(l, "growth_tracker", ME_DTYPE_INT32, FULL);
    }
}

me_tensor *me_grad_scaler_scale(me_loop *l, me_tensor *loss)
{
    me_grad_scaler_begin(l);
    return me_mul(l->e, loss, l->scaler.scale);
}

static me_tensor *number(me_loop *l, const char *name, me_dtype dtype,
                         const char *op)
{
    me_tensor *x = me_empty(l->e, name, dtype, ME_SCALAR);
    me_tell_op(l->e, op, ME_NO_TENSORS, ME_TENSORS(x));
    return x;
}

/** Are gradients on the host? What is found of them then is there, too. */
static bool is_on_host(const me_loop *l)
{
    return l->config->torch.cpu_offload;
}

/** Optimizers that divide by the scale themselves
 *  (`_step_supports_amp_scaling`). */
static bool is_scaled_inside(const me_loop *l)
{
    return l->config->impl.optimizer == ME_OPTIMIZER_TORCH_FUSED;
}

/** The first parameter with a gradient; NULL: none has one. */
static const me_parameter *first_with_gradient(const me_loop *l)
{
    const me_parameter *first = NULL;
    for (uint32_t i = 0; i < l->parameters.count && first == NULL; i++) {
        const me_parameter *p = l->parameters.parameters[i];
        first = p->tensor->grad != NULL ? p : NULL;
    }
    return first;
}

static void all_reduce_number(me_loop *l, me_group_kind group)
{
    const me_tensor *sum =
        me_empty(l->e, "all_reduce", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_communicate_c10d(l->e, l->comm,
                        (me_c10d_call){.op = ME_C10D_FUNCTIONAL_ALL_REDUCE,
                                       .group = group,
                                       .peer = -1,
                                       .input_bytes = me_storage_bytes(sum)});
    me_communicate(l->e, l->comm,
                   (me_call){.group = group,
                             .kind = ME_COLLECTIVE_ALL_REDUCE,
                             .dtype = ME_DTYPE_FLOAT32,
                             .count = 1,
                             .peer = -1});
}

/** found_inf_reduce_handler() (torch/distributed/tensor/_dispatch.py): the
 *  maximum over each dimension of the mesh on which the first DTensor is not
 *  whole, copied back. All inside of the unscaling operation, which is what a
 *  TorchDispatchMode sees. */
static void reduce_found_inf(me_loop *l)
{
    const me_parameter *first = first_with_gradient(l);
    const bool is_ddp = l->config->torch.data_parallel == ME_DATA_PARALLEL_DDP;
    const me_frame frame = me_enter(l->e);
    if (first != NULL &&
        l->config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
        l->comm->size[ME_GROUP_DATA_SHARD] > 1) {
        all_reduce_number(l, me_mesh_group(l->comm, ME_GROUP_DATA_SHARD));
    }
    if (first != NULL && !is_ddp && first->kind != NULL &&
        me_loop_gradient_layout(l, first) != ME_DLAYOUT_REPLICATE) {
        all_reduce_number(l, me_mesh_group(l->comm, ME_GROUP_TENSOR));
    }
    me_leave(l->e, frame, NULL);
}

/**
 * _unscale_grads_(): copies of `found_inf` and of the factor for the device, of
 * which the first is kept until the update; then a kernel over the gradients,
 * in place. On the host, where gradients may be, all of it is there, the sum
 * over ranks as well.
 */
static void check_gradients(me_loop *l)
{
    me_engine *e = l->e;
    if (l->config->torch.data_parallel == ME_DATA_PARALLEL_NONE) {
        me_loop_refuse_mixed(l, "torch.grad_scaler");
    }
    if (is_on_host(l)) {
        return;
    }
    l->scaler.found_inf =
        keep_number(l, "found_inf", ME_DTYPE_FLOAT32, TO_COPY);
    (void)number(l, "inv_scale", ME_DTYPE_FLOAT32, TO_COPY);
    me_tell_op_of(e, "_amp_foreach_non_finite_check_and_unscale_.default",
                  me_loop_gradient_bytes(l) + 2 * sizeof(float));
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = l->parameters.parameters[i]->tensor->grad;
        if (grad != NULL) {
            me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(grad),
                             2 * me_bytes(grad));
        }
    }
    reduce_found_inf(l);
}

/** `scale.double().reciprocal().float()`, each of which dies with the next. */
static void invert_scale(me_loop *l)
{
    me_tensor *wide = number(l, "to", ME_DTYPE_FLOAT64, TO_COPY);
    me_tensor *inverse =
        number(l, "reciprocal", ME_DTYPE_FLOAT64, "reciprocal.default");
    me_drop(l->e, wide);
    (void)number(l, "inv_scale", ME_DTYPE_FLOAT32, TO_COPY);
    me_drop(l->e, inverse);
}

/** A function of the scaler, and what it is called from. */
typedef struct call {
    me_frame frame;
    me_phase phase;
    me_category category;
} call;

static call begin(const me_loop *l)
{
    return (call){
        .phase = me_phase_set(l->e, ME_PHASE_OPTIMIZER),
        .category = me_category_set(l->e, ME_CATEGORY_TEMPORARY),
        .frame = me_enter(l->e),
    };
}

static void end(const me_loop *l, call c)
{
    me_leave(l->e, c.frame, NULL);
    me_category_set(l->e, c.category);
    me_phase_set(l->e, c.phase);
}

void me_grad_scaler_unscale(me_loop *l)
{
    const call c = begin(l);
    invert_scale(l);
    (void)number(l, "found_inf", ME_DTYPE_FLOAT32, FULL);
    check_gradients(l);
    l->scaler.is_unscaled = true;
    end(l, c);
}

/** The optimizer is handed a sum of all `found_inf` and, unless gradients are
 *  unscaled, the scale times one; both go after its step. */
static void step_inside(me_loop *l)
{
    call c = begin(l);
    if (!l->scaler.is_unscaled) { // _check_inf_per_device()
        (void)number(l, "dummy_inv_scale", ME_DTYPE_FLOAT32, FULL);
        (void)number(l, "found_inf", ME_DTYPE_FLOAT32, FULL);
        check_gradients(l);
    }
    end(l, c);
    c = begin(l);
    me_tensor *copy = is_on_host(l)
                          ? number(l, "found_inf", ME_DTYPE_FLOAT32, TO_COPY)
                          : NULL;
    (void)number(l, "found_inf", ME_DTYPE_FLOAT32, "add.Tensor");
    if (copy != NULL) {
        me_drop(l->e, copy);
    }
    if (!l->scaler.is_unscaled) {
        (void)number(l, "grad_scale", ME_DTYPE_FLOAT32, "mul.Tensor");
    }
    me_loop_step(l);
    end(l, c);
}

void me_grad_scaler_step(me_loop *l)
{
    if (is_scaled_inside(l)) {
        step_inside(l);
        return;
    }
    if (!l->scaler.is_unscaled) {
        me_grad_scaler_unscale(l);
    }
    if (!is_on_host(l)) {
        me_launch_host_waits(l->e); // found_inf.item()
        me_tell_op(l->e, "_local_scalar_dense.default",
                   ME_TENSORS(l->scaler.found_inf), ME_NO_TENSORS);
    }
    me_loop_step(l);
}

/** `_amp_update_scale_()`. */
static void tell_update(const me_loop *l, const me_tensor *found_inf)
{
    const me_grad_scaler *s = &l->scaler;
    me_tell_op(l->e, "_amp_update_scale_.default",
               ME_TENSORS(s->scale, s->growth_tracker, found_inf),
               ME_TENSORS(s->scale));
}

void me_grad_scaler_update(me_loop *l)
{
    l->scaler.is_unscaled = false;
    if (is_on_host(l)) {
        const call c = begin(l);
        tell_update(l, number(l, "found_inf", ME_DTYPE_FLOAT32, TO_COPY));
        end(l, c);
    } else {
        tell_update(l, l->scaler.found_inf);
    }
    me_clear(l->e, &l->scaler.found_inf);
}

void me_grad_scaler_fini(me_loop *l)
{
    me_clear(l->e, &l->scaler.scale);
    me_clear(l->e, &l->scaler.growth_tracker);
    me_clear(l->e, &l->scaler.found_inf);
}
