/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "ops/compiled.h"
#include "ops/decompose.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/sort.h"
#include "tensor/launch.h"
#include "train/optim/emerging.h"
#include "train/optim/fused_optimizer.h"

/** A shard's states beside its moments, in the order of `extras`. */
typedef enum soap_state {
    FACTOR_L, /**< of rows */
    FACTOR_R, /**< of columns */
    BASIS_L,
    BASIS_R,
    SOAP_STATES
} soap_state;

_Static_assert((int)SOAP_STATES <= (int)ME_STATE_EXTRAS,
               "a shard has no room for SOAP's states");

static me_tensor *product(me_engine *e, uint64_t rows, uint64_t columns,
                          uint64_t inner)
{
    return me_gemm(e, ME_KERNEL_LINEAR, ME_DTYPE_FLOAT32,
                   ME_SHAPE(rows, columns), inner); // (rows, columns)
}

/** A float32 result of an operation over @p n numbers. */
static me_tensor *line(me_engine *e, const char *op, uint64_t n)
{
    me_tensor *y = me_empty(e, op, ME_DTYPE_FLOAT32, ME_SHAPE(n));
    me_emerging_run(e, n, 8);
    return y;
}

/** precondition(): onto the bases of rows and columns, or back. Contracted with
 *  the first, the matrix is turned; with the second it is turned back. */
static me_tensor *precondition(me_engine *e, const me_shape *shape)
{
    const uint64_t rows = shape->dim[0];
    const uint64_t columns = shape->dim[1];
    const me_frame frame = me_enter(e);
    me_tensor *turned = product(e, columns, rows, rows);
    me_tensor *y = product(e, rows, columns, columns);
    me_drop(e, turned);
    return me_leave(e, frame, y);
}

/** conjugate(diag=True): the diagonal (n) of a factor in its basis. */
static me_tensor *diagonal_in_basis(me_engine *e, uint64_t n)
{
    const me_frame frame = me_enter(e);
    me_tensor *half = product(e, n, n, n);
    me_tensor *both = me_emerging_result(e, "mul", n, n);
    me_tensor *diagonal = me_sum_last_detached(e, both);
    me_drop(e, both);
    me_drop(e, half);
    return me_leave(e, frame, diagonal);
}

/** What the inverse of the eigenvalues makes of the basis' columns (n). */
static me_tensor *scale_factor(me_engine *e, uint64_t n)
{
    const me_frame frame = me_enter(e);
    me_tensor *least = line(e, "clamp_min", n);
    me_tensor *inverse = line(e, "pow", n);
    me_drop(e, least);
    me_tensor *scale = line(e, "mul", n);
    me_drop(e, inverse);
    return me_leave(e, frame, scale);
}

/** The inverse of a factor (n, n), by its basis. */
static me_tensor *correction(me_engine *e, uint64_t n)
{
    const me_frame frame = me_enter(e);
    me_tensor *scaled = me_emerging_result(e, "mul", n, n);
    me_tensor *y = product(e, n, n, n);
    me_drop(e, scaled);
    return me_leave(e, frame, y);
}

/** What one factor (n, n) gives for the other (m, m): gradient, correction,
 *  gradient. */
static me_tensor *factor_update(me_engine *e, uint64_t n, uint64_t m)
{
    const me_frame frame = me_enter(e);
    me_tensor *half = product(e, m, n, n);
    me_tensor *y = product(e, m, m, n);
    me_drop(e, half);
    return me_leave(e, frame, y);
}

/** A loop's name for @p y. */
static me_tensor *rebind(me_engine *e, me_tensor *before, me_tensor *y)
{
    return before == NULL ? y : me_rebind(e, before, y);
}

/** update_kronecker_factors_kl_shampoo(): names of its loop live to its end. A
 *  line that it would log is printed even if nobody sees it: not modelled. */
static void update_factors(me_engine *e, const me_shape *shape)
{
    const me_frame frame = me_enter(e);
    me_tensor *diagonal = NULL;
    me_tensor *scale = NULL;
    me_tensor *inverse = NULL;
    me_tensor *updates[2];
    for (int i = 0; i < 2; i++) {
        const uint64_t n = shape->dim[i];
        diagonal = rebind(e, diagonal, diagonal_in_basis(e, n));
        scale = rebind(e, scale, scale_factor(e, n));
        inverse = rebind(e, inverse, correction(e, n));
        updates[i] = factor_update(e, n, shape->dim[1 - i]);
    }
    for (int i = 0; i < 2; i++) { // lerp_()
        me_emerging_run(e, me_size_mul(shape->dim[i], shape->dim[i]), 12);
    }
    me_drop(e, updates[1]);
    me_drop(e, diagonal);
    me_drop(e, scale);
    me_drop(e, inverse);
    me_drop(e, updates[0]);
    me_leave(e, frame, NULL);
}

/** eigh_with_fallback() of a matrix (n, n) that is not diagonal. */
static me_tensor *eigenvectors(me_engine *e, uint64_t n, me_tensor **values_out)
{
    const me_frame frame = me_enter(e);
    me_tensor *upper = me_emerging_result(e, "triu", n, n);
    me_tensor *any = me_scratch(e, "any", 1);
    me_reduce_all(e, upper);
    me_drop(e, upper);
    me_launch_host_waits(e);
    me_drop(e, any);
    me_tensor *eye = me_emerging_result(e, "eye", n, n);
    me_tensor *stable = product(e, n, n, n); // addmm
    me_tensor *values = NULL;
    me_tensor *vectors = me_eigh(e, n, &values);
    *values_out = line(e, "flip", n);
    me_tensor *y = me_emerging_result(e, "flip", n, n);
    me_drop(e, values);
    me_drop(e, vectors);
    me_drop(e, eye);
    me_drop(e, stable);
    me_leave_with(e, frame, 2, (me_tensor *[]){*values_out, y});
    return y;
}

/** New bases, and the first moment in them: what outlives the update. */
typedef struct eigenbasis {
    me_tensor *bases[2];
    me_tensor *exp_avg_sq; /**< NULL: as it was */
} eigenbasis;

/** get_eigenbasis_eigh(): the first bases. A name of its loop holds the last
 *  eigenvalues. */
static void decompose(me_engine *e, const me_shape *shape, eigenbasis *found)
{
    const me_frame frame = me_enter(e);
    me_tensor *last = NULL;
    for (int i = 0; i < 2; i++) {
        me_tensor *values = NULL;
        found->bases[i] = eigenvectors(e, shape->dim[i], &values);
        last = rebind(e, last, values);
    }
    me_drop(e, last);
    me_leave_with(e, frame, 2, found->bases);
}

/** orthogonal_iteration(): the basis' columns and the second moment's rows or
 *  columns in the order of eigenvalues, a product, a QR decomposition. */
static me_tensor *iterate(me_engine *e, const me_shape *shape, uint64_t n,
                          const me_tensor *diagonal, me_tensor **moment_out)
{
    const me_frame frame = me_enter(e);
    me_tensor *order = me_argsort(e, diagonal);
    *moment_out =
        me_emerging_result(e, "index_select", shape->dim[0], shape->dim[1]);
    me_tensor *sorted = me_emerging_result(e, "index", n, n);
    me_tensor *powered = me_rebind(e, sorted, product(e, n, n, n));
    me_tensor *r = NULL;
    me_tensor *q = me_qr(e, n, &r);
    me_drop(e, r);
    me_drop(e, powered);
    me_drop(e, order);
    me_leave_with(e, frame, 2, (me_tensor *[]){*moment_out, q});
    return q;
}

/** get_eigenbasis_qr(): the bases follow their factors. */
static void follow(me_engine *e, const me_shape *shape, eigenbasis *found)
{
    const me_frame frame = me_enter(e);
    me_tensor *diagonal = NULL;
    for (int i = 0; i < 2; i++) {
        const uint64_t n = shape->dim[i];
        me_tensor *moment = NULL;
        diagonal = rebind(e, diagonal, diagonal_in_basis(e, n));
        found->bases[i] = iterate(e, shape, n, diagonal, &moment);
        found->exp_avg_sq = rebind(e, found->exp_avg_sq, moment);
    }
    me_drop(e, diagonal);
    me_leave_with(
        e, frame, 3,
        (me_tensor *[]){found->bases[0], found->bases[1], found->exp_avg_sq});
}

static void set_state(me_engine *e, me_tensor **state, me_tensor *x)
{
    me_categorize(e, x, ME_CATEGORY_OPTIMIZER_STATE);
    me_assign(e, state, x);
}

/** update_eigenbasis_and_exp_avgs(): the first moment goes to the old bases and
 *  comes back from the new ones. */
static void update_bases(me_engine *e, me_shard_state *s, bool is_first)
{
    const me_shape *shape = &s->parameter->shape;
    const me_frame frame = me_enter(e);
    eigenbasis found = {.exp_avg_sq = NULL};
    me_tensor *plain = precondition(e, shape);
    if (is_first) {
        decompose(e, shape, &found);
    } else {
        follow(e, shape, &found);
    }
    me_tensor *exp_avg = me_rebind(e, plain, precondition(e, shape));
    set_state(e, &s->extras[BASIS_L], found.bases[0]);
    set_state(e, &s->extras[BASIS_R], found.bases[1]);
    set_state(e, &s->moments[0], exp_avg);
    if (found.exp_avg_sq != NULL) {
        set_state(e, &s->moments[1], found.exp_avg_sq);
    }
    me_leave(e, frame, NULL);
}

/** _init_group(): moments, factors, bases that are identities. */
static void make_states(me_engine *e, const me_step_group *group)
{
    for (uint32_t i = 0; group->is_first_step && i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        const uint64_t rows = s->parameter->shape.dim[0];
        const uint64_t columns = s->parameter->shape.dim[1];
        const me_shape whole = ME_SHAPE(rows, columns);
        const me_shape left = ME_SHAPE(rows, rows);
        const me_shape right = ME_SHAPE(columns, columns);
        const me_dtype dtype = ME_DTYPE_FLOAT32;
        me_module_switch_to_shard(e, s->parameter->module);
        s->moments[0] = me_make_state(e, "exp_avg", dtype, whole);
        s->moments[1] = me_make_state(e, "exp_avg_sq", dtype, whole);
        s->extras[FACTOR_L] = me_make_state(e, "L", dtype, left);
        s->extras[FACTOR_R] = me_make_state(e, "R", dtype, right);
        s->extras[BASIS_L] = me_make_state(e, "Q_L", dtype, left);
        s->extras[BASIS_R] = me_make_state(e, "Q_R", dtype, right);
        s->n_extras = SOAP_STATES;
    }
}

/** calculate_adam_update(), which is compiled: it writes to its result and both
 *  moments, of which the first is also read. */
static me_tensor *adam_update(me_engine *e, const me_shape *shape,
                              uint64_t step)
{
    enum {
        COPIED = 4
    };

    const uint64_t numbers[ME_COMPILED_NUMBERS] = {shape->dim[0], shape->dim[1],
                                                   step};
    me_tensor *update =
        me_empty(e, "calculate_adam_update", ME_DTYPE_FLOAT32, *shape);
    me_compiled_run_numbers(e, ME_COMPILED_ADAM_UPDATE, numbers, update,
                            COPIED);
    me_emerging_run(e, me_numel(update), 24);
    return update;
}

static void step_matrix(me_engine *e, const me_step_group *group,
                        me_shard_state *s)
{
    me_emerging *m = group->emerging;
    const me_shape *shape = &s->parameter->shape;
    const me_frame frame = me_enter(e);
    me_module_switch_to_shard(e, s->parameter->module);
    me_clear(e, &m->bases[1]); // a list's last goes first
    me_clear(e, &m->bases[0]);
    m->bases[0] = me_retain(s->extras[BASIS_L]);
    m->bases[1] = me_retain(s->extras[BASIS_R]);
    update_factors(e, shape);
    update_bases(e, s, group->is_first_step);
    me_emerging_run(e, group->is_decayed ? s->numel : 0, 8);
    me_clear(e, &m->gradient); // `grad_projected = grad`
    me_assign(e, &m->gradient, precondition(e, shape));
    me_assign(e, &m->update, adam_update(e, shape, m->steps));
    me_assign(e, &m->orthogonal, precondition(e, shape));
    me_emerging_run(e, s->numel, 12); // p.add_()
    me_leave(e, frame, NULL);
}

void me_soap_step(me_engine *e, const me_step_group *group)
{
    make_states(e, group);
    for (uint32_t i = 0; i < group->count && me_engine_is_ok(e); i++) {
        step_matrix(e, group, &group->shards[i]);
    }
}
