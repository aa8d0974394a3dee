/**
 * @file
 * What a launch command, or another format, said beside options: flags that are
 * not modelled, assumptions that were made to read it, variables, a tokenizer's
 * vocabulary. A `.cfg` file has it as the group `launch`, so that it lives on in
 * `--dump config`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_SAID_H
#define MEMEST_CONFIG_SAID_H

#include "base/conf.h"
#include "config/config.h"

/** The lists as they are before anything is derived: from here on they grow by
 *  what a dump says again when it is read, and by me_config_assume_of(). Local. */
void me_said_settle(me_config *config);

/** Drop assumptions that rest on an option, which now has a value; of the
 *  vocabulary what a tokenizer decided. Local. */
void me_said_forget(me_config *config, const char *option);

/** Is there an assumption that rests on an option? Local. */
bool me_said_assumes(const me_config *config, const char *option);

/** The group `launch`, or nothing. Local. */
void me_said_dump(const me_config *config, me_str *text);

/**
 * Read the group. Local.
 *
 * @param where  file name for messages
 * @return ME_OK; ME_ERR_CONFIG with the line; ME_ERR_NOMEM
 */
me_status me_said_read(me_config *config, const config_setting_t *group,
                       const char *where, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_SAID_H */
