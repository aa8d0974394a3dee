/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/grad_scaler.h"

#include "ops/elementwise.h"
#include "tensor/launch.h"

/** One number that the scaler keeps from now on. */
static me_tensor *keep_number(me_loop *l, const char *op, me_dtype dtype)
{
    return me_keep(l->e, op, ME_CATEGORY_OPTIMIZER_STATE, dtype, ME_SCALAR);
}

me_tensor *me_grad_scaler_scale(me_loop *l, me_tensor *loss)
{
    me_grad_scaler *scaler = &l->scaler;
    if (scaler->scale == NULL) {
        scaler->scale = keep_number(l, "scale", ME_DTYPE_FLOAT32);
        scaler->growth_tracker =
            keep_number(l, "growth_tracker", ME_DTYPE_INT32);
    }
    return me_mul(l->e, loss, scaler->scale);
}

static me_tensor *number(me_loop *l, const char *op, me_dtype dtype)
{
    return me_empty(l->e, op, dtype, ME_SCALAR);
}

/** Optimizers that divide by the scale themselves
 *  (`_step_supports_amp_scaling`). */
static bool is_scaled_inside(const me_loop *l)
{
    return l->config->optimizer_impl == ME_OPTIMIZER_TORCH_FUSED;
}

/**
 * _unscale_grads_(): copies of `found_inf` and of the factor for the device, of
 * which the first is kept until the update; then a kernel over the gradients,
 * in place.
 */
static void check_gradients(me_loop *l)
{
    me_engine *e = l->e;
    l->scaler.found_inf = keep_number(l, "found_inf", ME_DTYPE_FLOAT32);
    (void)number(l, "inv_scale", ME_DTYPE_FLOAT32);
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = l->parameters.parameters[i]->tensor->grad;
        if (grad != NULL) {
            me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(grad),
                             2 * me_bytes(grad));
        }
    }
}

/** `scale.double().reciprocal().float()`, each of which dies with the next. */
static void invert_scale(me_loop *l)
{
    me_tensor *wide = number(l, "to", ME_DTYPE_FLOAT64);
    me_tensor *inverse = number(l, "reciprocal", ME_DTYPE_FLOAT64);
    me_drop(l->e, wide);
    (void)number(l, "inv_scale", ME_DTYPE_FLOAT32);
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
    (void)number(l, "found_inf", ME_DTYPE_FLOAT32);
    check_gradients(l);
    l->scaler.is_unscaled = true;
    end(l, c);
}

/** The optimizer is handed a sum of all `found_inf` and, unless gradients are
 *  unscaled, the scale times one; both go after its step. */
static void step_inside(me_loop *l)
{
    call c = begin(l);
    if (!l->scaler.is_unscaled) { /* _check_inf_per_device() */
        (void)number(l, "dummy_inv_scale", ME_DTYPE_FLOAT32);
        (void)number(l, "found_inf", ME_DTYPE_FLOAT32);
        check_gradients(l);
    }
    end(l, c);
    c = begin(l);
    (void)number(l, "found_inf", ME_DTYPE_FLOAT32);
    if (!l->scaler.is_unscaled) {
        (void)number(l, "grad_scale", ME_DTYPE_FLOAT32);
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
    me_launch_host_waits(l->e); /* found_inf.item() */
    me_loop_step(l);
}

void me_grad_scaler_update(me_loop *l)
{
    l->scaler.is_unscaled = false;
    me_clear(l->e, &l->scaler.found_inf);
}

void me_grad_scaler_fini(me_loop *l)
{
    me_clear(l->e, &l->scaler.scale);
    me_clear(l->e, &l->scaler.growth_tracker);
    me_clear(l->e, &l->scaler.found_inf);
}
