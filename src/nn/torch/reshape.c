/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/reshape.h"

#include "ops/view.h"
#include "tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CALL_TEXT = 96 /* 5 extents of 9 digits */
};

/** `view(-1, 8)`, as it is written. */
static void write_call(const me_expression *x, char text_out[CALL_TEXT])
{
    const bool is_view = x->kind == ME_EXPRESSION_VIEW;
    (void)snprintf(text_out, CALL_TEXT, "%s(", is_view ? "view" : "reshape");
    for (uint32_t i = 0; i < x->index; i++) {
        const size_t length = strlen(text_out);
        (void)snprintf(text_out + length, CALL_TEXT - length, "%" PRId64 "%s",
                       x->sizes[i], i + 1 < x->index ? ", " : ")");
    }
}

/** Does the call name a shape, and may it? */
static bool has_shape(me_engine *e, const me_expression *x, const me_tensor *a,
                      me_shape *shape_out)
{
    char from[ME_SHAPE_TEXT];
    char call[CALL_TEXT];
    uint64_t strides[ME_MAX_DIMS];
    if (!me_engine_is_ok(e)) {
        return false;
    }
    me_shape_text(&a->shape, from);
    write_call(x, call);
    if (!me_shape_infer(x->sizes, x->index, me_numel(a), shape_out)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "%s.%s: %" PRIu64 " elements do not fill this shape",
                       from, call, me_numel(a));
    } else if (x->kind == ME_EXPRESSION_VIEW &&
               !me_strides_reshape(&a->shape, a->strides, shape_out, strides)) {
        me_engine_fail(
            e, ME_ERR_CONFIG,
            "%s.%s: the strides allow no such view; reshape() copies", from,
            call);
    }
    return me_engine_is_ok(e);
}

me_tensor *me_reshape_written(me_engine *e, const me_expression *x,
                              me_tensor *a)
{
    me_shape shape;
    return has_shape(e, x, a, &shape) ? me_reshape(e, a, shape) : me_none(e);
}
