/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/program.h"

static const me_schedule *schedule(const me_plan *plan)
{
    const me_config *c = plan->config;
    return me_schedule_find(c->parallel.pipeline == 1 ? "none"
                                                      : c->pipeline.name);
}

static me_fully_shard_config fully_shard_config(const me_torch_options *t)
{
    return (me_fully_shard_config){
        .reshard_after_forward = t->reshard_after_forward,
        .has_param_dtype = t->param_dtype >= 0,
        .param_dtype = t->param_dtype >= 0 ? (me_dtype)t->param_dtype : 0,
        .has_reduce_dtype = t->reduce_dtype >= 0,
        .reduce_dtype = t->reduce_dtype >= 0 ? (me_dtype)t->reduce_dtype : 0,
        .syncs_last = !t->requires_gradient_sync,
        .all_reduces_last = !t->requires_all_reduce,
        .offloads = t->cpu_offload,
        .pins_memory = t->pin_memory,
    };
}

static me_ddp_config ddp_config(const me_torch_options *t)
{
    return (me_ddp_config){
        .is_replicate = t->replicate,
        .bucket_bytes = (uint64_t)(t->bucket_cap_mb * 1024 * 1024),
        .gradient_as_bucket_view = t->gradient_as_bucket_view,
        .finds_unused_parameters = t->find_unused_parameters,
        .is_static_graph = t->static_graph,
        .broadcasts_buffers = t->broadcast_buffers,
        .has_no_sync = t->no_sync,
    };
}

static me_status init(const me_plan *plan, int32_t rank, me_program *p)
{
    const me_config *c = plan->config;
    const me_torch_job *job = &c->torch_job;
    const me_schedule *own = schedule(plan);
    me_shape shape = {.ndim = job->n_input_dims};
    for (int32_t i = 0; i < job->n_input_dims; i++) {
        shape.dim[i] = job->input_dims[i];
    }
    p->torch = (me_torch_config){
        .tree = job->tree,
        .loss = job->loss,
        .called_module = c->torch.called_module,
        .target = c->torch.target,
        .attention = c->torch.attention,
        .autocast = {.is_enabled = c->torch.autocast >= 0,
                     .dtype = c->torch.autocast >= 0
                                  ? (me_dtype)c->torch.autocast
                                  : ME_DTYPE_FLOAT32},
        .autocasts_step = c->torch.autocast_backward,
        .scales_gradients = c->torch.grad_scaler,
        .clips_gradients = c->optimizer.clip_grad > 0,
        .input_shape = shape,
        .input_dtype = c->torch.input_dtype,
        .keeps_output = c->torch.keeps_output,
        .keeps_last_output = c->torch.keeps_last_output,
        .is_loss_parallel = c->torch.loss_parallel,
        .data_parallel = c->torch.data_parallel,
        .fully_shard = fully_shard_config(&c->torch),
        .ddp = ddp_config(&c->torch),
        .keeps_zeros = !c->torch.zero_grad_set_to_none,
        .returns_outputs = c->torch.returns_outputs,
        .unshards_stages = c->torch.unshard_stages,
        .pipeline = me_plan_pipeline(plan, rank),
        .schedule =
            c->parallel.pipeline > 1 && plan->order == NULL ? own : NULL,
        .order = plan->order,
        .optimizer = c->optimizer.kind == ME_OPTIMIZER_SGD ? ME_OPTIMIZER_SGD
                                                           : ME_OPTIMIZER_ADAM,
        .adds_decay = c->optimizer.kind == ME_OPTIMIZER_ADAM,
        .optimizer_impl = c->impl.optimizer,
        .decays_weights = c->optimizer.weight_decay > 0,
        .has_momentum = c->optimizer.sgd_momentum > 0,
        .is_distributed = c->parallel.world_size > 1,
    };
    return ME_OK;
}

static void run(me_engine *e, me_program *p)
{
    p->torch.iterations = p->iterations;
    (void)me_torch_run(e, &p->torch, &p->comm);
}

const me_program_kind me_torch_program = {
    .name = "torch",
    .init = init,
    .run = run,
    .schedule = schedule,
};
