/**
 * @file
 * FP8 of Transformer Engine: quantised tensors, and the recipes by which they
 * are made (pytorch/tensor, csrc/quantizer.cpp). On Hopper products take both
 * operands with the summed dimension contiguous, so that a tensor has two
 * copies: by rows for the forward's and the input gradient's product, by
 * columns for a weight's gradient; a weight's columns are for the input
 * gradient.
 *
 * Left out: FP4, quantizers of the user's own, FP8 inside of attention, which
 * no flag of Megatron-LM turns on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_FP8_H
#define MEMEST_NN_MEGATRON_TE_FP8_H

#include "nn/nn.h"
#include "ops/te_norm.h"
#include "tensor/kind.h"
#include "tensor/launch.h"

/** A quantised tensor; a member that it does not have is NULL. */
typedef struct me_quantized {
    me_tensor *rows;         /**< the values, a byte each */
    me_tensor *columns;      /**< the values transposed */
    me_tensor *row_scale;    /**< numbers that values are multiplied by */
    me_tensor *column_scale; /**< NULL where one number is both copies' */
} me_quantized;

/** The kind of a parameter that is kept quantised: its tensor says the shape
 *  and the type that it stands for, and has no memory of its own. */
typedef struct me_quantized_kind {
    me_kind kind;
    me_quantized *held; /**< owned */
} me_quantized_kind;

/** The quantised data of a parameter, or NULL: it is a plain one. */
me_quantized *me_quantized_of(const me_parameter *parameter);

/** Which copies. */
typedef struct me_usage {
    bool rows;
    bool columns;
} me_usage;

/** When a bias's gradient is summed of what is quantised. */
typedef enum me_fp8_bias {
    ME_FP8_BIAS_FUSED,  /**< by the kernel that quantises */
    ME_FP8_BIAS_WITHIN, /**< once the quantised tensor has its memory */
    ME_FP8_BIAS_BEFORE
} me_fp8_bias;

/** A recipe, one row each of Megatron-LM's `--fp8-recipe`. */
typedef struct me_fp8_row {
    bool has_state; /**< modules keep histories of largest values, and scales */
    bool scale_is_first; /**< a tensor's one scale is made before its data */
    bool finds_amax;     /**< the largest value and the scale are a moment's */
    bool
        fuses_norm; /**< norms write FP8 themselves; else in the model's type */
    me_fp8_bias bias;
    bool gathers_rows; /**< columns cannot be gathered over ranks */
    bool
        arrives_interleaved; /**< scales of rows and data of columns do, and are
                                   put in order by a copy */
    bool projection_saves_input; /**< attention's, as it is */
    bool remakes_weights; /**< a cached one that lacks columns is made anew */
    me_dtype scale_dtype;
    /** Extents of the scales of an R x C tensor; NULL: one number. */
    me_shape (*scale_shape)(uint64_t rows, uint64_t columns, bool by_columns,
                            bool is_weight);
} me_fp8_row;

/** The job's; static. */
const me_fp8_row *me_fp8_row_of(const me_nn *nn);

/** What products of quantised operands multiply. */
me_operands me_fp8_operands(const me_nn *nn);

/** @p x quantised. @return new variables, as in all functions that quantise */
me_quantized me_fp8_quantize(me_nn *nn, const me_tensor *x, me_usage usage);

/** split_quantize(): parts of @p counts rows of @p x. */
void me_fp8_split_quantize(me_nn *nn, const me_tensor *x, uint32_t count,
                           const uint64_t *counts, me_usage usage,
                           me_quantized *parts_out);

/** @p x quantised both ways, and the gradient of the bias whose output's @p x is:
 *  bgrad_quantize(). */
me_quantized me_fp8_quantize_with_bias(me_nn *nn, const me_tensor *x,
                                       me_tensor **bias_gradient_out);

/** The normalised @p x, quantised. */
me_quantized me_fp8_normalize(me_nn *nn, const me_tensor *x, bool is_layer_norm,
                              me_usage usage, me_te_statistics *statistics_out);

/** What a gathering needs until it has arrived; the caller drops it then. */
typedef struct me_fp8_gathering {
    me_tensor *rows;    /**< scales as they arrive, or NULL */
    me_tensor *columns; /**< data as they arrive, or NULL */
} me_fp8_gathering;

/** @p part, quantised of the shape of @p like, of all tensor ranks; their
 *  scale of one number is the part's. */
me_quantized me_fp8_gather(me_nn *nn, const me_tensor *like, me_usage usage,
                           bool is_async, me_fp8_gathering *gathering_out);

/** A gathering has arrived. */
void me_fp8_gathered(me_nn *nn, me_fp8_gathering *gathering);

/** @p x quantised and gathered, both ways. */
me_quantized me_fp8_quantize_and_gather(me_nn *nn, const me_tensor *x);

/** The columns of what was gathered by rows. */
void me_fp8_transpose(me_nn *nn, me_quantized *q, const me_tensor *like);

/** The running frame lets go of the rows, and of scales that are theirs alone. */
void me_fp8_drop_rows(me_nn *nn, me_quantized *q);

/** One copy, by rows or by columns, with its scale, as a quantised tensor. */
me_quantized me_fp8_of_copy(const me_nn *nn, me_tensor *data, me_tensor *scale,
                            bool is_rows);

/** Its tensors in the order of the Python object's attributes; 4 of them, of which
 *  some may be NULL. */
void me_fp8_parts(const me_nn *nn, const me_quantized *q,
                  me_tensor **parts_out);

/** It lets go of all, in that order. */
void me_fp8_drop(me_nn *nn, me_quantized *q);

/** clear() of it: its data, and scales unless they are one number. */
void me_fp8_clear(me_nn *nn, me_quantized *q);

/** @name Weights, which another holder than a frame has
 *  @{ */
/** A weight (outputs, inputs) quantised. */
me_quantized me_fp8_quantize_weight(me_nn *nn, const me_tensor *weight,
                                    me_usage usage, me_category category);
/** It is quantised again, into the memory that it has. */
void me_fp8_requantize_weight(me_nn *nn, const me_tensor *weight);
/** update_usage(): columns are made of rows, if there are none. */
void me_fp8_weight_columns(me_nn *nn, me_quantized *q, const me_tensor *weight);
/** The columns go. */
void me_fp8_release_columns(me_engine *e, me_quantized *q);
/** All of it goes. */
void me_fp8_release(me_engine *e, me_quantized *q);
/** @} */

#endif /* MEMEST_NN_MEGATRON_TE_FP8_H */
