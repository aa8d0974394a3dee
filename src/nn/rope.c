/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/rope.h"

#include "ops/elementwise.h"
#include "ops/view.h"

static me_tensor *floats(me_engine *e, const char *op, uint64_t n)
{
    return me_empty(e, op, ME_DTYPE_FLOAT32, ME_SHAPE(n));
}

/** 1 / base ** (arange(0, dim, 2) / dim). */
void me_rope_create(me_nn *nn, me_rope *rope)
{
    me_engine *e = nn->e;
    const uint64_t n = nn->config->rotary_size / 2;
    const me_category category = me_category_set(e, ME_CATEGORY_BUFFER);
    const me_frame frame = me_enter(e);
    me_tensor *range = floats(e, "arange", n);
    me_tensor *exponent = floats(e, "div", n);
    me_drop(e, range);
    me_tensor *power = floats(e, "pow", n);
    me_drop(e, me_scratch(e, "base", 8));
    me_drop(e, exponent);
    me_tensor *reciprocal = floats(e, "reciprocal", n);
    rope->inverse_frequencies = me_retain(floats(e, "mul", n));
    me_drop(e, reciprocal);
    me_drop(e, power);
    me_leave(e, frame, NULL);
    me_category_set(e, category);
}

void me_rope_fini(me_engine *e, me_rope *rope)
{
    me_clear(e, &rope->inverse_frequencies);
    me_clear(e, &rope->table);
}

me_tensor *me_rope_table(me_nn *nn, me_rope *rope)
{
    me_engine *e = nn->e;
    if (rope->table != NULL || !me_engine_is_ok(e)) {
        return rope->table;
    }
    const uint64_t s = nn->config->seq_length;
    const uint64_t n = nn->config->rotary_size / 2;
    const me_category category = me_category_set(e, ME_CATEGORY_BUFFER);
    const me_frame frame = me_enter(e);
    me_tensor *range = floats(e, "arange", s);
    me_tensor *positions = floats(e, "add", s);
    me_drop(e, range);
    me_tensor *angles =
        me_empty(e, "outer", ME_DTYPE_FLOAT32, ME_SHAPE(s, n)); // (s, n)
    me_drop(e, positions);
    rope->table = me_retain(
        me_empty(e, "cat", ME_DTYPE_FLOAT32, ME_SHAPE(s, 1, 1, 2 * n)));
    me_drop(e, angles);
    me_leave(e, frame, NULL);
    me_category_set(e, category);
    return rope->table;
}

/** cat(−second half, first half) of the last dimension. */
static me_tensor *rotate_half(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    const uint64_t half = me_dim(x, -1) / 2;
    me_tensor *parts[2] = {NULL, NULL};
    me_split_last(e, x, 2, (uint64_t[]){half, half}, parts);
    me_tensor *minus = me_neg(e, parts[1]);         // (s, b, a, d/2)
    me_tensor *y = me_cat_last(e, minus, parts[0]); // (s, b, a, d)
    me_drop(e, minus);
    return me_leave(e, frame, y);
}

/** A function of the angles, times mscale, in the dtype of the heads. */
static me_tensor *angle_factor(me_engine *e, const char *op, me_tensor *angles,
                               me_dtype dtype)
{
    const me_frame frame = me_enter(e);
    me_tensor *f =
        me_pointwise(e, op, angles, ME_DTYPE_FLOAT32); // (s, 1, 1, d)
    me_tensor *scaled = me_mul_number(e, f);
    me_drop(e, f);
    return me_leave(e, frame, me_cast(e, scaled, dtype));
}

/** Even columns, then odd ones. */
static me_tensor *deinterleave(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_tensor *even = me_every_second(e, x, 0);
    me_tensor *odd = me_every_second(e, x, 1);
    return me_leave(e, frame, me_cat_last(e, even, odd));
}

me_tensor *me_apply_rotary(me_nn *nn, me_tensor *t, me_tensor *angles,
                           bool mla_rotary_interleaved)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const uint64_t rotary = nn->config->rotary_size;
    me_tensor *turning = me_slice(e, t, -1, 0, rotary);
    me_tensor *passing = me_slice(e, t, -1, rotary, me_dim(t, -1));
    if (mla_rotary_interleaved) {
        turning = me_rebind(e, turning, deinterleave(e, turning));
    }
    me_tensor *cos = angle_factor(e, "cos", angles, t->dtype);
    me_tensor *sin = angle_factor(e, "sin", angles, t->dtype);

    me_tensor *straight = me_mul(e, turning, cos); // (s, b, a, d)
    me_tensor *half = rotate_half(e, turning);
    me_tensor *turned = me_mul(e, half, sin);
    me_drop(e, half);
    me_tensor *sum = me_add(e, straight, turned);
    me_drop(e, straight);
    me_drop(e, turned);
    turning = me_rebind(e, turning, sum);
    return me_leave(e, frame, me_cat_last(e, turning, passing));
}
