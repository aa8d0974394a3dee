/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/fit_probe.h"

#include "base/workers.h"
#include "config/options.h"
#include "run/job_run.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct probe {
    me_fit_base *base;
    me_fit_trial *trials;
} probe;

/** The job with a variant, finished; it is the job's fault if there is none.
 *
 *  @param batch  global one; 0: the job's */
static me_status finish_job(const me_fit_base *base, const me_variant *variant,
                            uint64_t batch, me_diag *diag,
                            me_config **config_out)
{
    char text[32] = "";
    (void)snprintf(text, sizeof text, "%" PRIu64, batch);
    me_config *config = me_config_clone(base->job);
    me_status status = config == NULL ? me_fail(diag, ME_ERR_NOMEM,
                                                "no host memory for the job")
                                      : me_variant_apply(variant, config, diag);
    if (status == ME_OK && batch != 0) {
        status = me_config_set(config, "train.global_batch_size", text, diag);
    }
    if (status == ME_OK) {
        status = me_config_finish(config, 1, diag);
    }
    if (status != ME_OK) {
        me_config_destroy(config);
        return status;
    }
    *config_out = config;
    return ME_OK;
}

/** Does it train as many samples a step on as many ranks? */
static bool is_same_work(const me_config *a, const me_config *b)
{
    return a->parallel.world_size == b->parallel.world_size &&
           a->train.global_batch_size == b->train.global_batch_size;
}

/** A global batch with as few micro-batches as fill the pipeline, and some that
 *  repeat: more of them take no more memory. 0: the job's. */
static uint64_t small_batch(const me_config *config)
{
    const int32_t fill = 2 * config->parallel.pipeline;
    const int32_t n = config->train.num_microbatches;
    return n <= fill
               ? 0
               : config->train.global_batch_size / (uint64_t)n * (uint64_t)fill;
}

/** In place of a job the same with fewer micro-batches; one that says by itself how
 *  many it has, as PyTorch's pipelines do, stays. */
static me_status make_small(const me_fit_base *base, const me_variant *variant,
                            me_diag *diag, me_config **config)
{
    const uint64_t batch = small_batch(*config);
    me_config *small = NULL;
    me_diag refused = {.status = ME_OK};
    if (batch == 0) {
        return ME_OK;
    }
    const me_status status = finish_job(base, variant, batch, &refused, &small);
    if (status == ME_OK) {
        me_config_destroy(*config);
        *config = small;
    }
    return status == ME_ERR_NOMEM
               ? me_fail(diag, status, "no host memory for the job")
               : ME_OK;
}

/** The job with the change, made small. */
static me_status make_job(const me_fit_base *base, const me_fit_change *change,
                          me_diag *diag, me_config **config_out)
{
    char text[ME_FIT_TEXT];
    me_variant variant = {.n_sets = 0};
    me_config *config = NULL;
    if (!me_fit_change_variant(change, base->finished, text)) {
        return me_fail(diag, ME_ERR_CONFIG, "a change of too many words");
    }
    me_status status = me_variant_parse(text, diag, &variant);
    if (status == ME_OK) {
        status = finish_job(base, &variant, 0, diag, &config);
    }
    if (status == ME_OK && !is_same_work(config, base->finished)) {
        status = me_fail(diag, ME_ERR_CONFIG, "another batch, or other ranks");
    }
    if (status == ME_OK && !me_fit_change_is_of_use(change, config)) {
        status = me_fail(diag, ME_ERR_CONFIG, "a part of it is of no use");
    }
    if (status == ME_OK) {
        status = make_small(base, &variant, diag, &config);
    }
    me_variant_fini(&variant);
    if (status != ME_OK) {
        me_config_destroy(config);
        return status;
    }
    *config_out = config;
    return ME_OK;
}

/** Rank after rank, until one does not fit. */
static me_status probe_ranks(const me_fit_base *base, me_run *run,
                             me_fit_trial *trial)
{
    const int32_t ranks[] = {base->worst_rank, 0,
                             base->finished->parallel.world_size - 1};
    me_status status = ME_OK;
    trial->n_classes = me_run_plan(run)->n_classes;
    trial->end = ME_FIT_OPEN;
    for (int32_t n = 1; n <= 3 && status == ME_OK && trial->end == ME_FIT_OPEN;
         n++) {
        me_verdict verdict;
        status = me_run_probe(run, ranks, n, &trial->diag, &verdict);
        if (status == ME_OK && n == 1) {
            trial->bytes = verdict.worst_bytes;
        }
        if (status == ME_OK && !me_verdict_lets_go(&verdict)) {
            trial->end = ME_FIT_OVER;
        }
    }
    return status;
}

static me_status try_change(const me_fit_base *base, me_fit_trial *trial)
{
    const me_run_options options = {.strict = base->strict, .threads = 1};
    me_transport *alone = NULL;
    me_config *config = NULL;
    me_run *run = NULL;
    me_status status = make_job(base, &trial->change, &trial->diag, &config);
    if (status == ME_OK) {
        status = me_transport_local_create(&alone);
    }
    if (status == ME_OK) {
        status = me_run_create(alone, config, &options, &trial->diag, &run);
    } else {
        me_config_destroy(config);
    }
    if (status == ME_OK) {
        status = probe_ranks(base, run, trial);
    }
    me_run_destroy(run);
    me_transport_destroy(alone);
    return status;
}

static bool probe_task(void *self, uint32_t task)
{
    probe *p = self;
    me_fit_trial *trial = &p->trials[task];
    trial->end = ME_FIT_REFUSED;
    trial->status = try_change(p->base, trial);
    if (trial->status != ME_OK && trial->status != ME_ERR_NOMEM) {
        trial->status = ME_OK;
        trial->end = ME_FIT_REFUSED;
    }
    me_progress_step(&p->base->progress);
    return trial->status == ME_OK;
}

me_status me_fit_probe(me_fit_base *base, me_fit_trial *trials,
                       int32_t n_trials, me_diag *diag)
{
    probe p = {.base = base, .trials = trials};
    me_progress *progress = &base->progress;
    const uint64_t start_ms = progress->start_ms;
    me_progress_begin(progress, base->shows_progress, base->tried,
                      (uint32_t)n_trials);
    me_progress_follow(progress, ", then what may fit as a whole", start_ms);
    me_workers_run(base->threads, (uint32_t)n_trials, probe_task, &p);
    me_progress_end(progress);
    for (int32_t i = 0; i < n_trials; i++) {
        if (trials[i].status != ME_OK) {
            return me_fail(diag, trials[i].status, "no host memory to search");
        }
    }
    return ME_OK;
}
