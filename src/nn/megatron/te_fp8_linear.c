/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_fp8_linear.h"

#include "base/size.h"
#include "nn/megatron/te_fp8_state.h"
#include "nn/megatron/te_fp8_weight.h"
#include "nn/megatron/te_linear.h"
#include "nn/megatron/te_overlap.h"
#include "nn/megatron/te_state.h"
#include "nn/megatron/weight_gradients.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

/** What nodes save, in the order in which it goes: the data of one copy with its
 *  scale, or the input as it was. */
enum {
    SAVED_INPUT,
    SAVED_WEIGHT,
    SAVED_NORM_WEIGHT,
    SAVED_DATA,
    SAVED_SCALE,
    SAVED_MEAN,
    SAVED_RSTD
};

/** Inputs that have gradients, in the order in which these are handed on: of
 *  _Linear weight and x, of _LayerNormLinear x, the norm's and the weight. */
enum {
    PLAIN_WEIGHT,
    PLAIN_X,
    NORMED_X = 0, /* behind it those of the norm */
    NORMED_WEIGHT = 3,
    INPUT_BIAS,
    INPUT_COUNT
};

static uint32_t weight_input(const me_linear *linear)
{
    return linear->norm_weight == NULL ? PLAIN_WEIGHT : NORMED_WEIGHT;
}

static const me_usage both = {true, true};
static const me_usage rows_alone = {true, false};
static const me_usage columns_alone = {false, true};

static me_tensor *tensor_of(const me_parameter *parameter)
{
    return parameter == NULL ? NULL : parameter->tensor;
}

static bool gathers(const me_nn *nn, const me_linear *linear)
{
    return !linear->is_row_parallel && me_te_is_sequence_parallel(nn, linear);
}

/** Is the local input kept by rows, to be gathered again in the backward? */
static bool keeps_rows(const me_nn *nn, const me_linear *linear)
{
    return gathers(nn, linear) && me_fp8_row_of(nn)->gathers_rows;
}

static bool is_recording(const me_nn *nn)
{
    return me_context_now(nn->e)->is_recording;
}

static bool saves_input(const me_nn *nn, const me_linear *linear)
{
    return linear->save_original_input &&
           me_fp8_row_of(nn)->projection_saves_input;
}

/** The product of what is quantised: in the model's type. */
static me_tensor *product(me_nn *nn, const me_linear *linear,
                          const me_tensor *x)
{
    const me_tensor *weight = linear->weight->tensor;
    me_shape shape = me_shape_with_last(&x->shape, me_dim(weight, 0));
    if (gathers(nn, linear)) {
        shape.dim[0] =
            me_size_mul(shape.dim[0], (uint64_t)nn->config->parallel.tensor);
    }
    return me_te_gemm_with(
        nn,
        (me_te_product){.kernel = ME_KERNEL_LINEAR,
                        .operands = me_fp8_operands(nn),
                        .workspace = me_te_forward_workspace(nn, linear)},
        (me_dtype)x->dtype, shape, me_dim(weight, 1));
}

/** What the backward needs of the quantised input; the rest goes. */
static void save_quantized(me_nn *nn, const me_linear *linear, me_node *node,
                           me_quantized *q)
{
    const bool is_rows = keeps_rows(nn, linear) || q->columns == NULL;
    me_tensor *scale =
        !is_rows && q->column_scale != NULL ? q->column_scale : q->row_scale;
    if (node != NULL && !is_rows) {
        me_fp8_drop_rows(nn, q);
    }
    me_save(nn->e, node, SAVED_DATA, is_rows ? q->rows : q->columns);
    me_save(nn->e, node, SAVED_SCALE, scale);
}

/** The forward's product: the input is gathered, the weight is quantised.
 *  @param made_out       a weight to be kept when the function has returned
 *  @param scattered_out  where the output arrives beside it, or NULL there */
static me_tensor *multiply(me_nn *nn, const me_linear *linear,
                           const me_tensor *x, bool columns,
                           me_quantized *made_out, me_tensor **scattered_out)
{
    me_fp8_gathering gathering = {NULL, NULL};
    me_quantized total = {NULL, NULL, NULL, NULL};
    if (gathers(nn, linear) && !me_te_gathers_in_buffer(nn, linear)) {
        total = me_fp8_gather(nn, x, rows_alone, false, &gathering);
        me_fp8_gathered(nn, &gathering);
    }
    me_fp8_linear_weight(nn, linear, columns, made_out);
    *scattered_out = me_te_scattered(nn, linear, x);
    me_tensor *y = product(nn, linear, x);
    me_fp8_drop(nn, &total);
    return y;
}

static me_node *record(me_nn *nn, const me_op *op, const me_linear *linear,
                       me_tensor *x)
{
    me_tensor *weight = linear->weight->tensor;
    me_tensor *norm = tensor_of(linear->norm_weight);
    me_tensor *bias = linear->skip_bias_add ? NULL : tensor_of(linear->bias);
    me_node *node = me_record(
        nn->e, op, INPUT_COUNT,
        norm == NULL ? (me_tensor *[]){weight, x, NULL, NULL, bias}
                     : (me_tensor *[]){x, norm, tensor_of(linear->norm_bias),
                                       weight, bias});
    if (node != NULL) {
        node->data.context = linear;
        node->data.flag = me_fp8_takes_first(nn, true);
    }
    return node;
}

/** The gradient of the output, quantised; of all rows where they were scattered. */
static me_quantized quantize_gradient(me_nn *nn, const me_node *node,
                                      const me_linear *linear,
                                      const me_tensor *gy, me_tensor **gx)
{
    if (linear->overlap.gathers_output_gradient) {
        me_quantized part = me_fp8_quantize(nn, gy, rows_alone);
        me_fp8_drop_rows(nn, &part); // copied into the buffer
        return part;
    }
    if (linear->is_row_parallel && me_te_is_sequence_parallel(nn, linear)) {
        return me_fp8_quantize_and_gather(nn, gy);
    }
    return me_needs(node, INPUT_BIAS)
               ? me_fp8_quantize_with_bias(nn, gy, &gx[INPUT_BIAS])
               : me_fp8_quantize(nn, gy, both);
}

/** Rows of all ranks whose output's gradient @p gy is. */
static uint64_t all_rows(const me_nn *nn, const me_linear *linear,
                         const me_tensor *gy)
{
    const bool is_part =
        linear->is_row_parallel && me_te_is_sequence_parallel(nn, linear);
    return me_size_mul(me_rows(gy),
                       is_part ? (uint64_t)nn->config->parallel.tensor : 1);
}

/** The input's gradient before any reduction; NULL: it is in a user buffer. @param
 *  like  the input @param scattered_out  where it arrives, or NULL there */
static me_tensor *input_gradient(me_nn *nn, const me_linear *linear,
                                 const me_tensor *gy, const me_tensor *like,
                                 me_tensor **scattered_out)
{
    const me_tensor *weight = linear->weight->tensor;
    const me_dtype dtype = (me_dtype)gy->dtype;
    me_shape shape = me_shape_with_last(&gy->shape, me_dim(weight, 1));
    if (linear->is_row_parallel && me_te_is_sequence_parallel(nn, linear)) {
        shape.dim[0] =
            me_size_mul(shape.dim[0], (uint64_t)nn->config->parallel.tensor);
    }
    me_fp8_linear_weight_columns(nn, linear);
    const me_te_product product = {.kernel = ME_KERNEL_LINEAR_DGRAD,
                                   .operands = me_fp8_operands(nn),
                                   .workspace = me_te_dgrad_workspace(linear)};
    if (linear->overlap.bulk_wgrad) {
        me_te_gemm_into_with(nn, product, dtype, shape, me_dim(weight, 0));
        return NULL;
    }
    if (linear->overlap.scatters_input_gradient) {
        *scattered_out = me_empty_like(nn->e, "reduce_scatter_out", like);
    }
    me_tensor *gx =
        me_te_gemm_with(nn, product, dtype, shape, me_dim(weight, 0));
    me_fp8_linear_clear_columns(nn, linear);
    return gx;
}

/** A weight's gradient: into the main gradient, or a tensor. */
static me_tensor *weight_gradient(me_nn *nn, const me_node *node,
                                  const me_linear *linear, const me_tensor *gy)
{
    const me_tensor *weight = linear->weight->tensor;
    const me_te_product product = {.kernel = ME_KERNEL_LINEAR_WGRAD,
                                   .operands = me_fp8_operands(nn),
                                   .workspace = me_te_wgrad_workspace(linear)};
    const uint64_t rows = all_rows(nn, linear, gy);
    if (!me_needs(node, weight_input(linear))) {
        return NULL;
    }
    if (me_fuses_weight_gradients(nn)) {
        me_te_gemm_into_with(nn, product, (me_dtype)weight->dtype,
                             weight->shape, rows);
        return NULL;
    }
    return me_te_gemm_with(nn, product, (me_dtype)weight->dtype, weight->shape,
                           rows);
}

/** The input of all ranks for the weight's gradient, under way. */
static me_quantized gather_input(me_nn *nn, const me_linear *linear,
                                 const me_tensor *like,
                                 me_fp8_gathering *gathering_out)
{
    const me_quantized none = {NULL, NULL, NULL, NULL};
    *gathering_out = (me_fp8_gathering){NULL, NULL};
    return gathers(nn, linear) && !linear->overlap.bulk_dgrad
               ? me_fp8_gather(nn, like,
                               keeps_rows(nn, linear) ? rows_alone
                                                      : columns_alone,
                               true, gathering_out)
               : none;
}

/** The saved copy goes, with its scale where that is no number that others
 *  share. A layer without a norm clears what it multiplied alone: where that was
 *  gathered, the saved part stays as long as its node. */
static void clear_saved_copy(me_nn *nn, const me_linear *linear, me_node *node)
{
    if (linear->norm_weight == NULL && gathers(nn, linear)) {
        return;
    }
    me_saved_clear_data(nn->e, node, SAVED_DATA);
    if (me_fp8_row_of(nn)->scale_shape != NULL) {
        me_saved_clear_data(nn->e, node, SAVED_SCALE);
    }
}

/** What products of gradients of weights take by columns, and was gathered by
 *  rows: with NCCL or in a user buffer. */
static void transpose(const me_linear *linear, const me_tensor *part,
                      const me_tensor *gy, me_quantized *total,
                      me_quantized *gradient)
{
    if (total->rows != NULL || linear->overlap.bulk_dgrad) {
        me_fp8_transpose(linear->nn, total, part);
    }
    if (linear->overlap.gathers_output_gradient) {
        me_fp8_transpose(linear->nn, gradient, gy);
    }
}

static bool keeps_gradient(const me_nn *nn, const me_node *node)
{
    return me_needs(node, weight_input(node->data.context)) &&
           nn->weights != NULL && nn->weights->is_split;
}

/** WeightGradStore.put().
 *  @param again  an input that was saved as it is
 *  @param total  of all ranks */
static void keep_gradient(const me_node *node, const me_tensor *gy,
                          const me_quantized *again, const me_quantized *total,
                          const me_quantized *gradient)
{
    const me_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    const bool is_gathered = total->rows != NULL || total->columns != NULL;
    const me_quantized x =
        is_gathered ? *total
        : again != NULL
            ? *again
            : me_fp8_of_copy(nn, node->saved[SAVED_DATA],
                             node->saved[SAVED_SCALE], keeps_rows(nn, linear));
    me_weight_work work = {
        .rows = all_rows(nn, linear, gy),
        .weight = node->edges[weight_input(linear)].node->variable,
        .is_te = true,
        .is_quantized = true,
        .turn = linear->turn,
        .module = node->module,
    };
    me_fp8_parts(nn, &x, work.x.parts);
    me_fp8_parts(nn, gradient, work.gy.parts);
    me_weight_gradients_keep(nn->e, nn->weights, &work);
}

/** The products of a backward.
 *  @param again     this rank's quantised input where it was saved as it is;
 *                   else NULL, and it was saved quantised
 *  @param gradient  of the output, quantised
 *  @return the input's gradient; @p full_out is what it was reduced from, or
 *  itself, or NULL */
static me_tensor *multiply_backward(me_node *node, const me_quantized *again,
                                    me_tensor *gy, me_quantized *gradient,
                                    me_tensor **gx, me_tensor **full_out)
{
    const me_linear *linear = node->data.context;
    const me_tensor *part = again == NULL         ? node->saved[SAVED_DATA]
                            : again->rows != NULL ? again->rows
                                                  : again->columns;
    const me_tensor *like = node->saved[SAVED_INPUT];
    me_nn *nn = linear->nn;
    me_fp8_gathering gathering;
    me_quantized total = gather_input(nn, linear, part, &gathering);
    me_tensor *dx = NULL;
    *full_out = input_gradient(nn, linear, gy, like, &dx);
    if (dx == NULL && *full_out != NULL) {
        dx = me_te_reduce_input_gradient(nn, linear, *full_out);
    }
    me_fp8_gathered(nn, &gathering);
    transpose(linear, part, gy, &total, gradient);
    if (keeps_gradient(nn, node)) {
        keep_gradient(node, gy, again, &total, gradient);
    } else {
        gx[weight_input(linear)] = weight_gradient(nn, node, linear, gy);
        clear_saved_copy(nn, linear, node);
    }
    me_fp8_drop(nn, &total);
    return linear->overlap.bulk_wgrad ? me_te_copy_out(nn, like) : dx;
}

static void finish(me_nn *nn, const me_node *node, const me_linear *linear,
                   me_tensor **gx)
{
    const uint32_t i = weight_input(linear);
    gx[i] = me_te_returned_gradient(nn, node, i, linear, gx[i]);
}

static void reduce_first(me_nn *nn, const me_node *node)
{
    if (node->data.flag) {
        me_fp8_reduce(nn, false);
    }
}

/** For the weight's gradient: columns, or rows where those alone are gathered. */
static me_quantized quantize_input_again(me_nn *nn, const me_linear *linear,
                                         const me_tensor *x)
{
    if (!me_fp8_row_of(nn)->gathers_rows) {
        return me_fp8_quantize(nn, x, columns_alone);
    }
    return me_fp8_quantize(nn, x, gathers(nn, linear) ? rows_alone : both);
}

static void linear_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    const me_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    me_tensor *zeros = me_fp8_linear_zeros(nn, node, gy[0]);
    me_main_grad_get(nn, linear->weight->tensor);
    me_quantized gradient = quantize_gradient(nn, node, linear, gy[0], gx);
    me_quantized again = {NULL, NULL, NULL, NULL};
    if (saves_input(nn, linear)) {
        again = quantize_input_again(nn, linear, node->saved[SAVED_INPUT]);
    }
    me_tensor *full = NULL;
    gx[PLAIN_X] =
        multiply_backward(node, saves_input(nn, linear) ? &again : NULL, gy[0],
                          &gradient, gx, &full);
    if (linear->is_row_parallel && me_te_is_sequence_parallel(nn, linear) &&
        !keeps_gradient(nn, node)) {
        me_fp8_clear(nn, &gradient);
    }
    finish(nn, node, linear, gx);
    me_fp8_drop(nn, &gradient);
    me_fp8_drop(nn, &again);
    me_fp8_linear_drop(nn, &linear->fp8->weight);
    if (full != gx[PLAIN_X]) {
        me_drop(e, full);
    }
    gx[PLAIN_X] = me_te_op_view(e, gx[PLAIN_X]); // dgrad.view(inp_shape)
    reduce_first(nn, node);
    me_drop(e, zeros);
}

static const me_op linear_op = ME_NODE("_LinearBackward", linear_backward);

me_tensor *me_te_fp8_linear(me_nn *nn, const me_linear *linear, me_tensor *x)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_fp8_prepare_forward(nn, linear->fp8);
    me_node *node = record(nn, &linear_op, linear, x);
    const bool is_kept = saves_input(nn, linear);
    const bool columns =
        (is_recording(nn) && x->requires_grad && me_fp8_keeps_weight(nn)) ||
        me_fp8_is_first_run(nn);
    me_quantized made;
    me_quantized q =
        me_fp8_quantize(nn, x,
                        (me_usage){true, is_recording(nn) && !is_kept &&
                                             !keeps_rows(nn, linear)});
    me_tensor *whole = NULL;
    me_tensor *scattered = NULL;
    me_tensor *unreduced = multiply(nn, linear, x, columns, &made, &scattered);
    me_tensor *y =
        me_te_reduce_output(nn, linear, unreduced, scattered, &whole);
    me_save(e, node, SAVED_INPUT, is_kept ? x : NULL);
    me_save(e, node, SAVED_WEIGHT, linear->weight->tensor);
    if (!is_kept) {
        save_quantized(nn, linear, node, &q);
    }
    me_fp8_drop(nn, &q);
    me_fp8_linear_drop(nn, &made);
    me_drop(e, whole);
    me_fp8_linear_keep(nn, linear, node, columns, &made);
    return me_leave(e, frame, me_output(e, node, y));
}

static void norm_linear_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    const me_linear *linear = node->data.context;
    me_nn *nn = linear->nn;
    me_tensor *zeros = me_fp8_linear_zeros(nn, node, gy[0]);
    me_main_grad_get(nn, linear->weight->tensor);
    me_quantized gradient = quantize_gradient(nn, node, linear, gy[0], gx);
    me_tensor *full = NULL;
    me_tensor *dn = multiply_backward(node, NULL, gy[0], &gradient, gx, &full);
    me_launch_stream_waits(e);
    me_te_normalize_backward(e, dn, linear->norm_weight->tensor,
                             linear->norm_bias != NULL, &gx[NORMED_X]);
    gx[NORMED_X] = me_te_op_view(e, gx[NORMED_X]);
    if (dn != full) {
        me_drop(e, dn);
    }
    me_saved_clear_data(e, node, SAVED_MEAN);
    me_saved_clear_data(e, node, SAVED_RSTD);
    finish(nn, node, linear, gx);
    reduce_first(nn, node);
    me_fp8_drop(nn, &gradient);
    me_drop(e, full);
    me_fp8_linear_drop(nn, &linear->fp8->weight);
    me_drop(e, zeros);
}

static const me_op norm_linear_op =
    ME_NODE("_LayerNormLinearBackward", norm_linear_backward);

/** Without a tape statistics and norm output go in the order of their names: ln_out
 *  where that was gathered, mu, rsigma, ln_out_total. */
static void drop_normed(me_nn *nn, const me_linear *linear, me_quantized *q,
                        const me_te_statistics *statistics)
{
    if (gathers(nn, linear)) {
        me_fp8_drop(nn, q);
    }
    me_drop(nn->e, statistics->mean);
    me_drop(nn->e, statistics->rstd);
    me_fp8_drop(nn, q);
}

me_tensor *me_te_fp8_norm_linear(me_nn *nn, const me_linear *linear,
                                 me_tensor *x)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_fp8_prepare_forward(nn, linear->fp8);
    me_node *node = record(nn, &norm_linear_op, linear, x);
    me_te_statistics statistics;
    me_quantized q = me_fp8_normalize(
        nn, x, linear->norm_bias != NULL,
        (me_usage){true, is_recording(nn) && !keeps_rows(nn, linear)},
        &statistics);
    me_quantized made;
    me_tensor *scattered = NULL; // of row-parallel layers alone
    const bool columns = is_recording(nn) && me_fp8_keeps_weight(nn);
    me_tensor *y = multiply(nn, linear, x, columns, &made, &scattered);
    me_save(e, node, SAVED_INPUT, x);
    me_save(e, node, SAVED_WEIGHT, linear->weight->tensor);
    me_save(e, node, SAVED_NORM_WEIGHT, linear->norm_weight->tensor);
    save_quantized(nn, linear, node, &q);
    me_save(e, node, SAVED_MEAN, statistics.mean);
    me_save(e, node, SAVED_RSTD, statistics.rstd);
    drop_normed(nn, linear, &q, &statistics);
    me_fp8_linear_drop(nn, &made);
    me_fp8_linear_keep(nn, linear, node, columns, &made);
    return me_leave(e, frame, me_output(e, node, y));
}
