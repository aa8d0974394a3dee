/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/mtp.h"

#include "train/megatron/bookkeeping.h"
#include "train/megatron/trainer.h"

/* What training does for multi-token prediction: the scale of its loss, and
 * MTPLossLoggingHelper's log (core/transformer/multi_token_prediction.py). */

void me_set_mtp_loss_scale(me_trainer *t, me_tensor *loss_scale)
{
    me_engine *e = t->e;
    if (t->config->model.mtp_num_layers == 0) {
        me_drop(e, loss_scale);
        return;
    }
    me_tensor *ones = me_scratch(e, "ones", 4);
    me_tensor *scale = me_scratch(e, "mul", 4);
    me_drop(e, ones);
    me_drop(e, loss_scale); // its name is the new one's
    if (t->config->train.calculate_per_token_loss) {
        me_attribute_set(e, &t->mtp.loss_scale, scale);
    } else { // a micro-batch's share
        me_tensor *share = me_scratch(e, "div", 4);
        me_attribute_set(e, &t->mtp.loss_scale, share);
        me_drop(e, share);
    }
    me_drop(e, scale);
}

/** The block whose forward has measured something; NULL: none here. */
static const me_mtp_block *measured_block(const me_trainer *t)
{
    for (int32_t i = 0; i < t->spec->n_chunks; i++) {
        if (t->chunks[i].mtp.metrics.loss_values != NULL) {
            return &t->chunks[i].mtp;
        }
    }
    return NULL;
}

/** reduce_metrics_in_tracker(). */
static void reduce_metrics(me_trainer *t, const me_mtp_metrics *metrics)
{
    const me_tensor *const vectors[3] = {
        metrics->loss_values, metrics->correct_values, metrics->total_values};
    for (int i = 0; i < 3; i++) {
        me_all_reduce(t->e, t->comm, ME_GROUP_DATA_CONTEXT, vectors[i]);
    }
}

static void temporary_vector(me_trainer *t, const char *op)
{
    me_temporary(t->e, op, 4 * (uint64_t)t->config->model.mtp_num_layers);
}

/** `correct / clamp(total, min=1) * 100`; @p before dies when it exists. */
static me_tensor *rate(me_engine *e, me_tensor *before)
{
    me_tensor *clamp = me_scratch(e, "clamp", 4);
    me_tensor *quotient = me_scratch(e, "div", 4);
    me_drop(e, clamp);
    me_tensor *y = me_scratch(e, "mul", 4);
    me_drop(e, quotient);
    return before == NULL ? y : me_rebind(e, before, y);
}

/** The running total of a depth's losses since the last line that was logged. */
static void add_to_total(me_trainer *t, me_tensor **total)
{
    me_engine *e = t->e;
    me_tensor *zero = me_keep_scalar(e, "zeros", 4);
    if (*total != NULL) { // made for the look-up in vain
        me_clear(e, &zero);
    }
    me_tensor *sum = me_keep_scalar(e, "add", 4);
    me_release(e, zero);
    me_release(e, *total);
    *total = sum;
}

void me_track_mtp_metrics(me_trainer *t)
{
    me_engine *e = t->e;
    const me_mtp_block *block = measured_block(t);
    if (block == NULL || !me_engine_is_ok(e)) {
        return;
    }
    const uint64_t bytes = 4 * (uint64_t)t->config->model.mtp_num_layers;
    reduce_metrics(t, &block->metrics);
    const me_frame frame = me_enter(e);
    me_tensor *losses = me_scratch(e, "mul", bytes);
    temporary_vector(t, "zeros_like");
    temporary_vector(t, "ones_like");
    for (int i = 0; i < 2 && t->mtp.cumulative[1] == NULL; i++) {
        t->mtp.cumulative[i] = me_keep_scalar(e, "zeros_like", bytes);
    }
    me_tensor *step_rate = NULL;
    me_tensor *cumulative_rate = NULL;
    for (int32_t i = 0; i < t->config->model.mtp_num_layers; i++) {
        step_rate = rate(e, step_rate);
        cumulative_rate = rate(e, cumulative_rate);
        add_to_total(t, &t->mtp.total_loss[i]);
    }
    (void)losses;
    me_leave(e, frame, NULL);
}

void me_reset_mtp_totals(me_trainer *t)
{
    if (t->iteration == 0) {
        return;
    }
    for (int i = 0; i < ME_MTP_MAX_DEPTHS; i++) {
        if (t->mtp.total_loss[i] != NULL) {
            me_tensor *zero = me_keep_scalar(t->e, "zeros", 4);
            me_release(t->e, t->mtp.total_loss[i]);
            t->mtp.total_loss[i] = zero;
        }
    }
}
