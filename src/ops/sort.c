/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/sort.h"

#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/launch.h"

enum {
    /** Up to so many elements a row is sorted in place by one block
     *  (aten/native/cuda/Sort.cpp, should_use_small_sort). */
    SMALL_SORT = 4096,
    /** Pairs that one block sorts, with a byte of temporary. */
    SINGLE_TILE = 256 * 9,
    /** Tiles of selections and scans; documented in docs/accounting.md. */
    REDUCE_TILE = 256 * 16, /**< one block sums so many, without partial sums */
    SELECT_TILE = 3584,
    SCAN_TILE = 896,
    LOOK_BACK_PADDING = 32
};

/** Items that a thread block takes. */
static uint64_t tile_of(const me_radix_sort *sort)
{
    const uint64_t threads = 384;
    const uint64_t wide = sort->is_of_keys_alone ? 15 : 12;
    return threads * (sort->key_bytes == 1   ? 9
                      : sort->key_bytes == 4 ? 14
                                             : wide);
}

uint64_t me_radix_sort_bytes(const me_radix_sort *sort)
{
    const uint64_t digits = 256;
    const uint64_t passes = me_div_up(sort->key_bits, 8);
    const uint64_t tiles = me_div_up(sort->items, tile_of(sort));
    uint64_t bytes = passes * digits * 8;
    bytes = me_size_add(bytes, me_size_mul(tiles, digits * 4));
    if (passes > 1) {
        bytes = me_size_add(
            bytes, me_round_up(me_size_mul(sort->key_bytes, sort->items), 256));
        const uint64_t values = sort->is_of_keys_alone ? 0 : sort->items;
        bytes = me_size_add(bytes, me_round_up(me_size_mul(8, values), 256));
    }
    bytes = me_size_add(bytes, me_round_up(passes * 4, 256));
    return me_size_add(bytes, 255);
}

static me_tensor *indices(me_engine *e, const char *op, uint64_t count)
{
    return me_empty(e, op, ME_DTYPE_INT64, ME_SHAPE(count));
}

me_tensor *me_arange(me_engine *e, uint64_t n)
{
    me_tensor *numbers = indices(e, "arange", n);
    me_fill_resized(e, 8);
    return numbers;
}

me_tensor *me_argsort(me_engine *e, const me_tensor *x)
{
    const uint64_t n = me_numel(x);
    const uint64_t key_bytes = me_dtype_bytes((me_dtype)x->dtype);
    me_tensor *values = me_empty(e, "sort", (me_dtype)x->dtype, ME_SHAPE(n));
    me_tensor *positions = indices(e, "sort", n);
    if (n <= SMALL_SORT) {
        me_drop(e, me_arange(e, n));
    } else {
        me_tensor *range = indices(e, "arange", n);
        me_temporary(e, "cub.sort",
                     me_radix_sort_bytes(
                         &(me_radix_sort){n, 8 * key_bytes, key_bytes, false}));
        me_drop(e, range);
    }
    me_launch_kernel(e, ME_KERNEL_INDEX, 0,
                     2 * me_size_add(me_bytes(values), me_bytes(positions)));
    me_drop(e, values);
    return positions;
}

static uint64_t bits_of(uint64_t x)
{
    uint64_t bits = 0;
    while (x > 0) {
        bits++;
        x >>= 1;
    }
    return bits;
}

/** Temporaries of a sort of @p n bytes in @p rows rows that no block sorts by
 *  itself: all of them by value with their places, then by row; or row by row
 *  (SortStable.cu, launch_stable_sort_kernel()). */
static void sort_rows(me_engine *e, uint64_t n, uint64_t rows)
{
    const uint64_t few_rows = 128;
    const uint64_t bytes =
        me_radix_sort_bytes(&(me_radix_sort){n, 8, 1, false});
    const uint64_t n_places = rows < few_rows ? 2 : 1;
    me_tensor *places[2] = {NULL, NULL};
    for (uint64_t i = 0; i < n_places; i++) {
        places[i] = indices(e, "cub.sort", n);
    }
    me_tensor *keys = me_empty(e, "cub.sort", ME_DTYPE_UINT8, ME_SHAPE(n));
    me_temporary(e, "cub.sort", bytes);
    me_drop(e, keys);
    if (rows < few_rows) {
        const me_radix_sort by_row = {n, bits_of(rows), 8,
                                      .is_of_keys_alone = true};
        me_temporary(e, "cub.sort", me_radix_sort_bytes(&by_row));
    }
    for (uint64_t i = n_places; i > 0; i--) {
        me_drop(e, places[i - 1]);
    }
}

me_tensor *me_argsort_rows(me_engine *e, const me_tensor *x)
{
    const uint64_t n = me_numel(x);
    const uint64_t columns = me_dim(x, -1);
    me_tensor *values = me_empty(e, "sort", ME_DTYPE_UINT8, x->shape);
    me_tensor *positions = me_empty(e, "sort", ME_DTYPE_INT64, x->shape);
    if (columns <= SMALL_SORT) {
        me_drop(e, me_arange(e, columns));
    } else {
        sort_rows(e, n, n / columns);
    }
    me_launch_kernel(e, ME_KERNEL_INDEX, 0,
                     2 * me_size_add(me_bytes(values), me_bytes(positions)));
    me_drop(e, values);
    return positions;
}

/** Numbers of elements from indices of one dimension: `index.remainder(size) *
 *  stride`, two operations. */
static me_tensor *linear_index(me_engine *e, uint64_t n)
{
    me_tensor *remainder = indices(e, "remainder", n);
    me_tensor *linear = indices(e, "linear_index", n);
    me_drop(e, remainder);
    return linear;
}

/** Sort what linear_index() made with its positions, all given back after it. */
static void sort_linear(me_engine *e, uint64_t n, uint64_t range)
{
    me_tensor *sorted = indices(e, "index_put.sorted", n);
    me_tensor *original = indices(e, "index_put.positions", n);
    me_tensor *positions = me_arange(e, n);
    const me_radix_sort sort = {n, range > 1 ? bits_of(range - 1) : 1, 8,
                                false};
    me_temporary(e, "cub.sort",
                 n > SINGLE_TILE ? me_radix_sort_bytes(&sort) : 1);
    me_drop(e, positions);
    me_drop(e, original);
    me_drop(e, sorted);
}

void me_index_accumulate(me_engine *e, uint64_t n, uint64_t range,
                         const me_tensor *values)
{
    me_tensor *linear = linear_index(e, n);
    me_tensor *dense =
        values == NULL || me_tensor_is_contiguous(values)
            ? NULL
            : me_empty_inside(e, "contiguous", (me_dtype)values->dtype,
                              values->shape);
    sort_linear(e, n, range);
    me_drop(e, dense);
    me_drop(e, linear);
}

/** `_assert_async(index.max() < size)`, and of the least: a maximum, and a flag.
 *  Of what is not dense a copy is read. */
static void check_index(me_engine *e, uint64_t n, bool is_dense)
{
    for (int i = 0; i < 2; i++) {
        me_tensor *bound = indices(e, "max", 1);
        if (!is_dense) {
            me_drop(e, indices(e, "contiguous", n));
        }
        me_reduce(e, &(me_reduction){
                         .inputs = n,
                         .outputs = 1,
                         .element_bytes = 8,
                         .accumulator_bytes = 8,
                     });
        me_temporary(e, "lt", 1);
        me_drop(e, bound);
    }
}

void me_index_put_rows(me_engine *e, uint64_t n, uint64_t range)
{
    check_index(e, n, true);
    me_index_accumulate(e, n, range, NULL);
}

void me_index_put_pairs(me_engine *e, uint64_t n, uint64_t range,
                        bool has_spread_rows)
{
    check_index(e, n, !has_spread_rows);
    me_tensor *linear = linear_index(e, n);
    check_index(e, n, true);
    me_drop(e, linear_index(e, n)); // added in place
    sort_linear(e, n, range);
    me_drop(e, linear);
}

me_tensor *me_nonzero(me_engine *e, uint64_t n, uint64_t selected)
{
    const me_card *card = me_engine_card(e);
    me_tensor *count = me_scratch(e, "nonzero.count", 4);
    // Partial sums of five blocks for each of eight that fit an SM.
    const uint64_t blocks = UINT64_C(8) * 5 * card->multiprocessors;
    me_temporary(e, "cub.reduce",
                 n <= REDUCE_TILE ? 1 : me_round_up(4 * blocks, 256) + 255);
    me_tensor *found =
        me_empty(e, "nonzero", ME_DTYPE_INT64, ME_SHAPE(selected, 2));
    me_fill_resized(e, 8);
    const uint64_t tiles = me_div_up(n, SELECT_TILE) + LOOK_BACK_PADDING;
    me_temporary(e, "cub.select",
                 me_size_add(me_round_up(me_size_mul(8, tiles), 256), 511));
    me_drop(e, count);
    return found;
}

void me_mask_prefix_sum(me_engine *e, uint64_t n)
{
    me_tensor *sums = indices(e, "mask_prefix_sum", n);
    const uint64_t tiles = me_div_up(n, SCAN_TILE) + LOOK_BACK_PADDING;
    me_temporary(e, "cub.scan",
                 me_size_add(me_round_up(me_size_mul(16, tiles), 256), 511));
    me_drop(e, sums);
}
