/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a Megatron-LM job is searched: docs/search.md has the table. */
#include "search/rules.h"

#include <stdio.h>
#include <string.h>

enum {
    LEAST_TOKENS = 2048, /**< of a rank's part of a sequence */
    MOST_SAMPLES = 8     /**< of a micro-batch */
};

static int32_t data_of(const me_degrees *d)
{
    return d->world / (d->tensor * d->context * d->pipeline);
}

/** Ranks that are left to deal out. */
static int32_t left_of(const me_degrees *d)
{
    return d->world / (d->tensor * d->context);
}

static int32_t node_of(const me_config *job)
{
    return job->device.gpus_per_node > 0 ? job->device.gpus_per_node : 1;
}

/** Does the job say itself how layers are dealt to stages? */
static bool has_own_split(const me_config *job)
{
    const me_parallel_config *p = &job->parallel;
    return p->pipeline_layout[0] != '\0' ||
           p->decoder_first_pipeline_num_layers != 0 ||
           p->decoder_last_pipeline_num_layers != 0 ||
           p->account_for_embedding_in_pipeline_split ||
           p->account_for_loss_in_pipeline_split;
}

/** Degrees within a node that divide the heads. */
static void fill_tensor(const me_config *job, const me_degrees *degrees,
                        me_space_words *words)
{
    const uint64_t heads = job->model.num_attention_heads;
    for (int32_t t = 1; t <= node_of(job); t++) {
        if (degrees->world % t == 0 && heads % (uint64_t)t == 0) {
            me_space_words_add(words, "%d", (int)t);
        }
    }
}

static void fill_sequence(const me_config *job, const me_degrees *degrees,
                          me_space_words *words)
{
    (void)job;
    me_space_words_add(words, degrees->tensor > 1 ? "true" : "false");
    if (degrees->tensor > 1) {
        me_space_words_add(words, "false");
    }
}

static void fill_context(const me_config *job, const me_degrees *degrees,
                         me_space_words *words)
{
    const uint64_t tokens = job->model.seq_length;
    me_space_words_add(words, "1");
    for (int32_t c = 2; degrees->world % (degrees->tensor * c) == 0 &&
                        tokens % (2 * (uint64_t)c) == 0 &&
                        tokens / (uint64_t)c >= LEAST_TOKENS;
         c *= 2) {
        me_space_words_add(words, "%d", (int)c);
    }
}

static void fill_pipeline(const me_config *job, const me_degrees *degrees,
                          me_space_words *words)
{
    const int32_t layers = job->model.num_layers;
    if (has_own_split(job)) {
        me_space_words_add(words, "%d", (int)job->parallel.pipeline);
        return;
    }
    for (int32_t p = 1; p <= layers; p++) {
        if (layers % p == 0 && left_of(degrees) % p == 0) {
            me_space_words_add(words, "%d", (int)p);
        }
    }
}

static void fill_chunks(const me_config *job, const me_degrees *degrees,
                        me_space_words *words)
{
    const int32_t layers = job->model.num_layers / degrees->pipeline;
    if (has_own_split(job) || job->pipeline.name[0] != '\0' ||
        job->pipeline.file[0] != '\0' ||
        job->parallel.num_layers_per_virtual_pipeline_stage != 0) {
        return;
    }
    for (int32_t v = 1; v <= (degrees->pipeline > 1 ? layers : 1); v++) {
        if (layers % v == 0) {
            me_space_words_add(words, "%d", (int)v);
        }
    }
}

static void fill_expert_tensor(const me_config *job, const me_degrees *degrees,
                               me_space_words *words)
{
    if (job->moe.num_experts == 0) {
        return;
    }
    me_space_words_add(words, "%d", (int)degrees->tensor);
    if (degrees->tensor > 1) {
        me_space_words_add(words, "1");
    }
}

static void fill_expert(const me_config *job, const me_degrees *degrees,
                        me_space_words *words)
{
    const uint64_t experts = job->moe.num_experts;
    const int32_t stage = degrees->world / degrees->pipeline;
    if (experts > 0 && stage == 0) {
        me_space_words_add(words, "1");
    }
    for (int32_t e = 1; experts > 0 && e <= stage && (uint64_t)e <= experts;
         e++) {
        if (experts % (uint64_t)e == 0 &&
            stage % (e * degrees->expert_tensor) == 0) {
            me_space_words_add(words, "%d", (int)e);
        }
    }
}

static void fill_samples(const me_config *job, const me_degrees *degrees,
                         me_space_words *words)
{
    const uint64_t batch = job->train.global_batch_size;
    me_space_words_add(words, "1");
    const uint64_t data = (uint64_t)data_of(degrees);
    // Degrees that were asked for may be more than the ranks: refused later.
    for (uint64_t b = 2;
         data > 0 && b <= MOST_SAMPLES && batch % (b * data) == 0; b *= 2) {
        me_space_words_add(words, "%d", (int)b);
    }
}

/** Modules of selective recomputation, as --recompute-modules calls them. */
static const char *const modules[] = {
    "core_attn", "layernorm", "mla_up_proj",    "mlp",
    "moe",       "moe_act",   "shared_experts",
};

enum {
    N_MODULES = sizeof modules / sizeof modules[0]
};

/** Granularities, and for selective ones sets of modules. */
static void fill_recompute(const me_config *job, const me_degrees *degrees,
                           me_space_words *words)
{
    (void)degrees;
    me_space_words_add(words, "none");
    me_space_words_add(words, "core_attn");
    me_space_words_add(words, "layernorm");
    if (job->model.multi_latent_attention) {
        me_space_words_add(words, "layernorm+mla_up_proj");
    }
    if (!job->model.add_bias_linear) {
        me_space_words_add(words, "layernorm+mlp");
    }
    if (job->moe.num_experts > 0) {
        me_space_words_add(words, "layernorm+moe_act");
        me_space_words_add(words, "layernorm+moe");
    }
    me_space_words_add(words, "full");
}

/** Is the module among the names that plus signs join? */
static bool has_module(const char *word, const char *module)
{
    const size_t length = strlen(module);
    for (const char *at = word; *at != '\0'; at += *at == '+') {
        const size_t n = strcspn(at, "+");
        if (n == length && strncmp(at, module, n) == 0) {
            return true;
        }
        at += n;
    }
    return false;
}

static bool are_modules(const char *word)
{
    for (const char *at = word; *at != '\0'; at += *at == '+') {
        const size_t n = strcspn(at, "+");
        bool is_known = false;
        for (int i = 0; i < N_MODULES; i++) {
            is_known = is_known || (strlen(modules[i]) == n &&
                                    strncmp(at, modules[i], n) == 0);
        }
        if (!is_known) {
            return false;
        }
        at += n;
    }
    return word[0] != '\0' && word[strlen(word) - 1] != '+';
}

static bool assign_recompute(const me_config *job, const char *word,
                             me_str *text)
{
    (void)job;
    if (strcmp(word, "none") == 0) {
        me_str_append(text, "recompute.granularity=none");
        return true;
    }
    const bool is_block = strncmp(word, "block:", 6) == 0;
    const bool is_uniform = strncmp(word, "full:", 5) == 0;
    if (is_block || is_uniform || strcmp(word, "full") == 0) {
        const char *layers = is_block ? word + 6 : is_uniform ? word + 5 : "1";
        me_str_printf(text,
                      "recompute.granularity=full,recompute.method=%s,"
                      "recompute.num_layers=%s",
                      is_block ? "block" : "uniform", layers);
        return true;
    }
    if (!are_modules(word)) {
        return false;
    }
    me_str_append(text, "recompute.granularity=selective");
    for (int i = 0; i < N_MODULES; i++) {
        me_str_printf(text, ",recompute.%s=%s", modules[i],
                      has_module(word, modules[i]) ? "true" : "false");
    }
    return true;
}

/** FSDP2 shards over data-parallel ranks alone (validate_args()). */
static void fill_data_parallel(const me_config *job, const me_degrees *degrees,
                               me_space_words *words)
{
    const bool has_shards = data_of(degrees) * degrees->context > 1;
    if (has_shards) {
        me_space_words_add(words, "distributed");
    }
    me_space_words_add(words, "ddp");
    if (has_shards && degrees->pipeline == 1 && degrees->expert == 1 &&
        job->model.untie_embeddings_and_output_weights) {
        me_space_words_add(words, "fsdp2");
    }
}

/** What the others have set is taken back. */
static bool assign_data_parallel(const me_config *job, const char *word,
                                 me_str *text)
{
    const bool is_fsdp = strcmp(word, "fsdp2") == 0;
    const bool is_distributed = strcmp(word, "distributed") == 0;
    if (!is_fsdp && !is_distributed && strcmp(word, "ddp") != 0) {
        return false;
    }
    me_str_printf(text, "optimizer.distributed=%s",
                  is_distributed ? "true" : "false");
    if (!is_distributed && job->optimizer.overlap_param_gather) {
        me_str_append(text, ",optimizer.overlap_param_gather=false");
    }
    if (is_fsdp && job->optimizer.overlap_grad_reduce) {
        me_str_append(text, ",optimizer.overlap_grad_reduce=false");
    }
    if (is_fsdp || job->parallel.torch_fsdp2) {
        me_str_printf(text,
                      ",parallel.torch_fsdp2=%s,"
                      "train.gradient_accumulation_fusion=%s",
                      is_fsdp ? "true" : "false", is_fsdp ? "false" : "true");
    }
    return true;
}

static void fill_fp8(const me_config *job, const me_degrees *degrees,
                     me_space_words *words)
{
    (void)job;
    (void)degrees;
    me_space_words_add(words, "none");
    me_space_words_add(words, "hybrid");
}

static void fill_offload(const me_config *job, const me_degrees *degrees,
                         me_space_words *words)
{
    (void)job;
    (void)degrees;
    me_space_words_add(words, "none");
    me_space_words_add(words, "optimizer");
}

/** HybridDeviceOptimizer is of the precision-aware optimizer, which the
 *  distributed one has. */
static bool assign_offload(const me_config *job, const char *word, me_str *text)
{
    (void)job;
    if (strcmp(word, "none") != 0 && strcmp(word, "optimizer") != 0) {
        return false;
    }
    me_str_append(text, strcmp(word, "none") == 0
                            ? "optimizer.cpu_offload=false"
                            : "optimizer.precision_aware=true,"
                              "optimizer.cpu_offload=true");
    return true;
}

#define DEGREE(member) offsetof(me_degrees, member)

const me_space_axis_kind me_megatron_axes[] = {
    {.name = "parallel.world_size",
     .title = "gpus",
     .is_asked = true,
     .degree = DEGREE(world)},
    {.name = "parallel.tensor",
     .title = "tp",
     .fill = fill_tensor,
     .degree = DEGREE(tensor)},
    {.name = "parallel.sequence",
     .title = "sp",
     .fill = fill_sequence,
     .degree = SIZE_MAX},
    {.name = "parallel.context",
     .title = "cp",
     .fill = fill_context,
     .degree = DEGREE(context)},
    {.name = "parallel.pipeline",
     .title = "pp",
     .fill = fill_pipeline,
     .degree = DEGREE(pipeline)},
    {.name = "parallel.virtual_pipeline",
     .title = "vpp",
     .fill = fill_chunks,
     .degree = SIZE_MAX},
    {.name = "parallel.expert_tensor",
     .title = "etp",
     .fill = fill_expert_tensor,
     .degree = DEGREE(expert_tensor)},
    {.name = "parallel.expert",
     .title = "ep",
     .fill = fill_expert,
     .degree = DEGREE(expert)},
    {.name = "train.micro_batch_size",
     .title = "mb",
     .fill = fill_samples,
     .degree = SIZE_MAX},
    {.name = "recompute",
     .title = "recompute",
     .fill = fill_recompute,
     .assign = assign_recompute,
     .words = "none, full, full:LAYERS, block:LAYERS, or modules such as "
              "layernorm+mlp",
     .degree = SIZE_MAX},
    {.name = "data_parallel",
     .title = "data",
     .fill = fill_data_parallel,
     .assign = assign_data_parallel,
     .words = "ddp, distributed or fsdp2",
     .degree = SIZE_MAX},
    {.name = "train.fp8",
     .title = "fp8",
     .is_asked = true,
     .fill = fill_fp8,
     .degree = SIZE_MAX},
    {.name = "offload",
     .title = "offload",
     .is_asked = true,
     .fill = fill_offload,
     .assign = assign_offload,
     .words = "none or optimizer",
     .degree = SIZE_MAX},
    {.name = NULL},
};
