/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/autocast_casts.h"

#include "ops/elementwise.h"
#include "tensor/autocast.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"

void me_autocast_ask(me_engine *e, const me_tensor *x)
{
    me_tell_device_queries(e, me_autocast_now(e).is_enabled ? x : NULL, 1);
}

/** Is @p x cast at all (is_eligible())? */
static bool is_eligible(const me_engine *e, const me_tensor *x)
{
    return me_autocast_now(e).is_enabled && me_engine_is_ok(e) && x != NULL &&
           me_dtype_is_floating((me_dtype)x->dtype);
}

/** A parameter, and what a re-entrant checkpoint or a pipeline's stage hands in;
 *  of no view. */
static bool is_leaf(const me_tensor *x)
{
    return x->requires_grad && x->grad_fn == NULL && !x->is_view &&
           !x->is_inner;
}

/** A DTensor's cast is one that lies as it does. */
static me_tensor *cast_to(me_engine *e, me_tensor *x, me_dtype dtype)
{
    me_tensor *cast = x->dtype == (uint8_t)dtype ? x : me_cast(e, x, dtype);
    if (me_engine_is_ok(e)) {
        cast->kind = x->kind;
    }
    return cast;
}

me_tensor *me_autocast_lower(me_engine *e, me_tensor *x)
{
    me_autocast_ask(e, x);
    if (!is_eligible(e, x)) {
        return x;
    }
    const bool is_kept = x->dtype == ME_DTYPE_FLOAT32 && is_leaf(x);
    me_tensor *kept = is_kept ? me_autocast_cached(e, x) : NULL;
    if (kept != NULL) {
        return me_hold(e, kept);
    }
    // One that is kept may be taken later where gradients are needed.
    const bool grad = is_kept ? me_grad_enable(e, true) : false;
    me_tensor *cast = cast_to(e, x, me_autocast_now(e).dtype);
    if (is_kept) {
        me_grad_enable(e, grad);
    }
    if (is_kept && cast != x) {
        me_autocast_cache(e, x, cast);
    }
    return cast;
}

me_tensor *me_autocast_float(me_engine *e, me_tensor *x)
{
    me_autocast_ask(e, x);
    return is_eligible(e, x) ? cast_to(e, x, ME_DTYPE_FLOAT32) : x;
}

me_dtype me_autocast_float_dtype(const me_engine *e, const me_tensor *x)
{
    return is_eligible(e, x) ? ME_DTYPE_FLOAT32 : (me_dtype)x->dtype;
}
