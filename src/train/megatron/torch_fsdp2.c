/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "tensor/launch.h"
#include "train/megatron/finalize.h"
#include "train/megatron/trainer.h"

/** The module that was wrapped last, for the one that is wrapped next. */
typedef struct wrapping {
    me_trainer *t;
    bool sets_prefetch; /**< recomputation would disrupt the default */
    me_fsdp_group *before;
} wrapping;

static const me_module_hooks *wrap_module(wrapping *w, me_module_id module)
{
    me_fsdp_group *group = me_fsdp_wrap(w->t->fsdp, module);
    if (group == NULL) {
        return NULL;
    }
    // Asked to prefetch nothing, the first one does as by default.
    if (w->sets_prefetch && w->t->fsdp->n_groups > 1) {
        me_fsdp_set_backward_prefetch(group, w->before);
    }
    w->before = group;
    return &group->hooks;
}

/** A RotaryEmbedding is wrapped too, which has no parameters. */
static void wrap_rotary(wrapping *w)
{
    w->before = NULL;
}

static void wrap_layer(wrapping *w, me_transformer_layer *layer)
{
    layer->hooks = wrap_module(w, layer->module);
    if (w->t->config->model.multi_latent_attention) {
        wrap_rotary(w);
    }
}

/** TorchFullyShardedDataParallel.__init__: embedding, rotary embedding and
 * transformer layers in the order of modules, and then the model with the rest:
 * the norms and projections around the layers, and the output layer, which the
 * local implementation leaves to it; else it comes before, as the only
 * ColumnParallelLinear. Each moves what it wraps. */
static void wrap(me_trainer *t)
{
    me_engine *e = t->e;
    me_gpt *gpt = &t->chunks[0];
    const uint8_t stream = me_stream_set(e, ME_STREAM_SIDE);
    t->fully_shard.reshard_after_forward =
        t->config->parallel.torch_fsdp2_reshard_after_forward;
    t->fsdp = me_fsdp_create(&(me_fully_shard_spec){
        .nn = &t->nn,
        .group = ME_GROUP_DATA_CONTEXT,
        .config = &t->fully_shard,
        .n_modules =
            (uint32_t)(gpt->decoder.num_layers + gpt->mtp.num_layers) + 3,
    });
    if (t->fsdp == NULL) {
        return;
    }
    wrapping w = {.t = t,
                  .sets_prefetch =
                      t->config->recompute.granularity != ME_RECOMPUTE_NONE};
    gpt->embedding.hooks = wrap_module(&w, gpt->embedding.module);
    if (me_gpt_has_rotary_embedding(&t->config->model)) {
        wrap_rotary(&w);
    }
    for (int32_t i = 0; i < gpt->decoder.num_layers; i++) {
        wrap_layer(&w, &gpt->decoder.layers[i]);
    }
    for (int32_t i = 0; i < gpt->mtp.num_layers; i++) {
        wrap_layer(&w, &gpt->mtp.layers[i].mtp_model_layer);
    }
    if (t->config->impl.transformer == ME_TRANSFORMER_ENGINE) {
        gpt->output_layer.hooks = wrap_module(&w, gpt->output_layer.module);
    }
    w.sets_prefetch = false;
    gpt->hooks = wrap_module(&w, gpt->spec.parent);
    me_stream_set(e, stream);
}

static uint64_t local_numel(const me_trainer *t, const me_parameter *p)
{
    const int group = ME_GROUP_DATA_CONTEXT;
    const uint64_t rows = p->shape.dim[0];
    return p->numel / rows *
           me_fsdp_local_rows(rows, (uint64_t)t->comm->size[group],
                              (uint64_t)t->comm->index[group]);
}

/** Elements of a parameter's fullest shard, which DTensor pads others to. */
static uint64_t padded_numel(const me_trainer *t, const me_parameter *p)
{
    const uint64_t ranks = (uint64_t)t->comm->size[ME_GROUP_DATA_CONTEXT];
    return p->numel / p->shape.dim[0] * me_div_up(p->shape.dim[0], ranks);
}

/** DTensor.full_tensor() of a gradient. @return the running frame's */
static me_tensor *unshard(me_trainer *t, const me_parameter *p)
{
    const uint64_t ranks = (uint64_t)t->comm->size[ME_GROUP_DATA_CONTEXT];
    const uint64_t numel = padded_numel(t, p);
    const me_dtype dtype = t->config->train.grad_dtype;
    me_tensor *full = me_empty(t->e, "full_tensor", dtype,
                               ME_SHAPE(me_size_mul(ranks, numel)));
    me_communicate(t->e, t->comm,
                   (me_call){ME_GROUP_DATA_CONTEXT, ME_COLLECTIVE_ALL_GATHER,
                             dtype, numel, -1, false});
    return full;
}

/** Shard._shard_tensor(): the first rank sends the others their rows. */
static void scatter(me_trainer *t, const me_parameter *p)
{
    const int32_t ranks = t->comm->size[ME_GROUP_DATA_CONTEXT];
    const bool is_source = t->comm->index[ME_GROUP_DATA_CONTEXT] == 0;
    me_communicate_group(t->e, t->comm, true);
    for (int32_t i = is_source ? 1 : 0; i < (is_source ? ranks : 1); i++) {
        me_communicate(
            t->e, t->comm,
            (me_call){ME_GROUP_DATA_CONTEXT,
                      is_source ? ME_COLLECTIVE_SEND : ME_COLLECTIVE_RECV,
                      t->config->train.grad_dtype, padded_numel(t, p), i,
                      false});
    }
    me_communicate_group(t->e, t->comm, false);
}

/** distribute_tensor(), which takes the gradient's place. */
static void reshard(me_trainer *t, const me_parameter *p)
{
    me_tensor *shard = p->tensor;
    me_tensor *gradient =
        me_keep(t->e, "distribute_tensor", ME_CATEGORY_GRADIENT,
                t->config->train.grad_dtype, ME_SHAPE(padded_numel(t, p)));
    scatter(t, p);
    me_assign(t->e, &shard->grad, gradient);
    me_release(t->e, gradient);
}

/** What _allreduce_non_tensor_model_parallel_grads() holds when it returns. */
typedef struct whole_gradients {
    me_tensor **items; /**< full_tensor()s; variables of the running frame */
    uint32_t count;
    me_tensor *before; /**< `orig_grad`, the last one; owned */
} whole_gradients;

/** The last gradient that was dealt out is held, as what a name is bound to. */
static void reshard_all(me_trainer *t, whole_gradients *w)
{
    for (uint32_t i = 0; i < t->parameters.count && me_engine_is_ok(t->e);
         i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (me_gradient_is_partial(t, p)) {
            me_assign(t->e, &w->before, p->tensor->grad);
            reshard(t, p);
        }
    }
}

/** As DDP does it, but of whole gradients, which are dealt out again. The list of
 *  these goes from its end on, but that the last has another name. */
static void reduce_partial_gradients(me_trainer *t, uint64_t numel)
{
    me_engine *e = t->e;
    whole_gradients w = {
        .items = me_engine_alloc(e, t->parameters.count, sizeof(me_tensor *))};
    if (w.items == NULL) {
        return;
    }
    const me_frame frame = me_enter(e);
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        if (me_gradient_is_partial(t, t->parameters.parameters[i])) {
            w.items[w.count++] = unshard(t, t->parameters.parameters[i]);
        }
    }
    me_tensor *flat =
        me_empty(e, "flatten", t->config->train.grad_dtype, ME_SHAPE(numel));
    me_all_reduce(e, t->comm, ME_GROUP_TENSOR, flat);
    reshard_all(t, &w);
    for (uint32_t i = w.count - 1; i > 0; i--) {
        me_drop(e, w.items[i - 1]);
    }
    me_drop(e, w.items[w.count - 1]);
    me_drop(e, flat);
    me_release(e, w.before);
    me_leave(e, frame, NULL);
}

static void end_backward(me_trainer *t)
{
    me_fsdp_end_backward(t->fsdp);
}

static void fini(me_trainer *t)
{
    me_fsdp_fini(t->fsdp);
}

/** It follows which actions have come, so that all of them are run. */
const me_model_wrapper me_torch_fully_sharded_data_parallel = {
    .wrap = wrap,
    .end_backward = end_backward,
    .reduce_partial_gradients = reduce_partial_gradients,
    .local_numel = local_numel,
    .fini = fini,
    .has_dtensors = true,
};
