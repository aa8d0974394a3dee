/**
 * @file
 * What a script that has ended did and did not do: was there a launch, and if not,
 * why.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_SCRIPT_END_H
#define MEMEST_SCRIPT_SCRIPT_END_H

#include "script/script_run.h"

/**
 * Log the commands that had no effect, and see that there is a launch. Local.
 *
 * @param fence  why no layer took what the script wrote; "" if one did
 * @return ME_OK; ME_ERR_CONFIG with how the script ended, and what would help
 */
me_status me_script_end_check(const me_script_order *order,
                              const me_script *script, const char *fence,
                              me_diag *diag) ME_MUST_CHECK;

/** Did it launch nothing, where a job that submits itself was left out? Local. */
bool me_script_waits_for_itself(const me_script *script);

/** The first command without effect whose output a script may have wanted: Python
 *  without a script, a reader of JSON or YAML that is not here. Local.
 *
 *  @return borrowed from the script; NULL: there was none */
const char *me_script_mute(const me_script *script);

#endif /* MEMEST_SCRIPT_SCRIPT_END_H */
