/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/finalize.h"

#include "base/size.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/trainer.h"

bool me_gradient_is_partial(const me_trainer *t, const me_parameter *p)
{
    return t->config->parallel.sequence ? p->is_sequence_parallel
                                        : p->is_qk_norm;
}

/** _allreduce_non_tensor_model_parallel_grads(). */
static void reduce_partial_gradients(me_trainer *t)
{
    uint64_t numel = 0;
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (me_gradient_is_partial(t, p)) {
            numel = me_size_add(numel, p->numel);
        }
    }
    if (numel > 0) {
        t->wrapper->reduce_partial_gradients(t, numel);
    }
}

/** Tied embeddings, or one that multi-token prediction has: the stages that have
 *  it add theirs up, in place. */
static void reduce_embedding_gradients(me_trainer *t)
{
    const me_model_config *c = &t->config->model;
    if ((c->untie_embeddings_and_output_weights && c->mtp_num_layers == 0) ||
        t->comm->size[ME_GROUP_EMBEDDING] <= 1) {
        return;
    }
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (p->is_shared_embedding) {
            me_communicate(
                t->e, t->comm,
                (me_call){ME_GROUP_EMBEDDING, ME_COLLECTIVE_ALL_REDUCE,
                          t->config->train.grad_dtype, p->numel, -1, false});
        }
    }
}

/** Two directions: the other copy of each stage has gradients of the other
 *  half of the micro-batches. Both ranks take the lower stage first. */
static void reduce_stage_copies(me_trainer *t)
{
    const me_config *c = t->config;
    if (t->spec->order == NULL ||
        t->spec->order->placement != ME_PLACEMENT_TWO_WAYS ||
        t->comm->size[ME_GROUP_STAGE_COPIES] == 1) {
        return;
    }
    const int32_t first =
        t->spec->pipeline.rank < t->spec->pipeline.ranks / 2 ? 0 : 1;
    for (int32_t i = 0; i < t->spec->n_chunks; i++) {
        const me_ddp *ddp = &t->ddp[i == 0 ? first : 1 - first];
        const me_buffer *layout = ddp->buffers[ME_SHARING_DENSE].layout;
        const int32_t data =
            t->comm->size[ddp->buffers[ME_SHARING_DENSE].group];
        if (layout == NULL) {
            continue;
        }
        const uint64_t numel = layout->numel;
        me_communicate(t->e, t->comm,
                       (me_call){ME_GROUP_STAGE_COPIES,
                                 ME_COLLECTIVE_ALL_REDUCE, c->train.grad_dtype,
                                 me_config_scatters_gradients(c)
                                     ? numel / (uint64_t)data
                                     : numel,
                                 -1, false});
    }
}

void me_finish_embedding_wgrad(me_trainer *t)
{
    for (int32_t i = 0; i < t->spec->n_chunks; i++) {
        me_gpt_make_deferred(&t->chunks[i]);
    }
}

/** _update_router_expert_bias(), of all routers of the rank at once. */
static void update_expert_bias(me_trainer *t)
{
    me_engine *e = t->e;
    const uint64_t routers = t->moe.n_biased;
    if (routers == 0) {
        return;
    }
    const uint64_t numel = me_size_mul(routers, t->config->moe.num_experts);
    const me_dtype dtype = t->config->train.params_dtype;
    const uint64_t bytes = me_dtype_bytes(dtype);
    const me_frame frame = me_enter(e);
    me_tensor *tokens = me_scratch(e, "stack", numel * bytes);
    me_tensor *biases = me_scratch(e, "stack", 4 * numel);
    me_communicate(e, t->comm,
                   (me_call){ME_GROUP_TENSOR_DATA_CONTEXT,
                             ME_COLLECTIVE_ALL_REDUCE, dtype, numel, -1,
                             false});
    me_tensor *sums = me_scratch(e, "sum", routers * bytes);
    me_tensor *average = me_scratch(e, "div", routers * bytes);
    me_drop(e, sums);
    me_tensor *offset = me_scratch(e, "sub", numel * bytes);
    me_tensor *sign = me_scratch(e, "sign", numel * bytes);
    me_tensor *step = me_scratch(e, "mul", numel * bytes);
    me_drop(e, sign);
    me_tensor *updated = me_scratch(e, "add", 4 * numel);
    me_drop(e, step);
    me_drop(e, average);
    me_drop(e, offset);
    me_drop(e, tokens);
    me_drop(e, biases);
    me_drop(e, updated);
    me_leave(e, frame, NULL);
}

/** Loss per token: gradients are divided in place by the tokens of the whole
 *  batch, which the last stage has counted. */
static void scale_gradients(me_trainer *t)
{
    me_engine *e = t->e;
    if (!t->config->train.calculate_per_token_loss) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_communicate(e, t->comm,
                   (me_call){ME_GROUP_PIPELINE, ME_COLLECTIVE_BROADCAST,
                             ME_DTYPE_INT32, 1,
                             t->config->parallel.pipeline - 1, false});
    me_communicate(e, t->comm,
                   (me_call){ME_GROUP_DATA_CONTEXT, ME_COLLECTIVE_ALL_REDUCE,
                             ME_DTYPE_INT32, 1, -1, false});
    me_scratch(e, "clamp", 4);
    me_tensor *reciprocal = me_scratch(e, "reciprocal", 4);
    me_scratch(e, "mul", 4);
    me_drop(e, reciprocal);
    if (t->wrapper->scale_gradients != NULL) {
        t->wrapper->scale_gradients(t);
    }
    me_leave(e, frame, NULL);
}

void me_finalize_model_grads(me_trainer *t)
{
    me_engine *e = t->e;
    const me_phase phase = me_phase_set(e, ME_PHASE_GRADIENT_REDUCTION);
    me_point(e, "finalize_begin");
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_OPTIMIZER});
    me_start_timers(t, 1);
    for (int32_t c = 0; c < t->spec->n_chunks; c++) {
        me_finish_grad_sync(t, c);
    }
    me_launch_stream_waits(e); // finish_grad_sync()
    me_start_timers(t, 2); // conditional embeddings, which there are none of
    if (t->config->parallel.tensor > 1) {
        reduce_partial_gradients(t);
    }
    me_start_timers(t, 1);
    reduce_embedding_gradients(t);
    reduce_stage_copies(t);
    update_expert_bias(t);
    scale_gradients(t);
    me_point(e, "finalize_end");
    me_phase_set(e, phase);
    me_reset_offload(t);
}
