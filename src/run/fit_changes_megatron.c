/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/fit_builder.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void add_distributed_optimizer(me_fit_builder *b)
{
    const me_config *config = b->config;
    if (!config->optimizer.distributed && !config->parallel.torch_fsdp2 &&
        (int64_t)config->parallel.data * config->parallel.context > 1) {
        me_fit_set(me_fit_add(b, "distributed optimizer"),
                   "optimizer.distributed=true");
    }
}

/** Parameters, gradients and states in shards, in place of DDP. */
static void add_fully_sharded(me_fit_builder *b)
{
    const me_parallel_config *p = &b->config->parallel;
    if (p->torch_fsdp2 || p->megatron_fsdp || p->data < 2) {
        return;
    }
    me_fit_change *c = me_fit_add(b, "Megatron-FSDP");
    me_fit_set(c, "parallel.megatron_fsdp=true");
    me_fit_set(c, "parallel.sharding_strategy=optim_grads_params");
    me_fit_set(c, "optimizer.distributed=true");
}

static void add_sequence_parallel(me_fit_builder *b)
{
    if (b->config->parallel.tensor > 1 && !b->config->parallel.sequence) {
        me_fit_set(me_fit_add(b, "sequence parallelism"),
                   "parallel.sequence=true");
    }
}

/** Tensors that a setting leaves out. */
static void add_batch_tensors(me_fit_builder *b)
{
    const me_train_config *t = &b->config->train;
    if (t->create_attention_mask_in_dataloader) {
        me_fit_set(me_fit_add(b, "no attention mask in the batch"),
                   "train.create_attention_mask_in_dataloader=false");
    }
    if (!t->cross_entropy_loss_fusion) {
        // Its own: pretrain_gpt.py stops at Transformer Engine's.
        me_fit_set(me_fit_add(b, "fused cross entropy"),
                   "train.cross_entropy_loss_fusion=true");
    }
    for (int level = t->empty_unused_memory_level + 1; level <= 2; level++) {
        me_fit_set(me_fit_add(b, "emptied cache %d", level),
                   "train.empty_unused_memory_level=%d", level);
    }
}

/** Modules that a selective recomputation may have. */
static const struct {
    const char *module;
    size_t offset; /**< in me_recompute_config */
    bool is_of_experts;
} modules[] = {
    {"core_attn", offsetof(me_recompute_config, core_attn), false},
    {"layernorm", offsetof(me_recompute_config, layernorm), false},
    {"mla_up_proj", offsetof(me_recompute_config, mla_up_proj), false},
    {"mlp", offsetof(me_recompute_config, mlp), false},
    {"moe_act", offsetof(me_recompute_config, moe_act), true},
    {"shared_experts", offsetof(me_recompute_config, shared_experts), true},
    {"moe", offsetof(me_recompute_config, moe), true},
};

/** Is a module of the list recomputed? */
static bool has_module(const me_recompute_config *r, size_t i)
{
    return r->granularity == ME_RECOMPUTE_SELECTIVE &&
           *((const bool *)((const char *)r + modules[i].offset));
}

static bool has_module_in_model(const me_config *config, size_t i)
{
    return (!modules[i].is_of_experts || config->moe.num_experts > 0) &&
           (strcmp(modules[i].module, "mla_up_proj") != 0 ||
            config->model.multi_latent_attention);
}

static void add_selective(me_fit_builder *b)
{
    const me_recompute_config *r = &b->config->recompute;
    const size_t n = sizeof modules / sizeof *modules;
    if (r->granularity == ME_RECOMPUTE_FULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (has_module(r, i) || !has_module_in_model(b->config, i)) {
            continue;
        }
        me_fit_change *c = me_fit_add(b, "recompute %s", modules[i].module);
        me_fit_set(c, "recompute.granularity=selective");
        // core_attn is recomputed where nothing says that it is not.
        const bool keeps_core =
            i == 0 || r->granularity == ME_RECOMPUTE_SELECTIVE;
        if (!keeps_core) {
            me_fit_set(c, "recompute.core_attn=false");
        }
        me_fit_set(c, "recompute.%s=true", modules[i].module);
    }
}

static int32_t layers_of_chunk(const me_config *config)
{
    const int64_t chunks =
        (int64_t)config->parallel.pipeline * config->parallel.virtual_pipeline;
    return (int32_t)((config->model.num_layers + chunks - 1) / chunks);
}

static void add_full_of(me_fit_builder *b, const char *method, int32_t n_layers)
{
    me_fit_change *c =
        me_fit_add(b, "full recomputation %s %d", method, (int)n_layers);
    me_fit_set(c, "recompute.granularity=full");
    me_fit_set(c, "recompute.method=%s", method);
    me_fit_set(c, "recompute.num_layers=%d", (int)n_layers);
}

static void add_full(me_fit_builder *b)
{
    const me_recompute_config *r = &b->config->recompute;
    const int32_t layers = layers_of_chunk(b->config);
    const bool is_full = r->granularity == ME_RECOMPUTE_FULL;
    const bool is_block = is_full && r->method == ME_RECOMPUTE_BLOCK;
    int32_t before = is_block ? r->num_layers : is_full ? layers : 0;
    for (int32_t quarter = 1; quarter <= 4; quarter++) {
        const int32_t n = (int32_t)(((int64_t)layers * quarter + 3) / 4);
        if (n > before) {
            add_full_of(b, "block", n);
            before = n;
        }
    }
    for (int32_t n = 1; n <= 8 && n <= layers; n *= 2) {
        if (!is_full || is_block || n != r->num_layers) {
            add_full_of(b, "uniform", n);
        }
    }
    if (is_full && !r->distribute_saved_activations &&
        b->config->parallel.tensor > 1 && !b->config->parallel.sequence) {
        me_fit_change *c =
            me_fit_add(b, "saved activations spread over tensor ranks");
        me_fit_set(c, "recompute.distribute_saved_activations=true");
        c->needs = ME_FIT_NEEDS_TENSOR;
    }
}

static void add_micro_batch(me_fit_builder *b)
{
    const uint64_t now = b->config->train.micro_batch_size;
    uint64_t divisor = 2;
    for (uint64_t size = now; size > 1; divisor *= 2) {
        size = now / divisor;
        if (size == 0) {
            break;
        }
        if (now % size == 0) {
            me_fit_set(me_fit_add(b, "micro-batch %" PRIu64, size),
                       "train.micro_batch_size=%" PRIu64, size);
        }
    }
    if (now > 1 && (now & (now - 1)) != 0 && now / (divisor / 2) != 1) {
        me_fit_set(me_fit_add(b, "micro-batch 1"), "train.micro_batch_size=1");
    }
}

/** The layout that a new number of stages needs, or an even share. */
static void forget_layout(const me_config *config, me_fit_change *c)
{
    if (config->parallel.pipeline_layout[0] != '\0') {
        me_fit_set(c, "parallel.pipeline_layout=");
    }
}

/** Stages of one chunk, the ends of which have fewer or more layers. */
static void append_layout(me_fit_change *c, const me_config *config,
                          int32_t stages, int32_t fewer_first,
                          int32_t fewer_last)
{
    const int32_t layers = config->model.num_layers;
    char text[ME_FIT_TEXT] = "";
    size_t length = 0;
    int32_t left = layers;
    for (int32_t i = 0; i < stages; i++) {
        const int32_t share = (left + stages - i - 1) / (stages - i);
        int32_t n = share - (i == 0 ? fewer_first : 0);
        if (i == stages - 2) {
            n = (left + fewer_last + 1) / 2;
        }
        n = i == stages - 1 ? left : n;
        if (n < 1 || length + 32 > sizeof text) {
            c->sets[0] = '\0';
            return;
        }
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%st*%d%s",
                             i == 0 ? "" : "|", i == 0 ? "E" : "", (int)n,
                             i == stages - 1 ? "L" : "");
        left -= n;
    }
    me_fit_set(c, "parallel.pipeline_layout=%s", text);
}

static void add_layout(me_fit_builder *b)
{
    static const struct {
        const char *name;
        int32_t fewer_first;
        int32_t fewer_last;
    } shifts[] = {{"one layer fewer in the first stage", 1, 0},
                  {"two layers fewer in the first stage", 2, 0},
                  {"one layer fewer in the last stage", 0, 1},
                  {"one layer fewer in the first and last stage", 1, 1}};

    const me_parallel_config *p = &b->config->parallel;
    if (p->pipeline < 2 || p->virtual_pipeline > 1 ||
        p->pipeline_layout[0] != '\0' || b->config->model.mtp_num_layers > 0 ||
        p->decoder_first_pipeline_num_layers != 0 ||
        p->decoder_last_pipeline_num_layers != 0) {
        return;
    }
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        if (p->pipeline == 2 && shifts[i].fewer_last > 0) {
            continue; // the other stage is the first
        }
        append_layout(me_fit_add(b, "%s", shifts[i].name), b->config,
                      p->pipeline, shifts[i].fewer_first, shifts[i].fewer_last);
    }
}

static void add_chunks(me_fit_builder *b)
{
    const me_parallel_config *p = &b->config->parallel;
    if (p->virtual_pipeline > 1 && p->pipeline_layout[0] == '\0' &&
        b->config->pipeline.is_own) {
        me_fit_set(me_fit_add(b, "no virtual stages"),
                   "parallel.virtual_pipeline=1");
    }
}

/** Degrees that a factor makes, while ranks are left for them. */
static bool has_ranks(const me_config *config, int32_t factor)
{
    return config->parallel.data % factor == 0;
}

static void add_tensor(me_fit_builder *b)
{
    const me_parallel_config *p = &b->config->parallel;
    const int32_t most = b->config->device.gpus_per_node;
    for (int32_t f = 2; has_ranks(b->config, f) && p->tensor * f <= most;
         f *= 2) {
        me_fit_change *c = me_fit_add(b, "tensor %d", (int)p->tensor * f);
        me_fit_set(c, "parallel.tensor=%d", (int)p->tensor * f);
        if (!p->sequence && p->tensor == 1) {
            me_fit_set(c, "parallel.sequence=true");
        }
    }
}

static void add_context(me_fit_builder *b)
{
    const me_parallel_config *p = &b->config->parallel;
    for (int32_t f = 2; f <= 4 && has_ranks(b->config, f); f *= 2) {
        me_fit_set(me_fit_add(b, "context %d", (int)p->context * f),
                   "parallel.context=%d", (int)p->context * f);
    }
}

static void add_pipeline(me_fit_builder *b)
{
    const me_config *config = b->config;
    const me_parallel_config *p = &config->parallel;
    for (int32_t f = 2; f <= 8 && has_ranks(config, f); f *= 2) {
        const int32_t stages = p->pipeline * f;
        if (stages > config->model.num_layers || !config->pipeline.is_own) {
            break;
        }
        me_fit_change *c = me_fit_add(b, "pipeline %d", (int)stages);
        me_fit_set(c, "parallel.pipeline=%d", (int)stages);
        const bool is_even =
            config->model.num_layers % (stages * p->virtual_pipeline) == 0;
        if (is_even || p->virtual_pipeline > 1) {
            forget_layout(config, c);
        } else {
            append_layout(c, config, stages, 0, 0);
        }
    }
}

static void add_expert(me_fit_builder *b)
{
    const me_parallel_config *p = &b->config->parallel;
    if (b->config->moe.num_experts == 0) {
        return;
    }
    for (int32_t f = 2; f <= 8 && (uint64_t)p->expert * (uint64_t)f <=
                                      b->config->moe.num_experts;
         f *= 2) {
        me_fit_set(me_fit_add(b, "expert %d", (int)p->expert * f),
                   "parallel.expert=%d", (int)p->expert * f);
    }
}

static void add_optimizer_offload(me_fit_builder *b)
{
    static const char *const fractions[] = {"0.5", "1.0"};

    const me_optimizer_config *o = &b->config->optimizer;
    for (size_t i = 0; !o->cpu_offload && i < 2; i++) {
        me_fit_change *c = me_fit_add(b, "optimizer on the host %s",
                                      i == 0 ? "by half" : "as a whole");
        me_fit_set(c, "optimizer.cpu_offload=true");
        me_fit_set(c, "optimizer.offload_fraction=%s", fractions[i]);
        me_fit_set(c, "optimizer.precision_aware=true");
        me_fit_set(c, "optimizer.distributed=true");
    }
}

/** Modules that save much: of attention, and of experts as well; or the first
 *  layers as a whole. */
static void add_activation_offload(me_fit_builder *b)
{
    const me_config *config = b->config;
    if (config->offload.fine_grained || config->offload.num_layers > 0) {
        return;
    }
    for (int with_experts = 0;
         with_experts <= (config->moe.num_experts > 0 ? 1 : 0);
         with_experts++) {
        me_fit_change *c =
            me_fit_add(b, "activations of attention%s on the host",
                       with_experts ? " and experts" : "");
        me_fit_set(c, "offload.fine_grained=true");
        me_fit_set(c, "offload.qkv_linear=true");
        me_fit_set(c, "offload.core_attn=true");
        me_fit_set(c, "offload.attn_proj=true");
        if (with_experts) {
            me_fit_set(c, "offload.expert_fc1=true");
            me_fit_set(c, "offload.moe_act=true");
        }
    }
    const int32_t layers = config->model.num_layers;
    for (int32_t half = 1; half <= 2 && layers > 2; half++) {
        const int32_t n = half == 1 ? layers / 2 : layers - 1;
        me_fit_set(
            me_fit_add(b, "activations of %d layers on the host", (int)n),
            "offload.num_layers=%d", (int)n);
    }
}

/** Less of what is on the host, where that has no room: the optimizer's states, and
 *  activations. */
static void add_from_host(me_fit_builder *b)
{
    const me_optimizer_config *o = &b->config->optimizer;
    const me_offload_config *offload = &b->config->offload;
    if (!b->host_is_short) {
        return;
    }
    if (o->cpu_offload) {
        me_fit_set(me_fit_add(b, "optimizer on the card"),
                   "optimizer.cpu_offload=false");
    }
    for (int parts = 2; o->cpu_offload && parts <= 4; parts *= 2) {
        const double fraction = o->offload_fraction / parts;
        me_fit_set(me_fit_add(b, "%g of the optimizer on the host", fraction),
                   "optimizer.offload_fraction=%g", fraction);
    }
    if (offload->fine_grained) {
        me_fit_set(me_fit_add(b, "activations on the card"),
                   "offload.fine_grained=false");
    }
    if (offload->num_layers > 1) {
        const int n = (int)offload->num_layers / 2;
        me_fit_set(me_fit_add(b, "activations of %d layers on the host", n),
                   "offload.num_layers=%d", n);
    }
    if (offload->num_layers > 0) {
        me_fit_set(me_fit_add(b, "activations on the card"),
                   "offload.num_layers=0");
    }
}

static bool is_half(const me_config *config)
{
    return config->train.params_dtype != ME_DTYPE_FLOAT32;
}

static void add_states(me_fit_builder *b)
{
    const me_config *config = b->config;
    if (config->train.params_dtype == ME_DTYPE_BFLOAT16 &&
        config->train.grad_dtype == ME_DTYPE_FLOAT32) {
        me_fit_set(me_fit_add(b, "gradients in bf16"),
                   "train.grad_reduce_in_bf16=true");
    }
    if (is_half(config) && !config->optimizer.precision_aware &&
        config->optimizer.kind == ME_OPTIMIZER_ADAM) {
        me_fit_change *c = me_fit_add(b, "optimizer states in bf16");
        me_fit_set(c, "optimizer.precision_aware=true");
        me_fit_set(c, "optimizer.distributed=true");
        me_fit_set(c, "optimizer.exp_avg_dtype=bf16");
        me_fit_set(c, "optimizer.exp_avg_sq_dtype=bf16");
    }
}

static void add_fp8(me_fit_builder *b)
{
    static const char *const recipes[] = {"delayed", "tensorwise", "blockwise"};

    if (b->config->fp8.format != ME_FP8_NONE || !is_half(b->config)) {
        return;
    }
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        for (int with_weights = 0; with_weights < 2; with_weights++) {
            me_fit_change *c = me_fit_add(b, "FP8 %s%s", recipes[i],
                                          with_weights ? " with weights" : "");
            me_fit_set(c, "train.fp8=hybrid");
            me_fit_set(c, "train.fp8_recipe=%s", recipes[i]);
            if (with_weights) {
                me_fit_set(c, "train.fp8_param=true");
            }
        }
    }
}

const me_fit_kind me_fit_megatron_kinds[] = {
    {add_from_host, false, 0},
    {add_distributed_optimizer, false, ME_FIT_NEEDS_SHARDS},
    {add_sequence_parallel, false, ME_FIT_NEEDS_TENSOR},
    {add_batch_tensors, false, 0},
    {add_selective, false, 0},
    {add_micro_batch, false, 0},
    {add_layout, false, ME_FIT_NEEDS_STAGES},
    {add_chunks, false, 0},
    {add_tensor, false, 0},
    {add_context, false, 0},
    {add_pipeline, false, 0},
    {add_expert, false, 0},
    {add_full, false, 0},
    {add_fully_sharded, false, ME_FIT_NEEDS_SHARDS},
    {add_optimizer_offload, false, 0},
    {add_activation_offload, false, 0},
    {add_states, true, 0},
    {add_fp8, true, 0},
    {NULL, false, 0},
};
