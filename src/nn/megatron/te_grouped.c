/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_grouped.h"

#include "nn/megatron/te_fp8_grouped.h"
#include "nn/megatron/te_fp8_state.h"
#include "nn/megatron/te_state.h"
#include "nn/megatron/weight_gradients.h"
#include "tensor/autograd.h"

/** What it saves: views of the input, and the weights, which are there anyhow. */
enum {
    SAVED_INPUT
};

/** Inputs that have gradients: x, then the weights, then the biases. */
enum {
    INPUT_X,
    INPUT_WEIGHTS
};

/** Of biases that the product adds: written by the products of the weights'
 *  gradients, in the type of those. */
static void make_bias_gradients(me_nn *nn, const me_grouped_linear *linear,
                                me_tensor **gx)
{
    for (uint32_t i = 0;
         linear->biases != NULL && !linear->skip_bias_add && i < linear->count;
         i++) {
        const me_tensor *bias = linear->biases[i]->tensor;
        gx[INPUT_WEIGHTS + linear->count + i] = me_empty(
            nn->e, "linear.bgrad",
            me_fuses_weight_gradients(nn) ? nn->config->train.grad_dtype
                                          : (me_dtype)bias->dtype,
            bias->shape);
    }
}

bool me_te_grouped_keeps(const me_nn *nn)
{
    return nn->weights != NULL && nn->weights->is_split;
}

me_tensor *me_te_grouped_pack(me_nn *nn, const me_grouped_linear *linear)
{
    const me_tensor *weight = linear->weights[0]->tensor;
    const bool is_made_later =
        me_te_grouped_keeps(nn) && !nn->config->moe.delay_wgrad_compute;
    return me_fuses_weight_gradients(nn) || is_made_later
               ? NULL
               : me_empty(nn->e, "linear.wgrad", (me_dtype)weight->dtype,
                          ME_SHAPE(linear->count, me_dim(weight, 0),
                                   me_dim(weight, 1)));
}

void me_te_grouped_keep(me_nn *nn, const me_grouped_linear *linear,
                        const me_node *node, uint32_t index, me_tensor *packed,
                        me_weight_work *work)
{
    const me_tensor *weight = linear->weights[0]->tensor;
    const me_frame frame = me_enter(nn->e);
    work->weight = node->edges[INPUT_WEIGHTS + index].node->variable;
    work->module = node->module;
    work->is_te = true;
    work->is_grouped = true;
    work->dw = packed == NULL ? NULL
                              : me_alias(nn->e, packed, weight->shape,
                                         (uint64_t[]){me_dim(weight, 1), 1});
    me_weight_gradients_keep(nn->e, nn->weights, work);
    me_leave(nn->e, frame, NULL);
}

void me_te_grouped_kept(me_nn *nn, const me_grouped_linear *linear,
                        me_tensor *packed, me_tensor **gx)
{
    const me_tensor *weight = linear->weights[0]->tensor;
    const me_weight_gradients *kept = nn->weights;
    for (uint32_t i = 0;
         packed != NULL && i < linear->count && me_engine_is_ok(nn->e); i++) {
        gx[INPUT_WEIGHTS + i] = kept->items[kept->count - linear->count + i].dw;
    }
    if (nn->config->moe.delay_wgrad_compute && me_fuses_weight_gradients(nn)) {
        (void)me_te_dummy_wgrad(nn, (me_dtype)weight->dtype, &weight->shape);
    }
    me_drop(nn->e, packed);
}

void me_te_grouped_wgrad(me_nn *nn, const me_grouped_linear *linear,
                         me_operands operands, uint64_t rows, me_tensor **gx)
{
    const me_tensor *weight = linear->weights[0]->tensor;
    if (gx != NULL) {
        make_bias_gradients(nn, linear, gx);
    }
    me_te_grouped_gemm_into(nn, operands, (me_dtype)weight->dtype,
                            linear->count, weight->shape, rows);
}

void me_te_grouped_return(me_nn *nn, const me_grouped_linear *linear,
                          me_tensor *packed, me_tensor **gx)
{
    const me_tensor *weight = linear->weights[0]->tensor;
    for (uint32_t i = 0; i < linear->count; i++) {
        gx[INPUT_WEIGHTS + i] =
            packed == NULL
                ? me_te_dummy_wgrad(nn, (me_dtype)weight->dtype, &weight->shape)
                : me_alias(nn->e, packed, weight->shape,
                           (uint64_t[]){me_dim(weight, 1), 1});
    }
    me_drop(nn->e, packed);
}

static void grouped_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_grouped_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    const me_tensor *weight = linear->weights[0]->tensor;
    const uint64_t rows = me_dim(gy[0], 0);
    me_main_grad_get(nn, weight);
    me_tensor *dx = me_te_grouped_gemm(
        nn, ME_KERNEL_LINEAR_DGRAD, ME_OPERANDS_AS_RESULT,
        (me_dtype)gy[0]->dtype, ME_SHAPE(rows, me_dim(weight, 1)),
        me_dim(weight, 0));
    if (me_te_grouped_keeps(nn)) {
        me_tensor *packed = me_te_grouped_pack(nn, linear);
        for (uint32_t i = 0; i < linear->count; i++) {
            me_weight_work work = {.x = {{node->saved[SAVED_INPUT]}},
                                   .gy = {{gy[0]}},
                                   .rows = rows};
            me_te_grouped_keep(nn, linear, node, i, packed, &work);
        }
        me_te_grouped_kept(nn, linear, packed, gx);
    } else {
        me_tensor *packed = me_te_grouped_pack(nn, linear);
        me_te_grouped_wgrad(nn, linear, ME_OPERANDS_AS_RESULT, rows, gx);
        me_te_grouped_return(nn, linear, packed, gx);
    }
    gx[INPUT_X] = dx;
    (void)e;
}

static const me_op grouped_op =
    ME_NODE("_GroupedLinearBackward", grouped_backward);

me_node *me_te_grouped_record(me_nn *nn, const me_op *op,
                              const me_grouped_linear *linear, me_tensor *x,
                              uint32_t n_saved)
{
    uint32_t n_inputs = 0;
    linear->inputs[n_inputs++] = x;
    for (uint32_t i = 0; i < linear->count; i++) {
        linear->inputs[n_inputs++] = linear->weights[i]->tensor;
    }
    for (uint32_t i = 0; linear->biases != NULL && i < linear->count; i++) {
        linear->inputs[n_inputs++] = linear->biases[i]->tensor;
    }
    me_node *node =
        me_record_saving(nn->e, op, n_inputs, linear->inputs, n_saved);
    if (node != NULL) {
        node->data.context = linear;
    }
    return node;
}

/** Each expert's rows are a view of their own, which matters to who packs what is
 *  saved: a layer's activations that go to the host. */
static bool saves_parts(const me_nn *nn)
{
    return nn->config->offload.num_layers > 0;
}

static void save_parts(me_nn *nn, me_node *node,
                       const me_grouped_linear *linear, const me_tensor *x,
                       const uint64_t *tokens)
{
    const uint64_t columns = me_dim(x, 1);
    const me_frame frame = me_enter(nn->e);
    for (uint32_t i = 0; i < linear->count; i++) {
        me_save(nn->e, node, SAVED_INPUT + i,
                me_alias(nn->e, x, ME_SHAPE(tokens[i], columns),
                         (uint64_t[]){columns, 1}));
    }
    me_leave(nn->e, frame, NULL);
}

static me_tensor *run(me_nn *nn, const me_grouped_linear *linear, me_tensor *x,
                      const uint64_t *tokens)
{
    me_engine *e = nn->e;
    const me_tensor *weight = linear->weights[0]->tensor;
    const me_frame frame = me_enter(e);
    me_node *node = me_te_grouped_record(nn, &grouped_op, linear, x,
                                         saves_parts(nn) ? linear->count : 0);
    me_tensor *y = me_te_grouped_gemm(
        nn, ME_KERNEL_LINEAR, ME_OPERANDS_AS_RESULT, (me_dtype)x->dtype,
        ME_SHAPE(me_dim(x, 0), me_dim(weight, 0)), me_dim(weight, 1));
    if (saves_parts(nn)) {
        save_parts(nn, node, linear, x, tokens);
    } else {
        me_save(e, node, SAVED_INPUT, x);
    }
    return me_leave(e, frame, me_output(e, node, y));
}

me_tensor *me_te_grouped_linear(me_nn *nn, const me_grouped_linear *linear,
                                me_tensor *x, const uint64_t *tokens)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, linear->module);
    me_tensor *y = me_fp8_is_on(nn)
                       ? me_te_fp8_grouped_linear(nn, linear, x, tokens)
                       : run(nn, linear, x, tokens);
    me_module_leave(nn->e);
    return y;
}
