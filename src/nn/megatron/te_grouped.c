/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_grouped.h"

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

/** Of a split backward: each weight's gradient is made later. */
static void keep_weight_gradients(me_nn *nn, const me_grouped_linear *linear,
                                  const me_node *node, me_tensor *gy)
{
    for (uint32_t i = 0; i < linear->count; i++) {
        me_weight_gradients_keep(
            nn->e, nn->weights,
            &(me_weight_work){
                .x = node->saved[SAVED_INPUT],
                .gy = gy,
                .weight = node->edges[INPUT_WEIGHTS + i].node->variable,
                .module = node->module,
            });
    }
}

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

/** Gradients of the weights: into the main gradients, with a dummy for each, or
 *  views of one tensor; and of biases. */
static void make_weight_gradients(me_nn *nn, const me_grouped_linear *linear,
                                  uint64_t rows, me_tensor **gx)
{
    me_engine *e = nn->e;
    const me_tensor *weight = linear->weights[0]->tensor;
    const me_dtype dtype = (me_dtype)weight->dtype;
    const uint64_t outputs = me_dim(weight, 0);
    const uint64_t inputs = me_dim(weight, 1);
    me_tensor *packed =
        me_fuses_weight_gradients(nn)
            ? NULL
            : me_empty(e, "linear.wgrad", dtype,
                       ME_SHAPE(linear->count, outputs, inputs));
    make_bias_gradients(nn, linear, gx);
    me_te_grouped_gemm_into(nn, dtype, linear->count, weight->shape, rows);
    for (uint32_t i = 0; i < linear->count; i++) {
        gx[INPUT_WEIGHTS + i] =
            packed == NULL
                ? me_te_dummy_wgrad(nn, dtype, &weight->shape)
                : me_alias(e, packed, weight->shape, (uint64_t[]){inputs, 1});
    }
    me_drop(e, packed);
}

static void grouped_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    const me_grouped_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    const me_tensor *weight = linear->weights[0]->tensor;
    const uint64_t rows = me_dim(gy[0], 0);
    me_tensor *dx = me_te_grouped_gemm(
        nn, ME_KERNEL_LINEAR_DGRAD, (me_dtype)gy[0]->dtype,
        ME_SHAPE(rows, me_dim(weight, 1)), me_dim(weight, 0));
    if (nn->weights != NULL && nn->weights->is_split) {
        keep_weight_gradients(nn, linear, node, gy[0]);
    } else {
        make_weight_gradients(nn, linear, rows, gx);
    }
    gx[INPUT_X] = dx;
    (void)e;
}

static const me_op grouped_op =
    ME_NODE("_GroupedLinearBackward", grouped_backward);

static me_tensor *run(me_nn *nn, const me_grouped_linear *linear, me_tensor *x)
{
    me_engine *e = nn->e;
    const uint32_t n = linear->count;
    const me_tensor *weight = linear->weights[0]->tensor;
    const me_frame frame = me_enter(e);
    uint32_t n_inputs = 0;
    linear->inputs[n_inputs++] = x;
    for (uint32_t i = 0; i < n; i++) {
        linear->inputs[n_inputs++] = linear->weights[i]->tensor;
    }
    for (uint32_t i = 0; linear->biases != NULL && i < n; i++) {
        linear->inputs[n_inputs++] = linear->biases[i]->tensor;
    }
    me_node *node = me_record_wide(e, &grouped_op, n_inputs, linear->inputs, 1);
    if (node != NULL) {
        node->data.context = linear;
    }
    me_tensor *y = me_te_grouped_gemm(nn, ME_KERNEL_LINEAR, (me_dtype)x->dtype,
                                      ME_SHAPE(me_dim(x, 0), me_dim(weight, 0)),
                                      me_dim(weight, 1));
    me_save(e, node, SAVED_INPUT, x);
    return me_leave(e, frame, me_output(e, node, y));
}

me_tensor *me_te_grouped_linear(me_nn *nn, const me_grouped_linear *linear,
                                me_tensor *x)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, linear->module);
    me_tensor *y = run(nn, linear, x);
    me_module_leave(nn->e);
    return y;
}
