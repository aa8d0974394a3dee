/**
 * @file
 * A job as keys with values, of those who train with Megatron-LM's core and have
 * files or arguments of their own: each key is a flag of Megatron-LM's, the
 * opposite of one or a field of its configuration, and is read as the flags that
 * it stands for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_MEGATRON_LEAVES_H
#define MEMEST_CONFIG_MEGATRON_MEGATRON_LEAVES_H

#include "base/yaml_text.h"
#include "config/config.h"
#include "config/megatron/leaf_variables.h"

/**
 * A field of the configuration that no flag has the name of. The first that
 * matches counts.
 */
typedef struct me_yaml_field {
    const char *key;   /**< the last of a path, or with a dot the end of it;
                            several with bars between them */
    const char *value; /**< values with bars between them, `true` and `false`
                            among them; NULL: any */
    const char *flags; /**< that it stands for, blanks between them, each with
                            the value behind it if that is any; "": none */
    const char *note;  /**< what is not modelled then; NULL: nothing */
    me_effect effect;  /**< of that */
} me_yaml_field;

/** The table of all; ends with a NULL key. */
extern const me_yaml_field me_yaml_fields[];

/** Sections whose keys no flag of need be: parts of paths; ends with NULL. */
extern const char *const me_yaml_quiet[];

/** What a trainer has where nothing says otherwise, and Megatron-LM has not. */
typedef struct me_leaf_default {
    const char *key;
    const char *value;
    const char *unless; /**< not if this key is there; NULL: always */
    const char *only;   /**< if this key is there alone; NULL: always */
} me_leaf_default;

/** Who trains. */
typedef struct me_trainer {
    const me_yaml_field *fields;     /**< before those of all; NULL: none */
    const char *const *quiet;        /**< beside me_yaml_quiet; NULL: none */
    const me_leaf_default *defaults; /**< ends with a NULL key; NULL: none */
} me_trainer;

/**
 * Read a job. Keys that are neither flags nor fields are listed as not modelled,
 * but for quiet ones. Of `${…}` the value is read as me_leaf_resolve() has it,
 * where the job depends on it. Local.
 *
 * @param where  what holds the leaves, in messages
 * @param arena  for words; must live as long as the call
 * @return ME_OK; ME_ERR_CONFIG with file and line of a value that is not right,
 *         or refers to nothing; ME_ERR_NOMEM
 */
me_status me_megatron_read_leaves(me_config *config, const char *where,
                                  const me_yaml *yaml,
                                  const me_trainer *trainer, me_arena *arena,
                                  me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_MEGATRON_LEAVES_H */
