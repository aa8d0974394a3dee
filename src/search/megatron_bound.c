/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lower bounds of a Megatron-LM job, by arithmetic on what each rank of one of
 * its stages holds and multiplies. All that is left out is at least 0: norms and
 * biases, temporaries, workspaces, what CUDA takes; collectives, kernels that
 * memory bounds, the host, the optimizer.
 *
 * Where layers are dealt evenly every stage has as many, so that a stage with
 * the embedding or the head is one of them; elsewhere some stage has at least
 * the mean, and the ends are left out.
 */
#include "config/schedule_choice.h"
#include "search/rules.h"

enum {
    ADAM_STATES = 2,
    STATE_BYTES = 4,
    MAIN_BYTES = 4
};

/** What a bound is made of, of one rank; elements. */
typedef struct parts {
    const me_config *config;
    const me_job_card *card;
    const me_probe *probe;
    double layers;           /**< of the stage */
    me_megatron_alike alike; /**< those that its probe is of */
    bool is_even;            /**< all stages have as many */
    double dense;            /**< parameters of a layer, without experts */
    double products;         /**< of them that each of its tokens multiplies */
    double mlp;              /**< of these, of the MLP */
    double experts;          /**< parameters of its experts */
    double end;              /**< of embedding or head */
    double ends;             /**< of those that the stage with most has */
    double tokens;           /**< of a micro-batch, of the rank's sequence */
    double residual_bytes;   /**< of a layer's input */
} parts;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static bool has_experts(const me_config *c)
{
    return c->moe.num_experts > 0;
}

static double gates(const me_config *c)
{
    return me_is_gated_activation(c->model.activation) ? 2 : 1;
}

/** Matrices of queries, gates, keys and values, and of the output. */
static double attention_parameters(const me_config *c)
{
    const me_model_config *m = &c->model;
    const double h = (double)m->hidden_size;
    const double heads = (double)m->num_attention_heads;
    const double t = (double)c->parallel.tensor;
    if (m->multi_latent_attention) {
        return heads * (double)m->v_head_dim * h / t;
    }
    const double d = (double)m->kv_channels;
    const double gates = m->attention_output_gate ? heads : 0;
    return h * d * (2 * heads + gates + 2 * (double)m->num_query_groups) / t;
}

static bool is_split_evenly(const me_config *c)
{
    const me_parallel_config *p = &c->parallel;
    return p->pipeline_layout[0] == '\0' &&
           p->decoder_first_pipeline_num_layers == 0 &&
           p->decoder_last_pipeline_num_layers == 0 &&
           !p->account_for_embedding_in_pipeline_split &&
           !p->account_for_loss_in_pipeline_split &&
           c->model.num_layers % p->pipeline == 0;
}

static parts parts_of(const me_config *c, const me_job_card *card,
                      const me_probe *probe)
{
    const me_model_config *m = &c->model;
    const me_parallel_config *p = &c->parallel;
    const double h = (double)m->hidden_size;
    const double t = (double)p->tensor;
    const bool is_dense = !has_experts(c);
    parts x = {.config = c,
               .card = card,
               .probe = probe,
               .is_even = is_split_evenly(c),
               .layers = (double)m->num_layers / (double)p->pipeline};
    x.mlp = is_dense ? h * (double)m->ffn_hidden_size * (gates(c) + 1) / t : 0;
    x.products = attention_parameters(c) + x.mlp;
    x.dense = x.products;
    x.alike = me_megatron_count_alike(c, x.is_even);
    if (!is_dense && c->moe.latent_size == 0) {
        x.experts = (double)c->moe.num_experts / (double)p->expert * h *
                    (double)c->moe.ffn_hidden_size * (gates(c) + 1) /
                    (double)p->expert_tensor;
    }
    x.end = x.is_even ? h * (double)m->padded_vocab_size / t : 0;
    x.ends = p->pipeline == 1 && m->untie_embeddings_and_output_weights
                 ? 2 * x.end
                 : x.end;
    x.tokens = (double)m->seq_length * (double)c->train.micro_batch_size /
               (double)p->context;
    x.residual_bytes = x.tokens * h *
                       (double)me_dtype_bytes(c->train.params_dtype) /
                       (p->sequence ? t : 1);
    return x;
}

/** Weight, gradient and states of a parameter whose states @p shards ranks
 *  share. */
static double bytes_of_parameter(const me_config *c, double shards)
{
    const double own =
        c->fp8.param ? 1 : (double)me_dtype_bytes(c->train.params_dtype);
    const me_optimizer_config *o = &c->optimizer;
    if (o->precision_aware || o->cpu_offload) {
        return own; // states in types, and places, of their own
    }
    const bool is_adam = o->kind == ME_OPTIMIZER_ADAM;
    const double states =
        (is_adam ? ADAM_STATES * STATE_BYTES : 0) + (own < 4 ? MAIN_BYTES : 0);
    if (c->parallel.torch_fsdp2) {
        return (own + (is_adam ? ADAM_STATES * own : 0)) / shards;
    }
    const double gradient = (double)me_dtype_bytes(c->train.grad_dtype);
    if (o->distributed && me_is_emerging_optimizer(o->kind)) {
        return own + gradient; // ranks have whole matrices, some of them few
    }
    return own + gradient + states / (o->distributed ? shards : 1);
}

/** The same, if nobody shares states; 0: they are not as bytes_of_parameter() has
 *  them in a probe's job. */
static double whole_bytes_of_parameter(const me_config *c)
{
    const me_optimizer_config *o = &c->optimizer;
    if (o->precision_aware || o->cpu_offload || c->fp8.param ||
        c->parallel.torch_fsdp2 || me_is_emerging_optimizer(o->kind)) {
        return 0;
    }
    return bytes_of_parameter(c, 1);
}

/** Parameters of a layer that its probe has shown beside experts and what is
 *  multiplied for sure. */
static double seen_parameters(const parts *x)
{
    const double whole = whole_bytes_of_parameter(x->config);
    const double all = whole > 0 ? (double)x->probe->lasting_bytes / whole : 0;
    return larger(all - x->experts - x->dense, 0);
}

static double static_bytes(const parts *x)
{
    const me_config *c = x->config;
    const me_parallel_config *p = &c->parallel;
    const double instances =
        c->optimizer.distributed ? (double)c->optimizer.num_instances : 1;
    const double shards =
        (double)p->data * (double)p->context / (instances < 1 ? 1 : instances);
    const double of_experts =
        (double)p->world_size /
        ((double)p->pipeline * (double)p->expert * (double)p->expert_tensor) /
        (instances < 1 ? 1 : instances);
    const double dense =
        x->layers * x->dense + x->alike.of_stage * seen_parameters(x);
    return (dense + x->ends) * bytes_of_parameter(c, shards) +
           x->alike.of_stage * x->experts * bytes_of_parameter(c, of_experts);
}

/** FSDP2 shards a model that has been built whole. */
static double bytes_when_built(const parts *x)
{
    const me_config *c = x->config;
    const double own =
        c->fp8.param ? 1 : (double)me_dtype_bytes(c->train.params_dtype);
    return c->parallel.torch_fsdp2
               ? own * (x->layers * x->dense + x->alike.of_stage * x->experts +
                        x->ends)
               : 0;
}

/** What a layer's forward keeps for its backward, with every recomputation that
 *  there is but the one of full layers. */
static double kept_bytes(const parts *x)
{
    const me_config *c = x->config;
    const me_recompute_config *r = &c->recompute;
    const double element = (double)me_dtype_bytes(c->train.params_dtype);
    if (r->granularity == ME_RECOMPUTE_FULL || c->fp8.format != ME_FP8_NONE) {
        return 0;
    }
    const bool is_selective = r->granularity == ME_RECOMPUTE_SELECTIVE;
    double width = 0; // elements of a token
    if (!has_experts(c) && !(is_selective && r->mlp)) {
        width += gates(c) * (double)c->model.ffn_hidden_size;
    }
    return x->tokens * width * element / (double)c->parallel.tensor;
}

/** Chunk micro-batches of the first rank whose forward has ended when its first
 *  backward begins. */
static double in_flight(const me_config *c)
{
    const double p = (double)c->parallel.pipeline;
    const double v = (double)c->parallel.virtual_pipeline;
    const double all = (double)c->train.num_microbatches * v;
    if (!me_config_has_own_schedule(c) || c->parallel.pipeline == 1) {
        return 1;
    }
    const double warmup = v > 1 ? (p - 1) * 2 + (v - 1) * p + 1 : p;
    return warmup < all ? warmup : all;
}

/** What a chunk of a micro-batch in flight holds: @p seen of each of its layers
 *  that the probe is of, @p alike of them, or what is sure without one. Of full
 *  recomputation the input of every group of layers is there, at least one. */
static double bytes_of_chunk(const parts *x, double alike, uint64_t seen)
{
    const me_recompute_config *r = &x->config->recompute;
    const double layers =
        x->layers / (double)x->config->parallel.virtual_pipeline;
    const bool is_full = r->granularity == ME_RECOMPUTE_FULL;
    if (is_full && r->method == ME_RECOMPUTE_UNIFORM && r->num_layers > 1) {
        return layers * x->residual_bytes / (double)r->num_layers;
    }
    const double sure =
        x->config->fp8.format != ME_FP8_NONE ||
                x->config->recompute.distribute_saved_activations
            ? 0
            : x->residual_bytes + kept_bytes(x);
    return layers * sure + alike * larger((double)seen - sure, 0);
}

/** What the chunks of @p n micro-batches in flight hold: modules keep some of the
 *  last one alone. */
static double bytes_in_flight(const parts *x, double alike, double n)
{
    return (n - 1) * bytes_of_chunk(x, alike, x->probe->kept_bytes) +
           bytes_of_chunk(x, alike, x->probe->held_bytes);
}

/** Of the last stage, when its last chunk first runs; it has no warm-up of its
 *  own. */
static double in_flight_at_last(const me_config *c)
{
    const double p = (double)c->parallel.pipeline;
    const double v = (double)c->parallel.virtual_pipeline;
    const double all = (double)c->train.num_microbatches * v;
    const double least = (v - 1) * p + 1;
    if (!me_config_has_own_schedule(c) || c->parallel.pipeline == 1) {
        return v; // of one micro-batch
    }
    return least < all ? least : all;
}

/** What a batch and its masks may be, which stages have parts of. */
static double batch_bytes(const parts *x)
{
    const double of_token = 64;
    return of_token * x->tokens;
}

/** Beside all layers' bytes, of the last stage, whose last layer must be one that
 *  the probe ends in. */
static double spike_bytes(const parts *x)
{
    const double spike = (double)x->probe->spike_bytes - batch_bytes(x);
    return x->alike.is_last ? spike : 0;
}

/** Activations of the first stage at its first backward, or of the last one at its
 *  head, whichever are more; the only one has both. */
static double activation_bytes(const parts *x)
{
    const double spike = spike_bytes(x);
    const double at_last =
        bytes_in_flight(x, x->alike.of_last, in_flight_at_last(x->config)) +
        spike;
    const double at_first =
        bytes_in_flight(x, x->alike.of_first, in_flight(x->config));
    return !x->is_even ? 0 : at_last > at_first ? at_last : at_first;
}

/** FLOPs a second that no kernel of a class exceeds (src/time/device_time.c): a
 *  product's best tile, filled. */
static double product_rate(const parts *x)
{
    const me_rates *rates = &x->card->rates;
    const double mean_of_best = 0.95;
    return (x->config->train.params_dtype == ME_DTYPE_FLOAT32
                ? rates->single_product
                : rates->half_product) /
           mean_of_best;
}

/** Columns of a head, of whichever product has fewer. */
static uint64_t least_head(const me_config *c)
{
    const me_model_config *m = &c->model;
    return !m->multi_latent_attention           ? m->kv_channels
           : m->v_head_dim < m->query_head_size ? m->v_head_dim
                                                : m->query_head_size;
}

/** Attention over the half of the tokens that each may look at: two products
 *  forward, five backward; whatever runs it. */
static double attention_seconds(const parts *x, bool is_backward)
{
    const me_config *c = x->config;
    const double width =
        (double)c->model.num_attention_heads * (double)least_head(c);
    const double flops = 2 * x->tokens * (double)c->model.seq_length * width /
                         (double)c->parallel.tensor * (is_backward ? 2 : 1);
    double rate = product_rate(x);
    for (int i = 0; i < 2; i++) {
        const double flash = x->card->rates.flash[i][is_backward];
        rate = flash > rate ? flash : rate;
    }
    return flops / rate;
}

static double forward_products(const parts *x)
{
    return 2 * x->tokens * x->products / product_rate(x) +
           attention_seconds(x, false);
}

static double backward_products(const parts *x)
{
    const me_config *c = x->config;
    const me_recompute_config *r = &c->recompute;
    double again = 0;
    if (r->granularity == ME_RECOMPUTE_FULL &&
        r->method == ME_RECOMPUTE_UNIFORM) {
        again = forward_products(x);
    } else if (r->granularity == ME_RECOMPUTE_SELECTIVE && r->mlp) {
        again = 2 * x->tokens * x->mlp * gates(c) / (gates(c) + 1) /
                product_rate(x);
    }
    return again + 4 * x->tokens * x->products / product_rate(x) +
           attention_seconds(x, true);
}

static double seconds_of(int64_t ns)
{
    return 1e-9 * (double)ns;
}

/** Layers, both ways: what a probe has shown of those that it is of, and the
 *  products of the others. */
static double layers_seconds(const parts *x, double layers, double alike)
{
    const double forward = forward_products(x);
    const double backward = backward_products(x);
    const double more = larger(seconds_of(x->probe->forward_ns) - forward, 0) +
                        larger(seconds_of(x->probe->backward_ns) - backward, 0);
    return layers * (forward + backward) + alike * more;
}

/** Head of the last stage: three products. Of the only one, the embedding as
 *  well. */
static double head_seconds(const parts *x)
{
    const double products = 6 * x->tokens * x->end / product_rate(x);
    const int64_t seen = x->config->parallel.pipeline > 1 ? x->probe->head_ns
                                                          : x->probe->ends_ns;
    return larger(products, seconds_of(seen));
}

/** One collective of the data-parallel ranks: more of them take more latency. */
static double reduction_seconds(const parts *x, me_collective kind,
                                double bytes)
{
    const me_parallel_config *p = &x->config->parallel;
    const me_launch launch = {.kind = ME_LAUNCH_COLLECTIVE,
                              .collective = (uint8_t)kind,
                              .bytes = (uint64_t)bytes};
    const me_time_group group = {
        .size = p->data * p->context,
        .is_remote =
            p->tensor * p->context * p->data > x->config->device.gpus_per_node,
    };
    return group.size > 1
               ? seconds_of(me_collective_ns(&x->card->rates, &launch, &group))
               : 0;
}

/** After the last backward gradients are reduced, and after the step parameters
 *  gathered, unless either overlaps with what else there is. */
static double end_seconds(const parts *x)
{
    const me_config *c = x->config;
    const me_optimizer_config *o = &c->optimizer;
    if (c->parallel.torch_fsdp2 || x->card->has_machine || !x->is_even ||
        o->num_instances > 1 || c->fp8.param) {
        return 0;
    }
    const double parameters = x->layers * x->dense + x->ends;
    double seconds = 0;
    if (!o->overlap_grad_reduce) {
        seconds += reduction_seconds(
            x,
            o->distributed ? ME_COLLECTIVE_REDUCE_SCATTER
                           : ME_COLLECTIVE_ALL_REDUCE,
            parameters * (double)me_dtype_bytes(c->train.grad_dtype));
    }
    if (o->distributed && !o->overlap_param_gather) {
        seconds += reduction_seconds(
            x, ME_COLLECTIVE_ALL_GATHER,
            parameters * (double)me_dtype_bytes(c->train.params_dtype));
    }
    return seconds;
}

/**
 * The last stage works for every micro-batch, and with Megatron-LM's own
 * functions not before the first one has come through a chunk of each stage
 * before it, nor is the step done before the last gradient has gone back through
 * them.
 */
static double card_seconds(const parts *x)
{
    const me_config *c = x->config;
    const double m = (double)c->train.num_microbatches;
    double seconds =
        m * (layers_seconds(x, x->layers, x->alike.of_stage) + head_seconds(x));
    if (x->is_even && me_config_has_own_schedule(c)) {
        seconds +=
            (double)(c->parallel.pipeline - 1) *
            layers_seconds(x, x->layers / (double)c->parallel.virtual_pipeline,
                           x->alike.of_chunk);
    }
    return seconds + end_seconds(x);
}

/** A stage's host launches all that it runs, and its collectives run one after the
 *  other, whatever the card does meanwhile. */
static double step_seconds(const parts *x)
{
    const me_probe *p = x->probe;
    const double m = (double)x->config->train.num_microbatches;
    const double ends =
        x->config->parallel.pipeline > 1 ? 0 : seconds_of(p->host_ends_ns);
    const double host = m * (x->alike.of_stage * seconds_of(p->host_ns) + ends);
    const double collectives =
        m * x->alike.of_stage * seconds_of(p->collectives_ns);
    return larger(card_seconds(x), larger(host, collectives));
}

me_search_bound me_megatron_bound(const me_config *config,
                                  const me_job_card *card,
                                  const me_probe *probe)
{
    const parts x = parts_of(config, card, probe);
    me_search_bound bound = {
        .bytes = (uint64_t)larger(static_bytes(&x) + activation_bytes(&x),
                                  bytes_when_built(&x)),
    };
    if (card->rates.is_known) {
        bound.step_ns = (int64_t)(step_seconds(&x) * 1e9);
    }
    return bound;
}
