/**
 * @file
 * The order in which a job's pipeline runs: a schedule by its name, or a
 * user's own from a file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_SCHEDULE_CHOICE_H
#define MEMEST_CONFIG_SCHEDULE_CHOICE_H

#include "config/config.h"
#include "parallel/schedule_csv.h"

/** Does the job run as Megatron-LM itself would, by one of its own functions?
 *  Else an order of `pipeline` is run. Local. */
bool me_config_has_own_schedule(const me_config *config);

/** The pipeline of a job whose parallelism and micro-batches are derived, as its
 *  first rank sees it. Local. */
me_pipeline me_config_pipeline(const me_config *config);

/**
 * Does `pipeline.schedule_file` say, for this job's ranks, chunks and
 * micro-batches, what Megatron-LM's own function does, without sends and
 * receives of its own? False without a file. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM; what is wrong with the file is left to
 *         me_config_order()
 */
me_status me_config_file_is_own_schedule(const me_config *config, me_diag *diag,
                                         bool *is_own_out) ME_MUST_CHECK;

/** Say in the report of Megatron-LM's job that what a file does to parameters
 *  is passed over. Local. @return ME_OK, ME_ERR_NOMEM */
me_status me_config_note_work_on_parameters(me_config *config,
                                            me_diag *diag) ME_MUST_CHECK;

/**
 * The order of a job that is run by one, checked. Local.
 *
 * @param pipeline   of the job; its rank does not matter
 * @param order_out  with sends and receives, and in jobs of plain PyTorch with
 *                   work on parameters; to be destroyed by the caller; NULL
 *                   for a schedule of Megatron-LM's own, and for PyTorch's 1F1B
 * @return ME_OK; ME_ERR_CONFIG with what does not fit, for an order of ranks
 *         that wait for each other for ever the cycle; ME_ERR_UNSUPPORTED for
 *         what is not modelled; ME_ERR_NOMEM
 */
me_status me_config_order(const me_config *config, const me_pipeline *pipeline,
                          me_diag *diag,
                          me_pipeline_order **order_out) ME_MUST_CHECK;

/** Does the job's order make gradients of inputs and of weights apart? Local.
 *  @return as me_config_order() */
me_status me_config_splits_backward(const me_config *config, me_diag *diag,
                                    bool *splits_out) ME_MUST_CHECK;

/** What a job's schedule asks of the ranks. */
typedef struct me_schedule_shape {
    int32_t chunks; /**< of each rank and copy; 0: any number will do */
    int32_t copies; /**< of the model: 2 with two directions, else 1 */
} me_schedule_shape;

/**
 * The shape of a job's schedule: of a file, what it has. Local.
 *
 * @return as me_schedule_file_read() and me_schedule_named()
 */
me_status me_config_schedule_shape(const me_config *config, me_diag *diag,
                                   me_schedule_shape *shape_out) ME_MUST_CHECK;

/**
 * The schedule of a name, as me_schedule_find(). Local.
 *
 * @param where  the option or command that named it, for the error
 * @return ME_OK; ME_ERR_CONFIG with the names that there are
 */
me_status me_schedule_named(const char *where, const char *name, me_diag *diag,
                            const me_schedule **schedule_out) ME_MUST_CHECK;

/**
 * The order of a file of the user's, as me_schedule_csv_read(); it may have
 * sends and receives. Local.
 *
 * @param dialect    of B
 * @param order_out  to be destroyed by the caller
 * @return ME_OK; ME_ERR_CONFIG, ME_ERR_SYNTAX or ME_ERR_IO with the file, and
 *         row where there is one; ME_ERR_NOMEM
 */
me_status me_schedule_file_read(const char *path, me_csv_dialect dialect,
                                me_diag *diag,
                                me_pipeline_order **order_out) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_SCHEDULE_CHOICE_H */
