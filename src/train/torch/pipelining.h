/**
 * @file
 * Schedules of torch.distributed.pipelining (schedules.py, PyTorch 2.11): the
 * runtimes that run a rank's actions on its stages. GPipe and 1F1B, with one
 * stage a rank, have a loop each; all others, and whatever order a user reads
 * from a file, share the one that reads actions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_TORCH_PIPELINING_H
#define MEMEST_TRAIN_TORCH_PIPELINING_H

#include "train/torch/stage.h"

/** A rank's schedule and its stages. */
typedef struct me_schedule_run {
    me_loop *loop;
    me_stage *stages;
    int32_t n_stages;          /**< of this rank */
    const me_actions *actions; /**< this rank's of the order; NULL: none */
    me_tensor **losses;        /**< of the micro-batches; owned */
    bool is_initialized;
} me_schedule_run;

/** Build the stages' models and the schedule. */
void me_schedule_build(me_loop *l, me_schedule_run *run_out);

/** `schedule.step(input, target=target, losses=[])`. */
void me_schedule_step(me_schedule_run *run);

void me_schedule_fini(me_schedule_run *run);

/** @name For the files of the schedules
 *  @{ */
/** Forward of a micro-batch. @return the output, borrowed */
me_tensor *me_schedule_forward(me_schedule_run *run, me_stage *stage,
                               int32_t m);
/** _maybe_compute_loss(): on the last stage, of the last forward. */
void me_schedule_add_loss(me_schedule_run *run, me_stage *stage, int32_t m);
/** The loss of a micro-batch where there is one. */
me_tensor *me_schedule_loss(const me_schedule_run *run, const me_stage *stage,
                            int32_t m);

/** What a stage exchanges with its neighbours at once: bits as in me_launch. */
typedef struct me_stage_exchange {
    int transfers;
    bool is_async; /**< kernels do not wait, or not yet */
    int32_t microbatch;
} me_stage_exchange;

/** Say that it takes time; nothing that stays on the rank is in it. */
void me_schedule_tell(const me_stage *stage, const me_stage_exchange *exchange);
/** One side of a transfer; NULL: of nothing. What is sent is freed late. */
void me_schedule_send(me_stage *stage, me_tensor *x, int32_t rank);
void me_schedule_receive(me_stage *stage, const me_tensor *x, int32_t rank);

/** _step_microbatches() of ScheduleGPipe and Schedule1F1B. */
void me_schedule_gpipe(me_schedule_run *run);
void me_schedule_1f1b(me_schedule_run *run);
/** … of _PipelineScheduleRuntime. */
void me_schedule_runtime(me_schedule_run *run);
/** @} */

#endif /* MEMEST_TRAIN_TORCH_PIPELINING_H */
