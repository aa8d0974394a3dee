/**
 * @file
 * From a plan to the program of one rank. The one place that knows which
 * frameworks there are: each is a row of functions, and everybody else runs a
 * program without asking whose it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_PROGRAM_H
#define MEMEST_RUN_PROGRAM_H

#include "plan/plan.h"
#include "time/rates.h"
#include "train/megatron/megatron.h"
#include "train/torch/torch.h"

struct me_program;

/** A framework: how its programs are made and run; every member is there. */
typedef struct me_program_kind {
    /** Fill in the framework's part. @return ME_OK or ME_ERR_NOMEM */
    me_status (*init)(const me_plan *plan, int32_t rank,
                      struct me_program *program);
    /** Run it; a failure is the engine's. */
    void (*run)(me_engine *e, struct me_program *program);
    /** As me_shard_classes.find. */
    me_status (*shard_classes)(const me_plan *plan, int32_t rank, me_diag *diag,
                               int32_t *class_out, me_shard_kin *kin);
    /** Can one program stand for ranks with other shards (tensor/strand.h)? */
    bool (*can_have_strands)(const me_config *config);
    me_host_program host; /**< whose host works around its kernels */
    /** The order of forwards and backwards, a line each, for `--dump`. */
    const me_schedule *(*schedule)(const me_plan *plan);
} me_program_kind;

/** A rank's program and what it points to. */
typedef struct me_program {
    const me_program_kind *kind;
    me_communicators comm;
    int32_t iterations;   /**< to run */
    bool runs_all_rounds; /**< micro-batches that repeat are run as well */
    bool
        times_kernels; /**< compiled ones, whatever the job says of the cache */
    bool must_run_all; /**< it failed because they did not repeat */
    bool must_run_apart;       /**< it failed because strands need their own */
    me_communicators *strands; /**< owned; see me_program_add_strand() */
    int32_t n_strands;
    me_twin_listener twin_listener; /**< told by Megatron-LM's alone */
    me_megatron_spec megatron;
    me_torch_spec torch;
    me_gpt_spec *chunks; /**< owned; Megatron-LM's */
} me_program;

/** The row of a plan's programs; static. */
const me_program_kind *me_program_kind_of(const me_plan *plan);

/** @return ME_OK or ME_ERR_NOMEM; @p program_out is for me_program_fini() */
me_status me_program_init(const me_plan *plan, int32_t rank,
                          me_program *program_out);

/** The program stands for @p rank as well, as its next strand; the first one is the
 *  program's own. Before it runs, at most ME_STRANDS_MAX in all.
 *  @return ME_OK or ME_ERR_NOMEM */
me_status me_program_add_strand(const me_plan *plan, int32_t rank,
                                me_program *program);

/** Run the program on @p e, which tells its observers; a failure is the
 *  engine's. */
void me_program_run(me_engine *e, me_program *program);

/** Give back what me_program_init() made. */
void me_program_fini(me_program *program);

/** An me_shard_classes.find. @param self  not used */
me_status me_program_shard_classes(void *self, const me_plan *plan,
                                   int32_t rank, me_diag *diag,
                                   int32_t *class_out, me_shard_kin *kin);

/** The schedule that a job's pipeline ranks run; static. */
const me_schedule *me_program_schedule(const me_plan *plan);

/** The rows (program_megatron.c, program_torch.c). */
extern const me_program_kind me_megatron_program;
extern const me_program_kind me_torch_program;

#endif /* MEMEST_RUN_PROGRAM_H */
