/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "nn/megatron/te_fp8.h"
#include "train/megatron/megatron_fsdp.h"
#include "train/megatron/trainer.h"

#include <string.h>

/** Elements: of the buckets outside of units, at least, and for each rank that
 *  shares them (get_model()); of what is communicated at once, at least
 *  (MegatronFSDP). */
static const uint64_t bucket_numel_min = 40000000;
static const uint64_t bucket_numel_of_rank = 1000000;
static const uint64_t communication_numel_min = 1000000000;

static me_sharding_strategy strategy_of(const me_megatron_fsdp *f)
{
    return f->t->config->parallel.sharding_strategy;
}

bool me_megatron_fsdp_shards_weights(const me_megatron_fsdp *f,
                                     const me_fsdp_group_buffers *b)
{
    return strategy_of(f) == ME_SHARDING_OPTIM_GRADS_PARAMS && b->ranks > 1;
}

bool me_megatron_fsdp_shards_main(const me_megatron_fsdp *f,
                                  const me_fsdp_group_buffers *b)
{
    return strategy_of(f) != ME_SHARDING_NO_SHARD && b->ranks > 1;
}

bool me_megatron_fsdp_shards_gradients(const me_megatron_fsdp *f,
                                       const me_fsdp_group_buffers *b)
{
    return (strategy_of(f) == ME_SHARDING_OPTIM_GRADS ||
            strategy_of(f) == ME_SHARDING_OPTIM_GRADS_PARAMS) &&
           b->ranks > 1;
}

bool me_megatron_fsdp_has_instances(const me_megatron_fsdp *f)
{
    return f->t->comm->size[ME_GROUP_INTER_INSTANCE] > 1;
}

me_parameter *me_megatron_fsdp_parameter(const me_megatron_fsdp *f,
                                         const me_fsdp_item *item)
{
    return f->t->parameters.parameters[item->param];
}

me_fsdp_slice me_megatron_fsdp_slice(const me_megatron_fsdp *f,
                                     const me_parameter *p)
{
    const me_fsdp_group_buffers *b = &f->buckets[f->bucket_of[p->index]];
    if (strategy_of(f) == ME_SHARDING_NO_SHARD) {
        return (me_fsdp_slice){0, p->numel};
    }
    // get_logical_hybrid_fsdp_rank(): an instance's part is cut once more.
    const me_communicators *comm = f->t->comm;
    const uint64_t instance =
        b->instances > 1 ? (uint64_t)comm->index[ME_GROUP_INTER_INSTANCE] : 0;
    return me_fsdp_slice_of(&f->layout->items[f->item_of[p->index]], b->numel,
                            b->ranks * b->instances,
                            (uint64_t)comm->index[b->group] * b->instances +
                                instance);
}

/** The list that comes after the ones before, or a failure of the engine. */
static void *list(me_megatron_fsdp *f, size_t count, size_t size)
{
    return me_engine_alloc(f->t->e, count + 1, size);
}

static me_fsdp_module *add_module(me_megatron_fsdp *f, me_module_id module,
                                  bool is_unit)
{
    me_fsdp_module *m = &f->modules[f->n_modules++];
    *m = (me_fsdp_module){.fsdp = f, .module = module, .is_unit = is_unit};
    return m;
}

/** _get_parameter_groups()'s fsdp_unit_modules: each transformer layer. */
static void add_units(me_megatron_fsdp *f)
{
    const me_gpt *gpt = &f->t->chunks[0];
    if (strategy_of(f) != ME_SHARDING_OPTIM_GRADS_PARAMS) {
        return;
    }
    for (int32_t i = 0; i < gpt->decoder.num_layers; i++) {
        add_module(f, gpt->decoder.layers[i].module, true);
    }
    for (int32_t i = 0; i < gpt->mtp.num_layers; i++) {
        add_module(f, gpt->mtp.layers[i].mtp_model_layer.module, true);
    }
}

/** Is @p module the one above, or below it? */
static bool is_below(const me_module_tree *tree, me_module_id module,
                     me_module_id above)
{
    while (module != above && module != ME_NO_MODULE) {
        module = tree->modules[module].parent;
    }
    return module == above;
}

/** The unit that a parameter is below, or the module whose own it is. */
static void find_module(me_megatron_fsdp *f, const me_parameter *p)
{
    const me_module_tree *tree = me_engine_modules(f->t->e);
    uint32_t i = 0;
    while (i < f->n_modules &&
           !(f->modules[i].is_unit
                 ? is_below(tree, p->module, f->modules[i].module)
                 : p->module == f->modules[i].module)) {
        i++;
    }
    if (i == f->n_modules) {
        add_module(f, p->module, false);
    }
    f->module_of[p->index] = i;
}

/** `".experts." in name`. */
static bool is_expert(const me_megatron_fsdp *f, const me_parameter *p)
{
    const me_module_tree *tree = me_engine_modules(f->t->e);
    me_module_id module = p->module;
    while (module != ME_NO_MODULE) {
        const char *name = tree->modules[module].name;
        if (name != NULL && strcmp(name, "experts") == 0) {
            return true;
        }
        module = tree->modules[module].parent;
    }
    return false;
}

/** Parameters of one kind have one type, and the same ranks share them. */
static uint32_t kind_of(const me_megatron_fsdp *f, const me_parameter *p)
{
    const me_dtype dtype =
        me_quantized_of(p) == NULL ? p->dtype : ME_DTYPE_UINT8;
    return 2 * (uint32_t)dtype + (is_expert(f, p) ? 1 : 0);
}

/** Elements after which a bucket outside of units closes; 0: never. */
static uint64_t bucket_numel(const me_megatron_fsdp *f)
{
    const me_optimizer_config *c = &f->t->config->optimizer;
    if (!c->overlap_grad_reduce) {
        return 0;
    }
    if (c->ddp_num_buckets > 0) {
        uint64_t numel = 0;
        for (uint32_t i = 0; i < f->t->parameters.count; i++) {
            numel = me_size_add(numel, f->t->parameters.parameters[i]->numel);
        }
        return numel / (uint64_t)c->ddp_num_buckets;
    }
    if (c->ddp_bucket_size > 0) {
        return c->ddp_bucket_size;
    }
    const uint64_t ranks = (uint64_t)f->t->comm->size[ME_GROUP_DATA_CONTEXT];
    return me_max_u64(bucket_numel_min, bucket_numel_of_rank * ranks);
}

static void lay_out_buckets(me_megatron_fsdp *f)
{
    const me_parameter_list *all = &f->t->parameters;
    me_fsdp_bucket_param *params = list(f, all->count, sizeof *params);
    if (params == NULL) {
        return;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const me_parameter *p = all->parameters[i];
        const bool is_of_unit = f->modules[f->module_of[i]].is_unit;
        params[i] = (me_fsdp_bucket_param){
            .numel = p->numel,
            .row_numel = p->numel / p->shape.dim[0],
            .unit = is_of_unit ? (int32_t)f->module_of[i] : ME_NO_FSDP_UNIT,
            .kind = kind_of(f, p),
            .is_shared_embedding = p->is_shared_embedding &&
                                   strategy_of(f) != ME_SHARDING_NO_SHARD,
        };
    }
    me_diag diag = {.status = ME_OK};
    const me_status status = me_fsdp_buckets_create(
        params, all->count, bucket_numel(f), &diag, &f->layout);
    if (status != ME_OK) {
        me_engine_fail(f->t->e, status, "%s", diag.text);
    }
}

/** The first of the buckets of the same unit and the same ranks. */
static uint32_t first_of(const me_megatron_fsdp *f, uint32_t bucket)
{
    const me_fsdp_bucket *b = &f->layout->buckets[bucket];
    for (uint32_t i = 0; b->unit != ME_NO_FSDP_UNIT && i < bucket; i++) {
        const me_fsdp_bucket *other = &f->layout->buckets[i];
        if (other->unit == b->unit && other->kind % 2 == b->kind % 2) {
            return i;
        }
    }
    return bucket;
}

static void make_bucket(me_megatron_fsdp *f, uint32_t bucket)
{
    const me_fsdp_bucket *layout = &f->layout->buckets[bucket];
    me_fsdp_group_buffers *b = &f->buckets[bucket];
    const bool is_of_experts = layout->kind % 2 == 1;
    b->layout = layout;
    const me_communicators *comm = f->t->comm;
    const bool is_hybrid = me_megatron_fsdp_has_instances(f);
    if (is_of_experts) {
        b->group =
            is_hybrid ? ME_GROUP_PARTIAL_EXPERT_DATA : ME_GROUP_EXPERT_DATA;
    } else {
        b->group =
            is_hybrid ? ME_GROUP_PARTIAL_DATA_CONTEXT : ME_GROUP_DATA_CONTEXT;
    }
    b->ranks = (uint64_t)comm->size[b->group];
    b->instances =
        is_hybrid && f->t->config->parallel.outer_sharding_strategy ==
                         ME_SHARDING_OPTIM
            ? (uint64_t)comm->size[ME_GROUP_INTER_INSTANCE]
            : 1;
    b->numel = me_fsdp_bucket_numel(layout, b->ranks * b->instances,
                                    strategy_of(f) != ME_SHARDING_NO_SHARD);
    b->dtype = (me_dtype)(layout->kind / 2);
    b->first = first_of(f, bucket);
    for (uint32_t i = 0; i < layout->n_items; i++) {
        const uint32_t item = layout->first_item + i;
        const uint32_t param = f->layout->items[item].param;
        f->bucket_of[param] = bucket;
        f->item_of[param] = item;
    }
}

/** What is communicated at once: two units, or what the user says. */
static uint64_t communication_numel(const me_megatron_fsdp *f)
{
    const me_config *c = f->t->config;
    if (c->parallel.suggested_communication_unit_size > 0) {
        return c->parallel.suggested_communication_unit_size;
    }
    uint64_t numel = 0;
    uint64_t units = 0;
    for (uint32_t i = 0; i < f->n_modules; i++) {
        units += f->modules[i].is_unit ? 1 : 0;
    }
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        if (f->modules[f->module_of[i]].is_unit) {
            numel = me_size_add(numel, f->t->parameters.parameters[i]->numel);
        }
    }
    const uint64_t suggested =
        units > 0 ? me_size_mul(numel / units, 2) : bucket_numel(f);
    return me_max_u64(suggested, communication_numel_min);
}

void me_megatron_fsdp_lay_out(me_megatron_fsdp *f)
{
    const size_t n = f->t->parameters.count;
    const me_gpt *gpt = &f->t->chunks[0];
    const size_t n_units =
        (size_t)gpt->decoder.num_layers + (size_t)gpt->mtp.num_layers;
    f->modules = list(f, n + n_units, sizeof *f->modules);
    f->module_of = list(f, n, sizeof *f->module_of);
    f->bucket_of = list(f, n, sizeof *f->bucket_of);
    f->item_of = list(f, n, sizeof *f->item_of);
    f->shard_of = list(f, n, sizeof *f->shard_of);
    f->is_awaited = list(f, n, sizeof *f->is_awaited);
    f->is_ready = list(f, n, sizeof *f->is_ready);
    if (!me_engine_is_ok(f->t->e)) {
        return;
    }
    add_units(f);
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        find_module(f, f->t->parameters.parameters[i]);
    }
    lay_out_buckets(f);
    if (!me_engine_is_ok(f->t->e)) {
        return;
    }
    f->buckets = list(f, f->layout->count, sizeof *f->buckets);
    f->is_asked = list(f, f->layout->count, sizeof *f->is_asked);
    f->queue = list(f, f->layout->count, sizeof *f->queue);
    f->most_queued = f->layout->count;
    if (!me_engine_is_ok(f->t->e)) {
        return;
    }
    f->n_buckets = f->layout->count;
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        make_bucket(f, i);
    }
    f->queue_numel = communication_numel(f);
    f->prefetch_numel = f->queue_numel / 2;
}
