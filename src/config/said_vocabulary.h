/**
 * @file
 * What a tokenizer said of the vocabulary, in the group `launch` of a `.cfg`
 * file: `vocabulary = { tokens; source; type; from; }`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_SAID_VOCABULARY_H
#define MEMEST_CONFIG_SAID_VOCABULARY_H

#include "base/conf.h"
#include "config/config.h"

/** Is model.vocab_size what a tokenizer said, and nobody knew better? Local. */
bool me_said_vocabulary_holds(const me_config *config);

/** The line, if it holds; or nothing. Local. */
void me_said_vocabulary_dump(const me_config *config, me_str *text);

/**
 * Read it, for a job whose model.vocab_size was dumped beside it. Local.
 *
 * @param where  file name for messages
 * @return ME_OK; ME_ERR_CONFIG with the line; ME_ERR_NOMEM
 */
me_status me_said_vocabulary_read(me_config *config,
                                  const config_setting_t *group,
                                  const char *where,
                                  me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_SAID_VOCABULARY_H */
