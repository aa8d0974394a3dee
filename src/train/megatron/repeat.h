/**
 * @file
 * Micro-batches that are told and not run (repeat.c): once a chunk's forward and
 * backward did the same twice, their events are told again.
 *
 * An action is a forward, a backward or a part of one. Each is bracketed: it
 * begins; it is told, or it runs and is written down; it ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_REPEAT_H
#define MEMEST_TRAIN_MEGATRON_REPEAT_H

#include "parallel/pipeline_order.h"
#include "tensor/launch.h"
#include "tensor/script.h"

struct me_trainer;

enum {
    ME_ACTION_OUTPUTS = 3 /**< tensors that an action makes for its caller */
};

/** Tensors of its caller that an action works on. */
enum {
    ME_ACTION_INPUT,
    ME_ACTION_OUTPUT,
    ME_ACTION_GRADIENT /**< of the output */
};

/** The rank's, the engine's memory; without it nothing is told. */
void me_repeats_init(struct me_trainer *t);
void me_repeats_fini(struct me_trainer *t);
void me_repeats_begin_iteration(struct me_trainer *t);
/** An action begins; whether it is told is settled. */
void me_repeats_begin_action(struct me_trainer *t, me_action_kind kind,
                             int32_t chunk, int32_t microbatch);
/** It ends. @param begin  the launch that it began with */
void me_repeats_end_action(struct me_trainer *t, const me_launch *begin);
/**
 * Tell the running action, if it is one that need not be run.
 *
 * @param inputs  what it works on, ME_SCRIPT_INPUTS; NULL: none
 * @param outputs   what it makes, ME_ACTION_OUTPUTS, the caller's; set if told
 * @return false: it is to be run, up to me_repeats_end()
 */
bool me_repeats_tell(struct me_trainer *t, me_tensor *const *inputs,
                     me_tensor **outputs);
/** The name of the output that the backward which begins may let go of. */
void me_repeats_name_output(struct me_trainer *t, me_tensor **output);
/** What the running micro-batch's forward worked on; NULL: nothing. */
me_tensor *me_repeats_input(const struct me_trainer *t);
/** It has run. @param outputs  as above, borrowed */
void me_repeats_end(struct me_trainer *t, me_tensor *const *inputs,
                    me_tensor *const *outputs);

#endif /* MEMEST_TRAIN_MEGATRON_REPEAT_H */
