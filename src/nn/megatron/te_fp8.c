/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_fp8.h"

#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/launch.h"

enum {
    BLOCK = 128,     /* of blockwise scaling, in each direction */
    MX_BLOCK = 32,   /* of MXFP8, along the summed dimension */
    SCALE_ALIGN = 4, /* columns of a table of scales */
    SUM_ROWS = 128   /* that one partial sum of a bias's gradient covers */
};

/** Float8BlockQuantizer::get_scale_shape(): 1 x 128 of activations and gradients,
 *  128 x 128 of weights. */
static me_shape block_scales(uint64_t rows, uint64_t columns, bool by_columns,
                             bool is_weight)
{
    const uint64_t summed = by_columns ? rows : columns;
    const uint64_t other = by_columns ? columns : rows;
    if (is_weight) {
        return ME_SHAPE(me_div_up(other, BLOCK),
                        me_round_up(me_div_up(summed, BLOCK), SCALE_ALIGN));
    }
    return ME_SHAPE(me_div_up(summed, BLOCK), me_round_up(other, SCALE_ALIGN));
}

/** MXFP8Quantizer::get_scale_shape(), padded to tiles of 128 x 4. */
static me_shape mx_scales(uint64_t rows, uint64_t columns, bool by_columns,
                          bool is_weight)
{
    (void)is_weight;
    return by_columns ? ME_SHAPE(me_round_up(rows / MX_BLOCK, SCALE_ALIGN),
                                 me_round_up(columns, BLOCK))
                      : ME_SHAPE(me_round_up(rows, BLOCK),
                                 me_round_up(columns / MX_BLOCK, SCALE_ALIGN));
}

static const me_fp8_row rows[] = {
    [ME_FP8_DELAYED] = {.has_state = true,
                        .scale_is_first = true,
                        .fuses_norm = true,
                        .bias = ME_FP8_BIAS_FUSED,
                        .gathers_rows = true,
                        .remakes_weights = true,
                        .scale_dtype = ME_DTYPE_FLOAT32},
    [ME_FP8_TENSORWISE] = {.finds_amax = true,
                           .bias = ME_FP8_BIAS_WITHIN,
                           .gathers_rows = true,
                           .projection_saves_input = true,
                           .remakes_weights = true,
                           .scale_dtype = ME_DTYPE_FLOAT32},
    [ME_FP8_BLOCKWISE] = {.bias = ME_FP8_BIAS_BEFORE,
                          .arrives_interleaved = true,
                          .projection_saves_input = true,
                          .scale_dtype = ME_DTYPE_FLOAT32,
                          .scale_shape = block_scales},
    [ME_FP8_MXFP8] = {.bias = ME_FP8_BIAS_FUSED,
                      .projection_saves_input = true,
                      .remakes_weights = true,
                      .scale_dtype = ME_DTYPE_UINT8,
                      .scale_shape = mx_scales},
};

const me_fp8_row *me_fp8_row_of(const me_nn *nn)
{
    return &rows[nn->config->fp8.recipe];
}

me_quantized *me_quantized_of(const me_parameter *parameter)
{
    const me_kind *kind = parameter->kind;
    return kind != NULL && kind->name == ME_KIND_QUANTIZED
               ? ((const me_quantized_kind *)kind)->held
               : NULL;
}

/** Extents of a tensor as quantizers see it. */
typedef struct matrix_size {
    uint64_t rows;
    uint64_t columns;
} matrix_size;

static matrix_size extents_of(const me_tensor *x)
{
    return (matrix_size){.rows = me_rows(x), .columns = me_dim(x, -1)};
}

static me_tensor *values(me_nn *nn, matrix_size x)
{
    return me_empty(nn->e, "quantize", ME_DTYPE_UINT8,
                    ME_SHAPE(x.rows, x.columns));
}

static me_tensor *scales(me_nn *nn, matrix_size x, bool by_columns,
                         bool is_weight)
{
    const me_fp8_row *row = me_fp8_row_of(nn);
    return me_empty(
        nn->e, "scale_inv", row->scale_dtype,
        row->scale_shape == NULL
            ? ME_SHAPE(1)
            : row->scale_shape(x.rows, x.columns, by_columns, is_weight));
}

/** create_tensor(): memory of the copies that are wanted. Where products take
 *  operands of any order a tensor of one scale has rows alone. */
static me_quantized create(me_nn *nn, matrix_size x, me_usage usage,
                           bool is_weight)
{
    const me_fp8_row *row = me_fp8_row_of(nn);
    const bool is_one = row->scale_shape == NULL;
    const bool needs_no_columns =
        is_one && me_engine_card(nn->e)->has_any_order_fp8;
    me_quantized q = {NULL, NULL, NULL, NULL};
    if (is_one && row->scale_is_first) {
        q.row_scale = scales(nn, x, false, is_weight);
    }
    if (usage.rows || needs_no_columns) {
        q.rows = values(nn, x);
    }
    if (!is_one && usage.rows) {
        q.row_scale = scales(nn, x, false, is_weight);
    }
    if (usage.columns && !needs_no_columns) {
        q.columns = values(nn, x);
    }
    if (!is_one && usage.columns) {
        q.column_scale = scales(nn, x, true, is_weight);
    }
    if (is_one && !row->scale_is_first) {
        q.row_scale = scales(nn, x, false, is_weight);
    }
    return q;
}

me_operands me_fp8_operands(const me_nn *nn)
{
    return me_fp8_row_of(nn)->scale_shape == NULL ? ME_OPERANDS_FP8
                                                  : ME_OPERANDS_FP8_BLOCKS;
}

/** The kernel, and what it needs meanwhile: the largest value and the scale,
 *  float32 each. */
static void run_quantize_numel(me_nn *nn, me_dtype dtype, uint64_t numel)
{
    const uint64_t bytes = me_dtype_bytes(dtype);
    if (me_fp8_row_of(nn)->finds_amax) {
        me_temporary(nn->e, "amax_and_scale", 8);
        me_launch_kernel(nn->e, ME_KERNEL_REDUCE, 0, me_size_mul(numel, bytes));
    }
    me_launch_kernel(nn->e, ME_KERNEL_QUANTIZE, 0,
                     me_size_mul(numel, bytes + 2));
}

static void run_quantize(me_nn *nn, const me_tensor *x)
{
    run_quantize_numel(nn, (me_dtype)x->dtype, me_numel(x));
}

me_quantized me_fp8_quantize(me_nn *nn, const me_tensor *x, me_usage usage)
{
    const me_quantized q = create(nn, extents_of(x), usage, false);
    run_quantize(nn, x);
    return q;
}

/** Copies one way with their scales in one piece: bulk_allocate(). */
static me_tensor *bulk(me_nn *nn, uint64_t columns, uint32_t count,
                       const uint64_t *counts, bool by_columns)
{
    enum {
        ALIGNMENT = 256, // of data, and of the piece
        SCALE_ALIGNMENT = 16
    };

    const me_fp8_row *row = me_fp8_row_of(nn);
    const uint64_t scale_bytes = me_dtype_bytes(row->scale_dtype);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes = me_size_add(me_round_up(bytes, ALIGNMENT),
                            me_size_mul(counts[i], columns));
    }
    for (uint32_t i = 0; i < count; i++) {
        const me_shape scale =
            row->scale_shape(counts[i], columns, by_columns, false);
        bytes = me_size_add(me_round_up(bytes, SCALE_ALIGNMENT),
                            me_size_mul(me_shape_numel(&scale), scale_bytes));
    }
    return me_empty(nn->e, "split_quantize", ME_DTYPE_UINT8,
                    ME_SHAPE(me_size_add(bytes, ALIGNMENT)));
}

/** Memory of the parts; of those with scales of blocks the first has it for all. */
static void create_parts(me_nn *nn, uint64_t columns, uint32_t count,
                         const uint64_t *counts, me_usage usage,
                         me_quantized *parts)
{
    const bool is_bulk = me_fp8_row_of(nn)->scale_shape != NULL;
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = is_bulk ? (me_quantized){NULL, NULL, NULL, NULL}
                           : create(nn, (matrix_size){counts[i], columns},
                                    usage, false);
    }
    if (is_bulk && usage.rows) {
        parts[0].rows = bulk(nn, columns, count, counts, false);
    }
    if (is_bulk && usage.columns) {
        parts[0].columns = bulk(nn, columns, count, counts, true);
    }
}

void me_fp8_split_quantize(me_nn *nn, const me_tensor *x, uint32_t count,
                           const uint64_t *counts, me_usage usage,
                           me_quantized *parts_out)
{
    const uint64_t columns = me_dim(x, -1);
    create_parts(nn, columns, count, counts, usage, parts_out);
    for (uint32_t i = 0; i < count; i++) {
        run_quantize_numel(nn, (me_dtype)x->dtype,
                           me_size_mul(counts[i], columns));
    }
}

static me_tensor *bias_gradient(me_nn *nn, const me_tensor *gy)
{
    return me_empty(nn->e, "bgrad_quantize", (me_dtype)gy->dtype,
                    ME_SHAPE(me_dim(gy, -1)));
}

/** `gy.sum(dim=0)` into what is there. */
static void sum_rows(me_nn *nn, const me_tensor *gy)
{
    me_reduce(nn->e, &(me_reduction){
                         .inputs = me_rows(gy),
                         .outputs = me_dim(gy, -1),
                         .is_outer = true,
                         .element_bytes = me_dtype_bytes((me_dtype)gy->dtype),
                         .accumulator_bytes = 4,
                     });
}

me_quantized me_fp8_quantize_with_bias(me_nn *nn, const me_tensor *x,
                                       me_tensor **bias_gradient_out)
{
    const me_usage both = {true, true};
    const me_fp8_bias bias = me_fp8_row_of(nn)->bias;
    const matrix_size extents = extents_of(x);
    *bias_gradient_out = bias_gradient(nn, x);
    if (bias == ME_FP8_BIAS_BEFORE) {
        sum_rows(nn, x);
    }
    const me_quantized q = create(nn, extents, both, false);
    if (bias == ME_FP8_BIAS_WITHIN) {
        sum_rows(nn, x);
    } else if (bias == ME_FP8_BIAS_FUSED) {
        me_temporary(nn->e, "bgrad_workspace",
                     me_size_mul(4 * extents.columns,
                                 me_div_up(extents.rows, SUM_ROWS)));
    }
    run_quantize(nn, x);
    return q;
}

/** A norm whose kernel writes the model's type, which is quantised then. Where
 *  the largest value is needed TE's kernel finds it, and cuDNN's does not. */
static void normalize_unfused(me_nn *nn, const me_tensor *x, bool is_layer_norm)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const bool needs_amax = me_fp8_row_of(nn)->finds_amax;
    const bool is_cudnn = me_engine_card(e)->te.has_cudnn_norm_forward;
    const bool finds_amax = needs_amax && !is_cudnn;
    me_tensor *amax = finds_amax ? me_scratch(e, "amax", 4) : NULL;
    me_tensor *plain =
        me_empty(e, "norm_unquantized", (me_dtype)x->dtype, x->shape);
    me_tensor *workspace = me_te_norm_kernel(e, x, is_layer_norm);
    if (finds_amax) {
        me_temporary(e, "scale", 4);
    } else if (needs_amax) {
        run_quantize(nn, x);
    }
    me_drop(e, workspace);
    me_drop(e, amax);
    me_drop(e, plain);
    me_leave(e, frame, NULL);
}

me_quantized me_fp8_normalize(me_nn *nn, const me_tensor *x, bool is_layer_norm,
                              me_usage usage, me_te_statistics *statistics_out)
{
    *statistics_out = me_te_norm_statistics(nn->e, x, is_layer_norm);
    const me_quantized q = create(nn, extents_of(x), usage, false);
    if (me_fp8_row_of(nn)->fuses_norm) {
        me_drop(nn->e, me_te_norm_kernel(nn->e, x, is_layer_norm));
    } else {
        normalize_unfused(nn, x, is_layer_norm);
    }
    return q;
}

static matrix_size gathered_extents(const me_nn *nn, const me_tensor *like)
{
    matrix_size x = extents_of(like);
    x.rows = me_size_mul(x.rows, (uint64_t)nn->config->parallel.tensor);
    return x;
}

static void gather(me_nn *nn, me_dtype dtype, uint64_t numel, bool is_async)
{
    me_communicate(nn->e, nn->comm,
                   (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_GATHER, dtype,
                             numel, -1, is_async});
}

/** Elements of one rank's scales. */
static uint64_t scale_numel(const me_fp8_row *row, matrix_size x,
                            bool by_columns)
{
    const me_shape shape =
        row->scale_shape(x.rows, x.columns, by_columns, false);
    return me_shape_numel(&shape);
}

/** The calls of one copy: scales, and then data. */
static void gather_copy(me_nn *nn, const me_tensor *like, bool by_columns,
                        bool is_async)
{
    const me_fp8_row *row = me_fp8_row_of(nn);
    if (row->scale_shape != NULL) {
        gather(nn, row->scale_dtype,
               scale_numel(row, extents_of(like), by_columns), is_async);
    }
    gather(nn, ME_DTYPE_UINT8, me_numel(like), is_async);
}

me_quantized me_fp8_gather(me_nn *nn, const me_tensor *like, me_usage usage,
                           bool is_async, me_fp8_gathering *gathering_out)
{
    const me_fp8_row *row = me_fp8_row_of(nn);
    const matrix_size x = gathered_extents(nn, like);
    *gathering_out = (me_fp8_gathering){NULL, NULL};
    me_quantized q = create(nn, x, usage, false);
    if (row->scale_shape == NULL) { // the part's takes its place
        me_drop(nn->e, q.row_scale);
        q.row_scale = NULL;
    }
    if (usage.rows) {
        if (row->arrives_interleaved) {
            gathering_out->rows = scales(nn, x, false, false);
        }
        gather_copy(nn, like, false, is_async);
    }
    if (usage.columns && !row->gathers_rows) {
        if (row->arrives_interleaved) {
            gathering_out->columns = values(nn, x);
        }
        gather_copy(nn, like, true, is_async);
    }
    return q;
}

void me_fp8_gathered(me_nn *nn, me_fp8_gathering *gathering)
{
    me_drop(nn->e, gathering->rows);
    me_drop(nn->e, gathering->columns);
    *gathering = (me_fp8_gathering){NULL, NULL};
}

me_quantized me_fp8_quantize_and_gather(me_nn *nn, const me_tensor *x)
{
    const bool gathers_rows = me_fp8_row_of(nn)->gathers_rows;
    me_fp8_gathering gathering;
    me_quantized part = me_fp8_quantize(nn, x, (me_usage){true, !gathers_rows});
    me_quantized q =
        me_fp8_gather(nn, x, (me_usage){true, true}, false, &gathering);
    if (gathers_rows) {
        q.row_scale = part.row_scale;
        part.row_scale = NULL;
    }
    me_fp8_drop(nn, &part);
    me_fp8_gathered(nn, &gathering);
    return q;
}

void me_fp8_transpose(me_nn *nn, me_quantized *q, const me_tensor *like)
{
    if (q->columns == NULL && !me_engine_card(nn->e)->has_any_order_fp8) {
        q->columns = values(nn, gathered_extents(nn, like));
    }
}

void me_fp8_drop_rows(me_nn *nn, me_quantized *q)
{
    me_drop(nn->e, q->rows);
    q->rows = NULL;
    if (me_fp8_row_of(nn)->scale_shape != NULL) {
        me_drop(nn->e, q->row_scale);
        q->row_scale = NULL;
    }
}

/** The members in the order in which they go. */
static void in_order(const me_nn *nn, me_quantized *q, me_tensor **ordered[4])
{
    const bool is_one = me_fp8_row_of(nn)->scale_shape == NULL;
    ordered[0] = &q->rows;
    ordered[1] = is_one ? &q->row_scale : &q->columns;
    ordered[2] = is_one ? &q->columns : &q->row_scale;
    ordered[3] = &q->column_scale;
}

me_quantized me_fp8_of_copy(const me_nn *nn, me_tensor *data, me_tensor *scale,
                            bool is_rows)
{
    // Where one number is both copies' scale, it is the rows'.
    const bool is_row_scale = is_rows || me_fp8_row_of(nn)->scale_shape == NULL;
    return (me_quantized){.rows = is_rows ? data : NULL,
                          .columns = is_rows ? NULL : data,
                          .row_scale = is_row_scale ? scale : NULL,
                          .column_scale = is_row_scale ? NULL : scale};
}

void me_fp8_parts(const me_nn *nn, const me_quantized *q, me_tensor **parts_out)
{
    me_quantized copy = *q;
    me_tensor **ordered[4];
    in_order(nn, &copy, ordered);
    for (int i = 0; i < 4; i++) {
        parts_out[i] = *ordered[i];
    }
}

void me_fp8_drop(me_nn *nn, me_quantized *q)
{
    me_tensor **ordered[4];
    in_order(nn, q, ordered);
    for (int i = 0; i < 4; i++) {
        me_drop(nn->e, *ordered[i]);
        *ordered[i] = NULL;
    }
}

void me_fp8_clear(me_nn *nn, me_quantized *q)
{
    me_drop(nn->e, q->rows);
    me_drop(nn->e, q->columns);
    q->rows = NULL;
    q->columns = NULL;
    if (me_fp8_row_of(nn)->scale_shape != NULL) {
        me_fp8_drop(nn, q);
    }
}

me_quantized me_fp8_quantize_weight(me_nn *nn, const me_tensor *weight,
                                    me_usage usage, me_category category)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, category);
    const me_quantized q = create(nn, extents_of(weight), usage, true);
    me_category_set(e, before);
    me_retain(q.rows);
    me_retain(q.columns);
    me_retain(q.row_scale);
    me_retain(q.column_scale);
    me_fp8_requantize_weight(nn, weight);
    me_leave(e, frame, NULL);
    return q;
}

void me_fp8_requantize_weight(me_nn *nn, const me_tensor *weight)
{
    run_quantize(nn, weight);
}

void me_fp8_weight_columns(me_nn *nn, me_quantized *q, const me_tensor *weight)
{
    me_engine *e = nn->e;
    if (q->columns != NULL || q->rows == NULL || !me_engine_is_ok(e) ||
        (me_fp8_row_of(nn)->scale_shape == NULL &&
         me_engine_card(e)->has_any_order_fp8)) {
        return;
    }
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, ME_CATEGORY_BUFFER);
    q->columns = me_retain(values(nn, extents_of(weight)));
    if (me_fp8_row_of(nn)->scale_shape != NULL) {
        q->column_scale = me_retain(scales(nn, extents_of(weight), true, true));
    }
    me_category_set(e, before);
    me_leave(e, frame, NULL);
}
