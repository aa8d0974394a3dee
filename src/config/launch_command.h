/**
 * @file
 * Launch commands as people type them: wrappers, environment, script, flags.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_COMMAND_H
#define MEMEST_CONFIG_LAUNCH_COMMAND_H

#include "config/config.h"

/**
 * Read the launch command of a job: everything after `--`. Wrappers (`srun`,
 * `mpirun`, `torchrun`, `python`, `env A=B`, …) are stepped over and give the
 * world size; what they put into the environment is kept in
 * me_config.environment; the flags of Megatron-LM's `pretrain_gpt.py` set
 * options, and each ends in one of the three lists of the job. A command that
 * begins with a flag is taken as flags alone. Local.
 *
 * @param config  set; on failure only good for me_config_destroy()
 * @param argc    words of the command
 * @param argv    the words, borrowed for the call
 * @return ME_OK; ME_ERR_SYNTAX or ME_ERR_CONFIG naming flag, value and what
 *         would be right; ME_ERR_UNSUPPORTED for another script;
 *         ME_ERR_NOMEM
 */
me_status me_config_read_launch(me_config *config, int argc,
                                const char *const *argv,
                                me_diag *diag) ME_MUST_CHECK;

/** From now on, name flags that nobody knows as not modelled; else they are
 *  errors, as they are in the training script. Local. */
void me_config_take_unknown(me_config *config);

/** Is one of the words a script that is modelled? Local. */
bool me_launch_names_job(int argc, const char *const *argv);

#endif /* MEMEST_CONFIG_LAUNCH_COMMAND_H */
