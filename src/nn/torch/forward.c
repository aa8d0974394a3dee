/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/forward.h"

#include "base/assert.h"
#include "base/size.h"
#include "nn/torch/dtensor.h"
#include "nn/torch/loss_parallel.h"
#include "nn/torch/reshape.h"
#include "nn/torch/rotary_attention.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/sdpa.h"
#include "ops/view.h"
#include "ops/vision.h"
#include "tensor/hooks.h"
#include "tensor/region.h"

/** A running forward. */
typedef struct scope {
    me_engine *e;
    me_nn *nn;
    const me_layer *self;
    me_tensor *variables[ME_FORWARD_VARIABLES];
} scope;

/** What an expression gives: a variable's tensor, or one that nobody names and
 *  that the running frame holds until it is dropped. */
typedef struct value {
    me_tensor *x;
    bool is_temporary;
} value;

static void drop(scope *s, value v)
{
    if (v.is_temporary) {
        me_drop(s->e, v.x);
    }
}

me_tensor *me_rebind_result(me_engine *e, me_tensor *name, me_tensor *y)
{
    if (name == y) {
        me_drop(e, y); // the frame holds it twice
        return y;
    }
    return me_rebind(e, name, y);
}

static value evaluate(scope *s, const me_expression *x);

/** A DTensor where only plain tensors are modelled. @return true: refused */
static bool refuse_dtensor(scope *s, const me_tensor *x, const char *what)
{
    if (me_is_distributed(x) && me_engine_is_ok(s->e)) {
        me_engine_fail(s->e, ME_ERR_CONFIG,
                       "module %s: %s of a DTensor is not modelled: "
                       "use_local_output = true hands out plain tensors",
                       me_module_shown(s->e), what);
    }
    return me_is_distributed(x);
}

/** A DTensor that is cut times what all ranks have whole, of fewer dimensions
 *  than the one that is cut: each rank's part is scaled as it lies. */
static bool is_scaled(const me_tensor *a, const me_tensor *b)
{
    const int32_t cut = (int32_t)me_layout_of(a) - (int32_t)ME_DLAYOUT_SHARD_0;
    return cut >= 0 && me_layout_of(b) == ME_DLAYOUT_REPLICATE &&
           cut < a->shape.ndim - b->shape.ndim;
}

/** Does an operation on each row of the last dimension leave a tensor as it
 *  lies? Not one whose rows are cut, or of which each rank has a summand. */
static bool has_whole_rows(const me_tensor *x)
{
    return me_layout_of(x) != ME_DLAYOUT_PARTIAL &&
           (int32_t)me_layout_of(x) !=
               (int32_t)ME_DLAYOUT_SHARD_0 + x->shape.ndim - 1;
}

/** An operation of two operands, which die from the left. */
static value binary(scope *s, const me_expression *x,
                    me_tensor *(*op)(me_engine *e, me_tensor *a, me_tensor *b))
{
    const value a = evaluate(s, x->operands[0]);
    const value b = evaluate(s, x->operands[1]);
    if (me_layout_of(a.x) != me_layout_of(b.x) && !is_scaled(a.x, b.x)) {
        (void)refuse_dtensor(s, me_is_distributed(a.x) ? a.x : b.x,
                             "arithmetic with a plain tensor");
    }
    me_tensor *y = op(s->e, a.x, b.x);
    me_lies_as(s->e, y, a.x);
    drop(s, a);
    drop(s, b);
    return (value){y, true};
}

/** Of logits that the ranks share in loss_parallel(), which alone takes such. */
static value cross_entropy(scope *s, const me_expression *x)
{
    const value y = evaluate(s, x->operands[0]);
    const value target = evaluate(s, x->operands[1]);
    const int32_t last = y.x->shape.ndim - 1;
    const bool is_shared =
        (int32_t)me_layout_of(y.x) == (int32_t)ME_DLAYOUT_SHARD_0 + last &&
        last >= 0;
    me_tensor *loss = NULL;
    if (is_shared && s->nn->is_loss_parallel) {
        loss = me_loss_parallel(s->nn, y.x, target.x);
    } else if (me_layout_of(y.x) != ME_DLAYOUT_NONE && me_engine_is_ok(s->e)) {
        me_engine_fail(s->e, ME_ERR_CONFIG,
                       "cross_entropy of a DTensor wants it cut along its last "
                       "dimension, the classes, and torch.loss_parallel = "
                       "true");
    }
    if (loss == NULL) {
        loss = me_cross_entropy(s->e, y.x, target.x);
    }
    drop(s, y);
    drop(s, target);
    return (value){loss, true};
}

/** What is no whole number of those: their mean PyTorch refuses, and another sum
 *  is of another type. */
static bool refuse_whole(scope *s, const me_tensor *x, const char *what)
{
    const bool is_whole = !me_dtype_is_floating((me_dtype)x->dtype);
    if (is_whole && me_engine_is_ok(s->e)) {
        me_engine_fail(s->e, ME_ERR_CONFIG,
                       "%s of %s: .float() before it makes numbers that have "
                       "one",
                       what, me_dtype_name((me_dtype)x->dtype));
    }
    return is_whole;
}

static value unary(scope *s, const me_expression *x,
                   me_tensor *(*op)(me_engine *e, me_tensor *a))
{
    const value a = evaluate(s, x->operands[0]);
    const bool is_refused =
        (op == me_mean && refuse_whole(s, a.x, ".mean()")) ||
        refuse_dtensor(s, a.x, "sum or mean");
    me_tensor *y = is_refused ? me_none(s->e) : op(s->e, a.x);
    drop(s, a);
    return (value){y, true};
}

/** Of each row of the last dimension on its own. */
static value rowwise(scope *s, const me_expression *x,
                     me_tensor *(*op)(me_engine *e, me_tensor *a))
{
    const value a = evaluate(s, x->operands[0]);
    const bool is_refused =
        (op == me_mean_last && refuse_whole(s, a.x, ".mean(-1)")) ||
        (op == me_add_number && x->index == 1 &&
         refuse_whole(s, a.x, "a sum with a number that is no whole one")) ||
        (!has_whole_rows(a.x) &&
         refuse_dtensor(s, a.x, "arithmetic within rows"));
    me_tensor *y = is_refused ? me_none(s->e) : op(s->e, a.x);
    me_lay(s->e, y, me_layout_of(a.x));
    drop(s, a);
    return (value){y, true};
}

/** torch.nn.functional's, of which a stopped recomputation keeps the frame. */
static value relu(scope *s, const me_expression *x)
{
    const value a = evaluate(s, x->operands[0]);
    const bool is_refused = me_layout_of(a.x) == ME_DLAYOUT_PARTIAL &&
                            refuse_dtensor(s, a.x, "relu of the summands");
    me_tensor *y = is_refused ? me_none(s->e) : me_relu(s->e, a.x);
    me_lies_as(s->e, y, a.x);
    me_region_hold_local(s->e, a.x);
    drop(s, a);
    return (value){y, true};
}

static value reshape(scope *s, const me_expression *x)
{
    const value a = evaluate(s, x->operands[0]);
    me_tensor *y = refuse_dtensor(s, a.x, "view or reshape")
                       ? me_none(s->e)
                       : me_reshape_written(s->e, x, a.x);
    drop(s, a);
    return (value){y, true};
}

/** A cast hands its operand out where there is nothing to cast. */
static value cast_to(scope *s, value a, me_dtype dtype)
{
    me_tensor *y = me_cast(s->e, a.x, dtype);
    if (y == a.x) {
        return a;
    }
    me_lies_as(s->e, y, a.x);
    drop(s, a);
    return (value){y, true};
}

static value cast(scope *s, const me_expression *x)
{
    return cast_to(s, evaluate(s, x->operands[0]), (me_dtype)x->index);
}

static value type_as(scope *s, const me_expression *x)
{
    const value a = evaluate(s, x->operands[0]);
    const value b = evaluate(s, x->operands[1]);
    const me_dtype dtype = (me_dtype)b.x->dtype;
    drop(s, b);
    return cast_to(s, a, dtype);
}

/** What FSDP or a cast has put in the parameter's place, if any has. */
static value parameter(const scope *s, const me_expression *x)
{
    const me_layer *self = s->self; // of a loss there is none, and no Parameter
    return (value){self == NULL ? me_none(s->e)
                                : self->children[x->index].weight->tensor,
                   false};
}

/** The tuple of arguments lives until the call returns. */
static value call(scope *s, const me_expression *x)
{
    ME_ASSERT(s->self != NULL); // a loss has no children that it could call
    const value a = evaluate(s, x->operands[0]);
    me_tensor *y = me_layer_call(&s->self->children[x->index], a.x);
    me_region_hold_local(s->e, a.x); // the child's own name for it
    drop(s, a);
    return (value){y, true};
}

static value arange(scope *s, const me_expression *x)
{
    const value a = evaluate(s, x->operands[0]);
    const uint64_t n = me_dim(a.x, (int32_t)x->index);
    drop(s, a);
    me_tensor *y = me_empty(s->e, "arange", ME_DTYPE_INT64, ME_SHAPE(n));
    me_tell_op(s->e, "arange.start", ME_NO_TENSORS, ME_TENSORS(y));
    return (value){y, true};
}

/** A result that is a DTensor where what it was made of is one. */
static me_tensor *laid(me_engine *e, me_tensor *x, me_dlayout layout)
{
    me_lay(e, x, layout);
    return x;
}

/** Views of DTensors are cut where their heads lie. */
static me_dlayout cut_along(const me_tensor *x, int32_t dim)
{
    return me_layout_of(x) < ME_DLAYOUT_SHARD_0
               ? me_layout_of(x)
               : (me_dlayout)(ME_DLAYOUT_SHARD_0 + dim);
}

/** (b, s, h) to (b, s, a, d), a view. */
static me_tensor *heads_of(me_engine *e, me_tensor *x, uint64_t heads)
{
    const uint64_t d = me_dim(x, 2) / heads;
    return laid(e,
                me_view(e, x, ME_SHAPE(me_dim(x, 0), me_dim(x, 1), heads, d)),
                cut_along(x, 2));
}

/** (b, s, a, d) to (b, a, s, d) or back. */
static me_tensor *turned(me_engine *e, me_tensor *x, int32_t heads_dim)
{
    return laid(e, me_transpose(e, x, 1, 2), cut_along(x, heads_dim));
}

/** The attention of heads that lie beside each other: (b, s, h) to (b, s, h). */
static me_tensor *attend(me_engine *e, me_tensor *const *qkv, uint64_t heads)
{
    const me_frame frame = me_enter(e);
    me_tensor *q = heads_of(e, qkv[0], heads);
    me_tensor *k = heads_of(e, qkv[1], heads);
    me_tensor *v = heads_of(e, qkv[2], heads);
    q = turned(e, q, 1); // (b, a, s, d)
    k = turned(e, k, 1);
    v = turned(e, v, 1);
    me_tensor *out = laid(e, me_sdpa(e, q, k, v), me_layout_of(q));
    me_tensor *back = turned(e, out, 2);
    me_tensor *rows = laid(e, me_contiguous(e, back), me_layout_of(back));
    return me_leave(
        e, frame,
        laid(e, me_view(e, rows, qkv[0]->shape), me_layout_of(qkv[0])));
}

/** Ranks over which q, k and v are cut in whole heads; a failure of the engine
 *  where they lie otherwise. */
static uint64_t head_ranks(scope *s, me_tensor *const *qkv)
{
    const me_dlayout layout = me_layout_of(qkv[0]);
    const bool is_cut = (int32_t)layout == (int32_t)ME_DLAYOUT_SHARD_0 + 2;
    const bool is_alike =
        layout == me_layout_of(qkv[1]) && layout == me_layout_of(qkv[2]);
    const bool is_known =
        is_cut || layout == ME_DLAYOUT_NONE || layout == ME_DLAYOUT_REPLICATE;
    const bool is_even = me_dtensor_of(qkv[0])->whole_extent == 0 &&
                         me_dtensor_of(qkv[1])->whole_extent == 0 &&
                         me_dtensor_of(qkv[2])->whole_extent == 0;
    if (me_engine_is_ok(s->e) && !(is_alike && is_known && is_even)) {
        me_engine_fail(s->e, ME_ERR_CONFIG,
                       "module %s: attention of DTensors wants q, k and v cut "
                       "alike along their last dimension, which ranks divide",
                       me_module_shown(s->e));
    }
    return is_cut ? (uint64_t)s->nn->comm->size[ME_GROUP_TENSOR] : 1;
}

/** Those of a model's @p heads that lie on this rank. */
static uint64_t heads_here(scope *s, me_tensor *const *qkv, uint64_t heads)
{
    const uint64_t ranks = head_ranks(s, qkv);
    if (me_engine_is_ok(s->e) && heads % ranks != 0) {
        me_engine_fail(s->e, ME_ERR_CONFIG,
                       "module %s: n_heads = %u of DTensors are all heads of "
                       "the model, which %u ranks must divide",
                       me_module_shown(s->e), (unsigned)heads, (unsigned)ranks);
    }
    return heads / ranks;
}

static value attention(scope *s, const me_expression *x)
{
    value operands[ME_EXPRESSION_OPERANDS];
    me_tensor *qkv[ME_EXPRESSION_OPERANDS];
    for (int i = 0; i < ME_EXPRESSION_OPERANDS; i++) {
        operands[i] = evaluate(s, x->operands[i]);
        qkv[i] = operands[i].x;
    }
    me_tensor *y = me_none(s->e);
    const uint64_t heads = heads_here(s, qkv, x->index);
    if (me_engine_is_ok(s->e)) {
        if (qkv[0]->shape.ndim != 3 || me_dim(qkv[0], 2) % heads != 0 ||
            !me_shape_equal(&qkv[0]->shape, &qkv[1]->shape) ||
            !me_shape_equal(&qkv[0]->shape, &qkv[2]->shape)) {
            me_engine_fail(s->e, ME_ERR_CONFIG,
                           "module %s: scaled_dot_product_attention wants "
                           "three tensors (batch, sequence, width) of one "
                           "shape, the width a multiple of n_heads = %u",
                           me_module_shown(s->e), (unsigned)x->index);
        } else {
            y = attend(s->e, qkv, heads);
        }
    }
    for (int i = 0; i < ME_EXPRESSION_OPERANDS; i++) {
        drop(s, operands[i]);
    }
    return (value){y, true};
}

/** Its operands are variables of the running frame, whoever names them. */
static value rotary_attention(scope *s, const me_expression *x)
{
    me_tensor *operands[ME_EXPRESSION_OPERANDS];
    for (int i = 0; i < ME_EXPRESSION_OPERANDS; i++) {
        const value v = evaluate(s, x->operands[i]);
        operands[i] = v.is_temporary ? v.x : me_hold(s->e, v.x);
    }
    const bool repeats = x->kind == ME_EXPRESSION_ROTARY_ATTENTION;
    const me_dlayout layout = me_layout_of(operands[0]);
    (void)head_ranks(s, operands);
    me_tensor *y = me_rotary_attention(s->nn, operands, x->index, repeats);
    return (value){laid(s->e, y, layout), true};
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the text's brackets
static value evaluate(scope *s, const me_expression *x)
{
    switch (x->kind) {
    case ME_EXPRESSION_NAME: return (value){s->variables[x->index], false};
    case ME_EXPRESSION_CALL: return call(s, x);
    case ME_EXPRESSION_ADD: return binary(s, x, me_add);
    case ME_EXPRESSION_SUB: return binary(s, x, me_sub);
    case ME_EXPRESSION_MUL: return binary(s, x, me_mul);
    case ME_EXPRESSION_SQUARE: return rowwise(s, x, me_square);
    case ME_EXPRESSION_CAST: return cast(s, x);
    case ME_EXPRESSION_SUM: return unary(s, x, me_sum);
    case ME_EXPRESSION_MEAN: return unary(s, x, me_mean);
    case ME_EXPRESSION_ARANGE: return arange(s, x);
    case ME_EXPRESSION_ATTENTION: return attention(s, x);
    case ME_EXPRESSION_ROTARY_ATTENTION:
    case ME_EXPRESSION_GROUPED_ROTARY_ATTENTION: return rotary_attention(s, x);
    case ME_EXPRESSION_CROSS_ENTROPY: return cross_entropy(s, x);
    case ME_EXPRESSION_PARAMETER: return parameter(s, x);
    case ME_EXPRESSION_ADD_NUMBER: return rowwise(s, x, me_add_number);
    case ME_EXPRESSION_RSQRT: return rowwise(s, x, me_rsqrt);
    case ME_EXPRESSION_MEAN_LAST: return rowwise(s, x, me_mean_last);
    case ME_EXPRESSION_TYPE_AS: return type_as(s, x);
    case ME_EXPRESSION_RELU: return relu(s, x);
    case ME_EXPRESSION_VIEW:
    case ME_EXPRESSION_RESHAPE: return reshape(s, x);
    }
    return (value){me_none(s->e), false};
}

/** `x = layers(x)` of a ModuleList stands for Python's loop over it, in which
 *  the name is bound anew each time. */
static bool is_loop(const scope *s, const me_statement *statement)
{
    const me_expression *x = statement->value;
    return x->kind == ME_EXPRESSION_CALL && s->self != NULL &&
           s->self->children[x->index].spec->kind == ME_LAYER_MODULE_LIST &&
           x->operands[0]->kind == ME_EXPRESSION_NAME &&
           x->operands[0]->index == statement->variable;
}

static void loop(scope *s, const me_statement *statement)
{
    const me_layer *list = &s->self->children[statement->value->index];
    me_tensor **name = &s->variables[statement->variable];
    for (uint32_t i = 0; i < list->n_children; i++) {
        *name = me_rebind_result(s->e, *name,
                                 me_layer_call(&list->children[i], *name));
    }
}

static void assign(scope *s, const me_statement *statement)
{
    me_tensor **name = &s->variables[statement->variable];
    const value v = evaluate(s, statement->value);
    if (!v.is_temporary) {
        me_hold(s->e, v.x);
    }
    *name = *name == NULL ? v.x : me_rebind_result(s->e, *name, v.x);
}

me_tensor *me_forward_evaluate(me_nn *nn, const me_forward *forward,
                               const me_layer *self, uint32_t n_parameters,
                               me_tensor *const *parameters)
{
    me_engine *e = nn->e;
    scope s = {.e = e, .nn = nn, .self = self};
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < n_parameters; i++) {
        s.variables[i] =
            parameters[i] == NULL ? NULL : me_hold(e, parameters[i]);
    }
    me_tensor *y = me_none(e);
    for (uint32_t i = 0; i < forward->n_statements && me_engine_is_ok(e); i++) {
        const me_statement *statement = &forward->statements[i];
        if (statement->variable == ME_FORWARD_RETURNS) {
            y = evaluate(&s, statement->value).x;
        } else if (is_loop(&s, statement)) {
            loop(&s, statement);
        } else {
            assign(&s, statement);
        }
    }
    for (int i = 0; me_region_is_stopped(e) && i < ME_FORWARD_VARIABLES; i++) {
        me_region_hold_local(e, s.variables[i]);
    }
    return me_leave(e, frame, y);
}

me_tensor *me_forward_run(me_nn *nn, const me_forward *forward,
                          uint32_t n_parameters, me_tensor *const *parameters)
{
    const bool was_ok = me_engine_is_ok(nn->e);
    me_tensor *y =
        me_forward_evaluate(nn, forward, NULL, n_parameters, parameters);
    if (was_ok) {
        me_engine_locate_option(nn->e, "torch.loss");
    }
    return y;
}
