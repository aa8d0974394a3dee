/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/op.h"

#include "base/size.h"
#include "tensor/engine_private.h"
#include "tensor/tensor.h"

/** The argument that has the shape of the result, or most of it; NULL of none. */
static const me_tensor *widest(me_tensors arguments)
{
    const me_tensor *x = arguments.count == 0 ? NULL : arguments.items[0];
    for (uint32_t i = 1; i < arguments.count; i++) {
        const me_tensor *y = arguments.items[i];
        if (y != NULL &&
            (y->shape.ndim > x->shape.ndim ||
             (y->shape.ndim == x->shape.ndim && me_numel(y) > me_numel(x)))) {
            x = y;
        }
    }
    return x;
}

/** @param dtype  of the result, which may not be there after a failure */
static me_kernel_class kernel_class(const me_op *op, me_tensors arguments,
                                    me_dtype dtype)
{
    if (op->cost.kernel != ME_KERNEL_ELEMENTWISE || arguments.count == 0 ||
        (arguments.count == 1 && arguments.items[0]->dtype == (uint8_t)dtype)) {
        return (me_kernel_class)op->cost.kernel;
    }
    return widest(arguments)->dtype == (uint8_t)dtype ? ME_KERNEL_ELEMENTWISE
                                                      : ME_KERNEL_CAST;
}

static void launch(me_engine *e, const me_op *op, me_tensors arguments,
                   const me_tensor *result, me_dtype dtype)
{
    const me_cost *cost = &op->cost;
    if (cost->flops == 0 && cost->reads == 0 && cost->passes == 0) {
        return;
    }
    uint64_t elements = me_numel(result);
    uint64_t bytes = me_size_mul(
        cost->passes,
        me_size_mul(elements, me_dtype_bytes((me_dtype)result->dtype)));
    for (uint32_t i = 0; i < cost->reads && i < arguments.count; i++) {
        const me_tensor *x = arguments.items[i];
        if (i == 0 || x != NULL) {
            const uint64_t numel = me_numel(x);
            elements = i == 0 ? me_max_u64(elements, numel) : elements;
            bytes = me_size_add(
                bytes, me_size_mul(numel, me_dtype_bytes((me_dtype)x->dtype)));
        }
    }
    me_launch_kernel(e, kernel_class(op, arguments, dtype),
                     me_size_mul(cost->flops, elements), bytes);
}

void me_op_launch(me_engine *e, const me_op *op, me_tensors arguments,
                  const me_tensor *result)
{
    const me_tensor *x = result == me_none(e) ? widest(arguments) : result;
    launch(e, op, arguments, result, x == NULL ? 0 : (me_dtype)x->dtype);
}

void me_op_tell(me_engine *e, const me_op *op, me_tensors arguments,
                me_tensors results)
{
    if (e->n_hooks == 0 || op->dispatcher == NULL) {
        return;
    }
    me_tell_operation(e, &(me_operation){.name = op->dispatcher,
                                         .arguments = arguments,
                                         .results = results});
    if (op->is_view) {
        me_tell_device_queries(e, arguments.items[0], 1);
    }
}

void me_op_run(me_engine *e, const me_op *op, me_tensors arguments,
               me_tensors results)
{
    me_op_launch(e, op, arguments, results.items[0]);
    me_op_tell(e, op, arguments, results);
}

/** Its result is there: launch and tell. */
static me_tensor *finish(me_engine *e, const me_op *op, me_tensors arguments,
                         me_dtype dtype, me_tensor *y)
{
    launch(e, op, arguments, y, dtype);
    me_op_tell(e, op, arguments, ME_TENSORS(y));
    return y;
}

me_tensor *me_kernel(me_engine *e, const me_op *op, me_tensors arguments,
                     me_dtype dtype, me_shape shape)
{
    return finish(e, op, arguments, dtype,
                  me_empty(e, op->event, dtype, shape));
}

me_tensor *me_kernel_dense(me_engine *e, const me_op *op, me_tensors arguments)
{
    const me_tensor *x = arguments.items[0];
    return me_kernel(e, op, arguments, (me_dtype)x->dtype, x->shape);
}

me_tensor *me_kernel_as(me_engine *e, const me_op *op, me_tensors arguments,
                        me_dtype dtype)
{
    return finish(e, op, arguments, dtype,
                  me_empty_like_as(e, op->event, arguments.items[0], dtype));
}

me_tensor *me_kernel_like(me_engine *e, const me_op *op, me_tensors arguments)
{
    return me_kernel_as(e, op, arguments, (me_dtype)arguments.items[0]->dtype);
}

void me_gradient_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx)
{
    gx[0] = me_kernel_like(e, node->op->gradient, ME_TENSORS(gy[0]));
}

void me_gradient_shaped_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_kernel(e, node->op->gradient, ME_TENSORS(gy[0]),
                      (me_dtype)gy[0]->dtype, node->data.shape);
}

void me_gradient_scattered_backward(me_engine *e, me_node *node,
                                    me_tensor *const *gy, me_tensor **gx)
{
    gx[0] = me_kernel(e, node->op->gradient, ME_TENSORS(gy[0], gy[0]),
                      (me_dtype)gy[0]->dtype, node->data.shape);
}
