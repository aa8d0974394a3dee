/**
 * @file
 * Shapes and strides, in elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_SHAPE_H
#define MEMEST_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_MAX_DIMS = 5
};

/** Extents of a tensor, outermost first. */
typedef struct me_shape {
    int32_t ndim;
    uint64_t dim[ME_MAX_DIMS];
} me_shape;

/** ME_SHAPE(s, b, h): a shape from its extents; ME_SCALAR: no dimension. */
#define ME_SHAPE(...)                                                          \
    ((me_shape){.ndim = (int32_t)(sizeof((uint64_t[]){__VA_ARGS__}) /          \
                                  sizeof(uint64_t)),                           \
                .dim = {__VA_ARGS__}})
#define ME_SCALAR ((me_shape){.ndim = 0})

/** Elements; ME_SIZE_INVALID if they do not fit into 64 bits. */
uint64_t me_shape_numel(const me_shape *shape);

/** Same number of dimensions and same extents? */
bool me_shape_equal(const me_shape *a, const me_shape *b);

/** @p shape with @p last as its last dimension; without dimensions as it is. */
me_shape me_shape_with_last(const me_shape *shape, uint64_t last);

/** Strides of a dense row-major tensor of @p shape. */
void me_strides_contiguous(const me_shape *shape, uint64_t *strides_out);

/**
 * Dense strides in the order of @p strides: what PyTorch gives the output of
 * an element-wise operation (TensorIterator) and `empty_like`.
 */
void me_strides_like(const me_shape *shape, const uint64_t *strides,
                     uint64_t *strides_out);

/** Row-major without holes; extents of 1 do not count, as in PyTorch. */
bool me_is_contiguous(const me_shape *shape, const uint64_t *strides);

/** Some permutation of it is contiguous. */
bool me_is_dense(const me_shape *shape, const uint64_t *strides);

/**
 * Strides that show the same memory as @p to, if there are any (PyTorch's
 * rule for `view`).
 *
 * @return false when the elements would have to be copied
 */
bool me_strides_reshape(const me_shape *from, const uint64_t *strides,
                        const me_shape *to, uint64_t *strides_out);

/**
 * The shape that @p n extents of a `view(…)` mean, of which one may be -1: what
 * the others leave (PyTorch's infer_size()).
 *
 * @param n  at most ME_MAX_DIMS
 * @return false: the elements do not fill it
 */
bool me_shape_infer(const int64_t *sizes, uint32_t n, uint64_t numel,
                    me_shape *shape_out);

/** PyTorch's rule of broadcasting: extents are matched from the last on, and 1
 *  goes with any. @return false: these two do not go together */
bool me_shape_broadcast(const me_shape *a, const me_shape *b,
                        me_shape *shape_out);

/** A tensor's shape and strides. */
typedef struct me_extents {
    const me_shape *shape;
    const uint64_t *strides;
} me_extents;

/**
 * Strides of the result of an element-wise operation on two operands: dense, in
 * the order of their strides, of which the first operand's count first and those
 * of what is broadcast do not (TensorIterator::reorder_dimensions()).
 *
 * @param shape  what they broadcast to
 */
void me_strides_broadcast(const me_shape *shape, const me_extents *a,
                          const me_extents *b, uint64_t *strides_out);

enum {
    ME_SHAPE_TEXT = 128
};

/** "(8, 1024)" as Python prints it; "()" of a scalar. */
void me_shape_text(const me_shape *shape, char text_out[ME_SHAPE_TEXT]);

#endif /* MEMEST_TENSOR_SHAPE_H */
