/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_linear.h"

#include "base/size.h"
#include "nn/megatron/te_fp8_linear.h"
#include "nn/megatron/te_overlap.h"
#include "nn/megatron/te_state.h"
#include "nn/megatron/weight_gradients.h"
#include "ops/te_norm.h"
#include "ops/view.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

/* transformer_engine.pytorch, module/linear.py and module/layernorm_linear.py. */

bool me_te_is_sequence_parallel(const me_nn *nn, const me_linear *linear)
{
    return nn->config->parallel.sequence && !linear->is_expert &&
           !linear->is_duplicated && !linear->explicit_comm;
}

bool me_te_is_tensor_parallel(const me_nn *nn, const me_linear *linear)
{
    return nn->config->parallel.tensor > 1 && !linear->is_expert &&
           !linear->is_duplicated && !linear->explicit_comm;
}

me_tensor *me_te_gather(me_nn *nn, const me_tensor *x)
{
    return me_all_gather_first(nn->e, nn->comm, ME_GROUP_TENSOR, x);
}

/** In place. @param is_async  nobody waits */
static void sum_over_ranks(me_nn *nn, const me_tensor *x, bool is_async)
{
    me_communicate(nn->e, nn->comm,
                   (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_REDUCE,
                             x->dtype, me_numel(x), -1, is_async});
}

me_tensor *me_te_reduce_output(me_nn *nn, const me_linear *linear,
                               me_tensor *product, me_tensor *scattered,
                               me_tensor **whole_out)
{
    const bool scatters =
        linear->is_row_parallel && me_te_is_sequence_parallel(nn, linear);
    *whole_out = scatters ? product : NULL;
    if (scatters) {
        return scattered != NULL
                   ? scattered
                   : me_reduce_scatter_first(nn->e, nn->comm, ME_GROUP_TENSOR,
                                             product);
    }
    if (linear->is_row_parallel && me_te_is_tensor_parallel(nn, linear)) {
        sum_over_ranks(nn, product, false);
    }
    return product;
}

me_tensor *me_te_reduce_input_gradient(me_nn *nn, const me_linear *linear,
                                       me_tensor *dx)
{
    if (linear->is_row_parallel) {
        return dx;
    }
    if (me_te_is_sequence_parallel(nn, linear)) {
        return me_reduce_scatter_first_async(nn->e, nn->comm, ME_GROUP_TENSOR,
                                             dx);
    }
    if (me_te_is_tensor_parallel(nn, linear)) {
        sum_over_ranks(nn, dx, true);
    }
    return dx;
}

/** WeightGradStore keeps the product's own operands. */
static bool keeps_gathered(const me_nn *nn)
{
    return nn->config->moe.delay_wgrad_compute;
}

me_tensor *me_te_weight_gradient(me_nn *nn, const me_node *node, uint32_t input,
                                 me_te_factors factors, const me_linear *linear)
{
    me_tensor *x = factors.x;
    me_tensor *gy = factors.gy;
    const me_tensor *weight = linear->weight->tensor;
    if (!me_needs(node, input)) {
        return NULL;
    }
    if (nn->weights != NULL && nn->weights->is_split) {
        me_weight_gradients_keep(
            nn->e, nn->weights,
            &(me_weight_work){
                .x = {{x}},
                .gy = {{gy}},
                .rows = me_rows(gy),
                .weight = node->edges[input].node->variable,
                .gathers_rows = !keeps_gathered(nn) &&
                                !linear->is_row_parallel &&
                                me_te_is_sequence_parallel(nn, linear),
                .is_te = true,
                .turn = linear->turn,
                .module = node->module,
            });
        return NULL;
    }
    const uint64_t outputs = me_dim(weight, 0);
    // Of what is gathered in a buffer only this rank's rows are at hand.
    const uint64_t rows =
        me_max_u64(me_rows(x), outputs == 0 ? 0 : me_numel(gy) / outputs);
    if (me_fuses_weight_gradients(nn)) {
        me_te_gemm_into_with(nn,
                             (me_te_product){.kernel = ME_KERNEL_LINEAR_WGRAD,
                                             .workspace = factors.workspace},
                             (me_dtype)weight->dtype, weight->shape, rows);
        return NULL;
    }
    return me_te_gemm_with(nn,
                           (me_te_product){.kernel = ME_KERNEL_LINEAR_WGRAD,
                                           .workspace = factors.workspace},
                           (me_dtype)weight->dtype, weight->shape, rows);
}

me_tensor *me_te_returned_gradient(me_nn *nn, const me_node *node,
                                   uint32_t input, const me_linear *linear,
                                   me_tensor *gradient)
{
    const bool is_split = nn->weights != NULL && nn->weights->is_split;
    const me_tensor *weight = linear->weight->tensor;
    if (!me_needs(node, input) || !me_fuses_weight_gradients(nn) ||
        (is_split && !keeps_gathered(nn))) {
        return gradient;
    }
    me_tensor *dummy =
        me_te_dummy_wgrad(nn, (me_dtype)weight->dtype, &weight->shape);
    return is_split ? gradient : dummy; // it is handed over with the product
}

/** A bias's gradient, which the product of the weight's gradient writes: as what
 *  it adds to, or as the layer computes. */
static me_tensor *bias_gradient(me_nn *nn, const me_linear *linear)
{
    const me_dtype dtype = me_fuses_weight_gradients(nn)
                               ? nn->config->train.grad_dtype
                               : (me_dtype)linear->bias->tensor->dtype;
    return me_empty(nn->e, "linear.bgrad", dtype, linear->bias->shape);
}

enum {
    LINEAR_SAVED_INPUT,
    LINEAR_SAVED_WEIGHT
};

/** Inputs of _Linear that have gradients, which are handed on in this order. */
enum {
    LINEAR_WEIGHT,
    LINEAR_X,
    LINEAR_BIAS
};

static void linear_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    const me_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    const me_tensor *weight = linear->weight->tensor;
    const bool is_row = linear->is_row_parallel;
    const bool gathers_gy = is_row && me_te_is_sequence_parallel(nn, linear);
    me_tensor *x = node->saved[LINEAR_SAVED_INPUT];
    me_main_grad_get(nn, weight);
    const me_shape all = gathers_gy ? me_te_all_rows(nn, gy[0]) : gy[0]->shape;
    me_tensor *gathered_gy =
        gathers_gy && !linear->overlap.gathers_output_gradient
            ? me_te_gather(nn, gy[0])
            : NULL;
    me_tensor *total_gy = gathered_gy == NULL ? gy[0] : gathered_gy;
    me_tensor *gathered_x = !is_row && me_te_is_sequence_parallel(nn, linear)
                                ? me_te_gather(nn, x)
                                : NULL;
    me_tensor *dx = me_te_gemm_with(
        nn,
        (me_te_product){.kernel = ME_KERNEL_LINEAR_DGRAD,
                        .workspace = me_te_dgrad_workspace(linear)},
        (me_dtype)gy[0]->dtype, me_shape_with_last(&all, me_dim(weight, 1)),
        me_dim(weight, 0));
    me_tensor *full = dx;
    dx = me_te_reduce_input_gradient(nn, linear, full);
    me_tensor *dw = me_te_weight_gradient(
        nn, node, LINEAR_WEIGHT,
        (me_te_factors){
            .x = gathered_x != NULL && keeps_gathered(nn) ? gathered_x : x,
            .gy = total_gy,
            .workspace = me_te_wgrad_workspace(linear)},
        linear);
    if (node->n_inputs > LINEAR_BIAS && me_needs(node, LINEAR_BIAS)) {
        gx[LINEAR_BIAS] = bias_gradient(nn, linear);
    }
    me_drop(e, gathered_gy);
    me_drop(e, gathered_x);
    gx[LINEAR_WEIGHT] =
        me_te_returned_gradient(nn, node, LINEAR_WEIGHT, linear, dw);
    gx[LINEAR_X] = me_te_op_view(e, dx); // dgrad.view(inp_shape)
    if (full != dx) {
        me_drop(e, full);
    }
}

static const me_op linear_op = {.node = "_LinearBackward",
                                .backward = linear_backward,
                                .marks_saved = true};

/** x · weightᵀ in the forward. @param gathers  the rows of all tensor ranks, in a
 *  user buffer where the layer has one, else in a tensor that then goes */
static me_tensor *multiply(me_nn *nn, const me_linear *linear, me_tensor *x,
                           bool gathers)
{
    const me_tensor *weight = linear->weight->tensor;
    const me_shape all = gathers ? me_te_all_rows(nn, x) : x->shape;
    me_tensor *total = gathers && !me_te_gathers_in_buffer(nn, linear)
                           ? me_te_gather(nn, x)
                           : NULL;
    me_tensor *y = me_te_gemm_with(
        nn,
        (me_te_product){.kernel = ME_KERNEL_LINEAR,
                        .workspace = me_te_forward_workspace(nn, linear)},
        (me_dtype)x->dtype, me_shape_with_last(&all, me_dim(weight, 0)),
        me_dim(weight, 1));
    me_drop(nn->e, total);
    return y;
}

/** _Linear.apply: x · weightᵀ, its rows gathered before or scattered after. */
static me_tensor *linear_function(me_nn *nn, const me_linear *linear,
                                  me_tensor *x)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *weight = linear->weight->tensor;
    me_tensor *bias = linear->bias == NULL || linear->skip_bias_add
                          ? NULL
                          : linear->bias->tensor;
    me_node *node =
        me_record(e, &linear_op, 3, (me_tensor *[]){weight, x, bias});
    const bool gathers =
        !linear->is_row_parallel && me_te_is_sequence_parallel(nn, linear);
    me_tensor *scattered = me_te_scattered(nn, linear, x);
    me_tensor *product = multiply(nn, linear, x, gathers);
    me_tensor *whole = NULL;
    me_tensor *y = me_te_reduce_output(nn, linear, product, scattered, &whole);
    me_drop(e, whole);
    me_save(e, node, LINEAR_SAVED_INPUT, x);
    me_save(e, node, LINEAR_SAVED_WEIGHT, weight);
    if (node != NULL) {
        node->data.context = linear;
    }
    return me_leave(e, frame, me_output(e, node, y));
}

/** @param x  prepare_forward() makes it contiguous */
static me_tensor *run(me_nn *nn, const me_linear *linear, me_tensor *x,
                      me_tensor *(*function)(me_nn *nn, const me_linear *linear,
                                             me_tensor *x))
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, linear->module);
    const me_frame frame = me_enter(nn->e);
    x = me_pre_forward(linear->hooks, x);
    me_tensor *y = function(nn, linear, me_contiguous(nn->e, x));
    me_leave(nn->e, frame, y);
    me_module_leave(nn->e);
    return y;
}

me_tensor *me_te_linear(me_nn *nn, const me_linear *linear, me_tensor *x)
{
    return run(nn, linear, x,
               me_fp8_is_on(nn) ? me_te_fp8_linear : linear_function);
}

enum {
    NORM_LINEAR_SAVED_INPUT,
    NORM_LINEAR_SAVED_WEIGHT,
    NORM_LINEAR_SAVED_NORM_WEIGHT,
    NORM_LINEAR_SAVED_NORM_OUTPUT,
    NORM_LINEAR_SAVED_MEAN,
    NORM_LINEAR_SAVED_RSTD
};

/** Inputs of _LayerNormLinear that have gradients. */
enum {
    NORM_LINEAR_X,
    NORM_LINEAR_NORM_WEIGHT,
    NORM_LINEAR_NORM_BIAS,
    NORM_LINEAR_WEIGHT,
    NORM_LINEAR_BIAS
};

/** The gradient of the norm's output. @return of this rank's rows, NULL: they are
 *  in a user buffer; @p full_out is what it was reduced from, or itself, or NULL */
static me_tensor *norm_linear_dgrad(me_nn *nn, const me_linear *linear,
                                    const me_tensor *normed,
                                    const me_tensor *gy, me_tensor **full_out)
{
    const me_tensor *weight = linear->weight->tensor;
    const me_te_workspace workspace = me_te_dgrad_workspace(linear);
    const me_dtype dtype = (me_dtype)gy->dtype;
    const me_shape shape = me_shape_with_last(&gy->shape, me_dim(weight, 1));
    if (linear->overlap.bulk_wgrad) {
        me_te_gemm_into_with(nn,
                             (me_te_product){.kernel = ME_KERNEL_LINEAR_DGRAD,
                                             .workspace = workspace},
                             dtype, shape, me_dim(weight, 0));
        return NULL;
    }
    me_tensor *scattered =
        linear->overlap.scatters_input_gradient
            ? me_empty_like(nn->e, "reduce_scatter_out", normed)
            : NULL;
    *full_out =
        me_te_gemm_with(nn,
                        (me_te_product){.kernel = ME_KERNEL_LINEAR_DGRAD,
                                        .workspace = workspace},
                        dtype, shape, me_dim(weight, 0));
    return scattered != NULL
               ? scattered
               : me_te_reduce_input_gradient(nn, linear, *full_out);
}

static void norm_linear_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    const me_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    const me_tensor *weight = linear->weight->tensor;
    me_tensor *normed = node->saved[NORM_LINEAR_SAVED_NORM_OUTPUT];
    const bool gathers = me_te_is_sequence_parallel(nn, linear);
    me_main_grad_get(nn, weight);
    me_tensor *total = gathers && !linear->overlap.bulk_dgrad
                           ? me_te_gather(nn, normed)
                           : NULL;
    me_tensor *full = NULL;
    me_tensor *dn = norm_linear_dgrad(nn, linear, normed, gy[0], &full);
    me_tensor *dw = me_te_weight_gradient(
        nn, node, NORM_LINEAR_WEIGHT,
        (me_te_factors){.x = total != NULL && keeps_gathered(nn) ? total
                                                                 : normed,
                        .gy = gy[0],
                        .workspace = me_te_wgrad_workspace(linear)},
        linear);
    if (me_needs(node, NORM_LINEAR_BIAS)) {
        gx[NORM_LINEAR_BIAS] = bias_gradient(nn, linear);
    }
    const bool is_split = nn->weights != NULL && nn->weights->is_split;
    if (!is_split) {
        me_saved_clear_data(e, node, NORM_LINEAR_SAVED_NORM_OUTPUT);
    } else if (total == NULL || !keeps_gathered(nn)) {
        me_clear(e, &node->saved[NORM_LINEAR_SAVED_NORM_OUTPUT]);
    } // else ln_out, of which the product keeps all rows, ends with its function
    me_drop(e, total);
    if (linear->overlap.bulk_wgrad) {
        dn = me_te_copy_out(nn, node->saved[NORM_LINEAR_SAVED_INPUT]);
    }
    me_launch_stream_waits(e);
    me_te_normalize_backward(e, dn, linear->norm_weight->tensor,
                             linear->norm_bias != NULL, gx);
    if (dn != full) {
        me_drop(e, dn);
    }
    me_saved_clear_data(e, node, NORM_LINEAR_SAVED_MEAN);
    me_saved_clear_data(e, node, NORM_LINEAR_SAVED_RSTD);
    gx[NORM_LINEAR_WEIGHT] =
        me_te_returned_gradient(nn, node, NORM_LINEAR_WEIGHT, linear, dw);
    gx[NORM_LINEAR_X] = me_te_op_view(e, gx[NORM_LINEAR_X]);
    if (me_saved_is_own(node)) { // inputmat, the function's first name
        me_clear(e, &node->saved[NORM_LINEAR_SAVED_INPUT]);
    }
    me_drop(e, full);
}

static const me_op norm_linear_op = {.node = "_LayerNormLinearBackward",
                                     .backward = norm_linear_backward,
                                     .marks_saved = true};

static me_tensor *tensor_of(const me_parameter *parameter)
{
    return parameter == NULL ? NULL : parameter->tensor;
}

/** What the backward needs, if there is one; else it goes in the order of
 *  forward()'s names: ln_out, mu, rsigma, ln_out_total. The last is a second
 *  name of the first unless the output @p was_gathered. */
static void save_normed(me_engine *e, me_node *node, me_tensor *normed,
                        const me_te_statistics *statistics, bool was_gathered)
{
    me_save(e, node, NORM_LINEAR_SAVED_NORM_OUTPUT, normed);
    me_save(e, node, NORM_LINEAR_SAVED_MEAN, statistics->mean);
    me_save(e, node, NORM_LINEAR_SAVED_RSTD, statistics->rstd);
    if (was_gathered) {
        me_drop(e, normed);
    }
    me_drop(e, statistics->mean);
    me_drop(e, statistics->rstd);
    if (!was_gathered) {
        me_drop(e, normed);
    }
}

/** _LayerNormLinear.apply: norm(x) · weightᵀ + bias. */
static me_tensor *norm_linear_function(me_nn *nn, const me_linear *linear,
                                       me_tensor *x)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *weight = linear->weight->tensor;
    me_tensor *bias = linear->skip_bias_add ? NULL : tensor_of(linear->bias);
    me_tensor *norm_weight = linear->norm_weight->tensor;
    me_tensor *norm_bias = tensor_of(linear->norm_bias);
    me_node *node =
        me_record(e, &norm_linear_op, 5,
                  (me_tensor *[]){x, norm_weight, norm_bias, weight, bias});
    me_te_statistics statistics;
    me_tensor *normed = me_te_normalize(e, x, norm_bias != NULL, &statistics);
    const bool was_gathered = me_te_is_sequence_parallel(nn, linear);
    me_tensor *y = multiply(nn, linear, normed, was_gathered);
    me_save(e, node, NORM_LINEAR_SAVED_INPUT, x);
    me_save(e, node, NORM_LINEAR_SAVED_WEIGHT, weight);
    me_save(e, node, NORM_LINEAR_SAVED_NORM_WEIGHT, norm_weight);
    save_normed(e, node, normed, &statistics, was_gathered);
    if (node != NULL) {
        node->data.context = linear;
    }
    return me_leave(e, frame, me_output(e, node, y));
}

me_tensor *me_te_layer_norm_linear(me_nn *nn, const me_linear *linear,
                                   me_tensor *x)
{
    return run(nn, linear, x,
               me_fp8_is_on(nn) ? me_te_fp8_norm_linear : norm_linear_function);
}
