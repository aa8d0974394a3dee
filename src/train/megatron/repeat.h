/**
 * @file
 * Micro-batches that are repeated and not run (repeat.c): once a chunk's
 * forward and backward did the same twice, observers are told their recorded
 * events for later micro-batches (tensor/script.h).
 *
 * An action is a forward, a backward or a half of one. Each calls
 * me_repeats_begin_action(), then me_repeats_tell(); unless that repeated it,
 * it runs and calls me_repeats_end(); and me_repeats_end_action() at last.
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

/** May what is like something before be told and not run? */
bool me_can_repeat(const struct me_trainer *t);
/** Set up; without memory every action is run. */
void me_repeats_init(struct me_trainer *t);
void me_repeats_fini(struct me_trainer *t);
void me_repeats_begin_iteration(struct me_trainer *t);
/** An action begins; decides whether it is repeated. */
void me_repeats_begin_action(struct me_trainer *t, me_action_kind kind,
                             int32_t chunk, int32_t microbatch);
/** It ends. @param begin  the launch with which it began */
void me_repeats_end_action(struct me_trainer *t, const me_launch *begin);
/**
 * If the running action is to be repeated, tell its events; else begin to
 * record it.
 *
 * @param inputs  ME_SCRIPT_INPUTS tensors that it works on; NULL: none
 * @param outputs  ME_ACTION_OUTPUTS tensors that it makes, the caller's; set if
 *                 it was repeated
 * @return false: it is to be run, and then me_repeats_end() called
 */
bool me_repeats_tell(struct me_trainer *t, me_tensor *const *inputs,
                     me_tensor **outputs);
/** Say where the caller of the backward that begins holds its output, since the
 * backward may release that. */
void me_repeats_name_output(struct me_trainer *t, me_tensor **output);
/** The input of the running micro-batch's forward; NULL: none. */
me_tensor *me_repeats_input(const struct me_trainer *t);
/** The action has run: keep its recording. @param outputs as above, borrowed */
void me_repeats_end(struct me_trainer *t, me_tensor *const *inputs,
                    me_tensor *const *outputs);

#endif /* MEMEST_TRAIN_MEGATRON_REPEAT_H */
