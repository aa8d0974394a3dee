/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/optim/emerging.h"

#include "base/size.h"
#include "ops/compiled.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "tensor/launch.h"
#include "train/optim/fused_optimizer.h"

void me_emerging_run(me_engine *e, uint64_t numel, uint64_t bytes)
{
    me_launch_kernel(e, ME_KERNEL_OPTIMIZER, numel, me_size_mul(bytes, numel));
}

me_tensor *me_emerging_result(me_engine *e, const char *op, uint64_t rows,
                              uint64_t columns)
{
    me_tensor *y = me_empty(e, op, ME_DTYPE_FLOAT32, ME_SHAPE(rows, columns));
    me_emerging_run(e, me_size_mul(rows, columns), 8);
    return y;
}

/** A matrix whose parts tensor ranks may have, and what of it is here. */
typedef struct matrix {
    uint64_t rows;
    uint64_t columns;
    me_partition partition; /**< ME_PARTITION_NONE: of no interest */
    me_group_kind group;    /**< the ranks that have the parts */
} matrix;

/** distributed_normalize_p2(): over the ranks that have parts. */
static me_tensor *normalize_parts(me_engine *e, const me_emerging *m,
                                  const matrix *a)
{
    const me_frame frame = me_enter(e);
    me_tensor *square = me_emerging_result(e, "mul", a->rows, a->columns);
    me_tensor *sum = me_sum_detached(e, square);
    me_drop(e, square);
    me_all_reduce(e, m->comm, a->group, sum);
    me_tensor *root = me_scratch(e, "sqrt", 4);
    me_tensor *least = me_scratch(e, "clamp_min", 4);
    me_drop(e, root);
    me_tensor *y = me_emerging_result(e, "div", a->rows, a->columns);
    me_drop(e, least);
    return me_leave(e, frame, y);
}

/** torch.nn.functional.normalize() over both dimensions. */
static me_tensor *normalize(me_engine *e, const me_tensor *x, const matrix *a)
{
    const me_frame frame = me_enter(e);
    me_tensor *norm = me_vector_norm(e, x, ME_DTYPE_FLOAT32);
    me_tensor *least = me_scratch(e, "clamp_min", 4);
    me_drop(e, norm);
    me_tensor *y = me_emerging_result(e, "div", a->rows, a->columns);
    me_drop(e, least);
    return me_leave(e, frame, y);
}

/** `torch.addmm(a, b, c)`: a copy of @p a that the product is added to. */
static me_tensor *addmm(me_engine *e, me_dtype dtype, me_shape shape,
                        uint64_t inner)
{
    me_tensor *y = me_empty(e, "addmm", dtype, shape);
    me_launch_kernel(e, ME_KERNEL_COPY, 0, me_size_mul(2, me_bytes(y)));
    me_gemm_run(e, ME_KERNEL_LINEAR, y, inner);
    return y;
}

/** newton_schulz_step() of a matrix that is no taller than wide.
 *  @param group  ranks that have parts; negative: none */
static me_tensor *newton_schulz_step(me_engine *e, const me_emerging *m,
                                     const me_tensor *x, int group)
{
    const me_dtype dtype = (me_dtype)x->dtype;
    const uint64_t rows = me_dim(x, 0);
    const me_frame frame = me_enter(e);
    me_tensor *a =
        me_gemm(e, ME_KERNEL_LINEAR, dtype, ME_SHAPE(rows, rows), me_dim(x, 1));
    if (group >= 0) {
        me_all_reduce(e, m->comm, (me_group_kind)group, a);
    }
    me_tensor *b = addmm(e, dtype, ME_SHAPE(rows, rows), rows);
    me_tensor *y = addmm(e, dtype, x->shape, rows);
    me_drop(e, a);
    me_drop(e, b);
    return me_leave(e, frame, y);
}

/**
 * newton_schulz(): the smaller dimension is the one that is squared, but that
 * which ranks have parts of never is. It runs in bfloat16 at medium precision.
 *
 * @param x       flat; of which only the size counts
 * @param shared  ranks that have parts and iterate together; negative: none
 */
static me_tensor *newton_schulz(me_engine *e, const me_emerging *m,
                                const me_tensor *x, const matrix *a, int shared)
{
    const bool is_medium = m->config->muon_fp32_matmul_prec == ME_MATMUL_MEDIUM;
    const bool is_transposed =
        shared >= 0 ? a->partition == ME_PARTITION_ROWS : a->rows > a->columns;
    const me_frame frame = me_enter(e);
    me_tensor *y = shared >= 0 ? normalize_parts(e, m, a) : normalize(e, x, a);
    y->shape = is_transposed ? ME_SHAPE(a->columns, a->rows)
                             : ME_SHAPE(a->rows, a->columns);
    const uint64_t numel = me_numel(y);
    if (is_medium) {
        y = me_rebind(e, y, me_empty(e, "to", ME_DTYPE_BFLOAT16, y->shape));
        me_launch_kernel(e, ME_KERNEL_CAST, 0, me_size_mul(6, numel));
    }
    for (int32_t i = 0; i < m->config->muon_num_ns_steps && me_engine_is_ok(e);
         i++) {
        y = me_rebind(e, y, newton_schulz_step(e, m, y, shared));
    }
    if (is_medium) {
        y = me_rebind(e, y, me_empty(e, "to", ME_DTYPE_FLOAT32, y->shape));
        me_launch_kernel(e, ME_KERNEL_CAST, 0, me_size_mul(6, numel));
    }
    return me_leave(e, frame, y);
}

/** newton_schulz_tp(), duplicated: each rank gathers the whole and keeps it for
 *  its part. all_gather() of a list goes by way of one flat tensor. */
static me_tensor *gather_and_iterate(me_engine *e, const me_emerging *m,
                                     const matrix *a)
{
    const uint64_t ranks = (uint64_t)m->comm->size[a->group];
    const uint64_t numel = me_size_mul(a->rows, a->columns);
    const matrix whole = {
        .rows = a->partition == ME_PARTITION_ROWS ? ranks * a->rows : a->rows,
        .columns = a->partition == ME_PARTITION_COLUMNS ? ranks * a->columns
                                                        : a->columns,
    };
    const me_frame frame = me_enter(e);
    me_tensor **parts = me_engine_alloc(e, (size_t)ranks, sizeof(me_tensor *));
    for (uint64_t i = 0; i < ranks && me_engine_is_ok(e); i++) {
        parts[i] = me_empty(e, "empty_like", ME_DTYPE_FLOAT32, ME_SHAPE(numel));
    }
    me_tensor *flat =
        me_empty(e, "all_gather", ME_DTYPE_FLOAT32, ME_SHAPE(ranks * numel));
    me_communicate(e, m->comm,
                   (me_call){a->group, ME_COLLECTIVE_ALL_GATHER,
                             ME_DTYPE_FLOAT32, numel, -1, false});
    me_drop(e, flat);
    me_tensor *joined = me_emerging_result(e, "cat", whole.rows, whole.columns);
    me_tensor *y = newton_schulz(e, m, joined, &whole, -1);
    for (uint64_t i = ranks; me_engine_is_ok(e) && i > 0; i--) {
        me_drop(e, parts[i - 1]);
    }
    me_drop(e, joined);
    return me_leave(e, frame, y);
}

static me_tensor *iterate(me_engine *e, const me_emerging *m,
                          const me_tensor *x, const matrix *a)
{
    if (a->partition == ME_PARTITION_NONE ||
        m->config->muon_tp_mode == ME_MUON_BLOCKWISE) {
        return newton_schulz(e, m, x, a, -1);
    }
    return m->config->muon_tp_mode == ME_MUON_DUPLICATED
               ? gather_and_iterate(e, m, a)
               : newton_schulz(e, m, x, a, (int)a->group);
}

/** scaled_orthogonalize_fn(): times a factor, and times another. */
static me_tensor *orthogonalize_one(me_engine *e, const me_emerging *m,
                                    const me_tensor *x, const matrix *a)
{
    const me_frame frame = me_enter(e);
    me_tensor *y = iterate(e, m, x, a);
    me_tensor *scaled = me_emerging_result(e, "mul", a->rows, a->columns);
    me_tensor *scaled_again = me_emerging_result(e, "mul", a->rows, a->columns);
    me_drop(e, scaled);
    me_drop(e, y);
    return me_leave(e, frame, scaled_again);
}

enum {
    QKV = 3
};

/** Rows of the query groups are gathered, unless there is one group alone. */
static me_tensor *take_rows(me_engine *e, me_tensor *x, uint64_t groups,
                            const matrix *part)
{
    const uint64_t numel = me_size_mul(part->rows, part->columns);
    const uint64_t strides[ME_MAX_DIMS] = {1};
    return groups == 1
               ? me_alias(e, x, ME_SHAPE(numel), strides)
               : me_emerging_result(e, "reshape", part->rows, part->columns);
}

/** Queries, keys and values each as a matrix of their own, put together again. */
static me_tensor *orthogonalize_qkv(me_engine *e, const me_emerging *m,
                                    me_tensor *x, const matrix *a,
                                    uint64_t groups)
{
    const me_frame frame = me_enter(e);
    me_tensor *parts[QKV];
    me_tensor *orthogonal[QKV];
    matrix of[QKV];
    for (int i = 0; i < QKV; i++) {
        of[i] = *a;
        of[i].rows = groups * m->qkv_rows[i];
        parts[i] = take_rows(e, x, groups, &of[i]);
    }
    for (int i = 0; i < QKV; i++) {
        orthogonal[i] = orthogonalize_one(e, m, parts[i], &of[i]);
    }
    me_drop(e, parts[1]); // a list's last goes first, but the loop has it still
    me_drop(e, parts[0]);
    me_drop(e, parts[2]);
    me_tensor *y = me_emerging_result(e, "cat", a->rows, a->columns);
    for (int i = QKV - 1; i >= 0; i--) {
        me_drop(e, orthogonal[i]);
    }
    return me_leave(e, frame, y);
}

/** orthogonalize() */
static me_tensor *orthogonalize(me_engine *e, const me_emerging *m,
                                const me_parameter *p, me_tensor *x)
{
    const matrix a = {
        .rows = p->shape.dim[0],
        .columns = p->shape.dim[1],
        .partition = p->partition,
        .group = p->is_expert ? ME_GROUP_EXPERT_TENSOR : ME_GROUP_TENSOR,
    };
    const uint64_t group_rows =
        m->qkv_rows[0] + m->qkv_rows[1] + m->qkv_rows[2];
    const bool is_split = p->is_qkv && m->config->muon_split_qkv &&
                          group_rows > 0 && a.rows % group_rows == 0;
    return is_split ? orthogonalize_qkv(e, m, x, &a, a.rows / group_rows)
                    : orthogonalize_one(e, m, x, &a);
}

/** AdaptiveMuon: what Adam does with a second moment. */
static me_tensor *adapt(me_engine *e, uint64_t rows, uint64_t columns)
{
    const me_frame frame = me_enter(e);
    me_tensor *square = me_emerging_result(e, "square", rows, columns);
    me_emerging_run(e, me_numel(square), 12); // lerp_
    me_drop(e, square);
    me_tensor *root = me_emerging_result(e, "sqrt", rows, columns);
    me_tensor *denominator = me_emerging_result(e, "add", rows, columns);
    me_drop(e, root);
    me_tensor *update = me_emerging_result(e, "div", rows, columns);
    me_drop(e, denominator);
    return me_leave(e, frame, update);
}

/** _init_group(): momentum, and adaptive Muon's second moment. */
static void make_states(me_engine *e, const me_step_group *group)
{
    const bool has_second =
        group->emerging != NULL && group->emerging->is_adaptive;
    for (uint32_t i = 0; group->is_first_step && i < group->count; i++) {
        me_shard_state *s = &group->shards[i];
        const me_shape shape = ME_SHAPE(s->numel);
        me_module_switch_to_shard(e, s->parameter->module);
        s->moments[0] = me_make_state(e, "momentum_buffer", s->dtype, shape);
        if (has_second) {
            s->moments[1] = me_make_state(e, "moment2_buffer", s->dtype, shape);
        }
    }
}

static void step_matrix(me_engine *e, const me_step_group *group,
                        const me_shard_state *s)
{
    me_emerging *m = group->emerging;
    const me_parameter *p = s->parameter;
    const me_frame frame = me_enter(e);
    me_module_switch_to_shard(e, p->module);
    me_clear(e, &m->gradient); // `grad = p.grad`
    me_emerging_run(e, group->is_decayed ? s->numel : 0, 8);
    me_emerging_run(e, s->numel, 12); // momentum_buffer.lerp_()
    if (m->config->muon_nesterov) {
        me_assign(
            e, &m->gradient,
            me_emerging_result(e, "lerp", p->shape.dim[0], p->shape.dim[1]));
    }
    me_assign(e, &m->orthogonal,
              orthogonalize(e, m, p,
                            m->gradient == NULL ? s->moments[0] : m->gradient));
    if (m->is_adaptive) {
        me_assign(e, &m->update, adapt(e, p->shape.dim[0], p->shape.dim[1]));
    }
    me_emerging_run(e, s->numel, 12); // p.add_()
    me_leave(e, frame, NULL);
}

void me_muon_step(me_engine *e, const me_step_group *group)
{
    make_states(e, group);
    for (uint32_t i = 0; i < group->count && me_engine_is_ok(e); i++) {
        step_matrix(e, group, &group->shards[i]);
    }
}

void me_lion_step(me_engine *e, const me_step_group *group)
{
    make_states(e, group);
    for (uint32_t i = 0; i < group->count && me_engine_is_ok(e); i++) {
        const me_shard_state *s = &group->shards[i];
        const me_frame frame = me_enter(e);
        me_module_switch_to_shard(e, s->parameter->module);
        me_emerging_run(e, group->is_decayed ? s->numel : 0, 8);
        me_tensor *update =
            me_empty(e, "lion_update", s->dtype, ME_SHAPE(s->numel));
        me_emerging_run(e, s->numel,
                        16); // reads gradient and momentum, writes both
        me_assign(e, &group->emerging->update, update);
        me_emerging_run(e, s->numel, 12); // p.data.add_()
        me_leave(e, frame, NULL);
    }
}

void me_emerging_end(me_engine *e, me_emerging *emerging)
{
    me_clear(e, &emerging->bases[1]); // a list's last goes first
    me_clear(e, &emerging->bases[0]);
    emerging->steps++;
    me_clear(e, &emerging->gradient);
    me_clear(e, &emerging->orthogonal);
    me_clear(e, &emerging->update);
}
