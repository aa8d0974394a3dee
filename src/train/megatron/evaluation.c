/* SPDX-License-Identifier: BSD-3-Clause */
/* training/training.py: evaluate(), forwards without a tape between two iterations
 * or after the last. Its micro-batches are alike but for the losses that they
 * leave, and so are its iterations from the second one on, so that the last of
 * both are run, and of the others only the losses are there. */
#include "base/alloc.h"
#include "base/size.h"
#include "tensor/strand.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/forward_backward.h"
#include "train/megatron/p2p.h"
#include "train/megatron/repeat.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

enum {
    ITERATIONS = 2, /**< the second has the losses of the first */
    FORWARDS = 2,   /**< the second has what the first has made */
    GROUPS = 2,     /**< interleaved: of micro-batches, likewise */
    LOSS_BYTES = 8  /**< a sum, and over how many tokens */
};

static const me_routing balanced = {.imbalance = 1};

/** What evaluate()'s names hold. */
typedef struct losses {
    me_tensor **reports; /**< of the iteration before, then of this one */
    uint64_t n_before;
    uint64_t n;
    me_tensor *total;
    me_tensor *sum;
} losses;

/** What an evaluation changes, as training has it. */
typedef struct training {
    const me_config *config;
    const me_megatron_spec *spec;
    me_nn nn;
    me_tensor **reports;
    struct me_repeats *repeats;
    bool records;
} training;

/** What modules run on, of all chunks. */
static void set(me_nn *nn, const me_nn *like)
{
    nn->config = like->config;
    nn->is_evaluating = like->is_evaluating;
    nn->fine_offload = like->fine_offload;
    nn->routing = like->routing;
}

static void set_all(me_trainer *t, const me_nn *like)
{
    set(&t->nn, like);
    for (int32_t c = 0; c < t->spec->n_chunks; c++) {
        set(&t->chunks[c].nn, like);
    }
}

/** The model in evaluation, as a job: larger micro-batches, no dropout, and what
 *  is recomputed in training alone is not. Where tokens go is known of training,
 *  if at all. @return false: nothing has changed; else end() follows */
static bool begin(me_trainer *t, uint64_t forwards, training *before)
{
    me_engine *e = t->e;
    me_config *config = me_engine_alloc(e, 1, sizeof *config);
    me_megatron_spec *spec = me_engine_alloc(e, 1, sizeof *spec);
    if (config == NULL || spec == NULL) {
        return false;
    }
    *before = (training){.config = t->config,
                         .spec = t->spec,
                         .nn = t->nn,
                         .reports = t->reports,
                         .repeats = t->repeats};
    *config = *t->config;
    config->train.micro_batch_size = me_config_eval_micro_batch(config);
    config->model.hidden_dropout = 0;
    config->model.attention_dropout = 0;
    config->recompute.core_attn = false;
    if (config->recompute.granularity == ME_RECOMPUTE_FULL) {
        config->recompute.granularity = ME_RECOMPUTE_NONE;
    }
    *spec = *t->spec;
    spec->config = config;
    spec->pipeline.microbatches = (int32_t)forwards;
    t->config = config;
    t->spec = spec;
    me_nn nn = t->nn;
    nn.config = config;
    nn.is_evaluating = true;
    nn.fine_offload = NULL; // nothing is saved
    nn.routing = me_routing_is_uniform(nn.routing) ? nn.routing : &balanced;
    set_all(t, &nn);
    me_repeats_init(t);
    before->records = me_grad_enable(e, false);
    return true;
}

static void end(me_trainer *t, const training *before)
{
    if (t->repeats != before->repeats) {
        me_strands_settle(t->e);
        me_repeats_fini(t);
    }
    me_grad_enable(t->e, before->records);
    t->config = before->config;
    t->spec = before->spec;
    set_all(t, &before->nn);
    t->reports = before->reports;
    t->repeats = before->repeats;
    t->n_reports = 0;
}

/** How many forwards of a chunk are run: all of interleaved groups. */
static uint64_t forwards_run(const me_trainer *t, uint64_t count)
{
    const me_pipeline *p = &t->spec->pipeline;
    const int32_t group = p->group_size > 0 ? p->group_size : p->ranks;
    return me_min_u64(
        count, p->chunks == 1 ? FORWARDS : (uint64_t)GROUPS * (uint64_t)group);
}

/** A name is bound anew. */
static void bind(me_trainer *t, me_tensor **name, me_tensor *x)
{
    me_tensor *before = *name;
    *name = x;
    me_release(t->e, before);
}

/** Forwards of a schedule without interleaving, with or without neighbours. */
static void forward_only(me_trainer *t)
{
    me_engine *e = t->e;
    const me_pipeline *p = &t->spec->pipeline;
    me_tensor *total = me_keep_scalar(e, "total_num_tokens", 4);
    me_tensor *input = NULL;
    me_tensor *output = NULL;
    me_tensor *num_tokens = NULL;
    for (int32_t i = 0; i < p->microbatches && me_engine_is_ok(e); i++) {
        me_tensor *x = NULL;
        if (p->rank > 0) {
            me_exchange_run(t, &(me_exchange){.from_previous = true}, &x, NULL);
        }
        bind(t, &input, x);
        me_tensor *tokens = NULL;
        bind(t, &output, me_forward_step(t, 0, i, input, &tokens));
        bind(t, &num_tokens, tokens);
        if (p->rank < p->ranks - 1) {
            me_exchange_run(t, &(me_exchange){.to_next = output}, NULL, NULL);
        }
    }
    me_release(e, total);
    me_release(e, input);
    me_release(e, output);
    me_release(e, num_tokens);
}

/** Losses of micro-batches that are not run. */
static void leave_losses(me_trainer *t, losses *l, uint64_t count)
{
    for (uint64_t i = 0; me_has_last_stage(t) && i < count; i++) {
        l->reports[l->n++] = me_keep_scalar(t->e, "cat", LOSS_BYTES);
    }
}

/** A list goes from its last item on. */
static void drop_reports(me_trainer *t, losses *l, uint64_t count)
{
    for (uint64_t i = count; i > 0; i--) {
        me_clear(t->e, &l->reports[i - 1]);
    }
    for (uint64_t i = count; i < l->n; i++) {
        l->reports[i - count] = l->reports[i];
    }
    l->n -= count;
}

/** torch.vstack(val).sum(dim=0), over data-parallel ranks, added up. */
static void add_up(me_trainer *t, losses *l)
{
    me_engine *e = t->e;
    if (!me_has_last_stage(t)) {
        return;
    }
    if (l->total == NULL) {
        l->total = me_keep_scalar(e, "total_loss_dict", LOSS_BYTES);
    }
    bind(t, &l->sum, NULL);
    me_tensor *rows = me_keep_scalar(e, "vstack", LOSS_BYTES * l->n);
    l->sum = me_keep_scalar(e, "sum", LOSS_BYTES);
    me_release(e, rows);
    me_communicate(e, t->comm,
                   (me_call){ME_GROUP_DATA_CONTEXT, ME_COLLECTIVE_ALL_REDUCE,
                             ME_DTYPE_FLOAT32, 2, -1, false});
}

/** forward_backward_func(forward_only=True), and its losses. */
static void run_iteration(me_trainer *t, losses *l, uint64_t count, bool runs)
{
    const uint64_t n_run = runs ? (uint64_t)t->spec->pipeline.microbatches : 0;
    l->n_before = l->n;
    leave_losses(t, l, count - n_run);
    t->n_reports = 0;
    t->reports = &l->reports[l->n];
    if (runs && t->spec->n_chunks == 1) {
        forward_only(t);
    } else if (runs) {
        me_forward_only_interleaved(t);
    }
    l->n += (uint64_t)t->n_reports;
    drop_reports(t, l, l->n_before);
    if (t->config->train.empty_unused_memory_level >= 1) {
        me_empty_cache(t->e);
    }
    add_up(t, l);
}

/** evaluate(), in what training is not. */
static void evaluate(me_trainer *t, losses *l, uint64_t count)
{
    me_engine *e = t->e;
    const bool is_one =
        t->config->train.eval_iters == 1 && !t->config->train.full_validation;
    me_barriers(t, 2);
    for (int i = is_one ? 1 : 0; i < ITERATIONS && me_engine_is_ok(e); i++) {
        run_iteration(t, l, count, i == ITERATIONS - 1);
    }
    me_tensor *mean = NULL;
    if (l->total != NULL) {
        mean = me_keep_scalar(e, "div", 4);
    }
    me_gather_timers(t, 1);
    drop_reports(t, l, l->n);
    me_clear(e, &l->sum);
    me_clear(e, &l->total);
    me_release(e, mean);
    me_barriers(t, 1);
}

void me_evaluate(me_trainer *t)
{
    me_engine *e = t->e;
    const uint64_t count = me_config_eval_microbatches(t->config);
    if (!t->config->train.evaluates || t->spec->order != NULL) {
        return;
    }
    const me_context context = *me_context_now(e);
    me_phase_set(e, ME_PHASE_EVALUATION);
    t->iteration++;
    me_iteration(e, t->iteration);
    losses l = {.n = 0};
    l.reports =
        me_alloc((size_t)count * ITERATIONS, sizeof *l.reports, "evaluation");
    training before;
    if (l.reports == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for an evaluation");
    } else if (begin(t, forwards_run(t, count), &before)) {
        if (me_engine_is_ok(e)) {
            evaluate(t, &l, count);
        }
        end(t, &before);
    }
    me_free(l.reports);
    me_point(e, "evaluated");
    me_context_restore(e, context);
}
