/**
 * @file
 * The loss scale and the log of multi-token prediction; nothing without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_MTP_H
#define MEMEST_TRAIN_MEGATRON_MTP_H

#include "nn/megatron/gpt.h"

struct me_trainer;

/** What outlives a micro-batch of multi-token prediction (mtp.c). */
typedef struct me_mtp_state {
    me_tensor *loss_scale;    /**< of the last micro-batch */
    me_tensor *cumulative[2]; /**< correct, total predictions, (D) */
    me_tensor *total_loss[ME_MTP_MAX_DEPTHS]; /**< since the last log */
} me_mtp_state;

/**
 * The scale of its loss, after each micro-batch's own, on every stage. Without
 * such a loss nothing but what is said of @p loss_scale.
 *
 * @param loss_scale  that of experts, which has the same name and goes; or NULL
 */
void me_set_mtp_loss_scale(struct me_trainer *t, me_tensor *loss_scale);
/** track_mtp_metrics(): its part of the log. */
void me_track_mtp_metrics(struct me_trainer *t);
/** Totals begin anew once they are logged. */
void me_reset_mtp_totals(struct me_trainer *t);

#endif /* MEMEST_TRAIN_MEGATRON_MTP_H */
