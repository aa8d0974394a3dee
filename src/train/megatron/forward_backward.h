/**
 * @file
 * The functions that get_forward_backward_func() chooses from, one file each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_FORWARD_BACKWARD_H
#define MEMEST_TRAIN_MEGATRON_FORWARD_BACKWARD_H

struct me_trainer;

/** One stage: every micro-batch forward, then backward. */
void me_forward_backward_no_pipelining(struct me_trainer *t);
/** One chunk a rank. */
void me_forward_backward_1f1b(struct me_trainer *t);
/** Several chunks a rank, transfers overlapped. */
void me_forward_backward_interleaved(struct me_trainer *t);
/** The same, forwards alone. */
void me_forward_only_interleaved(struct me_trainer *t);
/** One stage: each backward in turns with the next forward. */
void me_forward_backward_combined(struct me_trainer *t);
/** Any order: the config's. */
void me_forward_backward_order(struct me_trainer *t);

#endif /* MEMEST_TRAIN_MEGATRON_FORWARD_BACKWARD_H */
