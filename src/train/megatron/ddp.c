/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "train/megatron/trainer.h"

/** A buffer on the stream that DDP is built on, held by its wrapper. */
static me_tensor *side_stream_buffer(me_trainer *t, const char *op,
                                     me_dtype dtype, uint64_t numel,
                                     me_category category)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    const uint8_t stream = me_stream_set(e, ME_STREAM_SIDE);
    const me_category before = me_category_set(e, category);
    me_tensor *buffer = me_retain(me_empty(e, op, dtype, ME_SHAPE(numel)));
    me_category_set(e, before);
    me_stream_set(e, stream);
    me_leave(e, frame, NULL);
    return buffer;
}

/** The chunk's parameters, in registration order. */
static bool collect(me_trainer *t, int32_t chunk, me_ddp *ddp)
{
    const me_parameter_list *all = &t->parameters;
    ddp->parameters = me_engine_alloc(t->e, all->count, sizeof(me_parameter *));
    if (ddp->parameters == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->parameters[i]->chunk == chunk) {
            ddp->parameters[ddp->n_parameters++] = all->parameters[i];
        }
    }
    return true;
}

/** The size of a bucket that the user gave, in elements; 0: none. */
static uint64_t given_bucket_numel(const me_trainer *t)
{
    const me_megatron_config *c = t->config;
    if (c->ddp_num_buckets == 0) {
        return c->ddp_bucket_size;
    }
    uint64_t numel = 0; // get_model(): of all chunks of the rank
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        numel = me_size_add(numel, t->parameters.parameters[i]->numel);
    }
    return me_max_u64(numel / c->ddp_num_buckets, 1);
}

static void lay_out(me_trainer *t, int32_t chunk, me_ddp *ddp)
{
    const me_megatron_config *c = t->config;
    const int32_t ranks = t->comm->size[ME_GROUP_DATA_CONTEXT];
    me_buffer_param *params =
        me_alloc(ddp->n_parameters, sizeof *params, "ddp.layout");
    if (params == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for a buffer");
        return;
    }
    for (uint32_t i = 0; i < ddp->n_parameters; i++) {
        params[i] = (me_buffer_param){
            .numel = ddp->parameters[i]->numel,
            .is_shared_embedding = ddp->parameters[i]->is_shared_embedding,
        };
    }
    const me_buffer_rules rules = {
        .shard_ranks = ranks,
        .is_distributed = c->distributed_optimizer,
        .pads_for_bandwidth = c->pads_buckets,
        .bucket_numel = me_bucket_numel(&(me_bucket_choice){
            .overlaps_reduction = c->overlap_grad_reduce,
            .pipeline_rank = c->pipeline.rank,
            .chunk = chunk,
            .shard_ranks = ranks,
            .given_numel = given_bucket_numel(t),
        }),
    };
    me_diag diag = {.status = ME_OK};
    const me_status status = me_buffer_create(params, ddp->n_parameters, &rules,
                                              &diag, &ddp->layout);
    me_free(params);
    if (status != ME_OK) {
        me_engine_fail(t->e, status, "%s", diag.text);
    }
}

/** Parameters move into their buffer; each old storage goes at once. */
static void move_parameters(me_trainer *t, me_ddp *ddp)
{
    me_engine *e = t->e;
    for (uint32_t i = 0; i < ddp->layout->n_slots && me_engine_is_ok(e); i++) {
        me_parameter *p = ddp->parameters[ddp->layout->slots[i].param];
        const me_frame frame = me_enter(e);
        uint64_t strides[ME_MAX_DIMS] = {0};
        me_strides_contiguous(&p->shape, strides);
        me_set_data(e, p->tensor,
                    me_alias(e, ddp->param_buffer, p->shape, strides));
        me_leave(e, frame, NULL);
    }
}

static void watch_parameters(me_trainer *t, me_ddp *ddp)
{
    ddp->bucket_of =
        me_engine_alloc(t->e, t->parameters.count, sizeof(uint32_t));
    ddp->left_in_bucket =
        me_engine_alloc(t->e, ddp->layout->n_buckets, sizeof(uint32_t));
    if (!me_engine_is_ok(t->e)) {
        return;
    }
    for (uint32_t i = 0; i < ddp->layout->n_slots; i++) {
        const me_slot *slot = &ddp->layout->slots[i];
        const me_parameter *p = ddp->parameters[slot->param];
        ddp->bucket_of[p->index] = slot->bucket;
        me_accumulator_hold(t->e, p->tensor);
    }
}

/** The hook of a parameter's AccumulateGrad: main_grad += grad; grad = None. */
static void on_grad(void *self, me_engine *e, me_tensor *tensor)
{
    me_trainer *t = self;
    const me_parameter *parameter = tensor->parameter;
    me_ddp *ddp = &t->ddp[parameter->chunk];
    me_work_done(e, parameter->numel, 3 * me_bytes(tensor));
    if (t->is_last_microbatch && t->config->overlap_grad_reduce) {
        const uint32_t bucket = ddp->bucket_of[parameter->index];
        ddp->left_in_bucket[bucket]--;
        if (ddp->left_in_bucket[bucket] == 0 && t->config->n_chunks == 1 &&
            t->iteration > 0) {
            const uint8_t stream = me_stream_set(e, ME_STREAM_SIDE);
            me_ddp_reduce_bucket(t, ddp, bucket);
            me_stream_set(e, stream);
        }
    }
    me_clear(e, &tensor->grad);
}

void me_ddp_create(me_trainer *t, int32_t chunk)
{
    me_ddp *ddp = &t->ddp[chunk];
    const me_megatron_config *c = t->config;
    if (!me_engine_is_ok(t->e) || !collect(t, chunk, ddp)) {
        return;
    }
    lay_out(t, chunk, ddp);
    if (!me_engine_is_ok(t->e)) {
        return;
    }
    if (c->distributed_optimizer) {
        ddp->param_buffer =
            side_stream_buffer(t, "param_data", c->model.params_dtype,
                               ddp->layout->numel, ME_CATEGORY_PARAMETER);
    }
    ddp->grad_buffer =
        side_stream_buffer(t, "grad_data", c->grad_dtype, ddp->layout->numel,
                           ME_CATEGORY_GRADIENT);
    if (c->distributed_optimizer) {
        move_parameters(t, ddp);
    }
    watch_parameters(t, ddp);
    me_tape_on_grad(t->e, on_grad, t);
}

void me_ddp_destroy(me_trainer *t, me_ddp *ddp)
{
    me_buffer_destroy(ddp->layout);
    me_clear(t->e, &ddp->param_buffer);
    me_clear(t->e, &ddp->grad_buffer);
}

void me_ddp_zero_grad(me_trainer *t)
{
    for (int32_t c = 0; c < t->config->n_chunks; c++) {
        me_ddp *ddp = &t->ddp[c];
        for (uint32_t b = 0; ddp->layout != NULL && b < ddp->layout->n_buckets;
             b++) {
            ddp->left_in_bucket[b] = ddp->layout->buckets[b].n_slots;
        }
    }
}

/** Is it NaN, is it infinite: what rerun_state_machine validates. */
static void validate_scalar(me_trainer *t, uint64_t bytes)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_blip(e, "isnan", 1);
    me_tensor *magnitude = me_scratch(e, "abs", bytes);
    me_tensor *isinf = me_scratch(e, "isinf", 1);
    me_drop(e, magnitude);
    me_drop(e, isinf);
    me_leave(e, frame, NULL);
}

/** The norm of a bucket, looked at for NaN and infinity. */
static void check_bucket(me_trainer *t, uint64_t numel)
{
    me_engine *e = t->e;
    const me_dtype dtype = t->config->grad_dtype;
    const me_frame frame = me_enter(e);
    const uint64_t strides[ME_MAX_DIMS] = {1};
    me_tensor *bucket =
        me_alias(e, t->ddp[0].grad_buffer, ME_SHAPE(numel), strides);
    me_tensor *norm = me_vector_norm(e, bucket, dtype);
    if (t->iteration > 0) {
        validate_scalar(t, me_dtype_bytes(dtype));
    }
    me_drop(e, norm);
    me_leave(e, frame, NULL);
}

void me_ddp_reduce_bucket(me_trainer *t, const me_ddp *ddp, uint32_t bucket)
{
    const me_megatron_config *c = t->config;
    const me_bucket *b = &ddp->layout->buckets[bucket];
    const uint64_t numel = b->end - b->start;
    const me_phase phase = me_phase_set(t->e, ME_PHASE_GRADIENT_REDUCTION);
    if (c->check_for_nan) {
        check_bucket(t, numel);
    }
    const uint64_t ranks = (uint64_t)t->comm->size[ME_GROUP_DATA_CONTEXT];
    me_communicate(
        t->e, t->comm,
        (me_call){ME_GROUP_DATA_CONTEXT,
                  c->distributed_optimizer ? ME_COLLECTIVE_REDUCE_SCATTER
                                           : ME_COLLECTIVE_ALL_REDUCE,
                  c->grad_dtype,
                  c->distributed_optimizer ? numel / ranks : numel, -1});
    me_phase_set(t->e, phase);
}

void me_ddp_reduce(me_trainer *t, const me_ddp *ddp)
{
    for (uint32_t b = 0; ddp->layout != NULL && b < ddp->layout->n_buckets;
         b++) {
        me_ddp_reduce_bucket(t, ddp, b);
    }
}
