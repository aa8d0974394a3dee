/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torchtitan/torchtitan_model.h"

#include "config/config_private.h"

#include <stdlib.h>
#include <string.h>

static void write_linear(me_titan_model *m, const char *name, uint64_t inputs,
                         uint64_t outputs)
{
    me_str_printf(&m->text,
                  "%s: { class = \"Linear\"; in_features = %llu; out_features "
                  "= %llu; bias = false; };\n",
                  name, (unsigned long long)inputs,
                  (unsigned long long)outputs);
}

/** torchtitan's own RMSNorm of 2024, in float32 step by step; torch.nn's of
 *  releases 0.2. */
static void write_norm(me_titan_model *m, const char *name)
{
    const unsigned long long dim = m->flavor->dim;
    if (m->is_0_2) {
        me_str_printf(&m->text,
                      "%s: { class = \"RMSNorm\"; normalized_shape = %llu; "
                      "};\n",
                      name, dim);
        return;
    }
    me_str_printf(&m->text,
                  "%s: { forward = \"y = x.float(); y = y * ((y ** 2).mean(-1) "
                  "+ 1e-5).rsqrt(); y = y.type_as(x); return y * weight\"; "
                  "weight: { class = \"Parameter\"; shape = %llu; }; };\n",
                  name, dim);
}

/** FeedForward's width (model.py). */
static uint64_t hidden_size(const me_titan_flavor *f)
{
    uint64_t hidden = 2 * (4 * f->dim) / 3;
    hidden = hidden * f->multiplier_tenths / 10;
    return (hidden + f->multiple_of - 1) / f->multiple_of * f->multiple_of;
}

/** TransformerBlock. */
static void write_block(me_titan_model *m)
{
    const me_titan_flavor *f = m->flavor;
    const uint64_t head_dim = f->dim / f->n_heads;
    const uint64_t hidden = hidden_size(f);
    me_str_printf(&m->text,
                  "forward = \"h = x + attention(attention_norm(x)); return h "
                  "+ feed_forward(ffn_norm(h))\";\n"
                  "attention: { forward = \"return "
                  "wo(%srotary_attention(wq(x), wk(x), wv(x), "
                  "head_dim=%llu))\";\n",
                  m->is_0_2 ? "grouped_" : "", (unsigned long long)head_dim);
    write_linear(m, "wq", f->dim, f->dim);
    write_linear(m, "wk", f->dim, f->n_kv_heads * head_dim);
    write_linear(m, "wv", f->dim, f->n_kv_heads * head_dim);
    write_linear(m, "wo", f->dim, f->dim);
    me_str_append(&m->text, "};\nfeed_forward: { forward = \"return "
                            "w2(silu(w1(x)) * w3(x))\"; silu: { class = "
                            "\"SiLU\"; };\n");
    write_linear(m, "w1", f->dim, hidden);
    write_linear(m, "w2", hidden, f->dim);
    write_linear(m, "w3", f->dim, hidden);
    me_str_append(&m->text, "};\n");
    write_norm(m, "attention_norm");
    write_norm(m, "ffn_norm");
}

/** What a module of fully_shard's says that keeps what it gathered; torchtitan
 *  passes the key over where nothing is sharded. */
static const char *kept(const me_titan_model *m, bool keeps_gathered)
{
    return m->is_sharded && keeps_gathered ? " reshard_after_forward = false;"
                                           : "";
}

/** fsdp_reshard_after_forward of releases 0.2: by default where micro-batches
 *  follow each other. */
static bool keeps_gathered(const me_titan_model *m)
{
    const char *policy = me_titan_text(m, ME_TITAN_RESHARD, "default");
    return strcmp(policy, "never") == 0 ||
           (strcmp(policy, "default") == 0 && m->pipeline > 1);
}

me_titan_block me_titan_block_of(const me_titan_model *m, uint64_t layer,
                                 uint64_t last)
{
    const bool is_op = strcmp(m->option, "op") == 0;
    const uint64_t every = is_op ? 1 : strtoull(m->option, NULL, 10);
    me_titan_block kind = {.is_checkpointed =
                               strcmp(m->checkpoint, "none") != 0};
    if (strcmp(m->checkpoint, "selective") == 0 && every > 1) {
        kind.is_checkpointed = (layer + 1) % every == 0;
    }
    kind.keeps_unsharded =
        m->is_0_2 ? keeps_gathered(m) : m->pipeline > 1 || layer == last;
    return kind;
}

static void write_blocks(me_titan_model *m, uint64_t count, me_titan_block kind)
{
    me_str_printf(&m->text, "block%llu: { repeat = %llu;%s%s\n",
                  (unsigned long long)m->n_blocks++, (unsigned long long)count,
                  m->is_sharded ? " fully_shard = true;" : "",
                  kept(m, kind.keeps_unsharded));
    const bool is_selective =
        strcmp(m->checkpoint, "selective") == 0 && strcmp(m->option, "op") == 0;
    if (kind.is_checkpointed) {
        me_str_printf(&m->text, "wrapped: { checkpoint = true;%s%s\n",
                      is_selective ? " checkpoint_policy = \"op\";" : "",
                      m->stops_early ? "" : " checkpoint_early_stop = false;");
    }
    write_block(m);
    me_str_append(&m->text, kind.is_checkpointed ? "};\n};\n" : "};\n");
}

/** Blocks from @p begin to before @p end, equal ones in one group. */
static void write_layers(me_titan_model *m, uint64_t begin, uint64_t end)
{
    me_str_append(&m->text, "layers: { class = \"ModuleList\";\n");
    while (begin < end) {
        const me_titan_block kind = me_titan_block_of(m, begin, end - 1);
        uint64_t next = begin + 1;
        while (next < end) {
            const me_titan_block other = me_titan_block_of(m, next, end - 1);
            if (other.is_checkpointed != kind.is_checkpointed ||
                other.keeps_unsharded != kind.keeps_unsharded) {
                break;
            }
            next++;
        }
        write_blocks(m, next - begin, kind);
        begin = next;
    }
    me_str_append(&m->text, "};\n");
}

bool me_titan_has_head(const me_titan_model *m)
{
    return m->is_0_2 && m->is_sharded;
}

/** norm and output, and what stands around them. */
static void write_head(me_titan_model *m)
{
    const char *policy = me_titan_text(m, ME_TITAN_RESHARD, "default");
    const bool is_group = me_titan_has_head(m);
    if (is_group) {
        me_str_printf(&m->text, "head: { fully_shard = true;%s\n",
                      kept(m, strcmp(policy, "always") != 0));
    }
    write_norm(m, "norm");
    write_linear(m, "output", m->flavor->dim, m->vocabulary);
    if (is_group) {
        me_str_append(&m->text, "};\n");
    }
}

static void write_embedding(me_titan_model *m)
{
    me_str_printf(&m->text,
                  "tok_embeddings: { class = \"Embedding\"; num_embeddings = "
                  "%llu; embedding_dim = %llu;%s%s };\n",
                  (unsigned long long)m->vocabulary,
                  (unsigned long long)m->flavor->dim,
                  m->is_0_2 && m->is_sharded ? " fully_shard = true;" : "",
                  kept(m, m->is_0_2 && keeps_gathered(m)));
}

/** Transformer, or what a stage has of it. */
static void write_transformer(me_titan_model *m, uint64_t stage)
{
    const me_titan_flavor *f = m->flavor;
    const unsigned long long numbers = m->seq_len * (f->dim / f->n_heads);
    const bool is_first = stage == 0;
    const bool is_last = stage + 1 == m->stages;
    const char *head = me_titan_has_head(m) ? "head(h)" : "output(norm(h))";
    me_str_printf(&m->text, "forward = \"h = %s; h = layers(h); return %s\";\n",
                  is_first ? "tok_embeddings(x)" : "x", is_last ? head : "h");
    if (is_first) {
        write_embedding(m);
    }
    me_str_printf(&m->text,
                  "freqs_cis: { class = \"Buffer\"; shape = %llu; "
                  "};\n",
                  numbers);
    write_layers(m, m->first_layer[stage], m->first_layer[stage + 1]);
    if (is_last) {
        write_head(m);
    }
}

static void write_module(me_titan_model *m)
{
    me_str_printf(&m->text, "module: { device = \"meta\";%s\n",
                  kept(m, !m->is_0_2));
    me_titan_plan_write(m);
    if (m->stages == 1) {
        write_transformer(m, 0);
    } else {
        me_str_append(&m->text, "class = \"Sequential\";\n");
        for (uint64_t i = 0; i < m->stages; i++) {
            me_str_printf(&m->text, "stage%llu: {\n", (unsigned long long)i);
            write_transformer(m, i);
            me_str_append(&m->text, "};\n");
        }
    }
    me_str_append(&m->text, "};\n");
}

/** apply_ddp(), and since 0.2 maybe_enable_amp(). */
static void write_ddp(me_titan_model *m)
{
    me_str_append(&m->text, "data_parallel = \"ddp\"; wrap_one_rank = false; "
                            "replicate = true; bucket_cap_mb = 100.0;\n");
    if (m->is_0_2 && strcmp(me_titan_text(m, ME_TITAN_PARAM_DTYPE, "bfloat16"),
                            "bfloat16") == 0) {
        me_str_append(&m->text, "autocast = \"bfloat16\";\n");
    }
}

static void write_torch(me_titan_model *m)
{
    me_str_printf(
        &m->text,
        "torch: { input_shape = \"(%llu, %llu)\"; input_dtype = \"int64\"; "
        "target = \"labels\"; keeps_output = false; loss = "
        "\"cross_entropy(y.float(), target)\"; attention = \"%s\";\n",
        (unsigned long long)(m->batch_size / m->microbatches),
        (unsigned long long)m->seq_len, m->is_0_2 ? "cudnn" : "flash");
    if (m->is_sharded) {
        me_str_printf(&m->text,
                      "data_parallel = \"fully_shard\"; wrap_one_rank = false; "
                      "param_dtype = \"%s\"; reduce_dtype = \"float32\";\n",
                      me_titan_text(m, ME_TITAN_PARAM_DTYPE, "bfloat16"));
    }
    if (strcmp(me_titan_text(m, ME_TITAN_CPU_OFFLOAD, "false"), "true") == 0) {
        me_str_append(&m->text, "cpu_offload = true;\n");
    }
    if (m->is_loss_parallel) {
        me_str_append(&m->text, "loss_parallel = true;\n");
    }
    if (m->replicate > 1 && !m->is_sharded) {
        write_ddp(m);
    }
    if (m->replicate > 1 && m->is_sharded) {
        me_str_printf(&m->text, "data_parallel_replicate = %lld;\n",
                      (long long)m->replicate);
    }
    if (m->shard > 1) {
        me_str_printf(&m->text, "data_parallel_shard = %lld;\n",
                      (long long)m->shard);
    }
    if (m->pipeline > 1) {
        me_str_printf(&m->text, "num_microbatches = %llu; %s = false;\n",
                      (unsigned long long)m->microbatches,
                      m->is_0_2 ? "returns_outputs" : "unshard_stages");
    }
    me_str_append(&m->text, "};\n");
}

static void write_parallel(me_titan_model *m)
{
    if (m->tensor == 1 && m->pipeline == 1) {
        return;
    }
    me_str_append(&m->text, "parallel: {");
    if (m->tensor > 1) {
        me_str_printf(&m->text, " tensor = %llu;",
                      (unsigned long long)m->tensor);
    }
    if (m->pipeline > 1) {
        me_str_printf(&m->text, " pipeline = %llu; virtual_pipeline = %llu;",
                      (unsigned long long)m->pipeline,
                      (unsigned long long)(m->stages / m->pipeline));
    }
    me_str_append(&m->text, " };\n");
    const char *file = me_titan_text(m, ME_TITAN_SCHEDULE_CSV, "");
    if (m->pipeline > 1 && *file != '\0') {
        me_str_printf(&m->text, "pipeline: { schedule_file = \"%s\"; };\n",
                      file);
    } else if (m->pipeline > 1) {
        me_str_printf(&m->text, "pipeline: { schedule = \"Schedule%s\"; };\n",
                      me_titan_text(m, ME_TITAN_SCHEDULE, "1F1B"));
    }
}

static void write_optimizer(me_titan_model *m)
{
    const char *implementation = me_titan_text(m, ME_TITAN_IMPLEMENTATION,
                                               m->is_0_2 ? "fused" : "foreach");
    if (strcmp(me_titan_text(m, ME_TITAN_FUSED, "false"), "true") == 0) {
        implementation = "fused";
    }
    double max_norm = 1.0;
    if (me_titan_given(m, ME_TITAN_MAX_NORM)->text != NULL) {
        max_norm = strtod(me_titan_given(m, ME_TITAN_MAX_NORM)->text, NULL);
    }
    const bool is_adam =
        strcmp(me_titan_text(m, ME_TITAN_OPTIMIZER, "AdamW"), "Adam") == 0;
    me_str_printf(&m->text,
                  "optimizer: { kind = \"%s\"; weight_decay = 0.1; "
                  "clip_grad = ",
                  is_adam ? "adam" : "adamw");
    me_option_format_double(max_norm, &m->text);
    me_str_printf(&m->text, "; };\nimpl: { optimizer = \"torch_%s\"; };\n",
                  strcmp(implementation, "for-loop") == 0 ? "for_loop"
                                                          : implementation);
}

/** Batches before a step: global_batch_size over all ranks. */
static void write_train(me_titan_model *m)
{
    const int64_t global = me_titan_number(m, ME_TITAN_GLOBAL_BATCH_SIZE, -1);
    me_str_append(&m->text, "framework = \"torch\";\n");
    if (global > 0) {
        me_str_printf(&m->text, "train: { global_batch_size = %lld; };\n",
                      (long long)global);
    }
}

void me_titan_model_write(me_titan_model *m)
{
    write_train(m);
    write_torch(m);
    write_parallel(m);
    write_optimizer(m);
    write_module(m);
}
