/**
 * @file
 * What a job keeps for itself, and how the readers of this folder write into
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_CONFIG_PRIVATE_H
#define MEMEST_CONFIG_CONFIG_PRIVATE_H

#include "base/arena.h"
#include "config/options.h"
#include "config/paste.h"
#include "config/tokenizer/tokenizer.h"

#include <stdbool.h>

enum {
    ME_OPTION_MAX = 320,
    ME_CONFIG_SAID_LISTS = 3 /**< see config/said.h */
};

/** What a launch command's tokenizer says of the vocabulary; texts are of the
 *  job's arena. */
typedef struct me_vocabulary_said {
    uint64_t tokens; /**< 0: no tokenizer was named */
    me_vocabulary_source source;
    const char *type; /**< of the tokenizer */
    const char *from; /**< file or name */
    bool is_decided;  /**< model.vocab_size was set from it */
} me_vocabulary_said;

struct me_config_private {
    me_arena *text;             /**< of the lists of flags */
    bool is_set[ME_OPTION_MAX]; /**< by its index in the option table */
    me_vocabulary_said vocabulary;
    bool takes_unknown;  /**< see me_config_take_unknown() */
    bool has_launch;     /**< a launch command of Megatron-LM was read */
    bool has_leaves;     /**< a file's fields were read as its flags */
    me_paste_form paste; /**< how an option is said beside what was read */
    struct me_titan_said *titan; /**< torchtitan's keys; NULL: not its job */
    const char
        *fork_sign; /**< what of it is a fork's or an earlier version's of
                                Megatron-LM, such as a flag; NULL: nothing */
    const char *world_is_open; /**< why nobody can tell how many ranks a launch
                                    command starts; NULL: it is told */
    uint64_t tasks_around; /**< of the step or mpirun that memest runs in, where
                                 nothing else says ranks; 0: none */
    const char *tasks_variable; /**< which says so, static; NULL: none */
    int32_t n_said[ME_CONFIG_SAID_LISTS]; /**< entries before derived ones */
};

/** Where a value was written: of the user's input. */
typedef struct me_origin {
    const char *file;  /**< NULL: no file */
    int line;          /**< 0: no line */
    const char *name;  /**< what the user calls it, such as a flag */
    const char *value; /**< as the user wrote it; NULL: as it is set */
} me_origin;

/**
 * Set @p option from text that came from @p origin; errors name the origin.
 *
 * @return ME_OK, or ME_ERR_CONFIG
 */
me_status me_option_set(const me_option *option, me_config *config,
                        const char *value, const me_origin *origin,
                        me_diag *diag) ME_MUST_CHECK;

/** The shortest digits that me_parse_double() reads back as @p value. */
void me_option_format_double(double value, me_str *text);

/** A libconfig string: quotes and backslashes escaped. The text is clean. */
void me_option_append_quoted(const char *value, me_str *text);

/** Does the option name a file of the user's? Local. */
bool me_option_names_file(const me_option *option);

/** Was this option given? */
bool me_option_is_set(const me_option *option, const me_config *config);

/**
 * Add to a list of the job; the texts are copied, @p note may be NULL.
 *
 * @return ME_OK, or ME_ERR_NOMEM
 */
me_status me_flag_list_add(me_config *config, me_flag_list *list,
                           const char *flag, const char *note,
                           me_diag *diag) ME_MUST_CHECK;

/**
 * Keep a variable of the job's environment, and take the allocator's settings
 * from it; the texts are copied. Local.
 *
 * @param value  NULL: it is passed on, and memest cannot see it
 * @return ME_OK; ME_ERR_NOMEM; as me_config_set() of device.alloc_conf
 */
me_status me_config_keep_variable(me_config *config, const char *name,
                                  const char *value,
                                  me_diag *diag) ME_MUST_CHECK;

/** Is @p flag in the list? */
bool me_flag_list_has(const me_flag_list *list, const char *flag);

/** Append flags to the failure of a launch command whose line names options that
 *  they set: "… (--tensor-model-parallel-size)". They are the command's own, and
 *  those of options that the line says are needed; @p diag may be NULL. Local. */
void me_config_name_flags(const me_config *config, me_diag *diag);

/** tensor x pipeline x context, saturating as sizes do. */
uint64_t me_config_model_parallel(const me_config *config);

/** The world size, where nothing gives it, and the data-parallel size. */
me_status me_config_derive_world(me_config *config, int32_t num_processes,
                                 me_diag *diag) ME_MUST_CHECK;

/** Check the degrees of a plain PyTorch job, its plan and its wrapper. */
me_status me_torch_check_parallel(const me_config *config,
                                  me_diag *diag) ME_MUST_CHECK;

/** Tell options that were given other values than their defaults and are about
 *  what the job lacks (me_option_need). */
me_status me_config_note_needless(me_config *config,
                                  me_diag *diag) ME_MUST_CHECK;

/** @name What torchtitan's keys said (torchtitan/torchtitan_again.c); Local
 *  @{ */
void me_titan_said_destroy(struct me_titan_said *said);
/** @return false: no memory; what there is is @p to's all the same */
bool me_titan_said_copy(me_config *to, const struct me_titan_said *from);
/** An option of memest's was set. @return ME_OK or ME_ERR_NOMEM */
me_status me_titan_said_note(me_config *config, const char *name,
                             const char *value, me_diag *diag) ME_MUST_CHECK;
/** @} */

#endif /* MEMEST_CONFIG_CONFIG_PRIVATE_H */
