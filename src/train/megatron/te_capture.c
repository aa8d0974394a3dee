/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/te_capture.h"

#include "nn/megatron/te_graphs.h"
#include "train/megatron/trainer.h"

enum {
    LEAST_WARM_UPS =
        10 /**< runs of a layer before its capture, with those of the
                             iterations before */
};

/** Micro-batches of which graphs are captured: without a pipeline one serves
 *  all. */
static int32_t captured_microbatches(const me_trainer *t)
{
    return t->spec->pipeline.ranks == 1 ? 1 : t->spec->pipeline.microbatches;
}

/** `max(1, ceil((10 - warm-up steps × micro-batches) / captured ones))`. */
static int32_t warm_ups(const me_trainer *t)
{
    const int64_t done = (int64_t)t->config->train.cuda_graph_warmup_steps *
                         t->spec->pipeline.microbatches;
    const int64_t left = LEAST_WARM_UPS - done;
    const int32_t n = captured_microbatches(t);
    return left <= 0 ? 1 : (int32_t)((left + n - 1) / n);
}

/** get_pp_rank_microbatches(): forwards before the first backward. */
static int32_t warm_up_forwards(const me_trainer *t, int32_t group)
{
    const me_pipeline *p = &t->spec->pipeline;
    const int32_t after = p->ranks - p->rank - 1;
    const int32_t total = captured_microbatches(t) * t->spec->n_chunks;
    const int32_t n = t->spec->n_chunks == 1
                          ? after
                          : 2 * after + (t->spec->n_chunks - 1) * group;
    return p->ranks == 1 ? 0 : n < total ? n : total;
}

/** get_schedule_table(): the chunk of each forward. */
static void make_table(const me_trainer *t, int32_t group, int32_t *chunks)
{
    const int32_t m = captured_microbatches(t);
    int32_t n = 0;
    for (int32_t first = 0; first < m; first += group) {
        const int32_t size = m - first < group ? m - first : group;
        for (int32_t chunk = 0; chunk < t->spec->n_chunks; chunk++) {
            for (int32_t i = 0; i < size; i++) {
                chunks[n++] = chunk;
            }
        }
    }
}

/** convert_schedule_table_to_order(): @p total forwards, and as many backwards,
 *  whose chunks come in the other order. */
static void make_steps(const me_trainer *t, const int32_t *chunks,
                       int32_t total, int32_t warm, me_te_graph_step *steps)
{
    int32_t n = 0;
    for (int32_t i = 0; i < total + warm; i++) {
        if (i < total) {
            steps[n++] = (me_te_graph_step){.chunk = chunks[i]};
        }
        if (i >= warm) {
            steps[n++] = (me_te_graph_step){.chunk = t->spec->n_chunks - 1 -
                                                     chunks[i - warm],
                                            .is_backward = true};
        }
    }
}

/** callables_per_chunk: layers of which something is captured, then those of
 *  multi-token prediction. */
static bool make_chunk(me_trainer *t, me_gpt *gpt, me_te_graph_chunk *chunk)
{
    const me_transformer_block *block = &gpt->decoder;
    const int32_t n_layers = block->num_layers + gpt->mtp.num_layers;
    me_graph_module **modules =
        me_engine_alloc(t->e, (size_t)n_layers, sizeof(me_graph_module *));
    uint32_t n = 0;
    for (int32_t i = 0; modules != NULL && i < n_layers; i++) {
        const int32_t depth = i - block->num_layers;
        const me_transformer_layer *layer =
            depth < 0 ? &block->layers[i]
                      : &gpt->mtp.layers[depth].mtp_model_layer;
        if (layer->graph != NULL) {
            modules[n++] = layer->graph;
        }
    }
    const bool has_angles = me_gpt_has_rotary_embedding(&t->config->model);
    *chunk = (me_te_graph_chunk){.nn = &gpt->nn,
                                 .modules = modules,
                                 .n_modules = n,
                                 .rope = has_angles ? &gpt->rope : NULL};
    return me_engine_is_ok(t->e);
}

void me_te_capture(me_trainer *t)
{
    me_engine *e = t->e;
    const int32_t n_chunks = t->spec->n_chunks;
    const int32_t total = captured_microbatches(t) * n_chunks;
    const int32_t group = t->spec->pipeline.group_size > 0
                              ? t->spec->pipeline.group_size
                              : t->spec->pipeline.ranks;
    me_te_graph_chunk *chunks =
        me_engine_alloc(e, (size_t)n_chunks, sizeof *chunks);
    int32_t *table = me_engine_alloc(e, (size_t)total, sizeof *table);
    me_te_graph_step *steps =
        me_engine_alloc(e, 2 * (size_t)total, sizeof *steps);
    for (int32_t i = 0; me_engine_is_ok(e) && i < n_chunks; i++) {
        make_chunk(t, &t->chunks[i], &chunks[i]);
    }
    if (!me_engine_is_ok(e)) {
        return;
    }
    make_table(t, group, table);
    make_steps(t, table, total, warm_up_forwards(t, group), steps);
    me_te_graphs_create(&t->nn, &(me_te_graph_plan){
                                    .chunks = chunks,
                                    .n_chunks = n_chunks,
                                    .n_microbatches = captured_microbatches(t),
                                    .steps = steps,
                                    .n_steps = 2 * total,
                                    .n_warm_ups = warm_ups(t),
                                });
}
