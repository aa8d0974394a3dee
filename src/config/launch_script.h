/**
 * @file
 * The training script of a launch command: whose it is, and who reads the flags
 * behind it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_SCRIPT_H
#define MEMEST_CONFIG_LAUNCH_SCRIPT_H

#include "config/config.h"
#include "config/paste.h"

/** A script of a framework's; static. */
typedef struct me_launch_script {
    const char *path;
    const char *module; /**< its name after -m */
    me_status (*read)(me_config *config, int argc, const char *const *argv,
                      me_diag *diag);
    me_paste_form paste; /**< how options are said behind it */
    const char *flag; /**< a word that tells it from others of the name; NULL:
                           none need be there */
} me_launch_script;

/** The script that a command without one means: Megatron-LM's pretrain_gpt.py.
 *  Local. */
const me_launch_script *me_launch_script_default(void);

/** Is @p argv[0] a training script that me_launch_script_choose() reads? Local.
 */
bool me_launch_script_is_known(int argc, const char *const *argv);

/** Does the name of a script or class, with `_`, `-` and dots between its words,
 *  say that it builds another model than a GPT? Local. */
bool me_launch_names_other_model(const char *name);

/**
 * Words of a site's own launcher, `python launcher.py --nnodes 2 -- python …`, from
 * its script to the `--`. Local.
 *
 * @param argv  a script and what follows it
 * @return 0: it is none
 */
int me_launch_site_words(int argc, const char *const *argv);

/** Say why a script is not read: of another model, or not training it, by its
 *  name, or not modelled. Local. @return ME_ERR_UNSUPPORTED */
me_status me_launch_script_fail(const char *path, me_diag *diag) ME_MUST_CHECK;

/** Say that a word of a command is no program that is known, or no file. Local.
 *  @return ME_ERR_UNSUPPORTED */
me_status me_launch_program_fail(const char *word, me_diag *diag) ME_MUST_CHECK;

/**
 * Say that the job's script is read as pretrain_gpt.py. Local.
 *
 * @param path  of a script with a name of its own
 * @return ME_OK; ME_ERR_UNSUPPORTED for one of another model, or that does not
 *         train, by its name; ME_ERR_NOMEM
 */
me_status me_launch_script_say(me_config *config, const char *path,
                               me_diag *diag) ME_MUST_CHECK;

/**
 * Is @p argv[0] a training script that memest reads? By its name, or by flags of
 * Megatron-LM behind a script with a name of its own, which is then read as
 * pretrain_gpt.py; the job says so. Local.
 *
 * @param argv        a word of the command and what follows it
 * @param script_out  NULL: it is no script, or of nobody whom memest knows
 * @return ME_OK; ME_ERR_UNSUPPORTED for a script of another model or framework;
 *         ME_ERR_NOMEM
 */
me_status
me_launch_script_choose(me_config *config, int argc, const char *const *argv,
                        me_diag *diag,
                        const me_launch_script **script_out) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_LAUNCH_SCRIPT_H */
