/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"
#include "config/schedule_choice.h"
#include "parallel/layout.h"

static int32_t layers_to_deal(const me_config *config)
{
    return config->model.num_layers +
           config->parallel.account_for_embedding_in_pipeline_split +
           config->parallel.account_for_loss_in_pipeline_split;
}

static bool is_uneven(const me_config *config)
{
    return config->parallel.decoder_first_pipeline_num_layers != 0 ||
           config->parallel.decoder_last_pipeline_num_layers != 0;
}

static bool has_layout(const me_config *config)
{
    return config->parallel.pipeline_layout[0] != '\0';
}

static me_status check_layout_size(const me_config *config,
                                   const me_layout *layout, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (layout->n_stages % p->pipeline != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.pipeline_layout has %d stages: no multiple "
                       "of parallel.pipeline = %d",
                       (int)layout->n_stages, (int)p->pipeline);
    }
    if (layout->n_stages / p->pipeline != p->virtual_pipeline) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.pipeline_layout has %d stages, not "
                       "parallel.pipeline x parallel.virtual_pipeline = %d x "
                       "%d: leave the latter out",
                       (int)layout->n_stages, (int)p->pipeline,
                       (int)p->virtual_pipeline);
    }
    if (me_layout_n_layers(layout) != config->model.num_layers) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.pipeline_layout has %d layers (t): "
                       "model.num_layers = %d",
                       (int)me_layout_n_layers(layout),
                       (int)config->model.num_layers);
    }
    if (layout->n_mtp_layers != config->model.mtp_num_layers) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.pipeline_layout has %d depths of multi-token "
                       "prediction (m): model.mtp_num_layers = %d",
                       (int)layout->n_mtp_layers,
                       (int)config->model.mtp_num_layers);
    }
    return ME_OK;
}

/** Multi-token prediction before the last stage: what
 *  validate_layer_layout() asserts, and what is not modelled. */
static me_status check_layout_mtp(const me_config *config,
                                  const me_layout *layout, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (layout->mtp_stage < 0 || layout->mtp_stage == layout->n_stages - 1) {
        return ME_OK;
    }
    if (layout->mtp_stage < layout->n_stages - p->pipeline) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.pipeline_layout has multi-token prediction "
                       "(m) in stage %d of %d: it must be in the last chunk "
                       "of a rank, one of the last parallel.pipeline = %d",
                       (int)layout->mtp_stage, (int)layout->n_stages,
                       (int)p->pipeline);
    }
    if (!config->model.untie_embeddings_and_output_weights) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "parallel.pipeline_layout with multi-token prediction "
                       "(m) apart from the loss (L) needs "
                       "model.untie_embeddings_and_output_weights = true: one "
                       "embedding on three stages is not modelled");
    }
    return me_config_has_own_schedule(config)
               ? ME_OK
               : me_fail(diag, ME_ERR_UNSUPPORTED,
                         "parallel.pipeline_layout with multi-token "
                         "prediction (m) apart from the loss (L) is modelled "
                         "under Megatron-LM's own schedules, not under "
                         "pipeline.schedule");
}

static me_status check_layout(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (!has_layout(config)) {
        return ME_OK;
    }
    if (is_uneven(config) || p->num_layers_per_virtual_pipeline_stage != 0 ||
        p->account_for_embedding_in_pipeline_split ||
        p->account_for_loss_in_pipeline_split) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.pipeline_layout does not go with parallel.%s: "
                       "the layout says it",
                       is_uneven(config)
                           ? "decoder_first/last_pipeline_num_layers"
                       : p->num_layers_per_virtual_pipeline_stage != 0
                           ? "num_layers_per_virtual_pipeline_stage"
                           : "account_for_*_in_pipeline_split");
    }
    me_layout layout;
    me_status status = me_layout_init(p->pipeline_layout, diag, &layout);
    if (status == ME_OK) {
        status = check_layout_size(config, &layout, diag);
    }
    if (status == ME_OK) {
        status = check_layout_mtp(config, &layout, diag);
    }
    me_layout_fini(&layout);
    return status;
}

static me_status check_even_split(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (has_layout(config) || is_uneven(config) ||
        layers_to_deal(config) % p->pipeline == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.pipeline = %d does not divide model.num_layers%s "
                   "= %d; parallel.decoder_first_pipeline_num_layers and "
                   "parallel.decoder_last_pipeline_num_layers "
                   "(--decoder-first-pipeline-num-layers, "
                   "--decoder-last-pipeline-num-layers) deal the ends apart",
                   (int)p->pipeline,
                   layers_to_deal(config) == config->model.num_layers
                       ? ""
                       : " with what parallel.account_for_* adds",
                   (int)layers_to_deal(config));
}

/** Layers and stages that are left once the first and last stage are dealt. */
static me_status check_uneven_split(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (!is_uneven(config)) {
        return ME_OK;
    }
    if (p->account_for_embedding_in_pipeline_split ||
        p->account_for_loss_in_pipeline_split) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.account_for_*_in_pipeline_split does not go "
                       "with parallel.decoder_first/last_pipeline_num_layers");
    }
    const int32_t layers = config->model.num_layers -
                           p->decoder_first_pipeline_num_layers -
                           p->decoder_last_pipeline_num_layers;
    const int32_t stages = p->pipeline -
                           (p->decoder_first_pipeline_num_layers != 0) -
                           (p->decoder_last_pipeline_num_layers != 0);
    if (layers >= 0 && stages >= 0 && (layers != 0) == (stages != 0) &&
        (stages == 0 || layers % stages == 0)) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "model.num_layers = %d less "
                   "parallel.decoder_first_pipeline_num_layers = %d and "
                   "parallel.decoder_last_pipeline_num_layers = %d leaves %d "
                   "layers for %d stages: they must come out even",
                   (int)config->model.num_layers,
                   (int)p->decoder_first_pipeline_num_layers,
                   (int)p->decoder_last_pipeline_num_layers, (int)layers,
                   (int)stages);
}

static me_status check_layers_of_chunk(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const int32_t per_chunk = p->num_layers_per_virtual_pipeline_stage;
    if (per_chunk == 0) {
        return ME_OK;
    }
    if (is_uneven(config)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.num_layers_per_virtual_pipeline_stage does "
                       "not go with parallel.decoder_first/last_pipeline_num_"
                       "layers: give parallel.virtual_pipeline");
    }
    const int32_t per_stage = layers_to_deal(config) / p->pipeline;
    if (per_stage % per_chunk == 0 && per_stage >= per_chunk) {
        return per_stage / per_chunk == p->virtual_pipeline
                   ? ME_OK
                   : me_fail(diag, ME_ERR_CONFIG,
                             "parallel.num_layers_per_virtual_pipeline_stage "
                             "= %d and parallel.virtual_pipeline = %d of %d "
                             "layers a stage contradict each other: give one",
                             (int)per_chunk, (int)p->virtual_pipeline,
                             (int)per_stage);
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.num_layers_per_virtual_pipeline_stage = %d does "
                   "not divide the %d layers of a pipeline stage",
                   (int)per_chunk, (int)per_stage);
}

static me_status chunks_divide(const me_config *config, const char *stage,
                               int32_t layers, me_diag *diag)
{
    const int32_t chunks = config->parallel.virtual_pipeline;
    if (layers % chunks == 0) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.virtual_pipeline = %d does not divide the %d "
                   "layers of %s",
                   (int)chunks, (int)layers, stage);
}

static me_status check_chunks(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (p->virtual_pipeline == 1 || has_layout(config)) {
        return ME_OK;
    }
    if (!is_uneven(config)) {
        return chunks_divide(config, "a pipeline stage",
                             layers_to_deal(config) / p->pipeline, diag);
    }
    const int32_t first = p->decoder_first_pipeline_num_layers;
    const int32_t last = p->decoder_last_pipeline_num_layers;
    const int32_t stages = p->pipeline - (first != 0) - (last != 0);
    me_status status =
        chunks_divide(config, "the first pipeline stage", first, diag);
    if (status == ME_OK) {
        status = chunks_divide(config, "the last pipeline stage", last, diag);
    }
    if (status == ME_OK && stages > 0) {
        status = chunks_divide(
            config, "a middle pipeline stage",
            (config->model.num_layers - first - last) / stages, diag);
    }
    return status;
}

static me_status check_interleaving(const me_config *config, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    if (p->overlap_p2p_comm_warmup_flush && !p->overlap_p2p_comm) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "parallel.overlap_p2p_comm_warmup_flush = true needs "
                       "Megatron-LM's interleaved schedule "
                       "(parallel.virtual_pipeline over 1) with "
                       "parallel.overlap_p2p_comm = true");
    }
    if (p->virtual_pipeline == 1 || !me_config_has_own_schedule(config)) {
        return ME_OK;
    }
    const int32_t least = p->overlap_p2p_comm ? 2 : 3;
    if (p->pipeline >= least) {
        return ME_OK;
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "parallel.virtual_pipeline = %d needs parallel.pipeline of "
                   "at least %d%s, not %d",
                   (int)p->virtual_pipeline, (int)least,
                   least == 3 ? " without parallel.overlap_p2p_comm" : "",
                   (int)p->pipeline);
}

/** ModelParallelConfig.__post_init__(). */
static me_status check_deferral(const me_config *config, me_diag *diag)
{
    const me_train_config *t = &config->train;
    if (!t->defer_embedding_wgrad_compute) {
        return ME_OK;
    }
    if (config->parallel.pipeline == 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "train.defer_embedding_wgrad_compute = true needs "
                       "parallel.pipeline over 1, not 1");
    }
    return t->gradient_accumulation_fusion
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "train.defer_embedding_wgrad_compute = true needs "
                         "train.gradient_accumulation_fusion = true (no "
                         "--no-gradient-accumulation-fusion)");
}

/** What validate_args() asserts, beside a distributed optimizer, which
 * overlap_param_gather needs. */
static me_status check_gather_in_step(const me_config *config, me_diag *diag)
{
    if (!config->optimizer.overlap_param_gather_with_optimizer_step) {
        return ME_OK;
    }
    const char *what = NULL;
    if (!config->optimizer.overlap_param_gather) {
        what = "optimizer.overlap_param_gather = true";
    } else if (config->parallel.virtual_pipeline == 1 ||
               !me_config_has_own_schedule(config)) {
        what = "Megatron-LM's interleaved schedule "
               "(parallel.virtual_pipeline over 1)";
    }
    return what == NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "optimizer.overlap_param_gather_with_optimizer_step "
                         "= true needs %s",
                         what);
}

/** @param n  micro-batches of @p whose: " of evaluation", or "" */
static me_status check_groups(const me_config *config, uint64_t n,
                              const char *whose, me_diag *diag)
{
    const me_parallel_config *p = &config->parallel;
    const uint64_t group = (uint64_t)p->microbatch_group_size;
    if (group < (uint64_t)p->pipeline || group > n) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "parallel.microbatch_group_size = %d must be from "
            "parallel.pipeline = %d to the number of micro-batches%s "
            "= %llu when interleaved",
            (int)group, (int)p->pipeline, whose, (unsigned long long)n);
    }
    const uint64_t rest = n % group;
    if (rest != 0 && rest < (uint64_t)p->pipeline) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%llu micro-batches%s in groups of "
                       "parallel.microbatch_group_size = %d leave %d: none or "
                       "at least parallel.pipeline = %d must be left when "
                       "interleaved",
                       (unsigned long long)n, whose, (int)group, (int)rest,
                       (int)p->pipeline);
    }
    return ME_OK;
}

static me_status check_microbatch_groups(const me_config *config, me_diag *diag)
{
    if (config->parallel.virtual_pipeline == 1 ||
        !me_config_has_own_schedule(config)) {
        return ME_OK;
    }
    const me_status status = check_groups(
        config, (uint64_t)config->train.num_microbatches, "", diag);
    return status == ME_OK && config->train.evaluates
               ? check_groups(config, me_config_eval_microbatches(config),
                              " of evaluation", diag)
               : status;
}

static me_status check_schedule(const me_config *config, me_diag *diag)
{
    const me_schedule_config *s = &config->pipeline;
    const bool has_file = s->file[0] != '\0';
    if (has_file && s->name[0] != '\0') {
        return me_fail(diag, ME_ERR_CONFIG,
                       "pipeline.schedule and pipeline.schedule_file "
                       "contradict each other: give one (--set "
                       "pipeline.schedule= takes the first away)");
    }
    if (!me_config_has_own_schedule(config) && config->parallel.pipeline == 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "pipeline.schedule%s needs parallel.pipeline over 1",
                       has_file ? "_file" : "");
    }
    return ME_OK;
}

me_rule *const me_pipeline_rules[] = {
    check_layout,
    check_even_split,
    check_uneven_split,
    check_layers_of_chunk,
    check_chunks,
    check_schedule,
    check_interleaving,
    check_gather_in_step,
    check_deferral,
    check_microbatch_groups,
    NULL,
};
