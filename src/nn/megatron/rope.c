/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/rope.h"

#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/view.h"
#include "tensor/launch.h"

#include <string.h>

enum {
    LATENT_YARN_POSITIONS = 4096 /**< original_max_position_embeddings, which no
                                      flag changes with latents */
};

static me_tensor *floats(me_engine *e, const char *op, uint64_t n)
{
    return me_empty(e, op, ME_DTYPE_FLOAT32, ME_SHAPE(n));
}

static me_tensor *range_of(me_engine *e, uint64_t n)
{
    me_tensor *range = floats(e, "arange", n);
    me_fill_resized(e, 4);
    return range;
}

/** A number over them: the reciprocal, then the product. */
static me_tensor *number_over(me_engine *e, uint64_t n)
{
    me_tensor *reciprocal = floats(e, "reciprocal", n);
    me_tensor *y = floats(e, "mul", n);
    me_drop(e, reciprocal);
    return y;
}

/** 1 / base ** (arange(0, dim, 2) / dim); the power may be scaled, for yarn. */
static me_tensor *make_frequencies(me_engine *e, uint64_t n, bool is_scaled)
{
    const me_frame frame = me_enter(e);
    me_tensor *range = range_of(e, n);
    me_tensor *exponent = floats(e, "div", n);
    me_drop(e, range);
    me_tensor *power = floats(e, "pow", n);
    me_temporary(e, "base", 8);
    me_drop(e, exponent);
    if (is_scaled) {
        power = me_rebind(e, power, floats(e, "mul", n));
    }
    me_tensor *y = number_over(e, n);
    me_drop(e, power);
    return me_leave(e, frame, y);
}

/** Comparisons of wavelengths with both ends of a range, of neither. */
static me_tensor *is_between(me_engine *e, uint64_t n)
{
    static const char *const ends[2] = {"lt", "gt"};
    const me_frame frame = me_enter(e);
    me_tensor * not [2];
    for (int i = 0; i < 2; i++) {
        me_tensor *beyond = me_scratch(e, ends[i], n);
        not [i] = me_scratch(e, "bitwise_not", n);
        me_drop(e, beyond);
    }
    me_tensor *y = me_scratch(e, "mul", n);
    me_drop(e, not [0]);
    me_drop(e, not [1]);
    return me_leave(e, frame, y);
}

/** (1 - smooth) * frequencies / factor + smooth * frequencies. */
static me_tensor *interpolate(me_engine *e, uint64_t n)
{
    const me_frame frame = me_enter(e);
    me_tensor *low = floats(e, "rsub", n);
    low = me_rebind(e, low, floats(e, "mul", n));
    low = me_rebind(e, low, floats(e, "div", n));
    me_tensor *high = floats(e, "mul", n);
    me_tensor *y = floats(e, "add", n);
    me_drop(e, low);
    me_drop(e, high);
    return me_leave(e, frame, y);
}

/** RotaryEmbedding._apply_scaling(); its variables live until it returns. */
static me_tensor *scale_frequencies(me_engine *e, uint64_t n)
{
    const me_frame frame = me_enter(e);
    (void)number_over(e, n); // wavelen
    me_tensor *is_long = me_scratch(e, "gt", n);
    me_tensor *divided = floats(e, "div", n);
    me_tensor *y = floats(e, "where", n);
    me_drop(e, is_long);
    me_drop(e, divided);
    me_tensor *smooth = number_over(e, n);
    smooth = me_rebind(e, smooth, floats(e, "sub", n));
    (void)me_rebind(e, smooth, floats(e, "div", n));
    (void)interpolate(e, n);
    (void)is_between(e, n);
    y = me_rebind(e, y, floats(e, "where", n));
    return me_leave(e, frame, y);
}

/** _yarn_linear_ramp_mask(). */
static me_tensor *yarn_ramp(me_engine *e, uint64_t n)
{
    const me_frame frame = me_enter(e);
    me_tensor *range = range_of(e, n);
    me_tensor *shifted = floats(e, "sub", n);
    me_drop(e, range);
    me_tensor *linear = floats(e, "div", n);
    me_drop(e, shifted);
    me_tensor *ramp = floats(e, "clamp", n);
    me_drop(e, linear);
    return me_leave(e, frame, ramp);
}

/** Positions times frequencies, (s, n), which twice beside each other are the
 *  angles. */
static me_tensor *angles_of(me_engine *e, uint64_t s, uint64_t n,
                            me_tensor **positions_out)
{
    me_tensor *range = range_of(e, s);
    *positions_out = floats(e, "add", s);
    me_drop(e, range);
    return me_empty(e, "outer", ME_DTYPE_FLOAT32, ME_SHAPE(s, n));
}

static me_tensor *twice(me_engine *e, uint64_t s, uint64_t n)
{
    return me_empty(e, "cat", ME_DTYPE_FLOAT32, ME_SHAPE(s, 1, 1, 2 * n));
}

/** RotaryEmbedding.forward: (s, 1, 1, 2n). */
static me_tensor *rope_forward(me_engine *e, uint64_t s, uint64_t n)
{
    const me_frame frame = me_enter(e);
    me_tensor *positions = NULL;
    me_tensor *angles = angles_of(e, s, n, &positions);
    me_drop(e, positions);
    me_tensor *y = twice(e, s, n);
    me_drop(e, angles);
    return me_leave(e, frame, y);
}

/** YarnRotaryEmbedding.get_emb: its variables live until it returns. */
static me_tensor *yarn_forward(me_engine *e, uint64_t s, uint64_t n)
{
    const me_frame frame = me_enter(e);
    me_tensor *ramp = yarn_ramp(e, n);
    floats(e, "rsub", n); // inv_freq_mask
    me_drop(e, ramp);
    me_tensor *rest = floats(e, "rsub", n);
    me_tensor *inter = floats(e, "mul", n);
    me_drop(e, rest);
    me_tensor *extra = floats(e, "mul", n);
    floats(e, "add", n); // inv_freq
    me_drop(e, inter);
    me_drop(e, extra);
    me_tensor *positions = NULL;
    angles_of(e, s, n, &positions);
    return me_leave(e, frame, twice(e, s, n));
}

static bool is_yarn(const me_nn *nn)
{
    const me_model_config *m = &nn->config->model;
    return m->multi_latent_attention
               ? m->rope_type == ME_ROPE_TYPE_YARN
               : m->position_embedding == ME_POSITION_YARN;
}

/** That of the model's own embedding; layers with latents have theirs without. */
static bool has_scaling(const me_nn *nn)
{
    const me_model_config *m = &nn->config->model;
    return m->use_rope_scaling && !m->multi_latent_attention && !is_yarn(nn);
}

/** get_pos_emb_on_this_cp_rank(): the rows of this rank's two chunks. */
static me_tensor *take_rows(me_nn *nn, me_tensor *table)
{
    me_engine *e = nn->e;
    const uint64_t ranks = (uint64_t)nn->comm->size[ME_GROUP_CONTEXT];
    if (ranks <= 1 || !me_engine_is_ok(e)) {
        return table;
    }
    me_tensor *index = me_empty(e, "cuda", ME_DTYPE_INT64, ME_SHAPE(2));
    me_tensor *y = me_select_chunks(e, table, 0, me_dim(table, 0) / ranks);
    me_drop(e, index);
    me_drop(e, table);
    return y;
}

/** Positions whose angles yarn's module makes when it is made itself. */
static uint64_t first_positions(const me_model_config *m)
{
    return m->multi_latent_attention ? LATENT_YARN_POSITIONS
                                     : m->yarn_positions;
}

/** YarnRotaryEmbedding._set_cos_sin_cache(), which only a fused kernel reads. */
static void set_cos_sin_cache(me_nn *nn, uint64_t n, me_tensor **cached_out)
{
    me_engine *e = nn->e;
    static const char *const functions[2] = {"cos", "sin"};
    const uint64_t positions = first_positions(&nn->config->model);
    me_tensor *angles = take_rows(nn, yarn_forward(e, positions, n));
    for (int i = 0; i < 2; i++) {
        me_tensor *f = me_pointwise(e, functions[i], angles, ME_DTYPE_FLOAT32);
        cached_out[i] = me_retain(me_mul_number(e, f));
        me_buffer_register(nn, &cached_out[i], false);
        me_drop(e, f);
    }
    me_drop(e, angles);
}

void me_rope_create(me_nn *nn, me_rope *rope)
{
    me_engine *e = nn->e;
    const uint64_t n = nn->config->model.rotary_size / 2;
    const me_category category = me_category_set(e, ME_CATEGORY_BUFFER);
    const me_frame frame = me_enter(e);
    for (int i = 0; i < 2 && is_yarn(nn); i++) {
        rope->yarn[i] = me_retain(make_frequencies(e, n, i == 1));
    }
    rope->inverse_frequencies = me_retain(make_frequencies(e, n, false));
    if (has_scaling(nn)) {
        me_tensor *scaled = scale_frequencies(e, n);
        me_assign(e, &rope->inverse_frequencies, scaled);
    }
    if (is_yarn(nn)) {
        set_cos_sin_cache(nn, n, rope->yarn + 2);
    }
    me_leave(e, frame, NULL);
    me_category_set(e, category);
    if (nn->rope_cache != NULL) {
        nn->rope_cache->n_created++;
    }
}

/** What modules keep until another micro-batch comes, if the rank has more tables
 *  than it keeps; else it is there for ever, and no micro-batch's to let go of. */
static void set_table(me_engine *e, me_rope *rope, me_tensor *table)
{
    if (rope->is_forgotten) {
        me_attribute_set(e, &rope->table, table);
    } else {
        me_clear(e, &rope->table);
        rope->table = me_retain(table);
    }
}

void me_rope_fini(me_engine *e, me_rope *rope)
{
    me_clear(e, &rope->inverse_frequencies);
    set_table(e, rope, NULL);
    for (int i = 0; i < 4; i++) {
        me_clear(e, &rope->yarn[i]);
    }
}

/** The embedding is the one used last; the one used longest ago is forgotten
 *  where there is no room. */
static void touch(me_engine *e, me_rope_cache *cache, me_rope *rope)
{
    int at = 0;
    while (at < cache->count && cache->ropes[at] != rope) {
        at++;
    }
    cache->n_touched++;
    if (at == ME_ROPE_CACHE_SIZE) {
        set_table(e, cache->ropes[--at], NULL);
    } else if (at == cache->count) {
        cache->count++;
    }
    for (; at > 0; at--) {
        cache->ropes[at] = cache->ropes[at - 1];
    }
    cache->ropes[0] = rope;
}

bool me_rope_caches_are_alike(const me_rope_cache *a, const me_rope_cache *b)
{
    bool is_alike = a->count == b->count;
    for (int i = 0; is_alike && i < a->count; i++) {
        is_alike = a->ropes[i] == b->ropes[i];
    }
    return is_alike || (a->n_created <= ME_ROPE_CACHE_SIZE &&
                        b->n_created <= ME_ROPE_CACHE_SIZE);
}

void me_rope_cache_order(me_rope_cache *cache, const me_rope_cache *after)
{
    memcpy(cache->ropes, after->ropes, sizeof cache->ropes);
    cache->count = after->count;
}

/** The angles of all of the sequence, or of the rank's rows. */
static me_tensor *make_table(me_nn *nn)
{
    const me_frame frame = me_enter(nn->e);
    const uint64_t s = nn->config->model.seq_length;
    const uint64_t n = nn->config->model.rotary_size / 2;
    me_tensor *all =
        is_yarn(nn) ? yarn_forward(nn->e, s, n) : rope_forward(nn->e, s, n);
    return me_leave(nn->e, frame, take_rows(nn, all));
}

me_tensor *me_rope_table(me_nn *nn, me_rope *rope)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    if (rope->table == NULL) {
        const me_category category = me_category_set(e, ME_CATEGORY_BUFFER);
        const me_frame frame = me_enter(e);
        rope->is_forgotten = nn->rope_cache != NULL &&
                             nn->rope_cache->n_created > ME_ROPE_CACHE_SIZE;
        set_table(e, rope, make_table(nn));
        me_leave(e, frame, NULL);
        me_category_set(e, category);
    }
    if (nn->rope_cache != NULL) {
        touch(e, nn->rope_cache, rope);
    }
    return rope->table;
}

void me_rope_cos_sin(me_nn *nn, me_rope *rope)
{
    me_engine *e = nn->e;
    static const char *const functions[2] = {"cos", "sin"};
    const me_model_config *m = &nn->config->model;
    const me_dtype dtype = nn->config->train.params_dtype;
    if (rope->is_cached || !me_engine_is_ok(e)) {
        return;
    }
    if (dtype == ME_DTYPE_FLOAT32 && m->seq_length <= first_positions(m)) {
        return; // what the module was made with
    }
    const me_tensor *angles = me_rope_table(nn, rope);
    const me_category category = me_category_set(e, ME_CATEGORY_BUFFER);
    const me_frame frame = me_enter(e);
    for (int i = 0; i < 2; i++) {
        me_tensor *f = me_pointwise(e, functions[i], angles, ME_DTYPE_FLOAT32);
        me_tensor *scaled = me_mul_number(e, f);
        me_drop(e, f);
        me_tensor *cached = me_rebind(e, scaled, me_cast(e, scaled, dtype));
        me_assign(e, &rope->yarn[2 + i], cached);
        me_drop(e, cached);
    }
    me_leave(e, frame, NULL);
    me_category_set(e, category);
    rope->is_cached = true;
}

/** cat(−second half, first half) of the last dimension; or, @p is_interleaved,
 *  stack(−odd, even) columns, of which the copy is as large. */
static me_tensor *rotate_half(me_engine *e, me_tensor *x, bool is_interleaved)
{
    const me_frame frame = me_enter(e);
    const uint64_t half = me_dim(x, -1) / 2;
    me_tensor *parts[2] = {NULL, NULL};
    if (is_interleaved) {
        parts[0] = me_every_second(e, x, 0);
        parts[1] = me_every_second(e, x, 1);
    } else {
        me_split_last(e, x, 2, (uint64_t[]){half, half}, parts);
    }
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
    const uint64_t rotary = nn->config->model.rotary_size;
    me_launch_host(e, ME_HOST_ROTARY);
    me_tensor *turning = me_slice(e, t, -1, 0, rotary);
    me_tensor *passing = me_slice(e, t, -1, rotary, me_dim(t, -1));
    if (mla_rotary_interleaved) {
        turning = me_rebind(e, turning, deinterleave(e, turning));
    }
    me_tensor *cos = angle_factor(e, "cos", angles, t->dtype);
    me_tensor *sin = angle_factor(e, "sin", angles, t->dtype);

    me_tensor *straight = me_mul(e, turning, cos); // (s, b, a, d)
    me_tensor *half =
        rotate_half(e, turning, nn->config->model.rotary_interleaved);
    me_tensor *turned = me_mul(e, half, sin);
    me_drop(e, half);
    me_tensor *sum = me_add(e, straight, turned);
    me_drop(e, straight);
    me_drop(e, turned);
    turning = me_rebind(e, turning, sum);
    return me_leave(e, frame, me_cat_last(e, turning, passing));
}
