/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/ddp.h"

#include "base/alloc.h"
#include "base/size.h"
#include "nn/megatron/te_state.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/ddp_groups.h"
#include "train/megatron/trainer.h"

/** A buffer on the stream that DDP is built on, held by its wrapper. */
static me_tensor *side_stream_buffer(me_trainer *t, const char *op,
                                     me_dtype dtype, uint64_t numel,
                                     me_category category)
{
    me_engine *e = t->e;
    const uint8_t stream = me_stream_set(e, ME_STREAM_SIDE);
    me_tensor *buffer = me_keep(e, op, category, dtype, ME_SHAPE(numel));
    me_stream_set(e, stream);
    return buffer;
}

static me_sharing sharing_of(const me_parameter *p)
{
    return p->is_expert ? ME_SHARING_EXPERT : ME_SHARING_DENSE;
}

bool me_is_layer_matrix(const me_parameter *p)
{
    return p->shape.ndim == 2 && !p->is_embedding_or_output;
}

/** The buffer that a parameter is of (group_params_for_buffers()), or NULL. */
static me_ddp_buffer *buffer_of(me_ddp *ddp, const me_parameter *p)
{
    const bool is_quantized = me_quantized_of(p) != NULL;
    for (int i = 0; i < ddp->n_buffers; i++) {
        me_ddp_buffer *b = &ddp->buffers[i];
        if (b->sharing == sharing_of(p) && b->is_quantized == is_quantized) {
            return b;
        }
    }
    return NULL;
}

bool me_ddp_has_instances(const me_trainer *t)
{
    return t->comm->size[ME_GROUP_INTER_INSTANCE] > 1;
}

/** The group that sums the gradients of a sharing. */
static me_group_kind group_of(const me_trainer *t, me_sharing sharing)
{
    if (sharing == ME_SHARING_EXPERT) {
        return me_ddp_has_instances(t) ? ME_GROUP_PARTIAL_EXPERT_DATA
                                       : ME_GROUP_EXPERT_DATA;
    }
    return me_ddp_has_instances(t) ? ME_GROUP_PARTIAL_DATA_CONTEXT
                                   : ME_GROUP_DATA_CONTEXT;
}

/** A new buffer without parameters. */
static me_ddp_buffer *add_buffer(me_trainer *t, me_ddp *ddp, me_sharing sharing,
                                 bool is_quantized)
{
    me_ddp_buffer *b = &ddp->buffers[ddp->n_buffers++];
    *b = (me_ddp_buffer){.sharing = sharing,
                         .is_quantized = is_quantized,
                         .group = group_of(t, sharing)};
    b->parameters =
        me_engine_alloc(t->e, t->parameters.count, sizeof(me_parameter *));
    return b;
}

/** The chunk's parameters, in registration order. */
static bool collect(me_trainer *t, int32_t chunk, me_ddp *ddp)
{
    const me_parameter_list *all = &t->parameters;
    ddp->n_buffers = 0;
    ddp->bucket_of = me_engine_alloc(t->e, all->count, sizeof(uint32_t));
    for (uint32_t i = 0; i < all->count && me_engine_is_ok(t->e); i++) {
        me_parameter *p = all->parameters[i];
        me_ddp_buffer *b = p->chunk == chunk ? buffer_of(ddp, p) : NULL;
        if (p->chunk == chunk && b == NULL) {
            b = add_buffer(t, ddp, sharing_of(p), me_quantized_of(p) != NULL);
        }
        if (b != NULL && b->parameters != NULL) {
            b->parameters[b->n_parameters++] = p;
        }
    }
    if (ddp->n_buffers == 0 && me_engine_is_ok(t->e)) {
        add_buffer(t, ddp, ME_SHARING_DENSE, false);
    }
    return me_engine_is_ok(t->e);
}

/** Elements of a bucket that the user asks for; 0: Megatron's default. */
static uint64_t given_bucket_numel(const me_trainer *t)
{
    if (t->config->optimizer.ddp_num_buckets == 0) {
        return t->config->optimizer.ddp_bucket_size;
    }
    uint64_t numel = 0;
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        numel = me_size_add(numel, t->parameters.parameters[i]->numel);
    }
    return me_max_u64(numel / (uint64_t)t->config->optimizer.ddp_num_buckets,
                      1);
}

static void lay_out(me_trainer *t, int32_t chunk, me_ddp_buffer *buffer)
{
    const me_optimizer_config *c = &t->config->optimizer;
    const int32_t ranks = t->comm->size[buffer->group];
    me_buffer_param *params =
        me_alloc(buffer->n_parameters, sizeof *params, "ddp.layout");
    if (params == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for a buffer");
        return;
    }
    for (uint32_t i = 0; i < buffer->n_parameters; i++) {
        params[i] = (me_buffer_param){
            .numel = buffer->parameters[i]->numel,
            .is_shared_embedding = buffer->parameters[i]->is_shared_embedding,
        };
    }
    const me_buffer_rules rules = {
        .shard_ranks = ranks,
        .is_distributed = me_config_scatters_gradients(t->config),
        .pads_for_bandwidth = c->ddp_pad_buckets_for_high_nccl_busbw,
        .bucket_numel = me_bucket_numel(&(me_bucket_choice){
            .overlaps_reduction = c->overlap_grad_reduce,
            .pipeline_rank = t->spec->pipeline.rank,
            .chunk = chunk,
            .gathers_in_step = c->overlap_param_gather_with_optimizer_step,
            .shard_ranks = t->comm->size[ME_GROUP_DATA_CONTEXT],
            .given_numel = given_bucket_numel(t),
        }),
    };
    me_diag diag = {.status = ME_OK};
    const me_status status = me_buffer_create(params, buffer->n_parameters,
                                              &rules, &diag, &buffer->layout);
    me_free(params);
    if (status != ME_OK) {
        me_engine_fail(t->e, status, "%s", diag.text);
    }
}

/** Parameters move into their buffer; each old storage goes at once. */
static void move_parameters(me_trainer *t, me_ddp_buffer *buffer)
{
    me_engine *e = t->e;
    for (uint32_t i = 0; i < buffer->layout->n_slots && me_engine_is_ok(e);
         i++) {
        me_parameter *p = buffer->parameters[buffer->layout->slots[i].param];
        const me_frame frame = me_enter(e);
        uint64_t strides[ME_MAX_DIMS] = {0};
        me_strides_contiguous(&p->shape, strides);
        const me_quantized *q = me_quantized_of(p);
        me_set_data(e, q == NULL ? p->tensor : q->rows,
                    me_alias(e, buffer->param_buffer, p->shape, strides));
        me_leave(e, frame, NULL);
    }
}

static void watch_parameters(me_trainer *t, me_ddp *ddp, me_ddp_buffer *buffer)
{
    buffer->n_in_bucket =
        me_engine_alloc(t->e, buffer->layout->n_buckets, sizeof(uint32_t));
    buffer->left_in_bucket =
        me_engine_alloc(t->e, buffer->layout->n_buckets, sizeof(uint32_t));
    buffer->exchanged =
        me_engine_alloc(t->e, buffer->layout->n_buckets, sizeof(me_tensor *));
    if (!me_engine_is_ok(t->e)) {
        return;
    }
    for (uint32_t i = 0; i < buffer->layout->n_slots; i++) {
        const me_slot *slot = &buffer->layout->slots[i];
        const me_parameter *p = buffer->parameters[slot->param];
        ddp->bucket_of[p->index] = slot->bucket;
        if (!p->is_made_later) {
            me_accumulator_hold(t->e, p->tensor);
        }
    }
}

/** Does the schedule start reductions? Where all ranks are to begin theirs
 *  together (align_grad_reduce), but for a first stage without interleaving,
 *  whose last backward is the last of all. */
static bool is_told_by_schedule(const me_trainer *t)
{
    const me_optimizer_config *c = &t->config->optimizer;
    return c->overlap_grad_reduce && c->align_grad_reduce &&
           (t->spec->n_chunks > 1 || t->spec->pipeline.rank > 0);
}

/** Does the backward itself? */
static bool reduces_in_backward(const me_trainer *t)
{
    return t->is_last_microbatch && t->config->optimizer.overlap_grad_reduce &&
           !is_told_by_schedule(t);
}

/** @param self  parameters whose gradients are awaited, counted up */
static void visit_left(me_trainer *t, const me_ddp_buffer *buffer,
                       uint32_t bucket, void *self)
{
    (void)t;
    *(uint32_t *)self += buffer->left_in_bucket[bucket];
}

/** One more gradient of @p bucket is there; a group that has all its own is
 *  reduced, on the running stream. The first iteration only learns how many
 *  come (register_grad_ready()). */
static void register_gradient(me_trainer *t, int32_t chunk,
                              const me_ddp_buffer *buffer, uint32_t bucket)
{
    if (t->iteration == 0) {
        buffer->n_in_bucket[bucket]++;
        return;
    }
    const uint32_t group = me_bucket_group_of(t, chunk, buffer, bucket);
    uint32_t left = 0;
    buffer->left_in_bucket[bucket]--;
    me_bucket_group_visit(t, chunk, buffer->sharing, group, visit_left, &left);
    if (left == 0) {
        me_bucket_group_reduce(t, chunk, buffer->sharing, group);
        t->ddp[chunk].is_reduced = true;
    }
}

/** The hook of a parameter's AccumulateGrad, which is on the side stream, or what
 *  backward_dw() calls, on its own: main_grad += grad, unless the product that made
 *  the gradient has added it; grad = None. */
static void on_grad(void *self, me_engine *e, me_tensor *tensor)
{
    me_trainer *t = self;
    const me_parameter *parameter = tensor->parameter;
    me_ddp *ddp = &t->ddp[parameter->chunk];
    const bool is_added = me_te_is_dummy_wgrad(&t->nn, tensor->grad);
    const uint64_t bytes =
        me_size_add(me_bytes(tensor),
                    me_size_mul(2 * parameter->numel,
                                me_dtype_bytes(t->config->train.grad_dtype)));
    me_launch_kernel(e, ME_KERNEL_ACCUMULATE, is_added ? 0 : parameter->numel,
                     is_added ? 0 : bytes);
    me_clear(e, &tensor->grad); // what a backward made, autograd still holds
    if (reduces_in_backward(t)) {
        register_gradient(t, parameter->chunk, buffer_of(ddp, parameter),
                          ddp->bucket_of[parameter->index]);
    }
}

me_dtype me_ddp_param_dtype(const me_trainer *t, const me_ddp_buffer *buffer)
{
    return buffer->is_quantized ? ME_DTYPE_UINT8
                                : t->config->train.params_dtype;
}

static void create_buffer(me_trainer *t, int32_t chunk, me_ddp *ddp,
                          me_ddp_buffer *buffer)
{
    const me_config *c = t->config;
    lay_out(t, chunk, buffer);
    if (!me_engine_is_ok(t->e) || buffer->layout == NULL) {
        return;
    }
    if (me_config_scatters_gradients(c)) {
        buffer->param_buffer =
            side_stream_buffer(t, "param_data", me_ddp_param_dtype(t, buffer),
                               buffer->layout->numel, ME_CATEGORY_PARAMETER);
    }
    buffer->grad_buffer =
        side_stream_buffer(t, "grad_data", c->train.grad_dtype,
                           buffer->layout->numel, ME_CATEGORY_GRADIENT);
    if (me_config_scatters_gradients(c)) {
        move_parameters(t, buffer);
    }
    watch_parameters(t, ddp, buffer);
}

void me_ddp_create(me_trainer *t, int32_t chunk)
{
    me_ddp *ddp = &t->ddp[chunk];
    if (!me_engine_is_ok(t->e) || !collect(t, chunk, ddp)) {
        return;
    }
    for (int i = 0; i < ddp->n_buffers && me_engine_is_ok(t->e); i++) {
        create_buffer(t, chunk, ddp, &ddp->buffers[i]);
    }
    me_tape_on_grad(t->e, on_grad, t);
}

void me_ddp_destroy(me_trainer *t, me_ddp *ddp)
{
    for (int i = 0; i < ddp->n_buffers; i++) {
        me_ddp_buffer *b = &ddp->buffers[i];
        for (uint32_t k = 0; b->exchanged != NULL && k < b->layout->n_buckets;
             k++) {
            me_clear(t->e, &b->exchanged[k]);
        }
        me_buffer_destroy(b->layout);
        me_clear(t->e, &b->param_buffer);
        me_clear(t->e, &b->grad_buffer);
    }
}

static void await_all(const me_ddp_buffer *buffer)
{
    for (uint32_t b = 0;
         buffer->layout != NULL && b < buffer->layout->n_buckets; b++) {
        buffer->left_in_bucket[b] = buffer->n_in_bucket[b];
    }
}

static void zero_buffer(me_trainer *t, const me_ddp_buffer *buffer)
{
    if (buffer->layout != NULL) {
        me_launch_kernel(
            t->e, ME_KERNEL_OPTIMIZER, 0,
            me_size_mul(buffer->layout->numel,
                        me_dtype_bytes(t->config->train.grad_dtype)));
    }
}

void me_ddp_zero_grad(me_trainer *t)
{
    for (int32_t c = 0; c < t->spec->n_chunks; c++) {
        t->ddp[c].is_reduced = false;
        t->ddp[c].is_gathered = false;
        for (int i = 0; i < t->ddp[c].n_buffers; i++) {
            await_all(&t->ddp[c].buffers[i]);
            zero_buffer(t, &t->ddp[c].buffers[i]);
        }
    }
}

void me_ddp_reduce(me_trainer *t, int32_t chunk)
{
    me_ddp *ddp = &t->ddp[chunk];
    if (ddp->is_reduced) {
        return;
    }
    for (int i = 0; i < ME_SHARINGS; i++) {
        const uint32_t n = me_bucket_groups_count(t, chunk, (me_sharing)i);
        for (uint32_t group = 0; group < n; group++) {
            me_bucket_group_reduce(t, chunk, (me_sharing)i, group);
        }
    }
    ddp->is_reduced = true;
}

/** A reduction over several instances leaves no handle that says it has begun. So
 *  a chunk that the schedule begins, whose gradients are never counted and every
 *  batch of which is a first one therefore, is reduced again. */
static void finish_grad_sync(me_trainer *t, int32_t chunk)
{
    me_ddp *ddp = &t->ddp[chunk];
    ddp->is_reduced &= !(me_ddp_has_instances(t) && is_told_by_schedule(t));
    for (int i = 0; i < ME_SHARINGS; i++) {
        const uint32_t n = me_bucket_groups_count(t, chunk, (me_sharing)i);
        for (uint32_t group = 0; group < n; group++) {
            if (!ddp->is_reduced) {
                me_bucket_group_reduce(t, chunk, (me_sharing)i, group);
            }
            me_bucket_group_finish(t, chunk, (me_sharing)i, group);
        }
    }
    ddp->is_reduced = true;
}

static void wrap(me_trainer *t)
{
    me_parameters_to_device(&t->nn);
    me_parameters_to_half(&t->nn);
    for (int32_t i = 0; i < t->spec->n_chunks; i++) {
        me_ddp_create(t, i);
    }
}

/** Flattened into one tensor, all-reduced, copied back. */
static void reduce_partial_gradients(me_trainer *t, uint64_t numel)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *flat =
        me_empty(e, "flatten", t->config->train.grad_dtype, ME_SHAPE(numel));
    me_all_reduce(e, t->comm, ME_GROUP_TENSOR, flat);
    me_drop(e, flat);
    me_leave(e, frame, NULL);
}

static void fini(me_trainer *t)
{
    for (int32_t i = 0; t->ddp != NULL && i < t->spec->n_chunks; i++) {
        me_ddp_destroy(t, &t->ddp[i]);
    }
}

const me_model_wrapper me_distributed_data_parallel = {
    .wrap = wrap,
    .zero_grad_buffer = me_ddp_zero_grad,
    .start_grad_sync = me_ddp_reduce,
    .finish_grad_sync = finish_grad_sync,
    .reduce_partial_gradients = reduce_partial_gradients,
    .fini = fini,
    .can_repeat = true,
};
