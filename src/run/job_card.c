/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/job_card.h"

#include "base/data_files.h"
#include "config/framework.h"
#include "config/megatron/te_versions.h"
#include "config/slurm.h"
#include "device/machine.h"
#include "run/cudnn_norms.h"
#include "run/job_machine.h"

#include <inttypes.h>
#include <string.h>

static const char stand_in[] = "h200-141gb";

static me_status load_named(const char *name, me_diag *diag,
                            me_device_card *card_out, me_rates *rates_out)
{
    me_str path = {0};
    if (strchr(name, ME_SLURM_EITHER) != NULL && strchr(name, '/') == NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--constraint names several cards, %.64s: say which one "
                       "the job gets (--device)",
                       name);
    }
    me_status status = me_data_find(&me_data_cards, name, diag, &path);
    if (status == ME_OK) {
        status = me_device_card_load(me_str_text(&path), diag, card_out);
    }
    if (status == ME_OK) {
        status = me_rates_load(me_str_text(&path), diag, rates_out);
    }
    me_str_fini(&path);
    // A card that cannot be read is the user's input, not our trouble.
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

/** The search for the file of the card that the machine has. */
typedef struct search {
    const char *nvidia_name;
    me_device_card card;
    me_rates rates;
    me_status status; /**< ME_ERR_NOMEM: a file was not read */
} search;

static bool is_of_card(void *self, const char *name, const char *path)
{
    (void)name;
    search *s = self;
    me_device_card card;
    s->status = me_device_card_load(path, NULL, &card);
    if (s->status != ME_OK || strcmp(card.name, s->nvidia_name) != 0) {
        return s->status == ME_ERR_NOMEM;
    }
    s->card = card;
    s->rates = (me_rates){.is_known = false};
    s->status = me_rates_load(path, NULL, &s->rates);
    return s->status == ME_OK || s->status == ME_ERR_NOMEM;
}

/** What is known of such a card, and what the machine says of its own. */
static me_status find_own(me_diag *diag, me_device_card *card_out,
                          me_rates *rates_out)
{
    me_machine_card own;
    me_status status = me_machine_find_card(diag, &own);
    if (status != ME_OK) {
        return status;
    }
    search s = {.nvidia_name = own.name};
    bool is_known = false;
    status = me_data_visit(&me_data_cards, is_of_card, &s, &is_known);
    if (status != ME_OK || s.status == ME_ERR_NOMEM) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a card");
    }
    if (is_known) {
        *card_out = s.card;
        *rates_out = s.rates;
        card_out->total_bytes =
            own.total_bytes == 0 ? s.card.total_bytes : own.total_bytes;
        return ME_OK;
    }
    if (own.total_bytes == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--device auto: no file of configs/cards is of '%s', "
                       "and %s does not say its memory",
                       own.name, own.seen_by);
    }
    me_device_card like;
    me_rates unknown; // its rates are not those of the one that stands in
    status = load_named(stand_in, diag, &like, &unknown);
    if (status == ME_OK) {
        *card_out = me_device_card_stand_in(
            &like,
            &(me_seen_card){
                .name = own.name,
                .total_bytes = own.total_bytes,
                .multiprocessors = own.multiprocessors,
                .threads_per_multiprocessor = own.threads_per_multiprocessor,
            });
    }
    return status;
}

me_status me_card_choose(const char *name, me_diag *diag,
                         me_device_card *card_out, me_rates *rates_out)
{
    *rates_out = (me_rates){.is_known = false};
    return strcmp(name, "auto") == 0
               ? find_own(diag, card_out, rates_out)
               : load_named(name, diag, card_out, rates_out);
}

me_status me_card_pool(const char *name, me_diag *diag, me_pool_options *pool)
{
    me_device_card card = {.total_bytes = 0};
    me_rates rates;
    const me_status status = me_card_choose(name, diag, &card, &rates);
    if (status == ME_OK) {
        pool->device_total_bytes = card.total_bytes;
        pool->outside_bytes = card.context_bytes;
        pool->capacity_bytes = card.total_bytes > card.context_bytes
                                   ? card.total_bytes - card.context_bytes
                                   : 1;
    }
    return status;
}

/** What the numbers of device memory rest on. */
static me_status assume_card(me_config *config, me_diag *diag,
                             const me_job_card *job)
{
    const me_device_card *card = &job->card;
    if (strcmp(config->device.name, "auto") == 0 &&
        me_config_assume(config, diag, "the card is the machine's: %s",
                         card->name) != ME_OK) {
        return ME_ERR_NOMEM;
    }
    me_str names = {0};
    const unsigned n = me_device_card_not_measured(card, &names);
    me_status status = me_str_status(&names);
    if (status == ME_OK && card->like[0] != '\0') {
        status = me_config_assume(
            config, diag, "%s: not measured on one (%s), else from the %s: %s",
            card->name, card->source, card->like, me_str_text(&names));
    } else if (status == ME_OK && n > 0) {
        status =
            me_config_assume(config, diag, "%s (%s): not measured: %s",
                             card->name, card->source, me_str_text(&names));
    }
    me_str_fini(&names);
    return status;
}

static me_status assume_nccl(me_config *config, me_diag *diag,
                             const me_job_card *job)
{
    me_status status = ME_OK;
    if (!job->nccl.uses_nvls && job->card.nccl.nvls_channels > 0 &&
        config->parallel.world_size > 1 &&
        me_config_variable(config, "NCCL_NVLS_ENABLE") == NULL) {
        status = me_config_assume(
            config, diag,
            "NCCL_NVLS_ENABLE=0, as in the measured jobs; where NCCL chooses, "
            "a communicator of several ranks takes %" PRIu64 " MiB more, and "
            "of 8 that all-reduce, 256: put NCCL_NVLS_ENABLE=2 before the "
            "launch command",
            2 * (job->card.nccl.nvls_channels + 1));
    }
    if (status == ME_OK &&
        config->parallel.world_size > job->layout.gpus_per_node) {
        status = me_config_assume(
            config, diag,
            "%d ranks a node; what communicators over several nodes take is "
            "derived from NCCL's source and not measured",
            (int)job->layout.gpus_per_node);
    }
    return status;
}

/** The least compute capability of each recipe: check_fp8_support() and the like
 *  (Transformer Engine's pytorch/quantization.py). */
static me_status check_fp8(const me_config *config, const me_device_card *card,
                           me_diag *diag)
{
    static const uint64_t least[] = {
        [ME_FP8_DELAYED] = 89,
        [ME_FP8_TENSORWISE] = 89,
        [ME_FP8_BLOCKWISE] = 90,
        [ME_FP8_MXFP8] = 100,
    };

    if (config->fp8.format == ME_FP8_NONE ||
        card->compute_capability >= least[config->fp8.recipe]) {
        return ME_OK;
    }
    return me_fail(
        diag, ME_ERR_CONFIG,
        "train.fp8_recipe = %s needs a card of compute capability %.1f or "
        "more: Transformer Engine stops at %s, whose is %.1f",
        me_choice_word(me_fp8_recipe_choices, (int)config->fp8.recipe),
        (double)least[config->fp8.recipe] / 10, card->name,
        (double)card->compute_capability / 10);
}

me_status me_job_card_make(me_config *config, me_diag *diag,
                           me_job_card *card_out)
{
    me_job_card job = {.nccl = me_nccl_setup_default()};
    me_status status =
        me_card_choose(config->device.name, diag, &job.card, &job.rates);
    if (status == ME_OK) {
        status = check_fp8(config, &job.card, diag);
    }
    if (status == ME_OK) {
        status = me_framework_traits_of(config)->check_card(
            config, job.card.compute_capability, diag);
    }
    if (status == ME_OK) {
        status = me_machine_choose(config, diag, &job);
    }
    if (status == ME_OK) {
        job.card.te_workspace_bytes =
            me_te_version_workspace(config, job.card.te_workspace_bytes);
        status = me_environment_apply(config, diag, &job);
    }
    if (status == ME_OK) {
        status = me_cudnn_norms_note(&job, config, diag);
    }
    if (status == ME_OK) {
        status = assume_card(config, diag, &job);
    }
    if (status == ME_OK) {
        status = assume_nccl(config, diag, &job);
    }
    if (status == ME_OK && config->device.memory_bytes != 0) {
        job.card.total_bytes = config->device.memory_bytes;
    }
    *card_out = job;
    return status;
}

/**
 * Does every group lie on the nodes in the same way for all its ranks? It does
 * where each axis fills nodes as a whole, or nodes fill it.
 */
static bool lies_evenly(const me_plan *plan, int32_t gpus_per_node)
{
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        const me_group group =
            me_grid_group(&plan->grid, (me_group_kind)kind, 0);
        for (int i = 0; i < group.n_axes; i++) {
            const int32_t whole = group.axes[i].stride * group.axes[i].extent;
            if (whole % gpus_per_node != 0 && gpus_per_node % whole != 0) {
                return false;
            }
        }
    }
    return true;
}

me_status me_job_card_note_places(const me_plan *plan, const me_job_card *card,
                                  me_config *config, me_diag *diag)
{
    const int32_t gpus_per_node = card->layout.gpus_per_node;
    if (config->parallel.world_size <= gpus_per_node ||
        (!card->layout.is_cyclic && lies_evenly(plan, gpus_per_node))) {
        return ME_OK;
    }
    if (card->layout.is_cyclic) {
        return me_config_assume(
            config, diag,
            "ranks are dealt to nodes in turn: of ranks with equal programs "
            "the place of the lowest one is taken for all");
    }
    return me_config_assume(
        config, diag,
        "ranks with equal programs lie on nodes of %d in different ways: the "
        "place of the lowest one is taken for all",
        (int)gpus_per_node);
}

me_card me_job_card_kernels(const me_job_card *job)
{
    const uint64_t capability = job->card.compute_capability;
    return (me_card){
        .compute_capability = (uint32_t)capability,
        .multiprocessors = (uint32_t)job->card.multiprocessors,
        .threads_per_multiprocessor =
            (uint32_t)job->card.threads_per_multiprocessor,
        .cublas_workspace_bytes = job->card.cublas_workspace_bytes,
        .te_workspace_bytes = job->card.te_workspace_bytes,
        .l2_cache_bytes = job->card.l2_cache_bytes,
        .has_any_order_fp8 =
            (capability >= 100 && capability < 120) || capability >= 130,
        .has_lone_pairs = capability >= 100,
        .te = job->te,
    };
}
