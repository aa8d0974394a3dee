/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/launch.h"
#include "train/optim/fused_optimizer.h"

/* FusedAdam with states in types of their own: where its kernel cannot read a
 * type, all states of a group exist in float32 as well while it is stepped
 * (optimizers/fused_adam.py). */

static const char *const state_names[ME_ADAM_STATES] = {
    [ME_ADAM_EXP_AVG] = "exp_avg",
    [ME_ADAM_EXP_AVG_SQ] = "exp_avg_sq",
    [ME_ADAM_MASTER] = "master_param",
};

/** What goes with a state: of FP8 its quantizer's scale and largest value, the
 *  inverse scale and the transpose, and the optimizer's own scale. A main
 *  parameter has the last of them alone. */
typedef enum extra {
    FP8_SCALE,
    FP8_AMAX,
    FP8_INVERSE,
    FP8_TRANSPOSE,
    OWN_SCALE,
    EXTRAS
} extra;

static me_tensor **find_extra(me_shard_state *s, me_adam_state state,
                              extra which)
{
    const int first = (int)state * EXTRAS;
    return &s->extras[state == ME_ADAM_MASTER ? first : first + (int)which];
}

/** Is the main parameter kept as the 16 bits that bfloat16 leaves out of it? */
static bool keeps_remainder(const me_precision_aware *a)
{
    return a->params_dtype == ME_DTYPE_BFLOAT16 &&
           a->dtypes[ME_ADAM_MASTER] == ME_DTYPE_FLOAT32;
}

/** A scalar, or FP8's transpose, that goes with a state; it takes the place of
 *  one before. */
static void keep_extra(me_engine *e, me_shard_state *s, me_adam_state state,
                       extra which, const char *op, uint64_t numel)
{
    const me_dtype dtype =
        which == FP8_TRANSPOSE ? ME_DTYPE_UINT8 : ME_DTYPE_FLOAT32;
    me_tensor *made = me_make_state(e, op, dtype, ME_SHAPE(numel));
    me_tensor **kept = find_extra(s, state, which);
    me_release(e, *kept);
    *kept = made;
    s->n_extras = ME_STATE_EXTRAS;
}

static void keep_scale(me_engine *e, me_shard_state *s, me_adam_state state,
                       me_dtype dtype)
{
    if (dtype != ME_DTYPE_FLOAT32) {
        keep_extra(e, s, state, OWN_SCALE, "scale", 1);
    }
}

/** A Float8Tensor of zeros: data, and a transpose, quantized from a float32
 *  copy of uint8 zeros, which go last. */
static void make_fp8(me_engine *e, me_shard_state *s, me_adam_state state)
{
    const me_frame frame = me_enter(e);
    me_tensor *data =
        me_empty(e, state_names[state], ME_DTYPE_UINT8, ME_SHAPE(s->numel));
    keep_extra(e, s, state, FP8_SCALE, "scale", 1);
    keep_extra(e, s, state, FP8_AMAX, "amax", 1);
    keep_extra(e, s, state, FP8_INVERSE, "scale_inv", 1);
    s->moments[state] = me_make_state(e, state_names[state], ME_DTYPE_UINT8,
                                      ME_SHAPE(s->numel));
    keep_extra(e, s, state, FP8_TRANSPOSE, state_names[state], s->numel);
    me_drop(e, me_empty(e, "float", ME_DTYPE_FLOAT32, ME_SHAPE(s->numel)));
    keep_scale(e, s, state, ME_DTYPE_UINT8);
    me_drop(e, data);
    me_leave(e, frame, NULL);
}

static void make_moment(me_engine *e, const me_precision_aware *a,
                        me_shard_state *s, me_adam_state state)
{
    const me_dtype dtype = a->dtypes[state];
    if (dtype == ME_DTYPE_UINT8) {
        make_fp8(e, s, state);
        return;
    }
    s->moments[state] =
        me_make_state(e, state_names[state], dtype, ME_SHAPE(s->numel));
    keep_scale(e, s, state, dtype);
}

/** The largest number of a type, which is copied to the device. It is looked up
 *  under the type that the state says it has: FP8 says float32, so that it is
 *  copied anew each time, and takes the place of the one before. */
static void find_range(me_engine *e, me_precision_aware *a, me_dtype dtype)
{
    me_tensor **range = &a->ranges[dtype == ME_DTYPE_UINT8];
    if (dtype == ME_DTYPE_FLOAT16 && *range != NULL) {
        return;
    }
    me_tensor *found = me_make_state(e, "to", ME_DTYPE_FLOAT32, ME_SHAPE(1));
    me_release(e, *range);
    *range = found;
}

/** `1 / scale`, by way of the reciprocal. */
static void invert(me_engine *e)
{
    me_tensor *reciprocal = me_scratch(e, "reciprocal", 4);
    me_tensor *product = me_scratch(e, "mul", 4);
    me_drop(e, reciprocal);
    me_drop(e, product);
}

/** `torch.where(scale > 0, scale.reciprocal(), 0.0)`, whose 0 is a tensor. */
static me_tensor *invert_positive(me_engine *e)
{
    me_tensor *is_positive = me_scratch(e, "gt", 1);
    me_tensor *reciprocal = me_scratch(e, "reciprocal", 4);
    me_tensor *zero = me_scratch(e, "scalar_tensor", 4);
    me_tensor *inverse = me_scratch(e, "where", 4);
    me_drop(e, zero);
    me_drop(e, is_positive);
    me_drop(e, reciprocal);
    return inverse;
}

/** _apply_scale() of a float32 copy of @p numel elements to the state's own
 *  type: a scale is found from its extremes. bfloat16 has none. */
static void apply_scale(me_engine *e, me_precision_aware *a, me_dtype dtype,
                        uint64_t numel)
{
    const me_frame frame = me_enter(e);
    const uint64_t bytes = 4 + me_dtype_bytes(dtype);
    me_launch_kernel(e, ME_KERNEL_CAST, 0, me_size_mul(bytes, numel));
    if (dtype == ME_DTYPE_BFLOAT16) {
        me_drop(e, me_empty(e, "bfloat16", dtype, ME_SHAPE(numel)));
        me_leave(e, frame, NULL);
        return;
    }
    find_range(e, a, dtype);
    me_tensor *least = me_scratch(e, "aminmax", 4);
    me_tensor *most = me_scratch(e, "aminmax", 4);
    me_reduce(e, &(me_reduction){
                     .inputs = numel,
                     .outputs = 1,
                     .element_bytes = 4,
                     .accumulator_bytes = 8,
                     .is_pair = true,
                 });
    me_launch_kernel(e, ME_KERNEL_REDUCE, numel, me_size_mul(4, numel));
    me_tensor *negated = me_scratch(e, "neg", 4);
    me_tensor *largest = me_scratch(e, "maximum", 4);
    me_drop(e, negated);
    me_tensor *inverse = NULL;
    if (dtype == ME_DTYPE_UINT8) {
        invert(e);
    } else {
        inverse = invert_positive(e);
    }
    me_drop(e, least);
    me_drop(e, most);
    me_drop(e, largest);
    me_drop(e, inverse);
    me_leave(e, frame, NULL);
}

/** Bytes of a state's element: of a main parameter maybe those of its low half
 *  alone. */
static uint64_t state_bytes(const me_precision_aware *a, me_adam_state state)
{
    return state == ME_ADAM_MASTER && keeps_remainder(a)
               ? 2
               : me_dtype_bytes(a->dtypes[state]);
}

/** A main parameter without contents. */
static void make_empty_master(me_engine *e, const me_precision_aware *a,
                              me_shard_state *s)
{
    const me_frame frame = me_enter(e);
    const me_category before = me_category_set(e, ME_CATEGORY_MAIN_PARAMETER);
    s->main = me_retain(
        me_scratch(e, state_names[ME_ADAM_MASTER],
                   me_size_mul(state_bytes(a, ME_ADAM_MASTER), s->numel)));
    me_category_set(e, before);
    if (!keeps_remainder(a)) {
        keep_scale(e, s, ME_ADAM_MASTER, a->dtypes[ME_ADAM_MASTER]);
    }
    me_leave(e, frame, NULL);
}

/** The main parameter: its low half, or a copy in its own type by way of a
 *  clone and float32. */
static void make_master(me_engine *e, me_precision_aware *a, me_shard_state *s)
{
    const me_frame frame = me_enter(e);
    const me_dtype dtype = a->dtypes[ME_ADAM_MASTER];
    make_empty_master(e, a, s);
    if (!keeps_remainder(a)) {
        me_tensor *clone =
            me_empty(e, "clone", a->params_dtype, ME_SHAPE(s->numel));
        me_tensor *wide =
            me_empty(e, "float", ME_DTYPE_FLOAT32, ME_SHAPE(s->numel));
        me_drop(e, clone);
        if (dtype == ME_DTYPE_FLOAT16) {
            apply_scale(e, a, dtype, s->numel);
        }
        me_drop(e, wide);
    }
    me_leave(e, frame, NULL);
}

/** Does a state have a float32 copy while its group is stepped? The kernel
 *  reads moments of bfloat16 if both are. */
static bool is_widened(const me_precision_aware *a, me_adam_state state)
{
    if (state == ME_ADAM_MASTER && !a->has_masters) {
        return false;
    }
    const bool reads_bf16 = state != ME_ADAM_MASTER &&
                            a->dtypes[ME_ADAM_EXP_AVG] == ME_DTYPE_BFLOAT16 &&
                            a->dtypes[ME_ADAM_EXP_AVG_SQ] == ME_DTYPE_BFLOAT16;
    return a->dtypes[state] != ME_DTYPE_FLOAT32 && !reads_bf16;
}

/** The copies of a shard's states, at the end of @p wide. */
static void widen(me_engine *e, const me_precision_aware *a,
                  const me_shard_state *s, me_tensor **wide[],
                  uint32_t n_wide[])
{
    for (int state = 0; state < ME_ADAM_STATES; state++) {
        if (!is_widened(a, (me_adam_state)state) || wide[state] == NULL) {
            continue;
        }
        const me_frame frame = me_enter(e);
        wide[state][n_wide[state]++] = me_retain(
            me_empty(e, "float", ME_DTYPE_FLOAT32, ME_SHAPE(s->numel)));
        me_launch_kernel(
            e, ME_KERNEL_CAST, 0,
            me_size_mul(4 + me_dtype_bytes(a->dtypes[state]), s->numel));
        me_leave(e, frame, NULL);
    }
}

/** Lists of tensors go as a list of lists does: the last first. */
void me_precision_aware_end(me_engine *e, me_precision_aware *aware)
{
    for (int state = ME_ADAM_STATES - 1; state >= 0; state--) {
        while (aware->n_wide[state] > 0) {
            me_release(e, aware->wide[state][--aware->n_wide[state]]);
        }
        me_free(aware->wide[state]);
        aware->wide[state] = NULL;
    }
}

void me_precision_aware_fini(me_engine *e, me_precision_aware *aware)
{
    me_precision_aware_end(e, aware);
    me_clear(e, &aware->ranges[0]);
    me_clear(e, &aware->ranges[1]);
}

/** Bytes that the kernel moves for an element: gradient, parameter, and what it
 *  is handed of the states. */
static uint64_t element_bytes(const me_precision_aware *a)
{
    uint64_t bytes = me_dtype_bytes(a->grad_dtype);
    bytes += 2 * me_dtype_bytes(a->params_dtype);
    const int states = a->has_masters ? ME_ADAM_STATES : ME_ADAM_MASTER;
    for (int state = 0; state < states; state++) {
        const uint64_t one = is_widened(a, (me_adam_state)state)
                                 ? 4
                                 : me_dtype_bytes(a->dtypes[state]);
        bytes += 2 * one;
    }
    return bytes - (keeps_remainder(a) ? 4 : 0); // which has 2 of the 4
}

/** The copies of the group before go when the kernel is handed new lists. */
void me_precision_aware_step(me_engine *e, const me_step_group *group)
{
    me_precision_aware *a = group->aware;
    me_tensor **wide[ME_ADAM_STATES] = {NULL};
    uint32_t n_wide[ME_ADAM_STATES] = {0};
    if (group->count == 0) {
        return;
    }
    for (int state = 0; state < ME_ADAM_STATES; state++) {
        wide[state] = me_alloc(group->count, sizeof(me_tensor *), "optim.wide");
        if (wide[state] == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a step");
        }
    }
    for (uint32_t i = 0; i < group->count && me_engine_is_ok(e); i++) {
        me_shard_state *s = &group->shards[i];
        me_module_switch_to_shard(e, s->parameter->module);
        if (group->is_first_step) {
            make_moment(e, a, s, ME_ADAM_EXP_AVG);
            make_moment(e, a, s, ME_ADAM_EXP_AVG_SQ);
            if (a->has_masters) {
                make_master(e, a, s);
            }
        }
        widen(e, a, s, wide, n_wide);
    }
    me_precision_aware_end(e, a);
    me_fused_launch(e, group, element_bytes(a));
    for (int state = 0; state < ME_ADAM_STATES; state++) {
        a->wide[state] = wide[state];
        a->n_wide[state] = n_wide[state];
        for (uint32_t i = 0; i < n_wide[state]; i++) {
            me_module_switch_to_shard(e, group->shards[i].parameter->module);
            apply_scale(e, a, a->dtypes[state], group->shards[i].numel);
        }
    }
}

static int count_states(const me_precision_aware *a)
{
    return a->has_masters ? ME_ADAM_STATES : ME_ADAM_MASTER;
}

static me_tensor **find_state(me_shard_state *s, me_adam_state state)
{
    return state == ME_ADAM_MASTER ? &s->main : &s->moments[state];
}

void me_precision_aware_dummies(me_engine *e, const me_precision_aware *a,
                                const me_shard_state *s,
                                me_adam_values *values_out)
{
    for (int k = 0; k < count_states(a); k++) {
        const uint64_t bytes = state_bytes(a, (me_adam_state)k);
        values_out->of[k] =
            me_keep(e, "empty", ME_CATEGORY_TEMPORARY, ME_DTYPE_UINT8,
                    ME_SHAPE(me_size_mul(bytes, s->numel)));
    }
}

void me_precision_aware_read(me_engine *e, const me_precision_aware *a,
                             me_shard_state *s, bool is_raw,
                             me_adam_values *values_out)
{
    for (int k = 0; k < count_states(a); k++) {
        const bool is_itself = is_raw || a->dtypes[k] == ME_DTYPE_FLOAT32;
        values_out->of[k] = is_itself
                                ? me_retain(*find_state(s, (me_adam_state)k))
                                : me_keep(e, "float", ME_CATEGORY_TEMPORARY,
                                          ME_DTYPE_FLOAT32, ME_SHAPE(s->numel));
    }
}

void me_adam_values_drop(me_engine *e, me_adam_values *values)
{
    for (int k = 0; k < ME_ADAM_STATES; k++) {
        me_clear(e, &values->of[k]);
    }
}

/** torch.optim.Optimizer.load_state_dict() brings what it is given into the
 *  parameter's type. */
static void cast_values(me_engine *e, const me_precision_aware *a,
                        const me_shard_state *s, bool is_wide,
                        me_adam_values *casts)
{
    for (int k = 0; k < count_states(a); k++) {
        const bool is_remainder = k == ME_ADAM_MASTER && keeps_remainder(a);
        const me_dtype dtype = is_wide ? ME_DTYPE_FLOAT32 : a->dtypes[k];
        if (is_remainder || dtype != a->params_dtype) {
            casts->of[k] = me_keep(e, "to", ME_CATEGORY_TEMPORARY,
                                   a->params_dtype, ME_SHAPE(s->numel));
        }
    }
}

/** The states that were there go; scales of the optimizer's own stay. */
static void drop_states(me_engine *e, const me_precision_aware *a,
                        me_shard_state *s)
{
    for (int k = 0; k < count_states(a); k++) {
        me_clear(e, find_state(s, (me_adam_state)k));
        for (int which = FP8_SCALE; k != ME_ADAM_MASTER && which < OWN_SCALE;
             which++) {
            me_clear(e, find_extra(s, (me_adam_state)k, (extra)which));
        }
    }
}

/** set_scaled_state() of states that are there. */
void me_precision_aware_set(me_engine *e, me_precision_aware *a,
                            const me_shard_state *s)
{
    for (int k = 0; k < count_states(a); k++) {
        if (a->dtypes[k] != ME_DTYPE_FLOAT32) {
            apply_scale(e, a, a->dtypes[k], s->numel);
        }
    }
}

/** … of those that are not yet, from float32 copies of what is not. */
static void make_states(me_engine *e, me_precision_aware *a, me_shard_state *s,
                        bool is_wide)
{
    for (int k = 0; k < count_states(a); k++) {
        const bool is_narrow = a->dtypes[k] != ME_DTYPE_FLOAT32;
        me_tensor *copy = NULL;
        if (is_narrow && !is_wide) {
            copy = me_keep(e, "float", ME_CATEGORY_TEMPORARY, ME_DTYPE_FLOAT32,
                           ME_SHAPE(s->numel));
        }
        if (k == ME_ADAM_MASTER) {
            make_empty_master(e, a, s);
        } else {
            make_moment(e, a, s, (me_adam_state)k);
        }
        if (is_narrow) {
            apply_scale(e, a, a->dtypes[k], s->numel);
        }
        me_release(e, copy);
    }
}

void me_precision_aware_load(me_engine *e, me_precision_aware *a,
                             me_shard_state *shards, uint32_t count,
                             bool is_wide)
{
    me_adam_values *casts = me_engine_alloc(e, count, sizeof *casts);
    for (uint32_t i = 0; casts != NULL && i < count; i++) {
        me_module_switch_to_shard(e, shards[i].parameter->module);
        cast_values(e, a, &shards[i], is_wide, &casts[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        drop_states(e, a, &shards[i]);
    }
    for (uint32_t i = 0; casts != NULL && i < count; i++) {
        me_module_switch_to_shard(e, shards[i].parameter->module);
        me_adam_values_drop(e, &casts[i]);
        make_states(e, a, &shards[i], is_wide);
    }
}
